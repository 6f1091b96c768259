//! Model replies as they are stored, before they are used.
//!
//! Invariant 8: no call is paid for twice. Every reply goes through the [`ReplyJournal`] first and is
//! used afterwards; a later run over the same document finds it there. The stored form is
//! `extraction-output.json`; a change of meaning raises [`RecordedReplies::FORMAT`].

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use docmill_core::fault;
use docmill_core::model::ModelUsage;
use docmill_llm::{FinishReason, ModelReply, Prompt};

/// One finished call to a model, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCall {
    /// The purpose of the call, for operators: `read pages 1-3`, `repair pages 1-3`.
    pub purpose: String,
    /// SHA-256 of the whole prompt, in hex.
    pub prompt: String,
    /// The reply's text, possibly cut or empty.
    pub text: String,
    /// Why the model stopped.
    pub stop: FinishReason,
    /// Tokens that the call used.
    pub usage: ModelUsage,
    /// The model that answered, as it names itself.
    pub model: String,
    /// Whether it was answered in a batch, where it is booked as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batched: bool,
}

impl StoredCall {
    /// A single call outside of a chain; `prompt` is the hash of its prompt.
    pub(super) fn from_reply(purpose: String, prompt: String, reply: ModelReply) -> Self {
        let ModelReply { text, stop, usage, model, limits: _ } = reply;
        Self { purpose, prompt, text, stop, usage, model, batched: false }
    }
}

/// How a call is made.
#[derive(Debug)]
pub enum CallRoute {
    /// By itself, now.
    Direct,
    /// It was made in a batch, and this is the reply.
    Answered(Box<ModelReply>),
}

/// Every finished call about one transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedReplies {
    /// Version of this form, [`RecordedReplies::FORMAT`] when written by this build.
    pub format: u32,
    /// The identity of the extraction, see [`super::extraction_identity`].
    pub identity: String,
    /// In the order in which they were made.
    pub calls: Vec<StoredCall>,
}

impl RecordedReplies {
    /// The current version of the stored form.
    pub const FORMAT: u32 = 1;

    /// An empty record for an extraction of this identity.
    pub fn new(identity: impl Into<String>) -> Self {
        Self { format: Self::FORMAT, identity: identity.into(), calls: Vec::new() }
    }

    /// Tokens of all calls.
    pub fn total_usage(&self) -> ModelUsage {
        let mut sum = ModelUsage::default();
        for call in &self.calls {
            sum += call.usage;
        }
        sum
    }

    pub(super) fn find_call(&self, prompt: &str) -> Option<&StoredCall> {
        self.calls.iter().find(|call| call.prompt == prompt)
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.calls.iter().map(|call| call.text.len()).sum()
    }

    pub(super) fn add_reply(&mut self, purpose: String, prompt: String, reply: ModelReply) {
        self.calls.push(StoredCall::from_reply(purpose, prompt, reply));
    }

    /// The same for a reply that came in a batch.
    pub(super) fn add_batched(&mut self, purpose: String, prompt: String, reply: ModelReply) {
        self.add_reply(purpose, prompt, reply);
        if let Some(call) = self.calls.last_mut() {
            call.batched = true;
        }
    }
}

/// Stores the replies of a transcript's calls, so that no call is paid for twice.
#[async_trait]
pub trait ReplyJournal: Send {
    /// The replies of an earlier run, of any identity; `None` without such a run.
    async fn load_replies(&mut self) -> fault::Result<Option<RecordedReplies>>;

    /// Whether this paid call may be made; returns when the claim is ours right now. `false`: the call
    /// would exceed the document's budget. An error ends the extraction.
    async fn may_call(&mut self, _prompt: &Prompt) -> fault::Result<bool> {
        Ok(true)
    }

    /// The route of a call without a stored reply; `key` identifies the whole prompt. An error of
    /// [`docmill_core::fault::Fault::Batched`]: the call and its document wait for a batch.
    async fn route_call(&mut self, _key: &str, _prompt: &Prompt) -> fault::Result<CallRoute> {
        Ok(CallRoute::Direct)
    }

    /// Books a call whose reply is not stored: its prompt arrived truncated, and the counted tokens
    /// are paid for.
    async fn book_unkept(&mut self, _usage: ModelUsage) -> fault::Result<()> {
        Ok(())
    }

    /// Stores all replies so far before it returns. An error ends the extraction: a reply that could
    /// not be stored is not used.
    async fn save_replies(&mut self, replies: &RecordedReplies) -> fault::Result<()>;
}
