//! Resolves a tie between kinds: a model chooses among them in one short call, which is paid for,
//! stored and counted like every other.
//!
//! Without a model, or after an invalid answer, the tie remains and a person decides.

use std::sync::Arc;

use crate::context::AttemptContext;
use crate::extract::lay_out;
use crate::question_journal::QuestionJournal;
use crate::step_error::StepError;
use crate::transcribe::TranscribedDocument;
use docmill_core::metrics;
use docmill_core::model::ModelUsage;
use docmill_extract::{self, KindChoice};
use docmill_gate::kinds::{ClassifiedKind, Kind, KindAmbiguity, KindSet};
use docmill_llm::chain::{ChainModel, ModelChain};
use docmill_storage::keys;

/// The tied kinds and the model to ask; `None` without a tie or a model for them.
fn find_tie(
    models: &ModelChain,
    classified: &ClassifiedKind,
) -> Option<(Vec<Arc<Kind>>, ChainModel)> {
    if classified.doubt != Some(KindAmbiguity::Tie) || classified.rivals.is_empty() {
        return None;
    }
    let model = models.for_kind(&classified.kind.name).into_iter().next()?;
    let kinds = [&classified.kind].into_iter().chain(&classified.rivals).cloned().collect();
    Some((kinds, model))
}

/// The kind after the model's answer.
fn apply_choice(
    all: &KindSet,
    classified: ClassifiedKind,
    kinds: &[Arc<Kind>],
    choice: &KindChoice,
) -> ClassifiedKind {
    let now = match choice {
        KindChoice::Kind(at) => kinds.get(*at).cloned().map(ClassifiedKind::certain),
        KindChoice::Neither => all.generic_kind(),
        KindChoice::Nothing => None,
    };
    metrics::kind_asked(if now.is_some() { "settled" } else { "open" });
    now.unwrap_or(classified)
}

/// Resolves a tie of a document, if there is one and a model to ask; also returns the tokens used.
///
/// # Errors
/// Faults of store, ledger and model; a lost claim.
pub(super) async fn resolve_tie(
    attempt: AttemptContext<'_>,
    transcribed: &TranscribedDocument,
    classified: ClassifiedKind,
) -> Result<(ClassifiedKind, ModelUsage), StepError> {
    let services = attempt.services();
    let asked =
        find_tie(&services.models, &classified).filter(|_| services.config.kinds.ask_on_ties);
    let Some((kinds, model)) = asked else { return Ok((classified, ModelUsage::default())) };
    let llm = model.llm.as_ref();
    let identity = docmill_extract::choice_identity(&transcribed.identity, llm, &kinds);
    let key = keys::kind_choice_key(attempt.claim.id);
    let mut journal = QuestionJournal::load(attempt, llm, key, &identity).await?;
    let shown = lay_out(services, &transcribed.transcript).await?;
    let (choice, usage) =
        docmill_extract::choose_kind(llm, &kinds, &shown, &identity, &mut journal).await?;
    Ok((apply_choice(&services.kinds, classified, &kinds, &choice), usage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;

    #[test]
    fn a_model_settles_a_tie_or_leaves_it_to_a_person() {
        let all = KindSet::load(&KindsConfig::default()).unwrap();
        let kinds: Vec<Arc<Kind>> =
            ["receipt", "invoice"].map(|name| Arc::clone(all.get(name).unwrap())).into();
        let classified = ClassifiedKind {
            kind: Arc::clone(&kinds[0]),
            doubt: Some(KindAmbiguity::Tie),
            rivals: vec![Arc::clone(&kinds[1])],
        };
        for (choice, kind, doubt) in [
            (KindChoice::Kind(0), "receipt", None),
            (KindChoice::Kind(1), "invoice", None),
            (KindChoice::Neither, "generic", Some(KindAmbiguity::Unknown)),
            (KindChoice::Nothing, "receipt", Some(KindAmbiguity::Tie)),
        ] {
            let now = apply_choice(&all, classified.clone(), &kinds, &choice);
            assert_eq!((now.kind.name.as_str(), now.doubt), (kind, doubt), "{choice:?}");
        }
        assert!(find_tie(&ModelChain::default(), &classified).is_none(), "no model, nobody to ask");
    }
}
