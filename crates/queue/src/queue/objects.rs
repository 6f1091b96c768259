//! A queue of marker objects in any store with conditional writes: the embedded mode's queue, and
//! a bucket as a queue.
//!
//! A message is one marker; who works on it holds a lock object beside it. Every change of either
//! is conditional on the version that was read, so that a worker that was believed dead can
//! neither keep a lock it lost nor remove somebody else's:
//!
//! - after taking a lock the marker is looked at again: a finished message is not done twice from
//!   an old listing;
//! - a lock past its end is taken over by replacing exactly the version that was seen;
//! - receives are counted in the marker when the lock is taken, not when the work fails;
//! - an acknowledgement removes the marker, then the lock, under a lock renewed for it, and keeps
//!   a marker that was sent again meanwhile.
//!
//! A body is one message however often it is sent (its name is the body's hash). Times are the
//! store's, so that workers whose clocks differ agree. Where listings are paid, one is kept for a
//! while (`paced`): what this process puts back it sees at once, what others put there somewhat
//! later.
//!
//! [`engine`] is what any dialect stands on, [`blobforge`] the dialect that messages lie in; a
//! bucket of that dialect without a database is worked on by `ops::bucket`. [`olmocr`] is the layout
//! of olmOCR's workspaces, worked on by `ops::workspace`.

pub mod blobforge;
mod dead;
mod depth;
pub mod engine;
mod message;
pub mod olmocr;
mod scan;
mod seen;
mod take;
mod updates;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tokio::sync::Mutex;

use self::blobforge::records::Lock;
use self::blobforge::{LOCKS, Priority, hash_in, lock_key, todo_key};
use self::engine::{Clock, Engine, millis};
use self::message::{Ticket, end_of};
use self::scan::Scan;
use self::seen::Seen;
use super::{DeadLetter, Delivery, Depth, Outgoing, Queue, Receipt};
use crate::fault::{Error, Fault, Result};
use crate::store::{Entry, Store};

/// Pause between two looks while waiting for work, in milliseconds.
const POLL: std::ops::RangeInclusive<u64> = 100..=250;
/// Requests in flight for one call with many receipts.
const AT_ONCE: usize = 16;

/// Messages as objects.
pub struct ObjectQueue {
    engine: Engine,
    visibility: Duration,
    dead_after: Option<u32>,
    worker: String,
    each_list: Duration,
    scan: Mutex<Scan>,
    seen: Seen,
    depth: Mutex<Option<(tokio::time::Instant, Depth)>>,
}

impl ObjectQueue {
    /// A queue in `store`. Deliveries stay hidden for `visibility`; after `dead_after` receives a
    /// message is moved to `queue/dead/` (`None`: never).
    pub fn new(store: Arc<dyn Store>, visibility: Duration, dead_after: Option<u32>) -> Self {
        Self::over(Engine::new(store, Clock::default()), visibility, dead_after)
    }

    /// The same over an engine of another clock.
    pub fn over(engine: Engine, visibility: Duration, dead_after: Option<u32>) -> Self {
        Self {
            engine,
            visibility,
            dead_after,
            worker: format!("docmill-{}", uuid::Uuid::new_v4()),
            each_list: Duration::ZERO,
            scan: Mutex::default(),
            seen: Seen::default(),
            depth: Mutex::default(),
        }
    }

    /// The same, but a listing is kept for so long for every request it took.
    #[must_use]
    pub fn paced(mut self, each_list: Duration) -> Self {
        self.each_list = each_list;
        self
    }
}

/// Several requests at once, answers in order.
async fn all(work: Vec<BoxFuture<'_, Result<()>>>) -> Vec<Result<()>> {
    stream::iter(work).buffered(AT_ONCE).collect().await
}

