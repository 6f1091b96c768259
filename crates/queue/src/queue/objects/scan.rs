//! What a look into the store found, kept for a while: listings of a bucket are slow and paid.
//!
//! One listing over all priorities tells most of the time all there is. Only a priority that does
//! not fit into it is entered by itself, from a random shard on, so that workers do not meet at
//! its first entries.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::blobforge::{LOCKS, Priority, TODO, hash_in, marker_in, shard, tier_prefix};
use super::engine::{Engine, PAGE, time_of};
use crate::fault::Result;
use crate::store::Entry;

/// The longest that a listing is kept, however many requests it took.
const LONGEST: Duration = Duration::from_secs(60);

/// No more than these are kept beside what a listing showed.
const MOST: usize = 2 * PAGE;

/// Messages that may be free, and the locks there were.
#[derive(Default)]
pub(super) struct Scan {
    /// Most urgent first, within a priority in no order.
    pub(super) found: Vec<Entry>,
    /// By name.
    pub(super) locks: BTreeMap<String, Entry>,
    /// What did not fit.
    rest: Option<Rest>,
    next: Option<Instant>,
}

/// Where to go on in a priority that is gone through once around.
struct Rest {
    tier: Priority,
    after: Option<String>,
    /// Where it began; set once the end was passed.
    until: Option<String>,
    start: String,
}

impl Scan {
    /// Whether it is time to look again.
    pub(super) fn is_old(&self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }

    /// The next look comes at once: what was found may be wrong.
    pub(super) fn forget(&mut self) {
        self.next = None;
    }

    /// Takes note of what this process itself put (back) into the store by the store's clock, so
    /// that it need not list to see it.
    pub(super) fn returns(&mut self, key: &str, now: u64) {
        let Some((_, name)) = marker_in(key) else { return };
        self.locks.remove(name);
        let modified = time_of(now);
        if let Some(entry) = self.found.iter_mut().find(|entry| entry.key == key) {
            entry.modified = modified;
        } else if self.found.len() < MOST {
            self.found.push(Entry { key: key.to_owned(), size: 0, modified });
        }
    }

    /// Looks again, and keeps that for `each` listing request it took.
    pub(super) async fn refresh(&mut self, engine: &Engine, each: Duration) -> Result<()> {
        let locks = engine.list_all(LOCKS).await?;
        let mut requests = 2 + locks.len() / PAGE;
        let named = locks
            .into_iter()
            .filter_map(|entry| Some((hash_in(&entry.key, LOCKS)?.to_owned(), entry)));
        self.locks = named.collect();
        let page = engine.store().list(TODO, None, PAGE).await?;
        let full = page.len() == PAGE;
        let cut = if full { page.last().and_then(|entry| marker_in(&entry.key)) } else { None };
        let cut = cut.map(|(tier, _)| tier);
        self.found = in_order(page);
        self.rest = cut.map(Rest::new);
        if let Some(cut) = cut {
            // Of what is cut off, the beginning is what everybody sees.
            self.found.retain(|entry| marker_in(&entry.key).is_some_and(|(tier, _)| tier < cut));
            // Paid for twice over: while so much waits, an older look does as well.
            requests += 2;
            self.more(engine).await?;
        }
        let keep = each.saturating_mul(u32::try_from(requests).unwrap_or(u32::MAX)).min(LONGEST);
        self.next = Some(Instant::now() + keep);
        Ok(())
    }

    /// The next page of what did not fit; `false` once all was seen.
    pub(super) async fn more(&mut self, engine: &Engine) -> Result<bool> {
        let Some(rest) = &mut self.rest else { return Ok(false) };
        let prefix = tier_prefix(rest.tier);
        let mut page = engine.store().list(&prefix, rest.after.as_deref(), PAGE).await?;
        let ended = page.len() < PAGE;
        rest.after = page.last().map(|entry| entry.key.clone());
        if let Some(until) = &rest.until {
            let before = page.len();
            page.retain(|entry| entry.key <= *until);
            if ended || page.len() < before {
                self.rest = next_tier(rest.tier);
            }
        } else if ended {
            (rest.after, rest.until) = (None, Some(rest.start.clone()));
        }
        self.found.extend(in_order(page));
        Ok(true)
    }
}

impl Rest {
    fn new(tier: Priority) -> Self {
        let start = shard(tier, fastrand::u8(..));
        Self { tier, after: Some(start.clone()), until: None, start }
    }
}

fn next_tier(tier: Priority) -> Option<Rest> {
    Priority::ALL.into_iter().find(|other| *other > tier).map(Rest::new)
}

/// Markers only, shuffled within their priority.
fn in_order(page: Vec<Entry>) -> Vec<Entry> {
    let mut found: Vec<(Priority, Entry)> =
        page.into_iter().filter_map(|entry| Some((marker_in(&entry.key)?.0, entry))).collect();
    fastrand::shuffle(&mut found);
    found.sort_by_key(|(tier, _)| *tier);
    found.into_iter().map(|(_, entry)| entry).collect()
}
