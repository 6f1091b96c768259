//! Hands a batch in, once: upload the questions, check the fence, create the batch, record its
//! handle.
//!
//! A worker may pause at any step for longer than its lead, and resume beside the next leader.
//! Therefore the fence is checked right before the vendor is called: Postgres confirms that this
//! try is the last. A new try first looks for the batch at the vendor. It then removes the input
//! file of the earlier try, so that no batch can be made of it (OpenAI, Gemini), and looks again;
//! at Bedrock the batch's token makes both one job. Where there is neither file nor token
//! (Anthropic), a pause between fence and request can still create a second batch. The worker that
//! finds another handle recorded cancels its own.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::step::StepEnd;
use super::{BatchCollector, GIVE_UP_AGE, LISTING_DELAY};
use docmill_core::fault::{Error, Fault, Result};
use docmill_ledger::db::Db;
use docmill_ledger::db::lanes::batches::{self as rows, BatchRoute, BatchTry, OpenBatch};
use docmill_llm::batch::{BatchApi, BatchSubmission, FoundBatch, SoughtBatch, SubmissionFence};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};

impl BatchCollector {
    /// Hands a batch in. The caller has checked that the vendor does not have it.
    pub(super) async fn hand_in(&self, api: &dyn BatchApi, batch: &OpenBatch) -> Result<StepEnd> {
        let name = &batch.name;
        let loaded = self.load_questions(name).await?;
        let questions = loaded.as_slice();
        if questions.is_empty() {
            rows::leave_rest(&self.db, name, "it could not be read").await?;
            return self.end(api, batch, "nothing is left of it").await;
        }
        if batch.overdue > 0.0 {
            loaded.forget();
            rows::leave_rest(&self.db, name, "the deadline passed").await?;
            return self.end(api, batch, "the deadline passed before it was handed in").await;
        }
        let tried = rows::note_try(&self.db, batch);
        let Some(tried) = guard_call(FailureSeam::BatchTry, tried).await? else {
            return Ok(StepEnd::Open);
        };
        let file = guard_call(FailureSeam::BatchUpload, api.upload(name, questions)).await?;
        let fence = TryFence::new(&self.db, tried, file.as_deref());
        let submission = BatchSubmission { name, file: file.as_deref(), questions };
        // From here on it may have arrived.
        match guard_call(FailureSeam::BatchCreate, api.create(submission, &fence)).await {
            Ok(handle) => {
                loaded.forget();
                self.keep_handle(api, batch, &handle).await
            }
            Err(error) if error.fault == Fault::ClaimLost => {
                tracing::warn!(batch = name, "batch {name} is submitted by another worker");
                if let Some(file) = &file {
                    api.remove_input(file).await?;
                }
                Ok(StepEnd::Open)
            }
            // The vendor will not have these questions in this form, now or later.
            Err(error) if matches!(error.fault, Fault::Internal | Fault::Rejected) => {
                // Unless it will not have them because another try has taken them away.
                if fence.pass().await.is_err() {
                    tracing::warn!(batch = name, "batch {name} is submitted by another worker");
                    return Ok(StepEnd::Open);
                }
                tracing::error!(batch = name, "batch {name} is refused: {error}");
                loaded.forget();
                self.leave_rest(api, batch, "errored").await?;
                self.end(api, batch, &error.to_string()).await
            }
            Err(error) => Err(error),
        }
    }

    /// Writes down under which name the vendor has a batch, or cancels it, if it has another by
    /// now.
    async fn keep_handle(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        handle: &str,
    ) -> Result<StepEnd> {
        let name = &batch.name;
        let kept = rows::note_handle(&self.db, name, handle, self.next_look(0));
        if guard_call(FailureSeam::BatchHandle, kept).await? {
            tracing::info!(batch = name, handle, "batch {name} is handed in");
        } else {
            tracing::error!(batch = name, handle, "batch {name} was made twice: one is cancelled");
            api.cancel(handle).await?;
        }
        Ok(StepEnd::Open)
    }

    /// Looks for a batch whose submission was not answered.
    pub(super) async fn find_again(
        &self,
        api: &dyn BatchApi,
        route: &BatchRoute,
        batch: &OpenBatch,
    ) -> Result<StepEnd> {
        let name = &batch.name;
        let others = rows::list_handles(&self.db, route).await?;
        let requests = u64::try_from(batch.requests).unwrap_or(0);
        let sought = SoughtBatch { name, requests, since: batch.created_at, others: &others };
        match guard_call(FailureSeam::BatchFind, api.find(sought)).await? {
            FoundBatch::Here(handle) => {
                tracing::info!(batch = name, handle, "batch {name} is found again");
                let found = rows::note_handle(&self.db, name, &handle, Duration::ZERO);
                guard_call(FailureSeam::BatchHandle, found).await?;
                Ok(StepEnd::Open)
            }
            FoundBatch::Undecided if batch.age < GIVE_UP_AGE.as_secs_f64() => {
                let detail = "the vendor has an unfinished batch that may be this one";
                self.look_again(batch, Some(detail)).await
            }
            FoundBatch::Undecided => self.give_up(api, batch).await,
            FoundBatch::Nowhere
                if batch.tried_ago.unwrap_or(0.0) >= LISTING_DELAY.as_secs_f64() =>
            {
                match &batch.input {
                    Some(file) => self.remove_earlier_input(api, batch, file).await,
                    None => self.hand_in(api, batch).await,
                }
            }
            FoundBatch::Nowhere => {
                let detail = "it is not known yet whether it arrived";
                rows::postpone_batch(&self.db, name, self.next_look(0), Some(detail)).await?;
                Ok(StepEnd::Open)
            }
        }
    }

    /// Removes the input file of an earlier try. A request already under way shows up as after a
    /// try.
    async fn remove_earlier_input(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        file: &str,
    ) -> Result<StepEnd> {
        let removed = async {
            api.remove_input(file).await?;
            rows::note_input_removed(&self.db, batch).await
        };
        guard_call(FailureSeam::BatchRemove, removed).await?;
        let detail = "it did not arrive; what may still be on its way is waited for";
        rows::postpone_batch(&self.db, &batch.name, self.next_look(0), Some(detail)).await?;
        Ok(StepEnd::Open)
    }
}

/// Whether a try to hand a batch in is still the last one.
struct TryFence<'a> {
    db: &'a Db,
    /// The vendor's name for the file of its questions.
    file: Option<&'a str>,
    tried: Mutex<BatchTry>,
}

impl<'a> TryFence<'a> {
    fn new(db: &'a Db, tried: BatchTry, file: Option<&'a str>) -> Self {
        Self { db, file, tried: Mutex::new(tried) }
    }
}

#[async_trait]
impl SubmissionFence for TryFence<'_> {
    async fn pass(&self) -> Result<()> {
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let renewed = rows::renew_try(self.db, &tried, self.file);
        match guard_call(FailureSeam::BatchFence, renewed).await? {
            Some(renewed) => {
                *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
                Ok(())
            }
            None => Err(Error::claim_lost()),
        }
    }
}
