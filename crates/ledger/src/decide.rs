//! The decision about a claim, as a pure function, and the other rules that both ledgers share.
//!
//! [`crate::memory`] calls [`decide_claim`]; `db::claims` says the same in one SQL
//! statement, because the decision must be taken under the row's lock without a round trip in
//! between. The differential test of `tests/it/ledger_suite.rs` holds the two together.

use std::time::Duration;

use time::OffsetDateTime;

use crate::duplicate_key::DuplicateKeys;
use crate::{ClaimRelease, IngestionResult};
use docmill_core::fault::Fault;
use docmill_core::model::IngestionStatus;
use docmill_core::regression::{self, FixToggle};

/// A message that becomes due within this time is worked on at once: clocks of queue and ledger
/// differ, and hiding a message costs more than waiting.
pub const SOON: Duration = Duration::from_secs(2);

/// Attempts a fresh ingestion has; a reopening raises the limit by it.
pub const FRESH_ATTEMPTS: u32 = 8;

/// The columns that a claim depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimRowState {
    /// Current status of the ingestion.
    pub status: IngestionStatus,
    /// End of the current claim's lease; `None`: not claimed.
    pub lease_expires_at: Option<OffsetDateTime>,
    /// The earliest time of the next attempt; `None`: at once.
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Claims since the last reopening that ended without an outcome, as written so far.
    pub crashes: u32,
}

/// The outcome of a claim for the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimDecision {
    /// Take it; `after_crash`: an expired lease of an earlier claim is closed as `crashed`.
    Take {
        /// Whether an earlier claim just ended without an outcome.
        after_crash: bool,
    },
    /// Fail it as `crashed`; `after_crash` as above.
    GiveUp {
        /// Whether an earlier claim just ended without an outcome.
        after_crash: bool,
    },
    /// Another claim is live for this long.
    Busy(Duration),
    /// Due after this time.
    NotDue(Duration),
    /// Nothing to do any more.
    Terminal(IngestionStatus),
}

/// Decides a claim at `now`; `crash_limit` silent deaths are too many.
pub fn decide_claim(row: &ClaimRowState, now: OffsetDateTime, crash_limit: u32) -> ClaimDecision {
    if row.status.is_terminal() {
        return ClaimDecision::Terminal(row.status);
    }
    let live = row.lease_expires_at.map(|end| time_until(now, end));
    if let Some(left) = live
        && left > Duration::ZERO
    {
        return ClaimDecision::Busy(left);
    }
    let after_crash = live.is_some();
    if row.crashes + u32::from(after_crash) >= crash_limit {
        return ClaimDecision::GiveUp { after_crash };
    }
    match row.next_attempt_at.map(|due| time_until(now, due)) {
        Some(left) if left > SOON => ClaimDecision::NotDue(left),
        _ => ClaimDecision::Take { after_crash },
    }
}

/// Time from `now` to `then`; zero if that is past.
fn time_until(now: OffsetDateTime, then: OffsetDateTime) -> Duration {
    (then - now).try_into().unwrap_or(Duration::ZERO)
}

/// The effect of a release on the streak of deferrals of an ingestion, whose length is limited
/// (`retry.max_deferral`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferralStreak {
    /// It begins, or goes on: something that the attempt needed had no room or did not answer.
    Grows,
    /// It is as it was: the attempt was not let to its end.
    Stays,
    /// It ends. Waits for a person, for another day, or for a turn where others are served are no part
    /// of a streak, however long they take.
    Ends,
}

/// The effect of this release on the ingestion's streak of deferrals.
pub fn deferral_streak(how: &ClaimRelease) -> DeferralStreak {
    match how.fault {
        _ if how.counted => DeferralStreak::Ends,
        Fault::Throttled(_) | Fault::Unavailable => DeferralStreak::Grows,
        Fault::Denied | Fault::Misconfigured | Fault::Paused
            if regression::is_off(FixToggle::DenialStreak) =>
        {
            DeferralStreak::Grows
        }
        Fault::Interrupted => DeferralStreak::Stays,
        Fault::Transient
        | Fault::Denied
        | Fault::Misconfigured
        | Fault::Paused
        | Fault::OverBudget(_)
        | Fault::Batched(_)
        | Fault::InLine(_)
        | Fault::Missing
        | Fault::Rejected
        | Fault::ClaimLost
        | Fault::Internal => DeferralStreak::Ends,
    }
}

/// Attempts since the last reopening: what the limits of the failure table are compared with.
pub fn used_attempts(attempt_count: u32, attempt_limit: u32) -> u32 {
    attempt_count.saturating_sub(attempt_limit.saturating_sub(FRESH_ATTEMPTS))
}

/// The delay of a denial is at most this many times the first one's: of a minute about an hour.
pub const MAX_STRETCH: f64 = 60.0;

/// Whether a person has to mend what ended the attempt. Each such end in a row doubles the delay, so
/// that what waits for a person is tried ever more seldom.
pub fn is_denial(fault: Fault) -> bool {
    matches!(fault, Fault::Denied | Fault::Misconfigured)
}

/// The delay after a denial that followed so many others without anything else in between.
pub fn stretch_delay(after: Duration, denials: u32) -> Duration {
    after.mul_f64(2_f64.powi(denials.min(16).cast_signed()).min(MAX_STRETCH))
}

/// The keys of a recorded result: the duplicate rule considers completed documents only.
pub(crate) fn recorded_keys(end: &IngestionResult) -> Option<&DuplicateKeys> {
    end.duplicate_keys.as_ref().filter(|_| end.reason.is_none())
}

/// Digits of a sequencer; S3's have 16 to 18.
const MAX_SEQUENCER_DIGITS: usize = 32;

