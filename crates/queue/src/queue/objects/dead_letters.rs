//! Messages that were received too often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::blobforge::{DEAD, dead_key, hash_in};
use super::engine::{Engine, TRIES, back_off, contended, json, time_of};
use super::marker_queue::MarkerQueue;
use super::message::{DeadMessage, Ticket};
use super::{after, lost, ticket_of};
use crate::fault::Result;
use crate::queue::{DeadLetter, Delivery, Receipt};
use crate::store::{Entry, Put};

/// The tier in the receipts of dead letters.
const TIER: &str = "dead";

/// Reads the messages that were given up, and lets people put them back or drop them.
pub(super) struct DeadLetters {
    queue: Arc<MarkerQueue>,
}

impl DeadLetters {
    pub(super) fn new(queue: Arc<MarkerQueue>) -> Self {
        Self { queue }
    }

    fn engine(&self) -> &Engine {
        self.queue.engine()
    }

    /// Takes up to `max`, hidden from other readers for so long.
    pub(super) async fn take(&self, max: usize, time: Duration) -> Result<Vec<DeadLetter>> {
        let mut taken = Vec::new();
        for entry in self.engine().list_all(DEAD).await? {
            if taken.len() >= max {
                break;
            }
            taken.extend(self.try_take(&entry, time).await?);
        }
        Ok(taken)
    }

    async fn try_take(&self, entry: &Entry, time: Duration) -> Result<Option<DeadLetter>> {
        let (received, now) = (Instant::now(), self.engine().now().await?);
        let Some(name) = hash_in(&entry.key, DEAD) else { return Ok(None) };
        let Some(seen) = self.engine().read::<DeadMessage>(&entry.key).await? else {
            return Ok(None);
        };
        let (mut dead, etag) = (seen.value, seen.etag);
        if dead.not_before > now {
            return Ok(None);
        }
        dead.not_before = after(now, time);
        dead.nonce = uuid::Uuid::new_v4().simple().to_string();
        let put = self.engine().store().put_if_match(&entry.key, &etag, json(&dead)?).await?;
        if put == Put::Refused {
            return Ok(None);
        }
        let (tier, name) = (TIER.to_owned(), name.to_owned());
        let ticket = Ticket { tier, name: name.clone(), nonce: dead.nonce, sends: 0 };
        let delivery = Delivery {
            message_id: name.clone(),
            receipt: ticket.receipt(),
            receive_count: dead.receives,
            sent_at: (dead.queued_at > 0).then(|| time_of(dead.queued_at)),
            first_received_at: dead.first_received_at.map(time_of),
            body: dead.body.unwrap_or(name),
            received,
            priority: None,
            tenant: None,
            traceparent: None,
        };
        Ok(Some(DeadLetter { delivery }))
    }

    /// Lets other readers see it again, unless one does already.
    pub(super) async fn release(&self, receipt: &Receipt) -> Result<()> {
        let Some(ticket) = Ticket::of(receipt) else { return Ok(()) };
        let key = dead_key(&ticket.name);
        for turn in 0..TRIES {
            let Some(seen) = self.engine().read::<DeadMessage>(&key).await? else { return Ok(()) };
            if seen.value.nonce != ticket.nonce {
                return Ok(());
            }
            let dead = DeadMessage { not_before: 0, ..seen.value };
            let put = self.engine().store().put_if_match(&key, &seen.etag, json(&dead)?).await?;
            if put != Put::Refused {
                return Ok(());
            }
            back_off(turn).await;
        }
        Err(contended())
    }

    /// Drops it for good.
    pub(super) async fn finish(&self, receipt: &Receipt) -> Result<()> {
        let ticket = ticket_of(receipt)?;
        let key = dead_key(&ticket.name);
        for turn in 0..TRIES {
            let Some(dead) = self.engine().read::<DeadMessage>(&key).await? else { return Ok(()) };
            if dead.value.nonce != ticket.nonce {
                return Err(lost());
            }
            if self.engine().store().delete_if_match(&key, &dead.etag).await? {
                return Ok(());
            }
            back_off(turn).await;
        }
        Err(contended())
    }
}
