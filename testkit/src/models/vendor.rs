//! The protocols of four vendors, of which two are served by Vertex AI too: where a call goes, what it must look like, and how answers and
//! errors are written.

mod anthropic;
mod bedrock;
mod fields;
mod gemini;
mod openai;
mod subset;

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::picture::sent_pictures;
use super::script::ModelRules;
pub(crate) use fields::{cap, is_without_thinking};

/// A broken rule: the parameter and what is wrong with it.
pub(crate) type Wrong = (&'static str, String);

/// Whose protocol a server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// The protocol of OpenAI's chat completions.
    #[default]
    Openai,
    /// The protocol of Anthropic's messages.
    Anthropic,
    /// The protocol of Amazon Bedrock's Converse.
    Bedrock,
    /// The protocol of Google's `generateContent`.
    Gemini,
    /// The same at Vertex AI, with an access token.
    VertexGemini,
    /// Anthropic's messages at Vertex AI, with an access token.
    VertexClaude,
}

/// The location of a project at Vertex AI.
const VERTEX_BASE: &str = "/v1/projects/project-1/locations/europe-west4";

/// The reason why a reply ends, for all vendors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Length,
    Filter,
    Declined,
    /// In the vendor's own word.
    Other(String),
}

/// One reply of the model, before it takes a vendor's form.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) end: End,
    pub(crate) tokens: Tokens,
}

/// Tokens in classes that share none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tokens {
    pub(crate) input: usize,
    pub(crate) read: usize,
    pub(crate) written: usize,
    pub(crate) output: usize,
}

impl Tokens {
    /// With this many more input tokens.
    pub(crate) fn with_input(self, more: usize) -> Self {
        Self { input: self.input + more, ..self }
    }

    /// The count of a prompt truncated to a context window.
    pub(crate) fn within(self, window: Option<usize>) -> Self {
        match window {
            Some(most) if self.input + self.read + self.written > most => {
                Self { input: most, read: 0, written: 0, ..self }
            }
            _ => self,
        }
    }
}

/// A status with a body.
pub(crate) struct Outgoing {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// An error to be written: status, words, parameter, code.
#[derive(Clone, Copy, Default)]
pub(crate) struct Trouble<'a> {
    pub(crate) status: u16,
    pub(crate) message: &'a str,
    pub(crate) param: Option<&'a str>,
    pub(crate) code: Option<&'a str>,
    /// The quota that is spent, as Google names it.
    pub(crate) quota: Option<SpentQuota<'a>>,
}

/// A quota that is spent, and the seconds until it is there again.
#[derive(Clone, Copy)]
pub(crate) struct SpentQuota<'a> {
    pub(crate) id: &'a str,
    pub(crate) seconds: u64,
}

