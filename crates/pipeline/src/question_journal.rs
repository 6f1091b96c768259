//! The journal of short questions to a model before a document is read: its kind, its boundaries.
//!
//! The replies to a question are an artefact of the ingestion, found by their identity; no row refers to it.

use async_trait::async_trait;

use crate::artefact::ArtefactSlot;
use crate::context::AttemptContext;
use crate::cost::LlmCallBilling;
use docmill_core::fault;
use docmill_core::model::ModelUsage;
use docmill_extract::{RecordedReplies, ReplyJournal};
use docmill_llm::{Llm, Prompt};

/// Replies under one key: stored before they are used, and booked.
pub(super) struct QuestionJournal<'a> {
    attempt: AttemptContext<'a>,
    slot: ArtefactSlot<RecordedReplies>,
    book: LlmCallBilling<'a>,
}

impl<'a> QuestionJournal<'a> {
    /// Loads the replies that an earlier attempt stored under this key with this identity.
    ///
    /// # Errors
    /// Store errors.
    pub(super) async fn load(
        attempt: AttemptContext<'a>,
        llm: &'a dyn Llm,
        key: String,
        identity: &str,
    ) -> fault::Result<Self> {
        let pool = &attempt.services().pool;
        let slot = ArtefactSlot::load(attempt.artefacts(), pool, key, identity.to_owned()).await?;
        let book = LlmCallBilling::new(attempt.spending_book(), llm);
        Ok(Self { attempt, slot, book })
    }
}

#[async_trait]
impl ReplyJournal for QuestionJournal<'_> {
    async fn load_replies(&mut self) -> fault::Result<Option<RecordedReplies>> {
        let kept = self.slot.content.clone();
        self.book.skip_paid(kept.as_ref());
        Ok(kept)
    }

    async fn may_call(&mut self, prompt: &Prompt) -> fault::Result<bool> {
        let may = self.book.may_call(prompt).await?;
        self.attempt.claim.ensure_live().await?;
        Ok(may)
    }

    async fn book_unkept(&mut self, usage: ModelUsage) -> fault::Result<()> {
        self.book.book_unkept(usage).await
    }

    async fn save_replies(&mut self, replies: &RecordedReplies) -> fault::Result<()> {
        // Paid, whether or not it can be stored; stored, whether or not that can be booked.
        let booked = self.book.book(replies).await;
        let AttemptContext { claim, .. } = self.attempt;
        self.slot.write(self.attempt.artefacts(), claim, replies.clone()).await?;
        booked
    }
}
