//! A worker of a workspace: processes the groups in random order, several in parallel, until all
//! are done or it is stopped.
//!
//! It is a [`JobSource`] of the runner (`docmill_worker::runner`): one group is one job, which
//! loops over its documents. A group locked by another node is put back and checked again. Added
//! groups are seen once the others are done. At a signal running groups may go on for the drain
//! time, none by default; then they are released, their texts stay stored, and the current document
//! is not counted.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Workspace;
use super::claim::GroupClaimResult;
use super::group_run::GroupProgress;
use super::job::{self, GroupJob};
use super::ledger::{DocumentStatus, GroupEntry, GroupLedger};
use super::read::WorkspaceReader;
use super::source::DocumentSources;
use crate::objects::olmocr::index::WorkGroup;
use docmill_client::telemetry::spans;
use docmill_core::config::{QueueDestination, RetryConfig};
use docmill_core::fault::{Error, Result};
use docmill_core::metrics;
use docmill_core::model::{ClaimToken, IngestionId};
use docmill_core::work_clock::CpuQueuePosition;
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, StepError, claim_handle};
use docmill_worker::runner::{
    ClaimedJob, DueRenewal, FinishedJob, IntakeGate, JobConclusion, JobEnd, JobSource, LeaseTerms,
    PauseReason, RenewalResult, Runner, RunnerHandle, RunnerMonitor, RunnerOptions, SlotPermit,
    WorkerStats,
};

/// How long it may take at a stop until everything is released.
const GIVING_BACK: Duration = Duration::from_secs(60);
/// The time between two warnings that documents are put off for the same reason.
const WARN_AGAIN: Duration = Duration::from_secs(600);

/// Options of a workspace worker.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// Groups at the same time; at least 1.
    pub jobs: usize,
    /// A document is begun so often at most.
    pub tries: u32,
    /// The longest that reading one document may take.
    pub document_time: Duration,
    /// Lost pages per page, above which a document is left out; 0 to 1.
    pub page_error_rate: f64,
    /// Pause before a group is tried again, and after something that is no document's fault.
    pub retry_pause: Duration,
    /// Interval between two checks of a group locked by another node.
    pub poll_interval: Duration,
    /// End once only such groups are left.
    pub leave_locked: bool,
    /// How long running groups may continue after a stop.
    pub drain: Duration,
}

/// The parts of a worker before it reads the index.
pub struct WorkspaceWorkerSetup {
    /// The workspace to work on.
    pub workspace: Arc<Workspace>,
    /// The reader of documents.
    pub reader: Arc<dyn WorkspaceReader>,
    /// The places that documents are fetched from.
    pub sources: Arc<DocumentSources>,
    /// Limits and options of the worker.
    pub terms: WorkspaceOptions,
}

/// Counts of what a worker has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WorkspaceTally {
    /// Groups whose result it wrote.
    pub groups: u64,
    /// Documents in these results.
    pub documents: u64,
    /// Documents of these groups with nothing on them.
    pub empty: u64,
    /// Documents of these groups that could not be read; `stats` names them.
    pub unread: u64,
    /// Runs that left a document for another run.
    pub partial: u64,
    /// Groups lost to another worker while in work.
    pub lost: u64,
}

impl WorkspaceTally {
    /// A group whose result is written, and its documents.
    pub(super) fn add_group<'a>(&mut self, entries: impl Iterator<Item = &'a GroupEntry>) {
        self.groups += 1;
        for entry in entries {
            match entry.standing {
                DocumentStatus::Read => self.documents += 1,
                DocumentStatus::Empty => self.empty += 1,
                _ => self.unread += 1,
            }
        }
    }
}

/// A worker that has read the index of its workspace.
pub struct WorkspaceWorker {
    source: Arc<WorkspaceJobSource>,
    runner: Runner<WorkspaceJobSource>,
}

