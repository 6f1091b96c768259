//! Sends messages, and changes them after a receive.

use std::sync::Arc;
use std::time::Duration;

use super::blobforge::records::MarkerLock;
use super::blobforge::{lock_key, todo_key};
use super::engine::{ObjectLock, RecordStore, TRIES, back_off, contention_error, to_json_bytes};
use super::marker_queue::MarkerQueue;
use super::message::{ObjectReceipt, QueuedMessage, name_of};
use super::{add_duration, lost_lock_error};
use docmill_core::fault::Result;
use docmill_queue::OutgoingMessage;
use docmill_storage::PutResult;

/// Sends messages, and renews, finishes and gives back those that were received.
pub(super) struct MessageWriter {
    queue: Arc<MarkerQueue>,
    visibility: Duration,
}

/// A message put (back) among the waiting ones.
pub(super) struct ReturnedMessage {
    /// Key of the message's marker.
    pub(super) key: String,
    /// When, in milliseconds by the store's clock.
    pub(super) at: u64,
}

impl MessageWriter {
    pub(super) fn new(queue: Arc<MarkerQueue>, visibility: Duration) -> Self {
        Self { queue, visibility }
    }

    fn engine(&self) -> &RecordStore {
        self.queue.engine()
    }

    /// Renews the lock for `time`; `None` if it was lost.
    pub(super) async fn renew_lock(
        &self,
        ticket: &ObjectReceipt,
        time: Duration,
    ) -> Result<Option<ObjectLock<MarkerLock>>> {
        let Some(mut held) = self.queue.find_held(&ticket.name, &ticket.nonce).await? else {
            return Ok(None);
        };
        let now = self.engine().now().await?;
        Ok(self
            .engine()
            .renew_lock(&mut held, |lock: &mut MarkerLock| {
                lock.last_heartbeat = now;
                lock.expires_at = Some(add_duration(now, time));
            })
            .await?
            .then_some(held))
    }

    /// Deletes the message for good, unless it was sent again since the receive.
    pub(super) async fn finish_message(&self, ticket: &ObjectReceipt) -> Result<()> {
        let key = ticket.todo_key();
        // The renewed lock cannot be taken over while the two objects are being removed.
        let Some(mut lock) = self.renew_lock(ticket, self.visibility).await? else {
            return if self.engine().exists(&key).await? { Err(lost_lock_error()) } else { Ok(()) };
        };
        for turn in 0..TRIES {
            let Some(seen) = self.engine().read::<QueuedMessage>(&key).await? else { break };
            let store = self.engine().store();
            let done = if seen.value.sends == ticket.sends {
                store.delete_if_match(&key, &seen.etag).await?
            } else {
                // A resent message starts anew.
                let fresh = QueuedMessage { receives: 0, first_received_at: None, ..seen.value };
                store.put_if_match(&key, &seen.etag, to_json_bytes(&fresh)?).await?
                    != PutResult::Refused
            };
            if done {
                break;
            }
            back_off(turn).await;
        }
        self.engine().release_lock(&mut lock).await?;
        Ok(())
    }

    /// Makes the message visible again after `time`; `None` if the lock was lost.
    pub(super) async fn give_back(
        &self,
        ticket: &ObjectReceipt,
        time: Duration,
    ) -> Result<Option<ReturnedMessage>> {
        let Some(mut lock) = self.renew_lock(ticket, self.visibility).await? else {
            return Ok(None);
        };
        let not_before = add_duration(self.engine().now().await?, time);
        // A message that was sent again since the receive keeps the time of that sending.
        self.engine()
            .change(&ticket.todo_key(), |message: &QueuedMessage| {
                let ours = message.sends == ticket.sends;
                ours.then(|| QueuedMessage { not_before, ..message.clone() })
            })
            .await?;
        self.engine().release_lock(&mut lock).await?;
        Ok(Some(ReturnedMessage { key: ticket.todo_key(), at: self.engine().now().await? }))
    }

    /// One message per body: a waiting one keeps its place, becomes visible no later than requested
    /// now, and survives the acknowledgement of an earlier receive.
    pub(super) async fn send(&self, message: &OutgoingMessage) -> Result<ReturnedMessage> {
        let name = name_of(&message.body);
        let key = todo_key(message.priority, &name);
        let now = self.engine().now().await?;
        let not_before = if message.delay.is_zero() { 0 } else { add_duration(now, message.delay) };
        for turn in 0..TRIES {
            let written = match self.engine().read::<QueuedMessage>(&key).await? {
                None => {
                    let fresh = QueuedMessage::new(&message.body, now, not_before);
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
                    let put = self.engine().store().put_if_match(
                        &key,
                        &seen.etag,
                        to_json_bytes(&known)?,
                    );
                    put.await? != PutResult::Refused
                }
            };
            if written {
                return Ok(ReturnedMessage { key, at: now });
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }
}
