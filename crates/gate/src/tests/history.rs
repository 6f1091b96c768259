//! The account guard and the checks against confirmed documents.

use super::*;

const OWN: &str = "DE02120300000000202051";
const FOREIGN: &str = "NL91ABNA0417164300";

fn known_supplier() -> SupplierHistory {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    let values = [
        ("invoice_number", vec![json!("RE-15"), json!("RE-16")]),
        ("total", vec![json!(44.1), json!(441.87), json!(7)]),
    ];
    SupplierHistory {
        accounts: texts(&[OWN]),
        accounts_of_others: texts(&[]),
        currencies: texts(&["EUR"]),
        values: values.into_iter().map(|(name, all)| (name.to_owned(), all)).collect(),
    }
}

fn reasons_of(data: &[(&str, Value)], history: SupplierHistory) -> Vec<String> {
    let mut extraction = sound();
    for (field, value) in data {
        extraction.data.insert((*field).to_owned(), value.clone());
    }
    let lookups = GateLookups { history, ..lookups() };
    let verdict = judged(&extraction, &transcript(PAGE), &lookups);
    let guarded = [
        "account_changed",
        "account_of_other",
        "account_abroad",
        "currency_changed",
        "number_unusual",
        "amount_unusual",
    ];
    let reasons = verdict.review_reasons().into_iter();
    reasons.filter(|reason| guarded.iter().any(|name| reason.starts_with(name))).collect()
}

#[test]
fn news_of_a_known_supplier_is_flagged_and_nothing_of_an_unknown_one() {
    for (field, value, reason) in [
        ("iban", json!("DE02 1203 0000 0000 2020 51"), None),
        ("iban", json!("DE75512108001245126199"), Some("account_changed:iban")),
        ("further_accounts", json!([OWN]), None),
        (
            "further_accounts",
            json!(["DE75512108001245126199"]),
            Some("account_changed:further_accounts[0]"),
        ),
        ("currency", json!("USD"), Some("currency_changed:currency")),
        ("invoice_number", json!("RE-170"), None),
        ("invoice_number", json!("GS-17"), Some("number_unusual:invoice_number")),
        ("total", json!(8837.4), None),
        ("total", json!(8837.41), Some("amount_unusual:total")),
    ] {
        let data = [(field, value)];
        let expected: Vec<&str> = reason.into_iter().collect();
        assert_eq!(reasons_of(&data, known_supplier()), expected, "{data:?}");
        assert_eq!(reasons_of(&data, SupplierHistory::default()), [""; 0], "unknown: {data:?}");
    }
}

#[test]
fn an_account_of_another_supplier_is_flagged_unless_it_is_this_ones_as_well() {
    let mut history = SupplierHistory::default();
    history.accounts_of_others.insert(OWN.to_owned());
    let data = [("iban", json!(OWN))];
    assert_eq!(reasons_of(&data, history.clone()), ["account_of_other_supplier:iban"]);
    history.accounts.insert(OWN.to_owned());
    assert_eq!(reasons_of(&data, history), [""; 0]);
}

#[test]
fn an_account_of_another_country_is_flagged_until_it_is_confirmed() {
    let data = [("iban", json!(FOREIGN)), ("supplier_vat_id", json!("DE123456789"))];
    assert_eq!(reasons_of(&data, SupplierHistory::default()), ["account_abroad:iban"]);
    let mut history = SupplierHistory::default();
    history.accounts.insert(FOREIGN.to_owned());
    assert_eq!(reasons_of(&data, history), [""; 0]);
    for (iban, vat_id) in [
        (json!(OWN), json!("DE123456789")),
        (json!("GR1601101250000000012300695"), json!("EL123456789")),
        (json!(FOREIGN), json!(null)),
        (json!("12345"), json!("DE123456789")),
    ] {
        let data = [("iban", iban), ("supplier_vat_id", vat_id)];
        assert_eq!(reasons_of(&data, SupplierHistory::default()), [""; 0], "{data:?}");
    }
}
