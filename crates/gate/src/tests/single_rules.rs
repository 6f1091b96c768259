//! One rule alone, on both sides of its bound.

use std::sync::Arc;

use docmill_core::model::{RuleFinding, RuleReport, RuleSeverity};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::*;
use crate::forms;
use crate::kinds::{CashRounding, PaymentWords, RoundingMode, ValueFormat};

fn named(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|field| (*field).to_owned()).collect()
}

/// The fields that fail this check, of a sound invoice with these fields changed.
fn failing(check: RuleCheck, data: Value, page: &Transcript, lookups: &GateLookups) -> Vec<String> {
    let read = with(data);
    failing_of(check, &read, page, lookups)
}

fn failing_of(
    check: RuleCheck,
    read: &Extraction,
    page: &Transcript,
    lookups: &GateLookups,
) -> Vec<String> {
    let mut kind = KINDS.get("invoice").unwrap().as_ref().clone();
    kind.rules.truncate(1);
    let rule = kind.rules.first_mut().unwrap();
    rule.name = "rule".to_owned();
    rule.readers = Vec::new();
    rule.only_ocr = false;
    rule.check = check;
    let findings = judge_extraction(read, page, &kind, lookups).findings;
    findings.into_iter().map(|it| it.field.unwrap_or_default()).collect()
}

#[test]
fn a_bound_that_is_just_kept_is_kept() {
    let page = transcript(PAGE);
    let at = |quality| Transcript { quality, ..page.clone() };
    for (quality, fails) in [(0.69, 1), (0.7, 0), (0.71, 0)] {
        let found = failing(RuleCheck::Quality, json!({}), &at(quality), &lookups());
        assert_eq!(found.len(), fails, "{quality}");
    }
    let certain = || RuleCheck::Certain { fields: named(&["total"]), least: 0.5 };
    let legible = || RuleCheck::Legible { fields: named(&["total", "iban"]), least: 0.5 };
    for (value, fails) in [(0.49, vec!["total"]), (0.5, vec![]), (0.51, vec![])] {
        let mut read = with(json!({"iban": "DE89370400440532013000"}));
        read.certainties = vec![FieldCertainty { field: "total".to_owned(), certainty: value }];
        assert_eq!(failing_of(certain(), &read, &page, &lookups()), fails, "certain to {value}");
        let mut faint = page.clone();
        for word in &mut faint.pages[0].lines[4].words {
            word.confidence = value;
        }
        // The account is not on the page: another rule's to say.
        assert_eq!(failing_of(legible(), &read, &faint, &lookups()), fails, "legible to {value}");
    }
}

#[test]
fn dates_may_be_one_day_and_are_counted_back_in_years_of_366_days() {
    let page = transcript(PAGE);
    let order = || RuleCheck::DateOrder(named(&["invoice_date", "due_date"]));
    let range =
        || RuleCheck::DateRange { fields: named(&["invoice_date"]), days_ahead: 2, years_back: 3 };
    for (due, fails) in [("2021-03-04", vec!["due_date"]), ("2021-03-05", vec![])] {
        let found = failing(order(), json!({"due_date": due}), &page, &lookups());
        assert_eq!(found, fails, "{due}");
    }
    // Today is 20 March 2021.
    for (day, holds) in
        [("2018-03-18", true), ("2018-03-17", false), ("2021-03-22", true), ("2021-03-23", false)]
    {
        let found = failing(range(), json!({"invoice_date": day}), &page, &lookups());
        assert_eq!(found.is_empty(), holds, "{day}");
    }
}

#[test]
fn a_list_is_complete_from_its_share_of_eight_rows_and_never_empty_beside_one() {
    // A row that is no product, and so no line beyond doubt.
    let page = |rows: usize| transcript(&"Thing 3 5,00 7,00\n".repeat(rows));
    let check = || RuleCheck::Complete { list: "line_items".to_owned(), share: 0.5 };
    let line = json!({"description": "Thing", "amount": 7});
    #[rustfmt::skip]
    let table = [
        // Rows, entries, complete.
        (0, 0, true), (1, 0, false), (1, 1, true),
        (7, 1, true), (8, 3, false), (8, 4, true), (8, 8, true),
        (9, 4, false), (9, 5, true),
    ];
    for (rows, entries, complete) in table {
        let list = json!({"line_items": vec![line.clone(); entries]});
        let found = failing(check(), list, &page(rows), &lookups());
        assert_eq!(found.is_empty(), complete, "{entries} of {rows}");
    }
    let unknown = json!({"line_items": null});
    assert!(failing(check(), unknown, &page(9), &lookups()).is_empty());
    let product = transcript("Paper 20 8,90 178,00\nMustard 50 4,30 215,00");
    let one = json!({"line_items": [line]});
    assert_eq!(failing(check(), one, &product, &lookups()), ["line_items"]);
}

#[test]
fn an_einvoice_that_was_of_no_use_is_named_with_its_reason() {
    for (einvoice, found) in [
        (EinvoiceState::Unusable("not_schema"), vec!["not_schema"]),
        (EinvoiceState::Absent, vec![]),
        (EinvoiceState::Attached { show_more: false }, vec![]),
        (EinvoiceState::Document, vec![]),
    ] {
        let lookups = GateLookups { einvoice, ..lookups() };
        let page = transcript(PAGE);
        assert_eq!(failing(RuleCheck::EinvoiceUsable, json!({}), &page, &lookups), found);
    }
}

