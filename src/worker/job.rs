//! One claimed ingestion from claim to disposition: exactly one outcome, whatever happens.
//!
//! The work may panic, hang, lose its claim or be interrupted; each ends here in one ending that
//! is settled in the ledger before the message is touched.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument, Span};

use crate::fault::Fault;
use crate::metrics;
use crate::model::{Claimed, Stage};
use crate::pipeline::{self, ClaimHandle, Failed, StepError};
use crate::telemetry::spans;
use crate::worker::Context;
use crate::worker::dispose::Disposition;
use crate::worker::pauses::Door;
use crate::worker::registry::Ticket;
use crate::worker::settle::{self, Ending, Settled};

/// Runs one job, as the span `trace`. Its slot is free again as soon as the outcome is written: the message is disposed
/// of while the next job starts.
pub async fn run(
    context: Arc<Context>,
    claimed: Claimed,
    hold: ClaimHandle,
    (ticket, trace): (Ticket, Span),
    slot: OwnedSemaphorePermit,
) {
    let span = tracing::info_span!(
        "job",
        ingestion.id = %claimed.id,
        document.id = %claimed.document.id,
        ingestion.attempt = claimed.attempt,
    );
    let early = context.settings.early;
    if early && !won(&context, &ticket).await {
        return give_up(&context, &claimed, &hold, &ticket).instrument(span).await;
    }
    let work = work(&context, claimed, hold, (&ticket, slot, &trace)).instrument(span);
    work.instrument(trace.clone()).await;
}

/// `queue.acknowledge = "early"`: the message goes first, and only who deleted it works.
async fn won(context: &Context, ticket: &Ticket) -> bool {
    let receipts = ticket.take_receipts();
    let answers = context.queue.win(&receipts).await;
    let won = !answers.is_empty() && answers.iter().all(|answer| matches!(answer, Ok(true)));
    if won {
        metrics::disposition("acknowledge");
    }
    won
}

/// The message is another's, or still there: the claim is given back without a trace of work.
async fn give_up(context: &Context, claimed: &Claimed, hold: &ClaimHandle, ticket: &Ticket) {
    let (ledger, retry) = (context.ledger.as_ref(), &context.settings.retry);
    settle::settle(ledger, claimed, hold, Ending::Interrupted, retry).await;
    ticket.settled();
    metrics::disposition("leave");
    tracing::warn!(
        ingestion.id = %claimed.id,
        "the message of {} could not be deleted before the work, which is left alone",
        claimed.id
    );
}

async fn work(
    context: &Context,
    claimed: Claimed,
    hold: ClaimHandle,
    (ticket, slot, trace): (&Ticket, OwnedSemaphorePermit, &Span),
) {
    let started = Instant::now();
    let ending = end_of(context, &claimed, &hold).await;
    report(context, &claimed, &hold, &ending);
    let retry = &context.settings.retry;
    let ledger = context.ledger.as_ref();
    let settling = settle::settle(ledger, &claimed, &hold, ending, retry);
    let settled = settling.instrument(spans::record()).await;
    spans::ended(trace, settled.outcome);
    ticket.settled();
    drop(slot);
    let elapsed = started.elapsed();
    metrics::attempt(settled.outcome, elapsed);
    if settled.disposition == Some(Disposition::Acknowledge) {
        metrics::attempts_to_end(settled.outcome, claimed.attempt);
    }
    tracing::info!(
        ingestion.id = %claimed.id,
        outcome = settled.outcome,
        elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "ingestion {} ended its attempt: {}",
        claimed.id,
        settled.outcome
    );
    let Settled { disposition, .. } = settled;
    let queue = &context.settings.destination;
    match disposition {
        Some(Disposition::Hide(after)) if context.settings.early => {
            let sending = context.send_anew(ticket, claimed.id, after);
            sending.instrument(spans::settle(queue, "replace")).await;
        }
        Some(Disposition::Hide(after)) => {
            let hiding = context.hide(ticket, Some(claimed.id), after);
            hiding.instrument(spans::settle(queue, "hide")).await;
        }
        Some(Disposition::Acknowledge) => {
            context.acknowledge(ticket).instrument(spans::settle(queue, "acknowledge")).await;
        }
        None => metrics::disposition("leave"),
    }
}

/// Runs the steps until they end or must not go on.
async fn end_of(context: &Context, claimed: &Claimed, hold: &ClaimHandle) -> Ending {
    let default_kind = &context.ports.services.config.kinds.default;
    if context.pauses.holds_back(claimed, default_kind, &context.providers) {
        return Ending::HeldBack;
    }
    let steps = AssertUnwindSafe(pipeline::run(&context.ports, claimed, hold)).catch_unwind();
    tokio::select! {
        biased;
        () = hold.until_lost() => {
            Ending::Failed(Failed { stage: hold.stage(), error: StepError::claim_lost() })
        }
        () = context.cancel_jobs.cancelled() => Ending::Interrupted,
        () = tokio::time::sleep(context.settings.job_timeout) => Ending::TookTooLong,
        ended = steps => match ended {
            Ok(Ok(output)) => Ending::Done(Box::new(output.record)),
            Ok(Err(failed)) => Ending::Failed(failed),
            Err(_panic) => Ending::Panicked,
        },
    }
}

/// Logs what went wrong, once, and lets intake know of outages.
fn report(context: &Context, claimed: &Claimed, hold: &ClaimHandle, ending: &Ending) {
    let id = claimed.id;
    match ending {
        Ending::Done(_) => context.pauses.open(Door::Dependency),
        Ending::Failed(Failed { error, .. }) if error.is_claim_lost() => {}
        Ending::Failed(Failed { stage, error: StepError::Fault(error) }) => {
            if error.fault == Fault::Unavailable || error.fault.needs_person() {
                context.pauses.close_for_a_while(Door::Dependency);
            }
            let (stage, fault) = (stage.code(), error.fault.code());
            let cause = error.source.as_ref().map(ToString::to_string);
            if error.fault == Fault::Internal {
                tracing::error!(ingestion.id = %id, stage, fault, cause, "ingestion {id}: {error}");
            } else {
                tracing::warn!(ingestion.id = %id, stage, fault, cause, "ingestion {id}: {error}");
            }
        }
        Ending::Failed(Failed { stage, error: StepError::Rejected { reason, detail } }) => {
            let (stage, reason) = (stage.code(), reason.code());
            tracing::info!(ingestion.id = %id, stage, reason, detail, "ingestion {id}: {reason}");
        }
        Ending::Panicked => {
            let stage: Stage = hold.stage();
            tracing::error!(
                ingestion.id = %id,
                stage = stage.code(),
                "ingestion {id}: a step panicked"
            );
        }
        Ending::TookTooLong | Ending::Interrupted | Ending::HeldBack => {}
    }
}
