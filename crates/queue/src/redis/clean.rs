//! Putting back what no worker has leased: items whose worker died, also workers of other clients,
//! and items that a crash left in no list at all.
//!
//! Other clients lease and add in two steps. An item seen between them is restored only after the
//! [`GRACE`], so that a cleaner does not duplicate an item that is being leased.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::calls::RedisCalls;
use super::keys::RedisKeys;
use super::message::ceil_millis;
use super::scripts::{AT_A_TIME, CLEAN};
use docmill_core::fault::Result;

/// Two steps of another client are this close together, or it is dead.
const GRACE: Duration = Duration::from_secs(2);
/// Entries read of a list, or asked for in one step of a scan.
const PAGE: isize = 1000;
/// Of so many runs of the maintenance the first cleans deeply.
const DEEP_EVERY: u32 = 16;

/// How thoroughly a tier is cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleaningDepth {
    /// Only what is being processed: one list is read.
    Light,
    /// Every item: also those that are in no list.
    Deep,
}

/// Returns lost items of every tier to their queue.
pub(super) struct RedisCleaner {
    calls: Arc<RedisCalls>,
    /// Runs of the maintenance so far.
    passes: AtomicU32,
}

impl RedisCleaner {
    pub(super) fn new(calls: Arc<RedisCalls>) -> Self {
        Self { calls, passes: AtomicU32::new(0) }
    }

    /// Puts back what no worker has leased, in every tier; returns how many items.
    ///
    /// # Errors
    /// No answer; what was put back until then is.
    pub(super) async fn clean(&self, depth: CleaningDepth) -> Result<u64> {
        let mut cleaned = 0;
        for (_, keys) in self.calls.tiers() {
            cleaned += self.clean_light(keys).await?;
            if depth == CleaningDepth::Deep {
                cleaned += self.clean_deep(keys).await?;
            }
        }
        Ok(cleaned)
    }

    /// One run of the maintenance: mostly a light one.
    ///
    /// # Errors
    /// As [`RedisCleaner::clean`].
    pub(super) async fn run_maintenance(&self) -> Result<u64> {
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        let depth = if pass.is_multiple_of(DEEP_EVERY) {
            CleaningDepth::Deep
        } else {
            CleaningDepth::Light
        };
        self.clean(depth).await
    }

    async fn clean_light(&self, keys: &RedisKeys) -> Result<u64> {
        let ids = self.read_list(&keys.processing_key()).await?;
        self.clean_ids(keys, "light", &ids).await
    }

    /// Every item outside the queue, as seen from here: the script checks again.
    async fn clean_deep(&self, keys: &RedisKeys) -> Result<u64> {
        let items = self.scan_items(keys).await?;
        let queued: HashSet<Vec<u8>> =
            self.read_list(&keys.queue_key()).await?.into_iter().collect();
        let suspects: Vec<Vec<u8>> = items.into_iter().filter(|id| !queued.contains(id)).collect();
        self.clean_ids(keys, "deep", &suspects).await
    }

    async fn clean_ids(&self, keys: &RedisKeys, how: &str, ids: &[Vec<u8>]) -> Result<u64> {
        let mut cleaned = 0;
        for part in ids.chunks(AT_A_TIME) {
            let mut call = CLEAN.key(&keys.prefix);
            call.arg(ceil_millis(GRACE)).arg(how);
            for id in part {
                call.arg(id);
            }
            cleaned += self.calls.run_script_retried::<u64>("cleaning", &call).await?;
        }
        Ok(cleaned)
    }

    /// A list, page by page: it changes meanwhile, so an entry may be missing or there twice.
    async fn read_list(&self, key: &str) -> Result<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        let mut from: isize = 0;
        loop {
            let mut asked = ::redis::cmd("LRANGE");
            asked.arg(key).arg(from).arg(from + PAGE - 1);
            let page: Vec<Vec<u8>> = self.calls.run_command("reading a list", &asked).await?;
            let is_last = page.len() < PAGE.unsigned_abs();
            all.extend(page);
            from += PAGE;
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The ids of all items, by SCAN: `KEYS` would stop the server meanwhile.
    async fn scan_items(&self, keys: &RedisKeys) -> Result<Vec<Vec<u8>>> {
        let (pattern, start) = (keys.item_pattern(), keys.item_prefix().into_bytes());
        let mut found = HashSet::new();
        let mut cursor = 0_u64;
        loop {
            let mut asked = ::redis::cmd("SCAN");
            asked.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) =
                self.calls.run_command("looking through all items", &asked).await?;
            found
                .extend(page.iter().filter_map(|key| Some(key.strip_prefix(&start[..])?.to_vec())));
            cursor = next;
            if cursor == 0 {
                return Ok(found.into_iter().collect());
            }
        }
    }
}
