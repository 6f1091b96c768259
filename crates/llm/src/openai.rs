//! Any server with an OpenAI-compatible chat completions endpoint: OpenAI, Azure, vLLM, Ollama,
//! llama.cpp, gateways. How they differ is data (`servers`).
//!
//! Contract: `openai/openai-openapi` 2.3.0 and the types of `PyPI`'s openai 3.52. Strict in
//! requests, lenient in replies: many servers leave out fields that the contract requires. There is
//! no server-side idempotency for completions; a caller that must not pay twice stores the reply.
//! `temperature` is left out: several models reject it.

pub mod batches;
mod servers;
mod stream;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::header::HeaderMap;

use super::exchange::{
    AuthHeaderFn, ChatResponse, ChatTransport, FailedTry, RefusedCall, RetryableCall,
    call_with_retries,
};
use super::form::{ReplyForm, ReplyForms};
use super::{FinishReason, Llm, ModelReply, Prompt};
use docmill_core::config::LlmConfig;
use docmill_core::fault::Result;

use servers::ServerProfile;
use wire::TokenLimitField;

/// A model on an OpenAI-compatible server.
pub struct OpenAiClient {
    exchange: ChatTransport,
    server: &'static ServerProfile,
    model: String,
    forms: ReplyForms,
    stream_above: u32,
    /// Set once the server has said that it does not know `max_tokens` for this model.
    newer_limit: AtomicBool,
    /// Cleared once the server has said that it does not know `prompt_cache_key`.
    cache_key: AtomicBool,
}

impl OpenAiClient {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let server = ServerProfile::from_config(config.server);
        let key: AuthHeaderFn = Box::new(|key| server.key_header(key));
        Ok(Self {
            exchange: ChatTransport::new(config, "/chat/completions", HeaderMap::new(), key)?,
            server,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
            stream_above: config.stream_above,
            newer_limit: AtomicBool::new(server.newer_limit),
            cache_key: AtomicBool::new(server.cache_key),
        })
    }

    /// Reads the body of a successful answer, as [`Llm::complete`] does; `asked` names the model if
    /// the server does not. `None`: it is no chat completion.
    pub fn parse_completion(body: &[u8], asked: &str) -> Option<ModelReply> {
        wire::parse_reply(body, asked).ok()
    }

    /// Sorts a refusal into those that are answers and those that are failures; `sent` are the options
    /// of the call.
    fn classify_refusal(
        &self,
        call: RefusedCall,
        sent: wire::OpenAiOptions,
        tries: u32,
    ) -> std::result::Result<ModelReply, FailedTry> {
        let RefusedCall { status, refusal, .. } = &call;
        let status = *status;
        if refusal.is_prompt_too_long(status) {
            return Ok(ModelReply::without_text(FinishReason::TooLong, &self.model));
        }
        if refusal.is_filtered(status) {
            return Ok(ModelReply::without_text(FinishReason::Refused, &self.model));
        }
        if refusal.is_unread_reply(status) {
            return Ok(ModelReply::without_text(FinishReason::Garbled, &self.model));
        }
        let newer = sent.limit == TokenLimitField::Older && refusal.wants_newer_limit(status);
        let keyless = sent.cache_key && refusal.refuses_cache_key(status);
        let mut failed = self.exchange.refused_try(call, tries);
        if newer {
            self.newer_limit.store(true, Ordering::Relaxed);
        }
        if keyless {
            self.cache_key.store(false, Ordering::Relaxed);
        }
        if newer || keyless {
            failed.again = Some(std::time::Duration::ZERO);
        }
        Err(failed)
    }
}

#[async_trait]
impl RetryableCall for OpenAiClient {
    fn model(&self) -> &str {
        &self.model
    }

    fn forms(&self) -> &ReplyForms {
        &self.forms
    }

    async fn try_once(
        &self,
        prompt: &Prompt,
        form: ReplyForm,
        tries: u32,
    ) -> std::result::Result<ModelReply, FailedTry> {
        let limit = if self.newer_limit.load(Ordering::Relaxed) {
            TokenLimitField::Newer
        } else {
            TokenLimitField::Older
        };
        let stream = prompt.max_output_tokens > self.stream_above;
        let cache_key = self.cache_key.load(Ordering::Relaxed);
        let options = wire::OpenAiOptions { limit, stream, form, cache_key };
        let body = wire::build_request(&self.model, prompt, options);
        match self.exchange.post_json(&body, stream, tries).await? {
            ChatResponse::No(call) => self.classify_refusal(call, options, tries),
            ChatResponse::Accepted(response) if stream => {
                stream::read_stream(&self.exchange, response).await
            }
            ChatResponse::Accepted(response) => {
                self.exchange
                    .read_whole_reply(response, wire::parse_reply, "chat completion", tries)
                    .await
            }
        }
    }
}

#[async_trait]
impl Llm for OpenAiClient {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn refuses_schema(&self, prompt: &Prompt) -> bool {
        self.forms.is_refused(prompt)
    }

    async fn ping(&self) -> Result<()> {
        self.exchange.check_server().await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let reply = call_with_retries(self, prompt).await?.check_whitespace();
        Ok(if self.server.truncates { reply.check_truncation(prompt) } else { reply })
    }
}
