//! `[llm]`: which language model reads, where it is, in which dialect and form it answers, and the
//! stronger models of the chain.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::address;
use super::llm_batch::BatchConfig;
use super::llm_request::{AutoOr, ExtraBody, ExtraHeaders, ModelEffort, RequestSettings};
use super::scheduler::SchedulerConfig;
use super::secret::{self, SecretSource};
use super::units::SecretString;
use crate::model::{PictureRule, PriceClass};

/// The default of `llm.thinking_tokens` for models of hosted vendors.
const HOSTED_THINKING_TOKENS: u32 = 4_096;

/// The vendor or API of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmProvider {
    /// None: the offline rules reader.
    None,
    /// Any server with an OpenAI-compatible chat completions endpoint.
    Openai,
    /// Anthropic's Messages API.
    Anthropic,
    /// Amazon Bedrock's Converse API.
    Bedrock,
    /// Google's Gemini API.
    Gemini,
    /// Google Cloud's Vertex AI: Gemini and Claude.
    Vertex,
}

/// How a server is shown who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmAuth {
    /// By the API key, where there is one; Bedrock and Vertex AI by the platform's credentials.
    Key,
    /// By a token of Microsoft Entra ID: the pod's, app's or machine's own identity.
    Entra,
}

/// How a language model is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// Which vendor's API is called.
    pub provider: LlmProvider,
    /// Which server, where several speak the same protocol.
    pub server: LlmServer,
    /// Up to and without `/chat/completions`, e.g. `https://api.openai.com/v1`; up to and without
    /// `/messages`, or `/models` of Gemini; with Bedrock another endpoint than AWS's own; with Vertex AI
    /// up to and with the location: `…/v1/projects/PROJECT/locations/LOCATION`.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub base_url: String,
    /// May be empty for local servers and, with AWS's own credentials, for Bedrock. With Vertex AI the
    /// content of a credentials file.
    pub api_key: SecretString,
    /// A file with that key, read again when it changes; with Vertex AI the credentials file.
    pub api_key_file: PathBuf,
    /// How the server is shown who asks.
    pub auth: LlmAuth,
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
    /// How much the model thinks.
    pub effort: ModelEffort,
    /// Tokens that a reply may have beside `max_output_tokens`, for thinking: vendors count both
    /// against one cap.
    pub thinking_tokens: AutoOr<u32>,
    /// Randomness of the reply, 0 to 2.
    pub temperature: AutoOr<f64>,
    /// The vendor's class of service, e.g. `flex`; empty: none is named.
    pub service_tier: String,
    /// Further fields of a request, as the vendor names them; on Bedrock those of the model.
    pub extra_body: ExtraBody,
    /// Further headers of a request, in the place of those of the same name.
    pub headers: BTreeMap<String, String>,
    /// Files with the values of further headers, read again when they change.
    pub header_files: BTreeMap<String, PathBuf>,
    /// Whether the last model is asked once more for fields that it left empty and the gate wants,
    /// before a person is.
    pub ask_again: bool,
    /// Parts of one long document that are asked for at the same time.
    pub parts_at_once: usize,
    /// Models that share this machine's memory.
    pub scheduler: SchedulerConfig,
    /// A reply that may have more tokens than this is streamed.
    pub stream_above: u32,
    /// How the form of the reply is demanded.
    pub structured: StructuredOutput,
    /// How the numbers of a reply are written.
    pub numbers: ReplyNumbers,
    /// How long the vendor keeps the stable part of the prompt.
    pub prompt_cache: PromptCache,
    /// Whether the model takes pictures: pages are shown to it where a kind asks for that.
    pub takes_pictures: bool,
    /// Questions that may wait are asked in batches, for less.
    pub batch: BatchConfig,
    /// Stronger models, asked in this order where the gate says `again`.
    pub chain: Vec<EscalationModelConfig>,
}

