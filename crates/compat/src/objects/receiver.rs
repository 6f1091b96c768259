//! Receiving: finding messages that are due and free, and locking them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::add_duration;
use super::availability::AvailabilityCache;
use super::blobforge::marker_in;
use super::blobforge::records::{EXCEEDED, MarkerLock};
use super::engine::{ObjectLock, UnreadableStreak, time_of, to_millis};
use super::marker_queue::MarkerQueue;
use super::marker_scan::MarkerScan;
use super::message::{DeadMessage, ObjectReceipt, QueuedMessage, end_of};
use super::writer::ReturnedMessage;
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_queue::Delivery;
use docmill_storage::ObjectEntry;

/// Takes messages for one process, which remembers what it saw.
pub(super) struct MessageReceiver {
    queue: Arc<MarkerQueue>,
    availability: Arc<AvailabilityCache>,
    scan: Mutex<MarkerScan>,
    terms: ReceiveTerms,
}

/// How messages are received.
#[derive(Debug, Clone)]
pub(super) struct ReceiveTerms {
    /// How long a delivery stays hidden.
    pub(super) visibility: Duration,
    /// Receives after which a message is dead; `None`: never.
    pub(super) dead_after: Option<u32>,
    /// The name in our locks.
    pub(super) worker: String,
    /// How long a listing is kept for every request it took.
    pub(super) each_list: Duration,
}

/// A message that may be free.
struct ListedMessage<'a> {
    tier: Priority,
    name: &'a str,
    entry: &'a ObjectEntry,
    lock: Option<&'a ObjectEntry>,
}

/// The result of an attempt to receive a message.
enum ReceiveAttempt {
    /// The lock is held.
    Taken(Box<Delivery>),
    /// Hidden or locked; it may be had later.
    Later,
    /// Gone, or taken by another worker; the next listing shows which.
    Gone,
}

impl MessageReceiver {
    pub(super) fn new(
        queue: Arc<MarkerQueue>,
        availability: Arc<AvailabilityCache>,
        terms: ReceiveTerms,
    ) -> Self {
        Self { queue, availability, scan: Mutex::default(), terms }
    }

    /// Caches a listing for `each_list` per request it took.
    pub(super) fn set_pace(&mut self, each_list: Duration) {
        self.terms.each_list = each_list;
    }

    /// Takes note of what this process itself put (back), so that it need not list to see it.
    pub(super) async fn note_returned(&self, returned: ReturnedMessage) {
        self.scan.lock().await.note_returned(returned);
    }

    /// Takes waiting messages, most urgent first. Locked messages are returned even if a later
    /// request fails: otherwise they would stay hidden in vain.
    pub(super) async fn take_messages(&self, max: usize) -> Result<Vec<Delivery>> {
        let mut scan = self.scan.lock().await;
        let mut taken = Vec::new();
        match self.take_some(&mut scan, max, &mut taken).await {
            Err(error) if taken.is_empty() => Err(error),
            _ => Ok(taken),
        }
    }

    async fn take_some(
        &self,
        scan: &mut MarkerScan,
        max: usize,
        taken: &mut Vec<Delivery>,
    ) -> Result<()> {
        let now = self.queue.engine().now().await?;
        let mut streak = UnreadableStreak::default();
        if scan.is_old() {
            scan.refresh(&self.queue, self.terms.each_list).await?;
        }
        loop {
            let mut entries = std::mem::take(&mut scan.found).into_iter();
            for entry in entries.by_ref() {
                if taken.len() >= max {
                    scan.found.push(entry);
                    break;
                }
                let Some((tier, name)) = marker_in(&entry.key) else { continue };
                let lock = scan.locks.get(name);
                match self.try_take(&ListedMessage { tier, name, entry: &entry, lock }, now).await {
                    Ok(ReceiveAttempt::Taken(delivery)) => {
                        streak.end_streak();
                        taken.push(*delivery);
                    }
                    Ok(ReceiveAttempt::Later) => scan.found.push(entry),
                    Ok(ReceiveAttempt::Gone) => {}
                    Err(error) if streak.passes_over(&error) => {
                        self.availability.set_aside(&entry, &error, now);
                        scan.found.push(entry);
                    }
                    Err(error) => {
                        scan.mark_old();
                        return Err(error);
                    }
                }
            }
            scan.found.extend(entries);
            // Where listings are dear, the next scan begins elsewhere by itself.
            let go_on = taken.len() < max && self.terms.each_list.is_zero();
            if !go_on || !scan.load_next_page(&self.queue).await? {
                return Ok(());
            }
        }
    }

