//! Which kind a document is read as: the one its producer named, else the one its words indicate.

use std::sync::Arc;

use crate::context::AttemptContext;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use docmill_core::fault;
use docmill_core::model::Transcript;
use docmill_gate::kinds::{ClassifiedKind, Kind, KindAmbiguity, RuleConsequence};
use docmill_gate::{GateFinding, Verdict};

/// The kind that the producer named, or the configured one.
///
/// # Errors
/// There is no kind of that name.
pub(super) fn named_kind(attempt: AttemptContext<'_>) -> fault::Result<Arc<Kind>> {
    let name = attempt.claimed.kind.as_deref();
    attempt.services().kinds.for_name(name).cloned().ok_or_else(|| {
        // Fixed by adding the kind, so the document keeps its chances.
        let name = name.unwrap_or_default();
        fault::Error::internal(format!("the kind `{name}` is not among the configured kinds"))
    })
}

/// `requested_kind`, unless the kind is to be determined from the document.
///
/// # Errors
/// Rejected if its text takes too long to look through.
pub(super) async fn resolve_kind(
    attempt: AttemptContext<'_>,
    requested_kind: &Arc<Kind>,
    transcript: &Arc<Transcript>,
) -> Result<ClassifiedKind, StepError> {
    let mut classified = None;
    if attempt.config().kinds.classify && attempt.claimed.kind.is_none() {
        let (kinds, transcript) = (Arc::clone(&attempt.services().kinds), Arc::clone(transcript));
        classified = run_on_text(attempt.services(), move || kinds.classify(&transcript)).await?;
    }
    Ok(classified.unwrap_or_else(|| ClassifiedKind::certain(Arc::clone(requested_kind))))
}

/// Adds doubts about the kind to a verdict: an unknown kind is refused, an ambiguous one is
/// flagged.
pub(super) fn note_ambiguity(doubt: Option<KindAmbiguity>, verdict: &mut Verdict) {
    verdict.findings.extend(doubt.map(|doubt| GateFinding {
        rule: doubt.review_reason().to_owned(),
        field: None,
        consequence: match doubt {
            KindAmbiguity::Unknown => RuleConsequence::Review,
            KindAmbiguity::Tie => RuleConsequence::Flag,
        },
    }));
}
