//! One table: a sound invoice, one thing changed, and the findings that must follow.

use serde_json::{Value, json};

use super::*;
use crate::config::KindsConfig;
use crate::kinds::Kinds;
use crate::model::{BoundingBox, Confidence, Line, PageText, Reader, Source, Usage, Word};

const PAGE: &str = "Lieferant GmbH VAT DE123456789\nInvoice RE-17 of 05.03.2018 due 04.04.2018\n\
                    Paper 20 9,90 198,00\nYoghurt 50 5,50 275,00\nNet 473,00 VAT 56,87 Total 529,87 EUR";

fn transcript(text: &str) -> Transcript {
    let lines = text.lines().zip(0_u8..).map(|(text, row)| Line {
        words: text
            .split(' ')
            .map(|word| Word {
                text: word.to_owned(),
                bounding_box: BoundingBox { y: f32::from(row) * 12.0, w: 10.0, h: 10.0, x: 0.0 },
                confidence: 1.0,
            })
            .collect(),
    });
    let page = PageText {
        number: 1,
        source: Source::Native,
        width: 600.0,
        height: 800.0,
        quality: 1.0,
        defects: Vec::new(),
        languages: Vec::new(),
        repaired: false,
        lines: lines.collect(),
    };
    Transcript {
        format: Transcript::FORMAT,
        sha256: String::new(),
        provider: String::new(),
        pages: vec![page],
        quality: 1.0,
    }
}

fn sound() -> Extraction {
    let data = json!({
        "supplier_name": "Lieferant GmbH", "supplier_address": null,
        "supplier_vat_id": "DE123456789", "invoice_number": "RE-17",
        "invoice_date": "2018-03-05", "due_date": "2018-04-04", "currency": "EUR",
        "line_items": [
            {"description": "Paper", "quantity": 20, "unit_price": 9.9, "amount": 198},
            {"description": "Yoghurt", "quantity": 50, "unit_price": 5.5, "amount": 275},
        ],
        "subtotal": 473, "vat_amount": 56.87, "total": 529.87,
    });
    Extraction {
        reader: Reader::Llm,
        model: None,
        kind: "invoice".to_owned(),
        data: data.as_object().unwrap().clone(),
        successful: true,
        confidence: Confidence::High,
        missing_fields: Vec::new(),
        evidence: Vec::new(),
        usage: Usage::default(),
    }
}

fn lookups() -> Lookups {
    let today = time::macros::date!(2018 - 03 - 20);
    Lookups { duplicate_of: None, today, quality_threshold: 0.7, einvoice: Einvoice::Absent }
}

fn judged(extraction: &Extraction, transcript: &Transcript, lookups: &Lookups) -> Verdict {
    let kinds = Kinds::load(&KindsConfig::default()).unwrap();
    judge(extraction, transcript, kinds.get("invoice").unwrap(), lookups)
}

#[test]
fn a_sound_invoice_passes_without_a_word() {
    for reader in [Reader::Llm, Reader::Rules, Reader::Einvoice] {
        let extraction = Extraction { reader, ..sound() };
        let verdict = judged(&extraction, &transcript(PAGE), &lookups());
        assert_eq!(verdict, Verdict::default(), "{reader:?}");
        assert!(!verdict.refused() && !verdict.needs_review());
    }
}

