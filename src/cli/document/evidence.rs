//! The features of each candidate for a field, to which `scripts/corpus/fit_reading.py` fits weights.
//!
//! Tune split only. No values are written: a line has features, and which candidate is right.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::{EvalArgs, open_pipeline, read_input};
use crate::app::App;
use docmill_core::model::Transcript;
use docmill_eval::{self, EvalSample, FamilyPart, LabelledDocument};
use docmill_extract::rules::{self, CandidateEvidence};
use docmill_gate::kinds::KindSet;
use docmill_pipeline::StepError;

/// One line for each known field of a document: which signs each candidate has, and whether it
/// is right. No values.
fn evidence_lines(kinds: &KindSet, document: &LabelledDocument, transcript: &Transcript) -> String {
    let classified = kinds.classify(transcript).map(|classified| classified.kind);
    let Some(kind) = classified.or_else(|| kinds.for_name(None).cloned()) else {
        return String::new();
    };
    let evidence = rules::gather_evidence(transcript, &kind);
    let mut lines = String::new();
    for (field, known) in document.data.iter().flatten() {
        let own: Vec<&CandidateEvidence> =
            evidence.iter().filter(|one| one.field == *field).collect();
        if known.is_array() || (known.is_null() && !is_claim_of_absence(field, &own)) {
            continue;
        }
        let is_right = |one: &CandidateEvidence| {
            if known.is_null() {
                return one.value.is_null();
            }
            let data = Map::from_iter([(field.clone(), one.value.clone())]);
            let sample = EvalSample { data: Some(data), ..EvalSample::default() };
            !docmill_eval::score_document(document, &sample).faults.contains(field)
        };
        let own = own.iter().map(|one| json!({ "right": is_right(one), "signs": one.signs }));
        let line = json!({
            "document": document.name, "family": document.family, "field": field,
            "part": FamilyPart::of_family(&document.family), "candidates": own.collect::<Value>(),
        });
        lines.push_str(&format!("{line}\n"));
    }
    lines
}

/// Where the truth has no entry, an empty result counts as right; other results cannot be judged.
fn is_claim_of_absence(field: &str, candidates: &[&CandidateEvidence]) -> bool {
    let labelled = || candidates.iter().any(|one| one.signs.iter().any(|sign| sign == "own_label"));
    candidates.iter().any(|one| one.value.is_null()) || (field == "due_date" && !labelled())
}

/// Writes the signs of every candidate of the tune part.
pub(super) async fn write_evidence(
    app: &App,
    arguments: &EvalArgs,
    path: &Path,
) -> anyhow::Result<()> {
    let pipeline = open_pipeline(app, arguments).await?;
    let kinds = &pipeline.services().kinds;
    let (tune, _) = docmill_eval::find_labelled(&arguments.dir, Some(FamilyPart::Tune))?;
    let mut lines = String::new();
    for document in &tune {
        let bytes = read_input(&document.path, app).await?;
        match pipeline.transcribe_file(bytes).await {
            Ok(transcript) => lines.push_str(&evidence_lines(kinds, document, &transcript)),
            Err(StepError::Fault(fault)) => return Err(fault.into()),
            Err(StepError::Rejected { .. }) => {}
        }
    }
    std::fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
}
