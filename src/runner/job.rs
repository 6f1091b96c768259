//! One claimed job from its start to its end: exactly one outcome, whatever happens.
//!
//! The work may panic, hang, lose its claim or be interrupted; each ends here in one ending, and
//! what follows from it is settled before the slot is free.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::guard::{Guarded, guard};
use super::{Backlog, Conclusion, Door, JobEnd, Settlement, Shared, SlotPermit};
use crate::config::RetryConfig;
use crate::fault::Fault;
use crate::metrics;
use crate::model::{Reason, Stage};
use crate::pipeline::failure::{self, Attempt, Next};
use crate::pipeline::{ClaimHandle, StepError};
use crate::telemetry::spans;

/// A job's place among those that run, and its slot; given up together, whatever happened.
pub(super) struct Entry<B: Backlog> {
    shared: Arc<Shared<B>>,
    key: u64,
    slot: Option<SlotPermit>,
}

impl<B: Backlog> Entry<B> {
    pub(super) fn new(shared: Arc<Shared<B>>, key: u64, slot: SlotPermit) -> Self {
        Self { shared, key, slot: Some(slot) }
    }
}

impl<B: Backlog> Drop for Entry<B> {
    fn drop(&mut self) {
        // Not under the lock: what the job holds may have more to do when it is dropped.
        let removed = self.shared.running().remove(&self.key);
        drop(removed);
        drop(self.slot.take());
        self.shared.changed.notify_one();
    }
}

/// A job as its task has it.
pub(super) struct Run<J> {
    pub(super) job: Arc<J>,
    pub(super) claim: ClaimHandle,
    pub(super) withdrawn: CancellationToken,
    pub(super) trace: Span,
    pub(super) log: Span,
}

/// How the work on a job ended.
enum Ending<T> {
    Done(T),
    Failed(StepError),
    Panicked,
    TookTooLong,
    /// The drain deadline.
    Interrupted,
    /// Something this job needs is paused by an operator.
    HeldBack,
    /// An operator wants the work to stop.
    Withdrawn,
}

/// Runs one job. Its slot is free again as soon as the outcome is written: what is left to do is
/// done while the next job starts.
pub(super) async fn run<B: Backlog>(shared: Arc<Shared<B>>, run: Run<B::Job>, entry: Entry<B>) {
    let (trace, log) = (run.trace.clone(), run.log.clone());
    work(&shared, run, entry).instrument(log).instrument(trace).await;
}

async fn work<B: Backlog>(shared: &Shared<B>, run: Run<B::Job>, entry: Entry<B>) {
    let started = Instant::now();
    let (backlog, job, claim) = (&shared.backlog, run.job.as_ref(), &run.claim);
    let ending = end_of(shared, &run).await;
    report(shared, job, claim, &ending);
    let attempt = backlog.attempt(job);
    let conclusion = conclude(ending, claim.stage(), attempt, &backlog.retry());
    let settling = backlog.settle(job, claim, conclusion).instrument(spans::record());
    let Settlement { end, outcome, rest } = settling.await;
    spans::ended(&run.trace, outcome);
    shared.stats.add(end);
    drop(entry);
    let elapsed = started.elapsed();
    metrics::attempt(outcome, elapsed);
    if matches!(end, JobEnd::Done | JobEnd::Dead) {
        metrics::attempts_to_end(outcome, attempt.number);
    }
    let name = backlog.describe(job);
    tracing::info!(
        ingestion.id = %claim.id,
        outcome,
        end = end.code(),
        elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "{name} ended its attempt: {outcome}"
    );
    backlog.dispose(job, rest).await;
}

/// Does the work until it ends or must not go on.
async fn end_of<B: Backlog>(shared: &Shared<B>, run: &Run<B::Job>) -> Ending<B::Output> {
    let (backlog, job, claim) = (&shared.backlog, run.job.as_ref(), &run.claim);
    if backlog.holds_back(job) {
        return Ending::HeldBack;
    }
    let work = guard(backlog.job_timeout(job), backlog.work(job, claim));
    tokio::select! {
        biased;
        () = claim.until_lost() => Ending::Failed(StepError::claim_lost()),
        () = run.withdrawn.cancelled() => Ending::Withdrawn,
        () = shared.cancel_jobs.cancelled() => Ending::Interrupted,
        ended = work => match ended {
            Guarded::Ended(Ok(output)) => Ending::Done(output),
            Guarded::Ended(Err(error)) => Ending::Failed(error),
            Guarded::Panicked => Ending::Panicked,
            Guarded::TookTooLong => Ending::TookTooLong,
        },
    }
}

