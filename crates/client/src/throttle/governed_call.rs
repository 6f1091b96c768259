//! One call to a provider behind the governor, for page reading and language models alike.
//!
//! A refused call is tried again here while the wait is short, ahead of those that arrived later; a
//! longer wait is handed up as throttled. A call that failed quickly with a transient error is
//! repeated as often as its caller says. One that ran into its time limit is not: it may be charged
//! already, and its wait was long.

use std::time::Duration;

use tokio::time::Instant;

use super::{CallOutcome, Governor, LimiterKey, RateLimitHeaders, TokenEstimate};
use docmill_core::fault::{Fault, Result};
use docmill_core::retry::{Jitter, RetryBackoff};

/// The waits of a call that failed quickly with a transient error.
const WAITS: RetryBackoff =
    RetryBackoff::doubling(Duration::from_millis(500)).with_jitter(Jitter::Quarter);
/// A call that failed after longer than this is not repeated here.
const QUICK: Duration = Duration::from_secs(20);

/// A call that is to be made no faster than its provider takes it.
pub struct GovernedCall<'a> {
    /// The governor of its pace.
    pub governor: &'a Governor,
    /// The limiter that the call counts against.
    pub key: &'a LimiterKey,
    /// Its expected usage.
    pub estimate: TokenEstimate,
    /// How often it is repeated after it failed quickly with a transient error.
    pub quick_retries: u32,
}

/// A provider's answer, with the limits in it.
pub struct GovernedAnswer<T> {
    /// The value that the call returned.
    pub value: T,
    /// The limits that the headers of the answer stated.
    pub limits: RateLimitHeaders,
    /// Tokens used, if known.
    pub tokens: Option<f64>,
}

