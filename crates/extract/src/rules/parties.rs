//! Heads and feet of papers on which parties were mixed up or missed, drawn anew with issuers of our own: rows that
//! gaps part, companies that the foot names, brands over companies, identifiers in the customer's row.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "an address and a telephone in one row, set in the middle under the name, and the recipient has the same code",
        kind: "invoice",
        page: "
Page 1 of 1
                    Kettle River Vets Ltd
           203 Mill Road, Tai Moor 7672         Ph 03 555 0140
               GST No. 104-906-028     office@kettlevets.example


TAX INVOICE / STATEMENT                                          Invoice         90412
                                                                 Date            26 Mar 2026
S & K Birch                                                      Client          2207
1184 Old Moor Road
RD 2
Northtown 7672

26/03/26    Consultation                                     1              78.00

            Total this invoice (incl. GST)                               $ 78.00
            GST content                                                  $ 10.17",
        values: || {
            json!({
                "supplier_name": "Kettle River Vets Ltd",
                "supplier_address": "203 Mill Road, Tai Moor 7672",
            })
        },
    },
    DrawnLayout {
        what: "a street behind its label, and a town without a code before its county",
        kind: "invoice",
        page: "\
Furnizor                                                          Client
Fierbator Nord SRL                                                Brazi Instal SA
CIF: RO18547290                                                   CIF: RO12447788
Reg. com.: J12/4471/2008                                          Reg. com.: J26/118/2001
Adresa: Str. Morii Vechi nr. 18                                   Adresa: Calea Lacului nr. 55
Nordova, jud. Cluj                                                Sudova, jud. Mureș
IBAN: RO96 BTCJ 0447 018R ON00 3447

                                            FACTURA

                                        Seria FN nr. 0926
                                        Data (zi/luna/an): 08/09/2026

Denumire                                 Cant.  Pret unitar      Valoare   Valoare TVA
Contor                                      10       214.50      2145.00        450.45

                                                   Total plata      2595.45 lei",
        values: || json!({ "supplier_address": "Str. Morii Vechi nr. 18, Nordova, jud. Cluj" }),
    },
    DrawnLayout {
        what: "a gap parts street and town under a till's name",
        kind: "receipt",
        page: "
    KETTLE BROS. LUMBER & HARDWARE, INC.
       88 DEPOT ST     ALDER, OR 97701
            PHONE (541) 555-0174

RECEIPT # 118342         ACCT: CASH
DATE 05/29/26  TIME 8:04 AM
2X4X8 DF STUD                25.68
TAX                            .00
TOTAL                       $25.68",
        values: || json!({ "supplier_address": "88 DEPOT ST, ALDER, OR 97701" }),
    },
    DrawnLayout {
        what: "a road that is called by a number, behind that of the house",
        kind: "receipt",
        page: "
        WELCOME TO
     BIRCH CORNER FUEL
       7705 HWY 290 E
      ALDER TX 78724

09/02/2026  06:51:44
PUMP# 04
GALLONS:                  11.284
FUEL SALE                 $39.03
TOTAL                     $39.03",
        values: || json!({ "supplier_address": "7705 HWY 290 E, ALDER TX 78724" }),
    },
    DrawnLayout {
        what: "a company at the foot without an address trades under the brand that heads the paper with one",
        kind: "receipt",
        page: "
          The Kettle & Oar
        Bar & Seafood Kitchen
    6 Mill Lane, Northtown, H91 X4N2
          Tel: 091 555 0148

Bill No: 20417                Table 12
15/08/2026                       19:52
1  Fish & Chips                  19.50
TOTAL EUR                       €19.50

VAT A 23.0% on 15.85              3.65

  Birch Inns Ltd t/a The Kettle & Oar
         VAT No. IE 3471826NH",
        values: || {
            json!({
                "supplier_name": "Birch Inns Ltd",
                "supplier_address": "6 Mill Lane, Northtown, H91 X4N2",
            })
        },
    },
    DrawnLayout {
        what: "the number of a ticket has its label glued",
        kind: "receipt",
        page: "
        Zwanenhof BV
       Molenplein 21
        8500 Noordstad
     BTW BE 0734.821.619

       BTW-KASTICKET
Ticketnr: 00018244
Za 14/02/2026 13:47:09
2 Pils 25cl    3,40        6,80 A
TOTAAL EUR                   6,80",
        values: || json!({ "invoice_number": "00018244" }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "the number of a taxpayer in a row of headings with the customer's code was held for a rival",
        kind: "invoice",
        page: "\
FERRAMENTA NOCCIOLO                                           Ferramenta Nocciolo S.p.A.
Utensileria - Minuteria                                       Via del Mulino, 18
                                                              38057 Nordville (TN)

                                                              P.IVA e C.F. 03555010184 - R.E.A. TN 55501

FATTURA DIFFERITA                                             Spett.le
                                                              SERRAMENTI BETULLA S.N.C.
                                                              LOC. PRATI, 12
                                                              38057 NORDVILLE TN


Numero      Data documento    Cod. cliente     Partita IVA        Codice fiscale    Agente
1482/A      30/09/2026        C 00412          02144555014        02144555014       ONTANO

Descrizione                   Quantità       Prezzo      Importo    IVA
Vite TE 6x35                    100,00         1,00       100,00     22

                                  Totale imponibile   Totale imposta   TOTALE FATTURA
                                       100,00              22,00           € 122,00",
        values: || json!({ "supplier_vat_id": "03555010184" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "an empty line parted the numbers of both parties from their columns",
        kind: "invoice",
        page: "\
Faktúra - daňový doklad                                                          2026040

DODÁVATEĽ                                          ODBERATEĽ
KOTLÍK servis, s.r.o.                              Brezové dielne, a.s.
Mlynská 27                                         Továrenská 3
934 01 Severov                                     935 21 Juhov
Slovenská republika                                Slovenská republika
Prevádzka: Severov                                 Prevádzka: Juhov

IČO: 47748419                                      IČO: 49847091
DIČ: 2080719916                                    DIČ: 2058281533
IČ DPH: SK2080719916                               IČ DPH: SK2058281533

Banka: Severská banka                              Dátum vyhotovenia:          30.4.2026
IBAN: SK42 1100 0000 0029 3230 1988                Dátum splatnosti:           14.5.2026

Popis                                 Množstvo     Cena/MJ     DPH %     Bez DPH     S DPH
Upratovanie                                  1      640,00        23      640,00    787,20

                                                        Spolu na úhradu:       787,20 EUR",
        values: || json!({ "supplier_vat_id": "SK2080719916" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a number of a taxpayer in the row that begins with the customer was held for a rival",
        kind: "invoice",
        page: "\
Librería Nogal S.R.L.                                              FACTURA
                                                                   Nro. 0003-00044718
Av. Molino 447, X5000 Villanorte                                   Fecha: 25/04/2024
IVA Responsable Inscripto                                          CUIT: 30-70447718-1

Señor(es): Instituto Abedul                                        CUIT: 30-55044771-9
Domicilio: Molino 90, Villasur                                     Cond. de venta: Cta. Cte.

Cant.     Detalle                                     P. unitario          Importe
60        Manual                                         1.600,00         96.000,00

Importe Neto Gravado: $                                                   96.000,00
IVA 21%: $                                                                20.160,00
Importe Total: $                                                         116.160,00",
        values: || json!({ "supplier_name": "Librería Nogal S.R.L." }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the customer's identifier stood with its label in the row of the issuer's",
        kind: "invoice",
        page: "
                                                                             HASEL SPEDITION
                                                                             Hasel Spedition GmbH
                                                                             Am Seehafen 40
Birke Møbler ApS                                                             24159 Nordstadt
Havnegade 12
6000 Sydby
DANMARK
USt-ID des Kunden: DK29447711                                                USt-ID: DE118844775

R E C H N U N G     240881                                                   08.05.2024

Sendung                  von - nach                   Gewicht          Fracht EUR
12 Paletten              Nord - Syd                   4.800 kg           980,00

                                                       Nettobetrag                   980,00
                                                       MwSt. 0 %                       0,00
                                                       Endbetrag EUR                 980,00",
        values: || json!({ "supplier_vat_id": "DE118844775" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the number of a terminal was held for an identifier",
        kind: "receipt",
        page: "
     BIRCH CORNER FUEL
       7705 MILL ROAD
      ALDER TX 78724

09/02/2026  06:51:44
TERM: JD1174402    APPR: 284719
FUEL SALE                 $39.03
TOTAL                     $39.03",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the only company over a sound identifier is no other one than the shop",
        kind: "receipt",
        page: "
      Brasserie De Drie Ketels
            Zwanenhof BV
           Molenplein 21
           8500 Noordstad
        BTW BE 0734.821.619

BTW-KASTICKET
Ticket: 00018244
14/02/2026 13:47:09
2 Pils 25cl    3,40        6,80 A
TOTAAL EUR                   6,80",
        values: || json!({ "supplier_name": "Zwanenhof BV" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "what a shop sells, right under its name, was held for a name",
        kind: "receipt",
        page: "
          TIGH CHIARÁIN
       Bar - Food - Music
   Main Street, Moortown, Co. Clare
             H91 V4K7
        VAT No. IE9084195T

Tbl 4/2   Chk 220120     17/03/2026
2 Pint Stout       6.20     12.40   A
TOTAL DUE                  €12.40",
        values: || json!({ "supplier_name": "TIGH CHIARÁIN" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a trade stands between the name that heads a letter and its address",
        kind: "invoice",
        page: "
                           OÄ Dr. Ida Hasel
      Fachärztin für Haut- und Geschlechtskrankheiten · Wahlärztin aller Kassen
              Mühlstraße 33, 8600 Nordstadt · Ordination nach Vereinbarung


Frau
Mag. Theresa Birke
Wiener Straße 8/12
8605 Südstadt

                                                             Nordstadt, am 21. Mai 2025

Honorarnote HN 2025/0417

21.05.2025      Erstordination                                        € 140,00

                Gesamthonorar                                         € 140,00",
        values: || json!({ "supplier_name": "OÄ Dr. Ida Hasel" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the heading of a party in two languages was held for a name",
        kind: "invoice",
        page: "\
FACTURĂ FISCALĂ / INVOICE                                nr. TCN-2025447 / 06.06.2025

Prestator / Carrier                                      Beneficiar / Customer
TRANS NORDUL CARGO SRL                                   Lahnfracht Spedition GmbH
J05/1188/2014, RO41357591                                Am Westhafen 2, 35578 Nordstadt
Nordova, Șos. Morii nr. 118, jud. Bihor                  Deutschland
Cont EUR RO50 QXBK 0142 7806 3153 0474                   DE407131059

Descriere / Description                   Cant.      Preț / Price EUR      Valoare / Amount EUR
Transport                                     1               1.450,00                 1.450,00

Total fără TVA / Net                                                                   1.450,00
TVA / VAT                                                                                  0,00
Total de plată / Total due EUR                                                         1.450,00",
        values: || json!({ "supplier_name": "TRANS NORDUL CARGO SRL" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the owner of the account has the words of both lines of the head",
        kind: "invoice",
        page: "
                                                                   Joost ten Ketel
                                                                   Hoveniersbedrijf
                                                                   aanleg - onderhoud - bestrating

                                                                   Broekdijk 12a
                                                                   7122 LH Noordwolde
Fam. Berk                                                          06 55 55 01 28
Molenstraat 60
7121 AD Noordwolde                                                 KvK 55501287
                                                                   Btw-id NL888059960B85

Factuur

Factuurnummer         20260077
Factuurdatum          1 mei 2026
Vervaldatum           15 mei 2026

Omschrijving                                           Aantal        Prijs        Bedrag     Btw
Arbeid twee man, uren                                      26      € 47,50    € 1.235,00     21%

                                                21% btw over € 1.235,00         € 259,35
                                                Te betalen                    € 1.494,35

Graag binnen 14 dagen overmaken op NL86 RABO 0712 6198 71 t.n.v. Hoveniersbedrijf Joost ten Ketel
o.v.v. het factuurnummer.",
        values: || json!({ "supplier_name": "Hoveniersbedrijf Joost ten Ketel" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
];
