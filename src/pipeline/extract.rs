//! Transcribed to extracted: the model where one is configured, the rules reader otherwise.
//!
//! Every reply of a model is stored and referenced before it is used, so that a crash between the
//! reply and its record costs nothing twice.

use std::sync::Arc;

use async_trait::async_trait;

use crate::extract::{self, ExtractError, Journal, Replies};
use crate::fault::{self, Fault};
use crate::kinds::Kind;
use crate::ledger::Held;
use crate::model::{Claimed, Extraction, Reason, Usage};
use crate::pipeline::artefact::Slot;
use crate::pipeline::cost::CallsBook;
use crate::pipeline::transcribe::Transcribed;
use crate::pipeline::{Hold, Ports, StepError};
use crate::store::keys;

/// What a reader made of the transcript.
#[derive(Debug)]
pub(super) enum Extracted {
    /// Everything it was asked for; the gate says whether that is acceptable.
    Whole(Extraction),
    /// The model answered, but not acceptably, and would again.
    Unfinished {
        /// The code that goes into the row.
        reason: Reason,
        /// For operators.
        detail: String,
        /// What there is of it, for the reviewer.
        partial: Option<Box<Extraction>>,
        /// Tokens spent.
        usage: Usage,
        /// The model that answered.
        model: Option<String>,
    },
}

/// Turns the transcript into structured data.
///
/// # Errors
/// Faults of store, ledger and model; a lost claim.
pub(super) async fn extract(
    ports: &Ports,
    (claimed, hold): (&Claimed, &Hold),
    kind: &Arc<Kind>,
    transcribed: &Transcribed,
) -> Result<Extracted, StepError> {
    let Some(llm) = &ports.llm else {
        let (kind, transcript) = (Arc::clone(kind), Arc::clone(&transcribed.transcript));
        let read = move || extract::rules::extract(&transcript, &kind);
        return Ok(Extracted::Whole(ports.pool.run(read).await?));
    };
    let identity = extract::identity(&transcribed.identity, llm.as_ref(), kind);
    let terms = ports.config.terms(identity.clone());
    let mut slot =
        Slot::open(ports.store.as_ref(), keys::extraction(hold.id), identity.clone()).await?;
    if claimed.extraction.as_ref().is_none_or(|stored| stored.identity != identity) {
        // Not referenced by the row: an operator reopened it and wants the model asked again.
        slot.content = None;
    }
    let costs = (ports.config.costs.as_ref(), ports.ledger.as_ref());
    let book = CallsBook::new(costs, claimed, llm.as_ref());
    let mut journal = StoredReplies { ports, hold, slot, book, lost: false };
    let transcript = &transcribed.transcript;
    let asked = extract::ask(llm.as_ref(), kind, transcript, &terms, &mut journal).await;
    if journal.lost {
        return Err(StepError::ClaimLost);
    }
    extracted(asked)
}

/// Sorts the endings of an extraction into those of a step.
pub(super) fn extracted(asked: Result<Extraction, ExtractError>) -> Result<Extracted, StepError> {
    match asked {
        Ok(extraction) => Ok(Extracted::Whole(extraction)),
        Err(ExtractError::Fault(fault)) => Err(fault.into()),
        Err(ExtractError::Ended { ending, partial, usage, model }) => {
            let (reason, detail) = (ending.reason(), ending.to_string());
            Ok(Extracted::Unfinished { reason, detail, partial, usage, model })
        }
    }
}

/// The journal of a claimed ingestion: one artefact, referenced by the row.
struct StoredReplies<'a> {
    ports: &'a Ports,
    hold: &'a Hold,
    slot: Slot<Replies>,
    book: CallsBook<'a>,
    /// The claim was lost while writing; the port's error type cannot say so.
    lost: bool,
}

impl StoredReplies<'_> {
    async fn store(&mut self, replies: &Replies) -> Result<(), StepError> {
        self.slot.write(self.ports.store.as_ref(), self.hold, replies.clone()).await?;
        let reference = self.slot.reference();
        let (id, token) = (self.hold.id, self.hold.token);
        match self.ports.ledger.save_extraction(id, token, &reference).await? {
            Held::Yes => Ok(()),
            Held::Lost => Err(StepError::ClaimLost),
        }
    }

    fn fault_of(&mut self, error: StepError) -> fault::Error {
        match error {
            StepError::Fault(fault) => fault,
            StepError::ClaimLost => {
                self.lost = true;
                fault::Error::new(Fault::Interrupted, "the claim is lost")
            }
            StepError::Rejected { .. } => fault::Error::internal("storing a reply was rejected"),
        }
    }
}

#[async_trait]
impl Journal for StoredReplies<'_> {
    async fn load(&mut self) -> fault::Result<Option<Replies>> {
        let kept = self.slot.content.take();
        self.book.begin(kept.as_ref());
        Ok(kept)
    }

    async fn ready(&mut self) -> fault::Result<()> {
        self.book.allow().await?;
        self.hold.live().await.map_err(|error| self.fault_of(error))
    }

    async fn save(&mut self, replies: &Replies) -> fault::Result<()> {
        // Paid for, whether or not it can be kept; and kept, whether or not it can be written down.
        let booked = self.book.book(replies).await;
        self.store(replies).await.map_err(|error| self.fault_of(error))?;
        booked
    }
}
