//! Runs jobs until it is asked to stop: one runner for every place that work comes from.
//!
//! A [`Backlog`] knows where work is found, how a claim on it is renewed and what is written when
//! it ends; the runner knows everything else: slots, the list of running jobs, panics, timeouts,
//! heartbeats, the failure table, pauses after outages, metrics, traces, the drain. The life of a
//! job:
//!
//! 1. [`Backlog::supply_jobs`] waits for a slot ([`RunnerHandle::acquire_slot`]: only while no
//!    [`PauseReason`] closes the [`IntakeGate`]), finds work, claims it, and hands it over with the
//!    slot ([`RunnerHandle::start_job`]).
//! 2. The job enters the list of running jobs. From now on [`Backlog::renew`] is called, for all
//!    jobs that are due together, to renew their claims. The job learns of a loss from its claim
//!    handle.
//! 3. [`Backlog::run_job`] does the work. A panic, a job that takes too long, a lost claim, a stop:
//!    each ends this job and no other.
//! 4. What follows is one table (`pipeline::failure`): completed, ended, tried again, released.
//! 5. The slot is free again, and [`Backlog::finish_job`] writes that down beside the next job's
//!    start; then the claim is no longer renewed. As many ends as there are slots are written at a
//!    time: a job beyond these keeps its slot.
//! 6. [`Backlog::run_deferred`] does what comes after that, such as deleting a message.
//!
//! Intake pushes jobs instead of being pulled (`next(free)`): the three backlogs find work in ways
//! of their own (long polls of several tiers, listings that cost money, an index in random order),
//! and one that has polls out for minutes must reserve slots for what they may bring. What they
//! share is the slots, the intake gate and the stop, so that is what they are given.
//!
//! Nothing here knows queues, Postgres or buckets. Not promised: that a job is not begun twice. A
//! claim that is lost is noticed at the next renewal or write, and until then both may work.

pub mod guard;
mod handle;
mod heartbeat;
pub mod intake_gate;
mod job;
mod monitor;
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
use docmill_core::work_clock::LinePlace;
use docmill_pipeline::failure::RetryAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_pipeline::{ClaimHandle, ClaimRenewer, StepError};
pub use handle::{PULSE, RunnerHandle, SlotPermit};
pub use intake_gate::{IntakeGate, PauseReason};
pub use monitor::{ObservedJob, RunnerMonitor};
pub use service_health::{PROBE_TIMEOUT, ServiceHealth, probe_dependency};
pub use stats::{JobEnd, WorkerStats};
use upkeep::{RunnerFailure, UpkeepTasks};

/// Where work comes from, how a claim on it is renewed, and how it ends.
#[async_trait]
pub trait Backlog: Send + Sync + Sized + 'static {
    /// A claimed piece of work. The job's task and the heartbeat share it; it is dropped after
    /// both.
    type Job: Send + Sync + 'static;
    /// What completed work hands to [`Backlog::finish_job`].
    type Output: Send + 'static;
    /// What is left to do once the outcome is written.
    type Rest: Send + 'static;

    /// Finds work, claims it and starts it, until the runner stops or, if this backlog can end,
    /// until nothing is left. Trouble is waited out.
    async fn supply_jobs(self: Arc<Self>, runner: RunnerHandle<Self>);

    /// Does the work. Dropped at any await when the job must not go on.
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

    /// Does what comes after the outcome is written.
    async fn run_deferred(&self, _job: &Self::Job, _rest: Self::Rest) {}

    /// Renews leases that belong to no job; called at every heartbeat, beside
    /// [`Backlog::renew`] and independent of it.
    async fn renew_side_leases(&self) {}

    /// Whether there are leases that belong to no job.
    fn has_side_leases(&self) -> bool {
        false
    }

    /// Whether an operator has paused what this job needs: then it is released before it begins.
    fn is_job_paused(&self, _job: &Self::Job) -> bool {
        false
    }

    /// What every job needs and is down or refuses us, by its name; `None`: nothing, as far as is
    /// known. Asked after failures that an outage may have caused, and before intake that waited for
    /// one is as it was. For anything else intake does not wait: work that is released with a delay
    /// stays away for that long, which is this backlog's to see to.
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
    /// that says so is a loss, and the job waits for one before everything that counts.
    pub lost_unrenewed: bool,
    /// What is renewed, for the metric of failures: `row` or `lock`.
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
}

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewalResult {
    /// Ours for another lease, from when it was asked for.
    Kept,
    /// The claim belongs to somebody else.
    Lost,
    /// The claim is still ours, but an operator wants the work to stop.
    Withdrawn,
    /// No answer: tried again at the next heartbeat.
    Failed,
}

