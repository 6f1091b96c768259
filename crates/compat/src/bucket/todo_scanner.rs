//! Finds waiting documents, with few listing requests.
//!
//! One listing over all priorities shows either everything or the most urgent. If all entries have
//! one priority, a second listing begins at a random one of its 256 shards, so that workers rarely
//! collide. Candidates are drawn from the result until it is used up or old. Each request delays
//! the next scan.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::BlobForgeBucket;
use super::claim::MarkerCandidate;
use crate::objects::blobforge::{marker_in, shard_prefix};
use docmill_core::fault::Result;
use docmill_storage::ObjectEntry;

/// Documents that were found waiting, and when to scan again.
#[derive(Debug)]
pub struct TodoScanner {
    found: VecDeque<MarkerCandidate>,
    each: Duration,
    longest: Duration,
    next: Instant,
    /// Scans in a row that found nothing.
    empty: u32,
    whole: bool,
    /// Whether something that the newest scan found could be claimed.
    fruitful: bool,
    /// Requests whose delay is still to be waited out.
    owed: u32,
}

impl TodoScanner {
    /// Each request delays the next scan by `each`; after scans that find nothing the delay doubles
    /// each time, up to `longest`. The first scan also waits for the listing that a worker makes at
    /// its start.
    pub fn new(each: Duration, longest: Duration) -> Self {
        let (found, next) = (VecDeque::new(), Instant::now());
        Self { found, each, longest, next, empty: 0, whole: false, fruitful: true, owed: 1 }
    }

    /// When it is time to scan again.
    pub(crate) fn next_scan(&self) -> Instant {
        self.next
    }

    /// Whether the newest scan showed everything and nothing of it could be claimed.
    pub fn is_over(&self) -> bool {
        self.whole && self.found.is_empty() && !self.fruitful
    }

    /// Notes that something that was found could be claimed: another scan is worth it.
    pub(crate) fn mark_productive(&mut self) {
        self.fruitful = true;
    }

    /// The next candidate; `None` until it is time to scan again.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn next_candidate(
        &mut self,
        bucket: &BlobForgeBucket,
    ) -> Result<Option<MarkerCandidate>> {
        if Instant::now() >= self.next {
            self.scan_bucket(bucket).await?;
        }
        Ok(self.found.pop_front())
    }

    async fn scan_bucket(&mut self, bucket: &BlobForgeBucket) -> Result<()> {
        let mut requests = 1 + std::mem::take(&mut self.owed);
        // Should the store fail, the next scan comes no sooner.
        self.next = Instant::now() + self.each;
        let mut page = bucket.queue.list_first().await?;
        let full = page.is_full();
        if full
            && let Some(only) = page.first_priority()
            && page.last_priority() == Some(only)
        {
            requests += 1;
            let start = shard_prefix(only, fastrand::u8(..));
            let elsewhere = bucket.queue.list_tier(only, Some(&start)).await?;
            // Near the end of the priority there may be nothing more: then the head has to do.
            if !elsewhere.markers.is_empty() {
                page = elsewhere;
            }
        }
        self.whole = !full;
        self.fruitful = false;
        self.found = page.into_shuffled().iter().filter_map(parse_candidate).collect();
        self.empty = if self.found.is_empty() { self.empty.saturating_add(1) } else { 0 };
        self.next = Instant::now() + self.scan_pause(requests);
        Ok(())
    }

    /// The delay by the cost of the requests, longer while nothing is found, with up to a quarter
    /// of jitter, so that workers started together do not scan together.
    fn scan_pause(&self, requests: u32) -> Duration {
        let idle = self.each.saturating_mul(1 << self.empty.saturating_sub(1).min(16));
        let idle = if self.empty > 1 { idle.min(self.longest) } else { Duration::ZERO };
        let base = self.each.saturating_mul(requests).max(idle);
        base.mul_f64(1.0 + fastrand::f64() / 4.0)
    }
}

fn parse_candidate(entry: &ObjectEntry) -> Option<MarkerCandidate> {
    let (priority, hash) = marker_in(&entry.key)?;
    Some(MarkerCandidate { priority, hash: hash.to_owned() })
}