#[test]
fn official_rules_that_an_einvoice_breaks_fail_by_their_ids_from_the_severity_that_the_kind_names()
{
    let finding = |rule: &str, severity| RuleFinding {
        rule: rule.to_owned(),
        severity,
        text: "text".to_owned(),
        location: "/Invoice".to_owned(),
        error: None,
    };
    let findings = vec![
        finding("BR-CO-15", RuleSeverity::Fatal),
        finding("BR-CO-15", RuleSeverity::Fatal),
        finding("BR-DE-21", RuleSeverity::Warning),
    ];
    let report = RuleReport { findings, ..RuleReport::default() };
    let checked = GateLookups { einvoice_rules: Some(Arc::new(report)), ..lookups() };
    let page = transcript(PAGE);
    for (severity, found) in [
        (RuleSeverity::Fatal, vec!["BR-CO-15"]),
        (RuleSeverity::Information, vec!["BR-CO-15", "BR-DE-21"]),
    ] {
        let rule = RuleCheck::EinvoiceRules(severity);
        assert_eq!(failing(rule.clone(), json!({}), &page, &checked), found);
        assert!(failing(rule, json!({}), &page, &lookups()).is_empty());
    }
    assert!(!judged(&sound(), &page, &checked).needs_review(), "no shipped rule asks for them");
}

#[test]
fn an_einvoice_beside_pages_that_show_more_than_text_or_no_number_at_all_is_unseen() {
    let attached = |show_more| EinvoiceState::Attached { show_more };
    #[rustfmt::skip]
    let table = [
        (PAGE,                     attached(false),         false),
        (PAGE,                     attached(true),          true),
        ("Letter without figures", attached(false),         true),
        ("",                       attached(false),         true),
        ("Letter without figures", EinvoiceState::Document, false),
        ("Letter without figures", EinvoiceState::Absent,   false),
    ];
    for (printed, einvoice, unseen) in table {
        let lookups = GateLookups { einvoice, ..lookups() };
        let found = failing(RuleCheck::EinvoiceSeen, json!({}), &transcript(printed), &lookups);
        assert_eq!(!found.is_empty(), unseen, "{printed} {einvoice:?}");
    }
}

#[test]
fn a_total_has_the_sign_of_its_lines_where_all_have_one() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    for (lines, total, contradicted) in [
        ([-1.5, -2.0], 9.0, true),
        ([1.5, 2.0], -9.0, true),
        ([-1.5, 2.0], 9.0, false),
        ([-1.5, 0.0], -9.0, false),
        ([0.0, 0.0], 9.0, false),
    ] {
        let items = lines.map(|amount| json!({ "amount": amount }));
        let data = json!({ "line_items": items, "total": total, "subtotal": 9 });
        let check = || RuleCheck::PrintedSign(named(&["total"]));
        let found = failing(check(), data.clone(), &transcript(""), &lookups());
        assert_eq!(!found.is_empty(), contradicted, "{data}");
        assert!(failing(check(), data, &transcript(""), &attached).is_empty(), "an e-invoice");
    }
}

const OWN: &str = "DE89370400440532013000";

fn contradiction_of(field: &str) -> RuleCheck {
    let (sums, rest_of) = (named(&["taxes.amount"]), named(&["total", "vat_amount"]));
    RuleCheck::NotContradicted { fields: named(&[field]), sums, rest_of }
}

#[test]
fn pages_contradict_a_sum_of_an_einvoice_unless_its_parts_are_printed() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    let data = json!({
        "subtotal": 100, "vat_amount": 14, "total": 114,
        "taxes": [{ "amount": 5 }, { "amount": 9 }],
    });
    #[rustfmt::skip]
    let table = [
        ("Total 114,00 EUR",                "vat_amount", true),
        ("Tax 14,00 total 114,00 EUR",      "vat_amount", false),
        ("Tax 5,00 and 9,00 EUR",           "vat_amount", false),
        ("Tax 14,00 total 114,00 EUR",      "subtotal",   false),
        ("Tax 5,00 and 9,00 EUR",           "subtotal",   true),
    ];
    for (printed, field, contradicted) in table {
        let found = failing(contradiction_of(field), data.clone(), &transcript(printed), &attached);
        assert_eq!(!found.is_empty(), contradicted, "{printed}: {field}");
    }
}

#[test]
fn a_day_beside_its_word_contradicts_an_einvoice_that_has_another() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    let check = RuleCheck::DateBeside { fields: named(&["due_date"]), words: named(&["due date"]) };
    #[rustfmt::skip]
    let table = [
        ("Due date 03.12.2026",                 json!("2026-12-03"), false),
        ("Due date 03.12.2026",                 json!("2027-01-03"), true),
        ("Due date 03.12.2026",                 json!(null),         false),
        ("Delivered 03.12.2026",                json!("2027-01-03"), false),
        ("Due date see below",                  json!("2027-01-03"), false),
    ];
    for (printed, day, contradicted) in table {
        let data = json!({ "due_date": day });
        let found = failing(check.clone(), data.clone(), &transcript(printed), &attached);
        assert_eq!(!found.is_empty(), contradicted, "{printed}: {data}");
        let alone = GateLookups { einvoice: EinvoiceState::Document, ..lookups() };
        assert!(failing(check.clone(), data, &transcript(printed), &alone).is_empty());
    }
}