/// What follows from the way a job ended.
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
        /// How long to wait before the next attempt; zero: at once.
        after: Duration,
        /// The stage in which the attempt ended.
        stage: IngestionStage,
        /// What was being done, never content.
        detail: String,
    },
    /// An operator has cancelled the work.
    Withdrawn,
    /// The claim belongs to somebody else, so nothing is written.
    ClaimLost,
}

/// What [`Backlog::finish_job`] has written, and what is left to do.
#[derive(Debug)]
pub struct FinishedJob<R> {
    /// The way in which the job is counted.
    pub end: JobEnd,
    /// The word for it in metrics, traces and logs.
    pub outcome: &'static str,
    /// What [`Backlog::run_deferred`] still has to do.
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
    pub place: LinePlace,
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
    /// How long jobs may go on after the stop.
    pub drain: Duration,
    /// How long after the stop [`Backlog::supply_jobs`] may need to end, even if the drain is cut
    /// short: a poll that is out is never dropped.
    pub supplying: Duration,
    /// How long it may take, after both, until every job is released.
    pub settling: Duration,
}

/// What the parts of a runner share.
struct RunnerState<B: Backlog> {
    backlog: Arc<B>,
    options: RunnerOptions,
    intake_gate: Arc<IntakeGate>,
    slots: Arc<Semaphore>,
    /// Turns at writing the end of a job whose slot is free already.
    endings: Arc<Semaphore>,
    tasks: TaskTracker,
    running: Mutex<HashMap<u64, RunningJob<B::Job>>>,
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
    renewed: Instant,
    told_stage: IngestionStage,
    /// Its end is being written: from now on the writer learns whether the claim is lost.
    is_ending: bool,
}

impl<B: Backlog> RunnerState<B> {
    fn lock_running(&self) -> MutexGuard<'_, HashMap<u64, RunningJob<B::Job>>> {
        // The map stays sound if a holder panicked: every change is one call on it.
        self.running.lock()
    }

    fn used_slots(&self) -> usize {
        self.options.slots.saturating_sub(self.slots.available_permits())
    }

    fn ending_jobs(&self) -> usize {
        self.lock_running().values().filter(|running| running.is_ending).count()
    }

    fn is_busy(&self) -> bool {
        !self.lock_running().is_empty() || self.backlog.has_side_leases()
    }

    fn spawn<F>(&self, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        tokio::spawn(self.dropped.clone().run_until_cancelled_owned(task))
    }
}

/// Takes work from one backlog.
pub struct Runner<B: Backlog> {
    shared: Arc<RunnerState<B>>,
}

impl<B: Backlog> Runner<B> {
    /// Puts a runner together; nothing is taken yet.
    pub fn new(backlog: Arc<B>, options: RunnerOptions, intake_gate: Arc<IntakeGate>) -> Self {
        let shared = RunnerState {
            backlog,
            options,
            intake_gate,
            slots: Arc::new(Semaphore::new(options.slots)),
            endings: Arc::new(Semaphore::new(options.slots)),
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

    /// Works until asked to stop or nothing is left, then drains.
    ///
    /// Every job that is still running at the drain deadline is cancelled and released. Returns
    /// when no claim and no lease is left, or when those that are could not be given back in time.
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
        let mut supply = shared.spawn(Arc::clone(&shared.backlog).supply_jobs(handle));

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
                tracing::error!(error = %error, "the intake loop died");
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

/// Lets jobs end until the deadline, then gives them back. Says what died, if anything did.
async fn drain_jobs<B: Backlog>(
    shared: &RunnerState<B>,
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

/// Cancels what still runs and waits until that is written down, within the limits. `began`: when
/// intake was told to stop.
async fn give_back_jobs<B: Backlog>(
    shared: &RunnerState<B>,
    drained: impl Future<Output = Option<RunnerFailure>>,
    began: Instant,
) -> Option<RunnerFailure> {
    let RunnerOptions { supplying, settling, .. } = shared.options;
    let held = shared.lock_running().len();
    tracing::warn!(jobs = held, "drain deadline: giving {held} jobs back");
    shared.cancel_jobs.cancel();
    // At a deadline that is no longer than a poll, the last poll is back by now.
    let left = supplying.saturating_sub(began.elapsed()) + settling;
    tokio::time::timeout(left, drained).await.unwrap_or_else(|_elapsed| {
        let left = shared.lock_running().len();
        tracing::error!(jobs = left, "{left} jobs could not be given back");
        None
    })
}
