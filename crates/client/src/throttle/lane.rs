//! One key's state: everything that decides whether the next call may go out. Pure; the caller
//! brings the time, keeps the lock and does the waiting.

use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{Breaker, Pass};
use super::bucket::Bucket;
use super::headers::{Limits, Told};
use super::pace::Pace;
use super::window::Window;
use super::{Estimate, Outcome};
use crate::config::ThrottleConfig;
use crate::fault::Fault;

/// Seconds of the pace that may go out at once.
const BURST: f64 = 0.25;
/// Weight of a newly read rate against the earlier ones: resets are rounded.
const NEWEST: f64 = 0.3;

/// Whether the head of the line may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Admit {
    /// Now.
    Go(Sent),
    /// Not before this time; `None`: not before a call under way is settled.
    Wait(Option<Instant>),
    /// The breaker is open.
    Refused(Fault),
}

/// What is remembered of a call that went out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sent {
    at: Instant,
    trial: bool,
    /// It was the last that the window had room for.
    filled: bool,
    tokens: f64,
}

/// A limit that the server's headers told.
#[derive(Debug, Clone, Copy)]
struct Quota {
    per_second: f64,
    most: f64,
    bucket: Bucket,
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    pace: Pace,
    bucket: Bucket,
    window: Window,
    breaker: Breaker,
    requests: Option<f64>,
    tokens: Option<Quota>,
    hold: Option<Instant>,
    in_flight: u32,
    pub(super) used: Instant,
}

/// How long a call would wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Forecast {
    /// Until the end of the pause that the server asked for.
    pub(super) held: Duration,
    /// After it, for the calls ahead at the pace of now.
    pub(super) paced: Duration,
}

impl Forecast {
    pub(super) fn total(self) -> Duration {
        self.held.saturating_add(self.paced)
    }
}

/// For the metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shown {
    /// Requests a second; `None`: no limit known.
    pub(super) rate: Option<f64>,
    pub(super) in_flight: u32,
    /// 0 closed, 1 half open, 2 open.
    pub(super) breaker: u8,
    pub(super) denied: bool,
}

impl State {
    pub(super) fn new(config: &ThrottleConfig, now: Instant) -> Self {
        Self {
            pace: Pace::default(),
            bucket: Bucket::new(1.0, now),
            window: Window::new(config.concurrency),
            breaker: Breaker::new(config.failures, config.open_for),
            requests: None,
            tokens: None,
            hold: None,
            in_flight: 0,
            used: now,
        }
    }

    /// Requests a second: what refusals taught, never above what headers told.
    fn rate(&self) -> Option<f64> {
        match (self.pace.rate(), self.requests) {
            (Some(learned), Some(told)) => Some(learned.min(told)),
            (learned, told) => learned.or(told),
        }
    }

    /// Takes everything a call needs, or says what it waits for.
    pub(super) fn admit(&mut self, now: Instant, estimate: Estimate) -> Admit {
        self.used = now;
        self.pace.pass(now);
        let pass = self.breaker.looks(now);
        if let Pass::No(fault) = pass {
            return Admit::Refused(fault);
        }
        if let Some(until) = self.hold.filter(|until| *until > now) {
            return Admit::Wait(Some(until));
        }
        if !self.window.has_room(self.in_flight) {
            return Admit::Wait(None);
        }
        let wait = self.wait(now, estimate);
        if !wait.is_zero() {
            self.pace.is_short();
            return Admit::Wait(Some(now + wait.min(super::FOREVER)));
        }
        self.bucket.take(1.0);
        if let Some(quota) = &mut self.tokens {
            quota.bucket.take(estimate.tokens());
        }
        if pass == Pass::Trial {
            self.breaker.begin_trial();
        }
        self.in_flight = self.in_flight.saturating_add(1);
        let filled = !self.window.has_room(self.in_flight);
        Admit::Go(Sent { at: now, trial: pass == Pass::Trial, filled, tokens: estimate.tokens() })
    }