    async fn try_take(&self, listed: &ListedMessage<'_>, now: u64) -> Result<ReceiveAttempt> {
        // The hiding is counted from before the first request about this message.
        let started = Instant::now();
        let ListedMessage { name, entry, lock, .. } = listed;
        if self.availability.is_hidden(entry, now) {
            return Ok(ReceiveAttempt::Later);
        }
        if self.availability.is_locked(name, *lock, now).await? {
            return Ok(ReceiveAttempt::Later);
        }
        match self.availability.is_due(entry, now).await? {
            None => return Ok(ReceiveAttempt::Gone),
            Some(false) => return Ok(ReceiveAttempt::Later),
            Some(true) => {}
        }
        let Some(lock) = self.lock_message(listed, now).await? else {
            return Ok(ReceiveAttempt::Gone);
        };
        let counted = self.count_or_dead_letter(listed, now).await;
        let kept = self.queue.keep_or_release(lock, counted).await?;
        Ok(kept.map_or(ReceiveAttempt::Gone, |(lock, message)| {
            let nonce = lock.lease().nonce.clone();
            ReceiveAttempt::Taken(Box::new(build_delivery(listed, nonce, message, started)))
        }))
    }

    /// Takes the lock: a new one, or by replacing an expired one.
    async fn lock_message(
        &self,
        listed: &ListedMessage<'_>,
        now: u64,
    ) -> Result<Option<ObjectLock<MarkerLock>>> {
        let mut lock = MarkerLock::new(&self.terms.worker, listed.tier.blobforge_key(), now);
        lock.expires_at = Some(add_duration(now, self.terms.visibility));
        if let Some(held) = self.queue.try_lock(listed.name, lock.clone()).await? {
            return Ok(Some(held));
        }
        let Some(old) = self.queue.read_lock(listed.name).await? else { return Ok(None) };
        if end_of(&old.lease, to_millis(old.modified)) > now {
            return Ok(None);
        }
        self.queue.take_over(listed.name, &old.etag, lock).await
    }

    /// Under the lock: counts the receive, and moves the message to the dead letters after too
    /// many. `None`: dead, finished or hidden since the listing.
    async fn count_or_dead_letter(
        &self,
        listed: &ListedMessage<'_>,
        now: u64,
    ) -> Result<Option<QueuedMessage>> {
        let count = |mut message: QueuedMessage| {
            if message.not_before > now {
                return None;
            }
            message.receives = message.receives.saturating_add(1);
            message.first_received_at.get_or_insert(now);
            Some(message)
        };
        let counted = self.queue.count_under_lock(listed.name, listed.tier, count).await?;
        let Some(message) = counted else { return Ok(None) };
        if self.terms.dead_after.is_none_or(|most| message.receives <= most) {
            return Ok(Some(message));
        }
        // A message of this name that waits elsewhere is another sending, with its own count.
        let here = [listed.tier];
        self.queue.dead_letter(listed.name, &here, |at| dead_message(message, at)).await?;
        Ok(None)
    }
}

fn dead_message(message: QueuedMessage, at: String) -> DeadMessage {
    DeadMessage {
        error: "received too often".to_owned(),
        moved_to_dead_at: at,
        total_retries: message.retries,
        reason: EXCEEDED.to_owned(),
        body: message.body,
        queued_at: message.queued_at,
        receives: message.receives,
        first_received_at: message.first_received_at,
        ..DeadMessage::default()
    }
}

fn build_delivery(
    listed: &ListedMessage<'_>,
    nonce: String,
    message: QueuedMessage,
    received: Instant,
) -> Delivery {
    let name = listed.name.to_owned();
    let tier = listed.tier.blobforge_key().to_owned();
    let ticket = ObjectReceipt { tier, name: name.clone(), nonce, sends: message.sends };
    Delivery {
        message_id: name.clone(),
        receipt: ticket.to_handle(),
        receive_count: message.receives,
        sent_at: (message.queued_at > 0).then(|| time_of(message.queued_at)),
        first_received_at: message.first_received_at.map(time_of),
        body: message.body.unwrap_or(name),
        received,
        priority: Some(listed.tier),
        tenant: None,
        traceparent: None,
        origin: None,
    }
}
