//! The next step of one batch: it is handed in or found again (`hand_in`), asked for, cancelled, or
//! its answers are taken.

use std::collections::HashMap;

use bytes::Bytes;

use super::{BatchCollector, GIVE_UP_AGE};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::model::IngestionId;
use docmill_ledger::db::lanes::batches::{
    self as rows, AnswerCost, BatchRoute, OpenBatch, SentQuestion,
};
use docmill_llm::batch::{BatchApi, BatchOutcome, BatchProgress, BatchedReply};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_storage::keys;

/// Whether a batch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// All of its questions are settled.
    Ended,
    /// It is polled again.
    Open,
}

/// Whether the same request may have another answer later on.
fn is_passing(fault: Fault) -> bool {
    matches!(fault, Fault::Transient | Fault::Throttled(_) | Fault::InLine(_) | Fault::Unavailable)
}

/// Removes the files of an ended batch at the vendor, which removes them in the end by itself.
async fn discard(api: &dyn BatchApi, name: &str, handle: &str) {
    if let Err(error) = guard_call(FailureSeam::BatchDiscard, api.discard(handle)).await {
        tracing::info!(batch = name, "the copy at the vendor was not deleted: {error}");
    }
}

impl BatchCollector {
    /// Takes the next step of a batch.
    ///
    /// # Errors
    /// Vendor, store or Postgres fail; the step is taken again later.
    pub(super) async fn advance(
        &self,
        api: &dyn BatchApi,
        route: &BatchRoute,
        batch: &OpenBatch,
    ) -> Result<StepEnd> {
        match &batch.handle {
            Some(handle) => self.follow_up(api, batch, handle).await,
            None if batch.tried_at.is_some() => self.find_again(api, route, batch).await,
            None => self.hand_in(api, batch).await,
        }
    }

    /// Asks for a batch, and cancels it once its time is over.
    async fn follow_up(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        handle: &str,
    ) -> Result<StepEnd> {
        match guard_call(FailureSeam::BatchPoll, api.poll(handle)).await? {
            BatchProgress::Ended { files, reason } => {
                self.take_answers(api, batch, &files).await?;
                self.leave_rest(api, batch, "ended").await?;
                self.end(api, batch, &reason).await
            }
            BatchProgress::TurnedAway { reason } => {
                self.put_back(api, batch, handle, &reason).await
            }
            BatchProgress::Working if batch.age >= GIVE_UP_AGE.as_secs_f64() => {
                self.give_up(api, batch).await
            }
            BatchProgress::Working if batch.overdue > 0.0 && !batch.is_cancelled => {
                self.cancel_late(api, batch, handle).await
            }
            BatchProgress::Working => {
                let detail = batch.is_cancelled.then_some("late and cancelled");
                self.look_again(batch, detail).await
            }
        }
    }

    /// Written down afterwards: asked for twice is no harm, never asked for would be paid for.
    async fn cancel_late(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        handle: &str,
    ) -> Result<StepEnd> {
        let name = &batch.name;
        match guard_call(FailureSeam::BatchCancel, api.cancel(handle)).await {
            Ok(()) => tracing::warn!(batch = name, "batch {name} is late and cancelled"),
            // A second cancel gives the same answer: the batch has ended, or cannot be cancelled.
            Err(error) if !is_passing(error.fault) => {
                tracing::warn!(batch = name, "batch {name} is late, not cancelled: {error}");
            }
            Err(error) => return Err(error),
        }
        guard_call(FailureSeam::BatchLate, rows::note_cancel(&self.db, name)).await?;
        rows::postpone_batch(&self.db, name, self.next_look(0), Some("late")).await?;
        Ok(StepEnd::Open)
    }

    pub(super) async fn look_again(
        &self,
        batch: &OpenBatch,
        detail: Option<&str>,
    ) -> Result<StepEnd> {
        let wait = self.next_look(batch.polls);
        rows::postpone_batch(&self.db, &batch.name, wait, detail).await?;
        Ok(StepEnd::Open)
    }

