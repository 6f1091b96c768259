//! How the form of a reply is demanded of one model: by the vendor's structured output, by a tool, or by the
//! text alone.
//!
//! A schema that a model has refused is remembered for this process, and its replies are asked for by the text
//! alone. Not promised: that a reply has the form; it is checked in any case.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{LazyLock, PoisonError, RwLock};

use serde_json::Value;

use super::Prompt;
use super::schema::dialect::SchemaDialect;
use docmill_core::config::{LlmConfig, LlmProvider, LlmServer, StructuredOutput};
use docmill_core::metrics;

/// Before the schema, where the text holds it.
const SCHEMA_HEADING: &str = "\nJSON Schema of the reply:\n";

/// The schemas that were refused in this process.
static REFUSED: LazyLock<RwLock<HashSet<RefusedSchema>>> = LazyLock::new(RwLock::default);

/// One schema at one model.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RefusedSchema {
    place: String,
    model: String,
    /// Hash of the schema.
    schema: u64,
}

/// How the form of one reply is demanded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyForm {
    structured: StructuredOutput,
    dialect: SchemaDialect,
    /// Whether the vendor shows the model the schema of the request. Servers that only make a grammar of it do
    /// not.
    is_shown: bool,
}

impl ReplyForm {
    /// The form that a model's settings ask for.
    pub(crate) fn from_config(config: &LlmConfig) -> Self {
        let structured = config.structured;
        let dialect = SchemaDialect::from_config(config);
        // A tool's definition is shown by everyone.
        let is_shown = structured == StructuredOutput::Tool || shows_schema(config);
        Self { structured, dialect, is_shown }
    }

    /// The same, demanded by the text alone.
    fn by_text(self) -> Self {
        Self { structured: StructuredOutput::Prompt, ..self }
    }

    /// Whether the vendor's structured output holds the schema.
    pub(crate) fn is_by_schema(self) -> bool {
        self.structured == StructuredOutput::Schema
    }

    /// Whether a tool takes the reply.
    pub(crate) fn is_by_tool(self) -> bool {
        self.structured == StructuredOutput::Tool
    }

    /// Whether the request holds a schema.
    pub(crate) fn has_schema(self) -> bool {
        self.structured != StructuredOutput::Prompt
    }

    /// The schema of a prompt as the vendor takes it.
    pub(crate) fn compile(self, prompt: &Prompt) -> Value {
        self.dialect.compile(&prompt.schema)
    }

    /// The stable text of a prompt, with what this form needs besides: the schema, unless the model is shown it
    /// elsewhere, and how a reply of its dialect is written.
    pub(crate) fn write_system_text(self, prompt: &Prompt) -> Cow<'_, str> {
        let has_text = prompt.schema_in_text && !(self.has_schema() && self.is_shown);
        let note = self.dialect.reply_note(&prompt.schema).filter(|_| self.has_schema());
        if !has_text && note.is_none() {
            return Cow::Borrowed(&prompt.system);
        }
        let mut text = self.write_examples(&prompt.system, prompt).into_owned();
        text.push_str(note.unwrap_or_default());
        if has_text {
            text.push_str(SCHEMA_HEADING);
            let schema = if note.is_some() {
                Cow::Owned(self.compile(prompt))
            } else {
                Cow::Borrowed(&*prompt.schema)
            };
            text.push_str(&schema.to_string());
            text.push('\n');
        }
        Cow::Owned(text)
    }

    /// The user's text of a prompt, with its examples in the form that is demanded.
    pub(crate) fn write_user_text(self, prompt: &Prompt) -> Cow<'_, str> {
        self.write_examples(&prompt.user, prompt)
    }

    fn write_examples<'t>(self, text: &'t str, prompt: &Prompt) -> Cow<'t, str> {
        match self.has_schema() {
            true => self.dialect.write_examples(text, &prompt.schema),
            false => Cow::Borrowed(text),
        }
    }
}

/// Whether a vendor adds the schema of a request to what its model reads. OpenAI writes it below `Response
/// Formats`, Anthropic into a system prompt of its own, Gemini counts it as input. vLLM, llama.cpp and Ollama only
/// make a grammar of it, and of other servers and Bedrock's other models nothing is known.
fn shows_schema(config: &LlmConfig) -> bool {
    match config.provider {
        LlmProvider::Anthropic | LlmProvider::Gemini | LlmProvider::Vertex => true,
        LlmProvider::Bedrock => config.model.contains("anthropic."),
        LlmProvider::Openai => matches!(config.server, LlmServer::Openai | LlmServer::Azure),
        LlmProvider::None => false,
    }
}

/// The form of one model's replies, by its settings and by what it has refused.
#[derive(Debug, Clone)]
pub(crate) struct ReplyForms {
    form: ReplyForm,
    provider: &'static str,
    place: String,
    model: String,
}

impl ReplyForms {
    /// `place` is the address of the settings; clients of one address and model share what was refused.
    pub(crate) fn new(config: &LlmConfig) -> Self {
        Self {
            form: ReplyForm::from_config(config),
            provider: config.provider.name(),
            place: format!("{}{}", config.base_url, config.region),
            model: config.model.clone(),
        }
    }

    /// The form in which the reply to a prompt is asked for.
    pub(crate) fn of_prompt(&self, prompt: &Prompt) -> ReplyForm {
        if self.is_refused(prompt) { self.form.by_text() } else { self.form }
    }

    /// Whether the model has refused the schema of a prompt.
    pub(crate) fn is_refused(&self, prompt: &Prompt) -> bool {
        let refused = REFUSED.read().unwrap_or_else(PoisonError::into_inner);
        self.form.has_schema() && !refused.is_empty() && refused.contains(&self.key_of(prompt))
    }

