//! The state of one limiter: everything that decides whether the next call may go out. Pure; the
//! caller supplies the time, holds the lock and does the waiting.

use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{BreakerDecision, CircuitBreaker};
use super::bucket::TokenBucket;
use super::headers::{LimitWindow, RateLimitHeaders};
use super::pace::RateEstimator;
use super::window::ConcurrencyWindow;
use super::{CallOutcome, TokenEstimate};
use docmill_core::config::ThrottleConfig;
use docmill_core::failure_streak::FailureStreak;
use docmill_core::fault::Fault;

/// How many seconds' worth of calls may go out at once.
const BURST: f64 = 0.25;
/// Weight of a newly read rate against the earlier ones: resets are rounded.
const NEWEST: f64 = 0.3;

/// Whether the head of the queue may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Admission {
    /// The call may go out now.
    Go(SentCall),
    /// Not before this time; `None`: not before a call under way has ended.
    Wait(Option<Instant>),
    /// The breaker is open: no call goes out.
    Refused(Fault),
}

/// The record of a call that was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SentCall {
    at: Instant,
    trial: bool,
    /// Whether it was the last call that the window had room for.
    filled: bool,
    tokens: f64,
}

/// A limit that the server stated in its headers.
#[derive(Debug, Clone, Copy)]
struct TokenQuota {
    per_second: f64,
    most: f64,
    bucket: TokenBucket,
}

/// The state of a limiter about its provider.
#[derive(Debug)]
pub(super) struct LimiterState {
    pace: RateEstimator,
    bucket: TokenBucket,
    window: ConcurrencyWindow,
    breaker: CircuitBreaker,
    /// Documents whose calls were declined, with no accepted call between.
    declined: FailureStreak,
    requests: Option<f64>,
    tokens: Option<TokenQuota>,
    hold: Option<Instant>,
    /// When a call was answered last.
    answered: Option<Instant>,
    /// Latency of that call.
    latency: Option<Duration>,
    /// First failed call after the last answered one.
    failing: Option<Instant>,
    in_flight: u32,
    pub(super) used: Instant,
}

/// How long a call would wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WaitForecast {
    /// Until the end of the pause that the server asked for.
    pub(super) held: Duration,
    /// After that, for the calls ahead of it at the current pace.
    pub(super) paced: Duration,
}

impl WaitForecast {
    pub(super) fn total(self) -> Duration {
        self.held.saturating_add(self.paced)
    }
}

/// The figures that metrics report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LimiterSnapshot {
    /// Requests a second; `None`: no limit known.
    pub(super) rate: Option<f64>,
    pub(super) in_flight: u32,
    /// State of the breaker: 0 closed, 1 half open, 2 open.
    pub(super) breaker: u8,
    pub(super) denied: bool,
    /// Time since the last answer.
    pub(super) answered: Option<Duration>,
    /// Latency of the last answered call.
    pub(super) latency: Option<Duration>,
    /// Time since the first failed call after it.
    pub(super) failing: Option<Duration>,
}

impl LimiterState {
    pub(super) fn new(config: &ThrottleConfig, now: Instant) -> Self {
        Self {
            pace: RateEstimator::default(),
            bucket: TokenBucket::new(1.0, now),
            window: ConcurrencyWindow::new(config.concurrency),
            breaker: CircuitBreaker::new(config.failures, config.open_for, fastrand::f64()),
            declined: FailureStreak::default(),
            requests: None,
            tokens: None,
            hold: None,
            answered: None,
            latency: None,
            failing: None,
            in_flight: 0,
            used: now,
        }
    }

    /// Requests a second: learned from refusals, never above what headers state.
    fn current_rate(&self) -> Option<f64> {
        match (self.pace.rate(), self.requests) {
            (Some(learned), Some(told)) => Some(learned.min(told)),
            (learned, told) => learned.or(told),
        }
    }