/// The groups of a workspace that are not done.
pub(super) struct WorkspaceJobSource {
    pub(super) workspace: Arc<Workspace>,
    pub(super) reader: Arc<dyn WorkspaceReader>,
    pub(super) sources: Arc<DocumentSources>,
    pub(super) terms: WorkspaceOptions,
    /// Limits of one document.
    pub(super) retry: RetryConfig,
    worker: String,
    /// The workspace as traces name it.
    destination: QueueDestination,
    intake_gate: Arc<IntakeGate>,
    /// Neither done nor in work.
    waiting: Mutex<VecDeque<WaitingGroup>>,
    tally: Mutex<WorkspaceTally>,
    /// When it was last warned that documents are put off, by why.
    warned: Mutex<BTreeMap<&'static str, Instant>>,
}

/// A group that waits for its turn.
struct WaitingGroup {
    group: WorkGroup,
    not_before: Instant,
    /// Whether another node held it at the last check.
    locked: bool,
}

impl WorkspaceWorkerSetup {
    /// Reads the index of the workspace.
    ///
    /// # Errors
    /// The store does not answer, or the index is of no use.
    pub async fn open(self) -> Result<WorkspaceWorker> {
        let Self { workspace, reader, sources, terms } = self;
        let intake_gate = Arc::new(IntakeGate::new(terms.retry_pause, terms.retry_pause));
        let options = RunnerOptions {
            slots: terms.jobs,
            drain: terms.drain,
            supplying: Duration::ZERO,
            drain_grace: GIVING_BACK,
        };
        let place = workspace.describe();
        let source = WorkspaceJobSource {
            workspace,
            reader,
            sources,
            retry: RetryConfig::default().with_attempts(terms.tries),
            terms,
            worker: format!("docmill-{}", uuid::Uuid::new_v4()),
            destination: QueueDestination { system: "olmocr".to_owned(), name: place.clone() },
            intake_gate: Arc::clone(&intake_gate),
            waiting: Mutex::default(),
            tally: Mutex::default(),
            warned: Mutex::default(),
        };
        source.load_waiting().await?;
        tracing::info!(groups = source.lock_waiting().len(), "working on {place}");
        let source = Arc::new(source);
        let runner = Runner::new(Arc::clone(&source), options, intake_gate);
        Ok(WorkspaceWorker { source, runner })
    }

    /// Works until everything is done or it is stopped.
    ///
    /// # Errors
    /// As [`WorkspaceWorkerSetup::open`] and [`Runner::run`]. Other failures are waited out.
    pub async fn run(self, stop: Shutdown) -> Result<WorkspaceTally> {
        self.open().await?.run(stop).await
    }
}

impl WorkspaceWorker {
    /// For the health pages.
    pub fn monitor(&self) -> RunnerMonitor {
        self.runner.monitor()
    }

    /// Works until everything is done or it is stopped.
    ///
    /// # Errors
    /// As [`Runner::run`]. Other failures are waited out.
    pub async fn run(self, stop: Shutdown) -> Result<WorkspaceTally> {
        let Self { source, runner } = self;
        let WorkerStats { failed, lost, .. } = runner.run(stop).await?;
        Ok(WorkspaceTally { partial: failed, lost, ..*source.lock_tally() })
    }
}

