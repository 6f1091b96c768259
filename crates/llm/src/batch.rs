//! Batches: many questions handed to a vendor at once, answered within a day, for less.
//!
//! The port over the vendors' batch interfaces. A batch has a name of ours, under which it is found
//! again after a lost answer to its submission; every question has an id that begins with that
//! name. The contents of a batch and the consequences of its end are decided in
//! `operations::batches`. A vendor's files stay stored until they are read, and
//! [`BatchApi::discard`] removes them.

mod governed;
mod results;
pub(super) mod shared;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

pub use governed::GovernedBatches;
pub use results::BatchResults;
pub(super) use results::plain_word;

use super::{FinishReason, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::fault::Result;
use docmill_core::model::{ModelUsage, PriceClass};

/// A question of a batch as it travels.
#[derive(Debug, Clone)]
pub struct BatchQuestion {
    /// The id of its answer.
    pub custom_id: String,
    /// The request that would be sent by itself: [`BatchApi::encode_prompt`].
    pub body: String,
}

/// A batch that is handed in.
#[derive(Debug, Clone, Copy)]
pub struct BatchSubmission<'a> {
    /// Our name for it.
    pub name: &'a str,
    /// The vendor's name for the file of its questions: what [`BatchApi::upload`] returned.
    pub file: Option<&'a str>,
    /// Its questions.
    pub questions: &'a [BatchQuestion],
}

/// Decides, right before a vendor is asked to make a batch, whether this process still leads.
#[async_trait]
pub trait SubmissionFence: Send + Sync {
    /// Asked as the last thing before the request.
    ///
    /// # Errors
    /// [`docmill_core::fault::Fault::ClaimLost`]: another process hands it in; or the answer is
    /// unknown.
    async fn pass(&self) -> Result<()>;
}

/// A batch that may or may not have arrived.
#[derive(Debug, Clone, Copy)]
pub struct SoughtBatch<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many questions it has.
    pub requests: u64,
    /// It was not handed in before.
    pub since: OffsetDateTime,
    /// Handles of batches that are others.
    pub others: &'a [String],
}

/// The result of a search for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBatch {
    /// The vendor has it, under this handle.
    Here(String),
    /// The vendor has none that may be it.
    Nowhere,
    /// The vendor works on one that may be it, and does not say before it has ended.
    Undecided,
}

/// The progress of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchProgress {
    /// The vendor works on it.
    Working,
    /// It is over: everything that was answered is in these files.
    Ended {
        /// Names for [`BatchApi::open_results`].
        files: Vec<String>,
        /// The vendor's word for how it ended.
        reason: String,
    },
    /// The vendor took none of its questions, because too many tokens wait there already. Nothing
    /// is answered or paid for; the questions may be handed in later, in a smaller batch.
    TurnedAway {
        /// The vendor's word for it.
        reason: String,
    },
}

/// The end of one question of a batch.
#[derive(Debug, Clone)]
pub struct BatchedResult {
    /// The id of the question.
    pub custom_id: String,
    /// Its outcome.
    pub outcome: BatchOutcome,
}

/// The outcome of one question.
#[derive(Debug, Clone)]
pub enum BatchOutcome {
    /// It was answered, which is paid for.
    Answered(BatchedReply),
    /// It was not, and costs nothing; the vendor's word for why.
    Unanswered(String),
}

/// A model's reply as it is stored until its document uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchedReply {
    /// The text, possibly cut or empty.
    pub text: String,
    /// Why the model stopped.
    pub stop: FinishReason,
    /// Tokens that the call used.
    pub usage: ModelUsage,
    /// The model that answered, as it names itself.
    pub model: String,
}

impl From<ModelReply> for BatchedReply {
    fn from(reply: ModelReply) -> Self {
        let ModelReply { text, stop, usage, model, limits: _ } = reply.check_whitespace();
        Self { text, stop, usage, model }
    }
}

impl From<BatchedReply> for ModelReply {
    fn from(stored: BatchedReply) -> Self {
        let BatchedReply { text, stop, usage, model } = stored;
        Self { text, stop, usage, model, limits: RateLimitHeaders::default() }
    }
}

/// A vendor's interface for batches of one model.
#[async_trait]
pub trait BatchApi: Send + Sync {
    /// Name as of [`super::Llm::provider`].
    fn provider(&self) -> &str;

    /// The configured model.
    fn model(&self) -> &str;

    /// The address of the settings, without credentials.
    fn place(&self) -> &str;

    /// The terms of its calls that change their price, beside their being in a batch.
    fn price_class(&self) -> PriceClass {
        PriceClass::default()
    }

    /// A batch with fewer questions is refused by the vendor.
    fn least_requests(&self) -> u32 {
        1
    }

    /// The request for a prompt.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    fn encode_prompt(&self, prompt: &Prompt) -> Result<String>;

    /// Brings the questions of a batch to the vendor as a file of this try alone; returns the vendor's
    /// name for it. `None`: the vendor takes them with the batch, or under the batch's own name.
    async fn upload(&self, name: &str, questions: &[BatchQuestion]) -> Result<Option<String>>;

    /// Removes a file of questions, so that no batch can be made of it any more. One that is not there
    /// is no error.
    async fn remove_input(&self, file: &str) -> Result<()>;

    /// Has the vendor make the batch, unless the fence says otherwise at the last moment; returns the
    /// vendor's handle. After an error that is not the fence's it may have been made all the same.
    async fn create(
        &self,
        batch: BatchSubmission<'_>,
        fence: &dyn SubmissionFence,
    ) -> Result<String>;

    /// Looks for a batch by its name.
    async fn find(&self, sought: SoughtBatch<'_>) -> Result<FoundBatch>;

    /// Asks for the progress of a batch.
    async fn poll(&self, handle: &str) -> Result<BatchProgress>;

    /// Opens a file of answers.
    async fn open_results(&self, file: &str) -> Result<BatchResults>;

    /// Asks for the end of a batch; what was answered by then stays so, and is paid for.
    async fn cancel(&self, handle: &str) -> Result<()>;

    /// Removes what the vendor keeps of a batch that has ended.
    async fn discard(&self, handle: &str) -> Result<()>;
}
