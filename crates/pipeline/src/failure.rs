//! The failure table: the consequence of a failed attempt, pure, with limits and delays from the
//! configuration.

use std::time::Duration;

use docmill_core::config::RetryConfig;
use docmill_core::fault::Fault;
use docmill_core::model::OutcomeReason;
use docmill_core::regression::{self, FixToggle};

/// A repeated deferral lasts at least this part of the time deferred so far. A limit of hours then
/// costs a message tens of receives, not thousands; queues count receives.
const STREAK: u32 = 8;

/// The inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub struct RetryAttempt {
    /// Attempts that count, this one included, since the last reopening.
    pub number: u32,
    /// How long the current streak of deferrals has lasted.
    pub deferred_for: Option<Duration>,
    /// A random number in 0..1, for the jitter.
    pub jitter: f64,
}

/// The decision about the ingestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Another attempt after this time.
    Again {
        /// Whether this attempt counts.
        counted: bool,
        /// How long to wait before the next attempt; zero: at once.
        after: Duration,
    },
    /// The ingestion ends for good, for this reason.
    End(OutcomeReason),
    /// Nothing is written: another claim, or an operator, decides.
    LeaveToOwner,
}

/// Chooses what follows an attempt that ended in `fault`.
pub fn decide_retry(fault: Fault, attempt: RetryAttempt, config: &RetryConfig) -> RetryDecision {
    let counted = |limit: u32, reason: OutcomeReason, after: Duration| {
        if attempt.number >= limit {
            RetryDecision::End(reason)
        } else {
            RetryDecision::Again { counted: true, after }
        }
    };
    match fault {
        Fault::Transient => counted(
            config.transient_attempts,
            OutcomeReason::Transient,
            backoff_delay(attempt, config),
        ),
        Fault::Internal => counted(
            config.internal_attempts,
            OutcomeReason::Internal,
            backoff_delay(attempt, config),
        ),
        Fault::Missing => {
            counted(config.missing_attempts, OutcomeReason::Missing, config.missing_delay)
        }
        // A backend that rejects without a code of its own: the bytes cannot be used.
        Fault::Rejected => RetryDecision::End(OutcomeReason::Corrupt),
        Fault::Throttled(told) => {
            let after =
                told.unwrap_or_else(|| spread_delay(config.throttled_delay, attempt.jitter));
            let streak = attempt.deferred_for.unwrap_or_default();
            defer_uncounted(after.max(streak / STREAK), attempt, config)
        }
        Fault::Unavailable => {
            defer_uncounted(spread_delay(config.unavailable_delay, attempt.jitter), attempt, config)
        }
        Fault::Denied | Fault::Misconfigured | Fault::Paused => {
            let after = spread_delay(config.unavailable_delay, attempt.jitter);
            RetryDecision::Again { counted: false, after }
        }
        Fault::OverBudget(until) | Fault::Batched(until) | Fault::InLine(until) => {
            RetryDecision::Again { counted: false, after: until }
        }
        Fault::Interrupted => RetryDecision::Again { counted: false, after: Duration::ZERO },
        Fault::ClaimLost => RetryDecision::LeaveToOwner,
    }
}

/// The decision after a timeout. The next attempt reuses the stored progress, so a long document
/// completes over several attempts: none of them counts. An attempt without progress would end the
/// same way each time, so it counts.
pub fn decide_timeout(has_progress: bool) -> RetryDecision {
    if has_progress && !regression::is_off(FixToggle::KeptProgress) {
        RetryDecision::Again { counted: false, after: Duration::ZERO }
    } else {
        RetryDecision::End(OutcomeReason::Timeout)
    }
}

/// Defers without counting the attempt, unless that has gone on for too long.
fn defer_uncounted(after: Duration, attempt: RetryAttempt, config: &RetryConfig) -> RetryDecision {
    if attempt.deferred_for.is_some_and(|streak| streak > config.max_deferral) {
        return RetryDecision::End(OutcomeReason::DeferredTooLong);
    }
    RetryDecision::Again { counted: false, after: after.min(config.max_deferral) }
}

