//! The throttle governor: how fast a provider may be called, learned while calling it.
//!
//! One limiter for each provider, account and model, for page reading and language models alike. A
//! limiter has a queue (old jobs first, tenants and priorities in turn: `line`), a pace in requests a
//! second learned from 429s, a ceiling and a token bucket learned from headers, a window of calls under
//! way, a pause that the server asked for and that every job shares, and a circuit breaker.
//!
//! A wait up to `throttle.longest_wait` is waited here; a longer one comes back with the time after
//! which to come again, so that the job hides its message and gives its slot and its attempt back:
//! [`Fault::InLine`] while the provider serves others, [`Fault::Throttled`] while it serves nobody. The
//! time is half of the forecast for the job's place, those that were put off included; so a line of
//! any length is served in the order of age. Processes know nothing of each other; each learns from what
//! it is answered, and messages come back to any of them. Not promised: that no call is ever refused
//! (refusals are how a limit is found), nor an order beyond that of age within a factor of two.

mod breaker;
mod bucket;
mod governed_call;
mod headers;
mod limiter_state;
mod line;
mod pace;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod turns;
mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

pub use governed_call::{GovernedAnswer, GovernedCall};
pub(crate) use headers::header_text;
pub use headers::{LimitWindow, RateLimitHeaders};

use crate::body_size::BodyTooLarge;
use docmill_core::config::ThrottleConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::model::{IngestionId, LaneBreaker, ProviderLane};
use docmill_core::turn::{self, JobTurn};
use docmill_core::work_clock::{self, wait_off_clock};
use limiter_state::{Admission, LimiterSnapshot, LimiterState, SentCall};
use line::{CallPlace, WaitingLines};

/// Most keys that are remembered; the one unused for longest is forgotten first.
const MAX_KEYS: usize = 256;
/// No wait is longer.
const FOREVER: Duration = Duration::from_secs(24 * 3600);
/// A message is hidden for no less.
const MIN_HIDE: Duration = Duration::from_secs(1);
/// A call far back in line waits here as well while those that are here would be served within this
/// time: the provider is never idle because older jobs are away.
const SHORT_LINE: Duration = Duration::from_secs(5);

/// The provider, account and model that share one limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimiterKey {
    /// Name of the provider, e.g. `openai`.
    pub provider: String,
    /// Tells accounts and servers apart; never a credential itself.
    pub account: String,
    /// The model or processor.
    pub model: String,
}

/// The expected usage of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// Tokens of the prompt.
    pub input: u64,
    /// Most tokens of the reply: vendors count them before there are any.
    pub output: u64,
}

impl TokenEstimate {
    #[expect(clippy::cast_precision_loss, reason = "tokens are far below 2^52")]
    fn total_tokens(self) -> f64 {
        self.input.saturating_add(self.output) as f64
    }
}

/// How a call ended, as far as the governor cares.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// With an answer, be it a refusal of this request.
    Answered {
        /// The limits that the headers of the answer stated.
        limits: RateLimitHeaders,
        /// Tokens used, if known.
        tokens: Option<f64>,
    },
    /// 429 and its kin, perhaps with a time to wait.
    Throttled(Option<Duration>),
    /// No answer, or one that says that the provider is not well.
    Failed,
    /// Wrong credentials, money out: no call can succeed.
    Denied,
    /// An answer that refuses the form of the call without a word about its content. Of several
    /// different documents in a row it counts as denied.
    Declined(Option<IngestionId>),
    /// The provider's quota of a day is spent: no call can succeed before this time has passed.
    DaySpent(Duration),
    /// Given up by the caller before its end.
    Abandoned,
}

impl CallOutcome {
    /// The outcome that a failed call counts as. A body that was too large is an answer about this
    /// request: its parts may pass.
    pub fn from_error(error: &Error) -> Self {
        match BodyTooLarge::is_cause_of(error) {
            true => Self::Answered { limits: RateLimitHeaders::default(), tokens: None },
            false => Self::from_fault(error.fault),
        }
    }

    /// The outcome that a failed call with this fault counts as.
    pub fn from_fault(fault: Fault) -> Self {
        match fault {
            Fault::Throttled(told) => Self::Throttled(told),
            Fault::Transient | Fault::Unavailable => Self::Failed,
            // Without the right setting no call will be answered either.
            Fault::Denied | Fault::Misconfigured => Self::Denied,
            Fault::OverBudget(wait) => Self::DaySpent(wait),
            // Our own doing: it says nothing about the provider.
            Fault::Interrupted
            | Fault::ClaimLost
            | Fault::Batched(_)
            | Fault::InLine(_)
            | Fault::Paused => Self::Abandoned,
            Fault::Internal | Fault::Rejected => Self::Declined(work_clock::current_document()),
            Fault::Missing => Self::Answered { limits: RateLimitHeaders::default(), tokens: None },
        }
    }
}

/// All rate limiters of this process.
pub struct Governor {
    config: ThrottleConfig,
    limiters: Mutex<HashMap<LimiterKey, Arc<RateLimiter>>>,
}

