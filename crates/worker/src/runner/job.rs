//! One claimed job from start to end: exactly one outcome.
//!
//! The work may panic, hang, lose its claim or be interrupted. Each is one [`WorkOutcome`]. The
//! outcome is written while the next job starts on the slot.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::guard::{GuardedOutcome, describe_timeout, run_guarded};
use super::{
    FailureContext, FinishedJob, JobConclusion, JobEnd, JobSource, PauseReason, RunnerState,
    SAME_FAILURE, SlotPermit, outcome_breaker,
};
use docmill_client::telemetry::spans;
use docmill_core::config::RetryConfig;
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::model::IngestionStage;
use docmill_core::regression::{self, FixToggle};
use docmill_core::work_clock::WorkClock;
use docmill_pipeline::failure::{self, RetryAttempt, RetryDecision};
use docmill_pipeline::{ClaimHandle, StepError};

/// An end that is not written within this lets its turn go: a product has locked its document's row.
const ENDING_TURN: Duration = Duration::from_millis(250);
/// So many ends for each slot may wait without a turn; one beyond these keeps its turn, then its slot.
pub(super) const MAX_STALLED: usize = 8;

/// A job's entry in the list of running jobs, with its slot and later its turn at writing. All are
/// released together on drop.
pub(super) struct RunningJobGuard<S: JobSource> {
    shared: Arc<RunnerState<S>>,
    key: u64,
    slot: Option<SlotPermit>,
}

impl<S: JobSource> RunningJobGuard<S> {
    pub(super) fn new(shared: Arc<RunnerState<S>>, key: u64, slot: SlotPermit) -> Self {
        Self { shared, key, slot: Some(slot) }
    }
}

impl<S: JobSource> RunningJobGuard<S> {
    /// Waits until the end of the job is written. Its slot is free for the next job meanwhile,
    /// unless as many ends as there are slots are being written already. An end that takes long lets
    /// its turn go, too, up to a limit: unwritten ends do not pile up.
    async fn write_end<T>(&mut self, end: impl Future<Output = T>) -> T {
        if let Some(running) = self.shared.lock_running().get_mut(&self.key) {
            running.is_ending = true;
        }
        self.shared.changed.notify_one();
        tokio::pin!(end);
        tokio::select! {
            biased;
            Ok(turn) = Arc::clone(&self.shared.endings).acquire_owned() => {
                self.slot = Some(SlotPermit::new(turn, None));
            }
            written = &mut end => return written,
        }
        match tokio::time::timeout(ENDING_TURN, &mut end).await {
            Ok(written) => return written,
            Err(_elapsed) if regression::is_off(FixToggle::StalledEnds) => {}
            Err(_elapsed) => {
                tokio::select! {
                    biased;
                    Ok(place) = Arc::clone(&self.shared.stalled).acquire_owned() => {
                        self.slot = Some(SlotPermit::new(place, None));
                    }
                    written = &mut end => return written,
                }
            }
        }
        end.await
    }
}

impl<S: JobSource> Drop for RunningJobGuard<S> {
    fn drop(&mut self) {
        // Not under the lock: dropping the job may do more work.
        let removed = self.shared.lock_running().remove(&self.key);
        drop(removed);
        drop(self.slot.take());
        self.shared.changed.notify_one();
    }
}

/// The data owned by the task of a job.
pub(super) struct JobTask<J> {
    pub(super) job: Arc<J>,
    pub(super) claim: ClaimHandle,
    pub(super) withdrawn: CancellationToken,
    /// Started with the job: jobs are served in the order in which they were claimed.
    pub(super) clock: Arc<WorkClock>,
    pub(super) trace: Span,
    pub(super) log: Span,
}

/// The detail of an attempt that panicked.
const PANICKED: &str = "panicked, see the log";

/// How the work on a job ended.
enum WorkOutcome<T> {
    Done(T),
    Failed(StepError),
    Panicked,
    TookTooLong {
        has_progress: bool,
    },
    /// The drain deadline came before the work ended.
    Interrupted,
    /// Something this job needs is paused by an operator.
    HeldBack,
    /// An operator wants the work to stop.
    Withdrawn,
}

