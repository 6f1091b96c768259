//! The circuit breaker of one key: pure, the caller brings the time.
//!
//! One failed call counts as an attempt of its document. Several in a row, from any job, mean that
//! the provider is down; two denied in a row (credentials, money) mean that every call would be.
//! One denial alone may be caused by the document: a firewall before the provider answers so too.
//! From then on calls fail at once, which costs no document an attempt, until a later trial call
//! gets any other answer.

use std::time::Duration;

use tokio::time::Instant;

use docmill_core::fault::Fault;

/// So many denied calls in a row mean that every other would be denied.
const DENIALS: u32 = 2;
/// A denial is unknown once no call was tried for this long: if there is work, one is tried each
/// time the breaker's own time is over.
const DENIAL_LIFETIME: Duration = Duration::from_secs(600);

/// Opens after too many failures in a row, and tries one call after a while.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    state: BreakerState,
    failures: u32,
    /// Denied calls in a row.
    denials: u32,
    limit: u32,
    open_for: Duration,
    /// In 0..1, of this breaker.
    jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BreakerState {
    Closed,
    /// No calls before this time.
    Open(Instant, Fault),
    /// One trial is under way.
    HalfOpen(Fault),
}

/// Whether a call may go out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BreakerDecision {
    /// The call may go out like any other.
    Allowed,
    /// The call may go out as the one trial of an open breaker.
    Trial,
    /// The call may not go out; it fails at once with this fault.
    No(Fault),
}

impl CircuitBreaker {
    /// Closed; opens after `limit` failures in a row, for `open_for` and up to a quarter more at a
    /// time, by `jitter` in 0..1.
    pub(super) fn new(limit: u32, open_for: Duration, jitter: f64) -> Self {
        Self { state: BreakerState::Closed, failures: 0, denials: 0, limit, open_for, jitter }
    }

    /// Asks without changing anything.
    pub(super) fn check_call(&self, now: Instant) -> BreakerDecision {
        match self.state {
            BreakerState::Closed => BreakerDecision::Allowed,
            BreakerState::Open(until, _) if now >= until => BreakerDecision::Trial,
            BreakerState::Open(until, Fault::OverBudget(_)) => {
                BreakerDecision::No(Fault::OverBudget(until - now))
            }
            BreakerState::HalfOpen(Fault::OverBudget(_)) => {
                BreakerDecision::No(Fault::OverBudget(self.open_for))
            }
            BreakerState::Open(_, fault) | BreakerState::HalfOpen(fault) => {
                BreakerDecision::No(fault)
            }
        }
    }

    /// The trial goes out.
    pub(super) fn begin_trial(&mut self) {
        if let BreakerState::Open(_, fault) = self.state {
            self.state = BreakerState::HalfOpen(fault);
        }
    }

    /// The trial was given up before its answer: the next call is the trial.
    pub(super) fn abandon_trial(&mut self, now: Instant) {
        if let BreakerState::HalfOpen(fault) = self.state {
            self.state = BreakerState::Open(now, fault);
        }
    }

    /// The provider answered, be it with a refusal or a 429.
    pub(super) fn record_answer(&mut self) {
        self.state = BreakerState::Closed;
        (self.failures, self.denials) = (0, 0);
    }

    /// A call failed. Returns whether the provider counts as down now.
    pub(super) fn record_failure(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let was_denied =
            matches!(self.state, BreakerState::Open(_, Fault::Denied | Fault::OverBudget(_)));
        if self.failures >= self.limit && !was_denied {
            self.state = BreakerState::Open(now + self.pause(), Fault::Unavailable);
        } else if matches!(self.state, BreakerState::HalfOpen(_)) {
            // A trial that failed otherwise than before says no more than that it is not well.
            self.state = BreakerState::Open(now + self.pause(), Fault::Unavailable);
            return true;
        }
        self.failures >= self.limit
    }

    /// A call was denied.
    pub(super) fn record_denial(&mut self, now: Instant) {
        self.denials = self.denials.saturating_add(1);
        if self.denials >= DENIALS || self.state != BreakerState::Closed {
            self.state = BreakerState::Open(now + self.pause(), Fault::Denied);
        }
    }

    /// Every call would be denied, as is known otherwise.
    pub(super) fn deny_calls(&mut self, now: Instant) {
        self.denials = DENIALS;
        self.state = BreakerState::Open(now + self.pause(), Fault::Denied);
    }

    /// The quota of a day is spent: one such answer is enough, and it names the time.
    pub(super) fn record_spent_day(&mut self, now: Instant, wait: Duration) {
        self.state = BreakerState::Open(now + wait, Fault::OverBudget(wait));
    }

    /// The time until the next trial: never the same in two processes that were refused together.
    fn pause(&self) -> Duration {
        self.open_for.mul_f64(1.0 + self.jitter / 4.0)
    }

    /// Whether the provider counts as down or as denying us, until a trial says otherwise.
    pub(super) fn is_open(&self) -> bool {
        self.state != BreakerState::Closed
    }

    /// For the metric: 0 closed, 1 half open (also where the next call is the trial), 2 open; and
    /// whether a person has to act.
    pub(super) fn metric_state(&self, now: Instant) -> (u8, bool) {
        match self.state {
            BreakerState::Closed => (0, false),
            BreakerState::Open(until, fault) if until <= now => {
                (1, needs_person(fault) && now < until + DENIAL_LIFETIME)
            }
            BreakerState::HalfOpen(fault) => (1, needs_person(fault)),
            BreakerState::Open(_, fault) => (2, needs_person(fault)),
        }
    }
}

