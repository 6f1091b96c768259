//! Runs jobs until stopped: one runner for every source of work.
//!
//! A [`JobSource`] finds work, renews claims and writes outcomes. The runner has everything else:
//! slots, the list of running jobs, panics, timeouts, heartbeats, the failure table, pauses after
//! outages, metrics, traces, the drain. The life of a job:
//!
//! 1. [`JobSource::supply_jobs`] waits for a slot ([`RunnerHandle::acquire_slot`]: only while no
//!    [`PauseReason`] closes the [`IntakeGate`]), finds work, claims it, and hands it over with the
//!    slot ([`RunnerHandle::start_job`]).
//! 2. The job enters the list of running jobs. From now on [`JobSource::renew`] renews its claim,
//!    together with all others that are due. The claim handle reports a loss to the job.
//! 3. [`JobSource::run_job`] does the work. A panic, a timeout, a lost claim or a stop ends this
//!    job and no other.
//! 4. The failure table (`pipeline::failure`) decides: completed, ended, retried, released.
//! 5. The slot is free again, and [`JobSource::finish_job`] writes the outcome while the next job
//!    starts; then the claim is no longer renewed. As many outcomes as there are slots are written
//!    at a time, and those that wait for a locked row beside them up to a limit: a job beyond these
//!    keeps its slot.
//! 6. [`JobSource::run_deferred`] does what comes after that, such as deleting a message.
//!
//! Job sources push jobs instead of being pulled (`next(free)`). The three of them find work in
//! different ways: long polls of several tiers, listings that cost money, an index in random order.
//! A source with polls out for minutes must reserve slots for their results. Slots, intake gate and
//! stop are all that they share, so the handle offers those.
//!
//! The runner does not depend on queues, Postgres or buckets. Not promised: that a job is started
//! only once. A lost claim is noticed at the next renewal or write; until then both may work.

pub mod guard;
mod handle;
mod heartbeat;
pub mod intake_gate;
mod job;
mod monitor;
pub mod outcome_breaker;
mod service_health;
mod stats;
mod upkeep;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Span;

use docmill_core::config::RetryConfig;
use docmill_core::fault::{self, Fault};
use docmill_core::model::{IngestionStage, OutcomeReason};
use docmill_core::work_clock::{CpuQueuePosition, WorkClock};
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, ClaimRenewer, StepError};
pub use handle::{RunnerHandle, SlotPermit, TICK_INTERVAL};
pub use intake_gate::{IntakeGate, PauseReason};
pub use monitor::{ObservedJob, RunnerMonitor};
use outcome_breaker::OutcomeBreaker;
pub use outcome_breaker::{FailureContext, SAME_FAILURE};
pub use service_health::{PROBE_TIMEOUT, ServiceHealth, probe_dependency};
pub use stats::{JobEnd, WorkerStats};
use upkeep::{RunnerFailure, UpkeepTasks};

