//! A queue of marker objects in any store with conditional writes: the embedded mode's queue, and a
//! bucket as a queue.
//!
//! A message is one marker; its consumer holds a lock object beside it. Every change of either is
//! conditional on the version that was read, so that a worker presumed dead can neither keep a lost
//! lock nor remove another's:
//!
//! - after taking a lock the marker is read again: a finished message is not processed twice from
//!   an old listing;
//! - an expired lock is taken over by replacing exactly the version that was read;
//! - receives are counted in the marker when the lock is taken, not when the work fails;
//! - an acknowledgement removes the marker, then the lock, under a lock renewed for it, and keeps a
//!   marker that was sent again meanwhile.
//!
//! A body is one message however often it is sent (its name is the body's hash). Times are the
//! store's, so that workers with different clocks agree. Where listings are paid, one is cached for
//! a while (`paced`): this process sees its own messages at once, those of others somewhat later.
//!
//! [`engine`] is the base of both layouts, [`blobforge`] the layout of messages, and
//! [`marker_queue`] its markers and locks. `bucket` uses the same marker queue for documents.
//! [`olmocr`] is the layout of olmOCR's workspaces, used by `workspace`.

mod availability;
pub mod blobforge;
mod dead_letters;
mod depth_counter;
pub mod engine;
pub mod marker_queue;
mod marker_scan;
mod message;
pub mod olmocr;
mod receiver;
mod writer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use self::availability::AvailabilityCache;
use self::blobforge::lock_key;
use self::dead_letters::DeadLetterReader;
use self::depth_counter::DepthCounter;
use self::engine::{RecordStore, StoreClock, UnreadableStreak, to_millis};
use self::marker_queue::MarkerQueue;
use self::message::{ObjectReceipt, end_of};
use self::receiver::{MessageReceiver, ReceiveTerms};
use self::writer::MessageWriter;
use docmill_core::fault::{Error, Fault, Result};
use docmill_queue::{
    DeadLetter, Delivery, MessageQueue, OutgoingMessage, QueueDepth, ReceiptHandle,
};
use docmill_storage::ObjectStore;

/// Pause between two scans while waiting for work, in milliseconds.
const POLL: std::ops::RangeInclusive<u64> = 100..=250;
/// Requests in flight for one call with many receipts.
const AT_ONCE: usize = 16;

/// A message queue whose messages are objects of a store.
pub struct ObjectQueue {
    queue: Arc<MarkerQueue>,
    receiver: MessageReceiver,
    writer: MessageWriter,
    dead: DeadLetterReader,
    depth: DepthCounter,
    dead_after: Option<u32>,
}

impl ObjectQueue {
    /// A queue in `store`. Deliveries stay hidden for `visibility`; after `dead_after` receives a
    /// message is moved to `queue/dead/` (`None`: never).
    pub fn new(store: Arc<dyn ObjectStore>, visibility: Duration, dead_after: Option<u32>) -> Self {
        Self::with_engine(RecordStore::new(store, StoreClock::default()), visibility, dead_after)
    }

    /// The same over an engine of another clock.
    pub fn with_engine(engine: RecordStore, visibility: Duration, dead_after: Option<u32>) -> Self {
        let queue = Arc::new(MarkerQueue::new(Arc::new(engine)));
        let availability = Arc::new(AvailabilityCache::new(Arc::clone(&queue)));
        let worker = format!("docmill-{}", uuid::Uuid::new_v4());
        let terms = ReceiveTerms { visibility, dead_after, worker, each_list: Duration::ZERO };
        Self {
            receiver: MessageReceiver::new(Arc::clone(&queue), Arc::clone(&availability), terms),
            writer: MessageWriter::new(Arc::clone(&queue), visibility),
            dead: DeadLetterReader::new(Arc::clone(&queue)),
            depth: DepthCounter::new(Arc::clone(&queue), availability),
            queue,
            dead_after,
        }
    }

    /// The same, with listings cached for `each_list` per request.
    #[must_use]
    pub fn with_list_pace(mut self, each_list: Duration) -> Self {
        self.receiver.set_pace(each_list);
        self.depth.set_pace(each_list);
        self
    }
}

/// Several requests at once, answers in order.
async fn run_concurrently(work: Vec<BoxFuture<'_, Result<()>>>) -> Vec<Result<()>> {
    stream::iter(work).buffered(AT_ONCE).collect().await
}