impl LlmProvider {
    /// As prices and spending name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
        }
    }
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            provider: LlmProvider::None,
            server: LlmServer::Other,
            base_url: String::new(),
            api_key: SecretString::default(),
            api_key_file: PathBuf::new(),
            auth: LlmAuth::Key,
            region: String::new(),
            model: String::new(),
            timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(60),
            max_output_tokens: 8_192,
            effort: ModelEffort::Default,
            thinking_tokens: AutoOr::Auto,
            temperature: AutoOr::Auto,
            service_tier: String::new(),
            extra_body: ExtraBody::default(),
            headers: BTreeMap::new(),
            header_files: BTreeMap::new(),
            ask_again: true,
            parts_at_once: 4,
            scheduler: SchedulerConfig::default(),
            stream_above: 21_333,
            structured: StructuredOutput::Schema,
            numbers: ReplyNumbers::Auto,
            prompt_cache: PromptCache::Short,
            takes_pictures: false,
            batch: BatchConfig::default(),
            chain: Vec::new(),
        }
    }
}

impl LlmConfig {
    /// Whether its calls may cost money: it runs neither on this machine nor on a server of a
    /// self-hosted kind.
    pub fn may_be_charged(&self) -> bool {
        self.provider != LlmProvider::None
            && !self.server.is_self_hosted()
            && !self.scheduler.is_local(&self.model)
            && !address::is_on_this_machine(&self.base_url)
    }

    /// The key as it is now.
    pub fn key_source(&self) -> SecretSource {
        SecretSource::new(&self.api_key, &self.api_key_file)
    }

    /// Headers that its requests carry besides the vendor's own.
    pub fn extra_headers(&self) -> ExtraHeaders {
        ExtraHeaders::new(&self.headers, &self.header_files)
    }

    /// Tokens for thinking that are added to the cap of a reply. Of a hosted vendor's model it is
    /// taken for granted that it may think; of any other nothing is.
    pub fn thinking_reserve(&self) -> u32 {
        let hosted = match (self.provider, self.server) {
            (LlmProvider::None, _) => false,
            (LlmProvider::Openai, server) => {
                matches!(server, LlmServer::Openai | LlmServer::Azure)
            }
            _ => true,
        };
        self.thinking_tokens.value().unwrap_or(if hosted { HOSTED_THINKING_TOKENS } else { 0 })
    }

    /// The temperature that is sent, if one is. Servers of a self-hosted kind have defaults made for
    /// chats (Ollama 1.0, llama.cpp 0.8); several models of hosted vendors refuse the field.
    pub fn sent_temperature(&self) -> Option<f64> {
        let own = self.server.is_self_hosted() && self.provider == LlmProvider::Openai;
        self.temperature.value().or(own.then_some(0.0))
    }

    /// Whether numbers of a reply are asked for as printed text. The grammar that a self-hosted server makes of a
    /// JSON number has no way back for a model that has begun to copy `15.387,08`.
    pub fn asks_for_printed_numbers(&self) -> bool {
        match self.numbers {
            ReplyNumbers::Auto => {
                self.server.is_self_hosted() && self.provider == LlmProvider::Openai
            }
            ReplyNumbers::Json => false,
            ReplyNumbers::Printed => true,
        }
    }

    /// Whether its model takes the form of Anthropic's models, at whichever host.
    pub fn asks_claude(&self) -> bool {
        let name = self.model.rsplit('/').next().unwrap_or_default();
        match self.provider {
            LlmProvider::Anthropic | LlmProvider::Bedrock => true,
            LlmProvider::Vertex => name.starts_with("claude"),
            LlmProvider::None | LlmProvider::Openai | LlmProvider::Gemini => false,
        }
    }

    /// The terms of its calls that change their price.
    pub fn price_class(&self) -> PriceClass {
        PriceClass {
            service_tier: self.service_tier.clone(),
            caches_for_an_hour: self.prompt_cache == PromptCache::Long,
        }
    }

    /// How its vendor sizes and counts pictures.
    pub fn picture_rule(&self) -> PictureRule {
        match self.server {
            _ if self.asks_claude() => PictureRule::ANTHROPIC,
            LlmServer::Openai | LlmServer::Azure => PictureRule::OPENAI,
            _ => PictureRule::OTHER,
        }
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        self.scheduler.collect_problems(problems);
        if self.parts_at_once == 0 || self.parts_at_once > 100 {
            problems.push("llm.parts_at_once must be between 1 and 100".to_owned());
        }
        if self.provider == LlmProvider::None {
            if !self.chain.is_empty() {
                problems.push("llm.chain needs a first model: set llm.provider".to_owned());
            }
            return;
        }
        self.batch.collect_problems(problems);
        self.check_one("llm", problems);
        for (at, rung) in self.chain.iter().enumerate() {
            rung.inherit_from(self).check_one(&format!("llm.chain[{at}]"), problems);
        }
    }

