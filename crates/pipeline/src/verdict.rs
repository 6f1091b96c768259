//! Extracted to recorded: asks the gate, and writes down what follows from its verdict.
//!
//! The record table of the design is here and nowhere else.

use std::sync::Arc;

use crate::context::AttemptContext;
use crate::extract::UnfinishedExtraction;
use crate::kind;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use docmill_core::model::{
    Extraction, ExtractionMethod, IngestionStage, IngestionStatus, ModelUsage, OutcomeReason,
    Transcript,
};
use docmill_core::work_clock::wait_off_clock;
use docmill_gate::kinds::ClassifiedKind;
use docmill_gate::{self, EinvoiceState, GateLookups, Verdict};
use docmill_ledger::{IngestionResult, VerdictDetails};

/// What the gate has to know of a document beside its data.
#[derive(Clone, Copy)]
pub(super) struct GateInput<'a> {
    /// Its kind, and what is doubtful about that.
    pub(super) told: &'a ClassifiedKind,
    /// What is known of an e-invoice it carries.
    pub(super) note: EinvoiceState,
    /// The transcript that the data was read from.
    pub(super) transcript: &'a Arc<Transcript>,
    /// A model was shown pictures of its pages.
    pub(super) pictures_shown: bool,
}

impl<'a> GateInput<'a> {
    /// Of a document of which nothing but the text was shown.
    pub(super) fn of_text(
        told: &'a ClassifiedKind,
        note: EinvoiceState,
        transcript: &'a Arc<Transcript>,
    ) -> Self {
        Self { told, note, transcript, pictures_shown: false }
    }
}

/// Looks up what the gate needs to know, and asks it.
///
/// # Errors
/// What the ledger says; rejected if the text keeps the gate busy for too long.
pub(super) async fn judge_extraction(
    attempt: AttemptContext<'_>,
    input: GateInput<'_>,
    extraction: &Extraction,
) -> Result<Verdict, StepError> {
    let (ledger, claimed) = (&attempt.context.ledger, attempt.claimed);
    let (document, tenant) = (claimed.document.id, claimed.tenant.as_deref());
    let text = |field: &str| extraction.data.get(field).and_then(serde_json::Value::as_str);
    // What is only flagged is looked for once, as the result is recorded: the key is locked then.
    let asks = input.told.kind.acts_on_duplicates();
    let duplicate_of = match (text("supplier_name"), text("invoice_number")) {
        (Some(supplier), Some(number)) if asks => {
            wait_off_clock(ledger.find_duplicate(document, tenant, supplier, number)).await?
        }
        _ => None,
    };
    let lookups = GateLookups {
        duplicate_of,
        today: claimed.claimed_at.date(),
        quality_threshold: attempt.config().ocr.quality_threshold,
        einvoice: input.note,
        pictures_shown: input.pictures_shown,
    };
    let (extraction, transcript) = (extraction.clone(), Arc::clone(input.transcript));
    let kind = Arc::clone(&input.told.kind);
    let judge = move || docmill_gate::judge_extraction(&extraction, &transcript, &kind, &lookups);
    let mut verdict = run_on_text(attempt.services(), judge).await?;
    kind::note_ambiguity(input.told.doubt, &mut verdict);
    Ok(verdict)
}

/// What is recorded of an extraction the gate has judged.
pub(super) fn judged_result(
    extraction: Extraction,
    verdict: &Verdict,
    sha256: Option<String>,
) -> IngestionResult {
    let refused = verdict.is_refused();
    let review_reasons = verdict.review_reasons();
    IngestionResult {
        reason: refused.then_some(OutcomeReason::GateRefused),
        stage: IngestionStage::Record,
        needs_human_review: refused || !review_reasons.is_empty(),
        detail: if refused { review_reasons.join(", ") } else { String::new() },
        review_reasons,
        stated: Some(extraction.reader_statement()),
        structured_data: Some(extraction.data),
        reader: Some(extraction.reader.code().to_owned()),
        kind: Some(extraction.kind),
        model: extraction.model.filter(|_| extraction.reader == ExtractionMethod::Llm),
        usage: extraction.usage,
        judged: Some(VerdictDetails {
            score: verdict.score,
            grounded: verdict.grounded.clone(),
            certainty: verdict.certainty,
        }),
        duplicate_rule: verdict.duplicate_rule.clone(),
        sha256,
    }
}

/// What is recorded when the model answered, but not acceptably: the partial data is kept for the
/// reviewer.
pub(super) fn unfinished_result(unfinished: UnfinishedExtraction) -> IngestionResult {
    let UnfinishedExtraction { reason, detail, partial, usage, model } = unfinished;
    let stated = partial.as_deref().map(Extraction::reader_statement);
    let (kind, data) = match partial {
        Some(partial) => (Some(partial.kind), Some(partial.data)),
        None => (None, None),
    };
    IngestionResult {
        structured_data: data,
        stated,
        reader: Some(ExtractionMethod::Llm.code().to_owned()),
        kind,
        model,
        usage,
        ..early_result(reason, IngestionStage::Extract, detail)
    }
}

/// What is recorded of an ingestion that ended before there was an extraction.
pub fn early_result(
    reason: OutcomeReason,
    stage: IngestionStage,
    detail: String,
) -> IngestionResult {
    // A cancelled ingestion needs nobody's eyes; every failed one does.
    let needs_human_review = reason.status() == IngestionStatus::Failed;
    let review_reasons = if needs_human_review { vec![reason.code().to_owned()] } else { vec![] };
    IngestionResult {
        reason: Some(reason),
        stage,
        structured_data: None,
        needs_human_review,
        review_reasons,
        reader: None,
        kind: None,
        model: None,
        usage: ModelUsage::default(),
        judged: None,
        stated: None,
        sha256: None,
        duplicate_rule: None,
        detail,
    }
}