    /// Its questions wait for a later batch, until their deadline.
    async fn put_back(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        handle: &str,
        reason: &str,
    ) -> Result<StepEnd> {
        let name = &batch.name;
        let back = rows::put_back(&self.db, name, reason);
        let waiting = guard_call(FailureSeam::BatchLeave, back).await?;
        metrics::count_batched(api.provider(), "turned_away", waiting);
        tracing::warn!(
            batch = name,
            requests = waiting,
            "batch {name} is turned away ({reason}): its questions wait for a later, smaller batch"
        );
        discard(api, name, handle).await;
        Ok(StepEnd::Ended)
    }

    pub(super) async fn give_up(&self, api: &dyn BatchApi, batch: &OpenBatch) -> Result<StepEnd> {
        self.leave_rest(api, batch, "ended").await?;
        rows::end_batch(&self.db, &batch.name, "given up: the vendor did not end it").await?;
        Ok(StepEnd::Ended)
    }

    pub(super) async fn leave_rest(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        why: &'static str,
    ) -> Result<()> {
        let rest = rows::leave_rest(&self.db, &batch.name, why);
        let left = guard_call(FailureSeam::BatchLeave, rest).await?;
        metrics::count_batched(api.provider(), why, left);
        Ok(())
    }

    pub(super) async fn end(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        detail: &str,
    ) -> Result<StepEnd> {
        let ended = rows::end_batch(&self.db, &batch.name, detail);
        guard_call(FailureSeam::BatchEnd, ended).await?;
        if let Some(handle) = &batch.handle {
            discard(api, &batch.name, handle).await;
        }
        Ok(StepEnd::Ended)
    }

    /// Stores every answer, then settles its question: however often they are read, once.
    async fn take_answers(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        files: &[String],
    ) -> Result<()> {
        let sent = rows::list_requests(&self.db, &batch.name).await?;
        let by_id: HashMap<&str, &SentQuestion> =
            sent.iter().map(|sent| (sent.custom_id.as_str(), sent)).collect();
        for file in files {
            let mut results = guard_call(FailureSeam::BatchFetch, api.open_results(file)).await?;
            while let Some(result) = results.next().await? {
                let Some(sent) = by_id.get(result.custom_id.as_str()) else { continue };
                match result.outcome {
                    BatchOutcome::Answered(reply) => self.take_answer(api, sent, &reply).await?,
                    BatchOutcome::Unanswered(why) => {
                        let left = rows::leave_request(&self.db, &sent.custom_id, &why);
                        if guard_call(FailureSeam::BatchLeave, left).await? {
                            metrics::count_batched(api.provider(), "errored", 1);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    async fn take_answer(
        &self,
        api: &dyn BatchApi,
        sent: &SentQuestion,
        reply: &BatchedReply,
    ) -> Result<()> {
        let (provider, model) = (api.provider(), api.model());
        let price = self.costs.price_batched(provider, model, &api.price_class(), reply.usage);
        let cost = AnswerCost {
            usage: reply.usage,
            cost_nanos: price.cost_nanos,
            saved_nanos: price.saved_nanos,
        };
        let paid = price.cost_nanos.unwrap_or(0);
        let key = keys::batch_answer_key(IngestionId(sent.ingestion_id), &sent.request);
        if sent.is_waiting {
            let bytes = serde_json::to_vec(reply).map_err(|error| {
                Error::internal("an answer of a batch cannot be written").with_source(error)
            })?;
            let put = self.store.put_if_absent(&key, Bytes::from(bytes));
            guard_call(FailureSeam::BatchAnswer, put).await?;
            let settled = rows::settle_answer(&self.db, &sent.custom_id, &cost);
            if guard_call(FailureSeam::BatchSettle, settled).await? {
                metrics::count_batched(provider, "answered", 1);
                metrics::count_spending(provider, model, paid);
                return Ok(());
            }
        }
        if rows::note_late_answer(&self.db, &sent.custom_id, &cost).await? {
            metrics::count_batched(provider, "late", 1);
            metrics::count_spending(provider, model, paid);
            if sent.is_waiting {
                // A direct call has taken its place in between.
                self.store.delete(&key).await?;
            }
        }
        Ok(())
    }
}
