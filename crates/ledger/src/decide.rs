//! The decision about a claim, as a pure function, and the other rules that both ledgers share.
//!
//! [`crate::memory`] calls [`decide_claim`]; `db::claims` says the same in one SQL
//! statement, because the decision must be taken under the row's lock without a round trip in
//! between. The differential test of `tests/it/ledger_suite.rs` holds the two together.

use std::time::Duration;

use time::OffsetDateTime;

use crate::duplicate_key::{DuplicateKeys, NearKeys};
use crate::{ClaimCompany, ClaimRelease, IngestionResult};
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
    /// Crashes that count, since the last reopening or progress, as written so far.
    pub crashes: u32,
    /// Since when it is a suspect; `None`: it is none.
    pub accused_at: Option<OffsetDateTime>,
    /// Whether the current claim was made by a worker that had nothing else in hand.
    pub is_alone: bool,
}

/// Facts that a claim is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimOffer {
    /// So many crashes that count are too many; 0: the first claim without a word is, in any company.
    pub crash_limit: u32,
    /// Other work that the worker has in hand.
    pub company: ClaimCompany,
    /// Ends of other documents that were worked on alone.
    pub others: LoneEnds,
}

/// Ends of the other documents that were worked on alone, of each the newest: at most
/// [`LoneEnds::MAX_ENDS`] of the last [`LoneEnds::MAX_AGE`] and the last [`LoneEnds::MAX_ATTEMPTS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoneEnds {
    /// All of them.
    pub ends: u32,
    /// Those that ended without a word.
    pub crashed: u32,
}

impl LoneEnds {
    /// Maximum ends examined.
    pub const MAX_ENDS: usize = 8;
    /// Maximum attempts searched for them.
    pub const MAX_ATTEMPTS: usize = 256;
    /// Maximum age of an end that counts for the present workers.
    pub const MAX_AGE: Duration = Duration::from_secs(3600);

    /// Whether workers live as a rule: at least three of four documents survived being worked on alone.
    /// If not, a death says nothing about its document. Nothing speaks against it if there are none.
    pub fn workers_live(self) -> bool {
        self.ends >= self.crashed * 4
    }
}

/// How the claim before this one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierClaim {
    /// With a word of its worker, or there was none.
    Ended,
    /// Without a word: closed as `crashed`, and given back. Its worker had others in hand, or others
    /// died alone as well.
    Accused,
    /// Without a word while its worker had nothing else in hand: closed as `crashed`, and counted.
    Crashed,
}

impl EarlierClaim {
    /// Crashes that count.
    pub fn crashes(self) -> u32 {
        u32::from(self == Self::Crashed)
    }
}

/// The outcome of a claim for the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimDecision {
    /// Take it.
    Take(EarlierClaim),
    /// Fail it as `crashed`.
    GiveUp(EarlierClaim),
    /// A suspect for so long; it is claimed alone.
    Suspect(Duration),
    /// Another claim is live for this long.
    Busy(Duration),
    /// Due after this time.
    NotDue(Duration),
    /// Nothing to do any more.
    Terminal(IngestionStatus),
}

/// Decides a claim at `now`.
pub fn decide_claim(row: &ClaimRowState, now: OffsetDateTime, offer: ClaimOffer) -> ClaimDecision {
    if row.status.is_terminal() {
        return ClaimDecision::Terminal(row.status);
    }
    let live = row.lease_expires_at.map(|end| time_until(now, end));
    if let Some(left) = live
        && left > Duration::ZERO
    {
        return ClaimDecision::Busy(left);
    }
    let convicts_all = regression::is_off(FixToggle::LoneDeaths);
    let earlier = match live {
        None => EarlierClaim::Ended,
        Some(_) if offer.crash_limit == 0 || convicts_all => EarlierClaim::Crashed,
        Some(_) if row.is_alone && offer.others.workers_live() => EarlierClaim::Crashed,
        Some(_) => EarlierClaim::Accused,
    };
    if row.crashes + earlier.crashes() >= offer.crash_limit.max(1) {
        return ClaimDecision::GiveUp(earlier);
    }
    match (row.next_attempt_at.map(|due| time_until(now, due)), accused_since(row)) {
        (Some(left), _) if left > SOON => ClaimDecision::NotDue(left),
        (_, Some(since)) if offer.company == ClaimCompany::Others && !convicts_all => {
            ClaimDecision::Suspect(time_until(since, now))
        }
        _ => ClaimDecision::Take(earlier),
    }
}

