//! A kind is a folder: the one of docs/guides/kinds.md works as printed, and errors of a faulty one
//! name file and line.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::documents;

/// Writes the example of docs/guides/kinds.md: blocks whose first line names a file.
fn write_example(kinds: &Path) -> usize {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/kinds.md");
    let text = std::fs::read_to_string(page).unwrap();
    let mut files = 0;
    for block in text.split("\n```").skip(1).step_by(2) {
        let (info, body) = block.split_once('\n').unwrap();
        let Some((_, path)) = info.split_once(' ') else { continue };
        let path = kinds.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body).unwrap();
        files += 1;
    }
    files
}

fn docmill(kinds: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_docmill"))
        .args(arguments)
        .env("DOCMILL__KINDS__PATH", kinds)
        .output()
        .unwrap()
}

fn printed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn delivery_note() -> Vec<u8> {
    documents::pdf(&[
        (50.0, 52.0, "Harbour Supplies Ltd"),
        (50.0, 102.0, "Delivery note DN-2041"),
        (50.0, 127.0, "Delivery date: 12 March 2024"),
        (50.0, 142.0, "Your order: PO-88"),
        (50.0, 157.0, "Carrier: Northern Freight"),
        (50.0, 192.0, "Quantity"),
        (130.0, 192.0, "Description"),
        (70.0, 210.0, "12"),
        (130.0, 210.0, "Rope, 10 m"),
        (70.0, 228.0, "3"),
        (130.0, 228.0, "Fender, blue"),
        (50.0, 282.0, "Received by:"),
    ])
}

#[test]
fn the_documented_kind_is_classified_and_read_from_its_folder_alone() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(write_example(folder.path()), 7);
    let kinds = folder.path().to_str().unwrap();
    let checked = docmill(folder.path(), &["kinds", "check", kinds, "--json"]);
    assert_eq!(printed(&checked), json!({"valid": true, "kinds": 1, "problems": [], "limits": []}));
    let listed = printed(&docmill(folder.path(), &["kinds", "list", "--json"]));
    let origin = |name: &str| {
        let all = listed.as_array().unwrap();
        all.iter().find(|kind| kind["name"] == name).map(|kind| kind["origin"].clone())
    };
    assert_eq!(origin("delivery_note"), Some(json!("folder")));
    assert_eq!(origin("invoice"), Some(json!("built in")));

    let file = folder.path().join("note.pdf");
    std::fs::write(&file, delivery_note()).unwrap();
    let processed =
        printed(&docmill(folder.path(), &["process", file.to_str().unwrap(), "--json"]));
    assert_eq!(processed["status"], "completed", "{processed}");
    assert_eq!(processed["kind"], "delivery_note");
    assert_eq!(
        processed["data"],
        json!({
            "delivery_number": "DN-2041",
            "delivery_date": "2024-03-12",
            "order_number": "PO-88",
            "carrier": "Northern Freight",
            "items": [
                {"description": "Rope, 10 m", "quantity": 12},
                {"description": "Fender, blue", "quantity": 3},
            ],
        })
    );

    // Without the folder the kind is unknown.
    let processed =
        printed(&docmill(Path::new(""), &["process", file.to_str().unwrap(), "--json"]));
    assert_eq!((&processed["status"], &processed["kind"]), (&json!("failed"), &json!("generic")));
    assert!(processed["review_reasons"].to_string().contains("kind_unknown"), "{processed}");
}

#[test]
fn errors_of_a_kind_name_file_and_line() {
    #[rustfmt::skip]
    let faults = [
        ("kind.toml",     "weight = 5",             "weight = \"5\"",            "kind.toml:5: `weight`"),
        ("schema.json",   "\"format\": \"date\"",   "\"format\": \"day\"",       "schema.json:12: the only `format`"),
        ("schema.json",   "\"type\": \"object\",",  "\"type\": \"object\"",      "schema.json:3: "),
        ("schema.json",   "\"description\": \"Who brought the goods.\"", "\"oneOf\": [{}]", "schema.json:21: `oneOf` is outside"),
        ("rules.toml",    "check = \"required\"",   "check = \"requird\"",       "rules.toml:8: rule `required`: there is no check"),
        ("rules.toml",    "\"delivery_date\"]",     "\"delivery_day\"]",         "rules.toml:11: rule `required` names `delivery_day`"),
        ("rules.toml",    "consequence = \"again\"", "consequence = \"agian\"",  "rules.toml:6: "),
        ("labels.toml",   "strong.de = [\"lieferdatum\"]", "strong = [\"lieferdatum\"]", "labels.toml:"),
        ("labels.toml",   "[carrier]",              "[carier]",                  "labels.toml:17: [carier] is neither"),
        ("labels.toml",   "[order_number]",         "[order_number",             "labels.toml:13: "),
        ("prompt.md",     "",                       "",                          "prompt.md: is missing"),
        ("examples/two_lines.json", "\"5521\"",     "5521",                      "two_lines.json:2: does not fit"),
    ];
    for (file, from, to, expected) in faults {
        let folder = tempfile::tempdir().unwrap();
        write_example(folder.path());
        let path = folder.path().join("delivery_note").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        match from {
            "" => std::fs::remove_file(path).unwrap(),
            _ => std::fs::write(path, text.replacen(from, to, 1)).unwrap(),
        }
        // The folder of one kind may be named as well as that of many.
        let one = folder.path().join("delivery_note");
        for kinds in [folder.path(), &one] {
            let checked = docmill(Path::new(""), &["kinds", "check", kinds.to_str().unwrap()]);
            let said = String::from_utf8(checked.stdout).unwrap();
            assert_eq!(checked.status.code(), Some(1), "{file}: {said}");
            assert!(said.contains(expected), "{file}, expected {expected}: {said}");
        }
        let refused = docmill(folder.path(), &["kinds", "list"]);
        assert_ne!(refused.status.code(), Some(0), "{file}: in force although faulty");
    }
}

#[test]
fn a_kind_beyond_a_vendors_limit_is_named_with_the_vendor_and_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    write_example(folder.path());
    let path = folder.path().join("delivery_note/schema.json");
    let mut schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let values: Vec<Value> =
        (0..1_001).map(|at| json!(format!("v{at}"))).chain([Value::Null]).collect();
    schema["properties"]["place"] = json!({"type": ["string", "null"], "enum": values});
    std::fs::write(&path, schema.to_string()).unwrap();
    let kinds = folder.path().to_str().unwrap();
    let output = docmill(folder.path(), &["kinds", "check", kinds, "--json"]);
    let checked = printed(&output);
    assert_eq!(
        (checked["valid"].clone(), output.status.success()),
        (json!(true), true),
        "{checked}"
    );
    let limits = checked["limits"].as_array().unwrap();
    assert_eq!(
        (&limits[0]["kind"], &limits[0]["vendor"]),
        (&json!("delivery_note"), &json!("openai"))
    );
    assert_eq!((limits.len(), &limits[0]["what"]), (1, &json!("values of enums")), "{checked}");
}