impl GovernedCall<'_> {
    /// Makes the call, and repeats it where that makes sense.
    ///
    /// # Errors
    /// The last attempt's error: [`Fault::Unavailable`] instead of [`Fault::Transient`] if the
    /// provider has counted as down since; [`Fault::Denied`] instead of [`Fault::Internal`] or
    /// [`Fault::Rejected`] if the provider declines the calls of every document; [`Fault::InLine`] or
    /// [`Fault::Throttled`] if the wait is too long to wait here; [`Fault::Unavailable`] or
    /// [`Fault::Denied`] while the breaker is open.
    pub async fn make<T, F>(&self, attempt: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<GovernedAnswer<T>>>,
    {
        let LimiterKey { provider, model, .. } = self.key;
        let mut call = self.governor.enqueue_call(self.key, self.estimate);
        let mut tries = 0;
        loop {
            let permit = call.admit().await?;
            let started = Instant::now();
            let mut error = match attempt().await {
                Ok(GovernedAnswer { value, limits, tokens }) => {
                    // An answer is the end of a provider's being down, never its beginning.
                    let _down = permit.report_outcome(&CallOutcome::Answered { limits, tokens });
                    return Ok(value);
                }
                Err(error) => error,
            };
            let down = permit.report_outcome(&CallOutcome::from_error(&error));
            let passing = error.fault == Fault::Transient;
            let may_repeat = passing && !down && started.elapsed() < QUICK;
            let wait = WAITS.with_retries(self.quick_retries).next_wait(tries);
            if matches!(error.fault, Fault::Throttled(_)) {
                if !call.may_try_again() {
                    return Err(call.deferral_error(error));
                }
                tracing::debug!(provider, model, "refused, waiting: {error}");
            } else if let Some(wait) = wait.filter(|_| may_repeat) {
                tracing::debug!(provider, model, tries, "failed, trying again: {error}");
                tokio::time::sleep(wait).await;
                tries += 1;
            } else {
                error.fault = match error.fault {
                    Fault::Transient if down => Fault::Unavailable,
                    Fault::Internal | Fault::Rejected if down => Fault::Denied,
                    fault => fault,
                };
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::body_size::BodyTooLarge;
    use docmill_core::config::ThrottleConfig;
    use docmill_core::fault::Error;
    use docmill_core::model::IngestionId;
    use docmill_core::work_clock::{CpuQueuePosition, WorkClock};

    /// How many attempts were made of a call that always fails with `fault`, and how it ended.
    async fn failing(config: &ThrottleConfig, quick_retries: u32, fault: Fault) -> (u32, Fault) {
        failing_after(Duration::ZERO, config, quick_retries, fault).await
    }

    /// The same of a call that takes so long each time.
    async fn failing_after(
        takes: Duration,
        config: &ThrottleConfig,
        quick_retries: u32,
        fault: Fault,
    ) -> (u32, Fault) {
        let governor = Governor::new(config.clone());
        let key = LimiterKey { provider: "p".into(), account: "a".into(), model: "m".into() };
        let (governor, estimate) = (&governor, TokenEstimate::default());
        let call = GovernedCall { governor, key: &key, estimate, quick_retries };
        let attempts = AtomicU32::new(0);
        let ended: Result<()> = call
            .make(|| async {
                attempts.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(takes).await;
                Err(Error::new(fault, "scripted"))
            })
            .await;
        (attempts.into_inner(), ended.unwrap_err().fault)
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_failure_is_repeated_as_often_as_the_caller_allows() {
        let config = ThrottleConfig::default();
        for retries in [0, 1, 3] {
            let made = failing(&config, retries, Fault::Transient).await;
            assert_eq!(made, (retries + 1, Fault::Transient));
            assert_eq!(failing(&config, retries, Fault::Rejected).await, (1, Fault::Rejected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_failure_may_be_charged_and_is_not_repeated() {
        let config = ThrottleConfig::default();
        for (seconds, tries) in [(19, 3), (20, 1), (60, 1)] {
            let takes = Duration::from_secs(seconds);
            let made = failing_after(takes, &config, 2, Fault::Transient).await;
            assert_eq!(made, (tries, Fault::Transient), "{seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_call_is_tried_again_while_its_wait_is_short_and_is_then_put_off() {
        let longest_wait = Duration::from_secs(10);
        let config = ThrottleConfig { longest_wait, ..ThrottleConfig::default() };
        let began = Instant::now();
        let told = Duration::from_secs(3);
        let (tries, ended) = failing(&config, 0, Fault::Throttled(Some(told))).await;
        assert!((2..=4).contains(&tries), "{tries}");
        assert!(matches!(ended, Fault::Throttled(Some(wait)) if wait >= told), "{ended:?}");
        assert!(began.elapsed() <= longest_wait, "{:?}", began.elapsed());
        // Refused at last when its time is over, it is not tried again.
        let late = failing_after(longest_wait, &config, 0, Fault::Throttled(None)).await;
        assert_eq!(late.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_counts_as_down_is_not_called_again_and_costs_no_attempt() {
        let config = ThrottleConfig { failures: 1, ..ThrottleConfig::default() };
        let began = Instant::now();
        assert_eq!(failing(&config, 2, Fault::Transient).await, (1, Fault::Unavailable));
        assert_eq!(began.elapsed(), Duration::ZERO, "nor waited for");
    }

    /// A call about a document that ends with this fault, or with an answer; how it ended.
    async fn call_for(
        governor: &Governor,
        document: IngestionId,
        fault: Option<Fault>,
    ) -> Result<()> {
        let key = LimiterKey { provider: "p".into(), account: "a".into(), model: "m".into() };
        let estimate = TokenEstimate::default();
        let call = GovernedCall { governor, key: &key, estimate, quick_retries: 0 };
        let clock = WorkClock::start_for(Some(document), CpuQueuePosition::take());
        let answer = || async {
            match fault {
                Some(fault) => Err(Error::new(fault, "status 400")),
                None => Ok(GovernedAnswer {
                    value: (),
                    limits: RateLimitHeaders::default(),
                    tokens: None,
                }),
            }
        };
        clock.run_job(call.make(answer)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_large_says_nothing_about_the_next_one() {
        let governor = Governor::new(ThrottleConfig::default());
        let key = LimiterKey { provider: "p".into(), account: "a".into(), model: "m".into() };
        for _ in 0..30 {
            let call = GovernedCall {
                governor: &governor,
                key: &key,
                estimate: TokenEstimate::default(),
                quick_retries: 0,
            };
            let document = Some(IngestionId::random());
            let clock = WorkClock::start_for(document, CpuQueuePosition::take());
            let refused = || async {
                Err::<GovernedAnswer<()>, _>(Error::internal("413").with_source(BodyTooLarge))
            };
            let ended = clock.run_job(call.make(refused)).await;
            assert_eq!(ended.unwrap_err().fault, Fault::Internal);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_declined_for_three_documents_in_a_row_are_no_documents_fault_until_one_passes() {
        // A model's refusal of the request, and a page reader's.
        for fault in [Fault::Internal, Fault::Rejected] {
            three_declined_in_a_row(fault).await;
        }
    }

    async fn three_declined_in_a_row(fault: Fault) {
        let governor = Governor::new(ThrottleConfig::default());
        let documents: [IngestionId; 3] = std::array::from_fn(|_| IngestionId::random());
        for _ in 0..4 {
            let ended = call_for(&governor, documents[0], Some(fault)).await;
            assert_eq!(ended.unwrap_err().fault, fault, "it may be the document");
        }
        let mut faults = Vec::new();
        for document in documents {
            faults.push(call_for(&governor, document, Some(fault)).await.unwrap_err().fault);
        }
        assert_eq!(faults, [fault, fault, Fault::Denied]);
        let refused = call_for(&governor, documents[0], None).await.unwrap_err();
        assert_eq!(refused.fault, Fault::Denied, "no call is let through");
        let waited = ThrottleConfig::default().open_for * 2;
        tokio::time::advance(waited).await;
        let trial = call_for(&governor, documents[0], Some(fault)).await.unwrap_err();
        assert_eq!(trial.fault, Fault::Denied, "nor does the trial count against its document");
        tokio::time::advance(waited).await;
        call_for(&governor, documents[1], None).await.unwrap();
        let alone = call_for(&governor, documents[0], Some(fault)).await.unwrap_err();
        assert_eq!(alone.fault, fault, "others pass: it is the document's own");
    }
}