    /// Checks one model's settings; `at` is their key.
    pub(super) fn check_one(&self, at: &str, problems: &mut Vec<String>) {
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
        secret::check_secret(&self.api_key, &self.api_key_file, &format!("{at}.api_key"), problems);
        if self.model.is_empty() {
            problems.push(format!("{at}.model is missing"));
        }
        let has_key = !self.api_key.is_empty() || self.key_source().is_file();
        let has_token = self.auth == LlmAuth::Entra || self.provider == LlmProvider::Vertex;
        if (has_key || has_token) && address::sends_in_the_clear(&self.base_url) {
            problems.push(format!(
                "{at}.base_url begins with http:// and leaves this machine: {at}.api_key and every \
                 document could be read on the way; use https://"
            ));
        }
        self.check_host(at, has_key, problems);
        if matches!(self.provider, LlmProvider::Anthropic | LlmProvider::Gemini) && !has_key {
            problems.push(format!("{at}.api_key is missing"));
        }
        if !self.asks_claude() && self.structured == StructuredOutput::Tool {
            problems.push(format!(
                "{at}.structured: `tool` is for anthropic, bedrock and Claude on vertex"
            ));
        }
        if self.batch.enabled {
            self.check_batches(at, problems);
        }
        self.check_request(at, problems);
        if self.timeout.is_zero() || self.idle_timeout.is_zero() || self.max_output_tokens == 0 {
            problems.push(format!(
                "{at}.timeout, {at}.idle_timeout and {at}.max_output_tokens must be above 0"
            ));
        }
    }

    /// Checks what its requests carry beside the prompt.
    fn check_request(&self, at: &str, problems: &mut Vec<String>) {
        RequestSettings {
            at,
            temperature: self.temperature,
            thinking_tokens: self.thinking_tokens,
            extra_body: &self.extra_body,
            headers: &self.headers,
            header_files: &self.header_files,
        }
        .collect_problems(problems);
        if self.provider != LlmProvider::Bedrock {
            return;
        }
        if !self.headers.is_empty() || !self.header_files.is_empty() {
            problems.push(format!("{at}.headers: Bedrock's requests are signed, they take none"));
        }
        if self.effort != ModelEffort::Default && self.bedrock_family() == BedrockFamily::Other {
            problems.push(format!(
                "{at}.effort has no known field for this model on Bedrock: leave it out and put \
                 the model's own field into {at}.extra_body"
            ));
        }
    }

    /// Checks the settings that belong to one host alone.
    fn check_host(&self, at: &str, has_key: bool, problems: &mut Vec<String>) {
        let is_azure = self.provider == LlmProvider::Openai && self.server == LlmServer::Azure;
        if self.auth == LlmAuth::Entra && !is_azure {
            problems.push(format!(
                "{at}.auth: `entra` is for the provider `openai` with {at}.server = \"azure\""
            ));
        }
        if self.auth == LlmAuth::Entra && has_key {
            problems.push(format!("{at}.auth is `entra`: leave {at}.api_key out"));
        }
        let path = self.base_url.split_once("/projects/");
        let has_location = path.is_some_and(|(_, rest)| rest.contains("/locations/"));
        if self.provider == LlmProvider::Vertex && !has_location {
            problems.push(format!(
                "{at}.base_url of Vertex AI must be \
                 https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION"
            ));
        }
    }

    /// Whose model is asked on Bedrock, by the name of the model or inference profile.
    pub fn bedrock_family(&self) -> BedrockFamily {
        let families = [
            ("anthropic.", BedrockFamily::Anthropic),
            ("openai.", BedrockFamily::Openai),
            ("amazon.nova", BedrockFamily::Nova),
        ];
        let found = families.iter().find(|(part, _)| self.model.contains(part));
        found.map_or(BedrockFamily::Other, |(_, family)| *family)
    }

