//! From how a job ended to what is in the ledger and what happens to the message.
//!
//! Writes are retried in place while the claim lives. After a reply that may be lost the row is
//! read back by token first, so that an outcome is recorded exactly once (invariant 7).

use std::time::Duration;

use crate::config::RetryConfig;
use crate::fault::{self, Fault};
use crate::ledger::{GiveBack, Held, Ledger, ReadBack, Record};
use crate::metrics;
use crate::model::{AttemptOutcome, Claimed, Reason, Stage};
use crate::pipeline::failure::{self, Attempt, Next};
use crate::pipeline::{ClaimHandle, Failed, StepError, verdict};
use crate::worker::dispose::Disposition;

/// One write may take so long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two tries, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How the work on a claimed ingestion ended.
#[derive(Debug)]
pub enum Ending {
    /// Every step is done.
    Done(Box<Record>),
    /// A step failed.
    Failed(Failed),
    /// A step panicked.
    Panicked,
    /// It took longer than `worker.job_timeout`.
    TookTooLong,
    /// The drain deadline, or an operator.
    Interrupted,
    /// Something this job needs is paused by an operator.
    HeldBack,
}

/// What was written, and so what happens to the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// `None`: the claim is lost, the message is somebody else's business.
    pub disposition: Option<Disposition>,
    /// The word for the metric and the log.
    pub outcome: &'static str,
}

/// What is to be written.
#[derive(Debug)]
enum Write {
    Record(Box<Record>),
    GiveBack(GiveBack),
    Nothing,
}

/// Writes what follows from `ending`, and says what happens to the message.
pub async fn settle(
    ledger: &dyn Ledger,
    claimed: &Claimed,
    hold: &ClaimHandle,
    ending: Ending,
    retry: &RetryConfig,
) -> Settled {
    let jitter = fastrand::f64();
    let decided = decide(claimed, hold.stage(), ending, (retry, jitter));
    match decided {
        Write::Record(record) => {
            let outcome = record.reason.map_or("completed", Reason::code);
            let held = persist(hold, || ledger.record(hold.id, hold.token, &record), ledger).await;
            settled(held, Disposition::Acknowledge, outcome)
        }
        Write::GiveBack(how) => {
            let outcome = AttemptOutcome::Fault(how.fault).code();
            let disposition = Disposition::Hide(how.after);
            let held = persist(hold, || ledger.give_back(hold.id, hold.token, &how), ledger).await;
            settled(held, disposition, outcome)
        }
        Write::Nothing => Settled { disposition: None, outcome: "claim_lost" },
    }
}

fn settled(held: Held, disposition: Disposition, outcome: &'static str) -> Settled {
    match held {
        Held::Yes => Settled { disposition: Some(disposition), outcome },
        Held::Lost => {
            metrics::fenced_write(outcome);
            Settled { disposition: None, outcome: "claim_lost" }
        }
    }
}

fn decide(
    claimed: &Claimed,
    stage: Stage,
    ending: Ending,
    (retry, jitter): (&RetryConfig, f64),
) -> Write {
    let after_fault = |fault: Fault, stage: Stage, detail: String| {
        let attempt =
            Attempt { number: claimed.attempt, deferred_for: claimed.deferred_for, jitter };
        match failure::next(fault, attempt, retry) {
            Next::End(reason) => Write::Record(Box::new(verdict::ended(reason, stage, detail))),
            Next::Again { counted, after } => {
                Write::GiveBack(GiveBack { fault, counted, after, stage, detail })
            }
            Next::LeaveToOwner => Write::Nothing,
        }
    };
    match ending {
        Ending::Done(record) => Write::Record(record),
        Ending::Failed(Failed { stage, error }) => match error {
            StepError::Rejected { reason, detail } => {
                Write::Record(Box::new(verdict::ended(reason, stage, detail)))
            }
            StepError::Fault(error) => after_fault(error.fault, stage, error.to_string()),
        },
        Ending::Panicked => {
            after_fault(Fault::Internal, stage, "a panic, see the log of that time".to_owned())
        }
        Ending::TookTooLong => {
            let detail = "the attempt took longer than worker.job_timeout".to_owned();
            Write::Record(Box::new(verdict::ended(Reason::Timeout, stage, detail)))
        }
        Ending::Interrupted => {
            after_fault(Fault::Interrupted, stage, "the worker was stopped".to_owned())
        }
        Ending::HeldBack => after_fault(Fault::Paused, stage, "paused by an operator".to_owned()),
    }
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
