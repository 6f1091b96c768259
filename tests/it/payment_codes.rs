//! Codes for payments on documents, from the file to the record.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::reading::marks::{ModuleForm, ORDER, drawn_code};
use crate::reading::papers::{content, pdf};
use crate::support::page_processes::docmill;

const ACCOUNT: &str = "DE89370400440532013000";
const LINES: [&str; 9] = [
    "Honest Parts Ltd, 5 Harbour Road, London",
    "INVOICE",
    "Invoice number: 4711",
    "Invoice date: 3 April 2026",
    "Rope 4 pcs 100.00 400.00",
    "Net amount 400.00 EUR",
    "VAT 20% 80.00 EUR",
    "Total amount 480.00 EUR",
    "Thank you for your order",
];

/// The result of an invoice with this printed line and this code.
fn processed(folder: &Path, print: &str, code: Option<&str>) -> Value {
    let lines = [&LINES[..], &[print]].concat();
    let drawn =
        code.map(|said| drawn_code(said, (400, 60), 110, ModuleForm::Each)).unwrap_or_default();
    let file = folder.join("invoice.pdf");
    std::fs::write(&file, pdf(&[&format!("{} {drawn}", content(&lines))], "")).unwrap();
    let mut command = Command::new(docmill());
    let run = command.args(["process", file.to_str().unwrap(), "--json"]);
    let output = run.current_dir(folder).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!printed.contains(ACCOUNT), "what a code says is in no log");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{printed}"))
}

fn reasons(processed: &Value) -> Vec<&str> {
    processed["review_reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_payment_code_fills_missing_fields_and_flags_contradictions() {
    let folder = tempfile::tempdir().unwrap();
    let printed = format!("IBAN: {ACCOUNT}");
    let about_codes = |processed: &Value| -> Vec<String> {
        let of_codes = reasons(processed).into_iter().filter(|it| it.contains("code"));
        of_codes.map(str::to_owned).collect()
    };

    let plain = processed(folder.path(), &printed, None);
    assert_eq!((&plain["data"]["total"], &plain["data"]["iban"]), (&json!(480), &json!(ACCOUNT)));
    let same = processed(folder.path(), &printed, Some(ORDER));
    assert_eq!(same["data"], plain["data"]);
    assert_eq!(about_codes(&same), [""; 0]);

    let other = ORDER.replace("EUR480.00", "EUR4800.00");
    let contradicted = processed(folder.path(), &printed, Some(&other));
    assert_eq!(about_codes(&contradicted), ["code_contradicts:total"]);
    assert_eq!(contradicted["data"]["total"], json!(480), "the print stays");

    let wrong = ORDER.replace("DE89", "DE88");
    let unusable = processed(folder.path(), &printed, Some(&wrong));
    assert_eq!(about_codes(&unusable), ["code_unusable:account"]);

    let filled = processed(folder.path(), "Payable at once", Some(ORDER));
    assert_eq!(filled["data"]["iban"], json!(ACCOUNT));
    assert_eq!(about_codes(&filled), ["only_in_code:iban"]);
    let grounded = filled["grounded"].as_array().unwrap();
    let place = grounded.iter().find(|it| it["field"] == "iban").unwrap();
    assert!((place["box"]["x"].as_f64().unwrap() - 400.0).abs() < 4.0, "{place}");
    let missing = processed(folder.path(), "Payable at once", None);
    assert_eq!(missing["data"]["iban"], json!(null), "nothing else has it");
}
