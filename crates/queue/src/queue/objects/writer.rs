//! What happens to a message after its receive, and sending.

use std::sync::Arc;
use std::time::Duration;

use super::blobforge::records::Lock;
use super::blobforge::{lock_key, todo_key};
use super::engine::{Engine, Held, TRIES, back_off, contended, json};
use super::marker_queue::MarkerQueue;
use super::message::{Message, Ticket, name_of};
use super::{after, lost};
use crate::fault::Result;
use crate::queue::Outgoing;
use crate::store::Put;

/// Sends messages, and renews, finishes and gives back those that were received.
pub(super) struct MessageWriter {
    queue: Arc<MarkerQueue>,
    visibility: Duration,
}

/// What was put (back) among the messages that wait.
pub(super) struct Returned {
    /// Its marker.
    pub(super) key: String,
    /// When, in milliseconds by the store's clock.
    pub(super) at: u64,
}

impl MessageWriter {
    pub(super) fn new(queue: Arc<MarkerQueue>, visibility: Duration) -> Self {
        Self { queue, visibility }
    }

    fn engine(&self) -> &Engine {
        self.queue.engine()
    }

    /// Keeps our lock for another `time`; `None` if it is not ours any more.
    pub(super) async fn renew(
        &self,
        ticket: &Ticket,
        time: Duration,
    ) -> Result<Option<Held<Lock>>> {
        let Some(mut held) = self.queue.find_held(&ticket.name, &ticket.nonce).await? else {
            return Ok(None);
        };
        let now = self.engine().now().await?;
        let longer = |lock: &mut Lock| {
            lock.last_heartbeat = now;
            lock.expires_at = Some(after(now, time));
        };
        Ok(self.engine().renew(&mut held, longer).await?.then_some(held))
    }

    /// Deletes the message for good, unless it was sent again since the receive.
    pub(super) async fn finish(&self, ticket: &Ticket) -> Result<()> {
        let key = ticket.todo_key();
        // Nobody takes the lock over while the two objects are being removed.
        let Some(mut lock) = self.renew(ticket, self.visibility).await? else {
            return if self.engine().exists(&key).await? { Err(lost()) } else { Ok(()) };
        };
        for turn in 0..TRIES {
            let Some(seen) = self.engine().read::<Message>(&key).await? else { break };
            let store = self.engine().store();
            let done = if seen.value.sends == ticket.sends {
                store.delete_if_match(&key, &seen.etag).await?
            } else {
                // What was sent again starts as a message of its own.
                let fresh = Message { receives: 0, first_received_at: None, ..seen.value };
                store.put_if_match(&key, &seen.etag, json(&fresh)?).await? != Put::Refused
            };
            if done {
                break;
            }
            back_off(turn).await;
        }
        self.engine().release(&mut lock).await?;
        Ok(())
    }

    /// Makes the message visible again after `time`; `None` if it is not ours any more.
    pub(super) async fn give_back(
        &self,
        ticket: &Ticket,
        time: Duration,
    ) -> Result<Option<Returned>> {
        let Some(mut lock) = self.renew(ticket, self.visibility).await? else { return Ok(None) };
        let not_before = after(self.engine().now().await?, time);
        // A message that was sent again since the receive keeps the time of that sending.
        let postpone = |message: &Message| {
            let ours = message.sends == ticket.sends;
            ours.then(|| Message { not_before, ..message.clone() })
        };
        self.engine().change(&ticket.todo_key(), postpone).await?;
        self.engine().release(&mut lock).await?;
        Ok(Some(Returned { key: ticket.todo_key(), at: self.engine().now().await? }))
    }

    /// One message per body: what waits already stays where it is, becomes visible no later than
    /// asked for now, and outlives the acknowledgement of an earlier receive.
    pub(super) async fn send(&self, message: &Outgoing) -> Result<Returned> {
        let name = name_of(&message.body);
        let key = todo_key(message.priority, &name);
        let now = self.engine().now().await?;
        let not_before = if message.delay.is_zero() { 0 } else { after(now, message.delay) };
        for turn in 0..TRIES {
            let written = match self.engine().read::<Message>(&key).await? {
                None => {
                    let fresh = Message::new(&message.body, now, not_before);
                    self.engine().create(&key, &fresh).await?
                }
                Some(seen) => {
                    let mut known = seen.value;
                    known.sends = known.sends.saturating_add(1);
                    let worked_on = self.engine().exists(&lock_key(&name)).await?;
                    // While the lock hides the message, the delay is the new sending's alone.
                    known.not_before = match worked_on {
                        true => not_before,
                        false => known.not_before.min(not_before),
                    };
                    let put = self.engine().store().put_if_match(&key, &seen.etag, json(&known)?);
                    put.await? != Put::Refused
                }
            };
            if written {
                return Ok(Returned { key, at: now });
            }
            back_off(turn).await;
        }
        Err(contended())
    }
}
