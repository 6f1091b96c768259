//! Evaluation of a labelled folder: reading, scoring, summing up; the rules reader on real
//! invoices, if the shared samples are available.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use docmill_core::config::{KindsConfig, LimitsConfig};
use docmill_core::model::{PageText, Transcript};
use docmill_documents::{PageContent, open_document};
use docmill_eval::{self, EvalError, EvalSample};
use docmill_gate::kinds::KindSet;
use serde_json::json;

/// Reads native text by labels, judges, and reports as the pipeline would.
fn read(kinds: &KindSet, bytes: Bytes) -> EvalSample {
    let kind = kinds.for_name(None).unwrap();
    let document = open_document(bytes, &LimitsConfig::default(), 150).unwrap();
    let read =
        (0..document.page_count()).map(|index| match document.page_content(index).unwrap() {
            PageContent::Text { width, height, lines, .. } => {
                PageText::from_native(index + 1, (width, height), 1.0, lines)
            }
            PageContent::Doubtful { layer, .. } => {
                PageText::from_native(index + 1, (layer.width, layer.height), 1.0, layer.lines)
            }
            PageContent::Image(_)
            | PageContent::Cut(_)
            | PageContent::Laid(_)
            | PageContent::Damaged { .. } => {
                panic!("page {index} has no text layer")
            }
        });
    let pages: Vec<PageText> = read.collect();
    let format = Transcript::FORMAT;
    let transcript =
        Transcript { format, sha256: String::new(), provider: String::new(), pages, quality: 1.0 };
    let extraction = docmill_extract::rules::extract_by_rules(&transcript, kind);
    let today = time::OffsetDateTime::now_utc().date();
    let lookups = docmill_gate::GateLookups::on_day(today);
    let lookups = docmill_gate::GateLookups { quality_threshold: 0.7, ..lookups };
    let verdict = docmill_gate::judge_extraction(&extraction, &transcript, kind, &lookups);
    EvalSample {
        status: if verdict.is_refused() { "failed" } else { "completed" }.to_owned(),
        reason: verdict.is_refused().then(|| "gate_refused".to_owned()),
        data: Some(extraction.data),
        text: Some(transcript.full_text()),
        needs_review: verdict.needs_review(),
        score: Some(verdict.score),
        certainty: verdict.certainty,
        flagged_otherwise: verdict.findings.iter().any(|it| it.rule != "uncertain"),
        reasons: verdict.review_reasons(),
    }
}

fn shared_invoices() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = ["../shared", "../../shared"].map(|path| root.join(path));
    let named = std::env::var_os("DOCMILL_SHARED").map(PathBuf::from);
    let mut all = named.into_iter().chain(beside).map(|path| path.join("samples/invoices"));
    all.find(|path| path.is_dir())
}