/// Where work comes from, how a claim on it is renewed, and how it ends.
#[async_trait]
pub trait JobSource: Send + Sync + Sized + 'static {
    /// A claimed piece of work. The job's task and the heartbeat share it; it is dropped after
    /// both.
    type Job: Send + Sync + 'static;
    /// The output of completed work, for [`JobSource::finish_job`].
    type Output: Send + 'static;
    /// The remaining work once the outcome is written.
    type Rest: Send + 'static;

    /// Finds work, claims it and starts it, until the runner stops or a finite source is exhausted.
    /// Waits through outages.
    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>);

    /// Does the work. Dropped at any await when the job must stop.
    ///
    /// # Errors
    /// Why the work could not be done.
    async fn run_job(
        &self,
        job: &Self::Job,
        claim: &ClaimHandle,
    ) -> Result<Self::Output, StepError>;

    /// The terms on which claims are renewed now.
    fn lease_terms(&self) -> LeaseTerms;

    /// Renews these claims for another lease; one answer for each, in their order. Failures are
    /// logged here.
    async fn renew(&self, due: &[DueRenewal<Self::Job>]) -> Vec<RenewalResult>;

    /// Writes down how the job ended, trying again as long as that makes sense.
    async fn finish_job(
        &self,
        job: &Self::Job,
        claim: &ClaimHandle,
        conclusion: JobConclusion<Self::Output>,
    ) -> FinishedJob<Self::Rest>;

    /// Which attempt at its work this job is; asked when it failed.
    fn retry_attempt(&self, job: &Self::Job) -> RetryAttempt;

    /// Limits and delays of the failure table.
    fn retry_config(&self) -> Cow<'_, RetryConfig>;

    /// The longest the job may take.
    fn job_timeout(&self, job: &Self::Job) -> Duration;

    /// The job in log lines: what it is and its name, e.g. `document 4f1b…`.
    fn describe(&self, job: &Self::Job) -> String;

    /// Runs the work after the outcome is written.
    async fn run_deferred(&self, _job: &Self::Job, _rest: Self::Rest) {}

    /// Renews leases that belong to no job; called at every heartbeat, beside
    /// [`JobSource::renew`] and independent of it.
    async fn renew_side_leases(&self) {}

    /// Whether there are leases that belong to no job.
    fn has_side_leases(&self) -> bool {
        false
    }

    /// Whether an operator has paused what this job needs: then it is released before it begins.
    fn is_job_paused(&self, _job: &Self::Job) -> bool {
        false
    }

    /// The name of a dependency of every job that is down or refuses access, if one is known.
    /// Called after failures that an outage may have caused, and before intake resumes. Other
    /// outages do not close intake: the source delays the released work itself.
    async fn find_outage(&self) -> Option<String> {
        None
    }

    /// Runs beside the jobs until `stop`, which is cancelled once no job is left.
    async fn run_background(self: Arc<Self>, _runner: RunnerHandle<Self>, stop: CancellationToken) {
        stop.cancelled().await;
    }
}

/// The terms on which claims are renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// A claim is never older than this when its renewal is asked for.
    pub every: Duration,
    /// A claim that is not renewed for this long may be taken by anybody.
    pub lease: Duration,
    /// Whether a claim counts as lost when it could not be renewed in time. If not, only an answer
    /// is a loss, and the job waits for one before every side effect.
    pub lost_unrenewed: bool,
    /// The renewed lease, as a label of the failure metric: `row` or `lock`.
    pub side: &'static str,
}

/// A claim that is to be renewed.
#[derive(Debug)]
pub struct DueRenewal<J> {
    /// The job whose claim is to be renewed.
    pub job: Arc<J>,
    /// The claim as the job sees it.
    pub claim: ClaimHandle,
    /// The stage, if it changed since the last renewal.
    pub new_stage: Option<IngestionStage>,
    /// Whether the job has kept anything that another attempt need not do again.
    pub has_progress: bool,
    /// Whether its work is over and only its end is not written yet.
    pub is_over: bool,
}

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewalResult {
    /// Ours for another lease, from when it was asked for.
    Kept,
    /// Another worker holds the claim.
    Lost,
    /// The claim is live, but an operator has cancelled the work.
    Withdrawn,
    /// No answer: tried again at the next heartbeat.
    Failed,
}

/// The consequence of the way a job ended.
#[derive(Debug)]
pub enum JobConclusion<T> {
    /// The work was completed, with this output.
    Completed(T),
    /// The job ends for good without an output.
    Ended {
        /// The code for it.
        reason: OutcomeReason,
        /// The stage in which it ended.
        stage: IngestionStage,
        /// Counts and limits, never content.
        detail: String,
    },
    /// The job is to be attempted again.
    Again {
        /// The fault that ended this attempt.
        fault: Fault,
        /// Whether this attempt counts.
        counted: bool,
        /// Whether other documents fail alike here, so that another worker should try.
        is_shared: bool,
        /// How long to wait before the next attempt; zero: at once.
        after: Duration,
        /// The stage in which the attempt ended.
        stage: IngestionStage,
        /// The step that failed, never content.
        detail: String,
    },
    /// An operator has cancelled the work.
    Withdrawn,
    /// Another worker holds the claim, so nothing is written.
    ClaimLost,
}

/// What [`JobSource::finish_job`] has written, and what is left to do.
#[derive(Debug)]
pub struct FinishedJob<R> {
    /// The way in which the job is counted.
    pub end: JobEnd,
    /// The word for it in metrics, traces and logs.
    pub outcome: &'static str,
    /// What [`JobSource::run_deferred`] still has to do.
    pub rest: R,
}

