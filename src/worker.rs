//! The worker of the service: ingestions claimed in Postgres, named by the messages of a queue.
//!
//! It is a [`Backlog`] of the one runner (`crate::runner`), which has the slots, panics, time, the
//! failure table and the drain; here is what only messages and rows need. The life of a job:
//!
//! 1. [`intake`] polls the queue, for no more messages than there are free slots; [`lanes`] chooses
//!    the tier and the size of each poll.
//! 2. [`batch`] registers every received message ([`registry`]: from now on [`heartbeat`] keeps it
//!    hidden), reads the bodies, and claims all ingestions of the batch by one statement.
//! 3. Each claimed ingestion becomes a [`QueuedJob`] with a slot; every other message is answered
//!    at once: acknowledged, hidden, fanned out, or put into quarantine.
//! 4. The runner does the work, `pipeline::run_pipeline`, and renews the claims, all in one
//!    statement.
//! 5. [`settle`] writes the outcome into the ledger, exactly once whatever gets lost (invariant 7);
//!    the slot is free again.
//! 6. [`dispose`] acknowledges, hides or replaces the message, many in one request.
//!
//! Meanwhile [`vitals`] obeys operators' pauses and writes that the worker is alive. Nothing here
//! knows documents; `pipeline` does.

pub mod ack_batcher;
pub mod batch;
pub mod finalize;
pub mod heartbeat;
pub mod intake;
pub mod pause_watch;
pub mod pauses;
pub mod registry;
pub mod scale_in_protection;
pub mod tier_poller;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::pipeline::failure::RetryAttempt;
use crate::pipeline::{self, ClaimHandle, PipelineContext, StepError};
use crate::runner::{
    Backlog, DueRenewal, FinishedJob, IntakeGate, JobConclusion, LeaseTerms, PauseReason,
    RenewalResult, Runner, RunnerHandle, RunnerMonitor, RunnerOptions, WorkerStats,
};
use crate::shutdown::Shutdown;
use ack_batcher::{AckBatcher, MessageDisposition};
use docmill_client::telemetry::spans;
use docmill_core::config::{AcknowledgeMode, AllowedPrefix, Config, QueueDestination, RetryConfig};
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::{ClaimedIngestion, IngestionId};
use docmill_core::retry::with_deadline;
use docmill_ledger::ledger::{ClaimTerms, IngestionResult, Ledger, PauseTerms, WorkerStatus};
use docmill_queue::queue::{MessageQueue, OutgoingMessage};
use pauses::PauseTracker;
use registry::{InFlightMessage, MessageRegistry};

/// Jobs that were cancelled may take so long to write that down.
const SETTLE: Duration = Duration::from_secs(8);
/// A message with a delay waits at most so long before it is visible (SQS).
const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);
/// Letting ingestions wait without a message may take so long.
const PARK_TIMEOUT: Duration = Duration::from_secs(20);
/// Postgres does not answer.
const DATABASE: PauseReason = PauseReason::from_label("database");
/// The queue does not answer.
const QUEUE: PauseReason = PauseReason::from_label("queue");
/// Intake waits so long after a first failure, and at most so long after many in a row.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// An ingestion that is claimed, and the message that named it.
#[derive(Debug)]
pub struct QueuedJob {
    claimed: ClaimedIngestion,
    ticket: InFlightMessage,
}

/// Ingestions in Postgres that messages of a queue name.
pub struct QueueBacklog {
    pipeline: PipelineContext,
    ledger: Arc<dyn Ledger>,
    queue: Arc<dyn MessageQueue>,
    config: Arc<Config>,
    /// The limits and delays that follow a failed attempt.
    retry: RetryConfig,
    terms: ClaimTerms,
    /// Places whose events are taken.
    allowed: Vec<AllowedPrefix>,
    /// The queue as traces name it.
    destination: QueueDestination,
    registry: Arc<MessageRegistry>,
    disposer: AckBatcher,
    intake_gate: Arc<IntakeGate>,
    pauses: PauseTracker,
    /// What a pause may hold back.
    pause_terms: PauseTerms,
    /// A message received this often is replaced instead of hidden.
    replace_at: Option<u32>,
}

impl QueueBacklog {
    /// Whether messages are deleted before the work (`queue.acknowledge`).
    fn acknowledges_early(&self) -> bool {
        self.config.queue.acknowledge == AcknowledgeMode::Early
    }

    async fn acknowledge(&self, ticket: &InFlightMessage) {
        self.dispose_receipts(ticket, MessageDisposition::Acknowledge).await;
    }

    async fn release(&self, ticket: &InFlightMessage) {
        self.hide(ticket, None, Duration::ZERO).await;
    }

