//! Calls to a provider, no faster than it takes them.
//!
//! A refused call is tried again here while the wait is short, in front of those that came later; a
//! longer wait is handed up as throttled. A call that failed quickly and in passing is repeated
//! twice, as the vendors' own SDKs do. One that ran into its time limit is not: it may be charged
//! already, and its wait was long.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use crate::fault::{Fault, Result};
use crate::telemetry::spans;
use crate::throttle::{CallOutcome, Governor, LimiterKey, RateLimitHeaders, TokenEstimate};

/// Repetitions of a call that failed in passing.
const RETRIES: u32 = 2;
/// The wait before the first of them; doubled for the next.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// A call that failed after longer than this is not repeated here.
const QUICK: Duration = Duration::from_secs(20);

/// One provider, account and operation, behind the governor.
#[derive(Clone)]
pub struct GovernedClient {
    governor: Arc<Governor>,
    key: LimiterKey,
    operation: &'static str,
}

impl GovernedClient {
    /// A lane of this key, for calls that traces show by this name.
    pub fn new(governor: Arc<Governor>, key: LimiterKey, operation: &'static str) -> Self {
        Self { governor, key, operation }
    }

    /// Calls, and calls again where that is the thing to do.
    ///
    /// # Errors
    /// What the last call said; [`Fault::Throttled`] if the wait is too long to wait here;
    /// [`Fault::Unavailable`] or [`Fault::Denied`] while the breaker is open.
    pub async fn call_with_retry<T, F>(&self, attempt: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut call = self.governor.enqueue_call(&self.key, TokenEstimate::default());
        let mut tries = 0;
        loop {
            let permit = call.admit().await?;
            let started = Instant::now();
            let span = spans::page_call_span(&self.key.provider, self.operation);
            let answer = attempt().instrument(span.clone()).await;
            if let Err(error) = &answer {
                spans::record_failure(&span, error.fault.code());
            }
            let outcome = match &answer {
                Ok(_) => {
                    CallOutcome::Answered { limits: RateLimitHeaders::default(), tokens: None }
                }
                Err(error) => CallOutcome::from_fault(error.fault),
            };
            let down = permit.report_outcome(&outcome);
            let Err(mut error) = answer else { return answer };
            let passing = error.fault == Fault::Transient;
            let model = &self.key.model;
            if matches!(error.fault, Fault::Throttled(_)) {
                if !call.may_try_again() {
                    return Err(call.deferral_error(error));
                }
                tracing::debug!(ocr.model = model, "refused, waiting: {error}");
            } else if passing && !down && tries < RETRIES && started.elapsed() < QUICK {
                tracing::debug!(ocr.model = model, tries, "failed, trying again: {error}");
                let longest = FIRST_WAIT.saturating_mul(1 << tries);
                tokio::time::sleep(longest.mul_f64(1.0 - fastrand::f64() / 4.0)).await;
                tries += 1;
            } else {
                if passing && down {
                    error.fault = Fault::Unavailable;
                }
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::config::ThrottleConfig;
    use crate::fault::Error;

    fn lane() -> GovernedClient {
        let word = |text: &str| text.to_owned();
        let key = LimiterKey { provider: word("p"), account: word("a"), model: word("m") };
        GovernedClient::new(Arc::new(Governor::new(ThrottleConfig::default())), key, "read")
    }

    /// How many calls were made, and how they ended for the caller.
    async fn outcome(faults: &[Fault]) -> (u32, Option<Fault>) {
        let calls = AtomicU32::new(0);
        let ended = lane()
            .call_with_retry(|| async {
                let number = calls.fetch_add(1, Ordering::Relaxed);
                match faults.get(usize::try_from(number).unwrap()) {
                    Some(fault) => Err(Error::new(*fault, "scripted")),
                    None => Ok(()),
                }
            })
            .await;
        (calls.load(Ordering::Relaxed), ended.err().map(|error| error.fault))
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_tried_again_and_what_does_not_is_handed_up() {
        let short = Fault::Throttled(Some(Duration::from_secs(2)));
        let long = Fault::Throttled(Some(Duration::from_secs(300)));
        #[rustfmt::skip]
        let table: [(&[Fault], u32, Option<Fault>); 7] = [
            (&[],                               1, None),
            (&[Fault::Transient; 2],            3, None),
            (&[Fault::Transient; 3],            3, Some(Fault::Transient)),
            (&[short, short],                   3, None),
            (&[Fault::Rejected],                1, Some(Fault::Rejected)),
            (&[Fault::Denied],                  1, Some(Fault::Denied)),
            (&[Fault::Unavailable],             1, Some(Fault::Unavailable)),
        ];
        for (faults, calls, fault) in table {
            assert_eq!(outcome(faults).await, (calls, fault), "{faults:?}");
        }
        let (calls, fault) = outcome(&[long]).await;
        assert!(calls == 1 && matches!(fault, Some(Fault::Throttled(Some(_)))), "{fault:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_refused_when_its_wait_is_over_is_put_off_for_seconds() {
        let ended: Result<()> = lane()
            .call_with_retry(|| async {
                tokio::time::sleep(ThrottleConfig::default().longest_wait).await;
                Err(Error::new(Fault::Throttled(None), "scripted"))
            })
            .await;
        let fault = ended.err().map(|error| error.fault);
        let Some(Fault::Throttled(Some(wait))) = fault else { panic!("{fault:?}") };
        assert!(wait < Duration::from_secs(15), "{wait:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_waited_for_long_is_not_made_again() {
        let calls = AtomicU32::new(0);
        let ended: Result<()> = lane()
            .call_with_retry(|| async {
                calls.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(120)).await;
                Err(Error::transient("no answer in time"))
            })
            .await;
        assert!(ended.is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
