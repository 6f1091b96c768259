//! The place work comes from, behind one small trait.
//!
//! A [`MessageQueue`] hands out [`Delivery`] values and hides each of them from other workers for a
//! time. That is all the worker relies on. Ordering, exactly-once and exact counts are deliberately
//! not promised: the claim in the ledger makes a job run once, the queue only says that there may
//! be work. Every implementation passes the same suite, `tests/it/queue_suite.rs`.
//!
//! Responsibilities: the caller keeps batches of any size and never asks to hide for longer than
//! [`MessageQueue::longest_hide`]; the implementation splits batches to its service's limits,
//! retries failed entries singly, and puts a timeout on every network call. A receive that was sent
//! is never dropped by the caller (the service hands the messages out all the same).

pub mod redis;
pub mod round_robin;
pub mod sqs;

use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use docmill_core::fault::{Fault, Result};
use docmill_core::model::Priority;

/// The proof of one receive; only the newest of a message is sure to work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReceiptHandle(pub String);

/// A message as it was received, hidden from other workers for a while.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The service's id of the message, the same at every receive.
    pub message_id: String,
    /// The body, exactly as it was sent.
    pub body: String,
    /// Needed for everything that follows.
    pub receipt: ReceiptHandle,
    /// How often it was received, this time included. Approximate.
    pub receive_count: u32,
    /// Time of sending by the service's clock; `None`: not reported.
    pub sent_at: Option<SystemTime>,
    /// Time of the first receive by the service's clock; `None`: not reported.
    pub first_received_at: Option<SystemTime>,
    /// Monotonic time just before the receive call was sent: from here its hiding is counted.
    pub received: Instant,
    /// The tier it was received from; `None` if the queue has none.
    pub priority: Option<Priority>,
    /// On whose behalf it was sent, if the sender said so and the format has room for it.
    pub tenant: Option<String>,
    /// The sender's W3C `traceparent`, unchanged, if the format has room for it.
    pub traceparent: Option<String>,
    /// Of a message that took another's place, if the format has room for it.
    pub origin: Option<MessageOrigin>,
}

/// Where a message came from that took another's place: its age and history go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageOrigin {
    /// When the first of them was sent; whole seconds.
    pub first_sent: SystemTime,
    /// How often one of them was taken out of the dead-letter queue and sent again.
    pub revivals: u32,
}

impl MessageOrigin {
    /// As it is carried beside a message: seconds since 1970, and a count.
    pub fn to_text(self) -> String {
        let since = self.first_sent.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{} {}", since.as_secs(), self.revivals)
    }

    /// `None` for anything else than [`MessageOrigin::to_text`] writes.
    pub fn from_text(text: &str) -> Option<Self> {
        let (since, revivals) = text.split_once(' ')?;
        let since = Duration::from_secs(since.parse().ok()?);
        let first_sent = SystemTime::UNIX_EPOCH.checked_add(since)?;
        Some(Self { first_sent, revivals: revivals.parse().ok()? })
    }
}

impl Delivery {
    /// When the message was sent, or the first whose place it took.
    pub fn first_sent(&self) -> Option<SystemTime> {
        self.origin.map(|origin| origin.first_sent).or(self.sent_at)
    }

    /// How often it was taken out of the dead-letter queue and sent again.
    pub fn revivals(&self) -> u32 {
        self.origin.map_or(0, |origin| origin.revivals)
    }

    /// A message for the same tier, tenant and trace as this one, and with its history.
    pub fn to_successor(&self, body: String) -> OutgoingMessage {
        let revivals = self.revivals();
        let origin = self.first_sent().map(|first_sent| MessageOrigin { first_sent, revivals });
        OutgoingMessage {
            body,
            delay: Duration::ZERO,
            priority: self.priority.unwrap_or_default(),
            tenant: self.tenant.clone(),
            traceparent: self.traceparent.clone(),
            origin,
        }
    }

    /// The message that is sent when this one is taken out of the dead-letter queue.
    pub fn to_revival(&self) -> OutgoingMessage {
        let mut message = self.to_successor(self.body.clone());
        if let Some(origin) = &mut message.origin {
            origin.revivals = origin.revivals.saturating_add(1);
        }
        message
    }
}

/// A message to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The text to send.
    pub body: String,
    /// How long it stays invisible first; at most 15 minutes.
    pub delay: Duration,
    /// Which tier it goes to; a queue without tiers takes all alike.
    pub priority: Priority,
    /// On whose behalf: where the backend can, one tenant's flood does not delay the others.
    pub tenant: Option<String>,
    /// W3C `traceparent` of what caused it; dropped where the format has no room for it.
    pub traceparent: Option<String>,
    /// Of a message that takes another's place; dropped where the format has no room for it.
    pub origin: Option<MessageOrigin>,
}

impl OutgoingMessage {
    /// A message without a tenant that is visible at once.
    pub fn from_body(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }
}

/// One of the queues that a backend with tiers consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueTier {
    /// The priority of the messages that are sent there.
    pub priority: Priority,
    /// Its share of the slots against the other tiers' while all have work, at least 1.
    pub weight: u32,
}

