//! Gathers model questions that may wait into batches, hands the batches in, fetches the answers,
//! and wakes the waiting documents.
//!
//! One worker at a time leads, by a lease in Postgres that outlasts every single step. Each step is
//! recorded before the next: named; about to be handed in; handed in, with the vendor's handle;
//! each answer stored, then settled; ended. The next leader continues from the record. A batch that
//! was about to be handed in is first looked up at the vendor by its name (`hand_in`). A question
//! uses either the batch's answer or a direct call, never both: its row says which.
//!
//! Not promised: that a vendor is not paid twice where its answer came after the time to wait was
//! over (it is counted then), or where a batch appears at the vendor later than two minutes after
//! it was handed in.

mod hand_in;
mod questions;
mod step;

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use docmill_core::config::BatchConfig;
use docmill_core::fault::{Error, Result};
use docmill_core::metrics;
use docmill_core::model::IngestionId;
use docmill_ledger::db::Db;
use docmill_ledger::db::lanes::batches::{self as rows, BatchRoute, GatherTerms, OpenBatch};
use docmill_ledger::db::operators::janitor::{release_lead, try_acquire_lead};
use docmill_llm::batch::BatchApi;
use docmill_pipeline::CostTracker;
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;
use questions::KeptQuestions;
use step::StepEnd;
use time::OffsetDateTime;

/// The lease of the leader.
const LEASE: &str = "batches";
/// How long the leader leads without renewing: longer than any step.
const LEAD_LEASE: Duration = Duration::from_secs(300);
/// A step that takes longer is cut off; the answers of one batch may take several.
const MAX_STEP: Duration = Duration::from_secs(240);
/// The vendor lists a batch at most this long after it was handed in.
const LISTING_DELAY: Duration = Duration::from_secs(120);
/// Batches that one pass puts together of one model.
const BATCHES_PER_PASS: usize = 20;
/// Documents that are woken together.
const WOKEN_TOGETHER: u32 = 1000;
/// Vendors keep answers for weeks; a batch that has not ended after this is given up.
const GIVE_UP_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Batches settled longer ago are removed.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest poll interval of a batch, as a multiple of the first.
const MAX_POLL_FACTOR: u32 = 16;

/// Dependencies of the collector.
pub struct BatchBackends {
    /// The Postgres database.
    pub db: Db,
    /// Where questions lie, and answers go.
    pub store: Arc<dyn ObjectStore>,
    /// Prices.
    pub costs: Arc<CostTracker>,
}

/// The collector of one service.
pub struct BatchCollector {
    db: Db,
    store: Arc<dyn ObjectStore>,
    costs: Arc<CostTracker>,
    apis: Vec<Arc<dyn BatchApi>>,
    config: BatchConfig,
    questions: KeptQuestions,
    /// The name of this worker, for the lease.
    holder: String,
}

/// Counts of one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchPassReport {
    /// Batches that were put together.
    pub gathered: usize,
    /// Batches that have ended.
    pub ended: usize,
    /// Documents that were woken.
    pub woken: Vec<IngestionId>,
    /// Steps that failed; the others were taken all the same.
    pub failed: usize,
}

impl BatchCollector {
    /// A collector for the models that allow batches; `None` if none does.
    pub fn new(
        backends: BatchBackends,
        apis: Vec<Arc<dyn BatchApi>>,
        config: BatchConfig,
        holder: String,
    ) -> Option<Self> {
        let BatchBackends { db, store, costs } = backends;
        (!apis.is_empty()).then_some(Self {
            db,
            store,
            costs,
            apis,
            config,
            questions: KeptQuestions::default(),
            holder,
        })
    }

    /// Makes passes whenever this worker leads, until asked to stop.
    pub async fn run(self, stop: Shutdown) {
        loop {
            let pause = self.config.poll.mul_f64(0.75 + fastrand::f64() / 2.0);
            tokio::select! {
                () = stop.wait_until_requested() => return self.release_lead().await,
                () = tokio::time::sleep(pause) => {}
            }
            let pass = tokio::select! {
                // The next leader continues after a crash.
                () = stop.wait_until_requested() => return self.release_lead().await,
                pass = self.run_pass_as_leader() => pass,
            };
            if let Err(error) = pass {
                tracing::warn!(error = %error, "the batch lane: {error}");
            }
        }
    }

