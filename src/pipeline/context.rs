//! What the steps work with: services that a process has once, the three backends that differ from
//! one way of running docmill to another, and the attempt at hand.

use std::sync::Arc;

use crate::config::Config;
use crate::cpu::Pool;
use crate::extract::Terms;
use crate::fault;
use crate::kinds::Kinds;
use crate::ledger::{AttemptLedger, Held, TranscriptionSaved};
use crate::llm::chain::Chain;
use crate::model::{ArtefactRef, Claimed};
use crate::pipeline::byte_budget::ByteBudget;
use crate::pipeline::claim_handle::ClaimHandle;
use crate::pipeline::cost::{Costs, SpendingBook};
use crate::pipeline::reading::Reader;
use crate::store::Store;

/// What a process has once for all its documents.
pub struct PipelineServices {
    /// Bytes to transcript.
    pub reader: Arc<Reader>,
    /// CPU work.
    pub pool: Arc<Pool>,
    /// The models; none: the rules reader.
    pub models: Chain,
    /// Kinds of documents.
    pub kinds: Arc<Kinds>,
    /// Bytes of documents in memory.
    pub budget: ByteBudget,
    /// Prices and the day's budget.
    pub costs: Arc<Costs>,
    /// The settings.
    pub config: Arc<Config>,
    /// Read the pages alone, whatever XML the document carries.
    pub ignore_xml: bool,
}

impl PipelineServices {
    /// What bounds the calls about one transcript.
    pub(super) fn terms(&self, identity: String, max_output_tokens: u32) -> Terms {
        let (limits, llm) = (&self.config.limits, &self.config.llm);
        let (prompt_tokens, parts_at_once) = (limits.prompt_tokens, llm.parts_at_once);
        Terms { identity, prompt_tokens, max_output_tokens, parts_at_once }
    }
}

/// Everything the steps work with.
#[derive(Clone)]
pub struct PipelineContext {
    /// Where originals are fetched.
    pub documents: Arc<dyn Store>,
    /// Where transcripts, replies and finished pages are kept, and found again by a later attempt.
    pub artefacts: Arc<dyn Store>,
    /// What the attempt asks, and writes down of itself.
    pub ledger: Arc<dyn AttemptLedger>,
    /// The rest.
    pub services: Arc<PipelineServices>,
}

/// One attempt at one document.
#[derive(Clone, Copy)]
pub(super) struct AttemptContext<'a> {
    /// What it works with.
    pub(super) context: &'a PipelineContext,
    /// The document, and what earlier attempts have left of it.
    pub(super) claimed: &'a Claimed,
    /// The right to it.
    pub(super) claim: &'a ClaimHandle,
}

impl<'a> AttemptContext<'a> {
    pub(super) fn services(&self) -> &'a PipelineServices {
        &self.context.services
    }

    pub(super) fn config(&self) -> &'a Config {
        &self.context.services.config
    }

    pub(super) fn artefacts(&self) -> &'a dyn Store {
        self.context.artefacts.as_ref()
    }

    /// Where what this attempt spends is written down.
    pub(super) fn spending_book(&self) -> SpendingBook<'a> {
        let (costs, ledger) = (&self.context.services.costs, &self.context.ledger);
        SpendingBook { costs, ledger: ledger.as_ref(), claimed: self.claimed }
    }

    /// References a stored transcript.
    ///
    /// # Errors
    /// What the ledger says; a lost claim.
    pub(super) async fn save_transcription(&self, saved: &TranscriptionSaved) -> fault::Result<()> {
        let ledger = &self.context.ledger;
        held(ledger.save_transcription(self.claim.id, self.claim.token, saved).await?)
    }

    /// References stored replies of models.
    ///
    /// # Errors
    /// What the ledger says; a lost claim.
    pub(super) async fn save_extraction(&self, artefact: &ArtefactRef) -> fault::Result<()> {
        let ledger = &self.context.ledger;
        held(ledger.save_extraction(self.claim.id, self.claim.token, artefact).await?)
    }
}

fn held(held: Held) -> fault::Result<()> {
    match held {
        Held::Yes => Ok(()),
        Held::Lost => Err(fault::Error::claim_lost()),
    }
}
