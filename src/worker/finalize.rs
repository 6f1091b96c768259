//! Writes how a job ended into the ledger and decides what happens to its message.
//!
//! Writes are retried in place while the claim lives. After a reply that may be lost the row is
//! read back by token first, so that an outcome is recorded exactly once (invariant 7).

use std::time::Duration;

use crate::pipeline::{ClaimHandle, verdict};
use crate::runner::{FinishedJob, JobConclusion, JobEnd};
use crate::worker::ack_batcher::MessageDisposition;
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::{AttemptOutcome, OutcomeReason};
use docmill_core::retry::{RetryBackoff, with_deadline};
use docmill_ledger::ledger::{ClaimRelease, IngestionResult, Ledger, ReadBack, WriteResult};

/// One write may take so long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two tries.
const WRITE_WAITS: RetryBackoff =
    RetryBackoff::doubling(Duration::from_millis(100)).up_to(Duration::from_secs(5));

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
    let outcome = record.reason.map_or("completed", OutcomeReason::code);
    let end = if record.reason.is_none() { JobEnd::Done } else { JobEnd::Dead };
    match write_until_answered(
        claim,
        || ledger.record_result(claim.id, claim.token, record),
        ledger,
    )
    .await
    {
        WriteResult::Yes => {
            FinishedJob { end, outcome, rest: Some(MessageDisposition::Acknowledge) }
        }
        WriteResult::Lost => finish_fenced(outcome),
    }
}

/// Releases the claim; the message comes again after the pause.
pub async fn write_release(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    how: &ClaimRelease,
) -> FinishedJob<Option<MessageDisposition>> {
    let outcome = AttemptOutcome::Fault(how.fault).code();
    let end = if how.counted { JobEnd::Failed } else { JobEnd::GivenBack };
    match write_until_answered(claim, || ledger.release_claim(claim.id, claim.token, how), ledger)
        .await
    {
        WriteResult::Yes => {
            FinishedJob { end, outcome, rest: Some(MessageDisposition::Hide(how.after)) }
        }
        WriteResult::Lost => finish_fenced(outcome),
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
async fn write_until_answered<F>(
    hold: &ClaimHandle,
    mut write: impl FnMut() -> F,
    ledger: &dyn Ledger,
) -> WriteResult
where
    F: Future<Output = fault::Result<WriteResult>>,
{
    let late = || fault::Error::transient("the ledger did not answer in time");
    let mut failed = 0;
    let mut in_doubt = false;
    loop {
        if in_doubt {
            match with_deadline(WRITE_TIMEOUT, ledger.read_back(hold.id, hold.token), late).await {
                Ok(ReadBack::Recorded) => return WriteResult::Yes,
                Ok(ReadBack::Lost) => return WriteResult::Lost,
                Ok(ReadBack::StillHeld) => in_doubt = false,
                Err(_) => {}
            }
        }
        if !in_doubt {
            match with_deadline(WRITE_TIMEOUT, write(), late).await {
                Ok(held) => return held,
                Err(error) => {
                    in_doubt = true;
                    let fault = error.fault.code();
                    tracing::warn!(
                        ingestion.id = %hold.id,
                        error = %error,
                        fault,
                        "writing the outcome of {} failed, trying again",
                        hold.id
                    );
                }
            }
        }
        WRITE_WAITS.sleep(failed).await;
        failed += 1;
    }
}