/// Logs what went wrong, once, and lets intake know of outages.
fn report<B: Backlog, T>(
    shared: &Shared<B>,
    job: &B::Job,
    claim: &ClaimHandle,
    ending: &Ending<T>,
) {
    let (id, stage) = (claim.id, claim.stage().code());
    let name = shared.backlog.describe(job);
    match ending {
        Ending::Done(_) => shared.doors.open(Door::DEPENDENCY),
        // Whoever has it by now tells what becomes of it.
        Ending::Failed(error) if error.is_claim_lost() => {}
        Ending::Failed(StepError::Fault(error)) => {
            pause(shared, error.fault);
            let fault = error.fault.code();
            let cause = error.source.as_ref().map(ToString::to_string);
            if error.fault == Fault::Internal {
                tracing::error!(ingestion.id = %id, stage, fault, cause, "{name}: {error}");
            } else {
                tracing::warn!(ingestion.id = %id, stage, fault, cause, "{name}: {error}");
            }
        }
        Ending::Failed(StepError::Rejected { reason, detail }) => {
            let reason = reason.code();
            tracing::info!(ingestion.id = %id, stage, reason, detail, "{name}: {reason}");
        }
        Ending::Panicked => {
            tracing::error!(ingestion.id = %id, stage, "{name}: a step panicked");
        }
        Ending::TookTooLong | Ending::Interrupted | Ending::HeldBack | Ending::Withdrawn => {}
    }
}

/// After what every other job would meet as well, intake waits: for a while that grows, or, where
/// work that is given back is there again at once, for as long as it was to stay away.
fn pause<B: Backlog>(shared: &Shared<B>, fault: Fault) {
    let stays_away = shared.backlog.puts_off();
    match fault {
        Fault::Unavailable | Fault::Denied | Fault::Misconfigured => {
            shared.doors.close_for_a_while(Door::DEPENDENCY)
        }
        Fault::Throttled(Some(told)) | Fault::OverBudget(told) if !stays_away => {
            shared.doors.close_for(Door::DEPENDENCY, told);
        }
        Fault::Throttled(None) if !stays_away => {
            shared.doors.close_for_a_while(Door::DEPENDENCY);
        }
        Fault::Throttled(_)
        | Fault::OverBudget(_)
        | Fault::Transient
        | Fault::Missing
        | Fault::Rejected
        | Fault::Interrupted
        | Fault::ClaimLost
        | Fault::Paused
        | Fault::Internal => {}
    }
}

/// What follows, by the failure table.
fn conclude<T>(
    ending: Ending<T>,
    stage: Stage,
    attempt: Attempt,
    retry: &RetryConfig,
) -> Conclusion<T> {
    let after_fault = |fault: Fault, detail: String| match failure::next(fault, attempt, retry) {
        Next::End(reason) => Conclusion::Ended { reason, stage, detail },
        Next::Again { counted, after } => {
            Conclusion::Again { fault, counted, after, stage, detail }
        }
        Next::LeaveToOwner => Conclusion::ClaimLost,
    };
    match ending {
        Ending::Done(output) => Conclusion::Completed(output),
        Ending::Withdrawn => Conclusion::Withdrawn,
        Ending::Failed(StepError::Rejected { reason, detail }) => {
            Conclusion::Ended { reason, stage, detail }
        }
        Ending::Failed(StepError::Fault(error)) => after_fault(error.fault, error.to_string()),
        Ending::Panicked => {
            after_fault(Fault::Internal, "a panic, see the log of that time".to_owned())
        }
        Ending::TookTooLong => {
            let detail = "the attempt took longer than worker.job_timeout".to_owned();
            Conclusion::Ended { reason: Reason::Timeout, stage, detail }
        }
        Ending::Interrupted => after_fault(Fault::Interrupted, "the worker was stopped".to_owned()),
        Ending::HeldBack => after_fault(Fault::Paused, "paused by an operator".to_owned()),
    }
}
