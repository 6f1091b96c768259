//! Requests a second, learned from refusals alone.
//!
//! Unknown until the first 429: what was accepted lately is then taken for the limit. Every
//! further one lowers the pace to a share below what was accepted ([`SHARE`]; [`SHARE_TOLD`] when
//! the server also said how long to wait, since that pause saves capacity by itself). Then it
//! climbs back to just below the old limit, stays there for a while, feels a little above it, and
//! if nothing is refused doubles every [`DOUBLING`] seconds: the limit has been raised. How long it
//! stays doubles while the limit is found where it was. Two processes that do this over one limit
//! share it without knowing of each other, as TCP flows share a link (RFC 9438 has the same shape).
//!
//! Only time in which calls had to wait for the pace counts: a limit that is not reached gives no
//! information.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// After a refusal: this share of what was accepted.
const SHARE: f64 = 0.88;
/// The same when the server asked for a pause as well.
const SHARE_TOLD: f64 = 0.95;
/// A pause shorter than this saves nothing.
const PAUSE: Duration = Duration::from_millis(300);
/// Seconds back up to [`TOP`].
const CLIMB: f64 = 2.0;
/// Share of the last limit at which the pace stays.
const TOP: f64 = 0.98;
/// Seconds of staying there, at first and at most.
const CALM: (f64, f64) = (1.0, 6.0);
/// Seconds of feeling above it, and by what share a second.
const FEEL: (f64, f64) = (2.0, 0.06);
/// Seconds in which the pace doubles once nothing was refused above the last limit.
const DOUBLING: f64 = 1.5;
/// How long answers are remembered, and most of them.
const MEMORY: (Duration, usize) = (Duration::from_secs(2), 512);
/// Never slower than one request in this many seconds.
const SLOWEST: f64 = 1.0 / 60.0;
/// Refusals of the last ten answers that still mean the same limit.
const SAME: f64 = 0.8;

/// The pace that refusals have taught.
#[derive(Debug, Default)]
pub(super) struct RateEstimator {
    learned: Option<LearnedLimit>,
    recent: VecDeque<(Instant, bool)>,
    /// Refusals of calls sent before the last lowering belong to it.
    lowered: Option<Instant>,
    seen: Option<Instant>,
    short: bool,
}

#[derive(Debug, Clone, Copy)]
struct LearnedLimit {
    /// Requests a second that were accepted last.
    limit: f64,
    /// Share of it at which this round began.
    from: f64,
    /// Seconds of this round in which calls had to wait.
    age: f64,
    calm: f64,
}

impl LearnedLimit {
    fn current_share(self) -> f64 {
        // Four phases by age: up to `TOP`, staying there for `calm`, feeling above it, doubling.
        let feeling = self.age - CLIMB - self.calm;
        if feeling <= 0.0 {
            self.from + (TOP - self.from) * (self.age / CLIMB).min(1.0)
        } else if feeling <= FEEL.0 {
            TOP + FEEL.1 * feeling
        } else {
            // 2^30 is as good as no limit; more would only overflow.
            (TOP + FEEL.1 * FEEL.0) * ((feeling - FEEL.0) / DOUBLING).min(30.0).exp2()
        }
    }
}

impl RateEstimator {
    /// Requests a second; `None`: nothing is known.
    pub(super) fn rate(&self) -> Option<f64> {
        self.learned.map(|learned| learned.limit * learned.current_share())
    }

    /// Time passes; `short` says whether a call now has to wait for the pace.
    pub(super) fn advance_time(&mut self, now: Instant) {
        let passed = self.seen.map_or(Duration::ZERO, |seen| now.saturating_duration_since(seen));
        if let (true, Some(learned)) = (self.short, &mut self.learned) {
            learned.age += passed.as_secs_f64();
        }
        self.seen = Some(now);
        self.short = false;
    }

    /// A call has to wait for the pace from now on.
    pub(super) fn mark_short(&mut self) {
        self.short = true;
    }

    /// A call was accepted.
    pub(super) fn record_accepted(&mut self, now: Instant) {
        self.remember_answer(now, true);
    }