    /// Checks the settings for asking this model in batches.
    fn check_batches(&self, at: &str, problems: &mut Vec<String>) {
        let key = if at == "llm" { "llm.batch.enabled".to_owned() } else { format!("{at}.batch") };
        match (self.provider, self.server) {
            (LlmProvider::Anthropic | LlmProvider::Gemini, _)
            | (LlmProvider::Openai, LlmServer::Openai) => {}
            (LlmProvider::Openai, LlmServer::Azure) => {
                if self.batch.azure_deployment.is_empty() {
                    problems.push(format!(
                        "{key}: Azure answers batches by a deployment of the type Global Batch: set \
                         llm.batch.azure_deployment (of the first model; in llm.chain `batch = false`)"
                    ));
                }
            }
            (LlmProvider::Bedrock, _) if self.structured == StructuredOutput::Tool => {
                problems.push(format!(
                    "{key}: Bedrock takes no tools in batches: {at}.structured must be `schema` or \
                     `prompt`"
                ));
            }
            (LlmProvider::Bedrock, _) => self.batch.bedrock.collect_problems(&key, problems),
            _ => problems.push(format!(
                "{key}: batches are for the providers `anthropic`, `bedrock` and `gemini`, and for \
                 `openai` with server `openai` or `azure`"
            )),
        }
        if self.provider == LlmProvider::Bedrock
            && self.batch.requests < self.batch.bedrock.least_requests
        {
            problems.push(format!(
                "{key}: llm.batch.requests must not be below llm.batch.bedrock.least_requests, or \
                 nothing is handed in"
            ));
        }
    }
}

/// Which server, where several speak OpenAI's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmServer {
    /// OpenAI's own service.
    Openai,
    /// Models that Azure OpenAI hosts.
    Azure,
    /// A vLLM server.
    Vllm,
    /// Ollama, which shortens prompts that do not fit, silently.
    Ollama,
    /// The server of llama.cpp.
    LlamaCpp,
    /// Any other; nothing is taken for granted.
    Other,
}

impl LlmServer {
    /// Whether operators run this kind of server themselves.
    fn is_self_hosted(self) -> bool {
        matches!(self, Self::Vllm | Self::Ollama | Self::LlamaCpp)
    }
}

/// Whose model Bedrock runs: each has fields of its own for effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BedrockFamily {
    /// Claude.
    Anthropic,
    /// OpenAI's open models.
    Openai,
    /// Amazon's Nova.
    Nova,
    /// Any other, or an ARN that names no vendor.
    Other,
}

/// How the form of the reply is demanded. It is checked in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StructuredOutput {
    /// The vendor's structured output enforces the schema.
    Schema,
    /// The model has to call a tool whose arguments are the reply.
    Tool,
    /// The prompt alone asks for the form.
    Prompt,
}

/// How the numbers of a reply are written, where a schema demands its form. Claude's are texts in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyNumbers {
    /// As printed at vLLM, Ollama and llama.cpp, else in JSON.
    Auto,
    /// As numbers of JSON.
    Json,
    /// As texts that copy the document.
    Printed,
}

/// How long a vendor is asked to keep the stable part of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptCache {
    /// The vendor is not asked to cache anything.
    #[serde(rename = "off")]
    Off,
    /// The vendor keeps the prompt for five minutes.
    #[serde(rename = "5m")]
    Short,
    /// The vendor keeps the prompt for an hour.
    #[serde(rename = "1h")]
    Long,
}

impl PromptCache {
    /// The time as vendors write it; none when off.
    pub fn ttl(self) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::Short => Some("5m"),
            Self::Long => Some("1h"),
        }
    }
}

