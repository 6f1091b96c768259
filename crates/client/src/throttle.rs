//! The throttle governor: how fast a provider may be called, learned while calling it.
//!
//! One lane for each provider, account and model, for page reading and language models alike. A
//! lane has a line (first come, first served), a pace in requests a second learned from 429s, a
//! ceiling and a token bucket learned from headers, a window of calls under way, a pause that the
//! server asked for and that every job shares, and a circuit breaker.
//!
//! A wait up to `throttle.longest_wait` is waited here; a longer one comes back as
//! [`Fault::Throttled`] with its length, so that the job hides its message and gives its slot and
//! its attempt back. Processes know nothing of each other; each learns from what it is answered.
//! Not promised: that no call is ever refused. Refusals are how a limit is found.

mod breaker;
mod bucket;
mod governed_call;
mod headers;
mod lane;
mod pace;
#[cfg(test)]
mod simulation;
mod window;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub use governed_call::{GovernedAnswer, GovernedCall};
pub use headers::{Limits, Told};

use crate::config::ThrottleConfig;
use crate::fault::{Error, Fault, Result};
use crate::metrics;
use lane::{Admit, Sent, State};

/// Most keys that are remembered; the one unused for longest is forgotten first.
const MOST_KEYS: usize = 256;
/// No wait is longer.
const FOREVER: Duration = Duration::from_secs(24 * 3600);
/// A message is hidden because of a learned pace for no less and no more. The pace is a guess that
/// the next seconds may change, and what is hidden cannot be called back; what a server asked for
/// is no guess and is kept to in full.
const HIDE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Whose limit it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// E.g. `openai`.
    pub provider: String,
    /// Tells accounts and servers apart; never a credential itself.
    pub account: String,
    /// The model or processor.
    pub model: String,
}

/// What a call is expected to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Tokens of the prompt.
    pub input: u64,
    /// Most tokens of the reply: vendors count them before there are any.
    pub output: u64,
}

impl Estimate {
    #[expect(clippy::cast_precision_loss, reason = "tokens are far below 2^52")]
    fn tokens(self) -> f64 {
        self.input.saturating_add(self.output) as f64
    }
}

/// How a call ended, as far as the governor cares.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With an answer, be it a refusal of this request.
    Answered {
        /// What its headers said.
        limits: Limits,
        /// Tokens used, if known.
        tokens: Option<f64>,
    },
    /// 429 and its kin, perhaps with a time to wait.
    Throttled(Option<Duration>),
    /// No answer, or one that says that the provider is not well.
    Failed,
    /// Wrong credentials, money out: no call can succeed.
    Denied,
    /// Given up by the caller before its end.
    Abandoned,
}

impl Outcome {
    /// What a failed call means.
    pub fn of(fault: Fault) -> Self {
        match fault {
            Fault::Throttled(told) => Self::Throttled(told),
            Fault::Transient | Fault::Unavailable => Self::Failed,
            // Without the right setting no call will be answered either.
            Fault::Denied | Fault::Misconfigured => Self::Denied,
            // Our own doing: it says nothing about the provider.
            Fault::Interrupted | Fault::ClaimLost | Fault::OverBudget(_) | Fault::Paused => {
                Self::Abandoned
            }
            Fault::Missing | Fault::Rejected | Fault::Internal => {
                Self::Answered { limits: Limits::default(), tokens: None }
            }
        }
    }
}

/// All lanes of this process.
pub struct Governor {
    config: ThrottleConfig,
    lanes: Mutex<HashMap<Key, Arc<Lane>>>,
}

struct Lane {
    key: Key,
    state: Mutex<State>,
    line: Mutex<Line>,
}

/// Who waits, oldest first.
#[derive(Default)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
}

impl Governor {
    /// Nothing is known yet.
    pub fn new(config: ThrottleConfig) -> Self {
        Self { config, lanes: Mutex::default() }
    }

    /// Takes a place in the key's line. The place is kept over refusals: a call that was refused
    /// is the first to be tried again.
    pub fn call(&self, key: &Key, estimate: Estimate) -> Call {
        let lane = self.lane(key);
        let number = {
            let mut line = lane.line();
            line.next += 1;
            line.next
        };
        let deadline = Instant::now() + self.config.longest_wait;
        Call { lane, number, estimate, deadline }
    }

    /// Waits for one call that is not tried again here.
    ///
    /// # Errors
    /// See [`Call::admit`].
    pub async fn admit(&self, key: &Key, estimate: Estimate) -> Result<Permit> {
        self.call(key, estimate).admit().await
    }

    fn lane(&self, key: &Key) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(key) {
            return Arc::clone(lane);
        }
        if lanes.len() >= MOST_KEYS {
            let idle = lanes.iter().filter(|(_, lane)| Arc::strong_count(lane) == 1);
            let oldest = idle
                .filter_map(|(key, lane)| {
                    let state = lane.state();
                    state.is_idle().then_some((state.used, key.clone()))
                })
                .min();
            if let Some((_, key)) = oldest {
                lanes.remove(&key);
            }
        }
        let lane = Arc::new(Lane {
            key: key.clone(),
            state: Mutex::new(State::new(&self.config, Instant::now())),
            line: Mutex::default(),
        });
        lanes.insert(key.clone(), Arc::clone(&lane));
        lane
    }
}