    /// Takes everything a call needs, or says what it has to wait for.
    pub(super) fn admit(&mut self, now: Instant, estimate: TokenEstimate) -> Admission {
        self.used = now;
        self.pace.advance_time(now);
        let pass = self.breaker.check_call(now);
        if let BreakerDecision::No(fault) = pass {
            return Admission::Refused(fault);
        }
        if let Some(until) = self.hold.filter(|until| *until > now) {
            return Admission::Wait(Some(until));
        }
        if !self.window.has_room(self.in_flight) {
            return Admission::Wait(None);
        }
        let wait = self.time_until_tokens(now, estimate);
        if !wait.is_zero() {
            self.pace.mark_short();
            return Admission::Wait(Some(now + wait.min(super::FOREVER)));
        }
        self.bucket.take_tokens(1.0);
        if let Some(quota) = &mut self.tokens {
            quota.bucket.take_tokens(estimate.total_tokens());
        }
        if pass == BreakerDecision::Trial {
            self.breaker.begin_trial();
        }
        self.in_flight = self.in_flight.saturating_add(1);
        let filled = !self.window.has_room(self.in_flight);
        Admission::Go(SentCall {
            at: now,
            trial: pass == BreakerDecision::Trial,
            filled,
            tokens: estimate.total_tokens(),
        })
    }

    /// Time until both buckets have enough.
    fn time_until_tokens(&mut self, now: Instant, estimate: TokenEstimate) -> Duration {
        let requests = match self.current_rate() {
            Some(rate) => {
                let capacity = (rate * BURST).max(1.0);
                self.bucket.refill(now, rate, capacity);
                self.bucket.time_until(1.0, rate, capacity)
            }
            // No limit is known: one call is always allowed.
            None => {
                self.bucket = TokenBucket::new(1.0, now);
                Duration::ZERO
            }
        };
        let tokens = self.tokens.as_mut().map_or(Duration::ZERO, |quota| {
            quota.bucket.refill(now, quota.per_second, quota.most);
            quota.bucket.time_until(estimate.total_tokens(), quota.per_second, quota.most)
        });
        requests.max(tokens)
    }

    /// How long a call would wait behind `ahead` others, as far as is known.
    pub(super) fn forecast_wait(&self, now: Instant, ahead: usize) -> WaitForecast {
        let held = self.hold.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let ahead = f64::from(u32::try_from(ahead).unwrap_or(u32::MAX));
        let paced = self
            .current_rate()
            .map_or(0.0, |rate| (ahead + 1.0 - self.bucket.level()).max(0.0) / rate);
        let paced = Duration::try_from_secs_f64(paced).unwrap_or(super::FOREVER);
        WaitForecast { held: held.min(super::FOREVER), paced: paced.min(super::FOREVER) }
    }

