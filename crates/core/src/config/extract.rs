//! `[llm]` and `[kinds]`: what turns text into data.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::llm::{LlmServer, PromptCache, RungConfig, StructuredOutput};
use super::scheduler::SchedulerConfig;
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
    /// Anthropic's messages API.
    Anthropic,
    /// Amazon Bedrock.
    Bedrock,
}

/// How a language model is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// Which server.
    pub provider: LlmProvider,
    /// Which server, where several speak the same protocol.
    pub server: LlmServer,
    /// Up to and without `/chat/completions`, e.g. `https://api.openai.com/v1`; up to and without
    /// `/messages`; with Bedrock another endpoint than AWS's own.
    pub base_url: String,
    /// May be empty for local servers and, with AWS's own credentials, for Bedrock.
    pub api_key: Secret,
    /// A file with that key, read again when it changes.
    pub api_key_file: PathBuf,
    /// AWS region of Bedrock; empty: from the environment.
    pub region: String,
    /// Name of the model.
    pub model: String,
    /// Longest one call may take.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// Longest silence within a streamed reply.
    #[serde(with = "humantime_serde")]
    pub idle_timeout: Duration,
    /// Most tokens of a reply.
    pub max_output_tokens: u32,
    /// Parts of one long document that are asked for at the same time.
    pub parts_at_once: usize,
    /// Who may use this machine's memory for models.
    pub scheduler: SchedulerConfig,
    /// A reply that may have more tokens than this is streamed.
    pub stream_above: u32,
    /// How the form of the reply is demanded.
    pub structured: StructuredOutput,
    /// How long the vendor keeps the stable part of the prompt.
    pub prompt_cache: PromptCache,
    /// Stronger models, asked in this order where the gate says `again`.
    pub chain: Vec<RungConfig>,
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            provider: LlmProvider::None,
            server: LlmServer::Other,
            base_url: String::new(),
            api_key: Secret::default(),
            api_key_file: PathBuf::new(),
            region: String::new(),
            model: String::new(),
            timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(60),
            max_output_tokens: 8_192,
            parts_at_once: 4,
            scheduler: SchedulerConfig::default(),
            stream_above: 21_333,
            structured: StructuredOutput::Schema,
            prompt_cache: PromptCache::Short,
            chain: Vec::new(),
        }
    }
}

impl LlmConfig {
    /// The key as it is now.
    pub fn key(&self) -> SecretSource {
        SecretSource::new(&self.api_key, &self.api_key_file)
    }

    pub(super) fn check(&self, problems: &mut Vec<String>) {
        self.scheduler.check(problems);
        if self.parts_at_once == 0 || self.parts_at_once > 100 {
            problems.push("llm.parts_at_once must be between 1 and 100".to_owned());
        }
        if self.provider == LlmProvider::None {
            if !self.chain.is_empty() {
                problems.push("llm.chain needs a first model: set llm.provider".to_owned());
            }
            return;
        }
        self.check_one("llm", problems);
        for (at, rung) in self.chain.iter().enumerate() {
            rung.over(self).check_one(&format!("llm.chain[{at}]"), problems);
        }
    }

    /// What is wrong with one model's settings; `at` is where they stand.
    fn check_one(&self, at: &str, problems: &mut Vec<String>) {
        if self.provider == LlmProvider::None {
            problems.push(format!("{at}.provider must name a vendor"));
            return;
        }
        let web = self.base_url.starts_with("http://") || self.base_url.starts_with("https://");
        let aws = self.provider == LlmProvider::Bedrock && self.base_url.is_empty();
        if !web && !aws {
            problems.push(format!(
                "{at}.base_url must be an http:// or https:// address, without /chat/completions \
                 or /messages"
            ));
        }
        secret::check((&self.api_key, &self.api_key_file), &format!("{at}.api_key"), problems);
        if self.model.is_empty() {
            problems.push(format!("{at}.model is missing"));
        }
        let has_key = !self.api_key.is_empty() || self.key().is_file();
        if self.provider == LlmProvider::Anthropic && !has_key {
            problems.push(format!("{at}.api_key is missing"));
        }
        if self.provider == LlmProvider::Openai && self.structured == StructuredOutput::Tool {
            problems.push(format!("{at}.structured: `tool` is for anthropic and bedrock"));
        }
        if self.timeout.is_zero() || self.idle_timeout.is_zero() || self.max_output_tokens == 0 {
            problems.push(format!(
                "{at}.timeout, {at}.idle_timeout and {at}.max_output_tokens must be above 0"
            ));
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
    /// Whether a model is asked, in one short call, where a document might be of several kinds. It
    /// needs a model and `classify`.
    pub ask_on_ties: bool,
    /// The kind of documents for which the producer names none, where it is not told from the
    /// document: without `classify`, and of e-invoices.
    pub default: String,
}

impl Default for KindsConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            classify: true,
            ask_on_ties: true,
            default: "invoice".to_owned(),
        }
    }
}