/// Exponential with full jitter: uniform in 0..base·2^(n-1), capped
/// (<https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>).
fn backoff_delay(attempt: RetryAttempt, config: &RetryConfig) -> Duration {
    let doublings = attempt.number.saturating_sub(1).min(16);
    let ceiling = config.base_delay.saturating_mul(1 << doublings).min(config.longest_delay);
    ceiling.mul_f64(attempt.jitter.clamp(0.0, 1.0))
}

/// Between the delay and a quarter more, so that simultaneous deferrals do not return together.
fn spread_delay(delay: Duration, jitter: f64) -> Duration {
    delay.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn again(counted: bool, after: u64) -> RetryDecision {
        RetryDecision::Again { counted, after: S(after) }
    }

    #[test]
    fn the_failure_table() {
        let (whole, long) = (Some(S(8 * 3600)), Some(S(8 * 3600 + 1)));
        #[rustfmt::skip]
        let table = [
            // name                                     fault                       n  deferred  expected
            ("a first timeout waits up to 15 s",        Fault::Transient,            1, None,  again(true, 15)),
            ("each further one up to twice as long",    Fault::Transient,            3, None,  again(true, 60)),
            ("never longer than 15 min",                Fault::Transient,            7, None,  again(true, 900)),
            ("the eighth is the last",                  Fault::Transient,            8, None,  RetryDecision::End(OutcomeReason::Transient)),
            ("our own bug gets three chances",          Fault::Internal,             2, None,  again(true, 30)),
            ("and no fourth",                           Fault::Internal,             3, None,  RetryDecision::End(OutcomeReason::Internal)),
            ("a missing object may still come",         Fault::Missing,              1, None,  again(true, 900)),
            ("four times",                              Fault::Missing,              4, None,  RetryDecision::End(OutcomeReason::Missing)),
            ("a rejected input ends at once",           Fault::Rejected,             1, None,  RetryDecision::End(OutcomeReason::Corrupt)),
            ("a polite delay is obeyed, uncounted",     Fault::Throttled(Some(S(7))), 7, None, again(false, 7)),
            ("an hour's streak waits the eighth of it", Fault::Throttled(Some(S(7))), 1, Some(S(3600)), again(false, 450)),
            ("a rude one gets ours",                    Fault::Throttled(None),      1, None,  again(false, 75)),
            ("an outage never uses an attempt",         Fault::Unavailable,          99, None, again(false, 75)),
            ("for as long as it may",                   Fault::Unavailable,          1, whole, again(false, 75)),
            ("but not for ever",                        Fault::Unavailable,          1, long,  RetryDecision::End(OutcomeReason::DeferredTooLong)),
            ("nor does throttling",                     Fault::Throttled(None),      1, long,  RetryDecision::End(OutcomeReason::DeferredTooLong)),
            ("what a person must lift never ends it",   Fault::Denied,               1, long,  again(false, 75)),
            ("nor a setting that a person must mend",   Fault::Misconfigured,        1, long,  again(false, 75)),
            ("nor an operator's pause",                 Fault::Paused,               1, long,  again(false, 75)),
            ("a spent budget waits for the next day, however long", Fault::OverBudget(S(40_000)), 9, long, again(false, 40_000)),
            ("what is in a batch waits for its answer, however long", Fault::Batched(S(90_000)), 9, long, again(false, 90_000)),
            ("a turn at a provider that serves others is waited for without end", Fault::InLine(S(9)), 9, long, again(false, 9)),
            ("a stopped job goes on at once elsewhere", Fault::Interrupted,          99, long, again(false, 0)),
            ("what is another claim's is left to it",   Fault::ClaimLost,            99, long, RetryDecision::LeaveToOwner),
        ];
        for (name, fault, number, deferred_for, expected) in table {
            let attempt = RetryAttempt { number, deferred_for, jitter: 1.0 };
            assert_eq!(decide_retry(fault, attempt, &RetryConfig::default()), expected, "{name}");
        }
    }

    #[test]
    fn the_jitter_spreads_a_backoff_down_to_nothing() {
        let attempt = RetryAttempt { number: 5, deferred_for: None, jitter: 0.0 };
        assert_eq!(
            decide_retry(Fault::Transient, attempt, &RetryConfig::default()),
            again(true, 0)
        );
    }
}
