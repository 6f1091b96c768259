//! The next step of one batch: it is handed in or found again, asked for, cancelled, or its answers are
//! taken.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;

use super::{BatchCollector, FORGOTTEN, SETTLES};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::model::IngestionId;
use docmill_ledger::db::batches::{self as rows, AnswerCost, BatchRoute, OpenBatch, SentQuestion};
use docmill_llm::llm::batch::{
    BatchApi, BatchOutcome, BatchProgress, BatchQuestion, BatchedReply, FoundBatch, SoughtBatch,
};
use docmill_storage::store::{GetOptions, GetResult, keys};

/// Larger questions are not stored, and so not read.
const LARGEST: u64 = 64 << 20;

/// Whether a batch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// All of its questions are settled.
    Ended,
    /// It is looked at again.
    Open,
}

impl BatchCollector {
    /// Takes the next step of a batch.
    ///
    /// # Errors
    /// What vendor, store or Postgres say; the step is taken again later.
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

    /// Hands a batch in. What went before says that the vendor does not have it.
    async fn hand_in(&self, api: &dyn BatchApi, batch: &OpenBatch) -> Result<StepEnd> {
        let name = &batch.name;
        let questions = self.load_questions(name).await?;
        if questions.is_empty() {
            rows::leave_rest(&self.db, name, "it could not be read").await?;
            return self.end(api, batch, "nothing is left of it").await;
        }
        if batch.overdue > 0.0 {
            rows::leave_rest(&self.db, name, "the deadline passed").await?;
            return self.end(api, batch, "the deadline passed before it was handed in").await;
        }
        // From here on it may have arrived, whatever happens.
        if !rows::note_try(&self.db, batch).await? {
            return Ok(StepEnd::Open);
        }
        match api.submit(name, &questions).await {
            Ok(handle) => {
                rows::note_handle(&self.db, name, &handle, self.next_look(0)).await?;
                tracing::info!(batch = name, handle, "batch {name} is handed in");
                Ok(StepEnd::Open)
            }
            // The vendor will not have these questions in this form, now or later.
            Err(error) if matches!(error.fault, Fault::Internal | Fault::Rejected) => {
                tracing::error!(batch = name, "batch {name} is refused: {error}");
                self.leave_rest(api, batch, "errored").await?;
                self.end(api, batch, &error.to_string()).await
            }
            Err(error) => Err(error),
        }
    }

    /// Looks for a batch whose submission was not answered.
    async fn find_again(
        &self,
        api: &dyn BatchApi,
        route: &BatchRoute,
        batch: &OpenBatch,
    ) -> Result<StepEnd> {
        let name = &batch.name;
        let others = rows::list_handles(&self.db, route).await?;
        let requests = u64::try_from(batch.requests).unwrap_or(0);
        let sought = SoughtBatch { name, requests, since: batch.created_at, others: &others };
        match api.find(sought).await? {
            FoundBatch::Here(handle) => {
                tracing::info!(batch = name, handle, "batch {name} is found again");
                rows::note_handle(&self.db, name, &handle, Duration::ZERO).await?;
                Ok(StepEnd::Open)
            }
            FoundBatch::Undecided if batch.age < FORGOTTEN.as_secs_f64() => {
                let detail = "the vendor has a batch that may be it, which has not ended";
                self.look_again(batch, Some(detail)).await
            }
            FoundBatch::Undecided => self.give_up(api, batch).await,
            FoundBatch::Nowhere if batch.tried_ago.unwrap_or(0.0) >= SETTLES.as_secs_f64() => {
                self.hand_in(api, batch).await
            }
            FoundBatch::Nowhere => {
                let detail = "it is not known yet whether it arrived";
                rows::postpone_batch(&self.db, name, self.next_look(0), Some(detail)).await?;
                Ok(StepEnd::Open)
            }
        }
    }

