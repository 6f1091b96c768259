//! Counts waiting messages.
//!
//! In a folder every message is counted. In a bucket this would take a request per message and per
//! thousand keys, from each worker. There one worker counts for all and stores the result, by one
//! listing request per priority: names are evenly spread hashes, so the last name of a full page
//! shows the total within a few per cent. Only a limited number of messages is read; unread markers
//! count as ready, locks as in flight.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::availability::AvailabilityCache;
use super::blobforge::{DEAD, hash_in, marker_in};
use super::engine::{LockRecord, PAGE, RecordStore, UnreadableStreak, to_millis};
use super::marker_queue::{MarkerPage, MarkerQueue};
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_queue::QueueDepth;
use docmill_storage::ObjectEntry;

/// The stored count, for all workers.
const COUNTED: &str = "registry/depth.json";
/// A count is valid for as long as this many listing requests cost.
const GOOD_FOR: u32 = 4;
/// Objects read for one count of a bucket, at most.
const READ: usize = 200;
/// How often a worker checks whether another has finished counting, and for how long each time.
const MAX_HEADS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(100);

/// A count, and the right to make the next one: the worker that replaces it counts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct SharedDepth {
    nonce: String,
    depth: Option<QueueDepth>,
}

impl LockRecord for SharedDepth {
    fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    Ready,
    InFlight,
    Delayed,
}

/// Counts messages for one process.
pub(super) struct DepthCounter {
    queue: Arc<MarkerQueue>,
    availability: Arc<AvailabilityCache>,
    each_list: Duration,
    newest: Mutex<Option<(Instant, QueueDepth)>>,
}

impl DepthCounter {
    pub(super) fn new(queue: Arc<MarkerQueue>, availability: Arc<AvailabilityCache>) -> Self {
        Self { queue, availability, each_list: Duration::ZERO, newest: Mutex::default() }
    }

    /// A count is kept for a while that grows with this, the time a listing request is to cost.
    pub(super) fn set_pace(&mut self, each_list: Duration) {
        self.each_list = each_list;
    }

    /// How much waits. Asked for by every scrape of the metrics; where requests are paid, an older
    /// answer has to do.
    pub(super) async fn read_depth(&self) -> Result<QueueDepth> {
        let mut newest = self.newest.lock().await;
        if let Some((at, depth)) = *newest
            && at.elapsed() < self.each_list
        {
            return Ok(depth);
        }
        let paid = !self.each_list.is_zero();
        let depth = if paid { self.count_for_all().await? } else { self.count_all().await? };
        *newest = Some((Instant::now(), depth));
        Ok(depth)
    }

    fn engine(&self) -> &RecordStore {
        self.queue.engine()
    }

    /// Counts every message, with no sampling.
    async fn count_all(&self) -> Result<QueueDepth> {
        let mut tally = self.begin_tally(usize::MAX).await?;
        let markers = self.queue.list_markers().await?;
        let listed = markers.len();
        let all = MarkerPage { markers, listed, last_key: None };
        self.add_page(&all, count_of(listed), &mut tally).await?;
        tally.depth.dead = Some(self.queue.count_dead().await?);
        Ok(tally.depth)
    }

    /// The stored count; one worker renews it when it is old.
    async fn count_for_all(&self) -> Result<QueueDepth> {
        let good_for = self.each_list.saturating_mul(GOOD_FOR).as_millis();
        for _ in 0..MAX_HEADS {
            let nonce = uuid::Uuid::new_v4().simple().to_string();
            let found = self.engine().read_lock::<SharedDepth>(COUNTED).await?;
            let ours = match &found {
                None => {
                    self.engine().acquire_lock(COUNTED, SharedDepth { nonce, depth: None }).await?
                }
                Some(last) => {
                    let age = self.engine().now().await?.saturating_sub(to_millis(last.modified));
                    if u128::from(age) < good_for {
                        None
                    } else {
                        let depth = last.lease.depth;
                        let next = SharedDepth { nonce, depth };
                        self.engine().take_over_lock(COUNTED, &last.etag, next).await?
                    }
                }
            };
            if let Some(mut ours) = ours {
                let depth = self.estimate_depth().await?;
                // A concurrent count wins.
                self.engine().renew_lock(&mut ours, |counted| counted.depth = Some(depth)).await?;
                return Ok(depth);
            }
            if let Some(depth) = found.and_then(|last| last.lease.depth) {
                return Ok(depth);
            }
            tokio::time::sleep(BETWEEN).await;
        }
        // The counting worker died.
        self.estimate_depth().await
    }

