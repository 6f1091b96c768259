//! The worker of the service: jobs are ingestions, named by queue messages and claimed in Postgres.
//!
//! It is a [`JobSource`] of the runner (`crate::runner`), which has the slots, panics, timeouts,
//! the failure table and the drain. This module adds messages and rows. The life of a job:
//!
//! 1. [`intake`] polls the queue for no more messages than there are free slots; [`tier_poller`]
//!    chooses the tier and the size of each poll.
//! 2. [`batch`] registers every received message ([`registry`]; from now on [`heartbeat`] keeps it
//!    hidden), parses the bodies, and claims all ids of the batch by one statement; [`arrival`]
//!    resolves groups and store events.
//! 3. Each claimed ingestion becomes a [`QueuedJob`] with a slot; every other message is answered
//!    at once: acknowledged, hidden, fanned out, or quarantined. Suspects have their turns alone
//!    ([`lone_turn`]).
//! 4. The runner runs `pipeline::run_pipeline`, and renews all claims by one statement.
//! 5. [`finalize`] writes the outcome into the ledger exactly once, despite lost replies (invariant
//!    7); the slot is free again.
//! 6. [`ack_batcher`] acknowledges, hides or replaces the message, many in one request.
//!
//! Meanwhile [`pause_watch`] applies operators' pauses and records that the worker is alive. This
//! crate does not touch documents; `pipeline` does.

pub mod ack_batcher;
pub mod arrival;
pub mod batch;
pub mod finalize;
pub mod heartbeat;
pub mod intake;
pub mod lone_turn;
pub mod pause_watch;
pub mod pauses;
pub mod registry;
pub mod runner;
pub mod scale_in_protection;
pub mod tier_poller;
pub mod work;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::runner::{
    DueRenewal, FinishedJob, IntakeGate, JobConclusion, JobEnd, JobSource, LeaseTerms, PauseReason,
    RenewalResult, Runner, RunnerHandle, RunnerMonitor, RunnerOptions, SAME_FAILURE, WorkerStats,
};
use ack_batcher::{AckBatcher, DispositionInbox, MessageDisposition};
use arrival::{ObjectAnswers, RefusedEvents};
use docmill_client::telemetry::spans;
use docmill_core::config::{AcknowledgeMode, Config, QueueDestination, RetryConfig};
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::{ClaimedIngestion, IngestionId};
use docmill_core::retry::{Jitter, RetryBackoff, with_deadline};
use docmill_core::turn::{self, JobTurn};
use docmill_ledger::{ClaimTerms, IngestionResult, Ledger, PauseTerms, WorkerStatus};
use docmill_pipeline::failpoint::{FailureSeam, guard_batch};
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, PipelineContext, StepError};
use docmill_queue::{MessageQueue, OutgoingMessage};
use docmill_storage::keys;
use lone_turn::WorkInHand;
use pauses::PauseTracker;
use registry::{InFlightMessage, MessageRegistry, UndisposedReceipts};
use work::IngestionWork;

/// Grace for cancelled jobs to write their release. Together with the steps after them it is below
/// the 10 s between the default of `worker.drain` and Fargate's stop timeout.
const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// The queue's redrive policy is read this often.
const REDRIVE_EVERY: Duration = Duration::from_secs(5 * 60);
/// The maximum delay of a message (SQS).
const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
/// Postgres does not answer.
const DATABASE: PauseReason = PauseReason::from_label("database");
/// Postgres answers, and refuses to claim.
const CLAIMS: PauseReason = PauseReason::from_label("claims");
/// The queue does not answer.
const QUEUE: PauseReason = PauseReason::from_label("queue");
/// Intake pause after a first failure, and its limit after many in a row.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Short enough that work resumes within half a minute after an outage.
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// Pause after a failed poll; an unanswered poll takes its own timeout in addition.
const QUEUE_PAUSE: RetryBackoff =
    RetryBackoff::constant(Duration::from_secs(3)).with_jitter(Jitter::Quarter);

/// Nothing lies there: asking for it shows whether the store answers.
const STORE_PROBE: &str = "ingestions/none";
/// A store that takes longer to answer counts as down.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// An ingestion that is claimed, and the message that named it.
#[derive(Debug)]
pub struct QueuedJob {
    claimed: ClaimedIngestion,
    ticket: InFlightMessage,
}

