//! Documents that this worker passes over for a while: what they need is refused to them, or away.
//!
//! The bucket offers a marker that was put back to everybody at once, and no mark of BlobForge's
//! says "later". So each worker keeps in mind what it has put back itself, and for how long; the
//! others try once as well. Nothing of it outlives the worker.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// The longest that a document is passed over because it was put back again and again.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Documents that are kept in mind; what is more comes back as soon as it is listed again.
const MOST: usize = 100_000;

/// The documents that are passed over, by hash.
#[derive(Debug, Default)]
pub(super) struct PutOffDocuments {
    by_hash: HashMap<String, PutOffTerm>,
}

#[derive(Debug, Clone, Copy)]
struct PutOffTerm {
    until: Instant,
    /// The last wait, for a document that is put off once more.
    wait: Duration,
}

impl PutOffDocuments {
    /// Passes a document over for `wait`, or for twice as long as the last time, up to a quarter of
    /// an hour, whichever is more.
    pub(super) fn put_off(&mut self, hash: &str, wait: Duration) {
        let now = Instant::now();
        let again = self.by_hash.get(hash).map(|term| (term.wait * 2).min(LONGEST));
        let wait = again.unwrap_or_default().max(wait);
        if self.by_hash.len() >= MOST {
            self.by_hash.retain(|_, term| term.until > now);
        }
        if self.by_hash.len() < MOST {
            self.by_hash.insert(hash.to_owned(), PutOffTerm { until: now + wait, wait });
        }
    }

    /// A document that has ended, one way or the other.
    pub(super) fn forget(&mut self, hash: &str) {
        self.by_hash.remove(hash);
    }

    /// Whether a document is passed over now.
    pub(super) fn is_put_off(&self, hash: &str) -> bool {
        self.by_hash.get(hash).is_some_and(|term| term.until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[tokio::test(start_paused = true)]
    async fn what_is_put_off_again_and_again_stays_away_for_longer_up_to_a_limit() {
        let mut documents = PutOffDocuments::default();
        for expected in [60, 120, 240, 480, 900, 900] {
            documents.put_off("a", S(60));
            tokio::time::sleep(S(expected - 1)).await;
            assert!(documents.is_put_off("a") && !documents.is_put_off("b"));
            tokio::time::sleep(S(1)).await;
            assert!(!documents.is_put_off("a"), "{expected}");
        }
        documents.put_off("a", S(40_000));
        tokio::time::sleep(S(39_999)).await;
        assert!(documents.is_put_off("a"), "as it was told");
        documents.forget("a");
        assert!(!documents.is_put_off("a"));
    }
}