    /// Records the end of a call. Returns whether the provider counts as down.
    pub(super) fn record_outcome(
        &mut self,
        now: Instant,
        sent: SentCall,
        outcome: &CallOutcome,
    ) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.used = now;
        self.time_outcome(now, sent, outcome);
        match outcome {
            CallOutcome::Answered { limits, tokens } => {
                self.declined.end_by_success(now);
                self.breaker.record_answer();
                self.pace.record_accepted(now);
                self.window.record_answer(sent.filled);
                // The estimate was taken at admission: book only the difference.
                if let (Some(quota), Some(used)) = (&mut self.tokens, tokens) {
                    quota.bucket.take_tokens(*used - sent.tokens);
                }
                self.learn_limits(now, limits);
                false
            }
            CallOutcome::Throttled(told) => {
                self.breaker.record_answer();
                self.record_throttling(now, sent, *told);
                false
            }
            CallOutcome::Failed => {
                self.window.shrink();
                self.breaker.record_failure(now)
            }
            CallOutcome::Denied => {
                self.breaker.record_denial(now);
                true
            }
            CallOutcome::Declined(document) => {
                self.pace.record_accepted(now);
                self.window.record_answer(sent.filled);
                let is_shared =
                    document.is_some_and(|document| self.declined.add_failure(document, now));
                if is_shared {
                    self.breaker.deny_calls(now);
                } else {
                    self.breaker.record_answer();
                }
                is_shared
            }
            CallOutcome::DaySpent(wait) => {
                self.breaker.record_spent_day(now, *wait);
                true
            }
            CallOutcome::Abandoned => {
                if sent.trial {
                    self.breaker.abandon_trial(now);
                }
                false
            }
        }
    }

    /// When calls are answered and how quickly, and since when they fail.
    fn time_outcome(&mut self, now: Instant, sent: SentCall, outcome: &CallOutcome) {
        match outcome {
            CallOutcome::Answered { .. } => {
                self.answered = Some(now);
                self.latency = Some(now.saturating_duration_since(sent.at));
                self.failing = None;
            }
            CallOutcome::Failed | CallOutcome::Denied | CallOutcome::Declined(_) => {
                self.failing.get_or_insert(now);
            }
            CallOutcome::Throttled(_) | CallOutcome::DaySpent(_) | CallOutcome::Abandoned => {}
        }
    }

    fn record_throttling(&mut self, now: Instant, sent: SentCall, told: Option<Duration>) {
        let known = self.pace.rate().is_some();
        if self.pace.record_refused(now, sent.at, told) {
            self.bucket.cap_level(0.0);
            // The pace was known and did not prevent this, and the window was full: so there were
            // too many calls at the same time rather than too many a second.
            if known && sent.filled {
                self.window.shrink();
            }
        }
        if let Some(told) = told {
            let until = now + told.min(super::FOREVER);
            self.hold = Some(self.hold.map_or(until, |before| before.max(until)));
        }
    }

    /// Learns limits from the headers of an answer.
    fn learn_limits(&mut self, now: Instant, limits: &RateLimitHeaders) {
        if let Some(told) = limits.requests {
            if let Some(rate) = told.per_second() {
                self.requests = Some(self.requests.map_or(rate, |old| smooth_rate(old, rate)));
            }
            // Usage by others of the same key is not available to us either.
            self.bucket.cap_level(told.remaining);
        }
        if let Some(told) = limits.tokens {
            self.tokens = updated_quota(self.tokens, told, now);
        }
        if let Some(wait) = limits.exhausted_for {
            let until = now + wait;
            self.hold = Some(self.hold.map_or(until, |before| before.max(until)));
        }
    }

    /// Whether anybody was served within this time.
    pub(super) fn has_answered_within(&self, now: Instant, time: Duration) -> bool {
        self.answered.is_some_and(|at| now.saturating_duration_since(at) <= time)
    }

    /// Whether no call is let through but a trial.
    pub(super) fn is_down(&self) -> bool {
        self.breaker.is_open()
    }

    pub(super) fn snapshot(&self, now: Instant) -> LimiterSnapshot {
        let (breaker, denied) = self.breaker.metric_state(now);
        LimiterSnapshot {
            rate: self.current_rate(),
            in_flight: self.in_flight,
            breaker,
            denied,
            answered: self.answered.map(|at| now.saturating_duration_since(at)),
            latency: self.latency,
            failing: self.failing.map(|at| now.saturating_duration_since(at)),
        }
    }

    /// Whether forgetting this state would lose nothing but what was learned.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }
}

fn smooth_rate(old: f64, new: f64) -> f64 {
    old + NEWEST * (new - old)
}

