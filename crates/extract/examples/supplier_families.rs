//! Figures of the supplier memory over families of one issuer:
//!
//!     cargo run --release -p docmill-extract --example supplier_families FOLDER
//!
//! FOLDER has documents, `truth/NAME.json` as for `docmill eval`, and `transcripts/NAME.json`, which
//! `docmill transcribe FILE --format json` prints. Documents of one supplier in the truth, ordered by
//! name, are a family; each is read by the rules reader with those before it as confirmed. Totals only
//! are printed, no content.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use docmill_core::config::KindsConfig;
use docmill_core::model::Transcript;
use docmill_eval::{EvalSample, LabelledDocument, find_labelled, score_document};
use docmill_extract::memory::{RememberedPages, SupplierRecall, apply_memory};
use docmill_extract::rules::extract_by_rules;
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::{Kind, KindSet};
use docmill_gate::{GateLookups, SupplierHistory, judge_extraction};
use serde_json::Value;
use time::OffsetDateTime;

/// Documents of a family that are read.
const MAX_DOCUMENTS: usize = 6;

/// A document with its transcript.
struct IssuerDocument {
    labelled: LabelledDocument,
    transcript: Arc<Transcript>,
}

/// How documents at one place of their family ended.
#[derive(Default)]
struct PlaceFigures {
    documents: usize,
    passed: usize,
    silent: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let kinds = KindSet::load(&KindsConfig::default())?;
    let kind = kinds.get("invoice").ok_or("no kind invoice")?;
    let mut figures: BTreeMap<(usize, bool), PlaceFigures> = BTreeMap::new();
    for family in read_families(Path::new(&folder))?.values().filter(|family| family.len() > 1) {
        for at in 0..family.len().min(MAX_DOCUMENTS) {
            let (before, Some(member)) = (family.get(..at).unwrap_or_default(), family.get(at))
            else {
                continue;
            };
            for with_memory in [false, true] {
                let known = if with_memory { before } else { &[] };
                let (is_right, is_flagged) = read(member, known, kind);
                let place = figures.entry((at, with_memory)).or_default();
                place.documents += 1;
                place.passed += usize::from(is_right && !is_flagged);
                place.silent += usize::from(!is_right && !is_flagged);
            }
        }
    }
    for ((at, with_memory), place) in figures {
        let PlaceFigures { documents, passed, silent } = place;
        println!(
            "document {}, memory {with_memory}: {documents}, right and unflagged {passed}, wrong and unflagged {silent}",
            at + 1
        );
    }
    Ok(())
}

fn read_families(folder: &Path) -> Result<BTreeMap<String, Vec<IssuerDocument>>, Box<dyn Error>> {
    let mut families: BTreeMap<String, Vec<IssuerDocument>> = BTreeMap::new();
    for labelled in find_labelled(folder, None)?.0 {
        let path = folder.join("transcripts").join(format!("{}.json", labelled.name));
        let Ok(text) = std::fs::read(path) else { continue };
        let Ok(transcript) = serde_json::from_slice::<Transcript>(&text) else { continue };
        let supplier = labelled.data.as_ref().and_then(|data| data.get("supplier_name")?.as_str());
        let name = fold_text(supplier.unwrap_or_default());
        let transcript = Arc::new(transcript);
        families.entry(name).or_default().push(IssuerDocument { labelled, transcript });
    }
    Ok(families)
}

/// Whether a document was right, and whether it was flagged.
fn read(member: &IssuerDocument, before: &[IssuerDocument], kind: &Kind) -> (bool, bool) {
    let newest = before.iter().rev();
    let documents = newest.map(|it| RememberedPages {
        transcript: Arc::clone(&it.transcript),
        data: it.labelled.data.clone().unwrap_or_default(),
        learned_at: OffsetDateTime::UNIX_EPOCH,
    });
    let recall = SupplierRecall { documents: documents.collect(), prints_account: true };
    let transcript = &member.transcript;
    let own = extract_by_rules(transcript, kind);
    let extraction = apply_memory(own, transcript, kind, &recall);
    let mut history = SupplierHistory::default();
    for (field, value) in recall.documents.iter().flat_map(|it| &it.data) {
        match (field.as_str(), value.as_str()) {
            ("iban", Some(account)) => history.accounts.extend([account.replace(' ', "")]),
            ("currency", Some(code)) => history.currencies.extend([code.to_owned()]),
            _ => {}
        }
        if value.is_string() || value.is_number() {
            history.values.entry(field.clone()).or_default().push(Value::clone(value));
        }
    }
    let lookups = GateLookups {
        quality_threshold: 0.7,
        history,
        ..GateLookups::on_day(OffsetDateTime::now_utc().date())
    };
    let verdict = judge_extraction(&extraction, transcript, kind, &lookups);
    let is_flagged = verdict.needs_review();
    let sample = EvalSample { data: Some(extraction.data), ..EvalSample::default() };
    (score_document(&member.labelled, &sample).whole == Some(true), is_flagged)
}
