//! Whether a message is available, by its lock and its marker, with few reads.
//!
//! Results are cached: an object that cannot become due before a known time is not read again until
//! then, unless it is rewritten. This saves reading every hidden message and every live lock at
//! every listing. Dropping the cache is always correct.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::add_duration;
use super::engine::to_millis;
use super::marker_queue::MarkerQueue;
use super::message::{QueuedMessage, end_of};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_storage::ObjectEntry;
use parking_lot::Mutex;

/// A cache larger than this is cleared.
const MAX_KNOWN_MESSAGES: usize = 20_000;
/// Stores keep times to the second: an object written within the last two may be rewritten
/// without its time changing. Milliseconds.
const MIN_RECORD_AGE_MS: u64 = 2_000;
/// How long a message that cannot be read is passed over.
const SET_ASIDE: Duration = Duration::from_secs(300);
/// The same after a possibly transient fault of the store.
const SET_ASIDE_BRIEFLY: Duration = Duration::from_secs(15);

/// Answers about messages of listings.
pub(super) struct AvailabilityCache {
    queue: Arc<MarkerQueue>,
    known: UnavailableUntil,
}

impl AvailabilityCache {
    pub(super) fn new(queue: Arc<MarkerQueue>) -> Self {
        Self { queue, known: UnavailableUntil::default() }
    }

    /// Whether an answer about the object costs no request.
    pub(super) fn is_known(&self, entry: &ObjectEntry) -> bool {
        self.known.known_until(entry).is_some()
    }

    /// Whether the message is known to be hidden or was set aside, without a request.
    pub(super) fn is_hidden(&self, entry: &ObjectEntry, now: u64) -> bool {
        self.known.known_until(entry).is_some_and(|until| until > now)
    }

    /// Skips an unreadable message for a while or until it is rewritten, so that it does not delay
    /// others.
    pub(super) fn set_aside(&self, entry: &ObjectEntry, error: &Error, now: u64) {
        if self.is_hidden(entry, now) {
            return;
        }
        let key = &entry.key;
        tracing::warn!(key, error = %error, "skipping a message for a while: {error}");
        metrics::count_delivery("unreadable");
        let time = match error.fault {
            Fault::Transient => SET_ASIDE_BRIEFLY,
            _ => SET_ASIDE,
        };
        self.known.insert(entry, add_duration(now, time));
    }

    /// Whether a live lock on the message exists.
    pub(super) async fn is_locked(
        &self,
        name: &str,
        lock: Option<&ObjectEntry>,
        now: u64,
    ) -> Result<bool> {
        let Some(entry) = lock else { return Ok(false) };
        if self.known.known_until(entry).is_some_and(|until| until > now) {
            return Ok(true);
        }
        let Some(lock) = self.queue.read_lock(name).await? else { return Ok(false) };
        let end = end_of(&lock.lease, to_millis(lock.modified));
        self.known.note_until(entry, end, now);
        Ok(end > now)
    }

    /// Whether the message is visible by its marker; `None` if it is gone.
    pub(super) async fn is_due(&self, entry: &ObjectEntry, now: u64) -> Result<Option<bool>> {
        if let Some(until) = self.known.known_until(entry) {
            return Ok(Some(until <= now));
        }
        let Some(seen) = self.queue.engine().read::<QueuedMessage>(&entry.key).await? else {
            return Ok(None);
        };
        self.known.note_until(entry, seen.value.not_before, now);
        Ok(Some(seen.value.not_before <= now))
    }
}

/// By key: the version's time, and until when it is of no interest.
#[derive(Default)]
struct UnavailableUntil(Mutex<HashMap<String, (SystemTime, u64)>>);

impl UnavailableUntil {
    /// Until when the object, unless rewritten, is known to be of no interest.
    fn known_until(&self, entry: &ObjectEntry) -> Option<u64> {
        let known = self.0.lock();
        known.get(&entry.key).filter(|(at, _)| *at == entry.modified).map(|(_, until)| *until)
    }

    /// Notes that; `now` is the store's, as the entry's time is.
    fn note_until(&self, entry: &ObjectEntry, until: u64, now: u64) {
        if to_millis(entry.modified).saturating_add(MIN_RECORD_AGE_MS) <= now {
            self.insert(entry, until);
        }
    }

    /// The same whenever it was written.
    fn insert(&self, entry: &ObjectEntry, until: u64) {
        let mut known = self.0.lock();
        if known.len() >= MAX_KNOWN_MESSAGES {
            known.clear();
        }
        known.insert(entry.key.clone(), (entry.modified, until));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rewritten_object_is_looked_at_again() {
        let known = UnavailableUntil::default();
        let present = SystemTime::now();
        let (now, past) = (to_millis(present), present - Duration::from_secs(10));
        let entry = ObjectEntry { key: "k".to_owned(), size: 1, modified: past };
        known.note_until(&entry, 7, now);
        assert_eq!(known.known_until(&entry), Some(7));
        let rewritten = ObjectEntry { modified: past + Duration::from_secs(1), ..entry.clone() };
        assert_eq!(known.known_until(&rewritten), None);
        let fresh = ObjectEntry { key: "fresh".to_owned(), modified: present, ..entry };
        known.note_until(&fresh, 7, now);
        assert_eq!(known.known_until(&fresh), None, "its time may not tell a rewrite");
    }
}
