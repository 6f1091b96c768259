//! Any server with an OpenAI-compatible chat completions endpoint.
//!
//! Contract: `openai/openai-openapi` 2.3.0; habits of the vendor's own SDK (`_base_client.py` of
//! openai 3.52): two retries, 0.5 s · 2^n up to 8 s, minus up to a quarter, `retry-after` and
//! `x-should-retry` obeyed. Differences, with their reasons: a 429 is not repeated here but by the throttle
//! governor, which makes every other job wait as well; a call that ran into our own timeout
//! is not repeated here (it may be billed already and its wait is long), and a wait of more than
//! 8 s is handed up instead of slept through, so that the job's slot is free meanwhile.
//!
//! Strict in what it sends, lenient in what it reads: many servers leave out fields that the
//! contract requires. There is no server-side idempotency for completions; whoever must not pay
//! twice stores the reply. `temperature` is left out: several models reject it.

mod dialect;
mod refusal;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, StatusCode, Url};
use time::OffsetDateTime;

use super::{Llm, Prompt, Reply, Stop};
use crate::config::{LlmConfig, SecretSource};
use crate::fault::{Error, Fault, Result};
use crate::http;
use crate::throttle::Limits;

use refusal::Refusal;
use wire::Limit;

/// Most bytes of a reply's body; a longer one is not read and counts as cut.
const REPLY_CAP: usize = 10 << 20;
/// Most bytes of a list of models.
const MODELS_CAP: usize = 4 << 20;
/// Repetitions after the first try.
const RETRIES: u32 = 2;
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait between two tries; a server that asks for more is obeyed by the caller.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Longest the check at start may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A model on an OpenAI-compatible server.
pub struct OpenAi {
    client: Client,
    completions: Url,
    models: Url,
    address: String,
    key: SecretSource,
    model: String,
    /// Set once the server has said that it does not know `max_tokens` for this model.
    newer_limit: AtomicBool,
}

/// How one try ended that brought no reply.
struct Failed {
    error: Error,
    /// When to try again; `None`: not here.
    again: Option<Duration>,
}