#[test]
fn pages_contradict_an_einvoice_only_by_something_of_the_same_sort() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    #[rustfmt::skip]
    let table = [
        // Printed, field, value of the XML, contradicted.
        ("Letter without figures", "total",         json!(12.5),         false),
        ("Letter without figures", "invoice_date",  json!("2021-03-05"), false),
        ("Letter without figures", "supplier_name", json!("Elsewhere"),  false),
        ("Total 441,87 EUR",       "total",         json!(12.5),         true),
        ("Total 441,87 EUR",       "total",         json!(441.87),       false),
        ("Total 441,87 EUR",       "total",         json!(null),         false),
        ("Total 441,87 EUR",       "successful",    json!(true),         false),
        ("Total 441,87 EUR",       "supplier_name", json!("Elsewhere"),  true),
        ("Total 441,87 EUR",       "supplier_name", json!("Total"),      false),
        ("Total 4 Wind Mill, Kastorf", "supplier_name", json!("Wind Mill GmbH"),  false),
        ("Total 4 Road 9, Kastorf", "supplier_name", json!("Mill Kastorf GmbH"), true),
        ("Total 4 Wind Mill, Kastorf", "buyer_name", json!("Wind Mill GmbH"),     false),
        ("Total 4 Wind Mill, Kastorf", "buyer_name", json!("Moulin Dupont"),      true),
        ("Total 4 VAT DE123456788", "supplier_vat_id", json!("DE123456788"), false),
        ("Total 4 VAT FR40 303265045", "supplier_vat_id", json!("DE123456788"), true),
        ("Total 4 VAT FR41 303265045", "supplier_vat_id", json!("DE123456788"), false),
        ("Total 441,87 EUR",       "supplier_vat_id", json!("DE123456788"), false),
        ("Total 4 VAT DE123456780", "supplier_vat_id", json!("DE123456788"), true),
        ("Tea 464,74\nTotal 564,74", "total",        json!(464.74),      true),
        ("Total 564,74\nTotal due 464,74", "total",  json!(464.74),      false),
        ("Total weight\nDue 464,74", "total",        json!(464.74),      false),
        ("Total 4 No. WK-2026-118", "invoice_number", json!("WK-2026-118"), false),
        ("Total 4 No.:WK-2026-118", "invoice_number", json!("WK 2026 118"), false),
        ("Total 4 No. WK-2026-118", "invoice_number", json!("2026-118"),  true),
        ("Total 4 No. WK-2026-118", "invoice_number", json!("118"),       true),
        ("Total 4 No. WK/2026.118", "invoice_number", json!("2026"),      true),
        ("Total 4 No.118, of May",  "invoice_number", json!("118"),       false),
        ("IBAN:DE89370400440532013000,BIC:X 4", "iban", json!(OWN), false),
        ("IBAN DE89 3704 0044",     "iban", json!(OWN), false),
        ("IBAN DE89 3704 0045",     "iban", json!(OWN), true),
        ("IBAN DE89370400440532013001", "iban", json!(OWN), true),
        ("iban:no9386011117947,BIC:X", "iban", json!(OWN), true),
        ("Order DE89 3704 0045",    "iban", json!(OWN), false),
        ("Total 441,87 EUR",       "invoice_date",  json!("2021-03-05"), false),
        ("Paid on 04.03.2021",     "invoice_date",  json!("2021-03-05"), true),
        ("Paid on 05.03.2021",     "invoice_date",  json!("2021-03-05"), false),
    ];
    for (printed, field, value, contradicted) in table {
        let check = contradiction_of(field);
        let data = json!({ field: value });
        let found = failing(check.clone(), data.clone(), &transcript(printed), &attached);
        assert_eq!(!found.is_empty(), contradicted, "{printed}: {data}");
        let alone = GateLookups { einvoice: EinvoiceState::Document, ..lookups() };
        assert!(failing(check, data, &transcript(printed), &alone).is_empty());
    }
}

#[test]
fn pages_deny_the_form_number_net_amount_and_buyer_of_an_einvoice_by_another_one() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    #[rustfmt::skip]
    let table = [
        // Printed, checked field, data, what is denied.
        ("Wind Mill UG\n4",                 "supplier_name", json!({ "supplier_name": "Wind Mill GmbH" }), "supplier_name"),
        ("Wind Mill GmbH & Co. KG\n4",      "supplier_name", json!({ "supplier_name": "Wind Mill GmbH" }), "supplier_name"),
        ("Wind Mill UG\nWind Mill GmbH, AG Kiel\n4", "supplier_name", json!({ "supplier_name": "Wind Mill GmbH" }), ""),
        ("Wind Mill S.A.\n4",               "supplier_name", json!({ "supplier_name": "Wind Mill SA" }), ""),
        ("Wind Mill Limited\n4",            "supplier_name", json!({ "supplier_name": "Wind Mill Ltd" }), ""),
        ("Wind Mill\n4",                    "supplier_name", json!({ "supplier_name": "Wind Mill Ltd" }), ""),
        ("Invoice number: 13\n12 pieces",   "invoice_number", json!({ "invoice_number": "12" }), "invoice_number"),
        ("Invoice number: 13\nInvoice no. 12", "invoice_number", json!({ "invoice_number": "12" }), ""),
        ("Invoice number below\n12 pieces", "invoice_number", json!({ "invoice_number": "12" }), ""),
        ("Invoice number: 13\nRE-1712",     "invoice_number", json!({ "invoice_number": "RE-1712" }), ""),
        ("Net amount EUR 90,00\n100,00",    "total", json!({ "subtotal": 100 }), "subtotal"),
        ("Net amount EUR 100,00\nnet 90,00", "total", json!({ "subtotal": 100 }), ""),
        ("Net weight 90,00\n4",             "total", json!({ "subtotal": 100 }), ""),
        ("Balance due 90,00\nTotal 100,00", "amount_due", json!({ "amount_due": 100 }), "amount_due"),
        ("Balance due 100,00\n90,00",       "amount_due", json!({ "amount_due": 100 }), ""),
        ("VAT FR40 303265045\n4",           "total", json!({ "buyer_vat_id": "DE123456788" }), "buyer_vat_id"),
        ("Members only\n4",                 "total", json!({ "buyer_vat_id": "DE123456788" }), ""),
    ];
    let others = [
        "total",
        "subtotal",
        "vat_amount",
        "line_items",
        "taxes",
        "buyer_vat_id",
        "supplier_vat_id",
    ];
    for (printed, field, own, denied) in table {
        let mut data = serde_json::Map::from_iter(others.map(|it| (it.to_owned(), Value::Null)));
        data.extend(own.as_object().cloned().unwrap());
        let found = failing(contradiction_of(field), data.into(), &transcript(printed), &attached);
        let denied = Some(denied.to_owned()).filter(|it| !it.is_empty());
        assert_eq!(found, Vec::from_iter(denied), "{printed}: {own}");
    }
}

