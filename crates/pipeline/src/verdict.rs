//! Extraction to result: runs the gate, and builds the record from its verdict.
//!
//! The only place of the design's record table.

use std::sync::Arc;

use serde_json::Value;

use crate::context::AttemptContext;
use crate::extract::UnfinishedExtraction;
use crate::kind;
use crate::packets;
use crate::step_error::StepError;
use crate::supplier_memory::{find_history, lesson_of};
use crate::text_work::run_on_text;
use docmill_core::model::{
    Extraction, ExtractionMethod, IngestionStage, IngestionStatus, ModelUsage, OutcomeReason,
    RuleReport, Transcript,
};
use docmill_core::work_clock::wait_off_clock;
use docmill_gate::kinds::{ClassifiedKind, FieldRole, Kind, KindSet};
use docmill_gate::{self, EinvoiceState, GateLookups, SecondReading, SupplierHistory, Verdict};
use docmill_ledger::duplicate_key::{DuplicateKeys, NearKeys, PaymentFacts};
use docmill_ledger::supplier::SupplierLesson;
use docmill_ledger::{IngestionResult, NewChild, VerdictDetails};

/// The gate's inputs beside the data.
#[derive(Clone, Copy)]
pub(super) struct GateInput<'a> {
    /// Its kind, and what is doubtful about that.
    pub(super) classified: &'a ClassifiedKind,
    /// The state of an embedded e-invoice.
    pub(super) note: EinvoiceState,
    /// The transcript that the data was read from.
    pub(super) transcript: &'a Arc<Transcript>,
    /// A model was shown pictures of its pages.
    pub(super) pictures_shown: bool,
}

impl<'a> GateInput<'a> {
    /// Of a document of which nothing but the text was shown.
    pub(super) fn of_text(
        classified: &'a ClassifiedKind,
        note: EinvoiceState,
        transcript: &'a Arc<Transcript>,
    ) -> Self {
        Self { classified, note, transcript, pictures_shown: false }
    }
}

/// Readings of the same pages that an extraction is held against.
pub(super) struct OtherReadings {
    /// A service's.
    pub(super) second: Option<SecondReading>,
    /// The rules reader's, beside a model's.
    pub(super) rules: Option<Arc<Extraction>>,
}

/// Looks up the gate's inputs, and runs it.
///
/// # Errors
/// Ledger errors; rejected if judging the text takes too long.
pub(super) async fn judge_extraction(
    attempt: AttemptContext<'_>,
    input: GateInput<'_>,
    extraction: &Extraction,
    einvoice_rules: Option<Arc<RuleReport>>,
    others: OtherReadings,
) -> Result<Verdict, StepError> {
    let (ledger, claimed) = (&attempt.context.ledger, attempt.claimed);
    let (document, tenant) = (claimed.document.id, claimed.tenant.as_deref());
    // Duplicates that are only flagged are searched at recording, under the lock of the key.
    let asks = input.classified.kind.acts_on_duplicates();
    let duplicate_of = match document_keys(extraction, &input.classified.kind) {
        Some(keys) if asks => {
            wait_off_clock(ledger.find_duplicate(document, tenant, &keys)).await?
        }
        _ => None,
    };
    let asks = input.classified.kind.rules.iter().any(|rule| rule.check.asks_for_history());
    let history = match asks {
        true => find_history(attempt, &input.classified.kind, &extraction.data).await?,
        false => SupplierHistory::default(),
    };
    let own = attempt.own_companies().await?;
    let lookups = GateLookups {
        history,
        duplicate_of,
        today: claimed.claimed_at.date(),
        quality_threshold: attempt.config().ocr.quality_threshold,
        einvoice: input.note,
        einvoice_rules,
        pictures_shown: input.pictures_shown,
        own,
        second_reading: others.second,
        rules_reading: others.rules,
    };
    let is_exact = extraction.reader == ExtractionMethod::Einvoice;
    let (extraction, transcript) = (extraction.clone(), Arc::clone(input.transcript));
    let kind = Arc::clone(&input.classified.kind);
    let mut verdict = run_on_text(attempt.services(), move || {
        docmill_gate::judge_extraction(&extraction, &transcript, &kind, &lookups)
    })
    .await?;
    kind::note_ambiguity(input.classified.doubt, &mut verdict);
    packets::note_missing_pages(input.transcript, is_exact, &mut verdict);
    Ok(verdict)
}

/// The keys of a document, if its supplier and its number were read.
fn document_keys(extraction: &Extraction, kind: &Kind) -> Option<DuplicateKeys> {
    let [supplier, number, issued] =
        [FieldRole::SupplierName, FieldRole::DocumentNumber, FieldRole::IssueDate]
            .map(|role| extraction.data.get(kind.field_of(role)).and_then(Value::as_str));
    let keys = DuplicateKeys::new(supplier?, number?)?;
    Some(keys.of_issue(issued, &kind.name))
}