    /// One page per priority, and what lies beyond it by how far it reaches.
    async fn estimate_depth(&self) -> Result<QueueDepth> {
        let mut tally = self.begin_tally(READ).await?;
        let page = self.queue.list_first().await?;
        if page.is_full() {
            for tier in Priority::ALL {
                let page = self.queue.list_tier(tier, None).await?;
                let last = page.markers.last().and_then(|entry| marker_in(&entry.key));
                let whole = estimate_total(page.listed, last.map(|(_, name)| name));
                self.add_page(&page, whole, &mut tally).await?;
            }
        } else {
            self.add_page(&page, count_of(page.listed), &mut tally).await?;
        }
        let dead = self.engine().store().list(DEAD, None, PAGE).await?;
        let last = dead.last().and_then(|entry| hash_in(&entry.key, DEAD));
        let all = estimate_total(dead.len(), last);
        tally.depth.dead = Some(if dead.len() < PAGE { count_dead(&dead) } else { all });
        Ok(tally.depth)
    }

    async fn begin_tally(&self, reads: usize) -> Result<DepthTally> {
        let (now, locks) = (self.engine().now().await?, self.queue.list_locks().await?);
        let (depth, streak) = (QueueDepth::default(), UnreadableStreak::default());
        Ok(DepthTally { depth, reads, now, locks, streak })
    }

    /// Adds the counts of one page as a sample of `whole` messages.
    async fn add_page(&self, page: &MarkerPage, whole: u64, tally: &mut DepthTally) -> Result<()> {
        let (mut ready, mut in_flight, mut delayed) = (0, 0, 0);
        for entry in &page.markers {
            let Some((_, name)) = marker_in(&entry.key) else { continue };
            let state = match self.message_state(entry, name, tally).await {
                Err(error) if tally.streak.passes_over(&error) => {
                    self.availability.set_aside(entry, &error, tally.now);
                    MessageState::Delayed
                }
                count => count?,
            };
            match state {
                MessageState::Ready => ready += 1,
                MessageState::InFlight => in_flight += 1,
                MessageState::Delayed => delayed += 1,
            }
        }
        let seen = count_of(page.listed).max(1);
        tally.depth.ready += scale(whole, seen, ready);
        tally.depth.in_flight += scale(whole, seen, in_flight);
        tally.depth.delayed += scale(whole, seen, delayed);
        Ok(())
    }

    async fn message_state(
        &self,
        entry: &ObjectEntry,
        name: &str,
        tally: &mut DepthTally,
    ) -> Result<MessageState> {
        let DepthTally { locks, reads, now, .. } = tally;
        if let Some(lock) = locks.get(name)
            && (!self.may_ask(lock, reads)
                || self.availability.is_locked(name, Some(lock), *now).await?)
        {
            return Ok(MessageState::InFlight);
        }
        if !self.may_ask(entry, reads) || self.availability.is_due(entry, *now).await? == Some(true)
        {
            return Ok(MessageState::Ready);
        }
        Ok(MessageState::Delayed)
    }

    /// Whether an answer about the object costs nothing, or may still be paid for.
    fn may_ask(&self, entry: &ObjectEntry, reads: &mut usize) -> bool {
        if self.availability.is_known(entry) {
            return true;
        }
        let may = *reads > 0;
        *reads = reads.saturating_sub(1);
        may
    }
}

/// Extrapolates a sample's part.
fn scale(whole: u64, seen: u64, part: u64) -> u64 {
    part.saturating_mul(whole) / seen
}

/// A count that is being made.
struct DepthTally {
    depth: QueueDepth,
    /// Objects that may still be read.
    reads: usize,
    /// The time by the store's clock, in milliseconds since 1970.
    now: u64,
    /// Every lock, by name.
    locks: BTreeMap<String, ObjectEntry>,
    /// Messages in a row that could not be read.
    streak: UnreadableStreak,
}

fn count_dead(entries: &[ObjectEntry]) -> u64 {
    count_of(entries.iter().filter(|entry| hash_in(&entry.key, DEAD).is_some()).count())
}

fn count_of(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The total number of names, if the first `seen` of them end with `last`: all of them if the page
/// was not full, otherwise extrapolated from the share of the name space up to `last`.
fn estimate_total(seen: usize, last: Option<&str>) -> u64 {
    let counted = count_of(seen);
    let digits = last.and_then(|name| name.get(..8));
    let share = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match share {
        Some(share) if seen >= PAGE => {
            let share = u64::from(share) + 1;
            ((counted << 32) + share / 2) / share
        }
        _ => counted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_full_page_gives_the_total() {
        let name = |digits: &str| format!("{digits}{}", "0".repeat(56));
        for (seen, last, expected) in [
            (0, None, 0),
            (7, Some(name("0fffffff")), 7),
            (PAGE, Some(name("ffffffff")), 1_000),
            (PAGE, Some(name("7fffffff")), 2_000),
            (PAGE, Some(name("051eb851")), 50_000),
            (PAGE, None, 1_000),
        ] {
            assert_eq!(estimate_total(seen, last.as_deref()), expected, "{seen} {last:?}");
        }
    }
}