    /// Asks for a batch, and cancels it once its time is over.
    async fn follow_up(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        handle: &str,
    ) -> Result<StepEnd> {
        match api.poll(handle).await? {
            BatchProgress::Ended { files, reason } => {
                self.take_answers(api, batch, &files).await?;
                self.leave_rest(api, batch, "ended").await?;
                self.end(api, batch, &reason).await
            }
            BatchProgress::Working if batch.age >= FORGOTTEN.as_secs_f64() => {
                self.give_up(api, batch).await
            }
            BatchProgress::Working if batch.overdue > 0.0 && !batch.is_cancelled => {
                // Written first: asked for twice is no harm, never asked for would be.
                rows::note_cancel(&self.db, &batch.name).await?;
                let asked = api.cancel(handle).await;
                let name = &batch.name;
                match &asked {
                    Ok(()) => tracing::warn!(batch = name, "batch {name} is late and cancelled"),
                    Err(error) => {
                        tracing::warn!(
                            batch = name,
                            "batch {name} is late, not cancelled: {error}"
                        );
                    }
                }
                rows::postpone_batch(&self.db, name, self.next_look(0), Some("late")).await?;
                Ok(StepEnd::Open)
            }
            BatchProgress::Working => {
                let detail = batch.is_cancelled.then_some("late and cancelled");
                self.look_again(batch, detail).await
            }
        }
    }

    async fn look_again(&self, batch: &OpenBatch, detail: Option<&str>) -> Result<StepEnd> {
        let wait = self.next_look(batch.polls);
        rows::postpone_batch(&self.db, &batch.name, wait, detail).await?;
        Ok(StepEnd::Open)
    }

    async fn give_up(&self, api: &dyn BatchApi, batch: &OpenBatch) -> Result<StepEnd> {
        self.leave_rest(api, batch, "ended").await?;
        rows::end_batch(&self.db, &batch.name, "given up: the vendor did not end it").await?;
        Ok(StepEnd::Ended)
    }

    async fn leave_rest(
        &self,
        api: &dyn BatchApi,
        batch: &OpenBatch,
        why: &'static str,
    ) -> Result<()> {
        let left = rows::leave_rest(&self.db, &batch.name, why).await?;
        metrics::count_batched(api.provider(), why, left);
        Ok(())
    }

    async fn end(&self, api: &dyn BatchApi, batch: &OpenBatch, detail: &str) -> Result<StepEnd> {
        rows::end_batch(&self.db, &batch.name, detail).await?;
        if let Some(handle) = &batch.handle
            && let Err(error) = api.discard(handle).await
        {
            // The vendor removes it by itself in the end.
            tracing::info!(batch = batch.name, "what the vendor keeps of it stays: {error}");
        }
        Ok(StepEnd::Ended)
    }

    /// The questions of a batch, as they were stored. One whose object is gone went with its document.
    async fn load_questions(&self, name: &str) -> Result<Vec<BatchQuestion>> {
        let mut questions = Vec::new();
        for sent in rows::list_requests(&self.db, name).await?.iter().filter(|it| it.is_waiting) {
            let key = keys::batch_question_key(IngestionId(sent.ingestion_id), &sent.request);
            let what = GetOptions { at_most: LARGEST, if_match: None };
            let body = match self.store.get(&key, what).await? {
                GetResult::Found(object) => String::from_utf8(object.bytes.to_vec()).ok(),
                GetResult::Missing | GetResult::Changed | GetResult::TooLarge { .. } => None,
            };
            let custom_id = sent.custom_id.clone();
            match body {
                Some(body) => questions.push(BatchQuestion { custom_id, body }),
                None => {
                    rows::leave_request(&self.db, &custom_id, "it could not be read").await?;
                }
            }
        }
        Ok(questions)
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
            let mut results = api.open_results(file).await?;
            while let Some(result) = results.next().await? {
                let Some(sent) = by_id.get(result.custom_id.as_str()) else { continue };
                match result.outcome {
                    BatchOutcome::Answered(reply) => self.take_answer(api, sent, &reply).await?,
                    BatchOutcome::Unanswered(why) => {
                        if rows::leave_request(&self.db, &sent.custom_id, &why).await? {
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
        let price = self.costs.price_batched(provider, model, reply.usage);
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
            self.store.put_if_absent(&key, Bytes::from(bytes)).await?;
            if rows::settle_answer(&self.db, &sent.custom_id, &cost).await? {
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
