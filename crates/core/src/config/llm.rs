//! What can be chosen about a model beside its address: dialect, form of the reply, cache, and the
//! stronger models of the chain.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units::Secret;
use super::{LlmConfig, LlmProvider};

/// Which server, where several speak OpenAI's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmServer {
    /// OpenAI's own.
    Openai,
    /// Azure OpenAI.
    Azure,
    /// vLLM.
    Vllm,
    /// Ollama, which shortens prompts that do not fit without a word.
    Ollama,
    /// llama.cpp's server.
    LlamaCpp,
    /// Any other; nothing is taken for granted.
    Other,
}

/// How the form of the reply is demanded. It is checked in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StructuredOutput {
    /// By the vendor's structured output.
    Schema,
    /// By a tool that must be used.
    Tool,
    /// By the prompt alone.
    Prompt,
}

/// How long a vendor is asked to keep the stable part of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptCache {
    /// Not at all.
    #[serde(rename = "off")]
    Off,
    /// Five minutes.
    #[serde(rename = "5m")]
    Short,
    /// An hour.
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

/// A stronger model of the chain. What is left out is as in `[llm]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RungConfig {
    /// Name of the model.
    pub model: String,
    /// Kinds of documents that it is asked about; empty: all.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Another vendor.
    pub provider: Option<LlmProvider>,
    /// Another server of the same protocol.
    pub server: Option<LlmServer>,
    /// Another address.
    pub base_url: Option<String>,
    /// Another key.
    pub api_key: Option<Secret>,
    /// Another AWS region.
    pub region: Option<String>,
    /// Longest one call may take.
    #[serde(default, with = "humantime_serde::option")]
    pub timeout: Option<Duration>,
    /// Most tokens of a reply.
    pub max_output_tokens: Option<u32>,
    /// How the form of the reply is demanded.
    pub structured: Option<StructuredOutput>,
    /// How long the vendor keeps the stable part of the prompt.
    pub prompt_cache: Option<PromptCache>,
}

impl RungConfig {
    /// The whole of its settings. Address and key are not taken over by another vendor, nor the
    /// key by another address: a key goes only where it was meant to go.
    #[must_use]
    pub fn over(&self, first: &LlmConfig) -> LlmConfig {
        let other_vendor = self.provider.is_some_and(|provider| provider != first.provider);
        let elsewhere = other_vendor || self.base_url.is_some();
        let address = if other_vendor { String::new() } else { first.base_url.clone() };
        let key = if elsewhere { Secret::default() } else { first.api_key.clone() };
        LlmConfig {
            provider: self.provider.unwrap_or(first.provider),
            server: self.server.unwrap_or(if elsewhere { LlmServer::Other } else { first.server }),
            base_url: self.base_url.clone().unwrap_or(address),
            api_key: self.api_key.clone().unwrap_or(key),
            api_key_file: match elsewhere || self.api_key.is_some() {
                true => PathBuf::new(),
                false => first.api_key_file.clone(),
            },
            region: self.region.clone().unwrap_or_else(|| first.region.clone()),
            model: self.model.clone(),
            timeout: self.timeout.unwrap_or(first.timeout),
            max_output_tokens: self.max_output_tokens.unwrap_or(first.max_output_tokens),
            structured: self.structured.unwrap_or(first.structured),
            prompt_cache: self.prompt_cache.unwrap_or(first.prompt_cache),
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
        toml::from_str::<RungConfig>(text).unwrap().over(&first())
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
    fn what_is_wrong_with_a_rung_is_said_with_its_place() {
        let mut config = first();
        config.chain = vec![toml::from_str("model = ''\nprovider = 'anthropic'").unwrap()];
        let mut problems = Vec::new();
        config.check(&mut problems);
        let places = ["llm.chain[0].base_url", "llm.chain[0].model", "llm.chain[0].api_key"];
        assert_eq!(problems.len(), places.len(), "{problems:?}");
        for place in places {
            assert!(problems.iter().any(|it| it.starts_with(place)), "{place}: {problems:?}");
        }
        assert!(toml::from_str::<RungConfig>("model = 'x'\nmodle = 'y'").is_err());
    }
}
