//! Fields that a service read by itself, beside the data.

use super::*;
use docmill_core::expense::ExpenseField;
use docmill_core::model::PageRegion;

fn field(name: &str, text: &str, confidence: f32) -> ExpenseField {
    let place = PageRegion {
        page: 1,
        bounding_box: BoundingBox { x: 5.0, y: 6.0, w: 7.0, h: 8.0 },
        confidence,
        unwitnessed: false,
    };
    ExpenseField { name: name.to_owned(), text: text.to_owned(), place }
}

fn lookups_with(fields: &[(&str, &str)], is_independent: bool) -> GateLookups {
    let fields = fields.iter().map(|(name, text)| field(name, text, 0.9)).collect();
    let line = vec![field("PRICE", "178,00", 0.9), field("UNIT_PRICE", "8,90", 0.9)];
    let reading = Arc::new(ExpenseReading { fields, lines: vec![line] });
    let second_reading = Some(SecondReading { reading, is_independent });
    GateLookups { second_reading, ..lookups() }
}

fn reasons(fields: &[(&str, &str)]) -> Vec<String> {
    judged(&sound(), &transcript(PAGE), &lookups_with(fields, true)).review_reasons()
}

#[test]
fn another_amount_day_or_number_is_flagged_and_another_form_of_the_same_is_not() {
    for (fields, expected) in [
        (vec![("TOTAL", "441,87 EUR"), ("SUBTOTAL", "€ 393,00"), ("TAX", "48,87")], vec![]),
        (vec![("INVOICE_RECEIPT_DATE", "5 March 2021"), ("INVOICE_RECEIPT_ID", "RE 17")], vec![]),
        (vec![("VENDOR_VAT_NUMBER", "DE 123 456 789"), ("DUE_DATE", "04.04.2021")], vec![]),
        (vec![("TOTAL", "447,87")], vec!["read_otherwise:total"]),
        (vec![("TOTAL", "-441,87")], vec![]),
        (vec![("INVOICE_RECEIPT_ID", "RE-11")], vec!["read_otherwise:invoice_number"]),
        (vec![("INVOICE_RECEIPT_DATE", "06.03.2021")], vec!["read_otherwise:invoice_date"]),
        // Names have several forms, and a tax of two rates has two values.
        (vec![("VENDOR_NAME", "Papierladen")], vec![]),
        (vec![("TAX", "40,00"), ("TAX", "8,87")], vec![]),
        // A word where an amount belongs contradicts nothing.
        (vec![("TOTAL", "see below"), ("OTHER", "1,00")], vec![]),
    ] {
        assert_eq!(reasons(&fields), expected, "{fields:?}");
    }
}

#[test]
fn what_the_service_is_unsure_of_and_the_data_of_a_file_are_not_contradicted() {
    let reading = ExpenseReading { fields: vec![field("TOTAL", "1,00", 0.5)], lines: Vec::new() };
    let second = SecondReading { reading: Arc::new(reading), is_independent: true };
    let unsure = GateLookups { second_reading: Some(second), ..lookups() };
    assert_eq!(judged(&sound(), &transcript(PAGE), &unsure).findings, []);
    let exact = Extraction { reader: ExtractionMethod::Einvoice, ..sound() };
    let other = lookups_with(&[("TOTAL", "1,00")], true);
    assert_eq!(judged(&exact, &transcript(PAGE), &other).findings, []);
}

#[test]
fn a_value_that_another_reader_saw_alike_has_its_second_source_and_the_services_own_has_not() {
    let page = PAGE.replace("Total 441,87", "Total 44I,B7").replace("Paper 20 8,90 178,00", "");
    assert_eq!(doubts(&page, &lookups()), (true, false));
    let read = [("TOTAL", "441,87")];
    assert_eq!(doubts(&page, &lookups_with(&read, true)), (false, true));
    assert_eq!(doubts(&page, &lookups_with(&read, false)), (true, false), "one reader, twice");
}

/// Whether the total is said not to be printed, and whether an amount of a line has a place.
fn doubts(page: &str, lookups: &GateLookups) -> (bool, bool) {
    let verdict = judged(&sound(), &transcript(page), lookups);
    let reasons = verdict.review_reasons();
    (
        reasons.iter().any(|it| it == "not_on_document:total"),
        verdict.grounded.iter().any(|it| it.field == "line_items[0].amount"),
    )
}

