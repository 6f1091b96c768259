//! What need not be read again: objects that cannot become due before a known time unless they
//! are rewritten. Saves reading every hidden message and every live lock at every listing.
//! Only a saving: forgetting all of it is always right.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::store::Entry;

/// More than this is forgotten at once.
const MOST: usize = 20_000;
/// Stores keep times to the second: an object written within the last two may be rewritten
/// without its time changing.
const SETTLED: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Seen(Mutex<HashMap<String, (SystemTime, u64)>>);

impl Seen {
    /// Until when the object, unless rewritten, is known to be of no interest.
    pub(super) fn until(&self, entry: &Entry) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&entry.key).filter(|(at, _)| *at == entry.modified).map(|(_, until)| *until)
    }

    pub(super) fn note(&self, entry: &Entry, until: u64) {
        if entry.modified.elapsed().is_ok_and(|age| age >= SETTLED) {
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
    use super::*;

    #[test]
    fn a_rewritten_object_is_looked_at_again() {
        let seen = Seen::default();
        let past = SystemTime::now() - Duration::from_secs(10);
        let entry = Entry { key: "k".to_owned(), size: 1, modified: past };
        seen.note(&entry, 7);
        assert_eq!(seen.until(&entry), Some(7));
        let rewritten = Entry { modified: past + Duration::from_secs(1), ..entry.clone() };
        assert_eq!(seen.until(&rewritten), None);
        let fresh = Entry { key: "fresh".to_owned(), modified: SystemTime::now(), ..entry };
        seen.note(&fresh, 7);
        assert_eq!(seen.until(&fresh), None, "its time may not tell a rewrite");
    }
}
