//! Access tokens (OAuth 2.0) that are granted for about an hour: asked for, kept, renewed in time.
//!
//! One cache for every source of tokens. Requests go through [`crate::http::build_client`], so proxies are
//! honoured as they are elsewhere. Errors never quote a token server: its words may repeat a
//! credential. The command-line programs of the vendors and a person's own log-in are not searched
//! for: a service should not run on them by accident.

pub mod ambient;
pub mod entra;
pub mod google;
mod server;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::time::Instant;

use docmill_core::config::SecretString;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{RetryBackoff, retry, with_deadline};

/// Longest one token may take, repetitions included.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(20);
/// A token is renewed this long before it ends, as Google's own libraries do.
const RENEWAL_MARGIN: Duration = Duration::from_secs(225);
/// After a renewal that failed, the token that is still valid is used for so long.
const RENEWAL_PAUSE: Duration = Duration::from_secs(15);
/// Between the tries for one token.
const RETRIES: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(250)).with_retries(2);

/// A token as it was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedToken {
    /// The token itself.
    pub value: SecretString,
    /// How long it is valid from now on.
    pub lifetime: Duration,
}

/// A source of tokens.
#[async_trait]
pub trait TokenGrant: Send + Sync {
    /// Asks for a new token, once.
    ///
    /// # Errors
    /// [`Fault::Denied`]: none is granted; the message names the setting to check. Other faults: the
    /// token server could not be asked.
    async fn request_token(&self) -> Result<GrantedToken>;
}

/// The token in use, and until when.
struct HeldToken {
    value: SecretString,
    renew_at: Instant,
    ends_at: Instant,
}

/// Keeps a token until shortly before its end. One caller asks at a time, the others wait for it.
pub struct AccessTokenCache {
    grant: Box<dyn TokenGrant>,
    held: Mutex<Option<HeldToken>>,
}

impl AccessTokenCache {
    /// Nothing is sent.
    pub fn new(grant: impl TokenGrant + 'static) -> Self {
        Self { grant: Box::new(grant), held: Mutex::default() }
    }

    /// A token that is valid now.
    ///
    /// # Errors
    /// As [`TokenGrant::request_token`]; [`Fault::Unavailable`]: no answer in time.
    pub async fn current_token(&self) -> Result<SecretString> {
        let mut held = self.held.lock().await;
        let now = Instant::now();
        if let Some(token) = held.as_ref().filter(|token| now < token.renew_at) {
            return Ok(token.value.clone());
        }
        let error = match self.renew_token().await {
            Ok(GrantedToken { value, lifetime }) => {
                let now = Instant::now();
                let renewed_after = lifetime.saturating_sub(RENEWAL_MARGIN).max(lifetime / 2);
                let (renew_at, ends_at) = (now + renewed_after, now + lifetime);
                *held = Some(HeldToken { value: value.clone(), renew_at, ends_at });
                return Ok(value);
            }
            Err(error) => error,
        };
        let Some(token) = held.as_mut().filter(|token| now < token.ends_at) else {
            return Err(error);
        };
        tracing::warn!(error = %error, "an access token is not renewed yet; the old one is used");
        token.renew_at = now + RENEWAL_PAUSE;
        Ok(token.value.clone())
    }

    /// Drops a token that was refused, unless it has been renewed since.
    pub async fn forget_token(&self, refused: &SecretString) {
        let mut held = self.held.lock().await;
        if held.as_ref().is_some_and(|token| token.value == *refused) {
            *held = None;
        }
    }

    async fn renew_token(&self) -> Result<GrantedToken> {
        let asked = retry(|_| self.grant.request_token(), next_wait);
        with_deadline(TOKEN_TIMEOUT, asked, || {
            let seconds = TOKEN_TIMEOUT.as_secs();
            Error::new(Fault::Unavailable, format!("no access token in {seconds} s"))
        })
        .await
    }
}

/// The wait before a token is asked for again; a refusal is final.
fn next_wait(error: &Error, failed: u32) -> Option<Duration> {
    let may_pass = matches!(error.fault, Fault::Transient | Fault::Unavailable);
    RETRIES.next_wait(failed).filter(|_| may_pass)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Grants tokens of an hour, numbered; the numbers in `fails` are refused with the fault.
    struct Numbered {
        asked: Arc<AtomicU32>,
        fails: fn(u32) -> Option<Fault>,
    }

    #[async_trait]
    impl TokenGrant for Numbered {
        async fn request_token(&self) -> Result<GrantedToken> {
            let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            if let Some(fault) = (self.fails)(number) {
                return Err(Error::new(fault, "scripted"));
            }
            let value = format!("token-{number}").into();
            Ok(GrantedToken { value, lifetime: Duration::from_secs(3600) })
        }
    }

    fn cache(fails: fn(u32) -> Option<Fault>) -> (AccessTokenCache, Arc<AtomicU32>) {
        let asked = Arc::new(AtomicU32::new(0));
        (AccessTokenCache::new(Numbered { asked: Arc::clone(&asked), fails }), asked)
    }

    async fn current(cache: &AccessTokenCache) -> String {
        cache.current_token().await.unwrap().reveal().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_kept_until_shortly_before_its_end_and_asked_for_by_one_caller() {
        let (cache, asked) = cache(|_| None);
        let (one, other) = tokio::join!(current(&cache), current(&cache));
        assert_eq!((one.as_str(), other.as_str()), ("token-1", "token-1"));
        tokio::time::advance(Duration::from_secs(3600 - 226)).await;
        assert_eq!(current(&cache).await, "token-1");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(current(&cache).await, "token-2");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_renewal_leaves_the_old_token_in_use_until_its_end() {
        let (cache, _) = cache(|number| (number > 1).then_some(Fault::Unavailable));
        assert_eq!(current(&cache).await, "token-1");
        tokio::time::advance(Duration::from_secs(3600 - 100)).await;
        assert_eq!(current(&cache).await, "token-1");
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(cache.current_token().await.unwrap_err().fault, Fault::Unavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_and_a_refusal_is_not() {
        let (passing, asked) = cache(|number| (number < 3).then_some(Fault::Transient));
        assert_eq!(current(&passing).await, "token-3");
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        let (denied, asked) = cache(|_| Some(Fault::Denied));
        assert_eq!(denied.current_token().await.unwrap_err().fault, Fault::Denied);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_refused_token_is_forgotten_unless_a_newer_one_is_held() {
        let (cache, _) = cache(|_| None);
        let first = cache.current_token().await.unwrap();
        cache.forget_token(&first).await;
        assert_eq!(current(&cache).await, "token-2");
        cache.forget_token(&first).await;
        assert_eq!(current(&cache).await, "token-2");
    }
}