fn updated_quota(old: Option<TokenQuota>, told: LimitWindow, now: Instant) -> Option<TokenQuota> {
    let read = told.per_second();
    let per_second = match (old.map(|old| old.per_second), read) {
        (Some(old), Some(new)) => smooth_rate(old, new),
        (old, new) => old.or(new)?,
    };
    let mut bucket = old.map_or_else(|| TokenBucket::new(told.remaining, now), |old| old.bucket);
    bucket.cap_level(told.remaining);
    Some(TokenQuota { per_second, most: told.limit, bucket })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second from the last call on, so that a bucket has what it may hold.
    const LATER: Duration = Duration::from_secs(1);

    fn told(limit: f64, remaining: f64, seconds: u64) -> LimitWindow {
        LimitWindow { limit, remaining, reset: Duration::from_secs(seconds) }
    }

    fn answer_of(limits: RateLimitHeaders, tokens: Option<f64>) -> CallOutcome {
        CallOutcome::Answered { limits, tokens }
    }

    fn sent_call(state: &mut LimiterState, now: Instant, input: u64) -> SentCall {
        let admission = state.admit(now, TokenEstimate { input, output: 0 });
        let Admission::Go(sent) = admission else { panic!("{admission:?}") };
        sent
    }

    #[test]
    fn a_new_reading_of_the_rate_moves_the_learned_one_by_its_weight() {
        let now = Instant::now();
        let mut state = LimiterState::new(&ThrottleConfig::default(), now);
        // 600 missing within 60 s, then 600 within 30 s.
        for (seconds, expected) in [(60, 10.0), (30, 13.0), (30, 15.1)] {
            let limits = RateLimitHeaders {
                requests: Some(told(601.0, 1.0, seconds)),
                tokens: Some(told(601.0, 1.0, seconds)),
                exhausted_for: None,
            };
            state.learn_limits(now, &limits);
            let rate = state.current_rate().unwrap();
            assert!((rate - expected).abs() < 1e-9, "{rate}");
            let tokens = state.tokens.unwrap().per_second;
            assert!((tokens - expected).abs() < 1e-9, "{tokens}");
        }
    }

    #[test]
    fn usage_above_the_estimate_is_booked_and_the_unused_rest_given_back() {
        for (used, left) in [(150.0, 850.0), (100.0, 900.0), (40.0, 960.0)] {
            let now = Instant::now();
            let mut state = LimiterState::new(&ThrottleConfig::default(), now);
            let bucket = TokenBucket::new(1_000.0, now);
            state.tokens = Some(TokenQuota { per_second: 1.0, most: 1_000.0, bucket });
            let sent = sent_call(&mut state, now, 100);
            state.record_outcome(now, sent, &answer_of(RateLimitHeaders::default(), Some(used)));
            let level = state.tokens.unwrap().bucket.level();
            assert!((level - left).abs() < 1e-9, "{used}: {level}");
        }
    }

    #[test]
    fn a_pause_is_kept_to_its_end_and_a_shorter_one_does_not_shorten_it() {
        let now = Instant::now();
        let mut state = LimiterState::new(&ThrottleConfig::default(), now);
        let wait = |seconds| RateLimitHeaders {
            exhausted_for: Some(Duration::from_secs(seconds)),
            ..RateLimitHeaders::default()
        };
        let sent = sent_call(&mut state, now, 0);
        state.record_outcome(now, sent, &answer_of(wait(10), None));
        state.learn_limits(now, &wait(5));
        let end = now + Duration::from_secs(10);
        let early = state.admit(end - LATER, TokenEstimate::default());
        assert_eq!(early, Admission::Wait(Some(end)));
        assert_eq!(state.forecast_wait(end - LATER, 0).held, LATER);
        sent_call(&mut state, end, 0);
    }

    #[test]
    fn a_throttled_call_pauses_the_next_ones_for_its_retry_after_and_a_shorter_one_changes_nothing()
    {
        let now = Instant::now();
        let mut state = LimiterState::new(&ThrottleConfig::default(), now);
        let calls = [(); 3].map(|()| sent_call(&mut state, now, 0));
        let end = now + LATER * 10;
        for (sent, told) in calls.into_iter().zip([None, Some(LATER * 10), Some(LATER * 5)]) {
            assert!(!state.record_outcome(now, sent, &CallOutcome::Throttled(told)));
            let held = if told.is_some() { end - now } else { Duration::ZERO };
            assert_eq!(state.forecast_wait(now, 0).held, held, "{told:?}");
        }
        let early = state.admit(end - LATER, TokenEstimate::default());
        assert_eq!(early, Admission::Wait(Some(end)));
        assert!(
            !matches!(state.admit(end, TokenEstimate::default()), Admission::Wait(Some(it)) if it == end)
        );
    }

    #[test]
    fn after_a_breaker_one_call_is_the_trial_and_only_that_one_gives_it_up() {
        let open_for = LATER * 30;
        let config = ThrottleConfig { failures: 1, open_for, ..ThrottleConfig::default() };
        let now = Instant::now();
        let mut state = LimiterState::new(&config, now);
        let [failed, earlier] = [(); 2].map(|()| sent_call(&mut state, now, 0));
        state.record_outcome(now, failed, &CallOutcome::Failed);
        let refused = Admission::Refused(Fault::Unavailable);
        assert_eq!(state.admit(now, TokenEstimate::default()), refused);
        let later = now + open_for * 2;
        for _ in 0..2 {
            let trial = sent_call(&mut state, later, 0);
            assert_eq!(state.admit(later, TokenEstimate::default()), refused, "one at a time");
            state.record_outcome(later, earlier, &CallOutcome::Abandoned);
            assert_eq!(state.admit(later, TokenEstimate::default()), refused, "it was no trial");
            state.record_outcome(later, trial, &CallOutcome::Abandoned);
        }
        let trial = sent_call(&mut state, later, 0);
        state.record_outcome(later, trial, &answer_of(RateLimitHeaders::default(), None));
        assert!(!state.is_down());
    }

    #[test]
    fn the_wait_of_a_call_follows_from_the_calls_ahead_the_rate_and_the_remainder() {
        let now = Instant::now();
        let mut state = LimiterState::new(&ThrottleConfig::default(), now);
        assert_eq!(state.forecast_wait(now, 7).paced, Duration::ZERO, "no limit is known");
        state.requests = Some(4.0);
        // One call is left at the beginning.
        for (ahead, seconds) in [(0, 0.0), (1, 0.25), (8, 2.0)] {
            let paced = state.forecast_wait(now, ahead).paced.as_secs_f64();
            assert!((paced - seconds).abs() < 1e-9, "{ahead}: {paced}");
        }
    }

    #[test]
    fn a_quarter_of_a_second_of_calls_may_go_out_at_once() {
        let now = Instant::now();
        for (rate, burst) in [(2.0, 1), (4.0, 1), (12.0, 3), (40.0, 10)] {
            let mut state = LimiterState::new(&ThrottleConfig::default(), now);
            state.requests = Some(rate);
            let later = now + LATER * 60;
            let admitted = (0..100)
                .take_while(|_| {
                    let admission = state.admit(later, TokenEstimate::default());
                    matches!(admission, Admission::Go(_))
                })
                .count();
            assert_eq!(admitted, burst, "{rate} a second");
            let next = state.admit(later, TokenEstimate::default());
            let Admission::Wait(Some(until)) = next else { panic!("{rate} a second: {next:?}") };
            let wait = (until - later).as_secs_f64();
            assert!((wait * rate - 1.0).abs() < 1e-6, "{rate} a second: {wait}");
        }
    }

    #[test]
    fn a_limiter_is_idle_and_down_as_its_calls_and_its_breaker_are() {
        let config = ThrottleConfig { failures: 1, ..ThrottleConfig::default() };
        let now = Instant::now();
        let mut state = LimiterState::new(&config, now);
        assert!(state.is_idle() && !state.is_down());
        let sent = sent_call(&mut state, now, 0);
        assert!(!state.is_idle() && !state.is_down());
        assert!(state.record_outcome(now, sent, &CallOutcome::Failed));
        assert!(state.is_idle() && state.is_down());
    }
}
