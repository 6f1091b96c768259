//! How the servers that speak OpenAI's protocol differ.

use reqwest::header::{HeaderName, HeaderValue};

use crate::exchange::secret_header;
use crate::options::OptionalField;
use docmill_core::config::LlmServer;
use docmill_core::fault::Result;

/// How one server differs from OpenAI's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerProfile {
    /// The header of the key, and the prefix of its value.
    key: (&'static str, &'static str),
    /// Fields that it is known not to take. Others are learned from refusals.
    unknown: &'static [OptionalField],
    /// How it is told how much to think.
    pub(super) effort: EffortForm,
    /// Whether a prompt over its window is silently shortened to it.
    pub(super) truncates: bool,
    /// How its batches differ.
    pub(super) batches: &'static BatchProfile,
}

/// How batches are made at one server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BatchProfile {
    /// The endpoint for the questions of a batch.
    pub(super) endpoint: &'static str,
    /// Seconds after which a file of questions expires.
    pub(super) file_seconds: u32,
    /// Whether a deployment of its own answers them: `llm.batch.azure_deployment`.
    pub(super) own_deployment: bool,
}

const OWN_BATCHES: BatchProfile = BatchProfile {
    endpoint: "/v1/chat/completions",
    file_seconds: 4 * 86_400,
    own_deployment: false,
};
/// Microsoft's "Global Batch": files expire after 14 to 30 days.
const AZURE_BATCHES: BatchProfile =
    BatchProfile { endpoint: "/chat/completions", file_seconds: 14 * 86_400, own_deployment: true };

const BEARER: (&str, &str) = ("authorization", "Bearer ");

/// How effort is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EffortForm {
    /// `reasoning_effort`, `none` included (openai's `ReasoningEffort`; Ollama's list of fields in
    /// docs.ollama.com/api/openai-compatibility).
    Field,
    /// vLLM: `reasoning_effort`; none is `chat_template_kwargs.enable_thinking = false`, which the
    /// templates of Qwen and its like read (docs.vllm.ai, reasoning outputs).
    FieldOrTemplate,
    /// llama.cpp: all of it in `chat_template_kwargs` (tools/server/README.md).
    Template,
}

const OTHER: ServerProfile = ServerProfile {
    key: BEARER,
    unknown: &[OptionalField::CacheKey, OptionalField::CacheOptions, OptionalField::Store],
    effort: EffortForm::Field,
    truncates: false,
    batches: &OWN_BATCHES,
};
const OPENAI: ServerProfile = ServerProfile { unknown: &[OptionalField::OlderLimit], ..OTHER };
const AZURE: ServerProfile = ServerProfile {
    key: ("api-key", ""),
    // A deployment's name does not show its model.
    unknown: &[OptionalField::OlderLimit, OptionalField::CacheOptions, OptionalField::Store],
    batches: &AZURE_BATCHES,
    ..OTHER
};
const OLLAMA: ServerProfile = ServerProfile { truncates: true, ..OTHER };
const VLLM: ServerProfile = ServerProfile { effort: EffortForm::FieldOrTemplate, ..OTHER };
const LLAMA_CPP: ServerProfile = ServerProfile { effort: EffortForm::Template, ..OTHER };

/// The first version of GPT that takes `prompt_cache_options` and charges for writing to the cache
/// (developers.openai.com/api/docs/guides/prompt-caching).
const EXPLICIT_CACHE_SINCE: (u32, u32) = (5, 6);

impl ServerProfile {
    /// The habits of a configured server.
    pub(super) fn from_config(server: LlmServer) -> &'static Self {
        match server {
            LlmServer::Openai => &OPENAI,
            LlmServer::Azure => &AZURE,
            LlmServer::Ollama => &OLLAMA,
            LlmServer::Vllm => &VLLM,
            LlmServer::LlamaCpp => &LLAMA_CPP,
            LlmServer::Other => &OTHER,
        }
    }

    /// Fields that it does not take for a model.
    pub(super) fn unknown_fields(&self, model: &str) -> Vec<OptionalField> {
        let mut unknown = self.unknown.to_vec();
        if gpt_version(model).is_none_or(|version| version < EXPLICIT_CACHE_SINCE) {
            unknown.push(OptionalField::CacheOptions);
        }
        unknown
    }

    /// The header that carries the key; none without one.
    ///
    /// # Errors
    /// The key cannot be sent in a header.
    pub(super) fn key_header(&self, key: &str) -> Result<Option<(HeaderName, HeaderValue)>> {
        if key.is_empty() {
            return Ok(None);
        }
        let (name, before) = self.key;
        secret_header(name, &format!("{before}{key}")).map(Some)
    }
}

/// The version in a model's name: 5.6 of `gpt-5.6-luna`, 6.0 of `gpt-6-sol`.
fn gpt_version(model: &str) -> Option<(u32, u32)> {
    let version = model.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_models_that_charge_for_writing_to_the_cache_are_told_where_it_ends() {
        let openai = ServerProfile::from_config(LlmServer::Openai);
        for (model, told) in [
            ("gpt-5.6-luna", true),
            ("gpt-6-sol", true),
            ("gpt-6.1", true),
            ("gpt-5.4-mini", false),
            ("gpt-4o", false),
            ("gpt-4.1", false),
            ("o3", false),
            ("ft:gpt-4o:acme", false),
        ] {
            let unknown = openai.unknown_fields(model);
            assert_eq!(!unknown.contains(&OptionalField::CacheOptions), told, "{model}");
        }
        let other = ServerProfile::from_config(LlmServer::Other).unknown_fields("gpt-6-sol");
        assert!(other.contains(&OptionalField::CacheOptions), "a gateway may not know them");
    }

    #[test]
    fn each_server_gets_the_key_where_it_looks_for_it() {
        for (server, name, value) in [
            (LlmServer::Other, "authorization", "Bearer k"),
            (LlmServer::Vllm, "authorization", "Bearer k"),
            (LlmServer::Azure, "api-key", "k"),
        ] {
            let (header, sent) =
                ServerProfile::from_config(server).key_header("k").unwrap().unwrap();
            assert_eq!((header.as_str(), sent.to_str().unwrap()), (name, value), "{server:?}");
        }
        assert_eq!(ServerProfile::from_config(LlmServer::Openai).key_header("").unwrap(), None);
    }
}
