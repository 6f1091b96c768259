//! Different documents that fail alike in a row: evidence against the surroundings they share.
//!
//! One document that fails may be at fault itself. Several different ones that fail alike, with no
//! success between, point at what they have in common: a missing right, a provider that refuses
//! the form of every call, a broken release. Their failures are not counted then.
//!
//! A success afterwards points back at the documents: the next streak needs twice as many, so that
//! a batch of bad documents does not stop the good ones between them for long.
//!
//! A streak of few documents that no further one joins is evidence for an hour only: bad documents that
//! are alone in the queue would otherwise be tried for ever, since none of them can pass.
//!
//! Not promised: that the first documents of a streak are not counted. They are fewer than an
//! ingestion has attempts, so none of them ends by that.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::IngestionId;
use crate::regression::{self, FixToggle};

/// Different documents that make the first streak evidence. One less are counted, once each.
pub const MIN_STREAK_DOCUMENTS: usize = 3;
/// No streak needs more documents, however often a success followed one.
const MAX_STREAK_DOCUMENTS: usize = 24;
/// How long a streak without further documents is evidence. At [`MAX_STREAK_DOCUMENTS`] it always
/// is.
const MAX_LONE_TIME: Duration = Duration::from_secs(3_600);
/// A streak without a further failure for this long is forgotten.
const STREAK_LIFETIME: Duration = Duration::from_secs(600);

/// The documents that failed alike since the last success.
#[derive(Debug)]
pub struct FailureStreak {
    documents: BTreeSet<IngestionId>,
    /// When the last one of them joined.
    joined: Option<Instant>,
    /// No document joined in that time: these documents are at fault themselves.
    is_lone: bool,
    /// How many different documents are evidence.
    needed: usize,
    /// When the last failure or success was noted.
    noted: Option<Instant>,
}

impl Default for FailureStreak {
    fn default() -> Self {
        Self {
            documents: BTreeSet::new(),
            joined: None,
            is_lone: false,
            needed: MIN_STREAK_DOCUMENTS,
            noted: None,
        }
    }
}

impl FailureStreak {
    /// Adds the failure of a document. Returns whether the streak is evidence now.
    pub fn add_failure(&mut self, document: IngestionId, now: Instant) -> bool {
        if self.is_forgotten(now) {
            *self = Self::default();
        }
        self.noted = Some(now);
        let is_full = self.documents.len() >= MAX_STREAK_DOCUMENTS;
        if !is_full && self.documents.insert(document) {
            self.joined = Some(now);
        }
        let alone_since = self.joined.filter(|_| !is_full);
        self.is_lone = alone_since.is_some_and(|since| now.duration_since(since) > MAX_LONE_TIME);
        self.is_evidence()
    }

    /// Ends the streak by a success. Returns whether it was evidence.
    pub fn end_by_success(&mut self, now: Instant) -> bool {
        let was_evidence = self.is_evidence();
        if was_evidence {
            self.needed = (self.needed * 2).min(MAX_STREAK_DOCUMENTS);
            self.noted = Some(now);
        }
        self.documents.clear();
        self.is_lone = false;
        was_evidence
    }

    /// Whether so many different documents failed in a row that the cause is what they share.
    pub fn is_evidence(&self) -> bool {
        self.documents.len() >= self.needed
            && !self.is_lone
            && !regression::is_off(FixToggle::SharedFailures)
    }

    /// Whether no document failed since the last success.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Whether nothing was noted for ten minutes.
    pub fn is_forgotten(&self, now: Instant) -> bool {
        self.noted.is_some_and(|noted| now.duration_since(noted) > STREAK_LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the failures of these documents; whether the last one made it evidence.
    fn fail(streak: &mut FailureStreak, documents: &[IngestionId], now: Instant) -> bool {
        documents.iter().fold(false, |_, document| streak.add_failure(*document, now))
    }

    fn documents(count: usize) -> Vec<IngestionId> {
        (0..count).map(|_| IngestionId::random()).collect()
    }

    #[test]
    fn three_different_documents_in_a_row_are_evidence_and_one_that_fails_thrice_is_not() {
        let (now, bad) = (Instant::now(), IngestionId::random());
        let mut streak = FailureStreak::default();
        assert!(!fail(&mut streak, &[bad; 20], now), "it may be the document");
        assert!(!fail(&mut streak, &documents(1), now));
        assert!(fail(&mut streak, &documents(1), now));
        assert!(fail(&mut streak, &[bad], now), "nor is the first one to blame any more");
    }

    #[test]
    fn a_success_between_begins_the_count_anew() {
        let now = Instant::now();
        let mut streak = FailureStreak::default();
        for _ in 0..10 {
            assert!(!fail(&mut streak, &documents(2), now));
            assert!(!streak.end_by_success(now));
        }
        assert!(fail(&mut streak, &documents(3), now), "no streak was evidence before");
    }

    #[test]
    fn each_success_after_evidence_asks_for_twice_as_many_until_ten_quiet_minutes() {
        let mut now = Instant::now();
        let mut streak = FailureStreak::default();
        for needed in [3, 6, 12, 24, 24] {
            assert!(!fail(&mut streak, &documents(needed - 1), now), "{needed}");
            assert!(fail(&mut streak, &documents(1), now), "{needed}");
            assert!(streak.end_by_success(now) && !streak.is_evidence());
        }
        now += STREAK_LIFETIME + Duration::from_secs(1);
        assert!(fail(&mut streak, &documents(3), now), "that was long ago");
    }

    #[test]
    fn few_documents_alone_are_at_fault_themselves_after_an_hour_and_not_once_others_join_or_are_many()
     {
        for (count, joins, is_evidence) in
            [(3, 0, false), (23, 0, false), (3, 1, true), (24, 0, true), (60, 0, true)]
        {
            let mut now = Instant::now();
            let mut streak = FailureStreak::default();
            let failing = documents(count);
            assert!(fail(&mut streak, &failing, now));
            for minute in 1..=61 {
                now += Duration::from_secs(60);
                if minute == 50 {
                    assert!(streak.is_evidence(), "{count}");
                    fail(&mut streak, &documents(joins), now);
                }
                fail(&mut streak, &failing, now);
            }
            assert_eq!(streak.is_evidence(), is_evidence, "{count} documents, {joins} join");
            streak.end_by_success(now);
            assert!(!streak.is_evidence());
        }
    }

    #[test]
    fn failures_that_lie_far_apart_are_no_streak() {
        let mut now = Instant::now();
        let mut streak = FailureStreak::default();
        for document in documents(9) {
            assert!(!streak.add_failure(document, now));
            now += STREAK_LIFETIME + Duration::from_secs(1);
        }
    }
}