/// A claimed job that is to be started.
pub struct ClaimedJob<J> {
    /// The work that is to be done.
    pub job: J,
    /// Its claim, as the job sees it.
    pub claim: ClaimHandle,
    /// Its claim, as the heartbeat sees it.
    pub renewer: ClaimRenewer,
    /// When the claim was asked for: its lease is counted from then.
    pub since: Instant,
    /// Its place among the jobs that wait for a core.
    pub place: CpuQueuePosition,
    /// The span of the whole job in traces.
    pub trace: Span,
    /// The span that its log lines belong to.
    pub log: Span,
}

/// The limits of a runner.
#[derive(Debug, Clone, Copy)]
pub struct RunnerOptions {
    /// How many jobs run at the same time.
    pub slots: usize,
    /// How long jobs may run after the stop.
    pub drain: Duration,
    /// How long after the stop [`JobSource::supply_jobs`] may need to end, even if the drain is cut
    /// short: a poll that is out is never dropped.
    pub supplying: Duration,
    /// How long it may take, after both, until every job is released.
    pub drain_grace: Duration,
}

/// State shared by the parts of a runner.
struct RunnerState<S: JobSource> {
    source: Arc<S>,
    options: RunnerOptions,
    intake_gate: Arc<IntakeGate>,
    slots: Arc<Semaphore>,
    /// Turns at writing the end of a job whose slot is free already.
    endings: Arc<Semaphore>,
    /// Tells failures of everybody from those of one document.
    outcomes: OutcomeBreaker,
    /// Places for ends that could not be written in a turn: what they wait for delays no other job.
    stalled: Arc<Semaphore>,
    tasks: TaskTracker,
    running: Mutex<HashMap<u64, RunningJob<S::Job>>>,
    next_key: AtomicU64,
    /// A job ended, or something else that intake may wait for.
    changed: Notify,
    stop_intake: CancellationToken,
    cancel_jobs: CancellationToken,
    /// Cancelled to stop the runner from inside ([`RunnerHandle::stop`]).
    quit: CancellationToken,
    /// Ends every task at once: the runner is no more.
    dropped: CancellationToken,
    stats: stats::StatsCounter,
    started: Instant,
    /// Milliseconds after `started` of the last turn of the intake loop.
    pulse_ms: AtomicU64,
}

/// A job that runs, as the heartbeat sees it.
struct RunningJob<J> {
    job: Arc<J>,
    claim: ClaimHandle,
    renewer: ClaimRenewer,
    withdrawn: CancellationToken,
    clock: Arc<WorkClock>,
    renewed: Instant,
    told_stage: IngestionStage,
    /// Its end is being written: the writer itself detects a lost claim.
    is_ending: bool,
}

impl<S: JobSource> RunnerState<S> {
    fn lock_running(&self) -> MutexGuard<'_, HashMap<u64, RunningJob<S::Job>>> {
        // The map stays sound if a holder panicked: every change is one call on it.
        self.running.lock()
    }

    /// Jobs under work. A slot that was taken to receive messages runs none yet, and a job whose end
    /// is being written has none any more.
    fn used_slots(&self) -> usize {
        self.lock_running().values().filter(|running| !running.is_ending).count()
    }

    fn ending_jobs(&self) -> usize {
        self.lock_running().values().filter(|running| running.is_ending).count()
    }

    fn is_busy(&self) -> bool {
        !self.lock_running().is_empty() || self.source.has_side_leases()
    }

    fn spawn<F>(&self, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        tokio::spawn(self.dropped.clone().run_until_cancelled_owned(task))
    }
}

/// Takes work from one job source.
pub struct Runner<S: JobSource> {
    shared: Arc<RunnerState<S>>,
}