struct RateLimiter {
    key: LimiterKey,
    state: Mutex<LimiterState>,
    lines: Mutex<WaitingLines>,
}

impl Governor {
    /// Nothing is known yet.
    pub fn new(config: ThrottleConfig) -> Self {
        Self { config, limiters: Mutex::default() }
    }

    /// Takes a place in the key's queue, as the current job's turn says ([`turn::current_turn`]). The
    /// place is kept over refusals: a call that was refused is the first of its line to be tried again.
    pub fn enqueue_call(&self, key: &LimiterKey, estimate: TokenEstimate) -> QueuedCall {
        let limiter = self.limiter(key);
        let turn = turn::current_turn();
        let place = limiter.lines().take_place(turn.as_ref());
        let deadline = Instant::now() + self.config.longest_wait;
        let waited = turn.map(|turn| turn.waited).unwrap_or_default();
        QueuedCall { limiter, place, estimate, deadline, waited }
    }

    /// Waits for one call that is not tried again here.
    ///
    /// # Errors
    /// See [`QueuedCall::admit`].
    pub async fn admit(&self, key: &LimiterKey, estimate: TokenEstimate) -> Result<LimiterPermit> {
        self.enqueue_call(key, estimate).admit().await
    }

    /// Whether the provider counts as down or denies us, as far as is known: no call is let through
    /// but one trial now and then.
    pub fn is_down(&self, key: &LimiterKey) -> bool {
        let limiters = self.limiters.lock();
        limiters.get(key).is_some_and(|limiter| limiter.state().is_down())
    }

    /// How calls go with each provider and model that was called, in their order; accounts apart.
    pub fn list_lanes(&self) -> Vec<ProviderLane> {
        let limiters: Vec<_> = self.limiters.lock().values().map(Arc::clone).collect();
        let mut lanes: Vec<ProviderLane> =
            limiters.iter().map(|limiter| limiter.describe()).collect();
        lanes.sort_by(|a, b| (&a.provider, &a.model).cmp(&(&b.provider, &b.model)));
        lanes
    }

    fn limiter(&self, key: &LimiterKey) -> Arc<RateLimiter> {
        let mut limiters = self.limiters.lock();
        if let Some(limiter) = limiters.get(key) {
            return Arc::clone(limiter);
        }
        if limiters.len() >= MAX_KEYS {
            let idle = limiters.iter().filter(|(_, limiter)| Arc::strong_count(limiter) == 1);
            let oldest = idle
                .filter_map(|(key, limiter)| {
                    let state = limiter.state();
                    state.is_idle().then_some((state.used, key.clone()))
                })
                .min();
            if let Some((_, key)) = oldest {
                limiters.remove(&key);
            }
        }
        let limiter = Arc::new(RateLimiter {
            key: key.clone(),
            state: Mutex::new(LimiterState::new(&self.config, Instant::now())),
            lines: Mutex::default(),
        });
        limiters.insert(key.clone(), Arc::clone(&limiter));
        limiter
    }
}

impl RateLimiter {
    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock()
    }

    fn lines(&self) -> MutexGuard<'_, WaitingLines> {
        self.lines.lock()
    }

    fn describe(&self) -> ProviderLane {
        let waiting = self.lines().count_waiting();
        // A breaker does not report the end of its time; without calls this publishes it.
        let shown = self.publish(waiting);
        ProviderLane {
            provider: self.key.provider.clone(),
            model: self.key.model.clone(),
            in_flight: shown.in_flight,
            waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
            rate: shown.rate,
            breaker: match shown.breaker {
                0 => LaneBreaker::Closed,
                1 => LaneBreaker::HalfOpen,
                _ => LaneBreaker::Open,
            },
            denied: shown.denied,
            answered_s: shown.answered.map(|time| time.as_secs_f64()),
            answer_ms: shown.latency.and_then(|time| u64::try_from(time.as_millis()).ok()),
            failing_s: shown.failing.map(|time| time.as_secs_f64()),
        }
    }

    /// Wakes the head of the queue, so that it checks again whether it may go.
    fn wake_first(&self) {
        let waiting = {
            let lines = self.lines();
            lines.wake_first();
            lines.count_waiting()
        };
        self.publish(waiting);
    }

    /// Writes the gauges, and returns what they say.
    fn publish(&self, waiting: usize) -> LimiterSnapshot {
        let shown = self.state().snapshot(Instant::now());
        let limiter =
            metrics::LimiterLabels { provider: &self.key.provider, model: &self.key.model };
        metrics::set_throttle(limiter, shown.in_flight, waiting, shown.rate);
        metrics::set_breaker(limiter, shown.breaker, shown.denied);
        shown
    }

    fn refusal_error(&self, fault: Fault) -> Error {
        let LimiterKey { provider, model, .. } = &self.key;
        let why = match fault {
            Fault::Denied => {
                "it takes no call: check credentials, account, and its last refusals in the log"
            }
            Fault::OverBudget(_) => "its quota of the day is spent",
            _ => "it failed several times in a row",
        };
        Error::new(fault, format!("{provider}, model {model}: {why}"))
    }
}

