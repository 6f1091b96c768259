//! A document whose kind the cheap signs leave open: a model chooses among the kinds that tie, in
//! one short call that is paid for, stored and counted like every other.
//!
//! The reply lies beside the other artefacts, found by its identity; no row refers to it. Without a
//! model, and after an answer that is none, the tie stays and a person looks.

use std::sync::Arc;

use async_trait::async_trait;

use super::cost::CallsBook;
use super::extract::fault_of;
use super::transcribe::Transcribed;
use super::{Hold, Ports, StepError};
use crate::extract::{self, Choice, Journal, Replies};
use crate::fault;
use crate::kinds::{Classified, Doubt, Kind, Kinds};
use crate::llm::chain::{Chain, Rung};
use crate::metrics;
use crate::model::{Claimed, Usage};
use crate::pipeline::artefact::Slot;
use crate::store::keys;

/// The kinds that tie and the model that is asked; none where there is no tie or no model for them.
pub(super) fn open(models: &Chain, told: &Classified) -> Option<(Vec<Arc<Kind>>, Rung)> {
    if told.doubt != Some(Doubt::Tie) {
        return None;
    }
    let rung = models.for_kind(&told.kind.name).into_iter().next()?;
    let kinds = [&told.kind].into_iter().chain(&told.rivals).cloned().collect();
    Some((kinds, rung))
}

/// What the kind is after a model has spoken.
pub(super) fn settled(
    all: &Kinds,
    told: Classified,
    (kinds, choice): (&[Arc<Kind>], &Choice),
) -> Classified {
    let now = match choice {
        Choice::Kind(at) => kinds.get(*at).cloned().map(Classified::certain),
        Choice::Neither => all.unknown(),
        Choice::Nothing => None,
    };
    metrics::kind_asked(if now.is_some() { "settled" } else { "open" });
    now.unwrap_or(told)
}

/// Settles a tie of a claimed ingestion, if there is one and a model to ask; and the tokens it took.
///
/// # Errors
/// Faults of store, ledger and model; a lost claim.
pub(super) async fn settle(
    (ports, hold): (&Ports, &Hold),
    claimed: &Claimed,
    transcribed: &Transcribed,
    told: Classified,
) -> Result<(Classified, Usage), StepError> {
    let asked = open(&ports.models, &told).filter(|_| ports.config.ask_on_ties);
    let Some((kinds, rung)) = asked else { return Ok((told, Usage::default())) };
    let llm = rung.llm.as_ref();
    let identity = extract::choice_identity(&transcribed.identity, llm, &kinds);
    let key = keys::kind_choice(hold.id);
    let slot = Slot::open(ports.store.as_ref(), key, identity.clone()).await?;
    let costs = (ports.config.costs.as_ref(), ports.ledger.as_ref());
    let book = CallsBook::new(costs, (claimed.id, claimed.claims), llm);
    let mut journal = StoredChoice { ports, hold, slot, book, lost: false };
    let transcript = &transcribed.transcript;
    let chosen = extract::choose(llm, &kinds, transcript, &identity, &mut journal).await;
    if journal.lost {
        return Err(StepError::ClaimLost);
    }
    let (choice, usage) = chosen?;
    Ok((settled(&ports.kinds, told, (&kinds, &choice)), usage))
}

/// The journal of the one call.
struct StoredChoice<'a> {
    ports: &'a Ports,
    hold: &'a Hold,
    slot: Slot<Replies>,
    book: CallsBook<'a>,
    /// The claim was lost while writing; the port's error type cannot say so.
    lost: bool,
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
        self.hold.live().await.map_err(|error| fault_of(error, &mut self.lost))
    }

    async fn save(&mut self, replies: &Replies) -> fault::Result<()> {
        // Paid for, whether or not it can be kept; kept, whether or not that can be written down.
        let booked = self.book.book(replies).await;
        let written = self.slot.write(self.ports.store.as_ref(), self.hold, replies.clone()).await;
        written.map_err(|error| fault_of(error, &mut self.lost))?;
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
            let now = settled(&all, told.clone(), (&kinds, &choice));
            assert_eq!((now.kind.name.as_str(), now.doubt), (kind, doubt), "{choice:?}");
        }
        assert!(open(&Chain::default(), &told).is_none(), "no model, nobody to ask");
    }
}
