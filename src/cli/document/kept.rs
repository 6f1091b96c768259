//! Evaluation from transcripts that were kept: pages are read once, and what is made of them as often
//! as rules and weights change.
//!
//! Files are named by the SHA-256 of their document. That the pages would be read as they were is
//! not checked: who changes the reading of pages empties the folder.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{EvalArgs, is_of_certainty, read_input};
use crate::app::App;
use crate::cli::print;
use crate::ops::process::LocalPipeline;
use crate::pipeline::{StepError, verdict};
use docmill_core::model::{IngestionStatus, OutcomeReason, Transcript, digest};
use docmill_eval::eval::{self, EvalSample, FamilyPart, LabelledDocument};
use docmill_extract::extract::rules::{self, CandidateEvidence};
use docmill_gate::gate::{EinvoiceState, GateLookups};

/// A folder of transcripts, and how those that it lacks are made.
pub(super) struct KeptTranscripts<'a> {
    folder: PathBuf,
    pipeline: &'a LocalPipeline,
    lookups: GateLookups,
}

impl<'a> KeptTranscripts<'a> {
    pub(super) fn open(
        folder: &Path,
        app: &App,
        pipeline: &'a LocalPipeline,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let lookups = GateLookups {
            duplicate_of: None,
            today: time::OffsetDateTime::now_utc().date(),
            quality_threshold: app.config().ocr.quality_threshold,
            einvoice: EinvoiceState::Absent,
        };
        Ok(Self { folder: folder.to_owned(), pipeline, lookups })
    }

    /// The transcript that is kept, else a new one, which is kept then.
    async fn transcript_of(&self, bytes: Bytes) -> Result<Transcript, StepError> {
        let path = self.folder.join(format!("{}.json", digest::sha256_hex(&bytes)));
        let kept = tokio::fs::read(&path).await.ok();
        if let Some(kept) = kept.and_then(|kept| serde_json::from_slice(&kept).ok()) {
            return Ok(kept);
        }
        let read = self.pipeline.transcribe_file(bytes).await?;
        if let Ok(text) = serde_json::to_vec(read.as_ref())
            && let Err(error) = tokio::fs::write(&path, text).await
        {
            print::error(&format!("{} cannot be written: {error}", path.display()));
        }
        Ok(read.as_ref().clone())
    }

    /// Reads one document by labels and layout.
    pub(super) async fn score_sample(&self, path: PathBuf, bytes: Bytes) -> EvalSample {
        let failed = |reason: String| EvalSample {
            status: IngestionStatus::Failed.code().to_owned(),
            reason: Some(reason),
            ..EvalSample::default()
        };
        let transcript = match self.transcript_of(bytes).await {
            Ok(transcript) => transcript,
            Err(StepError::Rejected { reason, .. }) => return failed(reason.code().to_owned()),
            Err(StepError::Fault(fault)) => {
                print::error(&format!("{}: {fault}", path.display()));
                return failed(fault.fault.code().to_owned());
            }
        };
        let kinds = &self.pipeline.services().kinds;
        let Some(result) = verdict::read_kept_transcript(kinds, &transcript, &self.lookups) else {
            return failed(OutcomeReason::Internal.code().to_owned());
        };
        let status = result.reason.map_or(IngestionStatus::Completed, OutcomeReason::status);
        EvalSample {
            status: status.code().to_owned(),
            reason: result.reason.map(|reason| reason.code().to_owned()),
            data: result.structured_data,
            text: Some(transcript.full_text()),
            needs_review: result.needs_human_review,
            score: result.judged.as_ref().map(|judged| judged.score),
            certainty: result.judged.as_ref().and_then(|judged| judged.certainty),
            flagged_otherwise: result.review_reasons.iter().any(|it| !is_of_certainty(it)),
        }
    }

    /// One line for each known field of a document: which signs each candidate has, and whether it
    /// is right. No values.
    fn evidence_lines(&self, document: &LabelledDocument, transcript: &Transcript) -> String {
        let kinds = &self.pipeline.services().kinds;
        let told = kinds.classify(transcript).map(|told| told.kind);
        let Some(kind) = told.or_else(|| kinds.for_name(None).cloned()) else {
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
                !eval::score_document(document, &sample).faults.contains(field)
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
}

/// Where the truth is silent, a reader that found nothing is taken to be right; what it found cannot
/// be judged.
fn is_claim_of_absence(field: &str, candidates: &[&CandidateEvidence]) -> bool {
    let labelled = || candidates.iter().any(|one| one.signs.iter().any(|sign| sign == "OwnLabel"));
    candidates.iter().any(|one| one.value.is_null()) || (field == "due_date" && !labelled())
}

/// Writes the signs of every candidate of the tune part.
pub(super) async fn write_evidence(
    app: &App,
    arguments: &EvalArgs,
    path: &Path,
) -> anyhow::Result<()> {
    let pipeline = app.local_pipeline().await?;
    let folder = arguments.transcripts.as_deref().context("--evidence needs --transcripts")?;
    let kept = KeptTranscripts::open(folder, app, &pipeline)?;
    let (labelled, _) = eval::find_labelled(&arguments.dir)?;
    let tune = labelled.iter().filter(|one| FamilyPart::of_family(&one.family) == FamilyPart::Tune);
    let mut lines = String::new();
    for document in tune {
        let bytes = read_input(&document.path, app).await?;
        match kept.transcript_of(bytes).await {
            Ok(transcript) => lines.push_str(&kept.evidence_lines(document, &transcript)),
            Err(StepError::Fault(fault)) => return Err(fault.into()),
            Err(StepError::Rejected { .. }) => {}
        }
    }
    std::fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
}
