//! The circuit breaker of one key: pure, the caller brings the time.
//!
//! One failed call is that document's bad luck and counts as one of its attempts. Several in a
//! row, whoever asked, mean that the provider is down; one that was denied (credentials, money)
//! means that every other would be. From then on calls fail at once, which costs no document an
//! attempt, until one trial call after a while brings any other answer.

use std::time::Duration;

use tokio::time::Instant;

use crate::fault::Fault;

/// The breaker.
#[derive(Debug)]
pub(super) struct Breaker {
    state: State,
    failures: u32,
    limit: u32,
    open_for: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Closed,
    /// No calls before this time.
    Open(Instant, Fault),
    /// One trial is under way.
    HalfOpen(Fault),
}

/// Whether a call may go out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pass {
    /// As any other.
    Yes,
    /// As the trial.
    Trial,
    /// It fails at once with this fault.
    No(Fault),
}

impl Breaker {
    /// Closed; opens after `limit` failures in a row, for `open_for` at a time.
    pub(super) fn new(limit: u32, open_for: Duration) -> Self {
        Self { state: State::Closed, failures: 0, limit, open_for }
    }

    /// Asks without changing anything.
    pub(super) fn looks(&self, now: Instant) -> Pass {
        match self.state {
            State::Closed => Pass::Yes,
            State::Open(until, _) if now >= until => Pass::Trial,
            State::Open(_, fault) | State::HalfOpen(fault) => Pass::No(fault),
        }
    }

    /// The trial goes out.
    pub(super) fn begin_trial(&mut self) {
        if let State::Open(_, fault) = self.state {
            self.state = State::HalfOpen(fault);
        }
    }

    /// The trial was given up before its answer: the next call is the trial.
    pub(super) fn trial_abandoned(&mut self, now: Instant) {
        if let State::HalfOpen(fault) = self.state {
            self.state = State::Open(now, fault);
        }
    }

    /// The provider answered, be it with a refusal or a 429.
    pub(super) fn answered(&mut self) {
        self.state = State::Closed;
        self.failures = 0;
    }

    /// A call failed. Returns whether the provider counts as down now.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let was_denied = matches!(self.state, State::Open(_, Fault::Denied));
        if self.failures >= self.limit && !was_denied {
            self.state = State::Open(now + self.open_for, Fault::Unavailable);
        } else if matches!(self.state, State::HalfOpen(_)) {
            // A trial that failed otherwise than before says no more than that it is not well.
            self.state = State::Open(now + self.open_for, Fault::Unavailable);
            return true;
        }
        self.failures >= self.limit
    }

    /// A call was denied: every other would be.
    pub(super) fn denied(&mut self, now: Instant) {
        self.state = State::Open(now + self.open_for, Fault::Denied);
    }

    /// For the metric: 0 closed, 1 half open, 2 open; and whether a person has to act.
    pub(super) fn shown(&self) -> (u8, bool) {
        match self.state {
            State::Closed => (0, false),
            State::HalfOpen(fault) => (1, fault == Fault::Denied),
            State::Open(_, fault) => (2, fault == Fault::Denied),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_secs(10);

    #[test]
    fn failures_in_a_row_open_it_and_one_trial_at_a_time_closes_it() {
        let (mut now, mut breaker) = (Instant::now(), Breaker::new(3, OPEN));
        assert_eq!([breaker.failed(now), breaker.failed(now)], [false, false]);
        breaker.answered();
        let failed = [breaker.failed(now), breaker.failed(now), breaker.failed(now)];
        assert_eq!(failed, [false, false, true], "an answer between starts the count anew");
        assert_eq!(breaker.looks(now), Pass::No(Fault::Unavailable));
        now += OPEN;
        assert_eq!(breaker.looks(now), Pass::Trial);
        breaker.begin_trial();
        assert_eq!(breaker.looks(now), Pass::No(Fault::Unavailable), "one trial at a time");
        breaker.trial_abandoned(now);
        assert_eq!(breaker.looks(now), Pass::Trial, "a trial that was given up is not lost");
        breaker.begin_trial();
        assert!(breaker.failed(now));
        assert_eq!(breaker.looks(now), Pass::No(Fault::Unavailable));
        now += OPEN;
        breaker.begin_trial();
        breaker.answered();
        assert_eq!(breaker.looks(now), Pass::Yes);
    }

    #[test]
    fn one_denied_call_opens_it_as_denied_until_a_trial_is_not() {
        let (now, mut breaker) = (Instant::now(), Breaker::new(3, OPEN));
        breaker.denied(now);
        assert_eq!(breaker.looks(now), Pass::No(Fault::Denied));
        assert_eq!(breaker.shown(), (2, true));
        for _ in 0..5 {
            breaker.failed(now);
        }
        assert_eq!(breaker.looks(now), Pass::No(Fault::Denied), "stragglers do not blur why");
        assert_eq!(breaker.looks(now + OPEN), Pass::Trial);
        breaker.begin_trial();
        breaker.denied(now + OPEN);
        assert_eq!(breaker.looks(now + OPEN), Pass::No(Fault::Denied));
    }
}