fn after(from: u64, time: Duration) -> u64 {
    from.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn ticket_of(receipt: &Receipt) -> Result<Ticket> {
    Ticket::of(receipt).ok_or_else(|| Error::new(Fault::Missing, "a receipt of another queue"))
}

fn lost() -> Error {
    Error::new(Fault::Missing, "another worker has the message now")
}

#[async_trait]
impl Queue for ObjectQueue {
    fn describe(&self) -> String {
        format!("queue in {}", self.engine.store().describe())
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let deadline = Instant::now() + wait;
        loop {
            let found = self.take(max.max(1)).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !found.is_empty() || left.is_zero() {
                return Ok(found);
            }
            let pause = Duration::from_millis(fastrand::u64(POLL));
            tokio::time::sleep(pause.min(left)).await;
        }
    }

    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Vec<Result<()>> {
        all(receipts.iter().map(|receipt| self.extend_one(receipt, visibility).boxed()).collect())
            .await
    }

    async fn acknowledge(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        all(receipts.iter().map(|receipt| self.acknowledge_one(receipt).boxed()).collect()).await
    }

    async fn hide(&self, receipts: &[(Receipt, Duration)]) -> Vec<Result<()>> {
        all(receipts.iter().map(|(receipt, time)| self.hide_one(receipt, *time).boxed()).collect())
            .await
    }

    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<()>> {
        all(messages.iter().map(|message| self.send_one(message).boxed()).collect()).await
    }

    async fn depth(&self) -> Result<Depth> {
        // Asked for by every scrape of the metrics; where requests are paid, an older one has to do.
        let mut known = self.depth.lock().await;
        if let Some((at, depth)) = *known
            && at.elapsed() < self.each_list
        {
            return Ok(depth);
        }
        let depth = self.measure().await?;
        *known = Some((tokio::time::Instant::now(), depth));
        Ok(depth)
    }

    /// No limit of its own; a month is longer than anybody asks for.
    fn longest_hide(&self) -> Duration {
        Duration::from_secs(30 * 24 * 3600)
    }

    async fn receives_before_dead(&self) -> Result<Option<u32>> {
        Ok(self.dead_after)
    }

    async fn dead_receive(&self, max: usize, hidden: Duration) -> Result<Vec<DeadLetter>> {
        self.take_dead(max, hidden).await
    }

    async fn dead_acknowledge(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        all(receipts.iter().map(|receipt| self.finish_dead(receipt).boxed()).collect()).await
    }

    async fn dead_release(&self, receipts: &[Receipt]) -> Vec<Result<()>> {
        all(receipts.iter().map(|receipt| self.release_dead(receipt).boxed()).collect()).await
    }

    /// Removes locks that ended and have no message any more: their worker died between removing
    /// the one and the other.
    async fn maintain(&self) -> Result<u64> {
        let now = self.engine.now().await?;
        let mut removed = 0;
        for name in self.locks().await?.into_keys() {
            let key = lock_key(&name);
            let Some(lock) = self.engine.lock::<Lock>(&key).await? else { continue };
            let lasts = end_of(&lock.lease, millis(lock.modified)) > now;
            if lasts || self.has_marker(&name).await? {
                continue;
            }
            if self.engine.store().delete_if_match(&key, &lock.etag).await? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl ObjectQueue {
    async fn extend_one(&self, receipt: &Receipt, visibility: Duration) -> Result<()> {
        let ticket = ticket_of(receipt)?;
        self.renew(&ticket, visibility).await?.map(drop).ok_or_else(lost)
    }

    async fn acknowledge_one(&self, receipt: &Receipt) -> Result<()> {
        self.finish(&ticket_of(receipt)?).await
    }

    async fn hide_one(&self, receipt: &Receipt, time: Duration) -> Result<()> {
        match Ticket::of(receipt) {
            Some(ticket) => self.give_back(&ticket, time).await,
            None => Ok(()),
        }
    }

    async fn has_marker(&self, name: &str) -> Result<bool> {
        for tier in Priority::ALL {
            if self.engine.exists(&todo_key(tier, name)).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Every lock, by name.
    async fn locks(&self) -> Result<BTreeMap<String, Entry>> {
        let entries = self.engine.list_all(LOCKS).await?;
        let named = entries
            .into_iter()
            .filter_map(|entry| Some((hash_in(&entry.key, LOCKS)?.to_owned(), entry)));
        Ok(named.collect())
    }
}
