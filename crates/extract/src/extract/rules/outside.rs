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
];

pub(super) const DOUBTS: &[DrawnDoubt] = &[DrawnDoubt {
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
}];