impl Vendor {
    /// The path after the address in `llm.base_url`.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::Openai | Self::Anthropic => "/v1",
            Self::Bedrock => "",
            Self::Gemini => "/v1beta",
            Self::VertexGemini | Self::VertexClaude => VERTEX_BASE,
        }
    }

    /// Whether a request is a call to a model.
    pub(crate) fn is_call(self, method: &str, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        method == "POST"
            && match self {
                Self::Openai => {
                    path.strip_prefix("/openai").unwrap_or(path) == "/v1/chat/completions"
                }
                Self::Anthropic => path == "/v1/messages",
                Self::Gemini => {
                    path.starts_with("/v1beta/models/") && path.ends_with(":generateContent")
                }
                Self::VertexGemini => {
                    self.model_verb(path).is_some_and(|verb| verb == "generateContent")
                }
                Self::VertexClaude => self
                    .model_verb(path)
                    .is_some_and(|verb| matches!(verb, "rawPredict" | "streamRawPredict")),
                Self::Bedrock => {
                    let operation = path.rsplit('/').next();
                    path.starts_with("/model/")
                        && matches!(operation, Some("converse" | "converse-stream"))
                }
            }
    }

    /// The method that is called of a model at Vertex AI; `None`: the path names none of this vendor's.
    fn model_verb(self, path: &str) -> Option<&str> {
        let publisher = if self == Self::VertexClaude { "anthropic" } else { "google" };
        let rest = path.strip_prefix(VERTEX_BASE)?.strip_prefix("/publishers/")?;
        let (model, verb) =
            rest.strip_prefix(publisher)?.strip_prefix("/models/")?.split_once(':')?;
        (model == "model-1" || model == "claude-model-1").then_some(verb)
    }

    /// Whether a call has the tokens of a text counted, which Vertex AI does for nothing.
    pub(crate) fn is_count(self, path: &str, body: &Value) -> bool {
        match self {
            Self::VertexGemini => {
                self.model_verb(path) == Some("countTokens") && body.get("contents").is_some()
            }
            Self::VertexClaude => {
                let place =
                    format!("{VERTEX_BASE}/publishers/anthropic/models/count-tokens:rawPredict");
                path == place
                    && body.get("model") == Some(&json!("claude-model-1"))
                    && body.get("messages").is_some()
            }
            _ => false,
        }
    }

    /// Answers of a token server at this address: Google's exchange of tokens, at Vertex AI alone.
    pub(crate) fn grant_token(self, path: &str) -> Option<Value> {
        let is_vertex = matches!(self, Self::VertexGemini | Self::VertexClaude);
        match path {
            "/subject" if is_vertex => Some(json!({"subject": "of-the-platform"})),
            "/v1/token" if is_vertex => Some(json!({
                "access_token": "key", "expires_in": 3600, "token_type": "Bearer",
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            })),
            _ => None,
        }
    }

    /// Whether a call wants its reply in a stream.
    pub(crate) fn is_streamed(self, path: &str, body: &Value) -> bool {
        match self {
            Self::Openai | Self::Anthropic => body.get("stream") == Some(&Value::Bool(true)),
            Self::Bedrock => path.ends_with("/converse-stream"),
            Self::VertexClaude => path.ends_with(":streamRawPredict"),
            Self::Gemini | Self::VertexGemini => false,
        }
    }

    /// The key that a request carries.
    pub(crate) fn key(self, headers: &HashMap<String, String>) -> Option<&str> {
        match self {
            Self::Openai => header_of(headers, "authorization")
                .and_then(|value| value.strip_prefix("Bearer "))
                .or_else(|| header_of(headers, "api-key")),
            Self::Anthropic => header_of(headers, "x-api-key"),
            Self::Gemini => header_of(headers, "x-goog-api-key"),
            Self::VertexGemini | Self::VertexClaude => {
                header_of(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "))
            }
            Self::Bedrock => header_of(headers, "authorization").map(|value| {
                let signed = value.split("Credential=").nth(1);
                let signed = signed.and_then(|rest| rest.split('/').next());
                signed.or_else(|| value.strip_prefix("Bearer ")).unwrap_or_default()
            }),
        }
    }

    /// Whether a request keeps the contract. The real service answers 400 to what does not.
    pub(crate) fn check(
        self,
        headers: &HashMap<String, String>,
        body: &Value,
        rules: &ModelRules,
    ) -> Result<(), Wrong> {
        sent_pictures(body).map_err(|wrong| ("messages", wrong))?;
        match self {
            Self::Openai => openai::check(body, rules),
            Self::Anthropic => anthropic::check(headers, body),
            Self::VertexClaude => anthropic::check_on_vertex(headers, body),
            Self::Bedrock => bedrock::check(headers, body),
            Self::Gemini => gemini::check(headers, body),
            Self::VertexGemini => gemini::check_content(body),
        }?;
        fields::check(self, body, rules)
    }

    /// A whole reply in this vendor's form.
    pub(crate) fn reply(self, body: &Value, said: &Said) -> Value {
        match self {
            Self::Openai => openai::reply(body, said),
            Self::Anthropic | Self::VertexClaude => anthropic::reply(body, said),
            Self::Bedrock => bedrock::reply(body, said),
            Self::Gemini | Self::VertexGemini => gemini::reply(said),
        }
    }

    /// The same as events of a stream: name, if the vendor names them, and data.
    pub(crate) fn events(self, body: &Value, said: &Said) -> Vec<(Option<&'static str>, Value)> {
        match self {
            Self::Openai => openai::events(body, said),
            Self::Anthropic | Self::VertexClaude => anthropic::events(body, said),
            Self::Bedrock => bedrock::events(body, said),
            // Its replies come whole.
            Self::Gemini | Self::VertexGemini => Vec::new(),
        }
    }

    /// An event as the vendor's own types have it: Bedrock's is one of a union, by name.
    pub(crate) fn recorded(self, (name, data): &(Option<&'static str>, Value)) -> Value {
        match (self, name) {
            (Self::Bedrock, Some(name)) => json!({ *name: data }),
            _ => data.clone(),
        }
    }

    /// An error in this vendor's form.
    pub(crate) fn error(self, trouble: &Trouble<'_>) -> Outgoing {
        match self {
            Self::Openai => openai::error(trouble),
            Self::Anthropic | Self::VertexClaude => anthropic::error(trouble),
            Self::Bedrock => bedrock::error(trouble),
            Self::Gemini | Self::VertexGemini => gemini::error(trouble),
        }
    }
}

fn header_of<'a>(headers: &'a HashMap<String, String>, name: &str) -> Option<&'a str> {
    headers.get(name).map(String::as_str)
}

/// Pieces of a text, as a stream brings them.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(40).map(|piece| piece.iter().collect()).collect()
}

fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}

fn only(body: &Value, known: &[&str]) -> Result<(), Wrong> {
    let keys = body.as_object().into_iter().flat_map(|object| object.keys());
    match keys.into_iter().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(("body", format!("{key}: Extra inputs are not permitted"))),
        None => Ok(()),
    }
}

/// Whether a field, if it is there, is one of these words.
fn one_of(body: &Value, place: &str, words: &[&str]) -> bool {
    body.pointer(place).is_none_or(|value| value.as_str().is_some_and(|it| words.contains(&it)))
}

/// Whether a temperature, if it is there, is within the vendor's range.
fn is_temperature(body: &Value, place: &str, most: f64) -> bool {
    let within = |value: &Value| value.as_f64().is_some_and(|it| (0.0..=most).contains(&it));
    body.pointer(place).is_none_or(within)
}

fn outgoing(status: u16, body: Value) -> Outgoing {
    Outgoing { status, headers: Vec::new(), body }
}

fn json_reply(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({ "unreadable": text }))
}
