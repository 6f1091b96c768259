//! Totals of small pages, drawn in characters.

use super::super::layout::CellLayout;
use super::super::layout::tests::transcript;
use super::*;
use docmill_core::config::KindsConfig;
use docmill_gate::kinds::KindSet;

/// Net, VAT, gross, and whether the gross amount is certain.
fn read(drawing: &str) -> [String; 4] {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let layout = CellLayout::new(&transcript(&[drawing]));
    let matches = LabelMatches::new(&layout, kinds.get("invoice").unwrap());
    let totals = find_totals(&matches);
    let certain = totals.gross.as_ref().is_some_and(|gross| gross.certain);
    let text = |found: Option<FoundValue<Decimal>>| {
        found.map_or("-".to_owned(), |found| found.value.normalize().to_string())
    };
    [text(totals.net), text(totals.vat), text(totals.gross), certain.to_string()]
}

#[test]
fn totals_are_chosen_by_what_adds_up() {
    #[rustfmt::skip]
    let table = [
        ("Summe netto: 388,00 €\nZuzügl. USt: 61,52 €\nSumme inkl. USt: 449,52 €",
            ["388", "61.52", "449.52", "true"]),
        ("Rechnungssumme Brutto (inkl. USt.)   267,75\nSumme Umsatzsteuer   42,75\n\
          Rechnungssumme Netto (exkl. USt.)   225,00\nBereits bezahlt   50,00\n\
          Offener Betrag   217,75",
            ["225", "42.75", "267.75", "true"]),
        ("Netto   100,00\nzzgl. MwSt 7%   3,50\nzzgl. MwSt 19%   9,50\nGesamtbetrag   113,00",
            ["100", "13", "113", "true"]),
        ("Total HT :   41,15 €\nTVA 20% :   8,23 €\nTotal TTC :   49,38 €",
            ["41.15", "8.23", "49.38", "true"]),
        ("Total HT   TVA      Total TTC\n41,15 €    8,23 €   49,38 €",
            ["41.15", "8.23", "49.38", "true"]),
        ("Total   1   336.20   48.75   384.95\nGrand Total   384.95",
            ["336.2", "48.75", "384.95", "true"]),
        ("Exclusief BTW   € 468,20   Subtotaal   € 566,52\nBTW 21%   € 98,32\n\
          Totaal   € 566,52",
            ["468.2", "98.32", "566.52", "true"]),
        ("Netto   36 430,30\nMoms 25%   9 107,58\nÖresavrundning   0,12\nAtt betala   45 538,00 kr",
            ["36430.3", "9107.58", "45538", "true"]),
        ("Base   100,00\nIVA (10 %)   5,00\nIVA (21 %)   10,50\nTotal factura   115,50 €",
            ["100", "15.5", "115.5", "true"]),
        ("Total EUR   41,28", ["-", "-", "41.28", "true"]),
        ("Total   10.00\nTotal   12.00", ["-", "-", "12", "false"]),
        ("Net total   3,164.25 €\nTaxes   0.00 €\nTotal   3,164.25 €\nResidual   2,214.25 €",
            ["3164.25", "0", "3164.25", "true"]),
        ("Subtotal   92.00\nShipping   4.95\nTax (8%)   7.36\nTotal   104.31 USD",
            ["92", "7.36", "104.31", "true"]),
        ("Base imponible   1.500,00\nIVA 21 %   315,00\nRetención IRPF 15 %   -225,00\n\
          Total a percibir   1.590,00 €",
            ["1500", "315", "1590", "true"]),
        ("Összesen:   380 000   102 600   482 600\nFizetendő:   482 600 Ft",
            ["380000", "102600", "482600", "true"]),
        ("Total EUR Excl. VAT   1,848.00\n0% VAT   0.00\nTotal EUR Incl. VAT   1,848.00",
            ["1848", "0", "1848", "true"]),
        ("Montage   2 900,00   609,00   3 509,00\nBett   26 000,00   5 460,00   31 460,00\n\
          Zusammen   28 900,00   6 069,00   34 969,00\nGesamtbetrag   34 969,00 Kč",
            ["28900", "6069", "34969", "true"]),
        ("Subtotal   70.50\nShipping   4.00\nTotal   74.50 (includes 12.42 VAT)",
            ["62.08", "12.42", "74.5", "true"]),
        ("Montant HT   TVA   Montant TTC\nDistribution   88,40   4,86   93,26\n\
          Collecte   53,78   2,96   56,74\nTotal   142,18   7,82   150,00",
            ["142.18", "7.82", "150", "true"]),
        ("Pan                         3,12\nYogur             1,90        3,80\nQueso                      11,05\n\
          TOTAL (€)                  17,97\nTARJETA                    17,97\n\n\
          IVA    BASE IMP. (€)   CUOTA (€)\n4%              3,00        0,12\n10%             8,00        0,80\n\
          21%             5,00        1,05\nTOTAL          16,00        1,97",
            ["16", "1.97", "17.97", "true"]),
        ("Vergütung netto   994,00\nUmsatzsteuer 19 v.H.   188,86\nGesamtbetrag   1.182,86",
            ["994", "188.86", "1182.86", "true"]),
        // Rows by rate, one without tax, and their sum.
        ("                  Netto      USt     Brutto\nA   10 %          523,64    52,36     576,00\n\
          B   20 %           51,00    10,20      61,20\nC    0 %           15,00     0,00      15,00\n\
          Summe           589,64    62,56     652,20",
            ["589.64", "62.56", "652.2", "true"]),
        ("Nothing here", ["-", "-", "-", "false"]),
    ];
    for (drawing, expected) in table {
        assert_eq!(read(drawing), expected.map(str::to_owned), "{drawing}");
    }
}

#[test]
fn a_sum_that_nothing_names_is_looked_for_among_the_last_amounts_alone_in_their_rows() {
    for (behind, expected) in [(150, "216"), (250, "-")] {
        let table = "Betrag\nKlavier   144,00\nGeige      72,00\n          216,00";
        // Each is left of all above it: none is under a column.
        let others = (0..behind).map(|at| format!("\n{:>1$},00", at + 10, 3));
        let drawing = table.to_owned() + &others.collect::<String>();
        assert_eq!(read(&drawing)[2], expected, "{behind} behind it");
    }
}

#[test]
fn a_total_that_only_its_tax_tells_of_is_looked_for_beside_the_first_taxes() {
    for (before, expected) in [(0, "1772.85"), (30, "1772.85"), (50, "-")] {
        let others = "MWST 8,1 %   7,77\n".repeat(before);
        let table = "Abschluss   1.640,00\nMWST 8,1 %   132,84\n             1.772,85";
        assert_eq!(read(&(others + table))[2], expected, "{before} before it");
    }
}