/// Ingestions in Postgres that messages of a queue name.
pub struct QueueJobSource {
    work: Arc<dyn IngestionWork>,
    ledger: Arc<dyn Ledger>,
    queue: Arc<dyn MessageQueue>,
    config: Arc<Config>,
    /// The limits and delays that follow a failed attempt.
    retry: RetryConfig,
    terms: ClaimTerms,
    /// Events about places outside `store.allow`.
    refused: RefusedEvents,
    /// Whether the store answers for the objects of events.
    heads: ObjectAnswers,
    /// The queue as traces name it.
    destination: QueueDestination,
    registry: Arc<MessageRegistry>,
    disposer: AckBatcher,
    /// Its other end, until the worker runs.
    dispositions: Mutex<Option<DispositionInbox>>,
    intake_gate: Arc<IntakeGate>,
    /// Work in hand: a suspect is to be alone in it.
    in_hand: Arc<WorkInHand>,
    pauses: PauseTracker,
    /// Operators' pauses that apply to this worker.
    pause_terms: PauseTerms,
    /// A message received this often is replaced instead of hidden.
    replace_at: AtomicU32,
}

impl QueueJobSource {
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
        if after <= MAX_DELAY {
            return false;
        }
        let ids = [id];
        match self.ledger.park(&ids, &self.pause_terms, MAX_DELAY).await {
            Ok(parked) => parked.contains(&id),
            Err(error) => {
                tracing::debug!(ingestion.id = %id, error = %error, "parking {id} failed, message hidden: {error}");
                false
            }
        }
    }

    /// Hides the message, or deletes it where the ingestion waits without one. A message close to
    /// the redrive policy's receive limit is replaced by a fresh one, if its ingestion is known.
    async fn hide(&self, ticket: &InFlightMessage, id: Option<IngestionId>, after: Duration) {
        if let Some(id) = id
            && self.park_long(id, after).await
        {
            metrics::count_disposition("park");
            return self.acknowledge(ticket).await;
        }
        let worn = ticket.receive_count() >= self.replace_at.load(Ordering::Relaxed);
        if let (true, Some(id)) = (worn, id) {
            let delay = after.min(MAX_DELAY);
            let fresh = OutgoingMessage { delay, ..ticket.replacement_message(id.to_string()) };
            let sending = self.queue.send(std::slice::from_ref(&fresh));
            let sent = guard_batch(FailureSeam::Replace, 1, sending).await;
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
        let delay = after.min(MAX_DELAY);
        let fresh = OutgoingMessage { delay, ..ticket.replacement_message(id.to_string()) };
        match self.queue.send(std::slice::from_ref(&fresh)).await.into_iter().find_map(Result::err)
        {
            None => metrics::count_disposition("replace"),
            Some(error) => {
                metrics::count_disposition("failed");
                tracing::warn!(
                    ingestion.id = %id,
                    error = %error,
                    "replacing the message of {id} failed, the janitor will send one: {error}"
                );
            }
        }
        // Receipts adopted meanwhile.
        self.acknowledge(ticket).await;
    }

    /// Disposes of every receipt until none is left, including adopted ones; then the message
    /// leaves the registry. Other messages received meanwhile become visible at once, since they
    /// may be newer.
    async fn dispose_receipts(&self, ticket: &InFlightMessage, what: MessageDisposition) {
        ticket.seal();
        let released = MessageDisposition::Hide(Duration::ZERO);
        while let Some(UndisposedReceipts { meant, apart }) = ticket.take_all_or_end() {
            if matches!(what, MessageDisposition::Hide(_)) || !apart.is_empty() {
                ticket.wait_until_extended().await;
            }
            let meant = meant.into_iter().map(|receipt| (receipt, what));
            let all = meant.chain(apart.into_iter().map(|receipt| (receipt, released)));
            let all = all.map(|(receipt, what)| self.disposer.dispose(receipt, what));
            futures::future::join_all(all).await;
        }
    }

    /// Reads again and again after how many receives the queue gives a message up: an operator may
    /// change that while we run.
    async fn watch_redrive(&self) {
        loop {
            tokio::time::sleep(REDRIVE_EVERY).await;
            match self.queue.receives_before_dead().await {
                Ok(most) => self.replace_at.store(replace_limit(most), Ordering::Relaxed),
                Err(error) => tracing::debug!(error = %error, "reading the redrive policy failed"),
            }
        }
    }

    /// The ingestion with its document under its one name, if its row may name that place: rows are
    /// written by many hands.
    fn check_place<'c>(
        &self,
        claimed: &'c ClaimedIngestion,
    ) -> fault::Result<Cow<'c, ClaimedIngestion>> {
        let store = &self.config.store;
        let name = store.plain_name(&claimed.document.file_path);
        let refusal = match store.check_place(name, claimed.tenant.as_deref()) {
            _ if keys::is_own_artefact(name) => "its row names one of docmill's own files".into(),
            Ok(()) if name == claimed.document.file_path => return Ok(Cow::Borrowed(claimed)),
            Ok(()) => {
                let mut renamed = claimed.clone();
                renamed.document.file_path = name.to_owned();
                return Ok(Cow::Owned(renamed));
            }
            Err(refusal) => refusal,
        };
        // Counted, and tried again: a person may put it on the list meanwhile.
        Err(fault::Error::new(fault::Fault::Missing, refusal))
    }

    /// Sends a message for each child of a job whose end is committed. Where that fails, or this process
    /// dies first, maintenance does: until it is noted that they were sent, they are due without a message.
    async fn send_children(&self, job: &QueuedJob, children: &[IngestionId]) {
        if children.is_empty() {
            return;
        }
        let messages: Vec<OutgoingMessage> = children
            .iter()
            .map(|id| OutgoingMessage {
                priority: job.claimed.priority,
                tenant: job.claimed.tenant.clone(),
                ..OutgoingMessage::from_body(id.to_string())
            })
            .collect();
        let sending = self.queue.send(&messages);
        let answers = guard_batch(FailureSeam::ChildMessages, messages.len(), sending).await;
        let sent: Vec<IngestionId> = children
            .iter()
            .zip(&answers)
            .filter_map(|(id, answer)| answer.is_ok().then_some(*id))
            .collect();
        let unsent = children.len() - sent.len();
        if let Err(error) = self.ledger.note_sent(&sent).await {
            tracing::debug!(%error, "messages of children will be sent twice: {error}");
        }
        if unsent > 0 {
            let id = job.claimed.id;
            tracing::warn!(ingestion.id = %id, unsent, "{id}: maintenance sends the messages of {unsent} children");
        }
    }

    fn worker_status(&self, runner: &RunnerHandle<Self>) -> WorkerStatus {
        let (slots, used) = runner.slot_counts();
        WorkerStatus {
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            slots_used: u32::try_from(used).unwrap_or(u32::MAX),
            lanes: self.work.list_lanes(),
            local_models: self.work.report_local_models(),
        }
    }
}

