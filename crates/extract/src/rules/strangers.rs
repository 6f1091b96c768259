//! Layouts that no other drawing has, in the manner of `scripts/draw_strangers.py`: each was misread
//! before the rule that reads it. What real documents of these layouts look like is not claimed.

use serde_json::{Value, json};

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

/// A page, and what has to be read from it.
#[derive(Clone, Copy)]
pub(super) struct DrawnLayout {
    pub(super) what: &'static str,
    pub(super) kind: &'static str,
    pub(super) page: &'static str,
    pub(super) values: fn() -> Value,
}

const LAYOUTS: &[DrawnLayout] = &[
    DrawnLayout {
        what: "a name in the row of the recipient's heading heads a block of its own, with telephone and mail",
        kind: "invoice",
        page: "\
INVOICE

Invoice number              Date of issue
#415808                     24 October, 2007

Billed to                   Alder-Rivers
Kim Gaines                  4083 Jason Valleys Suite 237
6688 Shores Suite 516       Northtown, AK 83615
Westview, MT 59959          +55 31 2543 8618
59959                       jsmith@stone-holmes.com
                            bird-flint.com

Description            Unit cost  Qty/HR    Amount
Tins of figures             1.95       4      7.80
Jumbo shopper               2.08       5     10.40

                            Subtotal         18.20
                            Discount          4.29
                            Tax               0.22
                            Invoice total  $ 14.13",
        values: || json!({ "supplier_name": "Alder-Rivers", "supplier_address": "4083 Jason Valleys Suite 237, Northtown, AK 83615" }),
    },
    DrawnLayout {
        what: "a sentence about paying names an account, and a number ends before a town",
        kind: "invoice",
        page: "\
Birch Interiors
Old Lane 3
40211 Northtown

INVOICE

Customer 118 - Invoice No 7704418 - Southport, 5 June 2024

Description                          Amount
Gate                                 100.00
Total                            EUR 100.00

Please pay by transfer to Alder Works Ltd, sort code 20-44-91, account 60318827.
We ask for payment of EUR 100.00 by 19 June 2024.

Alder Works Ltd, Unit 7, Old Brewery Yard, Southport SP19 8DP",
        values: || {
            json!({
                "supplier_name": "Alder Works Ltd",
                "supplier_address": "Unit 7, Old Brewery Yard, Southport SP19 8DP",
                "invoice_number": "7704418",
                "due_date": "2024-06-19",
            })
        },
    },
    DrawnLayout {
        what: "a sentence about paying begins the line with name and address at the foot",
        kind: "invoice",
        page: "\
INVOICE

Birch Interiors
Old Lane 3
40211 Northtown

Invoice No   7704418
Date         5 June 2024

Description                          Amount
Gate                                 100.00
Total                            EUR 100.00





Alder Works Ltd - VAT no. DE136695976
Please pay by cheque to Alder Works Ltd, Mill Road 12, 82216 Southport",
        values: || json!({ "supplier_name": "Alder Works Ltd" }),
    },
    DrawnLayout {
        what: "a bank and the number of an account stand behind the name at the foot",
        kind: "credit_note",
        page: "\
Birch Interiors                             Alder Tagrender ApS
Old Lane 3                                  Mill Road 12
9600 Northtown                              9631 Southport
                                            CVR-nr. 82967729

Kreditnota                                  Nummer            10448
                                            Dato              07-05-2024

Total                                -1.550,00 DKK







Alder Tagrender ApS - Harbour Bank - Reg.nr. 9102 Kontonr. 4418820917
Alder Tagrender ApS - C.F. e P.IVA 04587080484 - REA 20457 Southport",
        values: || {
            json!({
                "supplier_name": "Alder Tagrender ApS",
                "supplier_address": "Mill Road 12, 9631 Southport",
            })
        },
    },
    DrawnLayout {
        what: "the amount is collected on a day, in a sentence that breaks before it",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Rechnungsnummer   A-77
Rechnungsdatum    05.06.2024

Die fälligen 120,00 EUR ziehen wir
am 19.06.2024 von Ihrem Konto ein.

Rechnungsbetrag                      120.00",
        values: || json!({ "invoice_date": "2024-06-05", "due_date": "2024-06-19" }),
    },
    DrawnLayout {
        what: "a debit is announced in one line, and the day of a visit is none",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Mill Road 12
Northtown

Invoice number   A-77
Invoice date     5 June 2024

Our engineer was with you on 28 June 2024.
We will debit your account on 19 June 2024.

Total                                120.00",
        values: || json!({ "invoice_date": "2024-06-05", "due_date": "2024-06-19" }),
    },
    DrawnLayout {
        what: "the sums stand in boxes, each value in another place of its box than its label",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Invoice number   A-77
Invoice date     05.06.2024

Description                          Amount
Gate                                 100.00

Net amount            VAT 20%           Total

               100.00             20.00         EUR 120.00",
        values: || json!({ "subtotal": 100, "vat_amount": 20, "total": 120 }),
    },
    DrawnLayout {
        what: "labels stand over their values, and who issues it at the foot, its line parted by points",
        kind: "invoice",
        page: "\
INVOICE

Delivered to        Our number         Payer
40211               A-77               7947
Invoice date        Despatch           Page
27.02.2024          23.02.2024         1

Birch Interiors AG
Harbour 5
20457 Southport

Description                          Amount
Gate                                 100.00

                          Total   EUR 100.00






                    Alder Metalworks
   Mill Road 12 · 82216 Northtown · VAT no. DE136695976
                www.alder-metalworks.com",
        values: || {
            json!({
                "supplier_name": "Alder Metalworks",
                "supplier_address": "Mill Road 12, 82216 Northtown",
                "supplier_vat_id": "DE136695976",
            })
        },
    },
    DrawnLayout {
        what: "a delivery is before the credit note, which has no other day",
        kind: "credit_note",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Kreditnota

Kundenr          40211
Leveringsdato    13.06.2025
Kreditnota nr.   B-12
Utstedt          17.06.2025

Sum eks. mva     100,00
Mva 25%           25,00
Til gode         125,00",
        values: || json!({ "invoice_date": "2025-06-17", "invoice_number": "B-12" }),
    },
    DrawnLayout {
        what: "each of two rates has a row with all three sums, and none of them is the invoice's",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Invoice number   A-77
Invoice date     05.06.2024

Description                          Amount
Gate                                 100.00
Book                                  50.00

 Rate      Net      VAT    Gross
  20%   100.00    20.00   120.00
   5%    50.00     2.50    52.50

                  Subtotal          150.00
                  VAT (20%)          20.00
                  VAT (5%)            2.50
                  TOTAL         EUR 172.50",
        values: || json!({ "subtotal": 150, "vat_amount": 22.5, "total": 172.5 }),
    },
    DrawnLayout {
        what: "what follows the address is a telephone's number and an invoice's, and no town's",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Suite 3, 41 Regent Parade
Harrogate HG1 9ZY
Phone 0999 555 77
Invoice No.: 9876

Invoice date     05.06.2024

Total   GBP 120.00",
        values: || {
            json!({
                "supplier_address": "Suite 3, 41 Regent Parade, Harrogate HG1 9ZY",
                "invoice_number": "9876",
            })
        },
    },
    DrawnLayout {
        what: "the sum stands under the lines without a word",
        kind: "receipt",
        page: "\
        ZORRO ROJO
      C/ ANCHA 5
Fecha: 22-05-2016 13:45

2 CANA                 3.60
2 TES                  2.80
1 RACION               6.70

                      13.10",
        values: || json!({ "total": 13.1 }),
    },
    DrawnLayout {
        what: "what was paid as it is has no other name than the sum before tax",
        kind: "receipt",
        page: "\
ALDER WRAPPINGS
19/09/2019   14:25
3x 47.00             141.00
SUBTOTAL             141.00
CASH                 141.00",
        values: || json!({ "total": 141 }),
    },
    DrawnLayout {
        what: "what one rate makes adds up, and is a part of what is to be paid",
        kind: "invoice",
        page: "\
ALDER PASTRIES SDN BHD
TAX INVOICE
Inv No.: 5186      Date: 18/06/2019

Bread                            37.42
         Total 0% supplies:      37.42
Seeds                            16.50
   Total 6% supplies (excl. GST):   16.50
                        GST:      0.99
   Total 6% supplies (Inc. GST):   17.49
         Total 0% supplies:      37.42
             Total Payable:      54.91",
        values: || json!({ "total": 54.91 }),
    },
    DrawnLayout {
        what: "a word before a weak label names another day",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Fattura

Ricevuta del:   28/03/2024
Numero          A-77
Del             01/04/2024

Totale fattura   EUR 120,00",
        values: || json!({ "invoice_date": "2024-04-01" }),
    },
    DrawnLayout {
        what: "what was owed before is no part of this invoice's total",
        kind: "invoice",
        page: "\
Alder Water Ltd
Invoice number   A-77
Invoice date     05.06.2024

Net amount            100.00
VAT 20%                20.00
Invoice total         120.00
Previous balance       50.00
Total due             170.00",
        values: || json!({ "total": 120 }),
    },
    DrawnLayout {
        what: "the column beside a label goes on with the issuer's address",
        kind: "invoice",
        page: "\
TAX INVOICE                      Invoice Date       Alder Metalworks Ltd
                                 5 Jan 2024         3 Tannery Yard
Birch School                                        Mill Street
14 Northgate                     Invoice Number     Leeds LS1 4AB
Wakefield                        INV-0219           United Kingdom
WF1 9ZX
                                 VAT Number
                                 GB 366 1044 71

Description                                Amount GBP
Gate                                           100.00

                             Subtotal          100.00
                        TOTAL VAT 20%           20.00
                            TOTAL GBP          120.00

Due Date: 19 Jan 2024

PAYMENT ADVICE                         Customer         Birch School
                                       Invoice Number   INV-0219
To:  Alder Metalworks Ltd
     3 Tannery Yard
     Mill Street
     Leeds LS1 4AB",
        values: || {
            json!({
                "supplier_name": "Alder Metalworks Ltd",
                "invoice_number": "INV-0219",
                "invoice_date": "2024-01-05",
                "due_date": "2024-01-19",
                "total": 120,
            })
        },
    },
    DrawnLayout {
        what: "the tax stands in brackets behind the total",
        kind: "invoice",
        page: "\
Alder Metalworks Ltd
Mill Road 12
Leeds LS1 4AB

INVOICE
Invoice number   A-77
Invoice date     2 December 2024

Product                          Quantity          Price
Gate                                    1         £74.50

                  Total   £74.50 (includes £12.42 VAT)",
        values: || json!({ "total": 74.5, "vat_amount": 12.42 }),
    },
    DrawnLayout {
        what: "net and tax have words that nobody knows, and a rate that makes one of the other",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Rechnungsnummer   A-77
Rechnungsdatum    05.06.2024

Gate                                    100,00
Positionenwert                          100,00
Fiskalabzug          19,000 %            19,00
Endbetrag            EUR                119,00",
        values: || json!({ "subtotal": 100, "vat_amount": 19, "total": 119 }),
    },
    DrawnLayout {
        what: "the number is printed in groups",
        kind: "invoice",
        page: "\
Alder Energy GmbH
Mill Road 12
82216 Northtown

Rechnungsnummer: 2024 0017 7741
20. Januar 2025

Rechnungsbetrag   EUR 1.290,00

Der Rechnungsbetrag wird am 04.02.2025 von Ihrem Konto abgebucht.",
        values: || json!({ "invoice_number": "2024 0017 7741", "due_date": "2025-02-04" }),
    },
    DrawnLayout {
        what: "who issues it stands in a long line at the foot alone",
        kind: "invoice",
        page: "\
Invoice To:                              SALES INVOICE
Birch Seaweed Co. Ltd                    Invoice        337710
Harbour 5                                Tax Point      31/07/24
Leeds LS1 4AD                            Due            30/08/24

Gate                                       100.00
VAT 20%                                     20.00
Total                                  EUR 120.00



















































Alder Haulage Ltd, Mill Road 12, Leeds LS1 4AB, United Kingdom. Directors: A. Nobody, B. Noone",
        values: || json!({ "supplier_name": "Alder Haulage Ltd", "invoice_number": "337710" }),
    },
    DrawnLayout {
        what: "the address stands in the column beside the name",
        kind: "invoice",
        page: "\
Alder Metalworks                                   Mill Road 12
DE136695976                                        82216 Northtown
info@alder-metalworks.com

Rechnung

Rechnungsnummer   A-77                             Birch Interiors GmbH
Rechnungsdatum    13.03.2024                       Harbour 5
                                                   20457 Southport

Gesamtbetrag      EUR 120,00",
        values: || json!({ "supplier_address": "Mill Road 12, 82216 Northtown" }),
    },
    DrawnLayout {
        what: "headings that nobody knows stand over companies whose form comes first",
        kind: "invoice",
        page: "\
                     INVOICE
                     No.: A-77
                     Date: 5 June 2023

Hornitzailea                             Erosle
UAB Kettle Works                         Birch School
Code 304411877                           Harbour 5
Mill Road 12, LT-44304 Northtown         LT-47184 Southport

Gate                                     74.50
Total   EUR                              74.50",
        values: || json!({ "supplier_name": "UAB Kettle Works" }),
    },
    DrawnLayout {
        what: "a tax and the word for a number are one word before the identifier",
        kind: "invoice",
        page: "\
Alder Metalworks B.V.
Mill Road 12
8011 PK Northtown
Gst-nummer NL001234567B01

Invoice number   A-77
Date             22 October 2024

Total                     541,69 EUR",
        values: || json!({ "supplier_vat_id": "NL001234567B01" }),
    },
    DrawnLayout {
        what: "beside a title stands what another number is called",
        kind: "invoice",
        page: "\
Alder Metalworks AG
Mill Road 12
82216 Northtown

Invoice                   Zerrenda: ZK-2208
Date                      22 October 2024

Total                     541,69 EUR",
        values: || json!({ "invoice_number": null }),
    },
    DrawnLayout {
        what: "a page ends early, with its issuer's line under the amounts, parted by strokes, and a recipient first",
        kind: "invoice",
        page: "\
Birke Fahrradhandel GmbH
Hafen 15
66812 Südhafen

                              Rechnung Nr. 1043
                              Datum 01.11.2024

Beschreibung                              Betrag
Gestaltung                              8.200,00

Nettobetrag                             8.200,00
MwSt 19 %                               1.558,00
Gesamtbetrag EUR                        9.758,00

Erle Gestaltung GmbH / Mühlweg 20 / 82216 Nordstadt / USt-IdNr. DE136695976 / hallo@erle-gestaltung.example",
        values: || json!({ "supplier_name": "Erle Gestaltung GmbH", "supplier_address": "Mühlweg 20, 82216 Nordstadt" }),
    },
    DrawnLayout {
        what: "a sentence ends behind the legal form, the town and the identifier",
        kind: "invoice",
        page: "\
To:
Mrs E Kettle
Pool House
Leeds LS1 4AB

SALES INVOICE
Invoice number   TV-2291
Invoice date     09/05/2024

Windows                                        100.00
VAT @ 20%                                       20.00
Total                                         £120.00



Alder & Vale Joinery Ltd. Unit 3, Old Dairy Yard, Bath BA1 5QT. Tel 01531 555 018.
Registered in England No. 07114482. VAT Registration No. 555 0123 45. Director: M. Vale",
        values: || json!({ "supplier_name": "Alder & Vale Joinery Ltd", "supplier_address": "Unit 3, Old Dairy Yard, Bath BA1 5QT", "supplier_vat_id": "555 0123 45" }),
    },
    DrawnLayout {
        what: "a total without a label is what a labelled tax makes with what its rate is of",
        kind: "invoice",
        page: "\
Erle Treuhand AG
Mühlweg 20
6370 Nordstadt

Rechnung Nr. 240388
Datum 20.06.2024

Abschluss, 8 Stunden                Fr.     1'520.00
Auslagen                            Fr.       120.00
                                    Fr.     1'640.00
MWST 8.1 %                          Fr.       132.84
                                    Fr.     1'772.85",
        values: || json!({ "subtotal": 1640, "vat_amount": 132.84, "total": 1772.85 }),
    },
];

#[test]
fn strangers_layouts_are_read() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let mut wrong = Vec::new();
    for DrawnLayout { what, kind, page, values } in [
        LAYOUTS,
        super::worldwide::LAYOUTS,
        super::abroad::LAYOUTS,
        super::varied::LAYOUTS,
        super::letterbox::LAYOUTS,
        super::outside::LAYOUTS,
        super::postbag::LAYOUTS,
        super::inbox::LAYOUTS,
        super::parties::LAYOUTS,
        super::unnamed::LAYOUTS,
    ]
    .concat()
    {
        let read = extract_by_rules(&transcript(&[page]), kinds.get(kind).unwrap());
        for (field, value) in values().as_object().unwrap() {
            let given = read.data.get(field).unwrap_or(&Value::Null);
            let same = given == value || (given.is_number() && given.as_f64() == value.as_f64());
            if !same {
                wrong.push(format!("{what}: {field} is {given}, not {value}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
