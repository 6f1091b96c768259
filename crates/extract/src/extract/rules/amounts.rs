//! Sums, taxes and lines that were misread, or read right and doubted, drawn anew with issuers of our own: two taxes on
//! one amount, taxes within a total that prints no net amount, tables of taxes and weights that looked like totals.

use serde_json::json;

use super::doubts::DrawnDoubt;

pub(super) const DOUBTS: &[DrawnDoubt] = &[
    DrawnDoubt {
        what: "a gross weight in KGS is neither a total nor soms",
        kind: "invoice",
        page: "\
Alder Logistics Pte. Ltd.                                   TAX INVOICE
31 Jalan Mill, #05-12, Singapore 619114                     INVOICE NO      : MSI26030418
GST Reg. No. 200755512D                                     DATE            : 23-MAR-2023
B/L NO              : MSSINHPH26031                         GROSS WT / CBM  : 14,220 KGS / 61.400
DESCRIPTION                                 GST       AMOUNT (SGD)
OCEAN FREIGHT                             ZR 0%           1,986.90
HAULAGE                                   SR 9%             310.00
                                          TOTAL BEFORE GST                     2,296.90
                                          GST 9%                                  27.90
                                          TOTAL AMOUNT PAYABLE           SGD 2,324.80",
        values: || json!({ "subtotal": 2296.9, "vat_amount": 27.9, "total": 2324.8 }),
        reason: "uncertain:total",
        doubtful: false,
    },
];
