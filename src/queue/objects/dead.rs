//! Messages that were received too often.

use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::layout::{DEAD, Dead, Marker, Ticket, dead_key, name_in, todo_key};
use super::take::json;
use super::{ObjectQueue, TRIES, after, contended, lost, now, ticket_of, time_of};
use crate::fault::Result;
use crate::queue::{DeadLetter, Delivery, Receipt};
use crate::store::{Entry, Put};

/// The tier in the receipts of dead letters.
const TIER: &str = "dead";

impl ObjectQueue {
    /// Moves a message whose lock is ours: first the copy, then the marker, so that a crash
    /// between them leaves both and the next receive does it again.
    pub(super) async fn bury(&self, name: &str, tier: &str, marker: &Marker) -> Result<()> {
        let at = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        let dead = Dead {
            error: "received too often".to_owned(),
            moved_to_dead_at: at,
            total_retries: marker.retries,
            reason: "exceeded_max_retries".to_owned(),
            body: marker.body.clone(),
            queued_at: marker.queued_at,
            receives: marker.receives,
            first_received_at: marker.first_received_at,
            ..Dead::default()
        };
        let nothing = std::collections::BTreeMap::new();
        self.store.put(&dead_key(name), json(&dead)?, &nothing).await?;
        self.store.delete(&todo_key(tier, name)).await
    }

    pub(super) async fn take_dead(&self, max: usize, time: Duration) -> Result<Vec<DeadLetter>> {
        let mut taken = Vec::new();
        for entry in self.list_all(DEAD).await? {
            if taken.len() >= max {
                break;
            }
            taken.extend(self.try_take_dead(&entry, time).await?);
        }
        Ok(taken)
    }

    async fn try_take_dead(&self, entry: &Entry, time: Duration) -> Result<Option<DeadLetter>> {
        let (received, now) = (Instant::now(), now());
        let Some(name) = name_in(&entry.key, DEAD) else { return Ok(None) };
        let Some((mut dead, etag)) = self.read::<Dead>(&entry.key).await? else { return Ok(None) };
        if dead.not_before > now {
            return Ok(None);
        }
        dead.not_before = after(now, time);
        dead.nonce = uuid::Uuid::new_v4().simple().to_string();
        if self.store.put_if_match(&entry.key, &etag, json(&dead)?).await? == Put::Refused {
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
        for _ in 0..TRIES {
            let Some((mut dead, etag)) = self.read::<Dead>(&key).await? else { return Ok(()) };
            if dead.nonce != ticket.nonce {
                return Ok(());
            }
            dead.not_before = 0;
            if let Put::Written(_) = self.store.put_if_match(&key, &etag, json(&dead)?).await? {
                return Ok(());
            }
        }
        Err(contended())
    }

    pub(super) async fn finish_dead(&self, receipt: &Receipt) -> Result<()> {
        let ticket = ticket_of(receipt)?;
        let key = dead_key(&ticket.name);
        for _ in 0..TRIES {
            let Some((dead, etag)) = self.read::<Dead>(&key).await? else { return Ok(()) };
            if dead.nonce != ticket.nonce {
                return Err(lost());
            }
            if self.store.delete_if_match(&key, &etag).await? {
                return Ok(());
            }
        }
        Err(contended())
    }
}
