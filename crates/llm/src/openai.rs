//! Any server with an OpenAI-compatible chat completions endpoint: OpenAI, Azure, vLLM, Ollama,
//! llama.cpp, gateways. How they differ is data (`servers`).
//!
//! Contract: `openai/openai-openapi` 2.3.0 and the types of `PyPI`'s openai 3.52. Strict in
//! requests, lenient in replies: many servers leave out fields that the contract requires. There is
//! no server-side idempotency for completions; a caller that must not pay twice stores the reply.
//! A field that a model or server does not take is learned from its refusal (`options`).

pub mod batches;
mod servers;
mod stream;
mod wire;

use async_trait::async_trait;
use reqwest::header::HeaderMap;

use super::exchange::{
    AuthHeaderFn, ChatResponse, ChatTransport, FailedTry, RefusedCall, RetryableCall,
    call_with_retries,
};
use super::form::{ReplyForm, ReplyForms};
use super::options::CallOptions;
use super::{FinishReason, Llm, ModelReply, Prompt, RequestOptions};
use docmill_core::config::{LlmConfig, PromptCache};
use docmill_core::fault::Result;

use servers::ServerProfile;

/// A model on an OpenAI-compatible server.
pub struct OpenAiClient {
    exchange: ChatTransport,
    server: &'static ServerProfile,
    model: String,
    forms: ReplyForms,
    cache: PromptCache,
    stream_above: u32,
}

/// How a server of this protocol is reached, at a path below `llm.base_url`.
fn connect_transport(config: &LlmConfig, path: &str) -> Result<ChatTransport> {
    let server = ServerProfile::from_config(config.server);
    let key: AuthHeaderFn = Box::new(|key| server.key_header(key));
    let exchange = ChatTransport::new(config, path, HeaderMap::new(), key)?;
    Ok(exchange.without_fields(&server.unknown_fields(&config.model)))
}

impl OpenAiClient {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        Ok(Self {
            exchange: connect_transport(config, "/chat/completions")?,
            server: ServerProfile::from_config(config.server),
            model: config.model.clone(),
            forms: ReplyForms::new(config),
            cache: config.prompt_cache,
            stream_above: config.stream_above,
        })
    }

    /// Reads the body of a successful answer, as [`Llm::complete`] does; `asked` names the model if
    /// the server does not. `None`: it is no chat completion.
    pub fn parse_completion(body: &[u8], asked: &str) -> Option<ModelReply> {
        wire::parse_reply(body, asked).ok()
    }

    /// Sorts a refusal into those that are answers and those that are failures.
    fn classify_refusal(
        &self,
        call: RefusedCall,
        sent: CallOptions<'_>,
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
        Err(self.exchange.refused_try(call, sent, tries))
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
        let sent = self.exchange.options().for_call(prompt);
        let stream = sent.max_tokens > self.stream_above;
        let options = wire::OpenAiOptions {
            stream,
            form,
            cache: self.cache,
            effort: self.server.effort,
            call: sent,
        };
        let body = wire::build_request(&self.model, prompt, options);
        match self.exchange.post_json(&body, stream, tries).await? {
            ChatResponse::No(call) => self.classify_refusal(call, sent, tries),
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

    fn request_options(&self) -> Option<&RequestOptions> {
        Some(self.exchange.options())
    }

    async fn ping(&self) -> Result<()> {
        self.exchange.check_server().await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let reply = call_with_retries(self, prompt).await?;
        Ok(if self.server.truncates { reply.check_window(prompt) } else { reply })
    }
}