/// Since when a row without a live lease is a suspect; `None`: it is none.
pub(crate) fn accused_since(row: &ClaimRowState) -> Option<OffsetDateTime> {
    row.accused_at.or(row.lease_expires_at)
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
/// Not of a fault that this worker shares with other documents: another one may be free of it.
pub fn is_denial(how: &ClaimRelease) -> bool {
    !how.is_shared && matches!(how.fault, Fault::Denied | Fault::Misconfigured)
}

/// The delay after a denial that followed so many others without anything else in between.
pub fn stretch_delay(after: Duration, denials: u32) -> Duration {
    after.mul_f64(2_f64.powi(denials.min(16).cast_signed()).min(MAX_STRETCH))
}

/// The keys of a recorded result: the duplicate rule considers completed documents only.
pub(crate) fn recorded_keys(end: &IngestionResult) -> Option<&DuplicateKeys> {
    end.duplicate_keys.as_ref().filter(|_| end.reason.is_none())
}

/// The same for near duplicates.
pub(crate) fn recorded_near_keys(end: &IngestionResult) -> Option<NearKeys> {
    end.near_keys.filter(|_| end.reason.is_none())
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

    fn at(seconds: i64) -> Option<OffsetDateTime> {
        Some(NOW + time::Duration::seconds(seconds))
    }

    /// A claim whose lease ends then, made alone or beside others.
    fn s(seconds: i64, alone: bool) -> Option<(OffsetDateTime, bool)> {
        at(seconds).map(|end| (end, alone))
    }

    #[test]
    fn every_state_of_a_row_has_its_claim_decision() {
        use ClaimDecision::{Busy, GiveUp, NotDue, Suspect, Take, Terminal};
        use EarlierClaim::{Accused, Crashed, Ended};
        use IngestionStatus::{Cancelled, Completed, Failed, InProgress};
        let d = Duration::from_secs;
        use ClaimCompany::{Nobody, Others, Suspects};
        // How the claim in the row was made.
        let (beside, alone) = (false, true);
        #[rustfmt::skip]
        let table = [
            // name                                     status      lease           due     crashes accused asks    expected
            ("a fresh row is taken",                    InProgress, None,           None,    0, None,    Others, Take(Ended)),
            ("a live lease is respected",               InProgress, s(30, beside),  None,    0, None,    Others, Busy(d(30))),
            ("an expired lease makes a suspect",        InProgress, s(-1, beside),  None,    0, None,    Others, Suspect(d(1))),
            ("a lease that ends now has ended",         InProgress, s(0, beside),   None,    0, None,    Others, Suspect(d(0))),
            ("a death in company counts nothing",       InProgress, s(-1, beside),  None,    2, at(-9),  Nobody,  Take(Accused)),
            ("a death alone counts",                    InProgress, s(-1, alone),   None,    1, at(-9),  Nobody,  Take(Crashed)),
            ("a suspect is not claimed beside others",  InProgress, None,           None,    1, at(-9),  Others, Suspect(d(9))),
            ("a suspect is claimed alone",              InProgress, None,           None,    1, at(-9),  Nobody,  Take(Ended)),
            ("a suspect is claimed beside its like",    InProgress, None,           None,    1, at(-9),  Suspects, Take(Ended)),
            ("the third crash is one too many",         InProgress, s(-1, alone),   None,    2, at(-9),  Nobody,  GiveUp(Crashed)),
            ("a busy worker gives it up as well",       InProgress, s(-1, alone),   None,    2, at(-9),  Others, GiveUp(Crashed)),
            ("two crashes are not too many",            InProgress, None,           None,    2, at(-9),  Nobody,  Take(Ended)),
            ("a lowered limit is obeyed",               InProgress, None,           None,    3, at(-9),  Nobody,  GiveUp(Ended)),
            ("a live claim outranks earlier crashes",   InProgress, s(5, alone),    None,    9, at(-9),  Nobody,  Busy(d(5))),
            ("too early is too early",                  InProgress, None,           at(60),  0, None,    Others, NotDue(d(60))),
            ("a suspect that is put off is put off",    InProgress, None,           at(60),  1, at(-9),  Others, NotDue(d(60))),
            ("two seconds early is near enough",        InProgress, None,           at(2),   0, None,    Others, Take(Ended)),
            ("what was due is due",                     InProgress, None,           at(-60), 0, None,    Others, Take(Ended)),
            ("completed needs nothing",                 Completed,  None,           None,    0, None,    Others, Terminal(Completed)),
            ("failed needs nothing",                    Failed,     None,           None,    3, at(-9),  Nobody,  Terminal(Failed)),
            ("cancelled needs nothing, due or not",     Cancelled,  None,           at(60),  0, None,    Others, Terminal(Cancelled)),
        ];
        for (name, status, lease, next_attempt_at, crashes, accused_at, company, expected) in table
        {
            let (lease_expires_at, is_alone) = lease.unzip();
            let is_alone = is_alone.unwrap_or(false);
            let row = ClaimRowState {
                status,
                lease_expires_at,
                next_attempt_at,
                crashes,
                accused_at,
                is_alone,
            };
            let offer = ClaimOffer { crash_limit: 3, company, others: LoneEnds::default() };
            assert_eq!(decide_claim(&row, NOW, offer), expected, "{name}");
        }
    }

    #[test]
    fn a_death_alone_convicts_only_where_three_of_four_others_survive_being_alone() {
        let row = ClaimRowState {
            status: IngestionStatus::InProgress,
            lease_expires_at: at(-1),
            next_attempt_at: None,
            crashes: 2,
            accused_at: at(-9),
            is_alone: true,
        };
        for (crashed, ends, convicts) in [
            (0, 0, true),
            (0, 8, true),
            (1, 1, false),
            (1, 3, false),
            (1, 4, true),
            (2, 8, true),
            (3, 8, false),
        ] {
            let offer = ClaimOffer {
                crash_limit: 3,
                company: ClaimCompany::Nobody,
                others: LoneEnds { ends, crashed },
            };
            let expected = match convicts {
                true => ClaimDecision::GiveUp(EarlierClaim::Crashed),
                false => ClaimDecision::Take(EarlierClaim::Accused),
            };
            assert_eq!(decide_claim(&row, NOW, offer), expected, "{crashed} of {ends}");
        }
    }

    #[test]
    fn where_no_work_may_start_twice_the_first_death_is_the_end_in_any_company() {
        let row = ClaimRowState {
            status: IngestionStatus::InProgress,
            lease_expires_at: None,
            next_attempt_at: None,
            crashes: 0,
            accused_at: None,
            is_alone: false,
        };
        let (company, others) = (ClaimCompany::Others, LoneEnds::default());
        let offer = ClaimOffer { crash_limit: 0, company, others };
        let taken = ClaimDecision::Take(EarlierClaim::Ended);
        assert_eq!(decide_claim(&row, NOW, offer), taken, "a fresh one");
        let silent = ClaimRowState { lease_expires_at: at(-1), ..row };
        let ended = ClaimDecision::GiveUp(EarlierClaim::Crashed);
        assert_eq!(decide_claim(&silent, NOW, offer), ended);
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
            let mut how =
                ClaimRelease { fault, counted, is_shared: false, after: d, stage, detail };
            assert_eq!((deferral_streak(&how), is_denial(&how)), (streak, person), "{how:?}");
            how.is_shared = true;
            assert!(!is_denial(&how), "{how:?}");
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