    /// Lets the ingestion wait without a message if that is for long: hidden messages are counted
    /// against what the queue may have in flight. `true`: the message may go, maintenance sends
    /// another when it is time.
    async fn park_long(&self, id: IngestionId, after: Duration) -> bool {
        if after <= LONGEST_DELAY {
            return false;
        }
        let ids = [id];
        let asked = self.ledger.park(&ids, &self.pause_terms, LONGEST_DELAY);
        let late = || fault::Error::transient("the ledger did not answer in time");
        match with_deadline(PARK_TIMEOUT, asked, late).await {
            Ok(parked) => parked.contains(&id),
            Err(error) => {
                tracing::debug!(ingestion.id = %id, error = %error, "{id} is hidden: {error}");
                false
            }
        }
    }

    /// Hides the message, or deletes it where the ingestion waits without one; replaces it by a fresh
    /// one when it was received so often that the redrive policy would soon take it (only where the
    /// ingestion it stands for is known).
    async fn hide(&self, ticket: &InFlightMessage, id: Option<IngestionId>, after: Duration) {
        if let Some(id) = id
            && self.park_long(id, after).await
        {
            metrics::count_disposition("park");
            return self.acknowledge(ticket).await;
        }
        let worn = self.replace_at.is_some_and(|limit| ticket.receive_count() >= limit);
        if let (true, Some(id)) = (worn, id) {
            let delay = after.min(LONGEST_DELAY);
            let fresh = OutgoingMessage { delay, ..ticket.replacement_message(id.to_string()) };
            let sent = self.queue.send(std::slice::from_ref(&fresh)).await;
            if sent.into_iter().all(|answer| answer.is_ok()) {
                metrics::count_disposition("replace");
                return self.acknowledge(ticket).await;
            }
        }
        self.dispose_receipts(
            ticket,
            MessageDisposition::Hide(after.min(self.queue.longest_hide())),
        )
        .await;
    }

    /// The message was deleted before the work: a fresh one takes its place. If that fails, the
    /// janitor finds the row without a message.
    async fn send_replacement(&self, ticket: &InFlightMessage, id: IngestionId, after: Duration) {
        if self.park_long(id, after).await {
            metrics::count_disposition("park");
            return self.acknowledge(ticket).await;
        }
        let delay = after.min(LONGEST_DELAY);
        let fresh = OutgoingMessage { delay, ..ticket.replacement_message(id.to_string()) };
        match self.queue.send(std::slice::from_ref(&fresh)).await.into_iter().find_map(Result::err)
        {
            None => metrics::count_disposition("replace"),
            Some(error) => {
                metrics::count_disposition("failed");
                tracing::warn!(
                    ingestion.id = %id,
                    error = %error,
                    "no new message for {id} could be sent; the janitor will send one: {error}"
                );
            }
        }
        // What was adopted meanwhile.
        self.acknowledge(ticket).await;
    }

    /// Disposes of every receipt, until none is left: one that is adopted meanwhile is included.
    async fn dispose_receipts(&self, ticket: &InFlightMessage, what: MessageDisposition) {
        loop {
            let receipts = ticket.take_receipts();
            if receipts.is_empty() {
                return;
            }
            let all = receipts.into_iter().map(|receipt| self.disposer.dispose(receipt, what));
            futures::future::join_all(all).await;
        }
    }

    fn worker_status(&self, runner: &RunnerHandle<Self>) -> WorkerStatus {
        let (slots, used) = runner.slot_counts();
        WorkerStatus {
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            slots_used: u32::try_from(used).unwrap_or(u32::MAX),
        }
    }
}

