//! Any server with an OpenAI-compatible chat completions endpoint: OpenAI, Azure, vLLM, Ollama,
//! llama.cpp, gateways. How they differ is data (`servers`).
//!
//! Contract: `openai/openai-openapi` 2.3.0 and the types of `PyPI`'s openai 3.52. Strict in what it
//! sends, lenient in what it reads: many servers leave out fields that the contract requires.
//! There is no server-side idempotency for completions; whoever must not pay twice stores the
//! reply. `temperature` is left out: several models reject it.

mod servers;
mod stream;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::header::HeaderMap;

use super::exchange::{Answered, Authorised, Exchange, Failed, RefusedCall, Tries, repeated};
use super::{Llm, Prompt, Reply, Stop};
use crate::config::{LlmConfig, StructuredOutput};
use crate::fault::Result;

use servers::Server;
use wire::Limit;

/// A model on an OpenAI-compatible server.
pub struct OpenAi {
    exchange: Exchange,
    server: &'static Server,
    model: String,
    structured: StructuredOutput,
    stream_above: u32,
    /// Set once the server has said that it does not know `max_tokens` for this model.
    newer_limit: AtomicBool,
}

impl OpenAi {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let server = Server::of(config.server);
        let key: Authorised = Box::new(|key| server.authorised(key));
        Ok(Self {
            exchange: Exchange::new(config, "/chat/completions", HeaderMap::new(), key)?,
            server,
            model: config.model.clone(),
            structured: config.structured,
            stream_above: config.stream_above,
            newer_limit: AtomicBool::new(server.newer_limit),
        })
    }

    /// Checks at start that the server is there and takes our key, without spending a token. A
    /// server without a list of models passes.
    ///
    /// # Errors
    /// Which address did not answer or refused, and which setting to look at.
    pub async fn ping(&self) -> Result<()> {
        self.exchange.ping().await
    }

    /// Sorts a refusal into those that are answers and those that are failures; `limit` is the
    /// name that the call gave to its limit of tokens.
    fn refused(
        &self,
        call: RefusedCall,
        limit: Limit,
        tries: u32,
    ) -> std::result::Result<Reply, Failed> {
        let RefusedCall { status, refusal, .. } = &call;
        let status = *status;
        if refusal.prompt_is_too_long(status) {
            return Ok(Reply::nothing(Stop::TooLong, &self.model));
        }
        if refusal.is_filtered(status) {
            return Ok(Reply::nothing(Stop::Refused, &self.model));
        }
        let newer = limit == Limit::Older && refusal.wants_newer_limit(status);
        let mut failed = self.exchange.refused(call, tries);
        if newer {
            self.newer_limit.store(true, Ordering::Relaxed);
            failed.again = Some(std::time::Duration::ZERO);
        }
        Err(failed)
    }
}

#[async_trait]
impl Tries for OpenAi {
    fn model(&self) -> &str {
        &self.model
    }

    async fn try_once(&self, prompt: &Prompt, tries: u32) -> std::result::Result<Reply, Failed> {
        let limit =
            if self.newer_limit.load(Ordering::Relaxed) { Limit::Newer } else { Limit::Older };
        let stream = prompt.max_output_tokens > self.stream_above;
        let form = wire::Form {
            limit,
            stream,
            structured: self.structured,
            cache_key: self.server.cache_key,
        };
        let body = wire::request(&self.model, prompt, form);
        match self.exchange.post(&body, stream, tries).await? {
            Answered::No(call) => self.refused(call, limit, tries),
            Answered::Yes(response) if stream => stream::read(&self.exchange, response).await,
            Answered::Yes(response) => {
                self.exchange.whole(response, wire::reply, "chat completion", tries).await
            }
        }
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
        let reply = repeated(self, prompt).await?.checked();
        Ok(if self.server.truncates { reply.unless_truncated(prompt) } else { reply })
    }
}
