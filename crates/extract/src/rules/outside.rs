//! Layouts and words of trades that were misread, or flagged although they were right, drawn anew with issuers of
//! our own: hotels, lawyers, craftsmen of other countries.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "what the writer calls the matter by is the number of a document that has no other",
        kind: "invoice",
        page: "\
Kettle & Vale Joinery Ltd
Unit 3, Old Yard
Ledbury HR8 2DX

SALES INVOICE
Our ref     KV/2291              Tax point    09/05/2024             Terms     30 days
Your order  by e-mail

Fitting, making good                                                     3,120.00
                                                  Goods                  3,120.00
                                                  VAT @ 20%                624.00
                                                  Amount due            £3,744.00",
        values: || json!({ "invoice_number": "KV/2291" }),
    },
    DrawnLayout {
        what: "a number of its own outdoes what the writer calls the matter by",
        kind: "invoice",
        page: "\
Kettle & Vale Joinery Ltd
Unit 3, Old Yard
Ledbury HR8 2DX

INVOICE 4471
Our ref     KV/2291              Tax point    09/05/2024             Terms     30 days

Fitting, making good                                                     3,120.00
                                                  Amount due            £3,744.00",
        values: || json!({ "invoice_number": "4471" }),
    },
    DrawnLayout {
        what: "New Zealand's tax has a number, and no dollars beside the amounts",
        kind: "invoice",
        page: "\
Kettle Timber Frames Ltd                                             TAX INVOICE

To  Northtown Boating Club Inc                                       Number        TTF-0442
    Beach Road, Northtown 7073                                       Issued        20 March 2024
                                                                     GST           118-447-118

Frames and trusses                                                                15,000.00
Roof                                                                               3,000.00
                                                                           GST 15%  2,700.00
                                                                           Payable 20,700.00",
        values: || json!({ "supplier_vat_id": "118-447-118", "currency": "NZD" }),
    },
    DrawnLayout {
        what: "Canada's number stands in brackets behind the rate of its tax",
        kind: "invoice",
        page: "\
Kettle Lawn & Snow Ltd.                                                    INVOICE 1184
77 Chemin des Pins                                                         April 30, 2024
Northtown, QC  J9B 1L1

Raking, dethatching                                                         $420.00
Hauling, 2 loads                                                            $220.00
Subtotal                                                                    $640.00
GST 5% (81184 4716 RT0001)                                                   $32.00
QST 9.975% (1204418870 TQ0001)                                               $63.84
TOTAL                                                                       $735.84",
        values: || json!({ "supplier_vat_id": "81184 4716 RT0001" }),
    },
    DrawnLayout {
        what: "the line over the recipient says a part of the name that the foot has in full",
        kind: "invoice",
        page: "\
KETTLE · BROOK
Rechtsanwälte

Kettle Brook  Königswall 3  32423 Nordstadt                             Ida Kettle
                                                                        Fachanwältin für Arbeitsrecht
Firma                                                                   Jan Brook
Birke Rohstoffe GmbH
Herrn Lothar Ahorn
Uferstraße 100                                                          Unser Zeichen: 00731/24 K
31737 Südhafen                                                          Nordstadt, 17.09.2024

Kostenrechnung Nr. 240731/K

Geschäftsgebühr                                                                  973,10 €
19 % Umsatzsteuer                                                                184,89 €
Gesamtbetrag                                                                   1.157,99 €







Rechtsanwälte Kettle Brook PartG mbB, Sitz Nordstadt, AG Essen PR 4471     St.-Nr. 335/5713/0118
Volksbank Nordstadt  DE36 4209 7903 0924 9263 31",
        values: || json!({ "supplier_address": "Königswall 3, 32423 Nordstadt" }),
    },
    DrawnLayout {
        what: "a telephone is called by the word of the country",
        kind: "invoice",
        page: "\
KETTLE MALERIE

FAKTURA 2024-118                                       Northtown, 12.03.2024

Strandgata 9
6415 Northtown
Tlf 71 25 01 18

Kunde
Birch Eiendom AS
Storgata 12
6413 Southport

Maling                                                              1 000,00
Sum eks. mva                                                        1 000,00
Mva 25 %                                                              250,00
Å betale                                                            1 250,00",
        values: || json!({ "supplier_address": "Strandgata 9, 6415 Northtown" }),
    },
    DrawnLayout {
        what: "of two headings in one row the one says who writes, the other to whom",
        kind: "invoice",
        page: "\
FACTURE
Numéro : 2024-07
Nordville, le 28/06/2024

De :                                                      À :
Maëlle Bouleau                                            Biscuiterie Aulnaie SARL
Graphiste indépendante (EI)                               Zone du Port
3 impasse des Goélands                                    29930 Pont-Nord
29900 Nordville                                           SIRET 908 970 361 00014
SIRET 359 632 247 00011

Prestation                                                  Jours       Tarif       Total
Refonte de l'étiquette                                        2,5    350,00 €    875,00 €
                                                           Net à payer           875,00 €",
        values: || json!({ "supplier_name": "Maëlle Bouleau" }),
    },
    DrawnLayout {
        what: "the court of a register in the foot was held for a name",
        kind: "invoice",
        page: "\
Gasthof Erlenwirt
Dorfplatz 3, 5661 Nordau

Rechnung 2024/1140
Nordau, 17.08.2024

Doppelzimmer                                     414,00
MwSt 10 %                                         41,40
Gesamtbetrag                                     455,40

Fn 99442 k     LG Salzburg     UID ATU69944221     Raiffeisenbank Nordau AT61 3505 9944 0001 1220",
        values: || json!({ "supplier_name": "Gasthof Erlenwirt" }),
    },
    DrawnLayout {
        what: "of two days to pay by the one without a discount is the last",
        kind: "invoice",
        page: "\
Tischlerei Ahorn GmbH
Untertal 17, 79254 Nordau

Rechnung Nr.                     RE-240388
Datum                           10.04.2024

Haustür                                                                     4.120,00
                                                  Nettobetrag               4.120,00
                                                  19,00 % Umsatzsteuer        782,80
                                                  Bruttobetrag              4.902,80

Zahlbar bis 17.04.2024 mit 2 % Skonto (98,06 €), bis 24.04.2024 rein netto.",
        values: || json!({ "due_date": "2024-04-24" }),
    },
    DrawnLayout {
        what: "a discount between two days belongs to the second where that comes first",
        kind: "invoice",
        page: "\
Tischlerei Ahorn GmbH
Untertal 17, 79254 Nordau

Rechnung Nr.                     RE-240388
Datum                           10.04.2024

Haustür                                                                     4.120,00
                                                  Nettobetrag               4.120,00
                                                  19,00 % Umsatzsteuer        782,80
                                                  Bruttobetrag              4.902,80

Binnen 14 Tagen netto bis 24.04.2024, 2% Skonto binnen 7 Tagen bis 17.04.2024",
        values: || json!({ "due_date": "2024-04-24" }),
    },
    DrawnLayout {
        what: "what somebody does, and since when, is no name with an address",
        kind: "invoice",
        page: "\
          Dry Lining · Plastering · Rendering · Est. 1974
          A. J. Kettle Ltd
          3 Mill Rise, Northtown, Somerset BA11 2QL
          Tel 01373 496 0102

Birch Homes Ltd                                                 Invoice                       0962
Vallis House, Southport BA14 8HN                                Date              26 July 2024

Labour                                                                                    3,000.00
                                                      VAT 20%                               600.00
                                                      Invoice total                       3,600.00",
        values: || json!({ "supplier_name": "A. J. Kettle Ltd", "supplier_address": "3 Mill Rise, Northtown, Somerset BA11 2QL" }),
    },
    DrawnLayout {
        what: "New Zealand's days are written before their months",
        kind: "invoice",
        page: "\
KETTLE RURAL SUPPLIES LTD                                       TAX INVOICE
14 Mill Street, Northtown 9332                                  GST No                   064-182-072
Phone 03 555 0119                                               Invoice                      R108842
                                                                Date                        09/10/24

Posts                                                             1,462.40
GST 15%                                                             219.36
Amount payable                                                   $1,681.76",
        values: || json!({ "invoice_date": "2024-10-09", "currency": "NZD" }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
    what: "what the writer calls the matter by is no certain number",
    kind: "invoice",
    page: "\
Kettle & Vale Joinery Ltd
Unit 3, Old Yard
Ledbury HR8 2DX

SALES INVOICE
Our ref     KV/2291              Tax point    09/05/2024             Terms     30 days

Fitting, making good                                                     3,120.00
                                                  Goods                  3,120.00
                                                  VAT @ 20%                624.00
                                                  Amount due            £3,744.00",
    values: || json!({}),
    reason: "uncertain:invoice_number",
    doubtful: true,
},
    DrawnDoubt {
        what: "a brand in the line of the sender was held for a rival of the company that has it in its name",
        kind: "invoice",
        page: "\
                                                                        ERLENBROOK & BIRKE
                                                                        Rechtsanwälte
                                                                        Rechtsanwälte Erlenbrook & Birke PartG mbB
Erlenbrook & Birke, Neue Torstr. 14, 32756 Nordstadt                    Jürgen Erlenbrook
                                                                        Fachanwalt für Verkehrsrecht
Frau                                                                    Dr. Silke Birke
Ludmilla Ahorn                                                          Fachanwältin für Arbeitsrecht, Notarin
Lagesche Straße 88 a                                                    Neue Torstraße 14
32791 Südhafen                                                          32756 Nordstadt
                                                                        kanzlei@erlenbrook-birke.example

                                                                        Nordstadt, 27. Juni 2025
Kostenrechnung Nr. 250488

Geschäftsgebühr                       100,00 €
19 % Umsatzsteuer                      19,00 €
Gesamtbetrag                          119,00 €",
        values: || json!({}),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "who is paid by a slip was held for the customer, whose name stands on it as well",
        kind: "invoice",
        page: "\
Puutarha Kataja Oy                                               LASKU
Kauppakatu 14
40100 Pohjola                                                    Laskun päiväys         30.8.2024
                                                                 Laskun numero          20240188
                                                                 Eräpäivä               13.9.2024
Taloyhtiö Asunto Oy Pihlaja                                      Viitenumero            2024 01886
Isännöitsijä Pekka Koivu                                         Asiakasnumero          3301
Harjukatu 2
40100 Pohjola

Tuote                             Määrä     á hinta    Alv %    Alv       Yhteensä
Nurmikon leikkuu                   6,00       60,00     25,5   91,80        451,80

                                                    Veroton yhteensä      360,00 €
                                                    Arvonlisävero          91,80 €
                                                    Maksettava yhteensä   451,80 €

Saajan tilinumero   IBAN FI21 9944 5600 0007 85                  BIC NDEAFIHHXXX
Saaja               Puutarha Kataja Oy                           Viitenumero     2024 01886
Maksaja             Asunto Oy Pihlaja                            Eräpäivä        13.9.2024",
        values: || json!({ "supplier_name": "Puutarha Kataja Oy" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a quarter of a town without numbers was held for half an address, with a telephone under it",
        kind: "invoice",
        page: "\
GARAGE DU BOULEAU SARL                              Facture    25030117
ZA des Épinettes                                    Date       19/03/2025
38210 Nordville
Tél. 04 76 55 01 88

                                                    M. AULNAIE Yannick
                                                    6 impasse du Lavoir
                                                    38140 SUDVILLE

Main d'œuvre           10      10,00     100,00

                                        Total HT       100,00 €
                                        TVA 20 %        20,00 €
                                        Total TTC      120,00 €",
        values: || json!({ "supplier_address": "ZA des Épinettes, 38210 Nordville" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a second number of the recipient's, behind the first in its line, was held for a rival",
        kind: "invoice",
        page: "\
                                                          Faktura - daňový doklad č. 2024000187
Dodavatel                                                 Odběratel
Truhlářství Olše s.r.o.                                   Penzion Bříza s.r.o.
Lesní 118                                                 Nábřežní 4
394 70 Kamenov                                            391 02 Jezov
IČO: 86299379      DIČ: CZ86299379                        IČO: 18657541    DIČ: CZ18657541

Variabilní symbol: 2024000187                             Datum vystavení:    12.06.2024

Postel                                                                        18 540,00
                                                          DPH 21 %             3 893,40
                                                          CELKEM K ÚHRADĚ     22 433,40",
        values: || json!({ "supplier_vat_id": "CZ86299379" }),
        reason: "uncertain:supplier_vat_id",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a sentence denies the tax three words away from it",
        kind: "invoice",
        page: "\
Alder Cricket Club
Mill Lane 5
Leeds LS1 4AB
alder@cricket.example

Invoice 118
Date 5 May 2025

Membership                          138.00
Total                              £138.00

The club is not registered for VAT.",
        values: || json!({ "vat_amount": null }),
        reason: "uncertain:vat_amount",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the number alone right under the title alone was doubted",
        kind: "invoice",
        page: "\
Schilderwerken Van Els BV                                        FACTUUR
Molenstraat 31                                                   VF25-061
8800 Noordstad                                                   Noordstad, 5 mei 2025
BTW BE 0716.886.418

binnenmuren                    410,00       6,50             2.665,00

                                 Totaal excl. BTW            2.665,00
                                 BTW 21 %                      559,65
                                 Te betalen                  3.224,65",
        values: || json!({ "invoice_number": "VF25-061" }),
        reason: "uncertain:invoice_number",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a day by which to object is no certain day to pay by, where the money is collected on another",
        kind: "invoice",
        page: "\
Erle Mobil GmbH, Mühlweg 20, 82216 Nordstadt
Frau                                                                  Kundennummer         4471188021
Ilka Birke                                                            Rechnungsnummer      M0240611884473
Kanalstr. 12b
48147 Südhafen                                                        Nordstadt, 11.06.2024

Ihre Mobilfunkrechnung für Juni 2024

Grundgebühr                                                                     25,20
Summe                                                                           25,20
Umsatzsteuer 19 %                                                                4,79
Zu zahlender Betrag                                                             29,99

Der Betrag wird frühestens am 21.06.2024 von Ihrem Konto DE•• •••• 4471 abgebucht.
Einwendungen gegen diese Rechnung sind bis zum 06.08.2024 zu erheben.",
        values: || json!({}),
        reason: "uncertain:due_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "which copy it is was held for the name of who writes",
        kind: "invoice",
        page: "\
                              ORIGINAL FOR RECIPIENT
             Kettle Specialty Chemicals Pvt. Ltd.
             Plot 44, Industrial Area, Northtown 577228

Tax invoice 1187
Date 09-07-2024

Acid                                                 18,437.00
Taxable amount                                       18,437.00
IGST 18%                                              3,318.66
Grand Total                                          21,755.66

                         for Kettle Specialty Chemicals Pvt. Ltd.",
        values: || json!({ "supplier_name": "Kettle Specialty Chemicals Pvt. Ltd." }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a day behind a word that nobody knows is not certain where another day is called the date",
        kind: "invoice",
        page: "\
Kettle Warehouse Ltd
Mill Lane 5
Leeds LS1 4AB

INVOICE 2024-118
Packed 26 November 2024
Order 4471 Date   28 November 2024

Beech                                               100.00
VAT 20%                                              20.00
Total                                              £120.00",
        values: || json!({}),
        reason: "uncertain:invoice_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "that nobody has an identifier is not certain behind the name of a column of taxes",
        kind: "invoice",
        page: "\
Birilli di Paolo
Via Roma 12
24121 Nordville BG

Fattura 118
Data 12/03/2024
C.F. BLCFPP80A01D969X – IVA 02994420105

Lavoro                                              100,00
Imponibile                                          100,00
IVA 22%                                              22,00
Totale                                            € 122,00",
        values: || json!({}),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a post box and its town were held for half an address",
        kind: "invoice",
        page: "\
Kund                                                             FAKTURA
Bostadsrättsföreningen Björk 3
Fack 4471
581 18 Söderby

Fakturanr: 7718          Datum: 31 mars 2025          Kundnr: 204

Arbete                                             11,00          100,00        1 100,00
                                                    Summa exkl. moms            1 100,00
                                                    Moms 25 %                     275,00
                                                    Att betala                  1 375,00
                                                    Förfallodatum             2025-04-30

Al Elmontage Ek & Söner AB               Plusgiro 44 71 18-8       Org.nr 555306-3305        Styrelsens säte: Norrby
Box 118, 597 22 Norrby                   Tel 0120-555 01           Moms SE555306330501       Innehar F-skattebevis",
        values: || json!({ "supplier_address": "Box 118, 597 22 Norrby" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a quarter of a town was held for half an address, where the name heads the letter and another is addressed",
        kind: "credit_note",
        page: "\
Les Papeteries du Bouleau SAS                           AVOIR
Quartier des Sénès                                      Numéro             AV250044
83210 Nordville                                         Date               03/03/2025

Destinataire :                                          Facture d'origine  FA247718 du 18/12/2024
Lycée des Aulnes
BP 118
83400 SUDVILLE

Ramettes A4                                         30         4,55          136,50
                                                   Total HT                  136,50
                                                   TVA 20,00%                 27,30
                                                   Total TTC EUR             163,80",
        values: || json!({ "supplier_address": "Quartier des Sénès, 83210 Nordville" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a telephone under a name behind its label was not seen",
        kind: "invoice",
        page: "\
SĄSKAITA FAKTŪRA
Nr. RB-24/017
Data: 2024-05-08

Pardavėja: Rūta Beržienė                          Pirkėjas: VšĮ „Alksnio teatras“
Žvejų g. 3-12, Klaipėda                           Teatro g. 2, Klaipėda
Tel. +370 600 55014

Kostiumų eskizai                                 6               60,00             360,00
                                                 Iš viso mokėti:                   360,00 Eur
Mokėti iki 2024-05-22. Ne PVM mokėtoja.",
        values: || json!({ "supplier_address": "Žvejų g. 3-12, Klaipėda" }),
        reason: "uncertain:supplier_address",
        doubtful: false,
    },
];