/// One call's place in the queue, over all its tries.
pub struct QueuedCall {
    limiter: Arc<RateLimiter>,
    place: CallPlace,
    estimate: TokenEstimate,
    deadline: Instant,
    /// The age of its job.
    waited: Duration,
}

/// A place that is given up when dropped.
struct LimiterTicket<'a> {
    limiter: &'a RateLimiter,
    place: &'a CallPlace,
    turn: Arc<Notify>,
}

impl Drop for LimiterTicket<'_> {
    fn drop(&mut self) {
        self.limiter.lines().leave(self.place);
        self.limiter.wake_first();
    }
}

impl QueuedCall {
    /// Waits for its turn, at most as long as the call may wait altogether. Dropping the future
    /// gives the place up.
    ///
    /// # Errors
    /// [`Fault::InLine`] or [`Fault::Throttled`] with the time to wait if that is too long to wait
    /// here; [`Fault::Unavailable`] or [`Fault::Denied`] while the breaker is open.
    pub async fn admit(&mut self) -> Result<LimiterPermit> {
        let limiter = self.limiter.as_ref();
        let (turn, now) = (Arc::new(Notify::new()), Instant::now());
        let ahead = {
            let mut lines = limiter.lines();
            lines.enter(&self.place, Arc::clone(&turn), now);
            lines.count_ahead(&self.place, now)
        };
        let ticket = LimiterTicket { limiter, place: &self.place, turn };
        let left = self.deadline.saturating_duration_since(now);
        let (here, with_all) = {
            let state = limiter.state();
            (state.forecast_wait(now, ahead.waiting), state.forecast_wait(now, ahead.all))
        };
        let is_near = with_all.total() <= left || here.total() <= left.min(SHORT_LINE);
        let mut sent = None;
        if ahead.waiting == 0 || is_near {
            sent = wait_off_clock(self.wait_for_turn(&ticket)).await?;
        }
        match sent {
            Some(sent) => {
                limiter.lines().note_sent(&self.place);
                Ok(LimiterPermit { limiter: Arc::clone(&self.limiter), sent: Some(sent) })
            }
            None => Err(self.deferral_error("throttled, its turn is too far off")),
        }
    }

    /// The error of a call that is no longer waited for; `why` is for people. Its job is counted as
    /// put off.
    pub fn deferral_error(&self, why: impl std::fmt::Display) -> Error {
        let (limiter, now) = (self.limiter.as_ref(), Instant::now());
        let ahead = limiter.lines().count_ahead(&self.place, now);
        let (forecast, serves) = {
            let state = limiter.state();
            (
                state.forecast_wait(now, ahead.all),
                state.has_answered_within(now, turn::SERVED_LATELY),
            )
        };
        let wait = JobTurn::put_off_time(self.waited, forecast.paced, MIN_HIDE);
        let wait = (forecast.held + wait).mul_f64(1.0 + fastrand::f64() / 4.0);
        limiter.lines().note_put_off(&self.place, now + wait);
        let LimiterKey { provider, model, .. } = &limiter.key;
        let fault = if serves { Fault::InLine(wait) } else { Fault::Throttled(Some(wait)) };
        // Without the time: the row has it.
        Error::new(fault, format!("{provider}, model {model}: {why}"))
    }

    /// `None`: it would take too long.
    async fn wait_for_turn(&self, ticket: &LimiterTicket<'_>) -> Result<Option<SentCall>> {
        let limiter = ticket.limiter;
        loop {
            let is_first = limiter.lines().is_first(&self.place);
            let mut until = self.deadline;
            if is_first {
                let now = Instant::now();
                let admit = limiter.state().admit(now, self.estimate);
                match admit {
                    Admission::Go(sent) => return Ok(Some(sent)),
                    Admission::Refused(fault) => return Err(limiter.refusal_error(fault)),
                    Admission::Wait(Some(at)) if at >= self.deadline => return Ok(None),
                    Admission::Wait(Some(at)) => until = at,
                    Admission::Wait(None) => {}
                }
            }
            tokio::select! {
                () = ticket.turn.notified() => {}
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
pub struct LimiterPermit {
    limiter: Arc<RateLimiter>,
    sent: Option<SentCall>,
}

impl LimiterPermit {
    /// Tells how the call ended. Returns whether the provider counts as down now.
    #[must_use = "a provider that is down must not cost an attempt"]
    pub fn report_outcome(mut self, outcome: &CallOutcome) -> bool {
        self.finish_call(outcome)
    }

    fn finish_call(&mut self, outcome: &CallOutcome) -> bool {
        let Some(sent) = self.sent.take() else { return false };
        if matches!(outcome, CallOutcome::Throttled(_)) {
            let LimiterKey { provider, model, .. } = &self.limiter.key;
            metrics::refused_calls(metrics::LimiterLabels { provider, model });
        }
        let down = self.limiter.state().record_outcome(Instant::now(), sent, outcome);
        self.limiter.wake_first();
        down
    }
}

impl Drop for LimiterPermit {
    fn drop(&mut self) {
        self.finish_call(&CallOutcome::Abandoned);
    }
}

#[cfg(test)]
mod tests;
