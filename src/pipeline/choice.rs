//! A document whose kind the cheap signs leave open: a model chooses among the kinds that tie, in
//! one short call that is paid for, stored and counted like every other.
//!
//! The reply lies beside the other artefacts, found by its identity; no row refers to it. Without a
//! model, and after an answer that is none, the tie stays and a person looks.

use std::sync::Arc;

use async_trait::async_trait;

use crate::extract::{self, Choice, Journal, Replies};
use crate::fault;
use crate::kinds::{Classified, Doubt, Kind, Kinds};
use crate::llm::chain::{Chain, Rung};
use crate::metrics;
use crate::model::Usage;
use crate::pipeline::artefact::Slot;
use crate::pipeline::context::AttemptContext;
use crate::pipeline::cost::CallsBook;
use crate::pipeline::step_error::StepError;
use crate::pipeline::transcribe::Transcribed;
use crate::store::keys;

/// The kinds that tie and the model that is asked; none where there is no tie or no model for them.
fn open(models: &Chain, told: &Classified) -> Option<(Vec<Arc<Kind>>, Rung)> {
    if told.doubt != Some(Doubt::Tie) {
        return None;
    }
    let rung = models.for_kind(&told.kind.name).into_iter().next()?;
    let kinds = [&told.kind].into_iter().chain(&told.rivals).cloned().collect();
    Some((kinds, rung))
}

/// What the kind is after a model has spoken.
fn settled(all: &Kinds, told: Classified, kinds: &[Arc<Kind>], choice: &Choice) -> Classified {
    let now = match choice {
        Choice::Kind(at) => kinds.get(*at).cloned().map(Classified::certain),
        Choice::Neither => all.unknown(),
        Choice::Nothing => None,
    };
    metrics::kind_asked(if now.is_some() { "settled" } else { "open" });
    now.unwrap_or(told)
}

/// Settles a tie of a document, if there is one and a model to ask; and the tokens it took.
///
/// # Errors
/// Faults of store, ledger and model; a lost claim.
pub(super) async fn settle(
    attempt: AttemptContext<'_>,
    transcribed: &Transcribed,
    told: Classified,
) -> Result<(Classified, Usage), StepError> {
    let services = attempt.services();
    let asked = open(&services.models, &told).filter(|_| services.config.kinds.ask_on_ties);
    let Some((kinds, rung)) = asked else { return Ok((told, Usage::default())) };
    let llm = rung.llm.as_ref();
    let identity = extract::choice_identity(&transcribed.identity, llm, &kinds);
    let key = keys::kind_choice(attempt.claim.id);
    let slot = Slot::open(attempt.artefacts(), key, identity.clone()).await?;
    let book = CallsBook::new(attempt.spending_book(), llm);
    let mut journal = StoredChoice { attempt, slot, book };
    let transcript = &transcribed.transcript;
    let (choice, usage) = extract::choose(llm, &kinds, transcript, &identity, &mut journal).await?;
    Ok((settled(&services.kinds, told, &kinds, &choice), usage))
}

/// The journal of the one call.
struct StoredChoice<'a> {
    attempt: AttemptContext<'a>,
    slot: Slot<Replies>,
    book: CallsBook<'a>,
}

#[async_trait]
impl Journal for StoredChoice<'_> {
    async fn load(&mut self) -> fault::Result<Option<Replies>> {
        let kept = self.slot.content.clone();
        self.book.begin(kept.as_ref());
        Ok(kept)
    }

    async fn ready(&mut self) -> fault::Result<()> {
        self.book.allow().await?;
        self.attempt.claim.ensure_live().await
    }

    async fn save(&mut self, replies: &Replies) -> fault::Result<()> {
        // Paid for, whether or not it can be kept; kept, whether or not that can be written down.
        let booked = self.book.book(replies).await;
        let AttemptContext { claim, .. } = self.attempt;
        self.slot.write(self.attempt.artefacts(), claim, replies.clone()).await?;
        booked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KindsConfig;

    #[test]
    fn a_model_settles_a_tie_or_leaves_it_to_a_person() {
        let all = Kinds::load(&KindsConfig::default()).unwrap();
        let kinds: Vec<Arc<Kind>> =
            ["receipt", "invoice"].map(|name| Arc::clone(all.get(name).unwrap())).into();
        let told = Classified {
            kind: Arc::clone(&kinds[0]),
            doubt: Some(Doubt::Tie),
            rivals: vec![Arc::clone(&kinds[1])],
        };
        for (choice, kind, doubt) in [
            (Choice::Kind(0), "receipt", None),
            (Choice::Kind(1), "invoice", None),
            (Choice::Neither, "generic", Some(Doubt::Unknown)),
            (Choice::Nothing, "receipt", Some(Doubt::Tie)),
        ] {
            let now = settled(&all, told.clone(), &kinds, &choice);
            assert_eq!((now.kind.name.as_str(), now.doubt), (kind, doubt), "{choice:?}");
        }
        assert!(open(&Chain::default(), &told).is_none(), "no model, nobody to ask");
    }
}