    /// Remembers that the model has refused the schema of a prompt; the first time is reported. Returns the form
    /// to ask in.
    pub(crate) fn remember_refusal(&self, prompt: &Prompt) -> ReplyForm {
        let key = self.key_of(prompt);
        if REFUSED.write().unwrap_or_else(PoisonError::into_inner).insert(key) {
            metrics::count_refused_schema(self.provider);
            tracing::warn!(
                llm.model = self.model,
                schema = prompt.schema_name,
                "{} refuses the schema {} for {}: its replies are asked for by the prompt alone from now on; \
                 llm.structured = \"prompt\" does so from the start",
                self.provider,
                prompt.schema_name,
                self.model
            );
        }
        self.form.by_text()
    }

    fn key_of(&self, prompt: &Prompt) -> RefusedSchema {
        let mut hasher = DefaultHasher::new();
        prompt.schema.to_string().hash(&mut hasher);
        let (place, model) = (self.place.clone(), self.model.clone());
        RefusedSchema { place, model, schema: hasher.finish() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PromptThinking;
    use serde_json::json;

    fn prompt(schema_in_text: bool) -> Prompt {
        Prompt {
            system: "Rules.".into(),
            user: "u".into(),
            schema_name: "s".into(),
            schema: json!({"type": "object", "properties": {"a": {"type": ["number", "null"]}}})
                .into(),
            schema_in_text,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 9,
            pictures: Vec::new(),
        }
    }

    fn config(provider: LlmProvider, server: LlmServer, structured: StructuredOutput) -> LlmConfig {
        let model = "anthropic.claude".to_owned();
        LlmConfig { provider, server, structured, model, ..LlmConfig::default() }
    }

    #[test]
    fn the_schema_reaches_a_model_once_by_the_request_or_by_the_text() {
        use LlmProvider::{Anthropic, Bedrock, Gemini, Openai};
        use StructuredOutput::{Prompt as Text, Schema, Tool};
        #[rustfmt::skip]
        let table = [
            (Openai,    LlmServer::Openai,   Schema, false, false),
            (Openai,    LlmServer::Azure,    Schema, false, false),
            (Openai,    LlmServer::Vllm,     Schema, true,  false),
            (Openai,    LlmServer::LlamaCpp, Schema, true,  false),
            (Openai,    LlmServer::Ollama,   Schema, true,  false),
            (Openai,    LlmServer::Other,    Schema, true,  false),
            (Openai,    LlmServer::Openai,   Text,   true,  false),
            (Gemini,    LlmServer::Other,    Schema, false, false),
            (Gemini,    LlmServer::Other,    Text,   true,  false),
            (Anthropic, LlmServer::Other,    Schema, false, true),
            (Anthropic, LlmServer::Other,    Tool,   false, true),
            (Anthropic, LlmServer::Other,    Text,   true,  false),
            (Bedrock,   LlmServer::Other,    Schema, false, true),
            (Bedrock,   LlmServer::Other,    Tool,   false, true),
            (Bedrock,   LlmServer::Other,    Text,   true,  false),
        ];
        for (provider, server, structured, has_schema, without_null) in table {
            let form = ReplyForm::from_config(&config(provider, server, structured));
            let asked = prompt(true);
            let text = form.write_system_text(&asked);
            let at = format!("{provider:?} {server:?} {structured:?}: {text}");
            assert!(text.starts_with("Rules."), "{at}");
            assert_eq!(text.contains("JSON Schema of the reply:\n{"), has_schema, "{at}");
            assert_eq!(text.contains("nothing is null"), without_null, "{at}");
            let own = [LlmServer::Vllm, LlmServer::LlamaCpp, LlmServer::Ollama].contains(&server);
            assert_eq!(text.contains("copied from the document"), own, "{at}");
            assert_eq!(text.contains("as printed)"), own, "{at}");
        }
    }

    #[test]
    fn a_model_of_unknown_habits_is_told_the_schema_in_the_form_that_is_enforced() {
        let config = LlmConfig {
            model: "qwen.qwen3".to_owned(),
            ..config(LlmProvider::Bedrock, LlmServer::Other, StructuredOutput::Schema)
        };
        let asked = prompt(true);
        let text = ReplyForm::from_config(&config).write_system_text(&asked).into_owned();
        assert!(text.contains("nothing is null") && !text.contains("\"null\""), "{text}");
    }

    #[test]
    fn a_prompt_that_describes_its_form_itself_gets_no_schema_in_its_text() {
        let config = config(LlmProvider::Openai, LlmServer::Other, StructuredOutput::Prompt);
        assert_eq!(ReplyForm::from_config(&config).write_system_text(&prompt(false)), "Rules.");
    }

    #[test]
    fn a_refused_schema_is_asked_for_by_text_at_this_model_and_no_other() {
        let one = config(LlmProvider::Anthropic, LlmServer::Other, StructuredOutput::Schema);
        let one = LlmConfig { base_url: "https://refusing.example".to_owned(), ..one };
        let other = LlmConfig { model: "other".to_owned(), ..one.clone() };
        let (forms, asked) = (ReplyForms::new(&one), prompt(true));
        assert!(forms.of_prompt(&asked).has_schema());
        assert!(!forms.remember_refusal(&asked).has_schema());
        assert!(
            !ReplyForms::new(&one).of_prompt(&asked).has_schema(),
            "another client of the model"
        );
        assert!(ReplyForms::new(&other).of_prompt(&asked).has_schema());
        let simpler = Prompt { schema: json!({"type": "object"}).into(), ..asked };
        assert!(forms.of_prompt(&simpler).has_schema(), "another schema");
    }
}