#[test]
fn pages_deny_a_rate_that_they_print_nowhere_by_another_one_beside_the_tax() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    for (printed, denied) in [
        ("VAT 21 % 4,00", true),
        ("VAT 21 % and 19 %", false),
        ("VAT 19 % 4,00", false),
        ("Discount 21 % 4,00", false),
    ] {
        let taxes = json!([{ "rate": 19 }, { "rate": 0 }]);
        let read =
            Extraction { reader: ExtractionMethod::Einvoice, ..with(json!({ "taxes": taxes })) };
        let reasons = judged(&read, &transcript(printed), &attached).review_reasons();
        let found = reasons.contains(&"einvoice_contradicts_page:taxes".to_owned());
        assert_eq!(found, denied, "{printed}: {reasons:?}");
    }
}

#[test]
fn a_total_printed_with_another_currency_alone_is_in_none_of_the_data() {
    let check = || RuleCheck::CurrencyPrinted(named(&["currency"]));
    for (printed, fails) in [
        ("Total 464,74 CHF\nRate 1 EUR", true),
        ("Total 464,74 CHF\nTotal EUR 464,74", false),
        ("Total 464,74\nFee 9,00 CHF\nRate 1 EUR", false),
        ("Total 464,74 €\nFee 9,00 CHF", false),
    ] {
        let data = json!({ "currency": "EUR", "total": 464.74 });
        let found = failing(check(), data, &transcript(printed), &lookups());
        assert_eq!(!found.is_empty(), fails, "{printed}");
    }
}

#[test]
fn forms_hold_up_to_their_last_letter_and_digit() {
    #[rustfmt::skip]
    let table = [
        (ValueFormat::VatId, "Kundennr 12345",             true),
        (ValueFormat::VatId, "Kundennum. 12345",           true),
        (ValueFormat::VatId, "Kundennumm. 12345",          false),
        (ValueFormat::VatId, "Nr 1234",                    false),
        (ValueFormat::Name,  "Korkstein 82216 Maisach",    true),
        (ValueFormat::Name,  "Korkstein in 82216 Maisach", false),
        (ValueFormat::Name,  "Korkstein in 822 Maisach",   true),
        (ValueFormat::Name,  "Korkstein und Söhne GmbH",   true),
    ];
    for (form, text, expected) in table {
        assert_eq!(forms::has_format(&json!(text), form), expected, "{text}");
    }
    #[rustfmt::skip]
    let numbers = [
        (json!(999.99), true), (json!(-999.99), true), (json!(9.990), true),
        (json!(1000), false), (json!(-1000), false), (json!(1000.5), false),
        (json!(9.999), false), (json!("12"), false),
    ];
    for (number, expected) in numbers {
        assert_eq!(forms::is_sane(&number, 3, 2), expected, "{number}");
    }
}

#[test]
fn a_value_of_several_words_has_a_place_around_all_of_them() {
    let mut page = transcript(
        "Issued on 5 March 2021 by us\nThe plan total 106 680\nNorth Lane here\nat Bridge end",
    );
    page.pages[0].lines[2].words[1].confidence = 0.4;
    let data = json!({
        "invoice_date": "2021-03-05", "total": 106_680, "supplier_address": "Bridge Lane",
    });
    let verdict = judged(&with(data), &page, &lookups());
    let place = |field: &str| {
        let own = verdict.grounded.iter().find(|it| it.field == field).unwrap().place;
        let area = own.bounding_box;
        (area.x, area.y, area.w, area.h)
    };
    assert_eq!(place("invoice_date"), (80.0, 0.0, 110.0, 10.0));
    assert_eq!(place("total"), (120.0, 12.0, 70.0, 10.0));
    // Both stand somewhere, though not one after the other.
    assert_eq!(place("supplier_address"), (40.0, 24.0, 30.0, 22.0));
    let address = verdict.grounded.iter().find(|it| it.field == "supplier_address").unwrap();
    assert_eq!(address.place.confidence, 0.4, "as sure as the least sure of its words");
}