    /// Until both buckets have enough.
    fn wait(&mut self, now: Instant, estimate: Estimate) -> Duration {
        let requests = match self.rate() {
            Some(rate) => {
                let capacity = (rate * BURST).max(1.0);
                self.bucket.advance(now, rate, capacity);
                self.bucket.wait(1.0, rate, capacity)
            }
            // Nothing known: one is always there.
            None => {
                self.bucket = Bucket::new(1.0, now);
                Duration::ZERO
            }
        };
        let tokens = self.tokens.as_mut().map_or(Duration::ZERO, |quota| {
            quota.bucket.advance(now, quota.per_second, quota.most);
            quota.bucket.wait(estimate.tokens(), quota.per_second, quota.most)
        });
        requests.max(tokens)
    }

    /// How long a call would wait behind `ahead` others, as far as is known.
    pub(super) fn forecast(&self, now: Instant, ahead: usize) -> Forecast {
        let held = self.hold.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let ahead = f64::from(u32::try_from(ahead).unwrap_or(u32::MAX));
        let paced =
            self.rate().map_or(0.0, |rate| (ahead + 1.0 - self.bucket.level()).max(0.0) / rate);
        let paced = Duration::try_from_secs_f64(paced).unwrap_or(super::FOREVER);
        Forecast { held: held.min(super::FOREVER), paced: paced.min(super::FOREVER) }
    }

    /// A call is over. Returns whether the provider counts as down.
    pub(super) fn settle(&mut self, now: Instant, sent: Sent, outcome: &Outcome) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.used = now;
        match outcome {
            Outcome::Answered { limits, tokens } => {
                self.breaker.answered();
                self.pace.accepted(now);
                self.window.answered(sent.filled);
                if let (Some(quota), Some(used)) = (&mut self.tokens, tokens) {
                    quota.bucket.take(*used - sent.tokens);
                }
                self.learn(now, limits);
                false
            }
            Outcome::Throttled(told) => {
                self.breaker.answered();
                self.throttled(now, sent, *told);
                false
            }
            Outcome::Failed => {
                self.window.overloaded();
                self.breaker.failed(now)
            }
            Outcome::Denied => {
                self.breaker.denied(now);
                true
            }
            Outcome::Abandoned => {
                if sent.trial {
                    self.breaker.trial_abandoned(now);
                }
                false
            }
        }
    }

    fn throttled(&mut self, now: Instant, sent: Sent, told: Option<Duration>) {
        let known = self.pace.rate().is_some();
        if self.pace.refused(now, sent.at, told) {
            self.bucket.at_most(0.0);
            if known && sent.filled {
                self.window.overloaded();
            }
        }
        if let Some(told) = told {
            let until = now + told.min(super::FOREVER);
            self.hold = Some(self.hold.map_or(until, |before| before.max(until)));
        }
    }

    /// Learns from the headers of an answer.
    fn learn(&mut self, now: Instant, limits: &Limits) {
        if let Some(told) = limits.requests {
            if let Some(rate) = told.per_second() {
                self.requests = Some(self.requests.map_or(rate, |old| mix(old, rate)));
            }
            // What others under the same key have used is gone for us too.
            self.bucket.at_most(told.remaining);
        }
        if let Some(told) = limits.tokens {
            self.tokens = quota(self.tokens, told, now);
        }
        if let Some(wait) = limits.exhausted_for {
            let until = now + wait;
            self.hold = Some(self.hold.map_or(until, |before| before.max(until)));
        }
    }

    pub(super) fn shown(&self) -> Shown {
        let (breaker, denied) = self.breaker.shown();
        Shown { rate: self.rate(), in_flight: self.in_flight, breaker, denied }
    }

    /// Whether nothing would be lost by forgetting it but what was learned.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }
}

fn mix(old: f64, new: f64) -> f64 {
    old + NEWEST * (new - old)
}

fn quota(old: Option<Quota>, told: Told, now: Instant) -> Option<Quota> {
    let read = told.per_second();
    let per_second = match (old.map(|old| old.per_second), read) {
        (Some(old), Some(new)) => mix(old, new),
        (old, new) => old.or(new)?,
    };
    let mut bucket = old.map_or_else(|| Bucket::new(told.remaining, now), |old| old.bucket);
    bucket.at_most(told.remaining);
    Some(Quota { per_second, most: told.limit, bucket })
}