    /// A call sent at `sent` was refused, perhaps with a time to wait. Returns whether the pace
    /// was lowered for it.
    pub(super) fn record_refused(
        &mut self,
        now: Instant,
        sent: Instant,
        told: Option<Duration>,
    ) -> bool {
        self.remember_answer(now, false);
        if self.lowered.is_some_and(|lowered| sent < lowered) {
            return false;
        }
        let from = if told.is_some_and(|told| told >= PAUSE) { SHARE_TOLD } else { SHARE };
        let (limit, calm) = match self.learned {
            None => (self.accepted_per_second(now), CALM.0),
            Some(learned) => {
                let rate = learned.limit * learned.current_share();
                let share = self.share_accepted();
                // Refused where the limit was expected: stay below it for longer next time.
                let same = share >= SAME && learned.current_share() < 1.3 && learned.age > CLIMB;
                let calm = if same { (learned.calm * 2.0).min(CALM.1) } else { CALM.0 };
                (rate * share.max(0.5), calm)
            }
        };
        self.learned = Some(LearnedLimit { limit: limit.max(SLOWEST), from, age: 0.0, calm });
        self.lowered = Some(now);
        self.short = false;
        true
    }

    fn remember_answer(&mut self, now: Instant, accepted: bool) {
        self.recent.push_back((now, accepted));
        while self.recent.len() > MEMORY.1
            || self.recent.front().is_some_and(|first: &(Instant, bool)| {
                now.saturating_duration_since(first.0) > MEMORY.0
            })
        {
            self.recent.pop_front();
        }
    }

    fn accepted_per_second(&self, now: Instant) -> f64 {
        let first = self.recent.front().map_or(now, |(at, _)| *at);
        let span = now.saturating_duration_since(first).as_secs_f64().max(0.3);
        let accepted = self.recent.iter().filter(|(_, accepted)| *accepted).count();
        f64::from(u32::try_from(accepted).unwrap_or(u32::MAX)).max(0.5) / span
    }