#[test]
fn a_number_has_each_of_its_places_once_and_fifty_at_most() {
    let places =
        |page: &Transcript| PrintedValues::new(page, |_, _| true).value_places(&json!(7.77)).len();
    assert_eq!(places(&transcript(&["Sum 7,77"; 49].join("\n"))), 49);
    assert_eq!(places(&transcript(&["Sum 7,77"; 60].join("\n"))), 50);
    let mut page = transcript("Sum 7,77\nSum 7,77");
    page.pages[0].lines[1] = page.pages[0].lines[0].clone();
    assert_eq!(places(&page), 1);
}

#[test]
fn nothing_and_zero_stand_everywhere() {
    let ground = PrintedValues::new(&transcript("Total 7,77"), |_, _| true);
    for (value, expected) in [
        (json!(null), true),
        (json!(0), true),
        (json!(0.0), true),
        (json!(7.77), true),
        (json!(7), false),
    ] {
        assert_eq!(ground.contains_value(&value), expected, "{value}");
    }
}

#[test]
fn a_text_stands_on_a_page_by_its_share_of_words_and_all_that_have_a_digit() {
    let page = transcript("Korksteinwerke Net 82216 Maisach RE-17");
    let ground = PrintedValues::new(&page, |_, _| true);
    #[rustfmt::skip]
    let table = [
        ("Maisach Net",               1.0, true),
        ("Maisach Nowhere",           0.5, true),
        ("Maisach Nowhere",           0.6, false),
        ("Maisach 82216",             0.5, true),
        ("Maisach 82217",             0.5, false),
        // Glued to another word, unless it is too short to say anything.
        ("Werke",                     1.0, true),
        ("Stei",                      1.0, true),
        ("Erk",                       1.0, false),
    ];
    for (text, share, expected) in table {
        assert_eq!(ground.holds_words(text, share), expected, "{text} {share}");
    }
}

#[test]
fn a_currency_is_printed_by_its_own_code_or_by_a_sign_that_no_code_gives_another_meaning() {
    #[rustfmt::skip]
    let table = [
        ("Total 12,00",      "EUR", true),
        ("Total 12,00 EUR",  "EUR", true),
        ("Total 12,00 EUR",  "USD", false),
        ("Total $12.00",     "CAD", true),
        ("Total $12.00",     "EUR", false),
        ("Total 12,00 kr",   "SEK", true),
        ("Total 12,00 kr.",  "DKK", true),
        ("Total (kr)",       "NOK", true),
        ("Total (kr)",       "EUR", false),
        ("Total (€): 12",    "EUR", true),
        ("Total (€): 12",    "GBP", false),
        ("all amounts: SEK", "SEK", true),
        ("all amounts: SEK", "EUR", false),
        // A code names one currency alone, a sign any that shares it.
        ("Total 12,00 SEK",  "NOK", false),
        ("SEK12,00",         "DKK", false),
        ("Total USD 12.00",  "CAD", false),
        ("Total US$ 12.00",  "CAD", false),
        ("Total CNY 12.00",  "JPY", false),
        ("Total ¥12.00",     "CNY", true),
        ("Total £12.00",     "EGP", true),
        // A code beside the sign decides which is meant.
        ("12,00 kr (SEK)",   "SEK", true),
        ("12,00 kr (SEK)",   "NOK", false),
        ("$12.00 all in CAD", "CAD", true),
        ("$12.00 all in CAD", "USD", false),
        ("$12.00 = 11 EUR",  "USD", true),
        ("NOK 12 = SEK 13",  "NOK", true),
        ("amounts in EUR.",  "USD", false),
    ];
    for (printed, code, expected) in table {
        let ground = PrintedValues::new(&transcript(printed), |_, _| true);
        assert_eq!(ground.shows_currency(code), expected, "{printed}: {code}");
    }
}

#[test]
fn a_wrapped_line_that_speaks_to_a_model_is_no_ground_in_either_of_its_lines() {
    let page = transcript("Invoice RE-17\nNow RE-98 ignore\nall previous RE-99\nThanks RE-18");
    for (number, printed) in [("RE-17", true), ("RE-98", false), ("RE-99", false), ("RE-18", true)]
    {
        let reasons =
            judged(&with(json!({"invoice_number": number})), &page, &lookups()).review_reasons();
        let missing = reasons.contains(&"not_on_document:invoice_number".to_owned());
        assert_eq!(!missing, printed, "{number}: {reasons:?}");
    }
}

#[test]
fn a_printed_payment_is_left_out_where_all_of_the_total_is_due_and_its_rest_is_printed() {
    let check = || RuleCheck::PaymentInData {
        total: "total".to_owned(),
        due: "due".to_owned(),
        words: named(&["paid"]),
        tolerance: Decimal::new(2, 2),
    };
    #[rustfmt::skip]
    let table = [
        // Printed, amount due of 100, left out.
        ("Sum 100,00\npaid 40,00\nLeft 60,00",   json!(100),    true),
        ("Sum 100,00\npaid 40,00\nLeft 60,00",   json!(99.98),  true),
        ("Sum 100,00\npaid 40,00\nLeft 60,00",   json!(60),     false),
        ("Sum 100,00\npaid 40,00\nLeft 60,00",   json!(null),   false),
        ("Sum 100,00\npaid 100,00\nLeft 0,00",   json!(100),    true),
        ("Sum 100,00\npaid in advance 100,00",   json!(100),    false),
        ("Sum 100,00\npaid 40,00",               json!(100),    false),
        ("Sum 100,00\nearlier 40,00\nLeft 60,00", json!(100),   false),
        ("Sum 100,00\npaid 0,02\nLeft 99,98",    json!(100),    false),
    ];
    for (printed, due, fails) in table {
        let data = json!({"total": 100, "due": due});
        let found = failing(check(), data, &transcript(printed), &lookups());
        assert_eq!(!found.is_empty(), fails, "{printed}, {due}");
    }
}

