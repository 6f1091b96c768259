//! The batch lane of an attempt: whether a model request waits for a batch, its answer, and the
//! direct call instead.
//!
//! A request goes by batch at most once. It is a direct call when it is repeated: its answer was
//! used before and an operator reopened the document, its batch failed, or the deadline passed.
//! `operations::batches` collects requests and fetches answers. Not promised: that a request left
//! to a direct call is not answered by its batch too; that answer is counted and not used.

use std::time::Duration;

use bytes::Bytes;
use time::OffsetDateTime;

use crate::artefact::identity_of;
use crate::context::AttemptContext;
use crate::cost::LlmCallBilling;
use docmill_core::config::BatchConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::work_clock::{note_progress, wait_off_clock};
use docmill_extract::CallRoute;
use docmill_ledger::{BatchEntry, BatchRequestState, BatchStanding, WriteResult};
use docmill_llm::batch::{BatchApi, BatchedReply};
use docmill_llm::{ModelReply, Prompt};
use docmill_storage::{GetOptions, GetResult, ObjectStore, keys};

/// Larger answers are not stored, and so not read.
const MAX_STATE_BYTES: u64 = 64 << 20;
/// Delay after the deadline before a waiting document returns; by then its request is a direct
/// call.
const MARGIN: Duration = Duration::from_secs(60);

/// The lane for the questions of one reading.
pub(super) struct BatchLane<'a> {
    pub(super) attempt: AttemptContext<'a>,
    pub(super) api: &'a dyn BatchApi,
    /// The document's kind.
    pub(super) kind: &'a str,
    /// Identity of the reading.
    pub(super) identity: &'a str,
}

impl BatchLane<'_> {
    /// The name of a question in the lane.
    pub(super) fn request_id(&self, key: &str) -> String {
        identity_of(&["docmill batch request", self.identity, key])
    }

    /// Chooses between batch and direct call.
    ///
    /// # Errors
    /// [`Fault::Batched`]: waiting for a batch. Ledger and store errors; a lost claim.
    pub(super) async fn route(
        &self,
        request: &str,
        prompt: &Prompt,
        book: &LlmCallBilling<'_>,
    ) -> Result<CallRoute> {
        let (ledger, id) = (&self.attempt.context.ledger, self.attempt.claim.id);
        let standing = wait_off_clock(ledger.find_batch_standing(id, request)).await?;
        // Without a database there is no lane.
        let Some(standing) = standing else { return Ok(CallRoute::Direct) };
        let terms = &self.attempt.config().llm.batch;
        match standing.state {
            None if !self.may_enter(terms, &standing) => Ok(CallRoute::Direct),
            None => self.enter(request, prompt, book, &standing).await,
            Some(BatchRequestState::Direct) => Ok(CallRoute::Direct),
            Some(BatchRequestState::Answered) => self.load_answer(request).await,
            Some(BatchRequestState::Waiting)
                if standing.overdue < terms.grace + MARGIN || !standing.time_left.is_zero() =>
            {
                let wait =
                    (standing.time_left + terms.grace + MARGIN).saturating_sub(standing.overdue);
                Err(put_off(wait))
            }
            // The lane has had no collector for all that time.
            Some(BatchRequestState::Waiting) => {
                if wait_off_clock(ledger.leave_batch_lane(id, request)).await? {
                    metrics::count_batched(self.api.provider(), "deadline", 1);
                    return Ok(CallRoute::Direct);
                }
                self.load_answer(request).await
            }
        }
    }

    /// Whether the document may wait, and there is time for it.
    fn may_enter(&self, terms: &BatchConfig, standing: &BatchStanding) -> bool {
        let asked_ago = standing.asked_ago.unwrap_or_default();
        let left = terms.deadline.saturating_sub(asked_ago);
        let opens = terms.window.wait_until_open(OffsetDateTime::now_utc());
        terms.may_wait(standing.priority, self.kind) && opens + terms.gather < left
    }

    /// Puts the question into the lane; the document waits from now on.
    async fn enter(
        &self,
        request: &str,
        prompt: &Prompt,
        book: &LlmCallBilling<'_>,
        standing: &BatchStanding,
    ) -> Result<CallRoute> {
        if !book.may_call(prompt).await? {
            return Ok(CallRoute::Direct);
        }
        let (context, claim) = (self.attempt.context, self.attempt.claim);
        let body = Bytes::from(self.api.encode_prompt(prompt)?);
        let bytes = body.len() as u64;
        claim.ensure_live().await?;
        // An existing object is identical: its name covers the whole request.
        let key = keys::batch_question_key(claim.id, request);
        self.attempt.artefacts().put_if_absent(&key, body).await?;
        let terms = &self.attempt.config().llm.batch;
        let entry = BatchEntry {
            id: claim.id,
            request: request.to_owned(),
            provider: self.api.provider().to_owned(),
            model: self.api.model().to_owned(),
            place: self.api.place().to_owned(),
            bytes,
            deadline: terms.deadline,
            reserved_nanos: book.reserve_batched(prompt),
        };
        let entered = wait_off_clock(context.ledger.enter_batch_lane(claim.token, &entry)).await?;
        match entered {
            WriteResult::ClaimLost => Err(Error::claim_lost()),
            WriteResult::Applied => {
                note_progress();
                let asked_ago = standing.asked_ago.unwrap_or_default();
                let left = terms.deadline.saturating_sub(asked_ago);
                Err(put_off(left + terms.grace + MARGIN))
            }
        }
    }

    /// The stored answer. A missing or unreadable one is replaced by a direct call.
    async fn load_answer(&self, request: &str) -> Result<CallRoute> {
        let key = keys::batch_answer_key(self.attempt.claim.id, request);
        let what = GetOptions { at_most: MAX_STATE_BYTES, if_match: None };
        let reply = match self.attempt.artefacts().get(&key, what).await? {
            GetResult::Found(object) => serde_json::from_slice::<BatchedReply>(&object.bytes).ok(),
            _ => None,
        };
        Ok(match reply {
            Some(reply) => CallRoute::Answered(Box::new(ModelReply::from(reply))),
            None => {
                tracing::warn!(
                    ingestion.id = %self.attempt.claim.id,
                    "a stored answer of a batch cannot be read: the model is asked directly"
                );
                CallRoute::Direct
            }
        })
    }

    /// Deletes the lane's copies of answers that are now among the document's replies.
    ///
    /// # Errors
    /// Ledger errors.
    pub(super) async fn use_answers(&self, requests: &[String]) -> Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let (ledger, id) = (&self.attempt.context.ledger, self.attempt.claim.id);
        wait_off_clock(ledger.use_batch_answers(id, requests)).await?;
        for request in requests {
            remove_objects(self.attempt.artefacts(), id, request).await;
        }
        Ok(())
    }
}

/// Deletes the objects of a request. Leftovers are deleted with their document.
async fn remove_objects(
    store: &dyn ObjectStore,
    id: docmill_core::model::IngestionId,
    request: &str,
) {
    for key in [keys::batch_question_key(id, request), keys::batch_answer_key(id, request)] {
        if let Err(error) = store.delete(&key).await {
            tracing::debug!(%error, "batch objects were not deleted: {error}");
        }
    }
}

fn put_off(wait: Duration) -> Error {
    let text = format!(
        "waits for a batch (llm.batch), and for {} min at most for its answer",
        wait.as_secs() / 60
    );
    Error::new(Fault::Batched(wait), text)
}