    /// Of the last ten answers; too few say nothing.
    fn share_accepted(&self) -> f64 {
        let last: Vec<bool> = self.recent.iter().rev().take(10).map(|(_, ok)| *ok).collect();
        if last.len() <= 3 {
            return 1.0;
        }
        let sent = u32::try_from(last.len()).unwrap_or(u32::MAX);
        let good = u32::try_from(last.iter().filter(|ok| **ok).count()).unwrap_or(u32::MAX);
        f64::from(good) / f64::from(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(f64) -> Duration = Duration::from_secs_f64;

    fn learned(now: Instant) -> RateEstimator {
        let mut pace = RateEstimator::default();
        for n in 0..20 {
            pace.record_accepted(now + S(f64::from(n) / 10.0));
        }
        assert!(pace.record_refused(now + S(2.0), now + S(1.9), None));
        pace
    }

    #[test]
    fn the_first_refusal_teaches_what_was_accepted() {
        let rate = learned(Instant::now()).rate().unwrap();
        assert!((8.0..10.0).contains(&rate), "{rate}");
    }

    #[test]
    fn calls_that_were_under_way_when_the_pace_was_lowered_do_not_lower_it_again() {
        let start = Instant::now();
        let mut pace = learned(start);
        let before = pace.rate();
        assert!(!pace.record_refused(start + S(2.1), start + S(1.95), None));
        assert_eq!(pace.rate(), before);
        assert!(pace.record_refused(start + S(2.2), start + S(2.1), None));
        assert!(pace.rate() < before);
    }

    #[test]
    fn the_pace_grows_without_end_while_calls_wait_for_it_and_not_at_all_while_none_does() {
        let start = Instant::now();
        let mut pace = learned(start);
        let before = pace.rate().unwrap();
        pace.advance_time(start + S(2.0));
        pace.advance_time(start + S(60.0));
        assert!((pace.rate().unwrap() - before).abs() < 1e-9, "nobody reached for it");
        pace.mark_short();
        pace.advance_time(start + S(75.0));
        assert!(pace.rate().unwrap() > before * 3.0, "15 s without a refusal");
        pace.mark_short();
        pace.advance_time(start + S(100_000.0));
        assert!(pace.rate().unwrap().is_finite());
    }

    #[test]
    fn the_pace_climbs_stays_feels_and_doubles_with_its_age() {
        let share = |age| LearnedLimit { limit: 10.0, from: 0.88, age, calm: 1.0 }.current_share();
        #[rustfmt::skip]
        let table = [
            (0.0, 0.88), (1.0, 0.93), (2.0, 0.98), (2.9, 0.98), (3.0, 0.98),
            (4.0, 1.04), (5.0, 1.1), (6.5, 2.2), (8.0, 4.4),
        ];
        for (age, expected) in table {
            assert!((share(age) - expected).abs() < 1e-9, "{age} s: {}", share(age));
        }
    }

    #[test]
    fn a_limit_that_is_found_where_it_was_is_left_alone_for_longer() {
        let start = Instant::now();
        // Seconds of this round, how long the last calm was, what the next one is.
        for (age, before, after) in
            [(3.0, 1.0, 2.0), (3.0, 4.0, 6.0), (1.0, 4.0, 1.0), (2.0, 4.0, 1.0), (20.0, 4.0, 1.0)]
        {
            let mut pace = RateEstimator {
                learned: Some(LearnedLimit { limit: 10.0, from: SHARE, age, calm: before }),
                ..RateEstimator::default()
            };
            assert!(pace.record_refused(start, start, None));
            let calm = pace.learned.unwrap().calm;
            assert!((calm - after).abs() < 1e-9, "{age} s after {before}: {calm}");
        }
    }

    #[test]
    fn a_refusal_lowers_the_pace_to_its_share_and_less_where_a_pause_was_asked_for() {
        let start = Instant::now();
        let lowered = |told: Option<u64>| {
            let limit = LearnedLimit { limit: 10.0, from: SHARE, age: 2.0, calm: 1.0 };
            let mut pace = RateEstimator {
                learned: Some(limit),
                lowered: Some(start),
                ..RateEstimator::default()
            };
            // Sent at the moment of the last lowering, and so after it.
            assert!(pace.record_refused(start, start, told.map(Duration::from_millis)));
            pace.rate().unwrap()
        };
        for (told, expected) in
            [(None, 9.8 * 0.88), (Some(299), 9.8 * 0.88), (Some(300), 9.8 * 0.95)]
        {
            assert!((lowered(told) - expected).abs() < 1e-9, "{told:?}: {}", lowered(told));
        }
    }

    #[test]
    fn of_the_last_ten_answers_four_at_least_say_how_many_are_accepted() {
        let start = Instant::now();
        for (answers, expected) in [
            (vec![], 1.0),
            (vec![false; 3], 1.0),
            (vec![false; 4], 0.0),
            (vec![true, false, true, false], 0.5),
            ([vec![false; 5], vec![true; 8], vec![false; 2]].concat(), 0.8),
        ] {
            let mut pace = RateEstimator::default();
            for accepted in &answers {
                pace.remember_answer(start, *accepted);
            }
            let share = pace.share_accepted();
            assert!((share - expected).abs() < 1e-9, "{answers:?}: {share}");
        }
    }

    #[test]
    fn answers_are_remembered_for_two_seconds_and_no_more_than_512() {
        let start = Instant::now();
        for (seconds, kept) in [(2.0, 2), (2.001, 1)] {
            let mut pace = RateEstimator::default();
            pace.record_accepted(start);
            pace.record_accepted(start + S(seconds));
            assert_eq!(pace.recent.len(), kept, "{seconds} s");
        }
        let mut pace = RateEstimator::default();
        (0..600).for_each(|_| pace.record_accepted(start));
        assert_eq!(pace.recent.len(), MEMORY.1);
        assert!((pace.accepted_per_second(start + S(2.0)) - 256.0).abs() < 1e-9);
        assert!((pace.accepted_per_second(start + S(0.1)) - 512.0 / 0.3).abs() < 1e-6);
        // Nothing accepted is half a request.
        assert!((RateEstimator::default().accepted_per_second(start) - 0.5 / 0.3).abs() < 1e-9);
    }
}
