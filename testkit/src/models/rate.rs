//! A limit on requests per second that changes while the server runs, as a token bucket of one
//! second, like the vendors'. Every other refusal carries the exact wait, since vendors do both.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::script::Answer;

/// The limit, and what came of it.
#[derive(Debug)]
pub struct RateLimit {
    /// Requests a second from each time on; the first begins at zero.
    phases: Vec<(Duration, f64)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the first request.
    began: Option<Instant>,
    level: f64,
    /// Seconds after the beginning for which `level` holds.
    at: f64,
    counts: Counts,
}

/// How many were let through and refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were let through.
    pub accepted: usize,
    /// Requests that were answered by 429.
    pub refused: usize,
    /// Both since the twentieth second.
    pub late: usize,
    /// Refused since the twentieth second.
    pub late_refused: usize,
}

impl RateLimit {
    /// Begins with the first request.
    pub fn new(phases: &[(Duration, f64)]) -> Self {
        Self { phases: phases.to_vec(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn per_second(&self, at: f64) -> f64 {
        let begun = self.phases.iter().rev().find(|(from, _)| at >= from.as_secs_f64());
        begun.map_or(1.0, |(_, limit)| *limit)
    }

    /// `accepted`, or a refusal.
    pub fn answer(&self, accepted: Answer) -> Answer {
        let mut state = self.state();
        let now = Instant::now();
        let at = now.duration_since(*state.began.get_or_insert(now)).as_secs_f64();
        let limit = self.per_second(at);
        if state.counts == Counts::default() {
            state.level = limit;
        }
        state.level = (state.level + (at - state.at) * limit).min(limit);
        state.at = at;
        let is_late = at >= 20.0;
        state.counts.late += usize::from(is_late);
        if state.level >= 1.0 {
            state.level -= 1.0;
            state.counts.accepted += 1;
            return accepted;
        }
        state.counts.refused += 1;
        state.counts.late_refused += usize::from(is_late);
        let wait = (1.0 - state.level) / limit;
        let told = state.counts.refused.is_multiple_of(2);
        Answer::Status {
            status: 429,
            retry_after: None,
            retry_after_ms: told.then(|| format!("{:.0}", (wait * 1000.0).ceil())),
            should_retry: None,
            code: Some("rate_limit_exceeded".to_owned()),
            message: None,
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// The minimum time for this many requests under the limit.
    pub fn ideal(&self, requests: u32) -> Duration {
        let step = 0.001;
        let (mut at, mut left) = (0.0, f64::from(requests));
        while left > 0.0 {
            at += step;
            left -= self.per_second(at) * step;
        }
        Duration::from_secs_f64(at)
    }
}
