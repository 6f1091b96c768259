//! Codes on the page beside what was extracted from it.

use super::*;
use docmill_core::model::{CodeSymbology, PageCode};

const ACCOUNT: &str = "DE89370400440532013000";

fn order(iban: &str, amount: &str) -> String {
    format!("BCD\n002\n1\nSCT\n\nKorkstein GmbH\n{iban}\n{amount}\n\n\nRE-17")
}

fn code(payload: &str) -> PageCode {
    let bounding_box = BoundingBox { x: 400.0, y: 700.0, w: 90.0, h: 90.0 };
    let payload = payload.to_owned();
    PageCode { symbology: CodeSymbology::Qr, payload, bytes: false, bounding_box }
}

/// The page of [`PAGE`] with codes, and with the account in print if it is given.
fn coded(payloads: &[&str], account: &str) -> Transcript {
    let mut page = transcript(&format!("{PAGE}\n{account}"));
    page.pages[0].codes = payloads.iter().map(|payload| code(payload)).collect();
    page
}

fn with(changes: Value) -> Extraction {
    let mut extraction = sound();
    for (field, value) in changes.as_object().unwrap() {
        extraction.data.insert(field.clone(), value.clone());
    }
    extraction
}

fn reasons(extraction: &Extraction, page: &Transcript) -> Vec<String> {
    judged(extraction, page, &lookups()).review_reasons()
}

#[test]
fn a_code_that_differs_from_the_data_or_breaks_its_rules_never_passes_unflagged() {
    let own = with(json!({"iban": ACCOUNT}));
    let sound_order = order(ACCOUNT, "EUR441.87");
    let other = order(ACCOUNT, "EUR441.88");
    let foreign = order("BE72000000001616", "EUR441.87");
    let wrong = order("DE89370400440532013001", "EUR441.87");
    let huge = order(ACCOUNT, &format!("EUR441.87\n\n\n{}", "x".repeat(300)));
    let francs = "SPC\n0200\n1\nCH5800791123000889012\nS\nA\n\n\n8000\nB\nCH\n\n\n\n\n\n\n\n\
                  441.87\nCHF\n\n\n\n\n\n\n\nNON\n\n\nEPD";
    #[rustfmt::skip]
    let table: &[(&str, &[&str], &[&str])] = &[
        ("no code",                   &[],                         &[]),
        ("the same",                  &[&sound_order],             &[]),
        ("the same twice",            &[&sound_order, &sound_order], &[]),
        ("no code for payments",      &["https://example.org/"],   &[]),
        ("another amount",            &[&other],                   &["code_contradicts:total"]),
        ("another account",           &[&foreign],                 &["code_contradicts:iban"]),
        ("another currency",          &[francs],                   &["code_contradicts:iban", "code_contradicts:currency"]),
        ("a wrong check digit",       &[&wrong],                   &["code_unusable:account"]),
        ("a huge one",                &[&huge],                    &["code_unusable:too_long"]),
        ("half of one",               &["BCD\n002\n1"],            &["code_unusable:lines"]),
        ("two that differ",           &[&sound_order, &other],     &["code_contradicts:total", "code_unusable:several"]),
    ];
    for (name, payloads, expected) in table {
        let found = reasons(&own, &coded(payloads, ACCOUNT));
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|it| it.contains("code_")).collect();
        assert_eq!(found, *expected, "{name}");
    }
    let mut bytes = coded(&[&sound_order], ACCOUNT);
    bytes.pages[0].codes[0].bytes = true;
    assert!(reasons(&own, &bytes).contains(&"code_unusable:characters".to_owned()));
    let many = vec![code("https://example.org/"); PageCode::MAX_PER_PAGE];
    bytes.pages[0].codes = many;
    assert!(reasons(&own, &bytes).contains(&"code_unusable:too_many".to_owned()));
}

#[test]
fn a_value_that_a_code_repeats_has_two_sources() {
    let sound_order = order(ACCOUNT, "EUR441.87");
    let mut alone = coded(&[], ACCOUNT);
    for word in alone.pages[0].lines.iter_mut().flat_map(|line| &mut line.words) {
        word.unwitnessed = ["441,87", "48,87", ACCOUNT].contains(&word.text.as_str());
    }
    let own = with(json!({"iban": ACCOUNT, "invoice_number": "RE-18"}));
    let refused = ["seen_by_one_model:total", "seen_by_one_model:iban"];
    let found = reasons(&own, &alone);
    assert!(refused.iter().all(|reason| found.iter().any(|it| it == reason)), "{found:?}");

    alone.pages[0].codes = vec![code(&sound_order)];
    let found = reasons(&own, &alone);
    assert!(!refused.iter().any(|reason| found.iter().any(|it| it == reason)), "{found:?}");
    for other in ["seen_by_one_model:vat_amount", "not_on_document:invoice_number"] {
        assert!(found.iter().any(|it| it == other), "it says nothing of that: {found:?}");
    }

    // A doubtful code corroborates nothing.
    alone.pages[0].codes = vec![code(&order(ACCOUNT, "EUR1"))];
    let found = reasons(&own, &alone);
    assert!(found.iter().any(|it| it == "seen_by_one_model:iban"), "{found:?}");
}

#[test]
fn what_is_missing_is_filled_from_the_code_and_is_looked_at_where_no_print_has_it() {
    let kind = KINDS.get("invoice").unwrap();
    let mut missing = with(json!({"iban": null, "total": null}));
    missing.missing_fields = ["total", "due_date"].map(str::to_owned).to_vec();
    let unsure = |field: &str| FieldCertainty { field: field.to_owned(), certainty: 0.2 };
    missing.certainties = vec![unsure("iban"), unsure("due_date")];
    let fill = |page: &Transcript| fill_from_codes(missing.clone(), page, kind);

    let page = coded(&[&order(ACCOUNT, "EUR441.87")], ACCOUNT);
    let filled = fill(&page);
    assert_eq!((&filled.data["iban"], &filled.data["total"]), (&json!(ACCOUNT), &json!(441.87)));
    assert_eq!(filled.missing_fields, ["due_date"], "what is filled is not missing any more");
    assert_eq!(filled.certainties, [unsure("due_date")]);
    let found = reasons(&filled, &page);
    assert!(!found.iter().any(|it| it.starts_with("only_in_code")), "{found:?}");

    let page = coded(&[&order(ACCOUNT, "EUR441.87")], "");
    let filled = fill(&page);
    let verdict = judged(&filled, &page, &lookups());
    assert_eq!(filled.data["iban"], json!(ACCOUNT));
    assert!(verdict.review_reasons().contains(&"only_in_code:iban".to_owned()));
    let place = verdict.grounded.iter().find(|it| it.field == "iban").unwrap().place;
    assert_eq!((place.page, place.bounding_box), (1, page.pages[0].codes[0].bounding_box));

    for payloads in [
        vec![order("DE89370400440532013001", "EUR441.87")],
        vec![order(ACCOUNT, "EUR441.87"), order("BE72000000001616", "EUR441.87")],
    ] {
        let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
        assert_eq!(fill(&coded(&payloads, "")), missing, "one in doubt fills nothing");
    }
    let other = with(json!({"iban": null, "total": 100}));
    let page = coded(&[&order(ACCOUNT, "EUR441.87")], "");
    assert_eq!(
        fill_from_codes(other.clone(), &page, kind),
        other,
        "one that says otherwise neither"
    );
    let exact = Extraction { reader: ExtractionMethod::Einvoice, ..missing.clone() };
    assert_eq!(
        fill_from_codes(exact.clone(), &page, kind),
        exact,
        "the XML said that there is none"
    );
}