#[async_trait]
impl JobSource for QueueJobSource {
    type Job = QueuedJob;
    type Output = Box<IngestionResult>;
    /// `None`: the claim is lost; its new holder disposes of the message.
    type Rest = Option<MessageDisposition>;

    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>) {
        intake::run_intake(self, runner).await;
    }

    async fn run_job(
        &self,
        job: &QueuedJob,
        claim: &ClaimHandle,
    ) -> Result<Box<IngestionResult>, StepError> {
        let claimed = self.check_place(&job.claimed)?;
        turn::with_turn(turn_of(&claimed), self.work.run_attempt(&claimed, claim))
            .await
            .map(Box::new)
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
        let asked = Instant::now();
        let terms = self.lease_terms();
        let answers = heartbeat::renew_rows(self.ledger.as_ref(), due, terms).await;
        for (due, _) in
            due.iter().zip(&answers).filter(|(_, answer)| **answer == RenewalResult::Kept)
        {
            due.job.ticket.note_lease((asked + terms.lease).into_std());
        }
        answers
    }

    async fn renew_side_leases(&self) {
        let every = self.config.heartbeat_interval();
        let visibility = self.config.queue.visibility;
        heartbeat::extend_messages(&self.registry, self.queue.as_ref(), every, visibility).await;
    }

    async fn finish_job(
        &self,
        job: &QueuedJob,
        claim: &ClaimHandle,
        conclusion: JobConclusion<Box<IngestionResult>>,
    ) -> FinishedJob<Option<MessageDisposition>> {
        // Once the end is committed an operator may open the ingestion again and send another message.
        job.ticket.seal();
        let children = match &conclusion {
            JobConclusion::Completed(result) => {
                result.children.iter().map(|it| it.ingestion).collect()
            }
            _ => Vec::new(),
        };
        let refused = finalize::RefusedWrite {
            fails_alike: self.intake_gate.is_unlifted(SAME_FAILURE),
            is_last: self.retry_attempt(job).number >= self.retry_config().internal_attempts,
        };
        let finishing =
            finalize::finalize_attempt(self.ledger.as_ref(), claim, conclusion, refused);
        let finished = finishing.await;
        if matches!(finished.end, JobEnd::Done | JobEnd::Dead) {
            self.send_children(job, &children).await;
        }
        finished
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
        // Not on drop of the last holder: the message may be delivered to this worker again before.
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

    /// Paused during its claim, or taken over from a dead holder; others were parked before.
    fn is_job_paused(&self, job: &QueuedJob) -> bool {
        self.pauses.is_paused(&job.claimed, &self.pause_terms)
    }

    async fn find_outage(&self) -> Option<String> {
        if let Some(provider) = self.work.find_outage() {
            return Some(provider);
        }
        let asked = self.work.documents().head(STORE_PROBE);
        with_deadline(PROBE_TIMEOUT, asked, || fault::Error::transient("no answer in time"))
            .await
            .err()
            .map(|_| "the store".to_owned())
    }

    async fn run_background(self: Arc<Self>, runner: RunnerHandle<Self>, stop: CancellationToken) {
        let inbox = self.dispositions.lock().take();
        let disposing = async {
            if let Some(inbox) = inbox {
                inbox.run(Arc::clone(&self.queue)).await;
            }
        };
        // A panic in any of them is one of the whole, which the runner watches.
        let others = async { tokio::join!(disposing, self.watch_redrive()) };
        tokio::join!(
            pause_watch::run_liveness(&self, &runner, stop.clone()),
            stop.run_until_cancelled(others),
        );
    }
}

