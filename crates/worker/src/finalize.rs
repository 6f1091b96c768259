//! Writes how a job ended into the ledger and decides what happens to its message.
//!
//! Writes are retried in place while the claim lives. After a reply that may be lost the row is
//! read back by token first, so that an outcome is recorded exactly once (invariant 7). An outcome
//! that Postgres refuses for good (a value that no column takes) ends the ingestion as `internal`
//! with the reason; if it refuses even that, the claim is given back.

use std::time::Duration;

use crate::ack_batcher::MessageDisposition;
use crate::runner::{FinishedJob, JobConclusion, JobEnd};
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::model::{AttemptOutcome, OutcomeReason};
use docmill_core::retry::RetryBackoff;
use docmill_ledger::{ClaimRelease, IngestionResult, Ledger, ReadBack, WriteResult};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_pipeline::{ClaimHandle, verdict};

/// A message whose ingestion waits without one comes once more after this.
const PARKED_SOON: Duration = Duration::from_secs(1);
/// Between two tries.
const WRITE_WAITS: RetryBackoff =
    RetryBackoff::doubling(Duration::from_millis(100)).up_to(Duration::from_secs(5));
/// What Postgres has refused so often it refuses for good.
const REFUSALS: u32 = 3;
/// The next attempt at a document whose end could not be written in any form waits so long.
const REFUSED_DELAY: Duration = Duration::from_secs(5 * 60);

/// Writes what follows from how the work ended, and returns what happens to the message; `None`:
/// the claim is lost, and the message is somebody else's business.
pub async fn finalize_attempt(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    conclusion: JobConclusion<Box<IngestionResult>>,
) -> FinishedJob<Option<MessageDisposition>> {
    match conclusion {
        JobConclusion::Completed(written) => write_result(ledger, claim, &written).await,
        JobConclusion::Ended { reason, stage, detail } => {
            write_result(ledger, claim, &verdict::early_result(reason, stage, detail)).await
        }
        JobConclusion::Again { fault, counted, after, stage, detail } => {
            write_release(ledger, claim, &ClaimRelease { fault, counted, after, stage, detail })
                .await
        }
        // Of an ingestion an operator's end is a write that fences the claim.
        JobConclusion::ClaimLost | JobConclusion::Withdrawn => finish_lost(),
    }
}

async fn write_result(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    record: &IngestionResult,
) -> FinishedJob<Option<MessageDisposition>> {
    match record_until_refused(ledger, claim, record).await {
        Ok(finished) => finished,
        Err(refusal) => write_refused(ledger, claim, record, &refusal).await,
    }
}

/// Postgres will not have the result: the ingestion ends as a failure of ours, for a person to see.
async fn write_refused(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    record: &IngestionResult,
    refusal: &fault::Error,
) -> FinishedJob<Option<MessageDisposition>> {
    let id = claim.id;
    let detail = format!("the result could not be written: {refusal}");
    tracing::error!(ingestion.id = %id, error = %refusal, "{id}: {detail}");
    let (reason, stage) = (OutcomeReason::Internal, record.stage);
    // What was paid for stays on record.
    let failure =
        IngestionResult { usage: record.usage, ..verdict::early_result(reason, stage, detail) };
    match record_until_refused(ledger, claim, &failure).await {
        Ok(finished) => finished,
        Err(_refused_too) => {
            let how = ClaimRelease {
                fault: Fault::Internal,
                counted: true,
                after: REFUSED_DELAY,
                stage,
                detail: failure.detail,
            };
            write_release(ledger, claim, &how).await
        }
    }
}

/// Writes a result until the ledger has answered, or refused it for good.
async fn record_until_refused(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    record: &IngestionResult,
) -> fault::Result<FinishedJob<Option<MessageDisposition>>> {
    let outcome = record.reason.map_or("completed", OutcomeReason::code);
    let end = if record.reason.is_none() { JobEnd::Done } else { JobEnd::Dead };
    let write = || {
        guard_call(FailureSeam::ResultWrite, ledger.record_result(claim.id, claim.token, record))
    };
    Ok(match write_until_answered(claim, ledger, REFUSALS, write).await? {
        WriteResult::Yes => {
            FinishedJob { end, outcome, rest: Some(MessageDisposition::Acknowledge) }
        }
        WriteResult::Lost => finish_fenced(outcome),
    })
}

/// Releases the claim; the message comes again after the pause.
pub async fn write_release(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    how: &ClaimRelease,
) -> FinishedJob<Option<MessageDisposition>> {
    let outcome = AttemptOutcome::Fault(how.fault).code();
    let end = if how.counted { JobEnd::Failed } else { JobEnd::GivenBack };
    let write =
        || guard_call(FailureSeam::Release, ledger.release_claim(claim.id, claim.token, how));
    match write_until_answered(claim, ledger, REFUSALS, write).await {
        Ok(WriteResult::Yes) => {
            // What waits for a batch is woken by its answer: its message is parked when it comes.
            let hide = if matches!(how.fault, Fault::Batched(_)) { PARKED_SOON } else { how.after };
            FinishedJob { end, outcome, rest: Some(MessageDisposition::Hide(hide)) }
        }
        Ok(WriteResult::Lost) => finish_fenced(outcome),
        // Nothing else could be written instead. The lease ends by itself, the next claim counts a crash, and
        // after some of these the ingestion ends: rather than an end that is written for ever.
        Err(_) => finish_lost(),
    }
}

fn finish_fenced(write: &'static str) -> FinishedJob<Option<MessageDisposition>> {
    metrics::fenced_write(write);
    finish_lost()
}

fn finish_lost() -> FinishedJob<Option<MessageDisposition>> {
    FinishedJob { end: JobEnd::Lost, outcome: "claim_lost", rest: None }
}

/// Tries one write until the ledger has answered whether it took effect.
///
/// Whatever the error, the write may have arrived: it is read back before it is tried again, and
/// once more if it then finds no claim (it may have arrived in between).
///
/// # Errors
/// What the ledger said when it had refused it `refusals` times.
async fn write_until_answered<F>(
    claim: &ClaimHandle,
    ledger: &dyn Ledger,
    refusals: u32,
    mut write: impl FnMut() -> F,
) -> fault::Result<WriteResult>
where
    F: Future<Output = fault::Result<WriteResult>>,
{
    let (mut failed, mut refused) = (0, 0);
    let (mut in_doubt, mut doubted) = (false, false);
    loop {
        if in_doubt {
            match ledger.read_back(claim.id, claim.token).await {
                Ok(ReadBack::Recorded) => return Ok(WriteResult::Yes),
                Ok(ReadBack::Lost) => return Ok(WriteResult::Lost),
                Ok(ReadBack::StillHeld) => in_doubt = false,
                Err(_) => {}
            }
        }
        if !in_doubt {
            match write().await {
                Ok(WriteResult::Lost) if doubted => {
                    in_doubt = true;
                    continue;
                }
                Ok(written) => return Ok(written),
                Err(error) => {
                    report_write_failure(claim, &error);
                    refused += u32::from(error.fault == Fault::Internal);
                    if refused >= refusals {
                        return Err(error);
                    }
                    (in_doubt, doubted) = (true, true);
                }
            }
        }
        WRITE_WAITS.sleep(failed).await;
        failed += 1;
    }
}

fn report_write_failure(claim: &ClaimHandle, error: &fault::Error) {
    let (id, fault) = (claim.id, error.fault.code());
    tracing::warn!(
        ingestion.id = %id,
        error = %error,
        fault,
        "writing the outcome of {id} failed, trying again"
    );
}
