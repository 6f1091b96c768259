//! Language models, behind one small trait.
//!
//! An implementation sends one prompt with a JSON Schema and returns the text of the reply with
//! its stop reason and usage. It does not read the reply, repair it or retry beyond the vendor
//! SDK's own habits; `extract` does. Decorators (throttling, local memory) are `Llm` themselves.

pub mod governed;
pub mod openai;
pub mod scheduler;
pub mod schema;
pub mod traced;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Result;
use crate::model::Usage;
use crate::throttle::Limits;

/// One request.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Stable text first, so that prompt caching works.
    pub system: String,
    /// The document, fenced, and what to do with it.
    pub user: String,
    /// Name of the schema: 1 to 64 of `[a-zA-Z0-9_-]`.
    pub schema_name: String,
    /// What the reply must match.
    pub schema: Value,
    /// Most tokens the reply may have.
    pub max_output_tokens: u32,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    Complete,
    /// It ran into the token limit: the text is cut.
    Cut,
    /// It declined, or a filter did.
    Refused,
    /// The prompt did not fit into its window: it generated nothing. A shorter one may fit.
    TooLong,
    /// It went in circles (white space without end) or broke its own form: what it wrote is of no
    /// use, however long. The same question in other words may get an answer.
    Garbled,
}

/// One reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The text, possibly cut or empty.
    pub text: String,
    /// Why it ended.
    pub stop: Stop,
    /// Tokens spent.
    pub usage: Usage,
    /// The model that answered, as it names itself.
    pub model: String,
    /// What the response said about limits, for the governor.
    pub limits: Limits,
}

/// A language model.
#[async_trait]
pub trait Llm: Send + Sync {
    /// Name for pauses and metric labels, e.g. `openai`.
    fn provider(&self) -> &str;

    /// The configured model; part of a stored reply's identity.
    fn model(&self) -> &str;

    /// Asks once. Dropping the future aborts the call.
    async fn ask(&self, prompt: &Prompt) -> Result<Reply>;
}
