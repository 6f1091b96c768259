//! Sums, taxes and lines that were misread, or read right and doubted, drawn anew with issuers of our own: two taxes on
//! one amount, taxes within a total that prints no net amount, tables of taxes and weights that looked like totals.

use serde_json::json;

use super::doubts::DrawnDoubt;
use super::extract_by_rules;
use super::layout::tests::transcript;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

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
    DrawnDoubt {
        what: "a line that begins with a word for the tax has as many columns as the line above it",
        kind: "invoice",
        page: "\
Kanzlei Erlenhof                                     Rechnung        24-02217
Mühlweg 20                                           Datum           04.11.2023
82216 Nordstadt

Leistung                              §      Gegenstandswert     Zehntel        Betrag
Buchführung Oktober 2023             33         210.000,00        6/10         412,20
Umsatzsteuer-Voranmeldung            24          18.400,00        3/10         307,00
Auslagenpauschale                    16                                         20,00
                                                            Summe netto        739,20
                                                            19 % USt           140,45
                                                            Rechnungsbetrag    879,65 EUR",
        values: || json!({ "total": 879.65 }),
        reason: "lines_are_not_subtotal:line_items",
        doubtful: false,
    },
    DrawnDoubt {
        what: "ten times the tax at 10 % is what is taxed, and no line",
        kind: "invoice",
        page: "\
Farmaci Ontano Srl                                   FATTURA
Via Mulino 14 - 06065 Nordville (PG)                 Numero  1187/A
P. IVA 70534560548                                   Data    31/10/2023
Codice      Descrizione                                UM      Q.tà      Prezzo       Importo      IVA
PX-447      Integratore magnesio 30 bst                PZ       160        7,00      1.120,00      10

Aliquota    Imponibile     Imposta       Totale imponibile    Totale IVA    Totale documento
10          1.120,00       112,00        1.120,00             112,00        € 1.232,00",
        values: || json!({ "total": 1232 }),
        reason: "lines_incomplete:line_items",
        doubtful: false,
    },
];

#[test]
fn lines_are_read_under_nett_prices_and_with_a_letter_for_what_is_taxed() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let pages = [
        (
            "\
Code        Description             Quantity      Unit  Unit Price  Disc %     Tax     Nett Price
BLT0812Z    Bolt hex M8x12             20.00      EACH       64.20  10.00    15.00       1,155.60
HNG100BR    Hinge butt brass pair      48.00      EACH       36.75           15.00       1,764.00

                                              Amount Excl Tax             2,919.60",
            [1155.6, 1764.0],
        ),
        (
            "\
DESCRIPTION                                QTY         RATE        AMOUNT
Variable pump                                1       780.00       780.00T
Remove and install                           4        95.00        380.00

                                                  SUBTOTAL       1,160.00",
            [780.0, 380.0],
        ),
    ];
    for (page, expected) in pages {
        let read = extract_by_rules(&transcript(&[page]), kinds.get("invoice").unwrap());
        let lines = read.data["line_items"].as_array().cloned().unwrap_or_default();
        let amounts: Vec<Option<f64>> = lines.iter().map(|line| line["amount"].as_f64()).collect();
        assert_eq!(amounts, expected.map(Some), "{page}");
    }
}
