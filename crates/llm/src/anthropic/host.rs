//! Where Anthropic's models are asked: at Anthropic, or at Vertex AI.

use reqwest::header::{HeaderMap, HeaderValue};

use crate::exchange::{AuthHeaderFn, ChatTransport, secret_header};
use crate::options::OptionalField;
use docmill_core::config::{LlmConfig, LlmProvider};
use docmill_core::fault::Result;

/// `ANTHROPIC_API_VERSION` of anthropic 2.11, at Vertex AI too; `llm.headers` may name another at
/// Anthropic.
pub(super) const VERSION: &str = "2026-10-21";
/// Where Vertex AI has Anthropic's models.
pub(super) const PUBLISHER: &str = "/publishers/anthropic/models";

/// Where Anthropic's models are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnthropicHost {
    /// At Anthropic.
    Own,
    /// At Vertex AI.
    Vertex,
}

impl AnthropicHost {
    /// That of a configuration.
    pub(super) fn of(config: &LlmConfig) -> Self {
        if config.provider == LlmProvider::Vertex { Self::Vertex } else { Self::Own }
    }

    /// Sets its transport up; nothing is sent.
    ///
    /// # Errors
    /// As [`ChatTransport::new`].
    pub(super) fn connect(self, config: &LlmConfig) -> Result<ChatTransport> {
        let key: AuthHeaderFn = Box::new(|key| secret_header("x-api-key", key).map(Some));
        let mut headers = HeaderMap::new();
        match self {
            Self::Own => {
                headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
                let exchange = ChatTransport::new(config, "/messages", headers, key)?;
                Ok(exchange.without_fields(&OptionalField::OPENAI_ONLY))
            }
            Self::Vertex => {
                let model = vertex_path(&config.model);
                let whole =
                    ChatTransport::new(config, &format!("{model}:rawPredict"), headers, key);
                whole?
                    .without_fields(&OptionalField::OPENAI_ONLY)
                    .stream_at(&format!("{model}:streamRawPredict"))
            }
        }
    }
}

/// A model's place at Vertex AI: a bare name is one of Anthropic's.
fn vertex_path(model: &str) -> String {
    if model.contains('/') { format!("/{model}") } else { format!("{PUBLISHER}/{model}") }
}