impl WorkspaceJobSource {
    fn lock_waiting(&self) -> MutexGuard<'_, VecDeque<WaitingGroup>> {
        self.waiting.lock()
    }

    pub(super) fn lock_tally(&self) -> MutexGuard<'_, WorkspaceTally> {
        self.tally.lock()
    }

    /// The unfinished groups, in random order, so that workers rarely collide.
    async fn load_waiting(&self) -> Result<()> {
        let (index, finished) =
            tokio::try_join!(self.workspace.load_index(), self.workspace.finished_groups())?;
        if let Err(error) = self.workspace.clear_finished(&self.worker, &finished).await {
            tracing::warn!(error = %error, "leftovers of dead workers were not removed: {error}");
        }
        let mut groups = index.0.groups;
        groups.retain(|group| !finished.contains(&group.hash));
        fastrand::shuffle(&mut groups);
        let not_before = Instant::now();
        *self.lock_waiting() = groups
            .into_iter()
            .map(|group| WaitingGroup { group, not_before, locked: false })
            .collect();
        Ok(())
    }

    /// The next group whose turn it is.
    fn next_due(&self) -> Option<WorkGroup> {
        let (now, mut waiting) = (Instant::now(), self.lock_waiting());
        let due = waiting.iter().position(|waiting| waiting.not_before <= now)?;
        waiting.remove(due).map(|waiting| waiting.group)
    }

    /// When the next group has its turn; `None` if none waits.
    fn next_turn(&self) -> Option<Instant> {
        self.lock_waiting().iter().map(|waiting| waiting.not_before).min()
    }

    fn requeue_group(&self, group: WorkGroup, pause: Duration, locked: bool) {
        let not_before = Instant::now() + pause;
        self.lock_waiting().push_back(WaitingGroup { group, not_before, locked });
    }

    /// Whether no group is left, once none is running.
    async fn is_over(&self) -> bool {
        {
            let waiting = self.lock_waiting();
            if !waiting.is_empty() {
                return self.terms.leave_locked && waiting.iter().all(|one| one.locked);
            }
        }
        match self.load_waiting().await {
            Ok(()) => self.lock_waiting().is_empty(),
            Err(error) => {
                self.pause_for_error(&error);
                false
            }
        }
    }

    /// The store does not answer: every group would fare the same.
    fn pause_for_error(&self, error: &Error) {
        tracing::warn!(error = %error, "cannot process a group: {error}");
        self.pause_intake();
    }

    /// Warns that a dependency is down or refuses documents: once per reason, and again after a
    /// while, since waiting documents are retried repeatedly.
    pub(super) fn warn_put_off(&self, error: &Error) {
        let (reason, now) = (error.fault.code(), Instant::now());
        let mut warned = self.warned.lock();
        if warned.get(reason).is_none_or(|at| now.duration_since(*at) >= WARN_AGAIN) {
            warned.insert(reason, now);
            tracing::warn!(reason, "documents deferred, see `stats`: {error}");
        }
    }

    /// Takes nothing for a while.
    pub(super) fn pause_intake(&self) {
        self.intake_gate.close_with_backoff(PauseReason::SOURCE);
    }

    /// Takes a group and starts its job, or puts it back.
    async fn take_group(&self, runner: &RunnerHandle<Self>, group: WorkGroup, slot: SlotPermit) {
        let since = Instant::now();
        let answer = self.claim_group(&group).await;
        if answer.is_ok() {
            self.intake_gate.open(PauseReason::SOURCE);
        }
        match answer {
            Ok(GroupTakeResult::Ours(job)) => runner.start_job(self.claimed_job(*job, since), slot),
            Ok(GroupTakeResult::Busy(left)) => {
                metrics::count_delivery("busy");
                self.requeue_group(group, left.min(self.terms.poll_interval), true);
            }
            Ok(GroupTakeResult::Done) => metrics::count_delivery("terminal"),
            Err(error) => {
                metrics::count_delivery("trouble");
                self.pause_for_error(&error);
                self.requeue_group(group, self.terms.retry_pause, false);
            }
        }
    }

    async fn claim_group(&self, group: &WorkGroup) -> Result<GroupTakeResult> {
        let mut claim = match self.workspace.claim_group(&self.worker, group).await? {
            GroupClaimResult::Ours(claim) => claim,
            GroupClaimResult::Busy(left) => return Ok(GroupTakeResult::Busy(left)),
            GroupClaimResult::Done => return Ok(GroupTakeResult::Done),
        };
        match GroupLedger::load(&self.workspace, &group.hash).await {
            Ok(known) => {
                Ok(GroupTakeResult::Ours(Box::new(GroupJob::new(group.clone(), claim, known))))
            }
            Err(error) => {
                self.workspace.try_release_locks(&mut claim).await;
                Err(error)
            }
        }
    }

    fn claimed_job(&self, job: GroupJob, since: Instant) -> ClaimedJob<GroupJob> {
        let hash = job.group.hash.clone();
        let ingestion = IngestionId::from_object_version(&self.destination.name, &hash, "", "");
        let until = (since + self.workspace.lock_timeout()).into_std();
        let (claim, renewer) = claim_handle::claim_pair(ingestion, ClaimToken::random(), until);
        let message = spans::TracedMessage {
            from: &self.destination,
            id: &hash,
            receive_count: 1,
            traceparent: None,
        };
        let traced = spans::TracedAttempt { ingestion, document: &hash, attempt: 1 };
        let trace = spans::process_span(message, traced);
        let log = tracing::info_span!("job", group = hash);
        ClaimedJob { job, claim, renewer, since, place: CpuQueuePosition::take(), trace, log }
    }
}