fn add_duration(from: u64, time: Duration) -> u64 {
    from.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn parse_receipt(receipt: &ReceiptHandle) -> Result<ObjectReceipt> {
    ObjectReceipt::parse(receipt)
        .ok_or_else(|| Error::new(Fault::Missing, "a receipt of another queue"))
}

fn lost_lock_error() -> Error {
    Error::new(Fault::Missing, "another worker has the message now")
}

#[async_trait]
impl MessageQueue for ObjectQueue {
    fn describe(&self) -> String {
        format!("queue in {}", self.queue.engine().store().describe())
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let deadline = Instant::now() + wait;
        loop {
            let found = self.receiver.take_messages(max.max(1)).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !found.is_empty() || left.is_zero() {
                return Ok(found);
            }
            let pause = Duration::from_millis(fastrand::u64(POLL));
            tokio::time::sleep(pause.min(left)).await;
        }
    }

    async fn extend_visibility(
        &self,
        receipts: &[ReceiptHandle],
        visibility: Duration,
    ) -> Vec<Result<()>> {
        run_concurrently(
            receipts.iter().map(|receipt| self.extend_one(receipt, visibility).boxed()).collect(),
        )
        .await
    }

    async fn acknowledge(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        run_concurrently(
            receipts.iter().map(|receipt| self.acknowledge_one(receipt).boxed()).collect(),
        )
        .await
    }

    async fn hide(&self, receipts: &[(ReceiptHandle, Duration)]) -> Vec<Result<()>> {
        run_concurrently(
            receipts.iter().map(|(receipt, time)| self.hide_one(receipt, *time).boxed()).collect(),
        )
        .await
    }

    async fn send(&self, messages: &[OutgoingMessage]) -> Vec<Result<()>> {
        run_concurrently(messages.iter().map(|message| self.send_one(message).boxed()).collect())
            .await
    }

    async fn depth(&self) -> Result<QueueDepth> {
        self.depth.read_depth().await
    }

    /// Unlimited; a month exceeds every request.
    fn longest_hide(&self) -> Duration {
        Duration::from_secs(30 * 24 * 3600)
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        Ok(self.dead_after)
    }

    async fn receive_dead(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        self.dead.take_letters(max, hidden).await
    }

    async fn acknowledge_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        run_concurrently(
            receipts.iter().map(|receipt| self.dead.finish_letter(receipt).boxed()).collect(),
        )
        .await
    }

    async fn release_dead(&self, receipts: &[ReceiptHandle]) -> Vec<Result<()>> {
        run_concurrently(
            receipts.iter().map(|receipt| self.dead.release_letter(receipt).boxed()).collect(),
        )
        .await
    }

    /// Removes expired locks without a message: their worker died between removing the two.
    async fn run_maintenance(&self) -> Result<u64> {
        let engine = self.queue.engine();
        let now = engine.now().await?;
        let (mut removed, mut streak) = (0, UnreadableStreak::default());
        for name in self.queue.list_locks().await?.into_keys() {
            let lock = match self.queue.read_lock(&name).await {
                Ok(Some(lock)) => lock,
                Ok(None) => continue,
                Err(error) if streak.passes_over(&error) => {
                    let key = lock_key(&name);
                    tracing::warn!(key, error = %error, "a lock was not released: {error}");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let lasts = end_of(&lock.lease, to_millis(lock.modified)) > now;
            if lasts || self.queue.has_marker(&name).await? {
                continue;
            }
            if engine.store().delete_if_match(&lock_key(&name), &lock.etag).await? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl ObjectQueue {
    async fn extend_one(&self, receipt: &ReceiptHandle, visibility: Duration) -> Result<()> {
        let ticket = parse_receipt(receipt)?;
        self.writer.renew_lock(&ticket, visibility).await?.map(drop).ok_or_else(lost_lock_error)
    }

    async fn acknowledge_one(&self, receipt: &ReceiptHandle) -> Result<()> {
        self.writer.finish_message(&parse_receipt(receipt)?).await
    }

    async fn hide_one(&self, receipt: &ReceiptHandle, time: Duration) -> Result<()> {
        let Some(ticket) = ObjectReceipt::parse(receipt) else { return Ok(()) };
        if let Some(returned) = self.writer.give_back(&ticket, time).await? {
            self.receiver.note_returned(returned).await;
        }
        Ok(())
    }

    async fn send_one(&self, message: &OutgoingMessage) -> Result<()> {
        let returned = self.writer.send(message).await?;
        self.receiver.note_returned(returned).await;
        Ok(())
    }
}
