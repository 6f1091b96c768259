//! Amounts against each other: what makes a total, what makes a tax, what was paid before.

use docmill_core::model::PageNote;
use serde_json::{Value, json};

use super::*;
use crate::kinds::{CashRounding, RoundingMode, RuleCheck};

/// A page of three lines around these totals, read with these amounts.
fn with_totals(printed: &str, data: Value) -> Vec<String> {
    let text = PAGE.replace("Net 393,00 VAT 48,87 Total 441,87 EUR", printed);
    assert_ne!(text, PAGE, "the totals of the page have moved");
    judged(&with(data), &transcript(&text), &lookups()).review_reasons()
}

#[test]
fn what_stands_between_net_with_tax_and_total_has_to_be_named_or_usual() {
    let totals = |total: f64, currency: &str| json!({"subtotal": 393, "vat_amount": 48.87, "total": total, "currency": currency});
    let broken = ["net_and_vat_are_not_total:total"];
    #[rustfmt::skip]
    let table: [(&str, &str, f64, &str, &[&str]); 8] = [
        ("a named rounding", "Net 393,00\nVAT 48,87\nRundung 0,13\nTotal 442,00 EUR", 442.0, "EUR", &[]),
        ("a named deposit", "Net 393,00\nVAT 48,87\nPfand 8,00\nTotal 449,87 EUR", 449.87, "EUR", &[]),
        ("another amount beside the word", "Net 393,00\nVAT 48,87\nPfand 7,00\nTotal 449,87 EUR", 449.87, "EUR", &broken),
        ("whole crowns", "Net 393,00\nVAT 48,87\nTotal 442,00 SEK", 442.0, "SEK", &[]),
        ("more than rounding to whole crowns", "Net 393,00\nVAT 48,87\nTotal 443,00 SEK", 443.0, "SEK", &broken),
        ("a named deposit, and whole crowns", "Net 393,00\nVAT 48,87\nPfand 8,00\nTotal 450,00 SEK", 450.0, "SEK", &[]),
        ("a named deposit, and another rounding", "Net 393,00\nVAT 48,87\nPfand 8,00\nTotal 451,00 SEK", 451.0, "SEK", &broken),
        ("euros are not rounded", "Net 393,00\nVAT 48,87\nTotal 442,00 EUR", 442.0, "EUR", &broken),
    ];
    for (name, printed, total, currency, expected) in table {
        let reasons = with_totals(printed, totals(total, currency));
        let own = reasons.iter().filter(|reason| reason.starts_with("net_and_vat"));
        assert_eq!(own.collect::<Vec<_>>(), expected, "{name}: {reasons:?}");
    }
}

#[test]
fn what_the_buyer_of_an_e_invoice_withholds_or_pays_himself_is_no_part_of_the_amount_due() {
    #[rustfmt::skip]
    let table: [(&str, &str, f64, bool); 6] = [
        ("a tax withheld", "ImportoRitenuta 40.00", 401.87, true),
        ("two taxes withheld", "AliquotaRitenuta 20.00\nImportoRitenuta 40.00\nImportoRitenuta 8.50", 393.37, true),
        ("VAT of two rates that the buyer pays", "Imposta 40.00\nImposta 8.87", 393.0, true),
        ("a Spanish tax withheld", "TotalTaxesWithheld 60.00", 381.87, true),
        ("another amount", "ImportoRitenuta 40.00", 401.0, false),
        ("an amount with another name", "ImportoBollo 40.00", 401.87, false),
    ];
    for (name, printed, due, holds) in table {
        let data =
            json!({"subtotal": 393, "vat_amount": 48.87, "total": 441.87, "amount_due": due});
        let text = PAGE.replace("Net 393,00 VAT 48,87 Total 441,87 EUR", printed);
        for reader in [ExtractionMethod::Einvoice, ExtractionMethod::Rules] {
            let extraction = Extraction { reader, ..with(data.clone()) };
            let found = judged(&extraction, &transcript(&text), &lookups()).review_reasons();
            let is_flagged = found.iter().any(|it| it == "amount_due_is_not_rest:amount_due");
            let expected = !holds || reader == ExtractionMethod::Rules;
            assert_eq!(is_flagged, expected, "{name}, {reader:?}: {found:?}");
        }
    }
}

