//! Extracted to recorded: asks the gate, and writes down what follows from its verdict.
//!
//! The record table of the design is here and nowhere else.

use std::sync::Arc;

use crate::fault;
use crate::gate::{self, Einvoice, Lookups, Verdict};
use crate::kinds::Classified;
use crate::ledger::{Judged, Record};
use crate::model::{Extraction, Reader, Reason, Stage, Status, Transcript, Usage};
use crate::pipeline::context::AttemptContext;
use crate::pipeline::extract::Unfinished;
use crate::pipeline::kind;

/// What the gate has to know of a document beside its data.
#[derive(Clone, Copy)]
pub(super) struct GateInput<'a> {
    /// Its kind, and what is doubtful about that.
    pub(super) told: &'a Classified,
    /// What is known of an e-invoice it carries.
    pub(super) note: Einvoice,
    /// What was read.
    pub(super) transcript: &'a Arc<Transcript>,
}

/// Looks up what the gate needs to know, and asks it.
///
/// # Errors
/// What the ledger says.
pub(super) async fn judge(
    attempt: AttemptContext<'_>,
    input: GateInput<'_>,
    extraction: &Extraction,
) -> fault::Result<Verdict> {
    let (ledger, claimed) = (&attempt.context.ledger, attempt.claimed);
    let (document, tenant) = (claimed.document.id, claimed.tenant.as_deref());
    let text = |field: &str| extraction.data.get(field).and_then(serde_json::Value::as_str);
    let duplicate = async {
        match (text("supplier_name"), text("invoice_number")) {
            (Some(supplier), Some(number)) => {
                ledger.find_duplicate(document, tenant, supplier, number).await
            }
            _ => Ok(None),
        }
    };
    let (duplicate_of, now) = futures::future::try_join(duplicate, ledger.now()).await?;
    let lookups = Lookups {
        duplicate_of,
        today: now.date(),
        quality_threshold: attempt.config().ocr.quality_threshold,
        einvoice: input.note,
    };
    let mut verdict = gate::judge(extraction, input.transcript, &input.told.kind, &lookups);
    kind::note(input.told.doubt, &mut verdict);
    Ok(verdict)
}

/// What is recorded of an extraction the gate has judged.
pub fn record(extraction: Extraction, verdict: &Verdict, sha256: Option<String>) -> Record {
    let refused = verdict.refused();
    let review_reasons = verdict.review_reasons();
    Record {
        reason: refused.then_some(Reason::GateRefused),
        stage: Stage::Record,
        needs_human_review: refused || !review_reasons.is_empty(),
        detail: if refused { review_reasons.join(", ") } else { String::new() },
        review_reasons,
        structured_data: Some(extraction.data),
        reader: Some(extraction.reader.code().to_owned()),
        kind: Some(extraction.kind),
        model: extraction.model.filter(|_| extraction.reader == Reader::Llm),
        usage: extraction.usage,
        judged: Some(Judged { score: verdict.score, grounded: verdict.grounded.clone() }),
        sha256,
    }
}

/// What is recorded when the model answered, but not acceptably: the partial data is kept for the
/// reviewer.
pub(super) fn unfinished(unfinished: Unfinished) -> Record {
    let Unfinished { reason, detail, partial, usage, model } = unfinished;
    let (kind, data) = match partial {
        Some(partial) => (Some(partial.kind), Some(partial.data)),
        None => (None, None),
    };
    Record {
        structured_data: data,
        reader: Some(Reader::Llm.code().to_owned()),
        kind,
        model,
        usage,
        ..ended(reason, Stage::Extract, detail)
    }
}

/// What is recorded of an ingestion that ended before there was an extraction.
pub fn ended(reason: Reason, stage: Stage, detail: String) -> Record {
    // A withdrawn ingestion needs nobody's eyes; every failed one does.
    let needs_human_review = reason.status() == Status::Failed;
    let review_reasons = if needs_human_review { vec![reason.code().to_owned()] } else { vec![] };
    Record {
        reason: Some(reason),
        stage,
        structured_data: None,
        needs_human_review,
        review_reasons,
        reader: None,
        kind: None,
        model: None,
        usage: Usage::default(),
        judged: None,
        sha256: None,
        detail,
    }
}
