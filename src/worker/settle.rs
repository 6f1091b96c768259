//! From how a job ended to what is in the ledger and what happens to the message.
//!
//! Writes are retried in place while the claim lives. After a reply that may be lost the row is
//! read back by token first, so that an outcome is recorded exactly once (invariant 7).

use std::time::Duration;

use crate::fault;
use crate::ledger::{GiveBack, Held, Ledger, ReadBack, Record};
use crate::metrics;
use crate::model::{AttemptOutcome, Reason};
use crate::pipeline::{ClaimHandle, verdict};
use crate::runner::{Conclusion, JobEnd, Settlement};
use crate::worker::dispose::Disposition;

/// One write may take so long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two tries, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Writes what follows from how the work ended, and says what happens to the message; `None`: it is
/// somebody else's business.
pub async fn settle(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    conclusion: Conclusion<Box<Record>>,
) -> Settlement<Option<Disposition>> {
    match conclusion {
        Conclusion::Completed(written) => record(ledger, claim, &written).await,
        Conclusion::Ended { reason, stage, detail } => {
            record(ledger, claim, &verdict::ended(reason, stage, detail)).await
        }
        Conclusion::Again { fault, counted, after, stage, detail } => {
            give_back(ledger, claim, &GiveBack { fault, counted, after, stage, detail }).await
        }
        // Of an ingestion an operator's end is a write that fences the claim.
        Conclusion::ClaimLost | Conclusion::Withdrawn => lost(),
    }
}

async fn record(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    record: &Record,
) -> Settlement<Option<Disposition>> {
    let outcome = record.reason.map_or("completed", Reason::code);
    let end = if record.reason.is_none() { JobEnd::Done } else { JobEnd::Dead };
    match persist(claim, || ledger.record(claim.id, claim.token, record), ledger).await {
        Held::Yes => Settlement { end, outcome, rest: Some(Disposition::Acknowledge) },
        Held::Lost => fenced(outcome),
    }
}

/// Gives the attempt back; the message comes again after the pause.
pub async fn give_back(
    ledger: &dyn Ledger,
    claim: &ClaimHandle,
    how: &GiveBack,
) -> Settlement<Option<Disposition>> {
    let outcome = AttemptOutcome::Fault(how.fault).code();
    let end = if how.counted { JobEnd::Failed } else { JobEnd::GivenBack };
    match persist(claim, || ledger.give_back(claim.id, claim.token, how), ledger).await {
        Held::Yes => Settlement { end, outcome, rest: Some(Disposition::Hide(how.after)) },
        Held::Lost => fenced(outcome),
    }
}

fn fenced(write: &'static str) -> Settlement<Option<Disposition>> {
    metrics::fenced_write(write);
    lost()
}

fn lost() -> Settlement<Option<Disposition>> {
    Settlement { end: JobEnd::Lost, outcome: "claim_lost", rest: None }
}

/// Tries one write until the ledger has answered whether it took effect.
async fn persist<F>(hold: &ClaimHandle, mut write: impl FnMut() -> F, ledger: &dyn Ledger) -> Held
where
    F: Future<Output = fault::Result<Held>>,
{
    let mut pause = FIRST_PAUSE;
    let mut in_doubt = false;
    loop {
        if in_doubt {
            match bounded(ledger.read_back(hold.id, hold.token)).await {
                Ok(ReadBack::Recorded) => return Held::Yes,
                Ok(ReadBack::Lost) => return Held::Lost,
                Ok(ReadBack::StillHeld) => in_doubt = false,
                Err(_) => {}
            }
        }
        if !in_doubt {
            match bounded(write()).await {
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
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn bounded<T>(call: impl Future<Output = fault::Result<T>>) -> fault::Result<T> {
    match tokio::time::timeout(WRITE_TIMEOUT, call).await {
        Ok(answer) => answer,
        Err(_) => Err(fault::Error::transient("the ledger did not answer in time")),
    }
}