/// Whether only a person can change it before its time.
fn needs_person(fault: Fault) -> bool {
    matches!(fault, Fault::Denied | Fault::OverBudget(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_secs(10);

    #[test]
    fn failures_in_a_row_open_it_and_one_trial_at_a_time_closes_it() {
        let (mut now, mut breaker) = (Instant::now(), CircuitBreaker::new(3, OPEN, 0.0));
        assert_eq!([breaker.record_failure(now), breaker.record_failure(now)], [false, false]);
        breaker.record_answer();
        let failed =
            [breaker.record_failure(now), breaker.record_failure(now), breaker.record_failure(now)];
        assert_eq!(failed, [false, false, true], "an answer between starts the count anew");
        assert_eq!(breaker.check_call(now), BreakerDecision::No(Fault::Unavailable));
        now += OPEN;
        assert_eq!(breaker.check_call(now), BreakerDecision::Trial);
        breaker.begin_trial();
        assert_eq!(
            breaker.check_call(now),
            BreakerDecision::No(Fault::Unavailable),
            "one trial at a time"
        );
        breaker.abandon_trial(now);
        assert_eq!(
            breaker.check_call(now),
            BreakerDecision::Trial,
            "a trial that was given up is not lost"
        );
        breaker.begin_trial();
        assert!(breaker.record_failure(now));
        assert_eq!(breaker.check_call(now), BreakerDecision::No(Fault::Unavailable));
        now += OPEN;
        breaker.begin_trial();
        breaker.record_answer();
        assert_eq!(breaker.check_call(now), BreakerDecision::Allowed);
    }

    #[test]
    fn the_breaker_opens_at_the_last_failure_and_reports_whether_a_person_has_to_act() {
        let now = Instant::now();
        for denied in [false, true] {
            let mut breaker = CircuitBreaker::new(2, OPEN, 0.0);
            let fail = |breaker: &mut CircuitBreaker| match denied {
                true => breaker.record_denial(now),
                false => _ = breaker.record_failure(now),
            };
            assert_eq!((breaker.is_open(), breaker.metric_state(now)), (false, (0, false)));
            fail(&mut breaker);
            assert_eq!(
                breaker.check_call(now),
                BreakerDecision::Allowed,
                "one alone is no verdict"
            );
            assert!(!breaker.is_open());
            fail(&mut breaker);
            assert_eq!((breaker.is_open(), breaker.metric_state(now)), (true, (2, denied)));
            let lapsed = breaker.metric_state(now + OPEN);
            assert_eq!(lapsed, (1, denied), "nobody calls, and it is not said to be down");
            let idle = breaker.metric_state(now + OPEN + DENIAL_LIFETIME);
            assert_eq!(idle, (1, false), "nobody has called for long, and knows");
            breaker.begin_trial();
            assert_eq!((breaker.is_open(), breaker.metric_state(now)), (true, (1, denied)));
        }
    }

    #[test]
    fn a_spent_day_opens_it_at_once_until_the_time_that_was_named() {
        let (now, mut breaker) = (Instant::now(), CircuitBreaker::new(3, OPEN, 0.0));
        let hours = Duration::from_secs(9 * 3600);
        breaker.record_spent_day(now, hours);
        let later = now + OPEN * 2;
        let left = BreakerDecision::No(Fault::OverBudget(hours - OPEN * 2));
        assert_eq!(breaker.check_call(later), left, "everybody waits for the same time");
        assert_eq!((breaker.is_open(), breaker.metric_state(later)), (true, (2, true)));
        for _ in 0..5 {
            breaker.record_failure(later);
        }
        assert_eq!(breaker.check_call(later), left, "stragglers do not blur why");
        let end = now + hours;
        assert_eq!(breaker.check_call(end), BreakerDecision::Trial);
        breaker.begin_trial();
        breaker.record_answer();
        assert_eq!(breaker.check_call(end), BreakerDecision::Allowed);
    }

    #[test]
    fn a_trial_that_fails_otherwise_than_before_means_that_the_provider_is_not_well() {
        let (now, mut breaker) = (Instant::now(), CircuitBreaker::new(3, OPEN, 0.0));
        breaker.record_denial(now);
        breaker.record_denial(now);
        breaker.begin_trial();
        assert!(breaker.record_failure(now), "it costs no attempt");
        assert_eq!(breaker.check_call(now), BreakerDecision::No(Fault::Unavailable));
        assert_eq!(breaker.check_call(now + OPEN), BreakerDecision::Trial);
    }

    #[test]
    fn two_denied_calls_in_a_row_open_it_as_denied_until_a_trial_is_not() {
        let (now, mut breaker) = (Instant::now(), CircuitBreaker::new(3, OPEN, 0.0));
        for _ in 0..10 {
            breaker.record_denial(now);
            assert_eq!(
                breaker.check_call(now),
                BreakerDecision::Allowed,
                "one alone is no verdict"
            );
            breaker.record_answer();
        }
        breaker.record_denial(now);
        breaker.record_denial(now);
        assert_eq!(breaker.check_call(now), BreakerDecision::No(Fault::Denied));
        assert_eq!(breaker.metric_state(now), (2, true));
        for _ in 0..5 {
            breaker.record_failure(now);
        }
        assert_eq!(
            breaker.check_call(now),
            BreakerDecision::No(Fault::Denied),
            "stragglers do not blur why"
        );
        assert_eq!(breaker.check_call(now + OPEN), BreakerDecision::Trial);
        breaker.begin_trial();
        breaker.record_denial(now + OPEN);
        assert_eq!(breaker.check_call(now + OPEN), BreakerDecision::No(Fault::Denied));
    }
}