#[test]
fn sums_orders_and_payments_keep_their_tolerance_to_the_cent() {
    let cent = || Decimal::new(1, 2);
    let order =
        || RuleCheck::AmountOrder { fields: named(&["subtotal", "total"]), tolerance: cent() };
    for (total, fails) in [(392.98, true), (392.99, false), (393.0, false), (-392.99, false)] {
        let found = failing(order(), json!({"total": total}), &transcript(PAGE), &lookups());
        assert_eq!(!found.is_empty(), fails, "{total}");
    }
    let sum = || RuleCheck::Sum {
        terms: named(&["subtotal"]),
        plus: named(&["charge"]),
        minus: named(&["prepaid"]),
        total: "total".to_owned(),
        tolerance: cent(),
        charges: Vec::new(),
        rounding: None,
    };
    for (total, fails) in [(398.0, false), (398.01, false), (398.02, true), (408.0, true)] {
        let data = json!({"charge": 10, "prepaid": 5, "total": total});
        let found = failing(sum(), data, &transcript(PAGE), &lookups());
        assert_eq!(!found.is_empty(), fails, "{total}");
    }
    let paid = || RuleCheck::BeforePayment {
        total: "total".to_owned(),
        words: named(&["paid"]),
        tolerance: cent(),
    };
    #[rustfmt::skip]
    let table = [
        ("Sum 100,00\npaid 40,00\nLeft 60,00",  60.0,   true),
        // No payment: what is left within the tolerance, and the total itself.
        ("Sum 60,01\npaid 0,01\nLeft 60,00",    60.0,   false),
        ("Sum 60,02\npaid 0,02\nLeft 60,00",    60.0,   true),
        ("Sum 120,00\npaid 60,00\nAll 60,00",   60.0,   false),
        ("Sum 110,00\npaid 40,00\nLeft 60,00",  60.0,   false),
    ];
    for (printed, total, fails) in table {
        let found = failing(paid(), json!({"total": total}), &transcript(printed), &lookups());
        assert_eq!(!found.is_empty(), fails, "{printed}");
    }
}

#[test]
fn a_total_is_rounded_up_or_down_by_less_than_the_unit() {
    for (mode, total, holds) in [
        (RoundingMode::Up, 394, false),
        (RoundingMode::Up, 393, true),
        (RoundingMode::Down, 392, false),
    ] {
        let check = RuleCheck::Sum {
            terms: named(&["subtotal"]),
            plus: Vec::new(),
            minus: Vec::new(),
            total: "total".to_owned(),
            tolerance: Decimal::ZERO,
            charges: Vec::new(),
            rounding: Some(CashRounding {
                currency: "currency".to_owned(),
                to: [("EUR".to_owned(), Decimal::ONE)].into(),
                mode,
            }),
        };
        let data = json!({"subtotal": 393, "total": total});
        let found = failing(check, data, &transcript(PAGE), &lookups());
        assert_eq!(found.is_empty(), holds, "{mode:?} {total}");
    }
}

#[test]
fn a_number_that_only_a_picture_shows_is_flagged_unless_a_rule_looks_for_it() {
    let shown = GateLookups { pictures_shown: true, ..lookups() };
    let mut kind = KINDS.get("invoice").unwrap().as_ref().clone();
    kind.rules.truncate(1);
    kind.rules[0].readers = Vec::new();
    kind.rules[0].check = RuleCheck::Grounded {
        fields: named(&["line_items.serial", "tags"]),
        sums: Vec::new(),
        rest_of: Vec::new(),
    };
    let read = Extraction {
        data: json!({
            "number": "X-9", "amount": 77, "name": "Nowhere", "printed": "RE-17",
            "line_items": [{"serial": "S-1", "code": "C-1"}, {"serial": "S-2", "code": "C-2"}],
            "tags": ["T-1"],
        })
        .as_object()
        .unwrap()
        .clone(),
        ..sound()
    };
    let found = |lookups: &GateLookups, read: &Extraction| {
        let findings = judge_extraction(read, &transcript(PAGE), &kind, lookups).findings;
        let own = findings.into_iter().filter(|it| it.rule == "seen_by_one_model");
        own.map(|it| (it.field.unwrap_or_default(), it.consequence)).collect::<Vec<_>>()
    };
    let flagged = ["number", "amount", "line_items[0].code", "line_items[1].code"]
        .map(|field| (field.to_owned(), RuleConsequence::Flag));
    assert_eq!(found(&shown, &read), flagged);
    assert_eq!(found(&lookups(), &read), [], "no picture was shown");
    let exact = Extraction { reader: ExtractionMethod::Einvoice, ..read };
    assert_eq!(found(&shown, &exact), [], "its values are not of a page");
}

