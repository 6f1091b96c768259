//! `[llm]` and `[kinds]`: what turns text into data.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::secret::{self, SecretSource};
use super::units::Secret;

/// Which language model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmProvider {
    /// None: the offline rules reader.
    None,
    /// Any server with an OpenAI-compatible chat completions endpoint.
    Openai,
}

/// How a language model is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// Which server.
    pub provider: LlmProvider,
    /// Up to and without `/chat/completions`, e.g. `https://api.openai.com/v1`.
    pub base_url: String,
    /// Sent as bearer token; may be empty for local servers.
    pub api_key: Secret,
    /// A file with that key, read again when it changes.
    pub api_key_file: PathBuf,
    /// Name of the model.
    pub model: String,
    /// Longest one call may take.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// Most tokens of a reply.
    pub max_output_tokens: u32,
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            provider: LlmProvider::None,
            base_url: String::new(),
            api_key: Secret::default(),
            api_key_file: PathBuf::new(),
            model: String::new(),
            timeout: Duration::from_secs(600),
            max_output_tokens: 8_192,
        }
    }
}

impl LlmConfig {
    /// The key as it is now.
    pub fn key(&self) -> SecretSource {
        SecretSource::new(&self.api_key, &self.api_key_file)
    }

    pub(super) fn check(&self, problems: &mut Vec<String>) {
        if self.provider == LlmProvider::None {
            return;
        }
        if !self.base_url.starts_with("http://") && !self.base_url.starts_with("https://") {
            problems.push(
                "llm.base_url must be an http:// or https:// address, without /chat/completions"
                    .to_owned(),
            );
        }
        secret::check((&self.api_key, &self.api_key_file), "llm.api_key", problems);
        if self.model.is_empty() {
            problems.push("llm.model is missing".to_owned());
        }
        if self.timeout.is_zero() || self.max_output_tokens == 0 {
            problems.push("llm.timeout and llm.max_output_tokens must be above 0".to_owned());
        }
    }
}

/// Where kinds of documents are defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KindsConfig {
    /// A folder with one folder per kind, beside the ones built in; of one name, the one in the
    /// folder holds. Empty: only the ones built in.
    pub path: PathBuf,
    /// Whether the kind is told from the document where the producer names none.
    pub classify: bool,
    /// The kind of documents for which the producer names none, where it is not told from the
    /// document: without `classify`, and of e-invoices.
    pub default: String,
}

impl Default for KindsConfig {
    fn default() -> Self {
        Self { path: PathBuf::new(), classify: true, default: "invoice".to_owned() }
    }
}