impl OpenAi {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let base = config.base_url.trim_end_matches('/');
        let url = |path: &str| {
            Url::parse(&format!("{base}{path}")).map_err(|error| {
                Error::new(Fault::Denied, "llm.base_url is not a valid address").because(error)
            })
        };
        let completions = url("/chat/completions")?;
        Ok(Self {
            client: http::client(&completions, config.timeout)?,
            address: shown(&completions),
            models: url("/models")?,
            completions,
            key: config.key(),
            model: config.model.clone(),
            newer_limit: AtomicBool::new(false),
        })
    }

    /// Checks at start that the server is there and takes our key, without spending a token. A
    /// server without a list of models passes.
    ///
    /// # Errors
    /// Which address did not answer or refused, and which setting to look at.
    pub async fn ping(&self) -> Result<()> {
        let what = format!("the model server at {} (llm.base_url)", shown(&self.models));
        let request = self.authorised(self.client.get(self.models.clone()));
        let response = request.timeout(PING_TIMEOUT).send().await.map_err(|error| {
            let mut error = http::no_answer(error, &what);
            error.fault = Fault::Unavailable;
            error
        })?;
        let status = response.status();
        match status.as_u16() {
            200..=299 => self.look_for_model(response).await,
            404 | 405 | 501 => Ok(()),
            401 | 403 => Err(Error::new(
                Fault::Denied,
                format!("{what} answered {status}: check llm.api_key"),
            )),
            _ => {
                let fault = http::fault_of(status, response.headers());
                Err(Error::new(fault, format!("{what} answered {status}")))
            }
        }
    }

    /// Warns if the server lists models and ours is not among them. Only a warning: gateways
    /// resolve aliases that they do not list.
    async fn look_for_model(&self, response: Response) -> Result<()> {
        let body = http::read_capped(response, MODELS_CAP).await.ok().flatten();
        let names = body.and_then(|body| wire::models(&body)).unwrap_or_default();
        if !names.is_empty() && !names.contains(&self.model) {
            tracing::warn!(
                llm.model = self.model,
                "the model server at {} does not list {}, the model of llm.model",
                self.address,
                self.model
            );
        }
        Ok(())
    }

    /// With the key as it is now. A file that was never readable was refused at the start.
    fn authorised(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let key = self.key.current().unwrap_or_default();
        if key.is_empty() { request } else { request.bearer_auth(key.reveal()) }
    }

    async fn try_once(&self, prompt: &Prompt, tries: u32) -> std::result::Result<Reply, Failed> {
        let what = format!("model call to {}", self.address);
        let limit =
            if self.newer_limit.load(Ordering::Relaxed) { Limit::Newer } else { Limit::Older };
        let body = wire::request(&self.model, prompt, limit);
        let request = self.authorised(self.client.post(self.completions.clone())).json(&body);
        let broke = |error: reqwest::Error| {
            let again = !error.is_timeout() || error.is_connect();
            let again = again.then(|| backoff(tries, fastrand::f64()));
            Failed { error: http::no_answer(error, &what), again }
        };
        let response = request.send().await.map_err(broke)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = http::read_capped(response, REPLY_CAP).await.map_err(broke)?;
        // A reply without end is a cut one: fewer pages may bring it to an end.
        let Some(body) = body else { return Ok(wire::nothing(Stop::Cut, &self.model)) };
        if status.is_success() {
            let limits = Limits::read(&headers, OffsetDateTime::now_utc());
            let reply = wire::reply(&body, &self.model).map(|reply| Reply { limits, ..reply });
            return reply.map_err(|error| Failed {
                error: Error::transient(format!("{what}: the answer is no chat completion"))
                    .because(error),
                again: Some(backoff(tries, fastrand::f64())),
            });
        }
        let refusal = Refusal::read(&body);
        if refusal.prompt_is_too_long(status) {
            return Ok(wire::nothing(Stop::TooLong, &self.model));
        }
        if limit == Limit::Older && refusal.wants_newer_limit(status) {
            self.newer_limit.store(true, Ordering::Relaxed);
            let error = refusal.into_error(&what, status, &headers, &self.model);
            return Err(Failed { error, again: Some(Duration::ZERO) });
        }
        let again = refusal.try_again_after(status, &headers, backoff(tries, fastrand::f64()));
        Err(Failed { error: refusal.into_error(&what, status, &headers, &self.model), again })
    }
}

#[async_trait]
impl Llm for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        let mut tries = 0;
        loop {
            let failed = match self.try_once(prompt, tries).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let throttled = matches!(failed.error.fault, Fault::Throttled(_));
            match failed.again {
                Some(wait) if tries < RETRIES && wait <= LONGEST_WAIT && !throttled => {
                    tracing::debug!(
                        llm.model = self.model,
                        fault = failed.error.fault.code(),
                        wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                        "model call failed and is repeated: {}",
                        failed.error
                    );
                    tokio::time::sleep(wait).await;
                    tries += 1;
                }
                _ => return Err(failed.error),
            }
        }
    }
}

/// The wait before try number `tries + 1`; `random` is in 0..1.
fn backoff(tries: u32, random: f64) -> Duration {
    let full = FIRST_WAIT.saturating_mul(1 << tries.min(10)).min(LONGEST_WAIT);
    full.mul_f64(1.0 - 0.25 * random)
}

/// An address as it may be shown: without user, password and query.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Whether waiting for `status` to pass makes sense at all.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_are_only_ever_shortened() {
        let ms = |tries, random| backoff(tries, random).as_millis();
        assert_eq!([ms(0, 0.0), ms(1, 0.0), ms(2, 0.0), ms(9, 0.0)], [500, 1000, 2000, 8000]);
        assert_eq!(ms(0, 1.0), 375);
    }

    #[test]
    fn a_password_in_the_address_is_not_shown() {
        let url: Url = "https://me:hunter2@models.example:8443/v1/models?key=x".parse().unwrap();
        assert_eq!(shown(&url), "https://models.example:8443/v1/models");
    }
}
