//! Pages that print another line, total or way to pay than the data has.

use super::*;
use crate::kinds::RuleCheck;
use rust_decimal::Decimal;

/// The fields that fail this check, of a sound invoice that its page prints otherwise.
fn failing(check: RuleCheck, reader: ExtractionMethod, page: &str) -> Vec<String> {
    let mut kind = KINDS.get("invoice").unwrap().as_ref().clone();
    kind.rules.truncate(1);
    let rule = kind.rules.first_mut().unwrap();
    (rule.readers, rule.check) = (Vec::new(), check);
    let attached = EinvoiceState::Attached { show_more: false };
    let is_exact = reader == ExtractionMethod::Einvoice;
    let einvoice = if is_exact { attached } else { EinvoiceState::Absent };
    let lookups = GateLookups { einvoice, ..lookups() };
    let read = Extraction { reader, ..sound() };
    let findings = judge_extraction(&read, &transcript(page), &kind, &lookups).findings;
    findings.into_iter().filter_map(|it| it.field).collect()
}

#[test]
fn a_row_contradicts_an_einvoice_by_a_cell_of_a_column_that_other_lines_show() {
    let check = || RuleCheck::NotContradicted {
        fields: vec!["total".to_owned()],
        sums: Vec::new(),
        rest_of: Vec::new(),
    };
    #[rustfmt::skip]
    let table = [
        ("Mustard 50",               "Mustard 50",                 ""),
        ("Mustard 50",               "Mustard 60",                 "line_items[1].quantity"),
        // A price for ten, or packs of two.
        ("Mustard 50",               "Mustard 500",                ""),
        ("Mustard 50 4,30",          "Mustard 25 4,30 2",          ""),
        // The price before a discount that the row does not print.
        ("4,30 215,00",              "4,80 215,00",                ""),
        ("4,30 215,00",              "4,30 251,00",                "line_items[1].amount"),
        // With the tax that the row prints.
        ("4,30 215,00",              "4,30 255,85 19%",            ""),
        ("Mustard 50 4,30 215,00\n", "",                           "line_items"),
        ("\nNet",                    "\nSoap 2 5,00 10,00\nNet",   "line_items"),
        ("\nNet",                    "\nSoap 2 5,00 11,00\nNet",   ""),
        // The price before a discount of a row of its own.
        ("4,30 215,00\n",            "5,00 250,00\nless 35,00\n", ""),
        ("\nNet",                    "\nVAT 1 393,00 393,00\nNet", ""),
        ("Mustard 50",               "Gold 50",                    "line_items[1].description"),
    ];
    for (part, other, expected) in table {
        assert!(PAGE.contains(part), "{part}");
        let page = PAGE.replacen(part, other, 1);
        let found = failing(check(), ExtractionMethod::Einvoice, &page);
        assert_eq!(found.join(" "), expected, "{other}");
    }
    let none = PAGE.replace(" 20 ", " ").replace(" 50 ", " ");
    assert!(failing(check(), ExtractionMethod::Einvoice, &none).is_empty(), "no row shows columns");
}

#[test]
fn another_total_that_no_printed_number_explains_is_flagged() {
    let check = || RuleCheck::OneTotal { total: "total".to_owned(), tolerance: Decimal::new(5, 2) };
    for (line, flagged) in [
        ("Total due EUR 9.900,00", true),
        ("Gesamtbetrag 9.900,00", true),
        ("Total 441,87", false),
        ("Amount due 341,87", true),
        ("Total 341,87", false),
        ("Total due 541,87\nOld balance 100,00", false),
        ("Amount due 433,03\n2 % discount", false),
        ("Total due USD 9.900,00", false),
        ("Total 2020 9.900,00", false),
        ("Total weight 9.900,00", false),
        ("Total due 9.900,00 kg", false),
        ("Amount due 393,00", false),
    ] {
        let found = failing(check(), ExtractionMethod::Rules, &format!("{PAGE}\n{line}"));
        assert_eq!(!found.is_empty(), flagged, "{line}");
    }
}

#[test]
fn a_sentence_whose_amounts_make_the_total_states_the_parts_of_a_payment() {
    let check = || RuleCheck::PartsInData {
        list: "instalments".to_owned(),
        total: "total".to_owned(),
        words: vec!["instalments".to_owned()],
        tolerance: Decimal::new(10, 2),
    };
    for (line, flagged) in [
        ("Payable in 3 instalments of EUR 147,29", true),
        ("Payable in instalments of 200,00 and 241,87", true),
        ("Payable in instalments of 200,00", false),
        ("Payable in instalments on request", false),
        ("Three parts of EUR 147,29", false),
        ("Instalments of 441,87", false),
    ] {
        let found = failing(check(), ExtractionMethod::Rules, &format!("{PAGE}\n{line}"));
        assert_eq!(!found.is_empty(), flagged, "{line}");
    }
}