/// Runs one job. Its slot is free again as soon as the work has ended: the outcome is written, and
/// deferred work done, while the next job starts.
pub(super) async fn run_job<S: JobSource>(
    shared: Arc<RunnerState<S>>,
    run: Box<JobTask<S::Job>>,
    entry: RunningJobGuard<S>,
) {
    let (trace, log) = (run.trace.clone(), run.log.clone());
    execute_job(&shared, run, entry).instrument(log).instrument(trace).await;
}

async fn execute_job<S: JobSource>(
    shared: &RunnerState<S>,
    run: Box<JobTask<S::Job>>,
    mut entry: RunningJobGuard<S>,
) {
    let started = Instant::now();
    let (source, job, claim) = (&shared.source, run.job.as_ref(), &run.claim);
    let mut ending = run_to_outcome(shared, &run).await;
    note_outage(shared, &mut ending).await;
    report_outcome(shared, job, claim, &ending);
    let failure = SharedFailure::of(claim, &ending);
    let conclusion = match failure {
        Some(failure) if is_shared(shared, claim, failure.context).await => {
            conclude_shared(shared, job, claim, failure)
        }
        _ => {
            let attempt = source.retry_attempt(job);
            conclude_job(ending, claim.stage(), attempt, &source.retry_config())
        }
    };
    let settling = source.finish_job(job, claim, conclusion).instrument(spans::record_span());
    let FinishedJob { end, outcome, rest } = entry.write_end(settling).await;
    note_end(shared, claim, end, outcome);
    spans::record_outcome(&run.trace, outcome);
    shared.stats.add(end);
    drop(entry);
    let elapsed = started.elapsed();
    metrics::record_attempt(outcome, elapsed);
    if matches!(end, JobEnd::Done | JobEnd::Dead) {
        metrics::attempts_to_end(outcome, source.retry_attempt(job).number);
    }
    let name = source.describe(job);
    tracing::info!(
        ingestion.id = %claim.id,
        outcome,
        end = end.code(),
        elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "{name} ended its attempt: {outcome}"
    );
    source.run_deferred(job, rest).await;
}

/// Runs the work until it ends or must stop.
async fn run_to_outcome<S: JobSource>(
    shared: &RunnerState<S>,
    run: &JobTask<S::Job>,
) -> WorkOutcome<S::Output> {
    let (source, job, claim) = (&shared.source, run.job.as_ref(), &run.claim);
    if source.is_job_paused(job) {
        return WorkOutcome::HeldBack;
    }
    let work = run_guarded(&run.clock, source.job_timeout(job), source.run_job(job, claim));
    tokio::select! {
        biased;
        () = claim.wait_until_lost() => WorkOutcome::Failed(StepError::claim_lost()),
        () = run.withdrawn.cancelled() => WorkOutcome::Withdrawn,
        () = shared.cancel_jobs.cancelled() => WorkOutcome::Interrupted,
        ended = work => match ended {
            GuardedOutcome::Ended(Ok(output)) => WorkOutcome::Done(output),
            GuardedOutcome::Ended(Err(error)) => WorkOutcome::Failed(error),
            GuardedOutcome::Panicked => WorkOutcome::Panicked,
            GuardedOutcome::TookTooLong { has_progress } => {
                WorkOutcome::TookTooLong { has_progress }
            }
        },
    }
}

