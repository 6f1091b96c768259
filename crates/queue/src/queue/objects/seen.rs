//! What need not be read again: objects that cannot become due before a known time unless they
//! are rewritten. Saves reading every hidden message and every live lock at every listing.
//! Only a saving: forgetting all of it is always right.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::engine::millis;
use crate::store::Entry;

/// More than this is forgotten at once.
const MOST: usize = 20_000;
/// Stores keep times to the second: an object written within the last two may be rewritten
/// without its time changing. Milliseconds.
const SETTLED: u64 = 2_000;

#[derive(Default)]
pub(super) struct Seen(Mutex<HashMap<String, (SystemTime, u64)>>);

impl Seen {
    /// Until when the object, unless rewritten, is known to be of no interest.
    pub(super) fn until(&self, entry: &Entry) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&entry.key).filter(|(at, _)| *at == entry.modified).map(|(_, until)| *until)
    }

    /// Notes that; `now` is the store's, as the entry's time is.
    pub(super) fn note(&self, entry: &Entry, until: u64, now: u64) {
        if millis(entry.modified).saturating_add(SETTLED) <= now {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(entry.key.clone(), (entry.modified, until));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rewritten_object_is_looked_at_again() {
        let seen = Seen::default();
        let present = SystemTime::now();
        let (now, past) = (millis(present), present - Duration::from_secs(10));
        let entry = Entry { key: "k".to_owned(), size: 1, modified: past };
        seen.note(&entry, 7, now);
        assert_eq!(seen.until(&entry), Some(7));
        let rewritten = Entry { modified: past + Duration::from_secs(1), ..entry.clone() };
        assert_eq!(seen.until(&rewritten), None);
        let fresh = Entry { key: "fresh".to_owned(), modified: present, ..entry };
        seen.note(&fresh, 7, now);
        assert_eq!(seen.until(&fresh), None, "its time may not tell a rewrite");
    }
}