    /// One pass; `None` if another process leads.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn run_pass_as_leader(&self) -> Result<Option<BatchPassReport>> {
        if !self.take_lead().await? {
            metrics::batch_lane(0, 0, 0.0);
            return Ok(None);
        }
        self.run_pass().await.map(Some)
    }

    async fn run_pass(&self) -> Result<BatchPassReport> {
        let mut pass = BatchPassReport::default();
        for api in &self.apis {
            let route = route_of(api.as_ref());
            pass.gathered += self.gather(&route, api.least_requests()).await?;
            for batch in rows::list_due(&self.db, &route).await? {
                // The leader of that moment continues.
                if !self.take_lead().await? {
                    return Ok(pass);
                }
                match self.take_step(api.as_ref(), &route, &batch).await {
                    Ok(StepEnd::Ended) => pass.ended += 1,
                    Ok(StepEnd::Open) => {}
                    Err(error) => {
                        pass.failed += 1;
                        self.note_failure(&batch, &error).await?;
                    }
                }
            }
        }
        let overdue = rows::leave_overdue(&self.db, self.config.grace);
        let left = guard_call(FailureSeam::BatchLeave, overdue).await?;
        metrics::count_batched("any", "deadline", left);
        let woken = rows::wake_answered(&self.db, WOKEN_TOGETHER);
        pass.woken = guard_call(FailureSeam::BatchWake, woken).await?;
        rows::clean_lane(&self.db, RETENTION).await?;
        let depth = rows::lane_depth(&self.db).await?;
        metrics::batch_lane(depth.queued, depth.sent, depth.oldest);
        Ok(pass)
    }

    /// Puts together what waits for long enough, or is enough.
    async fn gather(&self, route: &BatchRoute, least: u32) -> Result<usize> {
        if !self.config.window.wait_until_open(OffsetDateTime::now_utc()).is_zero() {
            return Ok(0);
        }
        let terms = GatherTerms {
            requests: self.config.requests,
            least,
            bytes: self.config.bytes.0,
            oldest: self.config.gather,
            pause: self.config.poll.saturating_mul(MAX_POLL_FACTOR),
        };
        let mut gathered = 0;
        while gathered < BATCHES_PER_PASS {
            let name = format!("docmill-{}", Uuid::new_v4().simple());
            let Some(requests) = guard_call(
                FailureSeam::BatchGather,
                rows::gather_batch(&self.db, route, terms, &name),
            )
            .await?
            else {
                break;
            };
            gathered += 1;
            tracing::info!(batch = name, requests, "a batch of {requests} questions");
        }
        Ok(gathered)
    }

    async fn take_step(
        &self,
        api: &dyn BatchApi,
        route: &BatchRoute,
        batch: &OpenBatch,
    ) -> Result<StepEnd> {
        let step = tokio::time::timeout(MAX_STEP, self.advance(api, route, batch)).await;
        step.unwrap_or_else(|_| Err(Error::transient("it took too long and was cut off")))
    }

    async fn note_failure(&self, batch: &OpenBatch, error: &Error) -> Result<()> {
        let name = &batch.name;
        tracing::warn!(batch = name, fault = error.fault.code(), "batch {name}: {error}");
        let wait = self.next_look(batch.polls);
        rows::postpone_batch(&self.db, name, wait, Some(&error.to_string())).await
    }

    /// The delay before the next poll of a batch, by the number of polls so far.
    fn next_look(&self, polls: i32) -> Duration {
        let doublings = u32::try_from(polls / 4).unwrap_or(0).min(MAX_POLL_FACTOR.ilog2());
        self.config.poll.saturating_mul(1 << doublings)
    }

    async fn take_lead(&self) -> Result<bool> {
        let taken = try_acquire_lead(&self.db, LEASE, &self.holder, LEAD_LEASE);
        guard_call(FailureSeam::BatchLead, taken).await
    }

    /// The next leader need not wait for the lease to run out.
    async fn release_lead(&self) {
        if let Err(error) = release_lead(&self.db, LEASE, &self.holder).await {
            tracing::debug!(error = %error, "the lead was not given up: {error}");
        }
    }
}

fn route_of(api: &dyn BatchApi) -> BatchRoute {
    BatchRoute {
        provider: api.provider().to_owned(),
        model: api.model().to_owned(),
        place: api.place().to_owned(),
    }
}
