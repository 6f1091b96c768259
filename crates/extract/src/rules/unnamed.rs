//! Layouts that say by place alone what stands where: parties beside each other, tables without cents, columns of a
//! footer. Drawn anew with issuers of our own; each was misread, or held for certain, without its rule.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "rows by rate in money without cents make the labelled total",
        kind: "invoice",
        page: "\
Kettle Vendéglő Kft.
2025 Északfalu, Fő utca 4.
Adószám: 14471823-2-13

Egyszerűsített számla
Sorszám: NY-2025/118
Kelt: 2025.09.06.

Leves                              4 980
Szelet                             8 580
Fröccs                             1 780

ÖSSZESEN:                      15 340 Ft
Bankkártya                     15 340 Ft

ÁFA          Nettó        ÁFA     Bruttó
5%          12 914        646     13 560
27%          1 402        378      1 780",
        values: || json!({ "total": 15340, "vat_amount": 1024 }),
    },
    DrawnLayout {
        what: "the address stands under its heading in the columns of a footer",
        kind: "invoice",
        page: "\
Kettle Pumpservice AB                                 Faktura
                                                      Fakturanr                    10467
                                                      Fakturadatum            2024-10-21

Alder Såg & Hyvel HB
Scan 8847-18
FE 404, 105 69 Söderby

Pump                                                                            2 625,00
Moms 25 %                                                                         656,25
ATT BETALA                                                                      3 281,25




Adress                       Telefon                  Bankgiro                 Org.nr / Momsreg.nr
Verkstadsgatan 6             0581-555 01 44           144-7182                 556144-7185
711 34 Norrby                www.kettle.example       Plusgiro 44 71 82-9      SE556144718501",
        values: || json!({ "supplier_name": "Kettle Pumpservice AB", "supplier_address": "Verkstadsgatan 6, 711 34 Norrby" }),
    },
    DrawnLayout {
        what: "a shop says since when it is there between its name and its street",
        kind: "receipt",
        page: "\
Ferretería Kettle
Desde 1958
C/ San Vicente, 33
03300 Nordvilla

TICKET 20447
Fecha 08/10/2025
TOTAL A PAGAR             55,15
Efectivo                  60,00
Cambio                     4,85",
        values: || json!({ "supplier_address": "C/ San Vicente, 33, 03300 Nordvilla" }),
    },
    DrawnLayout {
        what: "who it is from and to stands behind the words, in one row",
        kind: "invoice",
        page: "\
                                            Invoice
                                            DATE: 05/03/2024
                                            INVOICE: NO. 12

FROM: Company Kettle                        TO: Alder Club
      office@kettle.example                     alder@club.example

ADDRESS: 4 Mill Road                      ADDRESS: 9 Harbour Road
         Northtown                                   Northtown

Tool                                                           100.00
BALANCE DUE                                                   $100.00",
        values: || json!({ "supplier_name": "Company Kettle" }),
    },
    DrawnLayout {
        what: "an empty line and a number part the seller's heading from the name",
        kind: "invoice",
        page: "\
Lesbare Fassung der Daten
Stand: 1.0

Rechnung Nr. 4471 vom 05.06.2024

Verkäufer:

Nummer: 4012345000009 (GLN)
Kettle Handel
Mühlweg 20
DE 82216 Nordstadt
Steuernummer: 118/447/10044

Käufer:
Nummer: 4471
Alder AG
Hafen 15
DE 66812 Südhafen

Gesamtbetrag                                                  119,00 €",
        values: || json!({ "supplier_name": "Kettle Handel", "supplier_address": "Mühlweg 20, DE 82216 Nordstadt" }),
    },
    DrawnLayout {
        what: "what a total is worth in another currency is not the total",
        kind: "invoice",
        page: "\
Kettle Trafo A.Ş.
Mühlweg 20
82216 Nordstadt

Fatura No: KTF2025000118
Fatura Tarihi: 21.02.2025

Trafo                                      48.200,00 EUR
Mal / Hizmet Toplam Tutarı                 48.200,00 EUR
Hesaplanan KDV (% 0,00 )                         0,00 EUR
Ödenecek Tutar                             48.200,00 EUR

Kur (TRY)                                      38,0000 TL
Mal / Hizmet Toplam Tutarı                1.831.600,00 TL
Hesaplanan KDV (% 0,00 )                          0,00 TL
Ödenecek Tutar                            1.831.600,00 TL",
        values: || json!({ "total": 48200, "currency": "EUR" }),
    },
    DrawnLayout {
        what: "of columns of two currencies that of the one that is paid in counts",
        kind: "invoice",
        page: "\
Kettle Inc.
Mill Lane 5
Westport, MA 02790

INVOICE: 4471
Date: 2023-05-11
Currency: USD

                                         AMOUNT
                                     USD          EUR
Licence for a month               64.20        58.90
TOTAL                             64.20        58.90",
        values: || json!({ "total": 64.20, "currency": "USD" }),
    },
    DrawnLayout {
        what: "the sign over the column of the total names its currency, not the worth in another one below",
        kind: "invoice",
        page: "\
Kettle Ship Supplies Pte. Ltd.
21 Mill Crescent, Northtown 128469
GST Regn 201418822K

Tax invoice SA-03                             17 Sep 2025

Deck stores                                      3,150.00

                                                      US$
                                Total before GST 3,150.00
                                GST @ 9%           283.50
                                Total payable    3,433.50

At USD 1 = SGD 1.3412     Excl. GST S$     GST S$    Incl. GST S$
                              4,224.78     380.23        4,605.01",
        values: || json!({ "total": 3433.5, "currency": "USD" }),
    },
    DrawnLayout {
        what: "what all rows of net amount, tax and total make is the total, whatever it is called",
        kind: "invoice",
        page: "\
Kettle Vendéglő Kft.
2025 Északfalu, Fő utca 4.
Adószám: 14471823-2-13

Egyszerűsített számla
Sorszám: NY-2025/118
Kelt: 2025.09.06.

Mivel:                         15 340 Ft

ÁFA          Nettó        ÁFA     Bruttó
5%          12 914        646     13 560
27%          1 402        378      1 780",
        values: || json!({ "total": 15340, "vat_amount": 1024 }),
    },
    DrawnLayout {
        what: "a tax number of Italy's beside that of a person in one label",
        kind: "invoice",
        page: "\
Tipografia Kettle S.n.c.                                    Destinatario
Via Rovereto 61                                             COMUNE DI NORDVILLE
38062 Nordville (TN)                                        Via Matteotti 33
P.I. e C.F. 01447180223                                     38069 NORDVILLE (TN)
                                                            C.F. 84000447189
Fattura 118
Data 22/04/2025

Manifesti                                                             1.000,00
Totale imponibile                                                     1.000,00
Totale IVA                                                              220,00
Totale documento                                                   € 1.220,00",
        values: || json!({ "supplier_vat_id": "01447180223" }),
    },
    DrawnLayout {
        what: "an Australian till numbers its dockets",
        kind: "receipt",
        page: "\
Kettle Road Meats
44 Carp St, Bega NSW 2550
ABN 40 207 714 482
TAX INVOICE
Thu 5/06/2025 11:14      Docket 2-118044
Rump steak                        $27.78
Lamb                              $42.46
TOTAL                             $70.24",
        values: || json!({ "invoice_number": "2-118044" }),
    },
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "a label behind words that nobody knows names a number only half",
        kind: "invoice",
        page: "\
Tipografia Kettle S.n.c.                                    Destinatario
Via Rovereto 61                                             COMUNE DI NORDVILLE
38062 Nordville (TN)                                        Via Matteotti 33
Q.X. e C.F. 01447180223                                     38069 NORDVILLE (TN)

