//! Receipts as tills print them, drawn anew with shops of our own: each was misread, or read right and
//! doubted, before the rule that reads it. Beside what is plain now stands what has to stay in doubt.

use serde_json::{Value, json};
use time::macros::date;

use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;
use docmill_gate::{EinvoiceState, GateLookups, judge_extraction};

/// A receipt, what has to be read from it, and which reasons may not or have to be there.
struct DrawnReceipt {
    what: &'static str,
    page: &'static str,
    values: fn() -> Value,
    reasons: &'static [(&'static str, bool)],
}

const RECEIPTS: &[DrawnReceipt] = &[
    DrawnReceipt {
        what: "a word and a number beside the day, which no label names",
        page: "\
ALDER MATBOD AB
Storgatan 17
702 11 Norrstad
2025-03-08 16:12     Lapp 11744
Kassa 1              Bord 0012
Mjölk                  189,80
Totalt SEK             189,80",
        values: || json!({ "invoice_number": "11744", "total": 189.8 }),
        reasons: &[],
    },
    DrawnReceipt {
        what: "taxes by rate make the total before it was rounded",
        page: "\
Potraviny Alder s.r.o.
Náměstí 4, 586 01 Severov
Účtenka č. 41188
30.12.2024 16:42   Pokladna 1
Chléb konzumní       109,80 B
Pivo světlé          126,50 A
Celkem               236,30
Zaokrouhlení          -0,30
K úhradě CZK         236,00
Hotovost             500,00
Vráceno              264,00
DPH A 21% 104,55 21,95
DPH B 12%   98,04 11,76",
        values: || json!({ "total": 236.0, "vat_amount": 33.71 }),
        reasons: &[],
    },
    DrawnReceipt {
        what: "the total of the table of taxes is none: what its rows make is",
        page: "\
SUPERMERCADOS ALISO, S.L.
Av. del Puerto 47
18690 Almuñécar
FACTURA SIMPLIFICADA: 2207-014
22/07/2025 20:05     OP: 118
Pan                            3,12
Yogur                          3,80
Queso                         11,05
           TOTAL (€)          17,97
     TARJETA BANCARIA         17,97
IVA     BASE IMP. (€)     CUOTA (€)
4%               3,00          0,12
10%              8,00          0,80
21%              5,00          1,05
TOTAL           16,00          1,97",
        values: || json!({ "total": 17.97, "vat_amount": 1.97, "subtotal": 16 }),
        reasons: &[("uncertain:total", false)],
    },
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
MOORHEN ALDER SDN BHD
37 MILL LANE 6
82216 NORTHTOWN
SMOKED TOFU             RM 9.90
RM CASH                RM 10.00
TOTAL                   RM 9.90
CHANGE                  RM 0.10
INC 6% GST                 0.56
07/03/2019 12:15",
        values: || json!({ "invoice_date": "2019-03-07", "total": 9.9, "vat_amount": 0.56 }),
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
Order #208          17-May-2016 1:46 PM
Bulb                 $34.00
SUB-TOTAL            $34.00
GST(5%):              $1.70
TOTAL DUE:           $35.70
CASH:                $40.00
CHANGE:               $4.30",
        values: || json!({ "currency": null, "total": 35.7, "invoice_number": null }),
        reasons: &[("uncertain:currency", false), ("doubtful_reading", false)],
    },
    DrawnReceipt {
        what: "the number of a house is none of the receipt",
        page: "\
ALDER ENTERPRISE
NO 216.218. MILL ROAD 7
84600 NORTHTOWN
Doc No   KR00052714   Date   16/10/2019
Bag                     64.30
Total                RM 64.30",
        values: || json!({ "invoice_number": "KR00052714" }),
        reasons: &[("uncertain:invoice_number", false)],
    },
    DrawnReceipt {
        what: "the number of a shop is none of the receipt",
        page: "\
Alder Resources Sdn Bhd
23C, Mill Lane
43780 Northtown
#0034 Southport Hall
11/06/2019 17:40   #2000000418
Water                    4.60
TOTAL                 RM 4.60",
        values: || json!({ "invoice_number": "2000000418" }),
        reasons: &[("uncertain:invoice_number", false)],
    },
    DrawnReceipt {
        what: "a name comes back with the branch in the next line",
        page: "\
SEVEN KETTLES
SEVEN KETTLES CO. NORTHTOWN MALL
12 Mill Road
82216 Northtown
Date: 13-07-2019 3:52 PM
Tea                     46.40
Total                RM 46.40",
        values: || json!({}),
        reasons: &[("uncertain:supplier_name", false)],
    },
    DrawnReceipt {
        what: "two lines over the address may each be the name",
        page: "\
SEVEN KETTLES
NORTH TERRACE
12 Mill Road
82216 Northtown
Date: 13-07-2019 3:52 PM
Tea                     46.40
Total                RM 46.40",
        values: || json!({}),
        reasons: &[("uncertain:supplier_name", true)],
    },
    DrawnReceipt {
        what: "a street that ends in a word for streets is no label of one",
        page: "\
TAXI ALDER
Igel-Mill-Straße 40
82216 Nordstadt
UID ATU58771204
QUITTUNG Nr. 0417
06.12.2024 22:48
SUMME              EUR 24,20",
        values: || json!({ "supplier_address": "Igel-Mill-Straße 40, 82216 Nordstadt" }),
        reasons: &[],
    },
    DrawnReceipt {
        what: "between the printed sum of the lines and the total stand service, tax and a rounding",
        page: "\
ALDER RAMEN SDN BHD
NO. 4-B, MILL ROAD 5,
58200 NORTHTOWN
Date: 17-08-2019 20:31:48

Description    Qty   U.price     Total
Udon             1     14.50     14.50
Soup             1     12.40     12.40

Total (Excluding GST):           26.90
Serv. Charge (10%):               2.69
GST Payable:                      1.78
Total (Inclusive of GST):        31.37
Rounding Adj:                    -0.02
TOTAL:                        RM 31.35
CASH:                         RM 31.35",
        values: || json!({ "total": 31.35 }),
        reasons: &[("lines_are_not_total:line_items", false)],
    },
    DrawnReceipt {
        what: "a shop over a company whose number in a register stands behind it, an identifier behind `REG #`",
        page: "\
CORAL BAKERY
TELOK FOODS SDN BHD (2231907-H)
NO. 41, JALAN MUTIARA 6,
51200 KUALA LUMPUR.
GST REG #000418190523
Tax Invoice
Invoice #: QR24051708114207
Date : 17-05-2024 08:11:42
Buns                   12.00 SR
Total (Excluding GST): 11.32
GST Payable:            0.68
Total (Inclusive of GST): 12.00
CASH:                  12.00",
        values: || {
            json!({
                "supplier_name": "TELOK FOODS SDN BHD",
                "supplier_vat_id": "000418190523",
                "invoice_number": "QR24051708114207",
                "total": 12.0,
            })
        },
        reasons: &[
            ("uncertain:supplier_name", false),
            ("uncertain:supplier_vat_id", false),
            ("uncertain:invoice_number", false),
        ],
    },
    DrawnReceipt {
        what: "the same, its number alone in the next line",
        page: "\
CORAL BAKERY
TELOK FOODS SDN. BHD.
(2231907-H)
NO. 41, JALAN MUTIARA 6,
51200 KUALA LUMPUR.
GST ID=000418190523
Tax Invoice No: 4408117
Date : 17-05-2024 08:11:42
Buns                   12.00
Total:              RM 12.00
CASH:               RM 12.00",
        values: || json!({ "supplier_name": "TELOK FOODS SDN. BHD.", "supplier_vat_id": "000418190523" }),
        reasons: &[("uncertain:supplier_name", false)],
    },
    DrawnReceipt {
        what: "a part of a town in a line of its own, near the identifier, is no name",
        page: "\
17 CORAL GRILL run by TELOK DINING
41A, JALAN TELOK 6/17,
MUTIARA INDAH,
51200 KUALA LUMPUR.
(GST Reg. No : 000418190523)
Tax Invoice
INV No. 220917
Date : 17-05-2024 08:11:42
Buns                   12.00 SR
Total (Excluding GST): 11.32
GST Payable:            0.68
Total (Inclusive of GST): 12.00
CASH:                  12.00",
        values: || {
            json!({
                "supplier_name": "17 CORAL GRILL run by TELOK DINING",
                "supplier_vat_id": "000418190523",
            })
        },
        reasons: &[],
    },
    DrawnReceipt {
        what: "a branch and a number in a register stand between name and street",
        page: "\
Telok Value Sdn Bhd (2231907-H)
Mutiara-2
GST Reg No 000418190523
Jalan Kenari Batu 3
53300 Setapak
Date : 17-05-2024 08:11:42
Buns                   12.00
Total:              RM 12.00
CASH:               RM 12.00",
        values: || json!({ "supplier_address": "Jalan Kenari Batu 3, 53300 Setapak" }),
        reasons: &[],
    },
    DrawnReceipt {
        what: "who owns the shop and its numbers stand between name and address",
        page: "\
THE CORAL TAP
Owner by Kettle Telok S/B
(2231907-H)
GST No : 000418190523
Mutiara Plaza, Lot C-D-17, Block D
No 3, Jalan Kenari 6/17
53300 Setapak
Date : 17-05-2024 08:11:42
Buns                   12.00
Total:              RM 12.00
CASH:               RM 12.00",
        values: || {
            json!({
                "supplier_name": "THE CORAL TAP",
                "supplier_address":
                    "Mutiara Plaza, Lot C-D-17, Block D, No 3, Jalan Kenari 6/17, 53300 Setapak",
            })
        },
        reasons: &[],
    },
    DrawnReceipt {
        what: "a legal form stands to the left under its name, a code is glued to a part of the town",
        page: "\
          CORAL BOOKSHOPS
    SDN BHD
       GST No: 000418190523
    58-2, JLN KENARI 6, SRI
    SETAPAK.53300 KUALA LUMPUR
Date : 17-05-2024 08:11:42
Book                   12.00
Total:              RM 12.00
CASH:               RM 12.00",
        values: || {
            json!({
                "supplier_name": "CORAL BOOKSHOPS SDN BHD",
                "supplier_address": "58-2, JLN KENARI 6, SRI, SETAPAK.53300 KUALA LUMPUR",
            })
        },
        reasons: &[],
    },
    DrawnReceipt {
        what: "no nought before the cents",
        page: "\
ALDER PHARMACY
1290 MILL AVE
NORTHTOWN, MA 02134
OCTOBER 23, 2023          9:12 AM
1 IBUPROFEN 200MG 200CT        13.99 N
1 SHAMPOO DAILY 12OZ            7.49 T
SUBTOTAL                         21.48
MA 6.25% TAX                       .47
TOTAL                            21.95
CASH                             22.00
CHANGE                             .05",
        values: || json!({ "subtotal": 21.48, "vat_amount": 0.47, "total": 21.95 }),
        reasons: &[("uncertain:vat_amount", false), ("total_unconfirmed:total", false)],
    },
    DrawnReceipt {
        what: "what is taken off the sum is a discount and no tax, and the sum before it no net amount",
        page: "\
CORAL BOOKS SDN BHD
11 & 13, JALAN MUTIARA,
53300 SETAPAK
RECEIPT # 03-00284719
DATE 05/01/2024   TIME 16:08:33
MODUL MATEMATIK        1 x 12.90    12.90
GEL PEN 0.5 BLACK      3 x 2.20      6.60
EXERCISE BOOK          5 x 1.30      6.50
SUBTOTAL                            26.00
MEMBER DISC 10%                     -2.60
TOTAL RM                            23.40
CASH                                25.00
CHANGE                               1.60",
        values: || json!({ "subtotal": null, "vat_amount": null, "total": 23.4 }),
        reasons: &[
            ("net_above_total:total", false),
            ("uncertain:subtotal", false),
            ("uncertain:vat_amount", false),
        ],
    },
    DrawnReceipt {
        what: "a charge for service is no tax: the taxes by rate are within what it is added to",
        page: "\
Alder Inns Ltd
6 Mill Lane, Northtown, H91 X4N2
Bill No: 20417                  Table 12
15/08/2024                         19:52
1  Fish & Chips                    19.50
1  Seafood Chowder                  9.50
2  Pint Stout @6.20                12.40
1  Gls Sauvignon Blanc              8.00
Subtotal                           49.40
Service Charge 10%                  4.94
TOTAL EUR                         €54.34
VAT A 23.0% on 20.40                3.81
VAT B 13.5% on 29.00                3.45
Total VAT included                  7.26",
        values: || json!({ "subtotal": null, "vat_amount": 7.26, "total": 54.34 }),
        reasons: &[("uncertain:vat_amount", false), ("uncertain:total", false)],
    },
    DrawnReceipt {
        what: "litres by the price of one make the total",
        page: "\
CORAL PETROL ENTERPRISE
LOT 3381, JALAN MUTIARA
53300 SETAPAK
INVOICE NUMBER: 102938
18/07/2024 07:32   SHIFT 2
PUMP 06
RON95
24.390 L @ RM 2.050/L         RM 50.00
TOTAL                         RM 50.00",
        values: || json!({ "total": 50 }),
        reasons: &[("total_unconfirmed:total", false)],
    },
    DrawnReceipt {
        what: "between both halves of the tax and the total stands what was rounded",
        page: "\
Coral Veg Restaurant
Shop 4, Mill Path, Northtown 400601
GSTIN: 27AAKFS4821M1ZQ
Date: 31/10/24 21:08   Bill No.: 2918
Item              Qty.   Price    Amount
Masala Dosa          2  140.00    280.00
Paneer Tikka         1  595.00    595.00
   Total Qty: 3     Sub Total     875.00
                  CGST @2.5%       21.88
                  SGST @2.5%       21.88
                   Round off       +0.24
                Grand Total       919.00",
        values: || json!({ "subtotal": 875, "vat_amount": 43.76, "total": 919 }),
        reasons: &[("net_and_vat_are_not_total:total", false)],
    },
    DrawnReceipt {
        what: "a net total behind a rounding is the total",
        page: "\
POLIKLINIK CORAL SDN BHD
17, Jalan Mutiara 4,
47100 Setapak
CASH BILL
No   : CS-20418
Date : 07/11/2018 09:51
CONSULTATION        1   35.00
PARACETAMOL 500MG   2    9.62
COUGH SYRUP 120ML   1   24.00
TOTAL                RM 68.62
ROUNDING ADJ             -0.02
NET TOTAL            RM 68.60
CASH                 RM 70.00
CHANGE               RM  1.40",
        values: || json!({ "subtotal": null, "vat_amount": null, "total": 68.6 }),
        reasons: &[("uncertain:subtotal", false), ("uncertain:total", false)],
    },
    DrawnReceipt {
        what: "a shop over a company without a number in a register stays in doubt",
        page: "\
CORAL BAKERY
TELOK FOODS SDN. BHD.
NO. 41, JALAN MUTIARA 6,
51200 KUALA LUMPUR.
Tax Invoice No: 4408117
Date : 17-05-2024 08:11:42
Buns                   12.00
Total:              RM 12.00
CASH:               RM 12.00",
        values: || json!({ "total": 12.0 }),
        reasons: &[("uncertain:supplier_name", true)],
    },
    DrawnReceipt {
        what: "the only day on a till's paper, with a time, is that of the receipt though it is called that of paying",
        page: "\
MILL STREET MULTI STOREY
Pay Station 02
VAT RECEIPT
Ticket No.:       00471893
Entry:    25/04/2024 09:14
Paid:     25/04/2024 13:02
Tariff up to 4 hours         £7.50
Net                          £6.25
VAT 20%                      £1.25
TOTAL PAID                   £7.50
Kettle Parking Ltd
Unit 4 Mill House, Canal Road
Northtown SY1 2QT
VAT No. GB 123 4567 82",
        values: || json!({ "supplier_name": "Kettle Parking Ltd", "invoice_date": "2024-04-25" }),
        reasons: &[("uncertain:invoice_date", false), ("doubtful_reading", false)],
    },
    DrawnReceipt {
        what: "where cars are left is a place, and no certain name of whose it is",
        page: "\
MILL STREET CAR PARK
NORTHTOWN DE1 1EQ
PAY STATION 02
- RECEIPT -
ENTRY      23/01/25  09:12
PAID       23/01/25  13:40
RECEIPT NO         008812
NET                 £5.33
VAT 20.00%          £1.07
TOTAL               £6.40
CARD     XXXXXXXXXXXX7740
VAT REG NO 123 4567 82
WWW.KETTLEPARK.EXAMPLE",
        values: || json!({ "invoice_date": "2025-01-23", "total": 6.4 }),
        reasons: &[("uncertain:supplier_name", true)],
    },
    DrawnReceipt {
        what: "what a till suggests as a tip was not paid",
        page: "\
Kettle Diner
418 W 47th St
New York, NY 10036
212-555-0139
Check #: 1042                  Dine In
02/18/2024 10:26 AM
2 Coffee                          7.00
1 Pancakes                       34.25
Subtotal                         41.25
Tax 8.875%                        3.66
Total                           $44.91
Balance Due                     $44.91
Suggested gratuity (before tax)
18% = $7.43    Total $52.34
20% = $8.25    Total $53.16
22% = $9.08    Total $53.99
Tip  ____________________
Thank you!",
        values: || json!({ "subtotal": 41.25, "vat_amount": 3.66, "total": 44.91 }),
        reasons: &[("uncertain:total", false)],
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