/// Logs what went wrong, once.
fn report_outcome<S: JobSource, T>(
    shared: &RunnerState<S>,
    job: &S::Job,
    claim: &ClaimHandle,
    ending: &WorkOutcome<T>,
) {
    let (id, stage) = (claim.id, claim.stage().code());
    let name = shared.source.describe(job);
    match ending {
        WorkOutcome::Done(_) => {}
        // The new holder of the claim reports the outcome.
        WorkOutcome::Failed(error) if error.is_claim_lost() => {}
        WorkOutcome::Failed(StepError::Fault(error)) => {
            let fault = error.fault.code();
            let cause = error.source.as_ref().map(ToString::to_string);
            if error.fault == Fault::Internal {
                tracing::error!(ingestion.id = %id, stage, fault, cause, "{name}: {error}");
            } else if matches!(error.fault, Fault::Batched(_) | Fault::InLine(_)) {
                // Nothing failed.
                tracing::debug!(ingestion.id = %id, stage, fault, "{name}: {error}");
            } else {
                tracing::warn!(ingestion.id = %id, stage, fault, cause, "{name}: {error}");
            }
        }
        WorkOutcome::Failed(StepError::Rejected { reason, detail }) => {
            let reason = reason.code();
            tracing::info!(ingestion.id = %id, stage, reason, detail, "{name}: {reason}");
        }
        WorkOutcome::Panicked => {
            tracing::error!(ingestion.id = %id, stage, "{name}: a step panicked");
        }
        WorkOutcome::TookTooLong { .. }
        | WorkOutcome::Interrupted
        | WorkOutcome::HeldBack
        | WorkOutcome::Withdrawn => {}
    }
}

/// Closes intake while a dependency of every job is down, and opens it once that answers again. A
/// job that succeeds without the dependency proves nothing. A refusal of one job affects only that
/// job.
async fn note_outage<S: JobSource, T>(shared: &RunnerState<S>, ending: &mut WorkOutcome<T>) {
    match ending {
        WorkOutcome::Done(_) => resume_intake(shared).await,
        WorkOutcome::Failed(StepError::Fault(error)) if may_be_outage(error.fault) => {
            let Some(name) = shared.source.find_outage().await else { return };
            if shared.intake_gate.close_with_backoff(PauseReason::DEPENDENCY) {
                tracing::warn!(dependency = name, "{name} is down: intake paused");
            }
            if error.fault == Fault::Transient {
                // The outage would have failed any document, so it is not counted.
                error.fault = Fault::Unavailable;
            }
        }
        _ => {}
    }
}

/// After a job that is done: lifts the pause for what is down, if that is there again.
async fn resume_intake<S: JobSource>(shared: &RunnerState<S>) {
    let (gate, source) = (&shared.intake_gate, &shared.source);
    if gate.is_unlifted(PauseReason::DEPENDENCY) && source.find_outage().await.is_none() {
        gate.open(PauseReason::DEPENDENCY);
    }
}

/// A failure that may be everybody's.
struct SharedFailure {
    context: FailureContext,
    fault: Fault,
    detail: String,
}

impl SharedFailure {
    /// `None`: no failure, or one with a reaction of its own.
    fn of<T>(claim: &ClaimHandle, ending: &WorkOutcome<T>) -> Option<Self> {
        let stage = claim.stage();
        let (context, fault, detail) = match ending {
            WorkOutcome::Failed(StepError::Fault(error)) => {
                (FailureContext::of_error(stage, error)?, error.fault, error.to_string())
            }
            WorkOutcome::Panicked => {
                (FailureContext::new(stage, Fault::Internal)?, Fault::Internal, PANICKED.to_owned())
            }
            _ => return None,
        };
        Some(Self { context, fault, detail })
    }
}

/// Whether a failure is not the document's own: others before it failed alike, or do at the same time,
/// and none passed. Intake is closed then, and one job at a time tries.
async fn is_shared<S: JobSource>(
    shared: &RunnerState<S>,
    claim: &ClaimHandle,
    context: FailureContext,
) -> bool {
    hold_if_shared(shared, claim, context) || shared.outcomes.wait_for_evidence(context).await
}

