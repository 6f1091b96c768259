//! The documents of `samples/` end as listed in `samples/EXPECT.tsv`, through every step without
//! database and queue; `make demo` shows the same. Needs Tesseract.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use docmill::app::App;
use docmill_core::config::Config;
use docmill_operations::process::ProcessReport;
use serde_json::Value;

/// The fields of the table's last three columns.
const FIELDS: [&str; 3] = ["supplier_name", "invoice_number", "total"];

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// A value as the table writes it.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(number) => format!("{:.2}", number.as_f64().unwrap()),
    }
}

/// A row of the table, as the document really ended.
fn row(file: &str, processed: &ProcessReport) -> Vec<String> {
    let reason = processed.reason.map_or("-", |reason| reason.code());
    let mut row = vec![file.to_owned(), processed.status.code().to_owned(), reason.to_owned()];
    let data = processed.data.as_ref();
    row.extend(FIELDS.map(|field| shown(data.and_then(|data| data.get(field)))));
    row
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_ends_as_expected() {
    let table = std::fs::read_to_string(samples().join("EXPECT.tsv")).unwrap();
    let mut config = Config::default();
    config.cpu.program = crate::support::page_processes::docmill();
    let pipeline = App::new(config).local_pipeline().await.unwrap();
    let mut wrong = Vec::new();
    for line in table.lines().skip(1) {
        let expected: Vec<&str> = line.split('\t').collect();
        let path = samples().join(expected[0]);
        let bytes = std::fs::read(&path).unwrap().into();
        let processed = pipeline.process_file(&path, bytes).await.unwrap();
        let found = row(expected[0], &processed);
        if found != expected {
            wrong.push(format!(
                "expected {expected:?}\n   found {found:?}, {:?}, {}",
                processed.review_reasons, processed.detail
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
