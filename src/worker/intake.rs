//! One loop that owns the slots and the long polls.
//!
//! Slots are taken before a poll is sent, so that no more is received than can start (invariant
//! 6). A poll that was sent is never dropped: the queue would hand the messages out all the same
//! (invariant 5). One poll waits while there is little to do; more are added only while they come
//! back full and slots are free.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};
use tokio::task::JoinSet;

use crate::fault;
use crate::metrics;
use crate::queue::Delivery;
use crate::worker::pauses::Door;
use crate::worker::{Context, batch};

/// Messages per poll; the most SQS hands out.
const PER_POLL: usize = 10;
/// Polls at the same time.
const MOST_POLLS: usize = 8;
/// The loop shows that it lives at least this often.
const PULSE: Duration = Duration::from_secs(1);

/// What a poll came back with.
struct Polled {
    received: fault::Result<Vec<Delivery>>,
    slots: Vec<OwnedSemaphorePermit>,
}

/// Receives until told to stop; returns when the last poll has come back and every batch of it is
/// answered. Jobs go on.
pub async fn run(context: Arc<Context>) {
    let mut polls: JoinSet<Polled> = JoinSet::new();
    let mut batches: JoinSet<()> = JoinSet::new();
    let mut wanted_polls = 1;
    while !context.stop_intake.is_cancelled() {
        context.pulse();
        metrics::polls(polls.len());
        tokio::select! {
            () = context.stop_intake.cancelled() => {}
            slots = next_slots(&context), if polls.len() < wanted_polls => {
                polls.spawn(poll(Arc::clone(&context), slots));
            }
            Some(polled) = polls.join_next(), if !polls.is_empty() => {
                wanted_polls = next_polls(wanted_polls, &polled);
                hand_on(&context, polled, &mut batches);
            }
            Some(_) = batches.join_next(), if !batches.is_empty() => {}
            () = tokio::time::sleep(PULSE) => {}
        }
    }
    while let Some(polled) = polls.join_next().await {
        context.pulse();
        hand_on(&context, polled, &mut batches);
    }
    metrics::polls(0);
    while batches.join_next().await.is_some() {}
}

/// Waits for an open door and at least one slot; takes up to ten.
async fn next_slots(context: &Context) -> Vec<OwnedSemaphorePermit> {
    context.pauses.until_open().await;
    let mut slots = Vec::new();
    match Arc::clone(&context.slots).acquire_owned().await {
        Ok(first) => slots.push(first),
        // Closed only when the process ends.
        Err(_) => std::future::pending::<()>().await,
    }
    while slots.len() < PER_POLL {
        match Arc::clone(&context.slots).try_acquire_owned() {
            Ok(slot) => slots.push(slot),
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => break,
        }
    }
    slots
}

async fn poll(context: Arc<Context>, slots: Vec<OwnedSemaphorePermit>) -> Polled {
    let received = context.queue.receive(slots.len(), context.settings.wait).await;
    Polled { received, slots }
}

/// One poll more after a full one, back to one after an empty or failed one.
fn next_polls(now: usize, polled: &Result<Polled, tokio::task::JoinError>) -> usize {
    match polled {
        Ok(Polled { received: Ok(deliveries), slots }) if deliveries.len() == slots.len() => {
            (now + 1).min(MOST_POLLS)
        }
        Ok(Polled { received: Ok(deliveries), .. }) if !deliveries.is_empty() => now,
        _ => 1,
    }
}

fn hand_on(
    context: &Arc<Context>,
    polled: Result<Polled, tokio::task::JoinError>,
    batches: &mut JoinSet<()>,
) {
    match polled {
        Ok(Polled { received: Ok(deliveries), slots }) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_added_while_they_come_back_full_and_dropped_when_one_is_empty() {
        let polled = |received| Ok(Polled { received, slots: Vec::new() });
        assert_eq!(next_polls(1, &polled(Ok(vec![]))), 2, "as many as asked for is full");
        assert_eq!(next_polls(MOST_POLLS, &polled(Ok(vec![]))), MOST_POLLS);
        assert_eq!(next_polls(5, &polled(Err(fault::Error::transient("x")))), 1);
    }
}