/// How many messages wait; the numbers are approximate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueueDepth {
    /// Messages that can be received now.
    pub ready: u64,
    /// Messages that were received and are hidden.
    pub in_flight: u64,
    /// Sent with a delay that still runs.
    pub delayed: u64,
    /// In the dead-letter queue; `None` without one.
    pub dead: Option<u64>,
}

/// A message in the dead-letter queue.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The message itself. Its receipt is of the dead-letter queue.
    pub delivery: Delivery,
}

/// A source of deliveries.
#[async_trait]
pub trait MessageQueue: Send + Sync {
    /// A few words for logs: backend and address, without credentials.
    fn describe(&self) -> String;

    /// Receives up to `max` messages (at least 1), waiting up to `wait` for the first. Each is
    /// hidden from others for the configured visibility, counted from before the call.
    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>>;

    /// The queues that can only be received from one by one, most urgent first; empty if one
    /// [`MessageQueue::receive`] serves everything there is, in the order of its priorities.
    fn tiers(&self) -> Vec<QueueTier> {
        Vec::new()
    }

    /// [`MessageQueue::receive`] from one of [`MessageQueue::tiers`].
    async fn receive_from(&self, tier: usize, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let _only = tier;
        self.receive(max, wait).await
    }

    /// Keeps messages hidden for another `visibility` from now. One result per receipt, in order;
    /// `Missing` means that the receipt is no longer good.
    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>>;

    /// Deletes messages for good. A message that is gone already is a success.
    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>>;

    /// Deletes messages before they are worked on: `true` means that this call did it. Redis
    /// guarantees one `true`; others may answer `true` twice, which is why the claim in the ledger
    /// must be the caller's before.
    async fn try_acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<bool>> {
        let answers = self.acknowledge(receipts).await.into_iter();
        answers
            .map(|answer| match answer {
                Ok(()) => Ok(true),
                Err(error) if error.fault == Fault::Missing => Ok(false),
                Err(error) => Err(error),
            })
            .collect()
    }

    /// Gives messages back, visible again after the given time (zero: at once). A receipt that is
    /// no longer valid is a success: another receiver has the message.
    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>>;

    /// Sends messages. One result per message, in order.
    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>>;

    /// Whether other programs work on the same queue, so that what we cannot read may be theirs: it is
    /// left to them ([`MessageQueue::leave_to_others`]) and not put aside.
    fn leaves_foreign(&self) -> bool {
        false
    }

    /// Puts messages back where they were, as if they had never been received, and passes them over
    /// from then on. A receipt that is no longer good is a success.
    async fn leave_to_others(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        let now: Vec<_> = receipts.iter().map(|one| (one.clone(), Duration::ZERO)).collect();
        self.hide(&now).await
    }

    /// Counts the messages that wait. Those that are left to others are none of them.
    async fn depth(&self) -> Result<QueueDepth>;

    /// How much waits in each of [`MessageQueue::tiers`], in their order. Without `dead`: tiers may
    /// share a dead-letter queue.
    async fn tier_depths(&self) -> Result<Vec<QueueDepth>> {
        Ok(Vec::new())
    }

    /// The longest time [`MessageQueue::hide`] and [`MessageQueue::extend_visibility`] may ask for,
    /// counted from the receive (SQS: 12 h).
    fn longest_hide(&self) -> Duration;

    /// After how many receives the service moves a message to the dead-letter queue; `None` if it
    /// never does. Read from the service when it keeps the setting.
    async fn receives_before_dead(&self) -> Result<Option<u32>>;

    /// Receives up to `max` dead letters, hidden from other readers for `hidden`. Finish with
    /// [`MessageQueue::acknowledge_dead`] or [`MessageQueue::release_dead`]; those that are neither
    /// stay where they are and show again when the time is over.
    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>>;

    /// Deletes dead letters (after their ingestion was sent again or recorded as failed).
    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>>;

    /// Lets other readers see dead letters again at once. A receipt that is no longer good is a
    /// success.
    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>>;

    /// Housekeeping that the backend needs from time to time, run by the maintenance leader.
    /// Returns how many things were put right.
    async fn run_maintenance(&self) -> Result<u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_and_the_revivals_of_a_message_go_on_in_those_that_take_its_place() {
        let sent = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_340_000);
        let first = Delivery {
            message_id: "m".to_owned(),
            body: "event".to_owned(),
            receipt: ReceiptHandle("r".to_owned()),
            receive_count: 3,
            sent_at: Some(sent),
            first_received_at: None,
            received: Instant::now(),
            priority: None,
            tenant: None,
            traceparent: None,
            origin: None,
        };
        let mut delivery = first.clone();
        for revivals in 1..=3 {
            let text = delivery.to_revival().origin.unwrap().to_text();
            let origin = MessageOrigin::from_text(&text);
            let later = Some(sent + Duration::from_secs(9_000));
            delivery = Delivery { origin, sent_at: later, ..first.clone() };
            assert_eq!((delivery.first_sent(), delivery.revivals()), (Some(sent), revivals));
            assert_eq!(delivery.to_successor(String::new()).origin, origin, "not another revival");
        }
        for wrong in ["", "1", "1 x", "-1 0", "1 2 3", "99999999999999999999 0"] {
            assert_eq!(MessageOrigin::from_text(wrong), None, "{wrong}");
        }
    }
}