/// The consequence of a failure shared by all documents: release to other workers, or deferral as
/// in an outage.
fn conclude_shared<S: JobSource>(
    shared: &RunnerState<S>,
    job: &S::Job,
    claim: &ClaimHandle,
    failure: SharedFailure,
) -> JobConclusion<S::Output> {
    let SharedFailure { context, fault, detail } = failure;
    let (source, stage) = (&shared.source, claim.stage());
    if context.closes_intake() {
        let after = outcome_breaker::release_delay();
        return JobConclusion::Again {
            fault,
            counted: false,
            is_shared: true,
            after,
            stage,
            detail,
        };
    }
    let outage = WorkOutcome::Failed(fault::Error::new(Fault::Unavailable, detail).into());
    conclude_job(outage, stage, source.retry_attempt(job), &source.retry_config())
}

/// Records the failure; returns `true` if it is shared by all documents. Intake is closed then if a
/// person must fix its cause.
fn hold_if_shared<S: JobSource>(
    shared: &RunnerState<S>,
    claim: &ClaimHandle,
    context: FailureContext,
) -> bool {
    let is_shared = shared.outcomes.note_failure(claim.id, context);
    let is_closing = is_shared && context.closes_intake();
    if is_closing && shared.intake_gate.close_for_trial(SAME_FAILURE) {
        tracing::error!(
            stage = context.stage.code(),
            fault = context.fault,
            "{context}: intake paused, nothing is counted, one document at a time tries"
        );
    }
    is_shared
}

/// After the end was written: a job that passed what others failed in opens intake again. An end
/// that the database does not let this worker write is a failure like one in the work.
fn note_end<S: JobSource>(
    shared: &RunnerState<S>,
    claim: &ClaimHandle,
    end: JobEnd,
    outcome: &'static str,
) {
    let context = FailureContext { stage: claim.stage(), fault: outcome };
    let is_again = matches!(end, JobEnd::GivenBack | JobEnd::Failed);
    if is_again && context.stage == IngestionStage::Record && context.closes_intake() {
        hold_if_shared(shared, claim, context);
    }
    if shared.outcomes.note_passed(claim, end == JobEnd::Done) {
        shared.intake_gate.open(SAME_FAILURE);
    }
}

/// Whether an outage of a dependency may have caused the failure.
fn may_be_outage(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Transient
            | Fault::Unavailable
            | Fault::Denied
            | Fault::Misconfigured
            | Fault::OverBudget(_)
            // A hook that is down.
            | Fault::InLine(_)
    )
}

/// Applies the failure table.
fn conclude_job<T>(
    ending: WorkOutcome<T>,
    stage: IngestionStage,
    attempt: RetryAttempt,
    retry: &RetryConfig,
) -> JobConclusion<T> {
    let conclude = |decision: RetryDecision, fault: Fault, detail: String| match decision {
        RetryDecision::End(reason) => JobConclusion::Ended { reason, stage, detail },
        RetryDecision::Again { counted, after } => {
            JobConclusion::Again { fault, counted, is_shared: false, after, stage, detail }
        }
        RetryDecision::LeaveToOwner => JobConclusion::ClaimLost,
    };
    let after_fault = |fault: Fault, detail: String| {
        conclude(failure::decide_retry(fault, attempt, retry), fault, detail)
    };
    match ending {
        WorkOutcome::Done(output) => JobConclusion::Completed(output),
        WorkOutcome::Withdrawn => JobConclusion::Withdrawn,
        WorkOutcome::Failed(StepError::Rejected { reason, detail }) => {
            JobConclusion::Ended { reason, stage, detail }
        }
        WorkOutcome::Failed(StepError::Fault(error)) => after_fault(error.fault, error.to_string()),
        WorkOutcome::Panicked => after_fault(Fault::Internal, PANICKED.to_owned()),
        WorkOutcome::TookTooLong { has_progress } => {
            let detail = describe_timeout(has_progress).to_owned();
            conclude(failure::decide_timeout(has_progress), Fault::Transient, detail)
        }
        WorkOutcome::Interrupted => {
            after_fault(Fault::Interrupted, "the worker was stopped".to_owned())
        }
        WorkOutcome::HeldBack => after_fault(Fault::Paused, "paused by an operator".to_owned()),
    }
}
