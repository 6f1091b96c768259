//! Dead letters: messages received too often.
//!
//! A pass goes from key to key, over several calls, and reads each letter once: letters already
//! read are hidden, from all readers. It ends when the letters are released or become visible
//! again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::blobforge::{DEAD, dead_key, hash_in};
use super::engine::{
    PAGE, RecordStore, TRIES, UnreadableStreak, back_off, contention_error, time_of, to_json_bytes,
};
use super::marker_queue::MarkerQueue;
use super::message::{DeadMessage, ObjectReceipt};
use super::{add_duration, lost_lock_error, parse_receipt};
use docmill_core::fault::Result;
use docmill_queue::{DeadLetter, Delivery, ReceiptHandle};
use docmill_storage::{ObjectEntry, PutResult};
use parking_lot::Mutex;

/// The tier in the receipts of dead letters.
const TIER: &str = "dead";

/// Reads the messages that were given up, and lets people put them back or drop them.
pub(super) struct DeadLetterReader {
    queue: Arc<MarkerQueue>,
    reading: Mutex<LetterReading>,
}

/// How far this process has read.
#[derive(Default)]
struct LetterReading {
    /// The last key that was passed.
    after: Option<String>,
    /// Letters that this process took, by key, and until when they are hidden.
    taken: HashMap<String, Instant>,
}

impl LetterReading {
    /// Where to go on; at the beginning if nothing that was taken is still hidden.
    fn place(&mut self) -> Option<String> {
        let now = Instant::now();
        self.taken.retain(|_, until| *until > now);
        if self.taken.is_empty() {
            self.after = None;
        }
        self.after.clone()
    }
}

impl DeadLetterReader {
    pub(super) fn new(queue: Arc<MarkerQueue>) -> Self {
        Self { queue, reading: Mutex::default() }
    }

    fn engine(&self) -> &RecordStore {
        self.queue.engine()
    }

    /// Takes up to `max` letters, hidden from other readers for `time`.
    pub(super) async fn take_letters(&self, max: usize, time: Duration) -> Result<Vec<DeadLetter>> {
        let (mut taken, mut streak) = (Vec::new(), UnreadableStreak::default());
        loop {
            let after = self.reading.lock().place();
            let page = self.engine().store().list(DEAD, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for entry in page {
                if taken.len() >= max {
                    return Ok(taken);
                }
                match self.try_take(&entry, time).await {
                    Ok(letter) => taken.extend(letter),
                    Err(error) if streak.passes_over(&error) => {
                        let key = &entry.key;
                        tracing::warn!(key, error = %error, "skipped a dead letter: {error}");
                    }
                    Err(error) => return Err(error),
                }
                self.reading.lock().after = Some(entry.key);
            }
            if is_last {
                self.reading.lock().after = None;
                return Ok(taken);
            }
        }
    }

    async fn try_take(&self, entry: &ObjectEntry, time: Duration) -> Result<Option<DeadLetter>> {
        let (received, now) = (Instant::now(), self.engine().now().await?);
        let Some(name) = hash_in(&entry.key, DEAD) else { return Ok(None) };
        if self.reading.lock().taken.get(&entry.key).is_some_and(|until| *until > received) {
            return Ok(None);
        }
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
        self.reading.lock().taken.insert(entry.key.clone(), received + time);
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
            origin: None,
        };
        Ok(Some(DeadLetter { delivery }))
    }

    /// Lets other readers see it again, unless one does already.
    pub(super) async fn release_letter(&self, receipt: &ReceiptHandle) -> Result<()> {
        let Some(ticket) = ObjectReceipt::parse(receipt) else { return Ok(()) };
        let key = dead_key(&ticket.name);
        {
            let mut reading = self.reading.lock();
            reading.taken.remove(&key);
            reading.after = None;
        }
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
        self.reading.lock().taken.remove(&key);
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