#[test]
fn a_total_is_rounded_in_the_direction_that_the_rule_names() {
    #[rustfmt::skip]
    let table = [
        // Made of 393.00 and 48.87.
        (RoundingMode::Nearest, 442.0, true), (RoundingMode::Nearest, 441.0, false),
        (RoundingMode::Up, 442.0, true), (RoundingMode::Up, 441.0, false),
        (RoundingMode::Down, 441.0, true), (RoundingMode::Down, 442.0, false),
        (RoundingMode::Down, 440.0, false), (RoundingMode::Up, 441.95, false),
    ];
    for (mode, total, holds) in table {
        let mut kind = KINDS.get("invoice").unwrap().as_ref().clone();
        kind.rules.retain(|rule| rule.name == "net_and_vat_are_not_total");
        for rule in &mut kind.rules {
            if let RuleCheck::Sum { rounding, .. } = &mut rule.check {
                let to = [("EUR".to_owned(), 1.into())].into();
                *rounding = Some(CashRounding { currency: "currency".to_owned(), to, mode });
            }
        }
        let verdict =
            judge_extraction(&with(json!({"total": total})), &transcript(PAGE), &kind, &lookups());
        assert_eq!(verdict.findings.is_empty(), holds, "{mode:?} {total}");
    }
}

#[test]
fn tax_is_what_the_printed_rates_make() {
    let tax = |net: f64, tax: f64| json!({"subtotal": net, "vat_amount": tax, "total": net + tax, "line_items": null});
    #[rustfmt::skip]
    let table = [
        ("the one rate", "Net 400,00\nVAT 19% 76,00\nTotal 476,00 EUR", 400.0, 76.0, true),
        ("less than it makes", "Net 400,00\nVAT 19% 67,00\nTotal 467,00 EUR", 400.0, 67.0, false),
        ("more than it makes", "Net 400,00\nVAT 19% 79,00\nTotal 479,00 EUR", 400.0, 79.0, false),
        ("a part is exempt", "VAT 19% 100,00 19,00\nNet 400,00\nTotal 419,00 EUR", 400.0, 19.0, true),
        ("two rates", "VAT 7% 100,00 7,00\nVAT 19% 300,00 57,00\nTotal 464,00 EUR", 400.0, 64.0, true),
        ("below the lower of two", "VAT 7% VAT 19%\nNet 400,00\nVAT 20,00\nTotal 420,00 EUR", 400.0, 20.0, false),
        ("no rate is printed", "Net 400,00\nVAT 70,00\nTotal 470,00 EUR", 400.0, 70.0, true),
        ("a discount is no rate", "Paper -10% 9,00\nNet 400,00\nVAT 19,00\nTotal 419,00 EUR", 400.0, 19.0, true),
        ("no tax beside discounts", "Discount 10% advance 30%\nNet 400,00\nVAT 0,00\nTotal 400,00 EUR", 400.0, 0.0, true),
        ("no tax", "Net 400,00\nVAT 19% 0,00\nTotal 400,00 EUR", 400.0, 0.0, true),
    ];
    for (name, printed, net, own, holds) in table {
        let reasons = with_totals(printed, tax(net, own));
        let found = reasons.iter().any(|reason| reason == "tax_not_by_rate:vat_amount");
        assert_eq!(!found, holds, "{name}: {reasons:?}");
    }
}

#[test]
fn the_amount_left_to_pay_is_not_the_total() {
    let printed = "Total 441,87 EUR\nAnzahlung vom 01.03.2021 200,00\nZu zahlen 241,87 EUR";
    let total = |total: f64| json!({"subtotal": null, "vat_amount": null, "line_items": null, "total": total});
    let after = "total_after_payment:total".to_owned();
    assert!(with_totals(printed, total(241.87)).contains(&after));
    assert!(!with_totals(printed, total(441.87)).contains(&after));
    let unnamed = printed.replace("Anzahlung", "Kundennummer");
    assert!(!with_totals(&unnamed, total(241.87)).contains(&after));
}

