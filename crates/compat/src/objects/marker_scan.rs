//! A cached scan of the store: listings of a bucket are slow and paid.
//!
//! One listing over all priorities usually shows everything. Only a priority that exceeds it is
//! listed by itself, from a random shard on, so that workers rarely collide at its first entries.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::blobforge::{marker_in, shard_prefix};
use super::engine::{PAGE, time_of};
use super::marker_queue::MarkerQueue;
use super::writer::ReturnedMessage;
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_storage::ObjectEntry;

/// The longest that a listing is kept, however many requests it took.
const MAX_SCAN_AGE: Duration = Duration::from_secs(60);

/// Maximum markers cached beside the listing.
const MAX_FOUND_MARKERS: usize = 2 * PAGE;

/// Messages that may be free, and the locks there were.
#[derive(Default)]
pub(super) struct MarkerScan {
    /// Most urgent first, within a priority in no order.
    pub(super) found: Vec<ObjectEntry>,
    /// The locks by the name of their message.
    pub(super) locks: BTreeMap<String, ObjectEntry>,
    /// Markers that did not fit, to continue with later.
    rest: Option<TierWalk>,
    next: Option<Instant>,
}

/// Where to continue in a priority that is scanned round robin.
struct TierWalk {
    tier: Priority,
    after: Option<String>,
    /// Where it began; set once the end was passed.
    until: Option<String>,
    start: String,
}

impl MarkerScan {
    /// Whether it is time for the next scan.
    pub(super) fn is_old(&self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }

    /// The next scan is due at once: what was found may be wrong.
    pub(super) fn mark_old(&mut self) {
        self.next = None;
    }

    /// Takes note of what this process itself put (back) into the store, so that it need not list
    /// to see it.
    pub(super) fn note_returned(&mut self, returned: ReturnedMessage) {
        let ReturnedMessage { key, at } = returned;
        let Some((_, name)) = marker_in(&key) else { return };
        self.locks.remove(name);
        let modified = time_of(at);
        if let Some(entry) = self.found.iter_mut().find(|entry| entry.key == key) {
            entry.modified = modified;
        } else if self.found.len() < MAX_FOUND_MARKERS {
            self.found.push(ObjectEntry { key, size: 0, modified });
        }
    }

    /// Scans again, and keeps the result for `each` listing request it took.
    pub(super) async fn refresh(&mut self, queue: &MarkerQueue, each: Duration) -> Result<()> {
        self.locks = queue.list_locks().await?;
        let mut requests = 2 + self.locks.len() / PAGE;
        let page = queue.list_first().await?;
        let cut = if page.is_full() { page.last_priority() } else { None };
        self.found = page.into_shuffled();
        self.rest = cut.map(TierWalk::new);
        if let Some(cut) = cut {
            // The beginning of a truncated listing is the same for all workers.
            self.found.retain(|entry| marker_in(&entry.key).is_some_and(|(tier, _)| tier < cut));
            // Counted twice: with so many waiting, an older scan is good enough.
            requests += 2;
            self.load_next_page(queue).await?;
        }
        let keep =
            each.saturating_mul(u32::try_from(requests).unwrap_or(u32::MAX)).min(MAX_SCAN_AGE);
        self.next = Some(Instant::now() + keep);
        Ok(())
    }

    /// Loads the next page of the rest; `false` at its end.
    pub(super) async fn load_next_page(&mut self, queue: &MarkerQueue) -> Result<bool> {
        let Some(rest) = &mut self.rest else { return Ok(false) };
        let mut page = queue.list_tier(rest.tier, rest.after.as_deref()).await?;
        let ended = !page.is_full();
        rest.after.clone_from(&page.last_key);
        if let Some(until) = &rest.until {
            page.markers.retain(|entry| entry.key <= *until);
            if ended || page.last_key.as_ref().is_some_and(|last| last > until) {
                self.rest = next_tier(rest.tier);
            }
        } else if ended {
            (rest.after, rest.until) = (None, Some(rest.start.clone()));
        }
        self.found.extend(page.into_shuffled());
        Ok(true)
    }
}

impl TierWalk {
    fn new(tier: Priority) -> Self {
        let start = shard_prefix(tier, fastrand::u8(..));
        Self { tier, after: Some(start.clone()), until: None, start }
    }
}

fn next_tier(tier: Priority) -> Option<TierWalk> {
    Priority::ALL.into_iter().find(|other| *other > tier).map(TierWalk::new)
}
