//! Google's Gemini (`generateContent`), at Google's own API or at Vertex AI, whose requests and
//! replies are the same.
//!
//! Contract: the types of `PyPI`'s google-genai 3.4, held by `scripts/contracts.sh`. The reply's
//! form is demanded by `responseJsonSchema`, or by the prompt alone. Gemini caches by itself.
//! Replies come whole, however long: `llm.timeout` has to be long enough for the longest.

pub mod batches;
mod wire;

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::exchange::{
    AuthHeaderFn, ChatResponse, ChatTransport, FailedTry, RetryableCall, call_with_retries,
    secret_header,
};
use super::form::{ReplyForm, ReplyForms};
use super::options::OptionalField;
use super::{FinishReason, Llm, ModelReply, Prompt, RequestOptions};
use docmill_core::config::{LlmConfig, LlmProvider};
use docmill_core::fault::Result;

/// A model of Google's.
pub struct GeminiClient {
    exchange: ChatTransport,
    model: String,
    forms: ReplyForms,
    provider: LlmProvider,
}

impl GeminiClient {
    /// Sets the client up; nothing is sent.
    ///
    /// # Errors
    /// The address is no URL, or there is no usable TLS set-up.
    pub fn new(config: &LlmConfig) -> Result<Self> {
        Ok(Self {
            exchange: connect_transport(config)?,
            model: config.model.clone(),
            forms: ReplyForms::new(config),
            provider: config.provider,
        })
    }
}

/// How Gemini's API is reached; its calls go to the model of the settings.
fn connect_transport(config: &LlmConfig) -> Result<ChatTransport> {
    let path = format!("/{}:generateContent", model_path(config.provider, &config.model));
    let key: AuthHeaderFn = Box::new(|key| secret_header("x-goog-api-key", key).map(Some));
    let exchange = ChatTransport::new(config, &path, HeaderMap::new(), key)?;
    Ok(exchange.without_fields(&OptionalField::OPENAI_ONLY))
}

/// Whether a model's thinking is set by a budget of tokens; later ones know levels
/// (ai.google.dev/gemini-api/docs/thinking).
fn has_thinking_budget(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.starts_with("gemini-1") || name.starts_with("gemini-2")
}

/// A model's place: a bare name is one of Google's own.
fn model_path(provider: LlmProvider, model: &str) -> String {
    match provider {
        _ if model.contains('/') => model.to_owned(),
        LlmProvider::Vertex => format!("publishers/google/models/{model}"),
        _ => format!("models/{model}"),
    }
}

#[async_trait]
impl RetryableCall for GeminiClient {
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
        let options =
            wire::GeminiOptions { form, has_budget: has_thinking_budget(&self.model), call: sent };
        let body = wire::build_request(prompt, options);
        match self.exchange.post_json(&body, false, tries).await? {
            ChatResponse::No(call) if call.refusal.is_prompt_too_long(call.status) => {
                Ok(ModelReply::without_text(FinishReason::TooLong, &self.model))
            }
            ChatResponse::No(call) => Err(self.exchange.refused_try(call, sent, tries)),
            ChatResponse::Accepted(response) => {
                let form = "generated content";
                self.exchange.read_whole_reply(response, wire::parse_reply, form, tries).await
            }
        }
    }
}

#[async_trait]
impl Llm for GeminiClient {
    fn provider(&self) -> &'static str {
        self.provider.name()
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
        if self.provider != LlmProvider::Vertex {
            return self.exchange.check_server().await;
        }
        let path = format!("/{}:countTokens", model_path(self.provider, &self.model));
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "docmill"}]}]});
        self.exchange.check_by_counting(&path, &body).await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        call_with_retries(self, prompt).await
    }
}