#[test]
fn a_total_of_which_a_part_was_not_read_is_flagged() {
    let read = |data: Value| {
        let extraction = Extraction { reader: ExtractionMethod::Rules, ..with(data) };
        judged(&extraction, &transcript(PAGE), &lookups()).review_reasons()
    };
    for (data, expected) in [
        (json!({"vat_amount": null}), Some("part_of_total_missing:vat_amount")),
        (json!({"subtotal": null}), Some("part_of_total_missing:subtotal")),
        (json!({"subtotal": null, "vat_amount": null}), None),
        (json!({"vat_amount": null, "subtotal": 441.87}), None),
    ] {
        let reasons = read(data);
        let found = reasons.iter().find(|reason| reason.starts_with("part_of_total"));
        assert_eq!(found.map(String::as_str), expected, "{reasons:?}");
    }
}

#[test]
fn a_printed_charge_explains_a_part_that_is_missing_and_a_rest_counts_as_printed() {
    let read = |data: Value, page: &str| {
        let extraction = Extraction { reader: ExtractionMethod::Rules, ..with(data) };
        judged(&extraction, &transcript(page), &lookups()).review_reasons()
    };
    let has = |reasons: &[String], reason: &str| reasons.contains(&reason.to_owned());
    let missing = "part_of_total_missing:vat_amount";
    let charged = format!("{PAGE}\nShipping 48,87");
    let data = || json!({"vat_amount": null});
    assert!(has(&read(data(), PAGE), missing));
    assert!(!has(&read(data(), &charged), missing));
    let page = PAGE.replace("393,00", "");
    assert!(!has(&read(json!({}), &page), "not_on_document:subtotal"));
    assert!(has(&read(json!({"subtotal": 392.5}), &page), "not_on_document:subtotal"));
}

#[test]
fn taxes_by_rate_make_the_tax_and_no_more_than_the_net_amount() {
    let tax =
        |rate: f64, base: f64, amount: f64| json!({"rate": rate, "base": base, "amount": amount});
    #[rustfmt::skip]
    let table: [(&str, Value, &[&str]); 9] = [
        ("none",                     json!(null),                                            &[]),
        ("two that make it",         json!([tax(19.0, 178.0, 33.82), tax(7.0, 215.0, 15.05)]), &[]),
        ("rounded by line",          json!([tax(19.0, 178.0, 33.83), tax(7.0, 215.0, 15.04)]), &[]),
        ("the exempt part left out", json!([tax(19.0, 178.0, 33.82), json!({"rate": 7, "base": null, "amount": 15.05})]), &[]),
        ("another tax at a rate",    json!([tax(19.0, 178.0, 32.82), tax(7.0, 215.0, 16.05)]), &["taxes_are_not_tax:taxes[0]", "taxes_are_not_tax:taxes[1]"]),
        ("as much as is rounded",    json!([tax(19.0, 178.07, 33.82), tax(7.0, 215.0, 15.05)]), &[]),
        ("a cent more",              json!([tax(19.0, 178.08, 33.82), tax(7.0, 215.0, 15.05)]), &["taxes_are_not_tax:taxes"]),
        ("one is missing",           json!([tax(19.0, 178.0, 33.82)]),                        &["taxes_are_not_tax:taxes"]),
        ("more than was sold",       json!([tax(19.0, 178.0, 33.82), tax(7.0, 215.0, 15.05), tax(0.0, 90.0, 0.0)]), &["taxes_are_not_tax:taxes"]),
    ];
    for (name, taxes, expected) in table {
        let extraction =
            Extraction { reader: ExtractionMethod::Einvoice, ..with(json!({"taxes": taxes})) };
        let reasons = judged(&extraction, &transcript(PAGE), &lookups()).review_reasons();
        assert_eq!(reasons, expected, "{name}");
    }
}

