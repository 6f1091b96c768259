//! Writes the outcome of a job into the ledger and decides what happens to its message.
//!
//! Writes are retried while the claim lives. After a possibly lost reply the row is read back by
//! token first, so that an outcome is recorded exactly once (invariant 7). If Postgres rejects an
//! outcome permanently (a value that no column takes, an index that is damaged), that is a failed
//! attempt. The last one ends the ingestion as `internal` with the reason. If Postgres rejects that
//! too, the claim is released. If this worker may not write it (a right or a table is missing), or if it
//! rejects the outcomes of all, the claim is released for others, uncounted.

use std::time::Duration;

use crate::ack_batcher::MessageDisposition;
use crate::runner::{FinishedJob, JobConclusion, JobEnd};
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::model::{AttemptOutcome, IngestionStage, OutcomeReason};
use docmill_core::retry::{Jitter, RetryBackoff};
use docmill_ledger::{ClaimRelease, IngestionResult, Ledger, ReadBack, WriteResult};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_pipeline::{ClaimHandle, verdict};

/// Delay of the message of an ingestion that waits without one.
const PARKED_SOON: Duration = Duration::from_secs(1);
/// Between two tries.
const WRITE_WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(100))
    .up_to(Duration::from_secs(5))
    .with_jitter(Jitter::Quarter);
/// Rejections by Postgres after which a write counts as permanently rejected.
const REFUSALS: u32 = 3;
/// Delay before another worker may try to write what this one may not.
const UNWRITTEN_DELAY: Duration = Duration::from_secs(2);
/// Delay before the next attempt when no form of the outcome could be written.
const REFUSED_DELAY: Duration = Duration::from_secs(5 * 60);

/// Facts that decide the handling of an outcome that Postgres rejects.
#[derive(Debug, Clone, Copy)]
pub struct RefusedWrite {
    /// This worker's documents all fail: release to another worker, soon.
    pub fails_alike: bool,
    /// No attempt is left: the ingestion ends.
    pub is_last: bool,
}

/// Writes the outcome and returns the message's disposition; `None`: the claim is lost, and its new
/// holder disposes of the message. `refused` is what becomes of an outcome that Postgres rejects.
pub async fn finalize_attempt(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    conclusion: JobConclusion<Box<IngestionResult>>,
    refused: RefusedWrite,
) -> FinishedJob<Option<MessageDisposition>> {
    match conclusion {
        JobConclusion::Completed(written) => write_result(ledger, claim, &written, refused).await,
        JobConclusion::Ended { reason, stage, detail } => {
            let record = verdict::early_result(reason, stage, detail);
            write_result(ledger, claim, &record, refused).await
        }
        JobConclusion::Again { fault, counted, is_shared, after, stage, detail } => {
            let how = ClaimRelease { fault, counted, is_shared, after, stage, detail };
            write_release(ledger, claim, &how).await
        }
        // Of an ingestion an operator's end is a write that fences the claim.
        JobConclusion::ClaimLost | JobConclusion::Withdrawn => finish_lost(),
    }
}

async fn write_result(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    record: &IngestionResult,
    refused: RefusedWrite,
) -> FinishedJob<Option<MessageDisposition>> {
    match record_until_refused(ledger, claim, record).await {
        Ok(finished) => finished,
        Err(refusal) => write_refused(ledger, claim, record, &refusal, refused).await,
    }
}

/// Postgres rejects the result: after the last attempt the ingestion ends as `internal`, for review.
async fn write_refused(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    record: &IngestionResult,
    refusal: &fault::Error,
    refused: RefusedWrite,
) -> FinishedJob<Option<MessageDisposition>> {
    let id = claim.id;
    let detail = format!("the result could not be written: {refusal}");
    tracing::error!(ingestion.id = %id, error = %refusal, "{id}: {detail}");
    let is_denied = refusal.fault == Fault::Misconfigured;
    if is_denied || refused.fails_alike || !refused.is_last {
        let how = ClaimRelease {
            fault: if is_denied { Fault::Misconfigured } else { Fault::Internal },
            counted: !is_denied && !refused.fails_alike,
            is_shared: refused.fails_alike,
            after: UNWRITTEN_DELAY,
            stage: IngestionStage::Record,
            detail,
        };
        return write_release(ledger, claim, &how).await;
    }
    let (reason, stage) = (OutcomeReason::Internal, record.stage);
    // Paid calls stay on record.
    let failure =
        IngestionResult { usage: record.usage, ..verdict::early_result(reason, stage, detail) };
    match record_until_refused(ledger, claim, &failure).await {
        Ok(finished) => finished,
        Err(_refused_too) => {
            let how = ClaimRelease {
                fault: Fault::Internal,
                counted: true,
                is_shared: false,
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
    Ok(
        match write_until_answered(claim, ledger, REFUSALS, || {
            guard_call(
                FailureSeam::ResultWrite,
                ledger.record_result(claim.id, claim.token, record),
            )
        })
        .await?
        {
            WriteResult::Applied => {
                FinishedJob { end, outcome, rest: Some(MessageDisposition::Acknowledge) }
            }
            WriteResult::ClaimLost => finish_fenced(outcome),
        },
    )
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
        Ok(WriteResult::Applied) => {
            // The answer of the batch wakes the ingestion: its message is parked when it comes.
            let hide = if matches!(how.fault, Fault::Batched(_)) { PARKED_SOON } else { how.after };
            FinishedJob { end, outcome, rest: Some(MessageDisposition::Hide(hide)) }
        }
        Ok(WriteResult::ClaimLost) => finish_fenced(outcome),
        // Nothing is left to write. The lease expires, the next claim counts a crash, and the crash
        // limit ends the ingestion.
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

/// Retries one write until the ledger has answered whether it took effect.
///
/// After any error the write may have arrived. It is read back before it is retried, and once more
/// if the retry then finds no claim.
///
/// # Errors
/// The ledger's last error, once it has refused the write `refusals` times.
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
                Ok(ReadBack::Recorded) => return Ok(WriteResult::Applied),
                Ok(ReadBack::Lost) => return Ok(WriteResult::ClaimLost),
                Ok(ReadBack::StillHeld) => in_doubt = false,
                Err(_) => {}
            }
        }
        if !in_doubt {
            match write().await {
                Ok(WriteResult::ClaimLost) if doubted => {
                    in_doubt = true;
                    continue;
                }
                Ok(written) => return Ok(written),
                Err(error) => {
                    report_write_failure(claim, &error);
                    let is_refusal = matches!(error.fault, Fault::Internal | Fault::Misconfigured);
                    refused += u32::from(is_refusal);
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