impl<S: JobSource> Runner<S> {
    /// Puts a runner together; nothing is taken yet.
    pub fn new(source: Arc<S>, options: RunnerOptions, intake_gate: Arc<IntakeGate>) -> Self {
        let shared = RunnerState {
            source,
            options,
            intake_gate,
            slots: Arc::new(Semaphore::new(options.slots)),
            endings: Arc::new(Semaphore::new(options.slots)),
            outcomes: OutcomeBreaker::default(),
            stalled: Arc::new(Semaphore::new(options.slots.saturating_mul(job::MAX_STALLED))),
            tasks: TaskTracker::new(),
            running: Mutex::default(),
            next_key: AtomicU64::new(0),
            changed: Notify::new(),
            stop_intake: CancellationToken::new(),
            cancel_jobs: CancellationToken::new(),
            quit: CancellationToken::new(),
            dropped: CancellationToken::new(),
            stats: stats::StatsCounter::default(),
            started: Instant::now(),
            pulse_ms: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// For the health pages.
    pub fn monitor(&self) -> RunnerMonitor {
        RunnerMonitor::from_shared(Arc::clone(&self.shared))
    }

    /// Works until stopped or the source is exhausted, then drains.
    ///
    /// Every job that is still running at the drain deadline is cancelled and released. Returns
    /// when no claim and no lease is left, or when the rest could not be released in time.
    /// If this future is dropped, everything stops where it is.
    ///
    /// # Errors
    /// `Internal` if a part of it died; what was under way is given back. The process should end
    /// with an error, so that another takes its place.
    pub async fn run(self, stop: Shutdown) -> fault::Result<WorkerStats> {
        let Self { shared } = self;
        let _alive = shared.dropped.clone().drop_guard();
        let last = CancellationToken::new();
        let mut upkeep = UpkeepTasks::start(&shared, &last);
        let handle = RunnerHandle::from_shared(&shared);
        let mut supply = shared.spawn(Arc::clone(&shared.source).supply_jobs(handle));

        let (mut supplied, mut failed) = (None, None);
        tokio::select! {
            () = stop.wait_until_requested() => {}
            () = shared.quit.cancelled() => {}
            ended = &mut supply => supplied = Some(ended),
            failure = upkeep.wait_for_failure() => failed = Some(failure),
        };
        let started = Instant::now();
        shared.stop_intake.cancel();
        let drained = async {
            let ended = match supplied {
                Some(ended) => ended,
                None => supply.await,
            };
            shared.tasks.close();
            shared.tasks.wait().await;
            ended.err().map(|error| {
                tracing::error!(error = %error, "the intake loop panicked");
                RunnerFailure { part: "intake loop" }
            })
        };
        let failed = match failed {
            Some(failure) => give_back_jobs(&shared, drained, started).await.or(Some(failure)),
            None => drain_jobs(&shared, drained, &stop, &mut upkeep).await,
        };

        // Every job has written its end: now there is no lease left to renew.
        last.cancel();
        upkeep.wait_until_ended().await;
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(elapsed_ms, "drained in {elapsed_ms} ms");
        match failed {
            Some(failure) => Err(failure.into_error()),
            None => Ok(shared.stats.snapshot()),
        }
    }
}

/// Lets jobs end until the deadline, then releases them. Returns the part that died, if any.
async fn drain_jobs<S: JobSource>(
    shared: &RunnerState<S>,
    drained: impl Future<Output = Option<RunnerFailure>>,
    stop: &Shutdown,
    upkeep: &mut UpkeepTasks,
) -> Option<RunnerFailure> {
    let began = Instant::now();
    tokio::pin!(drained);
    let failed = tokio::select! {
        biased;
        failed = &mut drained => return failed,
        () = stop.wait_until_deadline(shared.options.drain) => None,
        failure = upkeep.wait_for_failure() => Some(failure),
    };
    let also_failed = give_back_jobs(shared, drained, began).await;
    failed.or(also_failed)
}

/// Cancels running jobs and waits until their release is written, within the limits. `began`: when
/// intake was stopped.
async fn give_back_jobs<S: JobSource>(
    shared: &RunnerState<S>,
    drained: impl Future<Output = Option<RunnerFailure>>,
    began: Instant,
) -> Option<RunnerFailure> {
    let RunnerOptions { supplying, drain_grace, .. } = shared.options;
    let held = shared.lock_running().len();
    tracing::warn!(jobs = held, "drain deadline: releasing {held} jobs");
    shared.cancel_jobs.cancel();
    // At a deadline that is no longer than a poll, the last poll is back by now.
    let left = supplying.saturating_sub(began.elapsed()) + drain_grace;
    tokio::time::timeout(left, drained).await.unwrap_or_else(|_elapsed| {
        let left = shared.lock_running().len();
        tracing::error!(jobs = left, "{left} jobs could not be released");
        None
    })
}