/// A stronger model of the chain. Omitted settings are as in `[llm]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EscalationModelConfig {
    /// Name of the model.
    pub model: String,
    /// Kinds of documents that it is asked about; empty: all.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Another vendor than that of `[llm]`.
    pub provider: Option<LlmProvider>,
    /// Another server of the same protocol.
    pub server: Option<LlmServer>,
    /// Another address than that of `[llm]`.
    #[serde(serialize_with = "super::address::serialize_optional_address")]
    pub base_url: Option<String>,
    /// Another API key than that of `[llm]`.
    pub api_key: Option<SecretString>,
    /// A file with that key, read again when it changes.
    pub api_key_file: Option<PathBuf>,
    /// Another way to show who asks.
    pub auth: Option<LlmAuth>,
    /// Another AWS region than that of `[llm]`.
    pub region: Option<String>,
    /// Longest one call may take.
    #[serde(default, with = "humantime_serde::option")]
    pub timeout: Option<Duration>,
    /// Most tokens of a reply.
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks.
    pub effort: Option<ModelEffort>,
    /// Tokens for thinking, beside `max_output_tokens`.
    pub thinking_tokens: Option<AutoOr<u32>>,
    /// Randomness of the reply, 0 to 2.
    pub temperature: Option<AutoOr<f64>>,
    /// The vendor's class of service.
    pub service_tier: Option<String>,
    /// Further fields of a request.
    pub extra_body: Option<ExtraBody>,
    /// Further headers of a request.
    pub headers: Option<BTreeMap<String, String>>,
    /// Files with the values of further headers.
    pub header_files: Option<BTreeMap<String, PathBuf>>,
    /// How the form of the reply is demanded.
    pub structured: Option<StructuredOutput>,
    /// How the numbers of a reply are written.
    pub numbers: Option<ReplyNumbers>,
    /// How long the vendor keeps the stable part of the prompt.
    pub prompt_cache: Option<PromptCache>,
    /// Whether this model takes pictures.
    pub takes_pictures: Option<bool>,
    /// Whether its calls may go in batches as well; as `llm.batch.enabled` if left out.
    pub batch: Option<bool>,
}