#[test]
fn lines_make_the_net_amount_with_the_charges_and_allowances_that_were_read() {
    let data = |charge: f64| {
        json!({"subtotal": 383.0, "vat_amount": 58.87, "charges": [{"amount": charge}],
               "allowances": [{"amount": 20}]})
    };
    // A line that the list lacks: the pages do not explain the difference.
    let page = PAGE.replace("Paper", "Pens 4 2,00 8,00\nPaper");
    let reasons = |charge: f64| {
        let read = Extraction { reader: ExtractionMethod::Einvoice, ..with(data(charge)) };
        judged(&read, &transcript(&page), &lookups()).review_reasons()
    };
    let own =
        |reasons: &[String]| reasons.contains(&"lines_are_not_subtotal:line_items".to_owned());
    assert!(!own(&reasons(10.0)), "{:?}", reasons(10.0));
    assert!(own(&reasons(30.0)), "{:?}", reasons(30.0));
}

#[test]
fn lines_below_the_total_are_explained_by_no_page_that_hides_cells() {
    let short = with(json!({"line_items": [{"description": "Paper", "amount": 178}]}));
    let mut page = transcript(&PAGE.replace("Mustard 50 4,30 215,00", ""));
    let own = "lines_are_not_subtotal:line_items".to_owned();
    assert!(!judged(&short, &page, &lookups()).review_reasons().contains(&own));
    page.pages[0].notes = vec![PageNote::HiddenCells];
    assert!(judged(&short, &page, &lookups()).review_reasons().contains(&own));
}

#[test]
fn an_amount_as_large_as_numbers_come_is_judged_in_a_currency_without_small_coins() {
    for (currency, total) in [("SEK", 7.9e28), ("CHF", -7.9e28), ("SEK", 5e28)] {
        let mut changed = sound();
        changed.data.insert("currency".to_owned(), json!(currency));
        changed.data.insert("total".to_owned(), json!(total));
        let verdict = judged(&changed, &transcript(PAGE), &lookups());
        let found = verdict.findings.iter().any(|it| it.rule == "net_and_vat_are_not_total");
        assert!(found, "{currency} {total}");
    }
}

#[test]
fn how_a_receipt_was_paid_confirms_its_total() {
    let kind = KINDS.get("receipt").unwrap();
    let data = json!({
        "supplier_name": "Korkstein", "invoice_date": "2021-03-05", "currency": "EUR", "total": 8.7,
        "subtotal": null, "vat_amount": null, "line_items": null,
    });
    let extraction = Extraction { data: data.as_object().unwrap().clone(), ..sound() };
    let unconfirmed = "total_unconfirmed:total".to_owned();
    for (printed, confirmed) in [
        ("Summe 8,70\nBar 10,00\nZurück 1,30", true),
        ("Summe 8,70\nBar 10,00\nZurück 1,40", false),
        ("Summe 8,70\nBar 8,70", false),
        ("Summe 8,70\nGirocard 8,70", true),
        ("Summe und Girocard 8,70", false),
        ("Summe 8,70\nGirocard 8,90", false),
        ("Summe 8,70\nBarbara 10,00\nZurück 1,30", false),
    ] {
        let page = transcript(&format!("Korkstein\n05.03.2021\n{printed}"));
        let reasons = judge_extraction(&extraction, &page, kind, &lookups()).review_reasons();
        assert_eq!(!reasons.contains(&unconfirmed), confirmed, "{printed}: {reasons:?}");
    }
}

#[test]
fn a_faint_place_is_no_doubt_where_the_value_stands_again_or_is_confirmed() {
    let kind = KINDS.get("receipt").unwrap();
    let data = json!({
        "supplier_name": "Korkstein", "invoice_date": "2021-03-05", "currency": "EUR", "total": 8.7,
    });
    let extraction = Extraction { data: data.as_object().unwrap().clone(), ..sound() };
    // The loss of score by a faint amount.
    let lost_of = |extraction: &Extraction, printed: &str| {
        let mut page = transcript(&format!("Korkstein\n05.03.2021\n{printed}"));
        let clear = judge_extraction(extraction, &page, kind, &lookups()).score;
        page.pages[0].lines[2].words[1].confidence = 0.3;
        clear - judge_extraction(extraction, &page, kind, &lookups()).score
    };
    let lost = |printed: &str| lost_of(&extraction, printed);
    let mut taxed = extraction.clone();
    taxed
        .data
        .extend([("subtotal".to_owned(), json!(8.13)), ("vat_amount".to_owned(), json!(0.57))]);
    assert!(lost_of(&taxed, "Netto 8,13\nMwSt 0,57\nSumme 8,70").abs() < 1e-6);
    taxed.data.insert("vat_amount".to_owned(), json!(0.75));
    assert!(lost_of(&taxed, "Netto 8,13\nMwSt 0,75\nSumme 8,70").abs() > 1e-6);
    assert!(lost("Summe 8,70\nTee 8,60") > 0.01);
    assert!(lost("Summe 8,70\nGesamt 8,70").abs() < 1e-6);
    assert!(lost("Summe 8,70\nBar 10,00\nZurück 1,30").abs() < 1e-6);
}