impl Lane {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the head of the line look again.
    fn wake_head(&self) {
        let waiting = {
            let line = self.line();
            if let Some(head) = line.waiting.values().next() {
                head.notify_one();
            }
            line.waiting.len()
        };
        let shown = self.state().shown();
        let lane = metrics::Lane { provider: &self.key.provider, model: &self.key.model };
        metrics::throttle(lane, (shown.in_flight, waiting), shown.rate);
        metrics::breaker(lane, shown.breaker, shown.denied);
    }

    /// Waiting calls that came before this one.
    fn ahead_of(&self, number: u64) -> usize {
        self.line().waiting.range(..number).count()
    }

    fn refused(&self, fault: Fault) -> Error {
        let Key { provider, model, .. } = &self.key;
        let why = if fault == Fault::Denied {
            "it takes no call: check credentials and account"
        } else {
            "it failed several times in a row"
        };
        Error::new(fault, format!("{provider}, model {model}: {why}"))
    }
}

/// One call's place in the line, over all its tries.
pub struct Call {
    lane: Arc<Lane>,
    number: u64,
    estimate: Estimate,
    deadline: Instant,
}

/// A place that is given up when dropped.
struct Place<'a> {
    lane: &'a Lane,
    number: u64,
    turn: Arc<Notify>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.lane.line().waiting.remove(&self.number);
        self.lane.wake_head();
    }
}

impl Call {
    /// Waits for its turn, at most as long as the call may wait altogether. Dropping the future
    /// gives the place up.
    ///
    /// # Errors
    /// [`Fault::Throttled`] with the time to wait if that is too long to wait here;
    /// [`Fault::Unavailable`] or [`Fault::Denied`] while the breaker is open.
    pub async fn admit(&mut self) -> Result<Permit> {
        let lane = self.lane.as_ref();
        let turn = Arc::new(Notify::new());
        lane.line().waiting.insert(self.number, Arc::clone(&turn));
        let ahead = lane.ahead_of(self.number);
        let place = Place { lane, number: self.number, turn };
        let forecast = lane.state().forecast(Instant::now(), ahead).total();
        let mut closed = None;
        if ahead == 0 || Instant::now() + forecast <= self.deadline {
            closed = self.wait_for_turn(&place).await?;
        }
        match closed {
            Some(sent) => Ok(Permit { lane: Arc::clone(&self.lane), sent: Some(sent) }),
            None => Err(self.put_off("throttled, its turn is too far off")),
        }
    }

    /// What a call comes to that is not waited for any longer; `why` is for the reader.
    pub fn put_off(&self, why: impl std::fmt::Display) -> Error {
        let lane = self.lane.as_ref();
        let forecast = lane.state().forecast(Instant::now(), lane.ahead_of(self.number));
        let wait = forecast.held + forecast.paced.clamp(HIDE.0, HIDE.1);
        let wait = wait.mul_f64(1.0 + fastrand::f64() / 4.0);
        let Key { provider, model, .. } = &lane.key;
        // Without the time: a long streak of deferrals makes it longer, and the row tells it.
        Error::new(Fault::Throttled(Some(wait)), format!("{provider}, model {model}: {why}"))
    }

    /// `None`: it would take too long.
    async fn wait_for_turn(&self, place: &Place<'_>) -> Result<Option<Sent>> {
        let lane = place.lane;
        loop {
            let first = lane.line().waiting.keys().next().copied();
            let mut until = self.deadline;
            if first == Some(place.number) {
                let now = Instant::now();
                let admit = lane.state().admit(now, self.estimate);
                match admit {
                    Admit::Go(sent) => return Ok(Some(sent)),
                    Admit::Refused(fault) => return Err(lane.refused(fault)),
                    Admit::Wait(Some(at)) if at > self.deadline => return Ok(None),
                    Admit::Wait(Some(at)) => until = at,
                    Admit::Wait(None) => {}
                }
            }
            tokio::select! {
                () = place.turn.notified() => {}
                () = tokio::time::sleep_until(until) => {
                    if until == self.deadline {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Whether another try may still be waited for.
    pub fn may_try_again(&self) -> bool {
        Instant::now() < self.deadline
    }
}

/// Leave to make one call. Dropping it counts as giving the call up.
pub struct Permit {
    lane: Arc<Lane>,
    sent: Option<Sent>,
}

impl Permit {
    /// Tells how the call ended. Returns whether the provider counts as down now.
    #[must_use = "a provider that is down must not cost an attempt"]
    pub fn settle(mut self, outcome: &Outcome) -> bool {
        self.end(outcome)
    }

    fn end(&mut self, outcome: &Outcome) -> bool {
        let Some(sent) = self.sent.take() else { return false };
        if matches!(outcome, Outcome::Throttled(_)) {
            let Key { provider, model, .. } = &self.lane.key;
            metrics::refused_calls(metrics::Lane { provider, model });
        }
        let down = self.lane.state().settle(Instant::now(), sent, outcome);
        self.lane.wake_head();
        down
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.end(&Outcome::Abandoned);
    }
}

#[cfg(test)]
mod tests;