impl EscalationModelConfig {
    /// The whole of its settings. Address and key are not taken over by another vendor, nor the
    /// key by another address: a key goes only where it was meant to go. The same holds for headers
    /// and for fields in one vendor's words.
    #[must_use]
    pub fn inherit_from(&self, first: &LlmConfig) -> LlmConfig {
        let other_vendor = self.provider.is_some_and(|provider| provider != first.provider);
        let elsewhere = other_vendor || self.base_url.is_some();
        let near = if elsewhere { LlmConfig::default() } else { first.clone() };
        let has_key = self.api_key.is_some() || self.api_key_file.is_some();
        let (key, file) =
            if has_key { Default::default() } else { (near.api_key, near.api_key_file) };
        let address = if other_vendor { String::new() } else { first.base_url.clone() };
        LlmConfig {
            provider: self.provider.unwrap_or(first.provider),
            server: self.server.unwrap_or(near.server),
            base_url: self.base_url.clone().unwrap_or(address),
            api_key: self.api_key.clone().unwrap_or(key),
            api_key_file: self.api_key_file.clone().unwrap_or(file),
            auth: self.auth.unwrap_or(near.auth),
            region: self.region.clone().unwrap_or_else(|| first.region.clone()),
            model: self.model.clone(),
            timeout: self.timeout.unwrap_or(first.timeout),
            max_output_tokens: self.max_output_tokens.unwrap_or(first.max_output_tokens),
            effort: self.effort.unwrap_or(first.effort),
            thinking_tokens: self.thinking_tokens.unwrap_or(near.thinking_tokens),
            temperature: self.temperature.unwrap_or(near.temperature),
            service_tier: self.service_tier.clone().unwrap_or(near.service_tier),
            extra_body: self.extra_body.clone().unwrap_or(near.extra_body),
            headers: self.headers.clone().unwrap_or(near.headers),
            header_files: self.header_files.clone().unwrap_or(near.header_files),
            structured: self.structured.unwrap_or(first.structured),
            numbers: self.numbers.unwrap_or(first.numbers),
            prompt_cache: self.prompt_cache.unwrap_or(first.prompt_cache),
            takes_pictures: self.takes_pictures.unwrap_or(first.takes_pictures),
            batch: BatchConfig {
                enabled: first.batch.enabled && self.batch != Some(false),
                azure_deployment: String::new(),
                ..first.batch.clone()
            },
            chain: Vec::new(),
            ..first.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> LlmConfig {
        LlmConfig {
            provider: LlmProvider::Openai,
            server: LlmServer::Openai,
            base_url: "https://one.example/v1".to_owned(),
            api_key: "secret".to_owned().into(),
            model: "small".to_owned(),
            ..LlmConfig::default()
        }
    }

    fn rung(text: &str) -> LlmConfig {
        toml::from_str::<EscalationModelConfig>(text).unwrap().inherit_from(&first())
    }

    #[test]
    fn a_key_goes_only_where_it_was_meant_to_go() {
        #[rustfmt::skip]
        let table = [
            ("another model, the same place", "model = 'large'", "https://one.example/v1", "secret"),
            ("another place",  "model = 'large'\nbase_url = 'https://two.example/v1'", "https://two.example/v1", ""),
            ("another vendor", "model = 'large'\nprovider = 'anthropic'", "", ""),
            ("with its own",   "model = 'large'\nprovider = 'bedrock'\napi_key = 'own'", "", "own"),
        ];
        for (name, text, address, key) in table {
            let rung = rung(text);
            assert_eq!((rung.base_url.as_str(), rung.api_key.reveal()), (address, key), "{name}");
            assert_eq!(rung.model, "large", "{name}");
        }
    }

    #[test]
    fn headers_and_fields_of_one_vendor_do_not_reach_another_and_a_key_may_be_in_a_file() {
        let first = LlmConfig {
            effort: ModelEffort::Low,
            temperature: AutoOr::Value(0.5),
            service_tier: "flex".to_owned(),
            extra_body: toml::from_str("top_p = 0.5").unwrap(),
            headers: [("x-team".to_owned(), "a".to_owned())].into(),
            ..first()
        };
        let rung = |text: &str| {
            toml::from_str::<EscalationModelConfig>(text).unwrap().inherit_from(&first)
        };
        let same = rung("model = 'large'\neffort = 'medium'");
        assert_eq!(
            same,
            LlmConfig { model: "large".to_owned(), effort: ModelEffort::Medium, ..first.clone() }
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        for text in ["provider = 'anthropic'", "base_url = 'https://two.example/v1'"] {
            let other = rung(&format!("model = 'large'\n{text}\napi_key_file = '{path}'"));
            assert_eq!((other.effort, other.temperature), (ModelEffort::Low, AutoOr::Auto));
            assert!(other.headers.is_empty() && other.extra_body.is_empty(), "{text}");
            assert_eq!((other.service_tier.as_str(), other.api_key.reveal()), ("", ""), "{text}");
            assert_eq!(other.api_key_file, file.path(), "{text}");
        }
    }

    #[test]
    fn a_reserve_for_thinking_is_kept_at_hosted_vendors_and_local_servers_are_asked_coldly() {
        let of = |provider, server| LlmConfig { provider, server, ..LlmConfig::default() };
        #[rustfmt::skip]
        let table = [
            (of(LlmProvider::Openai, LlmServer::Openai),    4_096, None),
            (of(LlmProvider::Openai, LlmServer::Azure),     4_096, None),
            (of(LlmProvider::Openai, LlmServer::Other),     0,     None),
            (of(LlmProvider::Openai, LlmServer::Vllm),      0,     Some(0.0)),
            (of(LlmProvider::Openai, LlmServer::Ollama),    0,     Some(0.0)),
            (of(LlmProvider::Openai, LlmServer::LlamaCpp),  0,     Some(0.0)),
            (of(LlmProvider::Anthropic, LlmServer::Other),  4_096, None),
            (of(LlmProvider::Bedrock, LlmServer::Other),    4_096, None),
            (of(LlmProvider::Gemini, LlmServer::Other),     4_096, None),
        ];
        for (config, reserve, temperature) in table {
            let at = format!("{:?} {:?}", config.provider, config.server);
            assert_eq!(config.thinking_reserve(), reserve, "{at}");
            assert_eq!(config.sent_temperature(), temperature, "{at}");
        }
        let set = LlmConfig {
            thinking_tokens: AutoOr::Value(9),
            temperature: AutoOr::Value(0.3),
            ..of(LlmProvider::Openai, LlmServer::Ollama)
        };
        assert_eq!((set.thinking_reserve(), set.sent_temperature()), (9, Some(0.3)));
    }

    #[test]
    fn effort_on_bedrock_needs_a_model_whose_field_is_known() {
        let problems = |model: &str| {
            let mut problems = Vec::new();
            LlmConfig {
                provider: LlmProvider::Bedrock,
                model: model.to_owned(),
                effort: ModelEffort::Low,
                ..LlmConfig::default()
            }
            .collect_problems(&mut problems);
            problems.join("\n")
        };
        assert_eq!(problems("eu.anthropic.claude-sonnet-5"), "");
        let arn = "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x";
        assert!(problems(arn).contains("llm.extra_body"));
    }

    #[test]
    fn a_key_is_not_sent_unencrypted_to_another_machine() {
        let problems = |base_url: &str, api_key: &str| {
            let (base_url, api_key) = (base_url.to_owned(), api_key.to_owned().into());
            let mut problems = Vec::new();
            LlmConfig { base_url, api_key, ..first() }.collect_problems(&mut problems);
            problems.join("\n")
        };
        let said = problems("http://models.example/v1", "key");
        assert!(said.contains("llm.base_url") && said.contains("https://"), "{said}");
        assert_eq!(problems("http://models.example/v1", ""), "", "nothing to lose");
        assert_eq!(problems("http://127.0.0.1:8000/v1", "key"), "");
        assert_eq!(problems("https://models.example/v1", "key"), "");
    }

    #[test]
    fn a_token_is_for_its_own_host_and_goes_nowhere_unencrypted() {
        let vertex =
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4";
        #[rustfmt::skip]
        let table = [
            ("openai",  "azure",  "entra", "https://x.openai.azure.com/openai/v1", "",    ""),
            ("openai",  "azure",  "entra", "https://x.openai.azure.com/openai/v1", "key", "leave llm.api_key out"),
            ("openai",  "azure",  "entra", "http://x.example/openai/v1",           "",    "https://"),
            ("openai",  "openai", "entra", "https://api.openai.com/v1",            "",    "`entra` is for"),
            ("vertex",  "other",  "key",   vertex,                                 "",    ""),
            ("vertex",  "other",  "key",   "https://aiplatform.googleapis.com/v1", "",    "locations/LOCATION"),
            ("vertex",  "other",  "entra", vertex,                                 "",    "`entra` is for"),
        ];
        for (provider, server, auth, base_url, key, words) in table {
            let text = format!(
                "provider = '{provider}'\nserver = '{server}'\nauth = '{auth}'\nmodel = 'm'\n\
                 base_url = '{base_url}'\napi_key = '{key}'"
            );
            let mut problems = Vec::new();
            toml::from_str::<LlmConfig>(&text).unwrap().collect_problems(&mut problems);
            let said = problems.join("; ");
            assert_eq!(problems.len(), usize::from(!words.is_empty()), "{text}: {said}");
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn claude_is_known_by_its_name_at_the_host_that_serves_others_too() {
        for (provider, model, expected) in [
            (LlmProvider::Vertex, "claude-opus-5-5", true),
            (LlmProvider::Vertex, "publishers/anthropic/models/claude-opus-5-5", true),
            (LlmProvider::Vertex, "gemini-3.8-flash", false),
            (LlmProvider::Anthropic, "any", true),
            (LlmProvider::Openai, "claude-by-a-gateway", false),
        ] {
            let config = LlmConfig { provider, model: model.to_owned(), ..first() };
            assert_eq!(config.asks_claude(), expected, "{model}");
        }
    }

    #[test]
    fn batches_on_azure_need_a_deployment_of_their_own() {
        let azure = |azure_deployment: &str| {
            let mut config = LlmConfig { server: LlmServer::Azure, ..first() };
            config.batch.enabled = true;
            config.batch.azure_deployment = azure_deployment.to_owned();
            let mut problems = Vec::new();
            config.collect_problems(&mut problems);
            problems.join("; ")
        };
        assert!(azure("").contains("llm.batch.azure_deployment"));
        assert_eq!(azure("batches"), "");
    }

    #[test]
    fn a_problem_of_a_model_in_the_chain_is_reported_with_its_position() {
        let mut config = first();
        config.chain = vec![toml::from_str("model = ''\nprovider = 'anthropic'").unwrap()];
        let mut problems = Vec::new();
        config.collect_problems(&mut problems);
        let places = ["llm.chain[0].base_url", "llm.chain[0].model", "llm.chain[0].api_key"];
        assert_eq!(problems.len(), places.len(), "{problems:?}");
        for place in places {
            assert!(problems.iter().any(|it| it.starts_with(place)), "{place}: {problems:?}");
        }
        assert!(toml::from_str::<EscalationModelConfig>("model = 'x'\nmodle = 'y'").is_err());
    }
}