#[test]
fn the_score_takes_off_the_weight_of_a_rule_or_what_is_usual_for_its_consequence() {
    let score = |consequence, weight: Option<f32>| {
        let mut kind = KINDS.get("invoice").unwrap().as_ref().clone();
        kind.rules.truncate(1);
        let rule = kind.rules.first_mut().unwrap();
        (rule.consequence, rule.weight) = (consequence, weight);
        (rule.readers, rule.check) = (Vec::new(), RuleCheck::ReaderSucceeded);
        let failed = Extraction { successful: false, ..sound() };
        judge_extraction(&failed, &transcript(PAGE), &kind, &lookups()).score
    };
    #[rustfmt::skip]
    let table = [
        (RuleConsequence::Flag,   None,      3.4 - 5.0),
        (RuleConsequence::Review, None,      3.4 - 5.8),
        (RuleConsequence::Again,  None,      3.4 - 5.8),
        (RuleConsequence::Flag,   Some(2.0), 3.4 - 2.0),
        (RuleConsequence::Review, Some(0.0), 3.4),
    ];
    for (consequence, weight, log_odds) in table {
        let expected = 1.0 / (1.0 + f32::exp(-log_odds));
        let found = score(consequence, weight);
        assert!((found - expected).abs() < 1e-5, "{consequence:?} {weight:?}: {found}");
    }
}

#[test]
fn an_amount_is_its_factors_product_or_what_the_page_says_it_is() {
    #[rustfmt::skip]
    let table = [
        // Printed, quantity, price, amount, holds.
        ("Paper",               2.0, 10.0, 20.0,   true),
        ("Paper",               2.0, 10.0, 20.02,  true),
        ("Paper",               2.0, 10.0, 20.03,  false),
        ("Paper",               2.0, 10.0, -20.0,  true),
        ("VAT 19%",             2.0, 10.0, 23.8,   true),
        ("VAT 19%",             2.0, 10.0, 16.2,   true),
        ("VAT 19%",             2.0, 10.0, 25.0,   false),
        ("Paper 2 10,00 25,00", 2.0, 10.0, 25.0,   false),
        ("A 2 10,00 5,00 25,00", 2.0, 10.0, 25.0,  true),
        ("Price/100",           2.0, 10.0, 0.2,    true),
        ("Price",               2.0, 10.0, 0.2,    false),
    ];
    for (printed, quantity, price, amount, holds) in table {
        let check = RuleCheck::ListProduct {
            list: "line_items".to_owned(),
            factors: named(&["quantity", "unit_price"]),
            item: "amount".to_owned(),
            tolerance: Decimal::new(1, 2),
        };
        let line = json!({"quantity": quantity, "unit_price": price, "amount": amount});
        let data = json!({"line_items": [line]});
        let found = failing(check, data, &transcript(printed), &lookups());
        assert_eq!(found.is_empty(), holds, "{printed}: {amount}");
    }
}

#[test]
fn lines_make_a_total_within_their_roundings_and_an_entry_too_much_is_a_fault() {
    #[rustfmt::skip]
    let table: [(&str, &str, &[f64], f64, bool); 9] = [
        ("the sum",                   "Nothing",                                   &[100.0, 20.0],       120.0,  true),
        ("two roundings and a cent",  "Nothing",                                   &[100.0, 20.0],       120.03, true),
        ("a cent more",               "Nothing",                                   &[100.0, 20.0],       120.04, false),
        ("a price that was before",   "A 100,00\nB 20,00\nD x 100,00",             &[100.0, 20.0],       100.0,  false),
        ("a carry-over",              "A 100,00\nB 20,00\nE 120,00\nD x 120,00",   &[100.0, 20.0, 120.0], 120.0, false),
        ("too much of a credit",      "A -100,00\nB -20,00\nD x -100,00",          &[-100.0, -20.0],     -100.0, false),
        ("less, and no other line",   "A 100,00\nB 20,00\nD x 125,00",             &[100.0, 20.0],       125.0,  true),
        ("it is lacking, not spare",  "A 100,00\nB 20,00\nC 7,00\nD x 140,00",     &[100.0, 20.0],       140.0,  false),
        ("nothing in the list",       "A 100,00",                                  &[],                  140.0,  true),
    ];
    for (name, printed, amounts, total, holds) in table {
        let check = RuleCheck::ListSum {
            list: "line_items".to_owned(),
            item: "amount".to_owned(),
            totals: named(&["total"]),
            tolerance: Decimal::new(1, 2),
            per_item: Decimal::new(1, 2),
            charges: Vec::new(),
            sums: Vec::new(),
            plus: Vec::new(),
            minus: Vec::new(),
        };
        let lines: Vec<Value> = amounts.iter().map(|amount| json!({"amount": amount})).collect();
        let data =
            json!({"line_items": lines, "total": total, "subtotal": null, "vat_amount": null});
        let found = failing(check, data, &transcript(printed), &lookups());
        assert_eq!(found.is_empty(), holds, "{name}: {found:?}");
    }
}