/// A sequencer of S3 in the form that is stored and compared: hex in lower case without leading
/// zeros, so that the longer one is the later, and of equal length the greater. This is the same
/// order as left-padding with zeros (S3 user guide, "Event message structure").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequencer(pub String);

impl Sequencer {
    /// `None` for one that is empty, longer than any of S3's, or no hex: such events have no order.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.is_empty() || text.len() > MAX_SEQUENCER_DIGITS || !is_hex {
            return None;
        }
        Some(Self(text.trim_start_matches('0').to_lowercase()))
    }
}

impl Ord for Sequencer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for Sequencer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::IngestionStage;

    const NOW: OffsetDateTime = time::macros::datetime!(2026-11-21 12:00 UTC);

    fn s(seconds: i64) -> Option<OffsetDateTime> {
        Some(NOW + time::Duration::seconds(seconds))
    }

    #[test]
    fn every_state_of_a_row_has_its_claim_decision() {
        use ClaimDecision::{Busy, GiveUp, NotDue, Take, Terminal};
        use IngestionStatus::{Cancelled, Completed, Failed, InProgress};
        let d = Duration::from_secs;
        #[rustfmt::skip]
        let table = [
            // name                                     status      lease    due     crashes  expected
            ("a fresh row is taken",                    InProgress, None,    None,    0, Take { after_crash: false }),
            ("a live lease is respected",               InProgress, s(30),   None,    0, Busy(d(30))),
            ("an expired lease is a crash",             InProgress, s(-1),   None,    0, Take { after_crash: true }),
            ("a lease that ends now has ended",         InProgress, s(0),    None,    0, Take { after_crash: true }),
            ("the third crash is one too many",         InProgress, s(-1),   None,    2, GiveUp { after_crash: true }),
            ("two crashes are not too many",            InProgress, None,    None,    2, Take { after_crash: false }),
            ("a lowered limit is obeyed",               InProgress, None,    None,    3, GiveUp { after_crash: false }),
            ("a live claim outranks earlier crashes",   InProgress, s(5),    None,    9, Busy(d(5))),
            ("too early is too early",                  InProgress, None,    s(60),   0, NotDue(d(60))),
            ("two seconds early is near enough",        InProgress, None,    s(2),    0, Take { after_crash: false }),
            ("what was due is due",                     InProgress, None,    s(-60),  0, Take { after_crash: false }),
            ("completed needs nothing",                 Completed,  None,    None,    0, Terminal(Completed)),
            ("failed needs nothing",                    Failed,     None,    None,    3, Terminal(Failed)),
            ("cancelled needs nothing, due or not",     Cancelled,  None,    s(60),   0, Terminal(Cancelled)),
        ];
        for (name, status, lease_expires_at, next_attempt_at, crashes, expected) in table {
            let row = ClaimRowState { status, lease_expires_at, next_attempt_at, crashes };
            assert_eq!(decide_claim(&row, NOW, 3), expected, "{name}");
        }
    }

    #[test]
    fn attempts_are_counted_from_the_last_reopening() {
        for (count, limit, used) in [(0, 8, 0), (1, 8, 1), (8, 8, 8), (8, 16, 0), (9, 16, 1)] {
            assert_eq!(used_attempts(count, limit), used, "{count} of {limit}");
        }
    }

    #[test]
    fn waits_for_a_person_grow_up_to_an_hour() {
        let minute = Duration::from_secs(60);
        for (denials, minutes) in [(0, 1), (1, 2), (3, 8), (5, 32), (6, 60), (1000, 60)] {
            assert_eq!(stretch_delay(minute, denials), minute * minutes, "after {denials}");
        }
    }

    #[test]
    fn only_overload_and_missing_answers_continue_a_streak_of_deferrals() {
        use DeferralStreak::{Ends, Grows, Stays};
        let d = Duration::from_secs(7);
        #[rustfmt::skip]
        let table = [
            // fault                   counted  streak  a person mends it
            (Fault::Throttled(None),   false,   Grows,  false),
            (Fault::Unavailable,       false,   Grows,  false),
            (Fault::Unavailable,       true,    Ends,   false),
            (Fault::Interrupted,       false,   Stays,  false),
            (Fault::Denied,            false,   Ends,   true),
            (Fault::Misconfigured,     false,   Ends,   true),
            (Fault::Paused,            false,   Ends,   false),
            (Fault::InLine(d),         false,   Ends,   false),
            (Fault::OverBudget(d),     false,   Ends,   false),
            (Fault::Transient,         true,    Ends,   false),
        ];
        for (fault, counted, streak, person) in table {
            let (stage, detail) = (IngestionStage::Fetch, String::new());
            let how = ClaimRelease { fault, counted, after: d, stage, detail };
            assert_eq!((deferral_streak(&how), is_denial(fault)), (streak, person), "{how:?}");
        }
    }

    #[test]
    fn sequencers_are_ordered_as_if_padded_with_zeros() {
        let new = |text| Sequencer::new(text).unwrap();
        for (earlier, later) in [("9", "A"), ("f", "10"), ("00ff", "100"), ("055AED6D", "055aed6e")]
        {
            assert!(new(earlier) < new(later), "{earlier} {later}");
            assert!(new(later) > new(earlier), "{later} {earlier}");
        }
        assert_eq!(new("0055AE"), new("55ae"));
        let absurd = ["f".repeat(33), "f".repeat(64), "0x1".to_owned(), "zz".to_owned()];
        for text in absurd.iter().map(String::as_str).chain([" ", ""]) {
            assert_eq!(Sequencer::new(text), None, "{text}");
        }
        assert!(Sequencer::new(&"f".repeat(32)).is_some());
    }
}
