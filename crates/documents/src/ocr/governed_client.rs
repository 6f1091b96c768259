//! Calls to a provider, no faster than it takes them.
//!
//! A call that failed quickly with a transient error is repeated twice, as the vendors' own SDKs
//! do; what else is tried again is for [`GovernedCall`] to say. Every attempt has a span of its
//! own.

use std::sync::Arc;

use tracing::Instrument as _;

use docmill_client::telemetry::spans;
use docmill_client::throttle::{
    GovernedAnswer, GovernedCall, Governor, LimiterKey, RateLimitHeaders, TokenEstimate,
};
use docmill_core::fault::Result;

/// Repetitions of a call that failed with a transient error.
const RETRIES: u32 = 2;

/// The calls of one provider, account and operation, behind the governor.
#[derive(Clone)]
pub struct GovernedClient {
    governor: Arc<Governor>,
    key: LimiterKey,
    operation: &'static str,
}

impl GovernedClient {
    /// A client with this limiter key, for calls that traces show by this name.
    pub fn new(governor: Arc<Governor>, key: LimiterKey, operation: &'static str) -> Self {
        Self { governor, key, operation }
    }

    /// Whether the provider is known to be down, or to deny us.
    pub fn is_down(&self) -> bool {
        self.governor.is_down(&self.key)
    }

    /// Makes a call, and repeats it where that makes sense.
    ///
    /// # Errors
    /// Those of [`GovernedCall::make`].
    pub async fn call_with_retry<T, F>(&self, attempt: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let call = GovernedCall {
            governor: &self.governor,
            key: &self.key,
            estimate: TokenEstimate::default(),
            quick_retries: RETRIES,
        };
        call.make(|| async {
            let span = spans::page_call_span(&self.key.provider, self.operation);
            match attempt().instrument(span.clone()).await {
                Ok(value) => {
                    Ok(GovernedAnswer { value, limits: RateLimitHeaders::default(), tokens: None })
                }
                Err(error) => {
                    spans::record_failure(&span, error.fault.code());
                    Err(error)
                }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;
    use docmill_core::config::ThrottleConfig;
    use docmill_core::fault::{Error, Fault};

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