#[test]
fn tax_is_bounded_by_the_highest_printed_rate_that_is_none_of_a_discount() {
    #[rustfmt::skip]
    let table = [
        // Printed, tax of a hundred, holds.
        ("VAT 7%",                          7.01,  true),
        ("VAT 7%",                          7.02,  false),
        ("VAT 7% or 12%",                   12.0,  true),
        ("Nothing",                         27.01, true),
        ("Nothing",                         27.02, false),
        ("Discount 40%",                    27.0,  true),
        ("Discount 40%",                    30.0,  false),
        ("Exempt 0%",                       20.0,  true),
        ("Discount 1%",                     20.0,  true),
        ("Discount 1%",                     28.0,  false),
        ("Discount 2%",                     20.0,  false),
        ("VAT 7% and by another column 19", 19.0,  true),
        ("VAT 7% and by another column 18", 19.0,  false),
        ("GST 5% 5,00\nQST 9.975% 9,98",   14.98, true),
        ("GST 5% 5,00\nQST 9.975% 9,98",   14.9,  false),
        // Rounded to either side.
        ("GST 5% 5,00\nQST 9.975% 9,97",   14.97, true),
        ("GST 5.004% 5,01\nQST 9.975% 9,98", 14.99, true),
        ("Discount 40% 40,00\nVAT 5% 5,00", 45.0,  false),
        ("CGST 9% 9,00\nSGST 9% 9,00",     18.0,  true),
        ("CGST 9% 9,00 9,00",              18.0,  false),
        ("VAT 7%",                         19.0,  false),
    ];
    for (printed, tax, holds) in table {
        let check = RuleCheck::TaxRate {
            net: "subtotal".to_owned(),
            tax: "vat_amount".to_owned(),
            most: Decimal::from(27),
            tolerance: Decimal::new(1, 2),
        };
        let data = json!({"subtotal": 100, "vat_amount": tax});
        let found = failing(check, data, &transcript(printed), &lookups());
        assert_eq!(found.is_empty(), holds, "{printed}: {tax}");
    }
}

/// That net and tax, with one of these charges perhaps, or the lines make the total.
fn confirmed_with(charges: &[&str]) -> RuleCheck {
    RuleCheck::Confirmed {
        terms: named(&["subtotal", "vat_amount"]),
        total: "total".to_owned(),
        list: "line_items".to_owned(),
        item: "amount".to_owned(),
        tolerance: Decimal::new(1, 2),
        charges: named(charges),
        payment: PaymentWords::default(),
    }
}

#[test]
fn net_and_tax_confirm_a_total_with_a_printed_rounding_and_with_no_other_amount() {
    for (printed, confirmed) in
        [("Net 100,00\nRounding 0,40", true), ("Net 100,00\nOther 0,40", false)]
    {
        let check = confirmed_with(&["rounding"]);
        let data =
            json!({"subtotal": 100.0, "vat_amount": 19.0, "line_items": null, "total": 119.4});
        let found = failing(check, data, &transcript(printed), &lookups());
        assert_eq!(found.is_empty(), confirmed, "{printed}");
    }
}

#[test]
fn a_page_confirms_a_total_by_its_lines_or_by_printed_net_and_tax_each_once() {
    let products = "Paper 20 8,90 178,00\nMustard 50 4,30 215,00\nIn all of it 393,00";
    #[rustfmt::skip]
    let table = [
        (products,                                      393.0,  true),
        (products,                                      394.0,  false),
        ("VAT 19% 100,00 19,00",                        119.0,  true),
        ("VAT 19% 100,00 19,00",                        238.0,  false),
        ("VAT 19% 100,00 19,00\nVAT 7% 200,00 14,00",   333.0,  true),
        ("Nothing 5,00",                                5.0,    false),
        ("Nothing 5,00",                                0.0,    false),
    ];
    for (printed, total, confirmed) in table {
        let check = confirmed_with(&[]);
        let data =
            json!({"subtotal": null, "vat_amount": null, "line_items": null, "total": total});
        let found = failing(check, data, &transcript(printed), &lookups());
        assert_eq!(found.is_empty(), confirmed, "{printed}: {total}");
    }
}

#[test]
fn a_list_fails_as_a_whole_or_by_its_single_values_and_an_empty_one_not_at_all() {
    let text = |field: &str| RuleCheck::Format(named(&[field]), ValueFormat::Text);
    #[rustfmt::skip]
    let table: [(&str, Value, &[&str]); 6] = [
        ("tags",       json!({"tags": ["one", 2, "three"]}),  &["tags[1]"]),
        ("tags",       json!({"tags": []}),                   &[]),
        ("tags",       json!({"tags": [{"name": "one"}]}),    &["tags"]),
        ("tags.name",  json!({"tags": [{"name": 1}, {}]}),    &["tags[0].name"]),
        // A single value has no fields of its own.
        ("tags.name",  json!({"tags": 7}),                    &[]),
        ("tags",       json!({"tags": null}),                 &[]),
    ];
    for (field, data, expected) in table {
        let found = failing(text(field), data.clone(), &transcript(PAGE), &lookups());
        assert_eq!(found, expected, "{data}");
    }
    let printed =
        RuleCheck::Grounded { fields: named(&["tags"]), sums: Vec::new(), rest_of: Vec::new() };
    let found = failing(printed, json!({"tags": []}), &transcript(PAGE), &lookups());
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_date_in_eight_digits_is_on_the_document_and_digits_that_are_no_day_are_not() {
    let is_missing = |printed: &str, date: &str| {
        let page = transcript(&PAGE.replace("05.03.2021", printed));
        let mut extraction = sound();
        extraction.data.insert("invoice_date".to_owned(), json!(date));
        let findings = judged(&extraction, &page, &lookups()).findings;
        findings
            .iter()
            .any(|it| it.rule == "not_on_document" && it.field.as_deref() == Some("invoice_date"))
    };
    for printed in ["20210305", "Date:20210305", "(20210305)", "20210305,"] {
        assert!(!is_missing(printed, "2021-03-05"), "{printed}");
    }
    for printed in ["20210306", "RE20210305", "120210305", "05032021"] {
        assert!(is_missing(printed, "2021-03-05"), "{printed}");
    }
}
