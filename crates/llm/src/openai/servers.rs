//! How the servers that speak OpenAI's protocol differ.

use reqwest::header::{HeaderName, HeaderValue};

use crate::exchange::secret_header;
use docmill_core::config::LlmServer;
use docmill_core::fault::Result;

/// How one server differs from OpenAI's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerProfile {
    /// The header of the key, and the prefix of its value.
    key: (&'static str, &'static str),
    /// Whether the cap on the reply is called `max_completion_tokens` from the start. Elsewhere it
    /// is learned from a refusal.
    pub(super) newer_limit: bool,
    /// Whether `prompt_cache_key` is sent: prompts of one kind then meet the same cache.
    pub(super) cache_key: bool,
    /// Whether a prompt over its window is silently shortened.
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

const OTHER: ServerProfile = ServerProfile {
    key: BEARER,
    newer_limit: false,
    cache_key: false,
    truncates: false,
    batches: &OWN_BATCHES,
};
const OPENAI: ServerProfile = ServerProfile { newer_limit: true, cache_key: true, ..OTHER };
const AZURE: ServerProfile =
    ServerProfile { key: ("api-key", ""), batches: &AZURE_BATCHES, ..OPENAI };
const OLLAMA: ServerProfile = ServerProfile { truncates: true, ..OTHER };

impl ServerProfile {
    /// The habits of a configured server. vLLM and llama.cpp have those of any other.
    pub(super) fn from_config(server: LlmServer) -> &'static Self {
        match server {
            LlmServer::Openai => &OPENAI,
            LlmServer::Azure => &AZURE,
            LlmServer::Ollama => &OLLAMA,
            LlmServer::Vllm | LlmServer::LlamaCpp | LlmServer::Other => &OTHER,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