Fattura 118
Data 22/04/2025

Manifesti                                                             1.000,00
Totale imponibile                                                     1.000,00
Totale IVA                                                              220,00
Totale documento                                                   € 1.220,00",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "of two blocks side by side that nothing names a company is not certain to be the issuer",
        kind: "invoice",
        page: "\
Alder, Vale and Birch                                                     Kettle PLC
12 Mill Manors                                                         Ida Birch
Northview, MI 48109                                      7 Harbour Road Apt. 12
                                                         Southview, NH 03101

Invoice Number: 4471         Issue Date: 2024-05-11

Tag                                                            10.00
TOTAL                                                        $ 10.00",
        values: || json!({}),
        reason: "uncertain:supplier_name",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a name beside the recipient's heading was doubted, though the recipient stands under that",
        kind: "invoice",
        page: "\
                              11 May 2024
Invoice number 4471


Billed to                     Alder-Kettle
Ida Birch                     12 Mill Road Suite 4
7 Harbour Road Suite 5        Northtown, AK 99501
Southport, MT 59601           +1 907 555 0118
                              ida@post.example

Boxes                                                          10.40
Total                                                         $10.40",
        values: || json!({ "supplier_name": "Alder-Kettle", "supplier_address": "12 Mill Road Suite 4, Northtown, AK 99501" }),
        reason: "uncertain:supplier_name",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a company with an identifier is not certain to be the issuer where another name heads the page",
        kind: "invoice",
        page: "\
                                            Studio Kettle Birch
Alder Works S.r.l.                          Viale Trento 55
Via Roma 8                                  36100 Nordville
36030 Sudville                              tel. 0444 555018
P.IVA IT97518350992

Fattura 118
Data 22/04/2024

Consulenza                                             1.000,00
Imponibile                                             1.000,00
IVA 22%                                                  220,00
Totale                                               € 1.220,00",
        values: || json!({}),
        reason: "uncertain:supplier_name",
        doubtful: true,
    },
    DrawnDoubt {
        what: "that nobody has an identifier is not certain where a number has the form of India's",
        kind: "invoice",
        page: "\
Kettle Traders Pvt. Ltd.
Plot 44, Mill Road, Northtown 577228
Reg: 27AAHCB3310L1Z7

Tax invoice 1187
Date 09-07-2024

Acid                                                 18,437.00
Grand Total                                          18,437.00",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
    DrawnDoubt {
        what: "a label behind a word that nobody knows names a day only half, so that it may be one to pay by",
        kind: "invoice",
        page: "\
Pisarna Kettle d.o.o.
Prešernova cesta 18, 5000 Severna Vas
ID za DDV: SI75154714

Račun št. 25-0447
Severna Vas, 22.10.2025

Sestava                                                         620,00
Skupaj brez DDV                                                 620,00
DDV 22 %                                                        136,40
Skupaj za plačilo                                               756,40

Xolk sklic: 6.11.2025",
        values: || json!({ "due_date": null }),
        reason: "uncertain:due_date",
        doubtful: true,
    },
    DrawnDoubt {
        what: "that a shop has no identifier is not certain behind an abbreviation",
        kind: "receipt",
        page: "\
CAFFÈ KETTLE
Via Roma 41
40121 NORDVILLE
Q.IXA 04178820374

Documento n. 0412-0088
12/11/2024
CAPPUCCINO                     6,80
TOTALE EURO                    6,80",
        values: || json!({ "supplier_vat_id": null }),
        reason: "uncertain:supplier_vat_id",
        doubtful: true,
    },
];
