//! Anthropic's messages API.
//!
//! Contract: the types of `PyPI`'s anthropic 2.11, whose API version is sent. The reply's form is
//! demanded by `output_config`, or by a strict tool that must be used, or by the prompt alone. The
//! stable prefix (system prompt with the schema) ends in a cache breakpoint. A reply that may be
//! longer than `llm.stream_above` tokens is streamed: the vendor's SDK refuses to wait for such a
//! one in silence.

mod stream;
mod wire;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderValue};

use super::exchange::{Answered, Authorised, Exchange, Failed, Tries, repeated, secret};
use super::{Llm, Prompt, Reply, Stop};
use crate::config::LlmConfig;
use crate::fault::Result;

/// `ANTHROPIC_API_VERSION` of anthropic 2.11.
const VERSION: &str = "2026-10-21";

/// A model of Anthropic's.
pub struct Anthropic {
    exchange: Exchange,
    model: String,
    form: wire::Form,
    stream_above: u32,
}

impl Anthropic {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        let key: Authorised = Box::new(|key| secret("x-api-key", key).map(Some));
        Ok(Self {
            exchange: Exchange::new(config, "/messages", headers, key)?,
            model: config.model.clone(),
            form: wire::Form {
                structured: config.structured,
                cache: config.prompt_cache,
                stream: false,
            },
            stream_above: config.stream_above,
        })
    }

    /// Checks at start that the server is there and takes our key, without spending a token.
    ///
    /// # Errors
    /// Which address did not answer or refused, and which setting to look at.
    pub async fn ping(&self) -> Result<()> {
        self.exchange.ping().await
    }
}

#[async_trait]
impl Tries for Anthropic {
    fn model(&self) -> &str {
        &self.model
    }

    async fn try_once(&self, prompt: &Prompt, tries: u32) -> std::result::Result<Reply, Failed> {
        let stream = prompt.max_output_tokens > self.stream_above;
        let form = wire::Form { stream, ..self.form };
        let body = wire::request(&self.model, prompt, form);
        match self.exchange.post(&body, stream, tries).await? {
            Answered::No(call) if call.refusal.prompt_is_too_long(call.status) => {
                Ok(Reply::nothing(Stop::TooLong, &self.model))
            }
            Answered::No(call) => Err(self.exchange.refused(call, tries)),
            Answered::Yes(response) if stream => stream::read(&self.exchange, response).await,
            Answered::Yes(response) => {
                self.exchange.whole(response, wire::reply, "message", tries).await
            }
        }
    }
}

#[async_trait]
impl Llm for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        repeated(self, prompt).await.map(Reply::checked)
    }
}