#[test]
fn a_value_is_as_sure_as_the_surest_of_its_places_that_two_readers_saw() {
    let kind = KINDS.get("receipt").unwrap();
    let data = json!({
        "supplier_name": "Korkstein", "invoice_date": "2021-03-05", "currency": "EUR", "total": 8.7,
    });
    let extraction = Extraction { data: data.as_object().unwrap().clone(), ..sound() };
    let score = |[first, second]: [f32; 2], unwitnessed: bool| {
        let mut page = transcript("Korkstein\n05.03.2021\nSumme 8,70\nGesamt 8,70");
        page.pages[0].lines[2].words[1].confidence = first;
        page.pages[0].lines[3].words[1].confidence = second;
        page.pages[0].lines[3].words[1].unwitnessed = unwitnessed;
        judge_extraction(&extraction, &page, kind, &lookups()).score
    };
    let clear = score([1.0, 1.0], false);
    assert_eq!((score([0.3, 1.0], false), score([1.0, 0.3], false)), (clear, clear));
    assert!(score([0.3, 1.0], true) < clear, "what one model saw makes nothing surer");
}

#[test]
fn a_tax_lies_between_what_the_rates_make_or_is_made_by_parts_that_are_printed() {
    let parts = "VAT 7% 100,00 7,00\nVAT 7% 200,00 14,00\nVAT 19% 50,00 9,50";
    #[rustfmt::skip]
    let table = [
        // Printed, net, tax, holds. Two lines and two cents may be rounded.
        ("VAT 7%",                          100,   6.96,  true),
        ("VAT 7%",                          100,   6.95,  false),
        ("VAT 7%",                          100,   7.04,  true),
        ("VAT 7%",                          100,   7.05,  false),
        ("VAT 7%",                          100,   0.0,   true),
        ("VAT 7%\nVAT 19%",                 100,   6.96,  true),
        ("VAT 7%\nVAT 19%",                 100,   6.95,  false),
        ("VAT 7%\nVAT 19%",                 100,   13.0,  true),
        ("VAT 7%\nVAT 19%",                 100,   19.04, true),
        ("VAT 7%\nVAT 19%",                 100,   19.05, false),
        (parts,                             1_000, 23.5,  true),
        (parts,                             1_000, 16.5,  true),
        (parts,                             1_000, 20.0,  false),
        ("VAT 19%\nother 7% 100,00 7,00",   100,   7.0,   true),
        ("VAT 19%\nother 7% 100,05 7,00",   100,   7.0,   false),
        // One rate that is not of the tax makes none, though its product is printed.
        ("VAT 19%\nother 7% 14,00",         200,   14.0,  false),
    ];
    for (printed, net, tax, holds) in table {
        let mut kind = KINDS.get("invoice").unwrap().as_ref().clone();
        kind.rules.truncate(1);
        kind.rules[0].readers = Vec::new();
        kind.rules[0].check = RuleCheck::TaxByRate {
            net: "subtotal".to_owned(),
            tax: "vat_amount".to_owned(),
            words: vec!["vat".to_owned()],
            most: 27.into(),
            tolerance: rust_decimal::Decimal::new(2, 2),
            list: Some("line_items".to_owned()),
            per_item: rust_decimal::Decimal::new(1, 2),
        };
        let read = with(json!({"subtotal": net, "vat_amount": tax}));
        let verdict = judge_extraction(&read, &transcript(printed), &kind, &lookups());
        assert_eq!(verdict.findings.is_empty(), holds, "{printed}: {tax} of {net}");
    }
}