#[test]
fn each_fault_is_named_and_has_its_consequence() {
    #[rustfmt::skip]
    let table: [(&str, &str, Value, bool, &[&str]); 22] = [
        ("a missing total is refused", "total", json!(null), true, &["required:total"]),
        ("a blank name is missing", "supplier_name", json!("  "), true,
            &["required:supplier_name", "not_a_text:supplier_name", "not_on_document:supplier_name"]),
        ("a changed digit breaks the sum", "total", json!(529.88 + 10.0), true,
            &["net_and_vat_are_not_total:total", "not_on_document:total", "total_unconfirmed:total"]),
        ("a cent of rounding does not", "vat_amount", json!(56.88), false, &["not_on_document:vat_amount"]),
        ("an invented number is refused", "invoice_number", json!("RE-18"), true, &["not_on_document:invoice_number"]),
        ("an invented date is refused", "invoice_date", json!("2018-03-06"), true, &["not_on_document:invoice_date"]),
        ("an invented supplier is refused", "supplier_name", json!("Fremde AG"), true, &["not_on_document:supplier_name"]),
        ("no day of the calendar", "invoice_date", json!("2018-02-30"), true,
            &["not_a_date:invoice_date", "not_on_document:invoice_date"]),
        ("a number as text", "total", json!("529.87"), true, &["not_a_number:total"]),
        ("thirty digits", "total", json!(1e30), true,
            &["insane_amount:total", "not_on_document:total"]),
        ("no currency of this world", "currency", json!("XYZ"), true, &["unknown_currency:currency"]),
        ("no currency at all", "currency", json!(null), false, &["currency_missing:currency"]),
        ("a malformed VAT id", "supplier_vat_id", json!("DE12345678"), false,
            &["vat_id_form:supplier_vat_id"]),
        ("due before the invoice", "due_date", json!("2018-03-04"), false,
            &["due_before_invoice:due_date", "not_on_document:due_date"]),
        ("due in a hundred years", "due_date", json!("2118-03-04"), false,
            &["due_date_out_of_range:due_date", "not_on_document:due_date"]),
        ("a due date may be unknown", "due_date", json!(null), false, &[]),
        ("without net and tax the lines speak", "subtotal", json!(null), false, &[]),
        ("lines that do not add up only flag", "line_items",
            json!([{"description": "Paper", "quantity": 20, "unit_price": 9.9, "amount": 198}]), false,
            &["lines_are_not_subtotal:line_items"]),
        ("a line whose product is wrong", "line_items",
            json!([{"quantity": 20, "unit_price": 9.9, "amount": 198},
                   {"quantity": 5, "unit_price": 5.5, "amount": 275}]), false,
            &["line_product:line_items[1]"]),
        ("an invented line", "line_items",
            json!([{"quantity": null, "unit_price": null, "amount": 473.5},
                   {"quantity": null, "unit_price": null, "amount": -0.5}]), false,
            &["not_on_document:line_items[0].amount", "not_on_document:line_items[1].amount"]),
        ("an empty list is no fault of a short page", "line_items", json!([]), false, &[]),
        ("an object where a value belongs", "invoice_number", json!({"a": 1}), true,
            &["not_a_text:invoice_number", "not_on_document:invoice_number"]),
    ];
    for (name, field, value, refused, reasons) in table {
        let mut extraction = sound();
        extraction.data.insert(field.to_owned(), value);
        let verdict = judged(&extraction, &transcript(PAGE), &lookups());
        assert_eq!(verdict.refused(), refused, "{name}: {:?}", verdict.review_reasons());
        let mut seen = verdict.review_reasons();
        let mut expected: Vec<String> = reasons.iter().map(|r| (*r).to_owned()).collect();
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "{name}");
    }
}

#[test]
fn signals_from_outside_the_data_count() {
    let page = transcript(PAGE);
    let duplicate = Lookups { duplicate_of: Some(IngestionId::random()), ..lookups() };
    assert_eq!(judged(&sound(), &page, &duplicate).review_reasons(), ["duplicate"]);
    let poor = Transcript { quality: 0.69, ..page.clone() };
    let verdict = judged(&sound(), &poor, &lookups());
    assert_eq!(
        (verdict.refused(), verdict.review_reasons()),
        (false, vec!["poor_transcription".to_owned()])
    );
    let failed = Extraction { successful: false, ..sound() };
    assert!(judged(&failed, &page, &lookups()).refused());
    let low = Extraction { confidence: Confidence::Low, ..sound() };
    assert!(judged(&low, &page, &lookups()).refused());
    let medium = Extraction { confidence: Confidence::Medium, ..sound() };
    assert_eq!(judged(&medium, &page, &lookups()), Verdict::default());
    let doubtful = Extraction { reader: Reader::Rules, ..medium };
    assert_eq!(judged(&doubtful, &page, &lookups()).review_reasons(), ["doubtful_reading"]);
}

#[test]
fn a_total_that_nothing_confirms_is_flagged() {
    let mut extraction = sound();
    for field in ["subtotal", "vat_amount", "line_items"] {
        extraction.data.insert(field.to_owned(), Value::Null);
    }
    let verdict = judged(&extraction, &transcript(PAGE), &lookups());
    assert_eq!(verdict.review_reasons(), ["total_unconfirmed:total"]);
    assert!(!verdict.refused());
}

#[test]
fn a_list_that_was_cut_short_is_flagged() {
    let rows: Vec<String> = (1..=40).map(|row| format!("Thing {row} {row},00 {row},00")).collect();
    let text = format!("{PAGE}\n{}", rows.join("\n"));
    let reasons = judged(&sound(), &transcript(&text), &lookups()).review_reasons();
    assert_eq!(reasons, ["lines_incomplete:line_items"]);
}

#[test]
fn a_rule_that_demands_a_person_is_not_tried_again() {
    let mut extraction = sound();
    extraction.data.insert("total".to_owned(), Value::Null);
    assert!(judged(&extraction, &transcript(PAGE), &lookups()).again());
    extraction.data.insert("currency".to_owned(), json!("XYZ"));
    let verdict = judged(&extraction, &transcript(PAGE), &lookups());
    assert!(verdict.refused() && !verdict.again());
}

#[test]
fn reasons_never_hold_values() {
    let mut extraction = sound();
    extraction.data.insert("invoice_number".to_owned(), json!("SECRET-99"));
    extraction.data.insert("total".to_owned(), json!(987.65));
    let verdict = judged(&extraction, &transcript(PAGE), &lookups());
    let all = format!("{verdict:?}");
    assert!(!all.contains("SECRET") && !all.contains("987"), "{all}");
}
