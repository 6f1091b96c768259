//! Messages that were received too often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::blobforge::{DEAD, dead_key, hash_in};
use super::engine::{RecordStore, TRIES, back_off, contention_error, time_of, to_json_bytes};
use super::marker_queue::MarkerQueue;
use super::message::{DeadMessage, ObjectReceipt};
use super::{add_duration, lost_lock_error, parse_receipt};
use crate::queue::{DeadLetter, Delivery, ReceiptHandle};
use docmill_core::fault::Result;
use docmill_storage::store::{ObjectEntry, PutResult};

/// The tier in the receipts of dead letters.
const TIER: &str = "dead";

/// Reads the messages that were given up, and lets people put them back or drop them.
pub(super) struct DeadLetterReader {
    queue: Arc<MarkerQueue>,
}

impl DeadLetterReader {
    pub(super) fn new(queue: Arc<MarkerQueue>) -> Self {
        Self { queue }
    }

    fn engine(&self) -> &RecordStore {
        self.queue.engine()
    }

    /// Takes up to `max`, hidden from other readers for so long.
    pub(super) async fn take_letters(&self, max: usize, time: Duration) -> Result<Vec<DeadLetter>> {
        let mut taken = Vec::new();
        for entry in self.engine().list_all(DEAD).await? {
            if taken.len() >= max {
                break;
            }
            taken.extend(self.try_take(&entry, time).await?);
        }
        Ok(taken)
    }

    async fn try_take(&self, entry: &ObjectEntry, time: Duration) -> Result<Option<DeadLetter>> {
        let (received, now) = (Instant::now(), self.engine().now().await?);
        let Some(name) = hash_in(&entry.key, DEAD) else { return Ok(None) };
        let Some(seen) = self.engine().read::<DeadMessage>(&entry.key).await? else {
            return Ok(None);
        };
        let (mut dead, etag) = (seen.value, seen.etag);
        if dead.not_before > now {
            return Ok(None);
        }
        dead.not_before = add_duration(now, time);
        dead.nonce = uuid::Uuid::new_v4().simple().to_string();
        let put =
            self.engine().store().put_if_match(&entry.key, &etag, to_json_bytes(&dead)?).await?;
        if put == PutResult::Refused {
            return Ok(None);
        }
        let (tier, name) = (TIER.to_owned(), name.to_owned());
        let ticket = ObjectReceipt { tier, name: name.clone(), nonce: dead.nonce, sends: 0 };
        let delivery = Delivery {
            message_id: name.clone(),
            receipt: ticket.to_handle(),
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
    pub(super) async fn release_letter(&self, receipt: &ReceiptHandle) -> Result<()> {
        let Some(ticket) = ObjectReceipt::parse(receipt) else { return Ok(()) };
        let key = dead_key(&ticket.name);
        for turn in 0..TRIES {
            let Some(seen) = self.engine().read::<DeadMessage>(&key).await? else { return Ok(()) };
            if seen.value.nonce != ticket.nonce {
                return Ok(());
            }
            let dead = DeadMessage { not_before: 0, ..seen.value };
            let put =
                self.engine().store().put_if_match(&key, &seen.etag, to_json_bytes(&dead)?).await?;
            if put != PutResult::Refused {
                return Ok(());
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }

    /// Drops it for good.
    pub(super) async fn finish_letter(&self, receipt: &ReceiptHandle) -> Result<()> {
        let ticket = parse_receipt(receipt)?;
        let key = dead_key(&ticket.name);
        for turn in 0..TRIES {
            let Some(dead) = self.engine().read::<DeadMessage>(&key).await? else { return Ok(()) };
            if dead.value.nonce != ticket.nonce {
                return Err(lost_lock_error());
            }
            if self.engine().store().delete_if_match(&key, &dead.etag).await? {
                return Ok(());
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }
}
