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
}

const BEARER: (&str, &str) = ("authorization", "Bearer ");

const OTHER: ServerProfile =
    ServerProfile { key: BEARER, newer_limit: false, cache_key: false, truncates: false };
const OPENAI: ServerProfile = ServerProfile { newer_limit: true, cache_key: true, ..OTHER };
const AZURE: ServerProfile = ServerProfile { key: ("api-key", ""), ..OPENAI };
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