#[tokio::test]
async fn real_invoices_are_read_by_labels_alone() {
    let Some(folder) = shared_invoices() else { return };
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let report =
        docmill_eval::run(&folder, None, 1, |_, bytes| std::future::ready(read(&kinds, bytes)));
    let report = report.await.unwrap();
    let completed = report.all.completed * 47 / report.all.documents;
    assert!(completed >= 40, "{report}");
    for (group, least) in [("inv", 0.85), ("ren", 0.95)] {
        let own = report.groups.get(group).unwrap();
        for field in ["invoice_number", "invoice_date", "currency", "total", "subtotal"] {
            let f1 = own.fields.get(field).unwrap().f1.unwrap();
            assert!(f1 >= least, "{group} {field}: {f1}\n{report}");
        }
    }
    let wrong_totals = report.documents.iter().filter(|document| {
        !document.needs_review && document.faults.iter().any(|field| field == "total")
    });
    assert_eq!(wrong_totals.count(), 0, "a wrong total passed in silence\n{report}");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth");
    fs::create_dir(&truth).unwrap();
    for name in ["a_1.pdf", "a_2.pdf", "b_1.png", "unknown.txt"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let data = json!({"invoice_number": "N-1", "total": 10, "due_date": null}).to_string();
    fs::write(truth.join("a_1.json"), &data).unwrap();
    fs::write(truth.join("a_2.json"), &data).unwrap();
    fs::write(truth.join("b_1.txt"), "Total due 10").unwrap();
    folder
}

#[tokio::test]
async fn a_folder_is_scored_by_group_and_unknown_truth_is_not_scored() {
    let folder = folder();
    let process = |path: PathBuf, _| async move {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let total = if name == "a_2.pdf" { 11 } else { 10 };
        let data = json!({"invoice_number": "n-1", "total": total, "due_date": "2024-01-01"});
        let failed = name.ends_with("png");
        EvalSample {
            status: if failed { "failed" } else { "completed" }.to_owned(),
            reason: failed.then(|| "no_text".to_owned()),
            data: data.as_object().cloned(),
            text: Some("total 10".to_owned()),
            needs_review: false,
            score: None,
            certainty: None,
            flagged_otherwise: false,
            reasons: if total == 10 { vec!["vat_id_form".to_owned()] } else { Vec::new() },
        }
    };
    let report = docmill_eval::run(folder.path(), None, 2, process).await.unwrap();
    assert_eq!((report.all.documents, report.without_truth), (3, 1));
    // Correct documents sent to review are counted by reason.
    let counted = report.all.reasons.get("vat_id_form").unwrap();
    assert_eq!((counted.right, counted.right_alone, counted.wrong), (1, 1, 0));
    assert!(report.to_string().contains("vat_id_form"), "{report}");
    let own = report.groups.get("a").unwrap();
    assert_eq!((own.completed, own.whole_documents, own.silent_errors), (2, 1, 1));
    let total = own.fields.get("total").unwrap();
    assert_eq!((total.correct, total.wrong, total.missed), (1, 1, 1));
    assert_eq!(own.fields.get("invoice_number").unwrap().f1, Some(1.0));
    assert!(!own.fields.contains_key("due_date"));
    let other = report.groups.get("b").unwrap();
    assert_eq!(other.failed.get("no_text"), Some(&1));
    assert!((other.word_recall.unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert!(report.to_string().contains("silent errors: 1"));
    assert_eq!(serde_json::to_value(&report).unwrap()["groups"]["a"]["documents"], 2);
}

#[tokio::test]
async fn scans_are_scored_by_defect_with_and_without_repair() {
    let folder = folder();
    let table = folder.path().join("SCANS.tsv");
    fs::write(folder.path().join("truth/a_1.txt"), "Total due 10").unwrap();
    fs::write(&table, "language\tfile\tkind\nen\ta_1.pdf\tdegraded:skew\nen\tb_1.png\tfax\n")
        .unwrap();
    let process = |text: &'static str| {
        move |_, _| async move { EvalSample { text: Some(text.to_owned()), ..EvalSample::default() } }
    };
    let mut report =
        docmill_eval::run(folder.path(), None, 2, process("total due 10")).await.unwrap();
    assert_eq!(report.without_truth, 1, "the table is no document");
    let as_is = docmill_eval::run(folder.path(), None, 2, process("total 10")).await.unwrap();
    report.add_unrepaired(&as_is);
    assert_eq!(report.kinds.keys().collect::<Vec<_>>(), ["degraded", "degraded:skew", "fax"]);
    let skew = report.kinds.get("degraded:skew").unwrap();
    assert_eq!((skew.documents, skew.text.word_recall), (1, Some(1.0)));
    assert_eq!(skew.text.character_error_rate, Some(0.0));
    let without = skew.without_repair.as_ref().unwrap();
    assert!((without.word_recall.unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert!(report.to_string().contains("without repair"));
    assert_eq!(serde_json::to_value(&report).unwrap()["kinds"]["fax"]["word_recall"], 1.0);
    fs::write(&table, "name\twhat\n").unwrap();
    let bad = docmill_eval::run(folder.path(), None, 1, process("")).await.unwrap_err();
    assert!(bad.to_string().contains("SCANS.tsv"), "{bad}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_scored_is_refused_with_the_reason() {
    let process = |_, _| async { EvalSample::default() };
    let empty = tempfile::tempdir().unwrap();
    let error = docmill_eval::run(empty.path(), None, 1, process).await.unwrap_err();
    assert!(matches!(error, EvalError::Nothing { .. }));
    let missing =
        docmill_eval::run(&empty.path().join("none"), None, 1, process).await.unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
    let folder = folder();
    fs::write(folder.path().join("truth/a_1.json"), "[1]").unwrap();
    let bad = docmill_eval::run(folder.path(), None, 1, process).await.unwrap_err();
    assert!(bad.to_string().contains("a_1.json"), "{bad}");
}
