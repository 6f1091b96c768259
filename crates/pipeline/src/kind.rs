//! Which kind a document is read as: the one its producer named, else the one its words indicate.

use std::sync::Arc;

use serde_json::Value;

use crate::context::AttemptContext;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use docmill_core::fault;
use docmill_core::model::{Extraction, Transcript};
use docmill_extract::einvoice;
use docmill_gate::kinds::{ClassifiedKind, FieldRole, Kind, KindAmbiguity, RuleConsequence};
use docmill_gate::{GateFinding, Verdict};

/// The kind that a hook or the producer named, or the configured one.
///
/// # Errors
/// There is no kind of that name.
pub(super) fn named_kind(attempt: AttemptContext<'_>) -> fault::Result<Arc<Kind>> {
    let name = attempt.kind_name();
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
    if attempt.config().kinds.classify && attempt.kind_name().is_none() {
        let (kinds, transcript) = (Arc::clone(&attempt.services().kinds), Arc::clone(transcript));
        classified = run_on_text(attempt.services(), move || kinds.classify(&transcript)).await?;
    }
    Ok(classified.unwrap_or_else(|| ClassifiedKind::certain(Arc::clone(requested_kind))))
}

/// Codes of invoices and credit notes that the customer wrote (UNTDID 1001): in German both are titled as
/// credit notes are.
const SELF_BILLED: [&str; 2] = ["389", "261"];

/// The kind of an e-invoice, in doubt if its pages are clearly of another one: a credit note beside the
/// page of an invoice is no proof of either.
///
/// # Errors
/// Rejected if its text takes too long to look through.
pub(super) async fn check_einvoice_kind(
    attempt: AttemptContext<'_>,
    extraction: &Extraction,
    kind: Arc<Kind>,
    transcript: &Arc<Transcript>,
) -> Result<ClassifiedKind, StepError> {
    let own = ClassifiedKind::certain(kind);
    let pages = resolve_kind(attempt, &own.kind, transcript).await?;
    let written = extraction.data.get(own.kind.field_of(FieldRole::DocumentType));
    let is_self_billed =
        written.and_then(Value::as_str).is_some_and(|it| SELF_BILLED.contains(&it));
    Ok(if !is_self_billed && is_clearly_other(&own.kind, &pages) {
        ClassifiedKind { doubt: Some(KindAmbiguity::OtherPages), ..own }
    } else {
        own
    })
}

/// Whether pages are without doubt of another kind that e-invoices have.
fn is_clearly_other(own: &Kind, pages: &ClassifiedKind) -> bool {
    pages.doubt.is_none()
        && pages.kind.name != own.name
        && einvoice::kind_uses_einvoice(&pages.kind)
}

/// Adds doubts about the kind to a verdict: an unknown kind is refused, an ambiguous one is
/// flagged.
pub(super) fn note_ambiguity(doubt: Option<KindAmbiguity>, verdict: &mut Verdict) {
    verdict.findings.extend(doubt.map(|doubt| GateFinding {
        rule: doubt.review_reason().to_owned(),
        field: doubt.review_field().map(str::to_owned),
        consequence: match doubt {
            KindAmbiguity::Unknown => RuleConsequence::Review,
            KindAmbiguity::Tie | KindAmbiguity::OtherPages => RuleConsequence::Flag,
        },
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn pages_of_another_kind_that_e_invoices_have_are_a_doubt_and_uncertain_ones_are_none() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let certain = |name: &str| ClassifiedKind::certain(Arc::clone(kinds.get(name).unwrap()));
        let tied = ClassifiedKind { doubt: Some(KindAmbiguity::Tie), ..certain("credit_note") };
        for (pages, expected) in [
            (certain("credit_note"), true),
            (certain("invoice"), false),
            (certain("contract"), false),
            (tied, false),
        ] {
            let own = kinds.get("invoice").unwrap();
            assert_eq!(is_clearly_other(own, &pages), expected, "{}", pages.kind.name);
        }
        let mut verdict = Verdict::default();
        note_ambiguity(Some(KindAmbiguity::OtherPages), &mut verdict);
        assert_eq!(verdict.review_reasons(), ["einvoice_contradicts_page:kind"]);
        assert!(!verdict.is_refused());
    }
}