/// The keys that a near duplicate shares with a document.
fn near_keys(extraction: &Extraction, kind: &Kind) -> Option<NearKeys> {
    let [supplier, number, issued] =
        [FieldRole::SupplierName, FieldRole::DocumentNumber, FieldRole::IssueDate]
            .map(|role| extraction.data.get(kind.field_of(role)).and_then(Value::as_str));
    let total = extraction.data.get(kind.field_of(FieldRole::Total))?.as_number()?.to_string();
    let total = Some(total.as_str());
    NearKeys::new(&PaymentFacts { supplier, number, issued, total, kind: &kind.name })
}

/// The record of a judged extraction.
pub(super) fn judged_result(
    extraction: Extraction,
    kinds: &KindSet,
    verdict: &Verdict,
    sha256: Option<String>,
) -> IngestionResult {
    let refused = verdict.is_refused();
    let review_reasons = verdict.review_reasons();
    let kind = kinds.get(&extraction.kind);
    let duplicate_keys = kind.and_then(|kind| document_keys(&extraction, kind));
    let near_keys = kind.and_then(|kind| near_keys(&extraction, kind));
    IngestionResult {
        reason: refused.then_some(OutcomeReason::GateRefused),
        stage: IngestionStage::Record,
        needs_human_review: refused || !review_reasons.is_empty(),
        detail: if refused { review_reasons.join(", ") } else { String::new() },
        children: Vec::new(),
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
        duplicate_keys,
        near_rule: verdict.near_rule.clone(),
        near_keys,
        master_match: None,
        sha256,
        lesson: None,
        einvoice_rules: None,
        einvoice_reference: None,
        hooks: None,
    }
}

/// The lesson about its supplier of an e-invoice without any doubt.
pub(super) fn exact_lesson(
    record: &IngestionResult,
    kinds: &KindSet,
    tenant: Option<&str>,
) -> Option<SupplierLesson> {
    let is_exact = record.reader.as_deref() == Some(ExtractionMethod::Einvoice.code())
        && record.reason.is_none()
        && !record.needs_human_review;
    let (kind, data) = (kinds.get(record.kind.as_deref()?)?, record.structured_data.as_ref()?);
    lesson_of(kind, tenant, data).filter(|_| is_exact)
}

/// The reader of a container, which has no data of its own.
const CONTAINER_READER: &str = "container";

/// The end of a container: it is complete with the documents found in it.
pub(super) fn container_result(sha256: String, children: Vec<NewChild>) -> IngestionResult {
    let detail = format!("{} documents were found in it", children.len());
    IngestionResult {
        reason: None,
        needs_human_review: false,
        review_reasons: Vec::new(),
        reader: Some(CONTAINER_READER.to_owned()),
        sha256: Some(sha256),
        children,
        ..early_result(OutcomeReason::Empty, IngestionStage::Record, detail)
    }
}

/// The record of an unacceptable model answer, with the partial data for the reviewer.
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

/// The record of an ingestion that ended before its extraction.
pub fn early_result(
    reason: OutcomeReason,
    stage: IngestionStage,
    detail: String,
) -> IngestionResult {
    // A cancelled ingestion needs no review; every failed one does.
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
        duplicate_keys: None,
        lesson: None,
        einvoice_rules: None,
        einvoice_reference: None,
        hooks: None,
        near_rule: None,
        near_keys: None,
        master_match: None,
        detail,
        children: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use docmill_core::config::KindsConfig;
    use docmill_core::model::StatedConfidence;
    use serde_json::json;

    use super::*;

    fn read(kind: &str, data: Value) -> Extraction {
        Extraction {
            reader: ExtractionMethod::Rules,
            model: None,
            kind: kind.to_owned(),
            data: data.as_object().cloned().unwrap_or_default(),
            successful: true,
            confidence: StatedConfidence::High,
            missing_fields: Vec::new(),
            evidence: Vec::new(),
            certainties: Vec::new(),
            usage: ModelUsage::default(),
        }
    }

    #[test]
    fn a_result_is_found_again_by_its_supplier_and_its_number_alone() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        for (kind, data, found) in [
            (
                "invoice",
                json!({"supplier_name": "x", "invoice_number": "1", "invoice_date": "2025-02-18"}),
                true,
            ),
            ("unheard_of", json!({"supplier_name": "x", "invoice_number": "1"}), false),
            ("invoice", json!({"supplier_name": "x"}), false),
            ("invoice", json!({"supplier_name": "x", "invoice_number": 1}), false),
        ] {
            let result = judged_result(read(kind, data.clone()), &kinds, &Verdict::default(), None);
            let keys = DuplicateKeys::new("x", "1")
                .map(|keys| keys.of_issue(Some("2025-02-18"), "invoice"));
            let keys = keys.filter(|_| found);
            assert_eq!(result.duplicate_keys, keys, "{kind} {data}");
        }
    }
}
