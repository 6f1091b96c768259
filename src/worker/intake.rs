//! One loop that owns the slots and the long polls.
//!
//! Slots are taken before a poll is sent, so that no more is received than can start, over all
//! tiers together (invariant 6). A poll that was sent is never dropped: the queue would hand the
//! messages out all the same (invariant 5). One poll per tier waits while there is little to do;
//! more are added only while they come back full and slots are free (`lanes`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, OptionFuture};
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};
use tokio::task::JoinSet;

use crate::fault;
use crate::metrics;
use crate::queue::Delivery;
use crate::worker::lanes::{Lanes, Request};
use crate::worker::pauses::Door;
use crate::worker::{Context, batch};

/// The loop shows that it lives at least this often.
const PULSE: Duration = Duration::from_secs(1);
/// How long the first free slot waits for company while others are taken: a poll for one costs as
/// much as a poll for ten. The slot stands idle for it, so no longer than a receive takes.
const LINGER: Duration = Duration::from_millis(2);

/// What a poll came back with.
struct Polled {
    request: Request,
    received: fault::Result<Vec<Delivery>>,
    slots: Vec<OwnedSemaphorePermit>,
}

/// Receives until told to stop; returns when the last poll has come back and every batch of it is
/// answered. Jobs go on.
pub async fn run(context: Arc<Context>) {
    let mut polls: JoinSet<Polled> = JoinSet::new();
    let mut batches: JoinSet<()> = JoinSet::new();
    let mut lanes = Lanes::new(&context.queue.tiers(), context.settings.slots);
    // Kept from turn to turn: what it has waited for already counts.
    let mut gathering: Option<BoxFuture<'_, Vec<OwnedSemaphorePermit>>> = None;
    while !context.stop_intake.is_cancelled() {
        context.pulse();
        metrics::polls(polls.len());
        if gathering.is_none()
            && let Some(most) = lanes.next_size()
        {
            gathering = Some(next_slots(&context, most).boxed());
        }
        tokio::select! {
            () = context.stop_intake.cancelled() => {}
            Some(slots) = OptionFuture::from(gathering.as_mut()) => {
                gathering = None;
                if let Some(request) = lanes.request(slots.len()) {
                    polls.spawn(poll(Arc::clone(&context), request, slots));
                }
            }
            Some(polled) = polls.join_next(), if !polls.is_empty() => {
                note(&mut lanes, &polled);
                hand_on(&context, polled, &mut batches);
            }
            Some(_) = batches.join_next(), if !batches.is_empty() => {}
            () = tokio::time::sleep(PULSE) => {}
        }
    }
    drop(gathering);
    while let Some(polled) = polls.join_next().await {
        context.pulse();
        hand_on(&context, polled, &mut batches);
    }
    metrics::polls(0);
    while batches.join_next().await.is_some() {}
}

/// Waits for an open door and at least one slot; takes up to `most`. While jobs hold some of the
/// others, it waits a moment for them.
async fn next_slots(context: &Context, most: usize) -> Vec<OwnedSemaphorePermit> {
    context.pauses.until_open().await;
    let mut slots = Vec::new();
    match Arc::clone(&context.slots).acquire_owned().await {
        Ok(first) => slots.push(first),
        // Closed only when the process ends.
        Err(_) => std::future::pending::<()>().await,
    }
    let until = tokio::time::Instant::now() + LINGER;
    while slots.len() < most {
        match Arc::clone(&context.slots).try_acquire_owned() {
            Ok(slot) => slots.push(slot),
            Err(TryAcquireError::NoPermits) if !context.registry.is_empty() => {
                let next = Arc::clone(&context.slots).acquire_owned();
                match tokio::time::timeout_at(until, next).await {
                    Ok(Ok(slot)) => slots.push(slot),
                    Ok(Err(_)) | Err(_) => break,
                }
            }
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => break,
        }
    }
    slots
}

async fn poll(
    context: Arc<Context>,
    request: Request,
    mut slots: Vec<OwnedSemaphorePermit>,
) -> Polled {
    // More may have been gathered than this tier asks for.
    slots.truncate(request.most);
    let wait = context.settings.wait.min(request.longest_wait);
    let received = context.queue.receive_from(request.tier, slots.len(), wait).await;
    Polled { request, received, slots }
}

fn note(lanes: &mut Lanes, polled: &Result<Polled, tokio::task::JoinError>) {
    match polled {
        Ok(Polled { request, received: Ok(deliveries), .. }) => {
            lanes.came_back(request.tier, Some((deliveries.len(), request.most)));
        }
        Ok(Polled { request, received: Err(_), .. }) => lanes.came_back(request.tier, None),
        Err(_died) => lanes.forget(),
    }
}

fn hand_on(
    context: &Arc<Context>,
    polled: Result<Polled, tokio::task::JoinError>,
    batches: &mut JoinSet<()>,
) {
    match polled {
        Ok(Polled { received: Ok(deliveries), slots, .. }) => {
            context.pauses.open(Door::Queue);
            if !deliveries.is_empty() {
                batches.spawn(batch::take(Arc::clone(context), deliveries, slots));
            }
        }
        Ok(Polled { received: Err(error), .. }) => {
            tracing::warn!(error = %error, "receiving failed: {error}");
            context.pauses.close_for_a_while(Door::Queue);
        }
        Err(error) => {
            tracing::error!(error = %error, "a poll died");
            context.pauses.close_for_a_while(Door::Queue);
        }
    }
}
