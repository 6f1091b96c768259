//! Heads and feet of papers on which parties were mixed up or missed, drawn anew with issuers of our own: rows that
//! gaps part, companies that the foot names, brands over companies, identifiers in the customer's row.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::strangers::DrawnLayout;

pub(super) const LAYOUTS: &[DrawnLayout] = &[
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

pub(super) const DOUBTS: &[DrawnDoubt] = &[];
