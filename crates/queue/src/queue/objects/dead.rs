//! Messages that were received too often.

use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::blobforge::records::EXCEEDED;
use super::blobforge::{DEAD, Priority, dead_key, hash_in, todo_key};
use super::engine::{TRIES, back_off, contended, json, time_of};
use super::message::{DeadMessage, Message, Ticket};
use super::{ObjectQueue, after, lost, ticket_of};
use crate::fault::Result;
use crate::queue::{DeadLetter, Delivery, Receipt};
use crate::store::{Entry, Put};

/// The tier in the receipts of dead letters.
const TIER: &str = "dead";

impl ObjectQueue {
    /// Moves a message whose lock is ours: first the copy, then the marker, so that a crash
    /// between them leaves both and the next receive does it again.
    pub(super) async fn bury(&self, name: &str, tier: Priority, message: &Message) -> Result<()> {
        let at = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        let dead = DeadMessage {
            error: "received too often".to_owned(),
            moved_to_dead_at: at,
            total_retries: message.retries,
            reason: EXCEEDED.to_owned(),
            body: message.body.clone(),
            queued_at: message.queued_at,
            receives: message.receives,
            first_received_at: message.first_received_at,
            ..DeadMessage::default()
        };
        self.engine.write(&dead_key(name), &dead).await?;
        self.engine.delete(&todo_key(tier, name)).await
    }

    pub(super) async fn take_dead(&self, max: usize, time: Duration) -> Result<Vec<DeadLetter>> {
        let mut taken = Vec::new();
        for entry in self.engine.list_all(DEAD).await? {
            if taken.len() >= max {
                break;
            }
            taken.extend(self.try_take_dead(&entry, time).await?);
        }
        Ok(taken)
    }

    async fn try_take_dead(&self, entry: &Entry, time: Duration) -> Result<Option<DeadLetter>> {
        let (received, now) = (Instant::now(), self.engine.now().await?);
        let Some(name) = hash_in(&entry.key, DEAD) else { return Ok(None) };
        let Some(seen) = self.engine.read::<DeadMessage>(&entry.key).await? else {
            return Ok(None);
        };
        let (mut dead, etag) = (seen.value, seen.etag);
        if dead.not_before > now {
            return Ok(None);
        }
        dead.not_before = after(now, time);
        dead.nonce = uuid::Uuid::new_v4().simple().to_string();
        let put = self.engine.store().put_if_match(&entry.key, &etag, json(&dead)?).await?;
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
    pub(super) async fn release_dead(&self, receipt: &Receipt) -> Result<()> {
        let Some(ticket) = Ticket::of(receipt) else { return Ok(()) };
        let key = dead_key(&ticket.name);
        for turn in 0..TRIES {
            let Some(seen) = self.engine.read::<DeadMessage>(&key).await? else { return Ok(()) };
            if seen.value.nonce != ticket.nonce {
                return Ok(());
            }
            let dead = DeadMessage { not_before: 0, ..seen.value };
            let put = self.engine.store().put_if_match(&key, &seen.etag, json(&dead)?).await?;
            if put != Put::Refused {
                return Ok(());
            }
            back_off(turn).await;
        }
        Err(contended())
    }

    pub(super) async fn finish_dead(&self, receipt: &Receipt) -> Result<()> {
        let ticket = ticket_of(receipt)?;
        let key = dead_key(&ticket.name);
        for turn in 0..TRIES {
            let Some(dead) = self.engine.read::<DeadMessage>(&key).await? else { return Ok(()) };
            if dead.value.nonce != ticket.nonce {
                return Err(lost());
            }
            if self.engine.store().delete_if_match(&key, &dead.etag).await? {
                return Ok(());
            }
            back_off(turn).await;
        }
        Err(contended())
    }
}