/// The reasons where the rules reader read something else of these fields, each so certain.
fn ruled(changes: &[(&str, Value, f32)], confidence: StatedConfidence) -> Vec<String> {
    let mut rules = Extraction { reader: ExtractionMethod::Rules, confidence, ..sound() };
    let name = ("supplier_name", json!("Korkstein GmbH"), 0.9);
    for (name, value, certainty) in [&name].into_iter().chain(changes) {
        rules.data.insert((*name).to_owned(), value.clone());
        let field = (*name).to_owned();
        rules.certainties.push(FieldCertainty { field, certainty: *certainty });
    }
    let lookups = GateLookups { rules_reading: Some(Arc::new(rules)), ..lookups() };
    judged(&sound(), &transcript(PAGE), &lookups).review_reasons()
}

#[test]
fn what_the_rules_reader_is_certain_of_is_flagged_where_a_model_has_another_value_or_none() {
    let text = |name, value: &str, certainty| (name, json!(value), certainty);
    for (change, flagged) in [
        (("total", json!(393), 0.9), true),
        (("total", json!(393), 0.8), false),
        (("total", json!(-441.87), 0.9), false),
        (text("due_date", "2021-03-05", 0.9), true),
        (text("invoice_number", "WK-RE-17", 0.9), true),
        (text("invoice_number", "RE 17", 0.9), false),
        (text("supplier_vat_id", "DE987654321", 0.9), true),
        (text("supplier_vat_id", "123456789", 0.9), false),
        (text("supplier_name", "Papierladen GmbH", 0.9), true),
        (text("supplier_name", "Korkstein", 0.9), false),
        // The model has no address at all.
        (text("supplier_address", "Kai 4, 20457 Hamburg", 0.9), true),
        // No value is no contradiction.
        (("due_date", Value::Null, 0.9), false),
    ] {
        let expected = if flagged { vec![format!("read_otherwise:{}", change.0)] } else { vec![] };
        let change = std::slice::from_ref(&change);
        assert_eq!(ruled(change, StatedConfidence::High), expected, "{change:?}");
        assert!(ruled(change, StatedConfidence::Medium).is_empty(), "it has doubts of its own");
    }
    let of_another = |certainty| {
        let mut rules = Extraction { reader: ExtractionMethod::Rules, ..sound() };
        rules.data.insert("supplier_vat_id".to_owned(), json!("DE987654321"));
        for (field, certainty) in [("supplier_vat_id", 0.9), ("supplier_name", certainty)] {
            rules.certainties.push(FieldCertainty { field: field.to_owned(), certainty });
        }
        let lookups = GateLookups { rules_reading: Some(Arc::new(rules)), ..lookups() };
        judged(&sound(), &transcript(PAGE), &lookups).findings.len()
    };
    assert_eq!([of_another(0.9), of_another(0.8)], [1, 0], "it may take another for the supplier");
}

#[test]
fn what_the_rules_reader_made_of_other_values_is_none_that_a_model_has_to_have() {
    let mut left_out = sound();
    left_out.data.insert("vat_amount".to_owned(), Value::Null);
    left_out.data.insert("due_date".to_owned(), Value::Null);
    let reasons = |vat: f64, due: &str| {
        let mut rules = Extraction { reader: ExtractionMethod::Rules, ..sound() };
        for (name, value) in [("vat_amount", json!(vat)), ("due_date", json!(due))] {
            rules.data.insert(name.to_owned(), value);
            rules.certainties.push(FieldCertainty { field: name.to_owned(), certainty: 0.9 });
        }
        let lookups = GateLookups { rules_reading: Some(Arc::new(rules)), ..lookups() };
        judged(&left_out, &transcript(PAGE), &lookups).review_reasons()
    };
    let unconfirmed = "total_unconfirmed:total";
    let both = [unconfirmed, "read_otherwise:due_date", "read_otherwise:vat_amount"];
    assert_eq!(reasons(48.87, "2021-04-04"), both);
    assert_eq!(reasons(0.0, "2021-04-03"), [unconfirmed]);
    assert_eq!(reasons(77.5, "2021-04-03"), [unconfirmed]);
}
