//! Anthropic's messages API, at Anthropic or at Vertex AI, where the model is part of the path and the
//! version part of the body (anthropic's `lib/vertex/_client.py`).
//!
//! Contract: the types of `PyPI`'s anthropic 2.11, whose API version is sent. The reply's form is
//! demanded by `output_config`, or by a strict tool that must be used, or by the prompt alone. The
//! stable prefix (system prompt with the schema) ends in a cache breakpoint. A reply that may be
//! longer than `llm.stream_above` tokens is streamed: the vendor's SDK refuses to wait for such a
//! one in silence.

pub mod batches;
mod host;
mod stream;
mod wire;

use async_trait::async_trait;
use serde_json::json;

use super::exchange::{ChatResponse, ChatTransport, FailedTry, RetryableCall, call_with_retries};
use super::form::{ReplyForm, ReplyForms};
use super::{FinishReason, Llm, ModelReply, Prompt, RequestOptions};
use docmill_core::config::{LlmConfig, LlmProvider, PromptCache};
use docmill_core::fault::Result;
use host::{AnthropicHost, PUBLISHER, VERSION};

/// A model of Anthropic's.
pub struct AnthropicClient {
    exchange: ChatTransport,
    model: String,
    host: AnthropicHost,
    forms: ReplyForms,
    cache: PromptCache,
    stream_above: u32,
}

impl AnthropicClient {
    /// Reads the body of a successful answer, as [`Llm::complete`] does; `asked` names the model if
    /// the server does not. `None`: it is no message.
    pub fn parse_message(body: &[u8], asked: &str) -> Option<ModelReply> {
        wire::parse_reply(body, asked).ok()
    }

    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        let host = AnthropicHost::of(config);
        Ok(Self {
            exchange: host.connect(config)?,
            model: config.model.clone(),
            host,
            forms: ReplyForms::new(config),
            cache: config.prompt_cache,
            stream_above: config.stream_above,
        })
    }
}

#[async_trait]
impl RetryableCall for AnthropicClient {
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
        let sent = self.exchange.options().for_call(prompt);
        let stream = sent.max_tokens > self.stream_above;
        let (host, cache) = (self.host, self.cache);
        let options = wire::AnthropicOptions { host, form, cache, stream, call: sent };
        let body = wire::build_request(&self.model, prompt, options);
        match self.exchange.post_json(&body, stream, tries).await? {
            ChatResponse::No(call) if call.refusal.is_prompt_too_long(call.status) => {
                Ok(ModelReply::without_text(FinishReason::TooLong, &self.model))
            }
            ChatResponse::No(call) => Err(self.exchange.refused_try(call, sent, tries)),
            ChatResponse::Accepted(response) if stream => {
                stream::read_stream(&self.exchange, response).await
            }
            ChatResponse::Accepted(response) => {
                self.exchange.read_whole_reply(response, wire::parse_reply, "message", tries).await
            }
        }
    }
}

#[async_trait]
impl Llm for AnthropicClient {
    fn provider(&self) -> &'static str {
        match self.host {
            AnthropicHost::Own => LlmProvider::Anthropic.name(),
            AnthropicHost::Vertex => LlmProvider::Vertex.name(),
        }
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn refuses_schema(&self, prompt: &Prompt) -> bool {
        self.forms.is_refused(prompt)
    }

    fn request_options(&self) -> Option<&RequestOptions> {
        Some(self.exchange.options())
    }

    async fn ping(&self) -> Result<()> {
        if self.host == AnthropicHost::Own {
            return self.exchange.check_server().await;
        }
        let model = self.model.rsplit('/').next().unwrap_or_default();
        let body = json!({
            "anthropic_version": VERSION,
            "model": model,
            "messages": [{"role": "user", "content": "docmill"}],
        });
        self.exchange
            .check_by_counting(&format!("{PUBLISHER}/count-tokens:rawPredict"), &body)
            .await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        call_with_retries(self, prompt).await
    }
}
