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
//! A body is one message however often it is sent (its name is the body's hash). Waiting means
//! listing every tenth to quarter of a second: right for a folder, dear for a bucket. Clocks of
//! the machines that share a queue must agree within a small part of the visibility. Not done
//! yet: changing priorities, and BlobForge's `failed/` markers.

mod dead;
mod layout;
mod seen;
mod take;
mod updates;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use self::layout::{DEAD, TIERS, Ticket, lock_key, name_in, tier_prefix, todo_key};
use self::seen::Seen;
use super::{DeadLetter, Delivery, Depth, Outgoing, Queue, Receipt};
use crate::fault::{Error, Fault, Result};
use crate::store::{Entry, Store};

/// Pause between two listings while waiting for work, in milliseconds.
const POLL: std::ops::RangeInclusive<u64> = 100..=250;
/// Entries asked for in one listing.
const PAGE: usize = 1000;
/// Requests in flight for one call with many receipts.
const AT_ONCE: usize = 16;
/// How often a conditional change is tried against others before it is given up for now.
const TRIES: u32 = 8;

/// Messages as objects.
pub struct ObjectQueue {
    store: Arc<dyn Store>,
    visibility: Duration,
    dead_after: Option<u32>,
    worker: String,
    seen: Seen,
}

impl ObjectQueue {
    /// A queue in `store`. Deliveries stay hidden for `visibility`; after `dead_after` receives a
    /// message is moved to `queue/dead/` (`None`: never).
    pub fn new(store: Arc<dyn Store>, visibility: Duration, dead_after: Option<u32>) -> Self {
        let worker = format!("docmill-{}", uuid::Uuid::new_v4());
        Self { store, visibility, dead_after, worker, seen: Seen::default() }
    }

    /// Every entry below a prefix.
    async fn list_all(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let after = all.last().map(|entry| entry.key.clone());
            let page = self.store.list(prefix, after.as_deref(), PAGE).await?;
            let full = page.len() == PAGE;
            all.extend(page);
            if !full {
                return Ok(all);
            }
        }
    }
}

/// Several requests at once, answers in order.
async fn all(work: Vec<BoxFuture<'_, Result<()>>>) -> Vec<Result<()>> {
    stream::iter(work).buffered(AT_ONCE).collect().await
}

/// Milliseconds since 1970.
fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn now() -> u64 {
    millis(SystemTime::now())
}

fn after(from: u64, time: Duration) -> u64 {
    from.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn time_of(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

fn ticket_of(receipt: &Receipt) -> Result<Ticket> {
    Ticket::of(receipt).ok_or_else(|| Error::new(Fault::Missing, "a receipt of another queue"))
}

fn lost() -> Error {
    Error::new(Fault::Missing, "another worker has the message now")
}

fn contended() -> Error {
    Error::transient("a message of the queue is changed by many at once")
}

#[async_trait]
impl Queue for ObjectQueue {
    fn describe(&self) -> String {
        format!("queue in {}", self.store.describe())
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
        let now = now();
        let locks = self.locks().await?;
        let mut depth = Depth::default();
        for tier in TIERS {
            let prefix = tier_prefix(tier);
            for entry in self.list_all(&prefix).await? {
                let Some(name) = name_in(&entry.key, &prefix) else { continue };
                if self.is_locked(name, locks.get(name), now).await? {
                    depth.in_flight += 1;
                } else if self.is_due(&entry, now).await? {
                    depth.ready += 1;
                } else {
                    depth.delayed += 1;
                }
            }
        }
        let dead = self.list_all(DEAD).await?;
        let dead = dead.iter().filter(|entry| name_in(&entry.key, DEAD).is_some()).count();
        depth.dead = Some(u64::try_from(dead).unwrap_or(u64::MAX));
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
        let now = now();
        let mut removed = 0;
        for (name, entry) in self.locks().await? {
            if self.is_locked(&name, Some(&entry), now).await? || self.has_marker(&name).await? {
                continue;
            }
            if let Some((_, etag)) = self.read_lock(&name).await?
                && self.store.delete_if_match(&lock_key(&name), &etag).await?
            {
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
        for tier in TIERS {
            if self.store.head(&todo_key(tier, name)).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
