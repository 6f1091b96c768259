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
        what: "a country's tax and its province's are printed one by one, and again in a table: both are the tax",
        kind: "invoice",
        page: "\
Alder Heating Ltd.                                                     INVOICE   10482
118 Spruce Avenue                                                         DATE   01/19/2026
Northtown BC V2C 4T6

ACTIVITY       DESCRIPTION                          TAX       QTY       RATE        AMOUNT
Labour         Replace inducer motor                GST/PST     5     118.00        590.00
Parts          Flue gasket kit                      GST/PST     2      22.40         44.80

                                                   SUBTOTAL                         634.80
                                                   GST @ 5%                          31.74
                                                   PST (BC) @ 7%                     44.44
                                                   TOTAL                            710.98
                                                   BALANCE DUE                     $710.98

TAX SUMMARY
                              RATE                      TAX                            NET
                              GST @ 5%                31.74                         634.80
                              PST (BC) @ 7%           44.44                         634.80",
        values: || json!({ "subtotal": 634.8, "vat_amount": 76.18, "total": 710.98 }),
        reason: "not_on_document:vat_amount",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a federal and a provincial tax in French, without a table",
        kind: "invoice",
        page: "\
Chauffage Tilleul inc.                                            FACTURE N° 2217
12 rue du Moulin                                                  Date : 2024-01-08
Nordville (Québec) G1R 2B5

Sous-total                                                          200,00 $
TPS 5 %                                                              10,00 $
TVQ 9,975 %                                                          19,95 $
Total                                                               229,95 $",
        values: || json!({ "vat_amount": 29.95, "total": 229.95 }),
        reason: "not_on_document:vat_amount",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the halves of a tax are printed, and never their sum",
        kind: "invoice",
        page: "\
Alder Cooling Private Limited                                         TAX INVOICE
GSTIN 29AAJCM9944Q1Z3
#                    : ACS/24-25/0187
Invoice Date         : 05/09/2023

#     Item & Description             Qty         Rate        Amount
1     Split AC service, annual     12.00     3,500.00     42,000.00

                                               Sub Total     42,000.00
                                               CGST9 (9%)     3,780.00
                                               SGST9 (9%)     3,780.00
                                               Total        ₹49,560.00",
        values: || json!({ "vat_amount": 7560, "total": 49560 }),
        reason: "not_on_document:vat_amount",
        doubtful: false,
    },
    DrawnDoubt {
        what: "one tax alone that some countries pair stays the tax",
        kind: "invoice",
        page: "\
Alder Boats Pty Ltd                                                   TAX INVOICE
ABN 11 380 647 629                                                    Invoice No 5582
                                                                      27 Mar 2023
Subtotal                      200.00
GST 10%                        20.00
Total                         220.00",
        values: || json!({ "subtotal": 200, "vat_amount": 20, "total": 220 }),
        reason: "not_on_document:vat_amount",
        doubtful: false,
    },
    DrawnDoubt {
        what: "the page says that the tax is within the total, and prints no net amount",
        kind: "invoice",
        page: "\
                         Alder Vets Ltd
           203 Domain Road, Northtown 7672     Ph 03 555 0140
               GST No. 104-906-028
  TAX INVOICE                                     Invoice         90412
                                                  Date            26 Mar 2023
  Consultation                                     1              78.00
  Vaccination annual                               1              82.00

              Total this invoice (incl. GST)                   $ 160.00
              GST content                                       $ 20.87",
        values: || json!({ "vat_amount": 20.87, "total": 160 }),
        reason: "part_of_total_missing:subtotal",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a tax within the total that no usual rate makes may be one of several",
        kind: "invoice",
        page: "\
                         Alder Vets Ltd
           203 Domain Road, Northtown 7672     Ph 03 555 0140
               GST No. 104-906-028
  TAX INVOICE                                     Invoice         90412
                                                  Date            26 Mar 2023
  Consultation                                     1              78.00
  Vaccination annual                               1              92.00

              Total this invoice (incl. GST)                   $ 170.00
              GST content                                       $ 12.17",
        values: || json!({ "vat_amount": 12.17, "total": 170 }),
        reason: "part_of_total_missing:subtotal",
        doubtful: true,
    },
    DrawnDoubt {
        what: "who does not pay the tax names the article of the law, which is no amount",
        kind: "invoice",
        page: "\
Cabinet de Avocat Arin                            FACTURĂ
CIF 45574054                                      Seria CAA nr. 0118
Piața Morii nr. 4, Northtown                      Data: 11 martie 2023

Descriere                                    Cantitate          Valoare (RON)
Onorariu asistență juridică                          1               2.500,00

                                       Total de plată:         2.500,00 RON
Neplătitor de TVA conform art. 310 Cod fiscal.",
        values: || json!({ "vat_amount": null, "total": 2500 }),
        reason: "part_of_total_missing:subtotal",
        doubtful: false,
    },
    DrawnDoubt {
        what: "a table of taxes repeats the total before its rounding",
        kind: "invoice",
        page: "\
Alder Strojírna s.r.o.                                      FAKTURA č. 260100347
Nádražní 155, 592 31 Severov                                Datum vystavení:    21.10.2023
Označení dodávky                Množství       J.cena         Cena  %DPH       DPH   Kč Celkem
Hřídel dle výkresu                 12 ks     1 840,00    22 080,00   21%  4 636,80   26 716,80
Dopravné                               1       290,00       290,00   21%     60,90      350,90
Součet položek                                           22 370,00        4 697,70   27 067,70
Zaokrouhlení                                                                              0,30
CELKEM K ÚHRADĚ                                                                      27 068,00

Rekapitulace DPH v Kč:     Základ v Kč        Sazba      DPH v Kč         Celkem s DPH v Kč
                             22 370,00          21%      4 697,70                 27 067,70",
        values: || json!({ "subtotal": 22370, "vat_amount": 4697.7, "total": 27068 }),
        reason: "uncertain:subtotal",
        doubtful: false,
    },
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
