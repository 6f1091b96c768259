//! Documents that this worker skips for a while: a dependency refuses them, or is down.
//!
//! A marker put back is visible to all workers at once, and BlobForge's records have no "later". So
//! each worker remembers its own deferrals, in memory; the others try once as well.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// The maximum deferral of a document that is put back repeatedly.
const MAX_DEFERRAL: Duration = Duration::from_secs(15 * 60);
/// Maximum remembered deferrals; other documents return with the next listing.
const MAX_DEFERRED_DOCUMENTS: usize = 100_000;

/// The deferred documents, by hash.
#[derive(Debug, Default)]
pub(super) struct DeferredDocuments {
    by_hash: HashMap<String, Deferral>,
}

#[derive(Debug, Clone, Copy)]
struct Deferral {
    until: Instant,
    /// The last delay, doubled by the next deferral.
    wait: Duration,
}

impl DeferredDocuments {
    /// Passes a document over for `wait`, or for twice as long as the last time, up to a quarter of
    /// an hour, whichever is more.
    pub(super) fn defer(&mut self, hash: &str, wait: Duration) {
        let now = Instant::now();
        let again = self.by_hash.get(hash).map(|term| (term.wait * 2).min(MAX_DEFERRAL));
        let wait = again.unwrap_or_default().max(wait);
        if self.by_hash.len() >= MAX_DEFERRED_DOCUMENTS {
            self.by_hash.retain(|_, term| term.until > now);
        }
        if self.by_hash.len() < MAX_DEFERRED_DOCUMENTS {
            self.by_hash.insert(hash.to_owned(), Deferral { until: now + wait, wait });
        }
    }

    /// A document that has ended, one way or the other.
    pub(super) fn forget(&mut self, hash: &str) {
        self.by_hash.remove(hash);
    }

    /// Whether any document is deferred now.
    pub(super) fn has_deferred(&self) -> bool {
        let now = Instant::now();
        self.by_hash.values().any(|term| term.until > now)
    }

    /// Whether a document is deferred now.
    pub(super) fn is_deferred(&self, hash: &str) -> bool {
        self.by_hash.get(hash).is_some_and(|term| term.until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[tokio::test(start_paused = true)]
    async fn repeated_deferrals_double_up_to_a_limit() {
        let mut documents = DeferredDocuments::default();
        for expected in [60, 120, 240, 480, 900, 900] {
            documents.defer("a", S(60));
            tokio::time::sleep(S(expected - 1)).await;
            assert!(documents.is_deferred("a") && !documents.is_deferred("b"));
            tokio::time::sleep(S(1)).await;
            assert!(!documents.is_deferred("a"), "{expected}");
        }
        documents.defer("a", S(40_000));
        tokio::time::sleep(S(39_999)).await;
        assert!(documents.is_deferred("a"), "the given time, however long");
        documents.forget("a");
        assert!(!documents.is_deferred("a"));
    }
}
