//! What happens to a message after its receive, and sending.

use std::time::Duration;

use super::layout::{Marker, Ticket, lock_key, name_of, tier_of, todo_key};
use super::take::json;
use super::{ObjectQueue, TRIES, after, contended, lost, now};
use crate::fault::Result;
use crate::queue::Outgoing;
use crate::store::{Etag, Put};

impl ObjectQueue {
    /// Keeps our lock for another `time`; `None` if it is not ours any more.
    pub(super) async fn renew(&self, ticket: &Ticket, time: Duration) -> Result<Option<Etag>> {
        let key = lock_key(&ticket.name);
        for _ in 0..TRIES {
            let Some((mut lock, etag)) = self.read_lock(&ticket.name).await? else {
                return Ok(None);
            };
            if lock.nonce != ticket.nonce {
                return Ok(None);
            }
            let now = now();
            lock.last_heartbeat = now;
            lock.expires_at = Some(after(now, time));
            // Refused: our own other call, or another worker's takeover; the next look tells.
            if let Put::Written(etag) = self.store.put_if_match(&key, &etag, json(&lock)?).await? {
                return Ok(Some(etag));
            }
        }
        Err(contended())
    }

    /// Deletes the message for good, unless it was sent again since the receive.
    pub(super) async fn finish(&self, ticket: &Ticket) -> Result<()> {
        let key = todo_key(&ticket.tier, &ticket.name);
        // Nobody takes the lock over while the two objects are being removed.
        let Some(lock) = self.renew(ticket, self.visibility).await? else {
            let gone = self.store.head(&key).await?.is_none();
            return if gone { Ok(()) } else { Err(lost()) };
        };
        for _ in 0..TRIES {
            let Some((marker, etag)) = self.read::<Marker>(&key).await? else { break };
            let done = if marker.sends == ticket.sends {
                self.store.delete_if_match(&key, &etag).await?
            } else {
                // What was sent again starts as a message of its own.
                let fresh = Marker { receives: 0, first_received_at: None, ..marker };
                self.store.put_if_match(&key, &etag, json(&fresh)?).await? != Put::Refused
            };
            if done {
                break;
            }
        }
        self.store.delete_if_match(&lock_key(&ticket.name), &lock).await?;
        Ok(())
    }

    /// Makes the message visible again after `time`.
    pub(super) async fn give_back(&self, ticket: &Ticket, time: Duration) -> Result<()> {
        let Some(lock) = self.renew(ticket, self.visibility).await? else { return Ok(()) };
        self.postpone(ticket, after(now(), time)).await?;
        self.store.delete_if_match(&lock_key(&ticket.name), &lock).await?;
        Ok(())
    }

    /// A message that was sent again since the receive keeps the time of that sending.
    async fn postpone(&self, ticket: &Ticket, not_before: u64) -> Result<()> {
        let key = todo_key(&ticket.tier, &ticket.name);
        for _ in 0..TRIES {
            let Some((mut marker, etag)) = self.read::<Marker>(&key).await? else { return Ok(()) };
            if marker.sends != ticket.sends {
                return Ok(());
            }
            marker.not_before = not_before;
            if let Put::Written(_) = self.store.put_if_match(&key, &etag, json(&marker)?).await? {
                return Ok(());
            }
        }
        Err(contended())
    }

    /// One message per body: what waits already stays where it is, becomes visible no later than
    /// asked for now, and outlives the acknowledgement of an earlier receive.
    pub(super) async fn send_one(&self, message: &Outgoing) -> Result<()> {
        let name = name_of(&message.body);
        let key = todo_key(tier_of(message.priority), &name);
        let now = now();
        let not_before = if message.delay.is_zero() { 0 } else { after(now, message.delay) };
        for _ in 0..TRIES {
            let put = match self.read::<Marker>(&key).await? {
                None => {
                    let marker = Marker::new(&message.body, now, not_before);
                    self.store.put_if_absent(&key, json(&marker)?).await?
                }
                Some((mut marker, etag)) => {
                    marker.sends = marker.sends.saturating_add(1);
                    let worked_on = self.read_lock(&name).await?.is_some();
                    // While the lock hides the message, the delay is the new sending's alone.
                    marker.not_before = match worked_on {
                        true => not_before,
                        false => marker.not_before.min(not_before),
                    };
                    self.store.put_if_match(&key, &etag, json(&marker)?).await?
                }
            };
            if let Put::Written(_) = put {
                return Ok(());
            }
        }
        Err(contended())
    }
}
