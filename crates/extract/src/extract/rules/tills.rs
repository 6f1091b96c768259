//! Receipts as tills print them, drawn anew with shops of our own: each was misread, or read right and
//! doubted, before the rule that reads it. Beside what is plain now stands what has to stay in doubt.

use serde_json::{Value, json};
use time::macros::date;

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::gate::{EinvoiceState, GateLookups, judge_extraction};
use docmill_gate::kinds::KindSet;

/// A receipt, what has to be read from it, and which reasons may not or have to be there.
struct DrawnReceipt {
    what: &'static str,
    page: &'static str,
    values: fn() -> Value,
    reasons: &'static [(&'static str, bool)],
}

const RECEIPTS: &[DrawnReceipt] = &[
    DrawnReceipt {
        what: "two rates without their sign, and what they are on together is not printed",
        page: "\
ALDER MATBOD AB
Storgatan 17
702 11 Norrstad
Kvitto nr 88204
2024-10-07  18:33
Mjölk                  189,80
Kasse                   12,90
Totalt 2 varor         202,70
Kontokort              202,70
Moms%   Moms    Netto   Brutto
12,00   20,34   169,46  189,80
25,00    2,58    10,32   12,90",
        values: || json!({ "total": 202.7, "vat_amount": 22.92, "subtotal": null }),
        reasons: &[("uncertain:vat_amount", false), ("uncertain:subtotal", false)],
    },
    DrawnReceipt {
        what: "the taxes stand under what they are on, and the change makes the total",
        page: "\
ALDER DELIKATESY
31-120 Norki, ul. Polna 8
NIP 6774178820
2025-01-30            W020418
PARAGON FISKALNY
Proszek                        24,99A
Sok                            25,92C
SPRZEDAŻ OPODATKOWANA A        24,99
PTU A 23,00%                    4,67
SPRZEDAŻ OPODATKOWANA C        25,92
PTU C 5,00%                     1,23
SUMA PLN                       50,91
Gotówka PLN                   100,00
Reszta PLN                     49,09",
        values: || json!({ "total": 50.91, "vat_amount": 5.9 }),
        reasons: &[("total_unconfirmed:total", false), ("uncertain:total", false)],
    },
    DrawnReceipt {
        what: "the tax is on a part of the total, and the rest has none",
        page: "\
ALDER APOTHEKE
Marktplatz 3
72764 Nordstadt
11.02.2025    10:27
NASENSPRAY                    16,83
ZUZAHLUNG REZEPT              10,00
SUMME EUR                     26,83
EC-KARTE                      26,83
MWST 19,00 % = 2,69 AUF 16,83 EUR",
        values: || json!({ "total": 26.83, "vat_amount": 2.69, "subtotal": null }),
        reasons: &[("net_and_vat_are_not_total:total", false)],
    },
    DrawnReceipt {
        what: "what was charged is the total, and nothing says that there is a tax",
        page: "\
WELCOME TO
KETTLE STOP #0417
9900 E MILL ST
NORTHTOWN MO 64052
DATE 07/30/24   19:14
GALLONS:             14.206
PRICE/G:             $3.239
FUEL SALE            $46.01
CREDIT               $46.01",
        values: || json!({ "total": 46.01 }),
        reasons: &[("total_unconfirmed:total", false), ("uncertain:vat_amount", false)],
    },
    DrawnReceipt {
        what: "nothing makes the total, and a label of the tax stands without an amount",
        page: "\
KETTLE STOP
9900 E MILL ST
NORTHTOWN MO 64052
DATE 07/30/24   19:14
Tea            $4.10
TAX
TOTAL          $46.01",
        values: || json!({ "total": 46.01 }),
        reasons: &[("total_unconfirmed:total", true), ("uncertain:vat_amount", true)],
    },
    DrawnReceipt {
        what: "`INC` before a tax is no company of another country, and the ringgit writes days first",
        page: "\
SUNFISH ALDER SDN BHD
22 MILL LANE 4
80333 NORTHTOWN
SALTED RICE             RM 8.50
RM CASH                RM 10.00
TOTAL                   RM 8.50
CHANGE                  RM 1.50
INC 6% GST                 0.48
05/01/2018 13:30",
        values: || json!({ "invoice_date": "2018-01-05", "total": 8.5, "vat_amount": 0.48 }),
        reasons: &[("uncertain:invoice_date", false)],
    },
    DrawnReceipt {
        what: "a country whose dollars are its own writes days first",
        page: "\
ALDER TIMBER
12 Depot Rd, Northtown NSW 2800
ABN 41 178 820 331
Inv TI-90417      08/06/2024 10:15
DECK SCREWS              79.50
TOTAL                   $79.50
GST INCLUDED IN TOTAL    $7.23
EFTPOS                  $79.50",
        values: || {
            json!({
                "invoice_date": "2024-06-08", "currency": "AUD", "vat_amount": 7.23,
                "invoice_number": "TI-90417",
            })
        },
        reasons: &[("uncertain:invoice_date", false)],
    },
    DrawnReceipt {
        what: "a tax that the United States have not, and no country: whose dollars they are is not said",
        page: "\
ALDER GARDEN
12 Mill Road
Order #134          06-Aug-2015 2:31 PM
Roll                 $26.00
SUB-TOTAL            $26.00
GST(5%):              $1.30
TOTAL DUE:           $27.30
CASH:                $30.00
CHANGE:               $2.70",
        values: || json!({ "currency": null, "total": 27.3, "invoice_number": null }),
        reasons: &[("uncertain:currency", false), ("doubtful_reading", false)],
    },
    DrawnReceipt {
        what: "the number of a house is none of the receipt",
        page: "\
ALDER ENTERPRISE
NO 122.124. MILL ROAD 13
81100 NORTHTOWN
Doc No   CS00031663   Date   25/12/2018
Bag                     80.90
Total                RM 80.90",
        values: || json!({ "invoice_number": "CS00031663" }),
        reasons: &[("uncertain:invoice_number", false)],
    },
    DrawnReceipt {
        what: "the number of a shop is none of the receipt",
        page: "\
Alder Resources Sdn Bhd
16A, Mill Lane
40150 Northtown
#0020 Southport Hall
20/04/2018 19:15   #1000000163
Water                    3.70
TOTAL                 RM 3.70",
        values: || json!({ "invoice_number": "1000000163" }),
        reasons: &[("uncertain:invoice_number", false)],
    },
    DrawnReceipt {
        what: "a name comes back with the branch in the next line",
        page: "\
EIGHT KETTLES
EIGHT KETTLES CO. NORTHTOWN MALL
12 Mill Road
80333 Northtown
Date: 24-05-2018 4:29 PM
Tea                     39.90
Total                RM 39.90",
        values: || json!({}),
        reasons: &[("uncertain:supplier_name", false)],
    },
    DrawnReceipt {
        what: "two lines over the address may each be the name",
        page: "\
EIGHT KETTLES
NORTH TERRACE
12 Mill Road
80333 Northtown
Date: 24-05-2018 4:29 PM
Tea                     39.90
Total                RM 39.90",
        values: || json!({}),
        reasons: &[("uncertain:supplier_name", true)],
    },
    DrawnReceipt {
        what: "a street that ends in a word for streets is no label of one",
        page: "\
TAXI ALDER
Igel-Mill-Straße 40
80333 Nordstadt
UID ATU58771204
QUITTUNG Nr. 0417
06.12.2024 22:48
SUMME              EUR 24,20",
        values: || json!({ "supplier_address": "Igel-Mill-Straße 40, 80333 Nordstadt" }),
        reasons: &[],
    },
    DrawnReceipt {
        what: "between the printed sum of the lines and the total stand service, tax and a rounding",
        page: "\
ALDER SUSHI SDN BHD
NO. 9-G, MILL ROAD 2,
55100 NORTHTOWN
Date: 09-04-2018 19:22:25

Description    Qty   U.price     Total
Don              1     12.80     12.80
Roll             1     13.80     13.80

Total (Excluding GST):           26.60
Serv. Charge (10%):               2.66
GST Payable:                      1.76
Total (Inclusive of GST):        31.02
Rounding Adj:                    -0.02
TOTAL:                        RM 31.00
CASH:                         RM 31.00",
        values: || json!({ "total": 31 }),
        reasons: &[("lines_are_not_total:line_items", false)],
    },
];

#[test]
fn receipts_of_tills_are_read_and_doubted_where_they_should_be() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("receipt").unwrap();
    let lookups = GateLookups {
        duplicate_of: None,
        today: date!(2025 - 02 - 15),
        quality_threshold: 0.7,
        einvoice: EinvoiceState::Absent,
        pictures_shown: false,
    };
    let mut wrong = Vec::new();
    for DrawnReceipt { what, page, values, reasons } in RECEIPTS {
        let page = transcript(&[page]);
        let read = extract_by_rules(&page, kind);
        for (field, value) in values().as_object().unwrap() {
            let given = read.data.get(field).unwrap_or(&Value::Null);
            let same = given == value || (given.is_number() && given.as_f64() == value.as_f64());
            if !same {
                wrong.push(format!("{what}: {field} is {given}, not {value}"));
            }
        }
        let found = judge_extraction(&read, &page, kind, &lookups).review_reasons();
        for (reason, doubtful) in *reasons {
            if found.iter().any(|one| one == reason) != *doubtful {
                wrong.push(format!("{what}: {reason} in {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
