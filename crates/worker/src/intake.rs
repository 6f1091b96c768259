//! The intake loop: owns the long polls.
//!
//! Slots are acquired before a poll is sent, so that over all tiers no more is received than can
//! start (invariant 6). A sent poll is never dropped: the queue would hand out its messages anyway
//! (invariant 5). An idle tier has one waiting poll. More are added only while polls come back full
//! and slots are free (`tier_poller`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, OptionFuture};
use tokio::task::JoinSet;

use crate::runner::{RunnerHandle, SlotPermit, TICK_INTERVAL};
use crate::tier_poller::{PollRequest, TierPoller};
use crate::{QUEUE, QUEUE_PAUSE, QueueJobSource, batch};
use docmill_core::batching::linger_for;
use docmill_core::fault;
use docmill_core::metrics;
use docmill_queue::Delivery;

/// How long the first free slot waits for others: a poll for one message costs as much as a poll
/// for ten. The slot is idle meanwhile, so this is no longer than a receive takes.
const BATCH_LINGER: Duration = Duration::from_millis(2);

/// The result of a poll.
struct PollResult {
    request: PollRequest,
    received: fault::Result<Vec<Delivery>>,
    slots: Vec<SlotPermit>,
}

/// Receives until asked to stop; returns when the last poll has returned and every batch of it is
/// answered. Running jobs continue.
pub async fn run_intake(source: Arc<QueueJobSource>, runner: RunnerHandle<QueueJobSource>) {
    let mut polls: JoinSet<PollResult> = JoinSet::new();
    let mut batches: JoinSet<()> = JoinSet::new();
    let slots = runner.slot_counts().0;
    let linger = linger_for(BATCH_LINGER, u32::try_from(slots).unwrap_or(u32::MAX));
    let mut poller = TierPoller::new(&source.queue.tiers(), slots);
    // Kept from turn to turn: what it has waited for already counts.
    let mut gathering: Option<BoxFuture<'_, Vec<SlotPermit>>> = None;
    while !runner.is_stopping() {
        runner.note_alive();
        metrics::set_polls(polls.len());
        if gathering.is_none()
            && let Some(most) = poller.next_size()
        {
            gathering = Some(runner.acquire_slots(most, linger).boxed());
        }
        tokio::select! {
            () = runner.wait_until_stopping() => {}
            Some(slots) = OptionFuture::from(gathering.as_mut()) => {
                gathering = None;
                if let Some(request) = poller.next_request(slots.len()) {
                    polls.spawn(poll_queue(Arc::clone(&source), request, slots));
                }
            }
            Some(polled) = polls.join_next(), if !polls.is_empty() => {
                record_poll(&mut poller, &polled);
                dispatch_batch(&source, &runner, polled, &mut batches);
            }
            Some(ended) = batches.join_next(), if !batches.is_empty() => report_batch(&ended),
            () = tokio::time::sleep(TICK_INTERVAL) => {}
        }
    }
    drop(gathering);
    while let Some(polled) = polls.join_next().await {
        runner.note_alive();
        dispatch_batch(&source, &runner, polled, &mut batches);
    }
    metrics::set_polls(0);
    while let Some(ended) = batches.join_next().await {
        report_batch(&ended);
    }
}

/// Unanswered messages of a batch that panicked are delivered again after their visibility timeout.
fn report_batch(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = %error, "handling of a received batch panicked");
    }
}

async fn poll_queue(
    source: Arc<QueueJobSource>,
    request: PollRequest,
    mut slots: Vec<SlotPermit>,
) -> PollResult {
    // More may have been gathered than this tier asks for.
    slots.truncate(request.most);
    let wait = source.config.queue.wait.min(request.longest_wait);
    let received = source.queue.receive_from(request.tier, slots.len(), wait).await;
    PollResult { request, received, slots }
}

fn record_poll(poller: &mut TierPoller, polled: &Result<PollResult, tokio::task::JoinError>) {
    match polled {
        Ok(PollResult { request, received: Ok(deliveries), .. }) => {
            poller.note_result(request.tier, Some((deliveries.len(), request.most)));
        }
        Ok(PollResult { request, received: Err(_), .. }) => poller.note_result(request.tier, None),
        Err(_died) => poller.reset_counts(),
    }
}

fn dispatch_batch(
    source: &Arc<QueueJobSource>,
    runner: &RunnerHandle<QueueJobSource>,
    polled: Result<PollResult, tokio::task::JoinError>,
    batches: &mut JoinSet<()>,
) {
    match polled {
        Ok(PollResult { received: Ok(deliveries), slots, .. }) => {
            source.intake_gate.open(QUEUE);
            if !deliveries.is_empty() {
                batches.spawn(batch::handle_batch(
                    Arc::clone(source),
                    runner.clone(),
                    deliveries,
                    slots,
                ));
            }
        }
        Ok(PollResult { received: Err(error), .. }) => {
            tracing::warn!(error = %error, "receive failed: {error}");
            source.intake_gate.close_for(QUEUE, QUEUE_PAUSE.wait_after(0));
        }
        Err(error) => {
            tracing::error!(error = %error, "a poll panicked");
            source.intake_gate.close_for(QUEUE, QUEUE_PAUSE.wait_after(0));
        }
    }
}