#[async_trait]
impl Backlog for QueueBacklog {
    type Job = QueuedJob;
    type Output = Box<IngestionResult>;
    /// `None`: the claim is lost, the message is somebody else's business.
    type Rest = Option<MessageDisposition>;

    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>) {
        intake::run_intake(self, runner).await;
    }

    async fn run_job(
        &self,
        job: &QueuedJob,
        claim: &ClaimHandle,
    ) -> Result<Box<IngestionResult>, StepError> {
        let output = pipeline::run_pipeline(&self.pipeline, &job.claimed, claim).await;
        output.map(|output| Box::new(output.record)).map_err(|failed| failed.error)
    }

    fn lease_terms(&self) -> LeaseTerms {
        LeaseTerms {
            every: self.config.heartbeat_interval(),
            lease: self.config.claim.lease,
            // The row decides; a job past its local deadline waits for the answer.
            lost_unrenewed: false,
            side: "row",
        }
    }

    async fn renew(&self, due: &[DueRenewal<QueuedJob>]) -> Vec<RenewalResult> {
        heartbeat::renew_rows(self.ledger.as_ref(), due, self.lease_terms()).await
    }

    async fn renew_side_leases(&self) {
        let visibility = self.config.queue.visibility;
        let every = self.config.heartbeat_interval();
        heartbeat::extend_messages(&self.registry, self.queue.as_ref(), every, visibility).await;
    }

    async fn finish_job(
        &self,
        _job: &QueuedJob,
        claim: &ClaimHandle,
        conclusion: JobConclusion<Box<IngestionResult>>,
    ) -> FinishedJob<Option<MessageDisposition>> {
        finalize::finalize_attempt(self.ledger.as_ref(), claim, conclusion).await
    }

    async fn run_deferred(&self, job: &QueuedJob, disposition: Option<MessageDisposition>) {
        let (ticket, id, queue) = (&job.ticket, job.claimed.id, &self.destination);
        match disposition {
            Some(MessageDisposition::Hide(after)) if self.acknowledges_early() => {
                let sending = self.send_replacement(ticket, id, after);
                sending.instrument(spans::settle_span(queue, "replace")).await;
            }
            Some(MessageDisposition::Hide(after)) => {
                let hiding = self.hide(ticket, Some(id), after);
                hiding.instrument(spans::settle_span(queue, "hide")).await;
            }
            Some(MessageDisposition::Acknowledge) => {
                self.acknowledge(ticket).instrument(spans::settle_span(queue, "acknowledge")).await;
            }
            None => metrics::count_disposition("leave"),
        }
        // Now, not when the last who knows the job has let it go: the message may be on its way to
        // us again.
        ticket.stop_heartbeat();
    }

    fn retry_attempt(&self, job: &QueuedJob) -> RetryAttempt {
        let ClaimedIngestion { attempt, deferred_for, .. } = job.claimed;
        RetryAttempt { number: attempt, deferred_for, jitter: fastrand::f64() }
    }

    fn retry_config(&self) -> Cow<'_, RetryConfig> {
        Cow::Borrowed(&self.retry)
    }

    fn job_timeout(&self, _job: &QueuedJob) -> Duration {
        self.config.worker.job_timeout
    }

    fn describe(&self, job: &QueuedJob) -> String {
        format!("ingestion {}", job.claimed.id)
    }

    fn has_side_leases(&self) -> bool {
        !self.registry.is_empty()
    }

    /// Paused while it was being claimed, or claimed because its last holder fell silent: others are
    /// parked before.
    fn is_job_paused(&self, job: &QueuedJob) -> bool {
        self.pauses.is_paused(&job.claimed, &self.pause_terms)
    }

    async fn run_background(self: Arc<Self>, runner: RunnerHandle<Self>, stop: CancellationToken) {
        pause_watch::run_liveness(&self, &runner, stop).await;
    }
}

/// The worker of the service.
pub struct QueueWorker {
    runner: Runner<QueueBacklog>,
}

impl QueueWorker {
    /// Puts a worker together; nothing is received yet. `name` is this process.
    ///
    /// # Errors
    /// The queue does not say after how many receives it gives a message up.
    pub async fn new(
        pipeline: PipelineContext,
        ledger: Arc<dyn Ledger>,
        queue: Arc<dyn MessageQueue>,
        config: Arc<Config>,
        name: String,
    ) -> fault::Result<Self> {
        let replace_at = queue.receives_before_dead().await?.map(|most| (most / 2).max(2));
        let disposer = AckBatcher::spawn(Arc::clone(&queue));
        let pause_terms = pipeline.services.pause_terms(&config.kinds.default);
        let terms = ClaimTerms {
            worker: name,
            lease: config.claim.lease,
            crash_limit: config.retry_terms().crash_attempts,
        };
        let options = RunnerOptions {
            slots: usize::try_from(config.worker.slots).unwrap_or(usize::MAX),
            drain: config.worker.drain,
            // A poll that is still out may take its whole wait; its messages are then released too.
            settling: config.queue.wait + Duration::from_secs(5) + SETTLE,
        };
        // Until Postgres has answered once: what operators have paused is not known before, and a
        // job taken until then would not obey it.
        let intake_gate =
            Arc::new(IntakeGate::new(FIRST_PAUSE, LONGEST_PAUSE).starting_closed(DATABASE));
        let backlog = QueueBacklog {
            pipeline,
            ledger,
            queue,
            retry: config.retry_terms(),
            terms,
            allowed: config.store.allowed_prefixes(),
            destination: config.queue_destination(),
            config,
            registry: Arc::new(MessageRegistry::default()),
            disposer,
            intake_gate: Arc::clone(&intake_gate),
            pauses: PauseTracker::default(),
            pause_terms,
            replace_at,
        };
        Ok(Self { runner: Runner::new(Arc::new(backlog), options, intake_gate) })
    }

    /// For the health pages.
    pub fn monitor(&self) -> RunnerMonitor {
        self.runner.monitor()
    }

    /// Works until asked to stop, then drains; see [`Runner::run`].
    pub async fn run(self, stop: Shutdown) -> WorkerStats {
        self.runner.run(stop).await
    }
}