/// Its turn at providers that it shares with others.
fn turn_of(claimed: &ClaimedIngestion) -> JobTurn {
    let age = claimed.claimed_at - claimed.created_at;
    JobTurn {
        id: claimed.id,
        priority: claimed.priority,
        tenant: claimed.tenant.clone(),
        created_at: claimed.created_at,
        waited: age.try_into().unwrap_or_default(),
    }
}

/// From this receive on a message is replaced: at half of what the redrive policy allows.
fn replace_limit(receives_before_dead: Option<u32>) -> u32 {
    receives_before_dead.map_or(u32::MAX, |most| (most / 2).max(1))
}

/// The worker of the service.
pub struct QueueWorker {
    runner: Runner<QueueJobSource>,
}

impl QueueWorker {
    /// Builds a worker; nothing is received yet. `name` identifies this process.
    ///
    /// # Errors
    /// The queue's receive limit cannot be read.
    pub async fn new(
        pipeline: PipelineContext,
        ledger: Arc<dyn Ledger>,
        queue: Arc<dyn MessageQueue>,
        config: Arc<Config>,
        name: String,
    ) -> fault::Result<Self> {
        Self::with_work(Arc::new(pipeline), ledger, queue, config, name).await
    }

    /// The same with any work.
    ///
    /// # Errors
    /// As [`QueueWorker::new`].
    pub async fn with_work(
        work: Arc<dyn IngestionWork>,
        ledger: Arc<dyn Ledger>,
        queue: Arc<dyn MessageQueue>,
        config: Arc<Config>,
        name: String,
    ) -> fault::Result<Self> {
        let replace_at = AtomicU32::new(replace_limit(queue.receives_before_dead().await?));
        let (disposer, dispositions) = AckBatcher::with_inbox();
        let pause_terms = work.pause_terms(&config.kinds.default);
        let terms = ClaimTerms {
            worker: name,
            lease: config.claim.lease,
            // A message that is deleted before the work is for work that must not start twice.
            crash_limit: match config.queue.acknowledge {
                AcknowledgeMode::After => config.retry.crash_attempts,
                AcknowledgeMode::Early => 0,
            },
        };
        let options = RunnerOptions {
            slots: usize::try_from(config.worker.slots).unwrap_or(usize::MAX),
            drain: config.worker.drain,
            // A poll that is still out may take its whole wait; its messages are then released too.
            supplying: config.queue.wait + Duration::from_secs(5),
            drain_grace: DRAIN_GRACE,
        };
        // Closed until Postgres has answered once: operators' pauses are unknown before.
        let intake_gate =
            Arc::new(IntakeGate::new(FIRST_PAUSE, MAX_PAUSE).starting_closed(DATABASE));
        let registry = MessageRegistry::new(config.claim.lease);
        let source = QueueJobSource {
            work,
            ledger,
            queue,
            retry: config.retry_terms(),
            terms,
            refused: RefusedEvents::default(),
            heads: ObjectAnswers::default(),
            destination: config.queue_destination(),
            config,
            registry,
            disposer,
            dispositions: Mutex::new(Some(dispositions)),
            intake_gate: Arc::clone(&intake_gate),
            in_hand: Arc::default(),
            pauses: PauseTracker::default(),
            pause_terms,
            replace_at,
        };
        Ok(Self { runner: Runner::new(Arc::new(source), options, intake_gate) })
    }

    /// For the health pages.
    pub fn monitor(&self) -> RunnerMonitor {
        self.runner.monitor()
    }

    /// Works until asked to stop, then drains; see [`Runner::run`].
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub async fn run(self, stop: Shutdown) -> fault::Result<WorkerStats> {
        self.runner.run(stop).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_replaced_at_half_of_its_receives_and_never_later_than_at_its_last() {
        let table = [(None, u32::MAX), (Some(1), 1), (Some(2), 1), (Some(5), 2), (Some(1000), 500)];
        for (most, expected) in table {
            assert_eq!(replace_limit(most), expected, "{most:?}");
        }
    }
}