/// How an attempt to take a group ended.
enum GroupTakeResult {
    Ours(Box<GroupJob>),
    Busy(Duration),
    Done,
}

#[async_trait]
impl JobSource for WorkspaceJobSource {
    type Job = GroupJob;
    type Output = GroupProgress;
    type Rest = ();

    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>) {
        let mut taking = JoinSet::new();
        while let Some(slot) = runner.acquire_slot().await {
            while taking.try_join_next().is_some() {}
            if let Some(group) = self.next_due() {
                let (source, runner) = (Arc::clone(&self), runner.clone());
                taking.spawn(async move {
                    source.take_group(&runner, group, slot).await;
                    runner.wake();
                });
                continue;
            }
            drop(slot);
            // In this order: a group that ends meanwhile is then seen as waiting.
            let is_idle = taking.is_empty() && runner.is_idle();
            if is_idle && self.is_over().await {
                break;
            }
            let next = match (self.next_turn(), is_idle) {
                (Some(turn), _) => turn,
                // Nothing waits and nothing is in work: the index is read again, once the intake
                // gate is open.
                (None, true) => Instant::now(),
                (None, false) => Instant::now() + self.terms.poll_interval,
            };
            runner.wait_until(next).await;
        }
        while taking.join_next().await.is_some() {}
    }

    async fn run_job(
        &self,
        job: &GroupJob,
        claim: &ClaimHandle,
    ) -> std::result::Result<GroupProgress, StepError> {
        job.read_documents(self, claim).await
    }

    fn lease_terms(&self) -> LeaseTerms {
        let (every, lease) = (self.workspace.renewal_interval(), self.workspace.lock_timeout());
        LeaseTerms { every, lease, lost_unrenewed: true, side: "lock" }
    }

    async fn renew(&self, due: &[DueRenewal<GroupJob>]) -> Vec<RenewalResult> {
        let renew = |due: &DueRenewal<GroupJob>| {
            let job = Arc::clone(&due.job);
            async move { job.renew(&self.workspace).await }
        };
        futures::future::join_all(due.iter().map(renew)).await
    }

    async fn finish_job(
        &self,
        job: &GroupJob,
        _claim: &ClaimHandle,
        conclusion: JobConclusion<GroupProgress>,
    ) -> FinishedJob<()> {
        let (pause, poll_interval) = (self.terms.retry_pause, self.terms.poll_interval);
        let settled = job.finish_run(self, &conclusion).await;
        let (end, outcome, again) = match settled {
            Ok(JobEnd::Done) => (JobEnd::Done, "completed", None),
            Ok(JobEnd::Lost) => (JobEnd::Lost, "claim_lost", Some(poll_interval)),
            Ok(JobEnd::GivenBack) => {
                let wait = job::put_off_wait(&conclusion, pause);
                (JobEnd::GivenBack, job::outcome_label(&conclusion), Some(wait))
            }
            Ok(end) => (end, job::outcome_label(&conclusion), Some(pause)),
            Err(error) => {
                self.pause_for_error(&error);
                (JobEnd::Failed, error.fault.code(), Some(pause))
            }
        };
        if let Some(pause) = again {
            self.requeue_group(job.group.clone(), pause, false);
        }
        FinishedJob { end, outcome, rest: () }
    }

    /// Groups have no limit of runs; their documents do.
    fn retry_attempt(&self, _job: &GroupJob) -> RetryAttempt {
        RetryAttempt { number: 1, deferred_for: None, jitter: fastrand::f64() }
    }

    fn retry_config(&self) -> Cow<'_, RetryConfig> {
        Cow::Owned(RetryConfig::default().with_attempts(u32::MAX))
    }

    /// Each of its documents has a time of its own.
    fn job_timeout(&self, _job: &GroupJob) -> Duration {
        Duration::MAX
    }

    fn describe(&self, job: &GroupJob) -> String {
        format!("group {}", job.group.hash)
    }

    async fn find_outage(&self) -> Option<String> {
        self.reader.find_outage()
    }
}
