//! Requests and replies as they travel.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::host::{AnthropicHost, VERSION};
use crate::form::ReplyForm;
use crate::options::{CallEffort, CallOptions};
use crate::picture::{TurnPart, encode_base64, media_type, turn_parts};
use crate::{FinishReason, ModelReply, Prompt};
use docmill_core::config::PromptCache;
use docmill_core::model::ModelUsage;

/// The options of a request, besides the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnthropicOptions<'a> {
    pub(super) host: AnthropicHost,
    pub(super) form: ReplyForm,
    pub(super) cache: PromptCache,
    pub(super) stream: bool,
    pub(super) call: CallOptions<'a>,
}

#[derive(Serialize)]
pub(super) struct AnthropicRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Value; 1]>,
    messages: [Value; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    /// `types/thinking_config_disabled_param.py` of anthropic 2.11; newer models refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Value; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

/// Text and pictures.
fn user_content(prompt: &Prompt, form: ReplyForm) -> Vec<Value> {
    let parts = turn_parts(prompt, form).into_iter().map(|part| match part {
        TurnPart::Text(text) => json!({"type": "text", "text": text}),
        TurnPart::Picture(image) => json!({
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": media_type(image),
                "data": encode_base64(image),
            },
        }),
    });
    parts.collect()
}

pub(super) fn build_request<'a>(
    model: &'a str,
    prompt: &'a Prompt,
    options: AnthropicOptions<'a>,
) -> AnthropicRequest<'a> {
    let form = options.form;
    let text = form.write_system_text(prompt);
    // Tools come before the system prompt in the cached prefix, so one breakpoint holds both.
    let mut system = json!({"type": "text", "text": text});
    if let Some(ttl) = options.cache.ttl()
        && let Some(block) = system.as_object_mut()
    {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral", "ttl": ttl}));
    }
    let name = &prompt.schema_name;
    let call = options.call;
    // `types/output_config_param.py` of anthropic 2.11.
    let mut output = Map::new();
    if form.is_by_schema() {
        let schema = form.compile(prompt);
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    if let Some(level) = call.effort.level() {
        output.insert("effort".to_owned(), json!(level));
    }
    let on_vertex = options.host == AnthropicHost::Vertex;
    AnthropicRequest {
        model: (!on_vertex).then_some(model),
        anthropic_version: on_vertex.then_some(VERSION),
        max_tokens: call.max_tokens,
        // An empty text is refused.
        system: (!text.is_empty()).then_some([system]),
        messages: [json!({"role": "user", "content": user_content(prompt, form)})],
        output_config: (!output.is_empty()).then_some(Value::Object(output)),
        thinking: (call.effort == CallEffort::Off).then(|| json!({"type": "disabled"})),
        temperature: call.temperature,
        service_tier: call.service_tier,
        tools: form.is_by_tool().then(|| {
            [json!({
                "name": name,
                "description": "Takes the reply.",
                "input_schema": form.compile(prompt),
                "strict": true,
            })]
        }),
        tool_choice: form.is_by_tool().then(|| json!({"type": "tool", "name": name})),
        stream: options.stream.then_some(true),
    }
}

#[derive(Deserialize)]
struct AnthropicMessage {
    #[serde(default)]
    model: Option<String>,
    content: Vec<AnthropicBlock>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct AnthropicBlock {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    input: Option<Value>,
}

/// `input_tokens` leaves out what was read from the cache or written to it, `output_tokens`
/// includes reasoning.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct AnthropicUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

impl AnthropicUsage {
    /// Later counts of a stream are cumulative; what they leave out stays as it was.
    pub(super) fn merge_later(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
        }
    }
}

impl From<AnthropicUsage> for ModelUsage {
    fn from(tokens: AnthropicUsage) -> Self {
        Self {
            input: tokens.input_tokens.unwrap_or(0),
            cache_read: tokens.cache_read_input_tokens.unwrap_or(0),
            cache_write: tokens.cache_creation_input_tokens.unwrap_or(0),
            output: tokens.output_tokens.unwrap_or(0),
        }
    }
}

/// Why a message ended. A reason that is unknown here is no normal end.
pub(super) fn parse_finish_reason(reason: Option<&str>) -> FinishReason {
    match reason {
        Some("end_turn" | "stop_sequence" | "tool_use") => FinishReason::Complete,
        Some("refusal") => FinishReason::Refused,
        Some("max_tokens" | "model_context_window_exceeded") | None => FinishReason::Cut,
        Some(_) => FinishReason::Stopped,
    }
}

/// A body that is no message. Only the place is kept: the text around it is the reply's.
#[derive(Debug, thiserror::Error)]
#[error("not the expected JSON at line {line}, column {column}")]
pub(super) struct AnthropicParseError {
    line: usize,
    column: usize,
}

/// Reads a successful body. `asked` names the model if the server does not.
pub(super) fn parse_reply(body: &[u8], asked: &str) -> Result<ModelReply, AnthropicParseError> {
    let message: AnthropicMessage = serde_json::from_slice(body)
        .map_err(|e| AnthropicParseError { line: e.line(), column: e.column() })?;
    // Text before the call of the tool is no part of the reply.
    let has_call = message.content.iter().any(|block| block.input.is_some());
    let blocks = message.content.into_iter().filter(|it| !has_call || it.input.is_some());
    Ok(ModelReply {
        text: blocks.map(block_text).collect(),
        stop: parse_finish_reason(message.stop_reason.as_deref()),
        usage: message.usage.unwrap_or_default().into(),
        model: message.model.filter(|name| !name.is_empty()).unwrap_or_else(|| asked.to_owned()),
        limits: docmill_client::throttle::RateLimitHeaders::default(),
    })
}

/// The text of a block, or the input of a tool call.
fn block_text(block: AnthropicBlock) -> String {
    match (block.text, block.input) {
        (Some(text), _) => text,
        (None, Some(input)) => input.to_string(),
        // Thinking, which is no part of the reply.
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PromptThinking;
    use crate::options::{OptionalField, RequestOptions};
    use docmill_core::config::{AutoOr, LlmConfig, LlmProvider, ModelEffort, StructuredOutput};

    fn prompt() -> Prompt {
        Prompt {
            system: "s".into(),
            user: "u".into(),
            schema_name: "invoice".into(),
            schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}).into(),
            schema_in_text: true,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 9,
            pictures: Vec::new(),
        }
    }

    fn sent(structured: StructuredOutput, cache: PromptCache) -> Value {
        sent_by(&LlmConfig { structured, prompt_cache: cache, ..LlmConfig::default() })
    }

    fn sent_by(config: &LlmConfig) -> Value {
        let config = LlmConfig { provider: LlmProvider::Anthropic, ..config.clone() };
        let options = RequestOptions::new(&config).without(&OptionalField::OPENAI_ONLY);
        let prompt = prompt();
        let form = AnthropicOptions {
            host: AnthropicHost::Own,
            form: ReplyForm::from_config(&config),
            cache: config.prompt_cache,
            stream: false,
            call: options.for_call(&prompt),
        };
        serde_json::to_value(build_request("m", &prompt, form)).unwrap()
    }

    #[test]
    fn effort_stands_beside_the_form_and_thinking_is_switched_off_apart() {
        let of = |effort| sent_by(&LlmConfig { effort, ..LlmConfig::default() });
        let low = of(ModelEffort::Low);
        assert_eq!(low["output_config"]["effort"], "low");
        assert_eq!(low["output_config"]["format"]["type"], "json_schema");
        assert!(low.get("thinking").is_none());
        let none = of(ModelEffort::None);
        assert_eq!(none["thinking"], json!({"type": "disabled"}));
        assert!(none["output_config"].get("effort").is_none());
        let unsaid = of(ModelEffort::Default);
        assert_eq!(unsaid["max_tokens"], 9 + 4_096, "thinking has room of its own");
        for field in ["thinking", "temperature", "service_tier"] {
            assert!(unsaid.get(field).is_none(), "{field}");
        }
        let set = sent_by(&LlmConfig {
            service_tier: "standard_only".to_owned(),
            temperature: AutoOr::Value(0.5),
            ..LlmConfig::default()
        });
        let (tier, temperature) = (&set["service_tier"], &set["temperature"]);
        assert_eq!((tier, temperature), (&json!("standard_only"), &json!(0.5)));
    }

    #[test]
    fn the_form_of_the_reply_is_demanded_in_one_way_at_a_time() {
        let schema = sent(StructuredOutput::Schema, PromptCache::Short);
        assert_eq!(schema["output_config"]["format"]["type"], "json_schema");
        assert!(schema.get("tools").is_none() && schema.get("stream").is_none());
        let tool = sent(StructuredOutput::Tool, PromptCache::Short);
        assert_eq!(tool["tool_choice"]["name"], tool["tools"][0]["name"]);
        assert!(tool.get("output_config").is_none());
        let bare = sent(StructuredOutput::Prompt, PromptCache::Short);
        assert!(bare.get("output_config").is_none() && bare.get("tools").is_none());
    }

    #[test]
    fn the_stable_prefix_ends_in_a_breakpoint_unless_caching_is_off() {
        let ttl = |cache| {
            sent(StructuredOutput::Schema, cache)["system"][0]["cache_control"]["ttl"].clone()
        };
        assert_eq!(ttl(PromptCache::Short), json!("5m"));
        assert_eq!(ttl(PromptCache::Long), json!("1h"));
        assert_eq!(ttl(PromptCache::Off), Value::Null);
    }

    #[test]
    fn error_bodies_are_understood() {
        let body = |reason: &str, content: &str| {
            format!(
                r#"{{"model":"m-1","content":{content},"stop_reason":{reason},"usage":{{
                    "input_tokens":2,"cache_read_input_tokens":4,
                    "cache_creation_input_tokens":1,"output_tokens":3}}}}"#
            )
        };
        let text = r#"[{"type":"thinking","thinking":"x"},{"type":"text","text":"{}"}]"#;
        let tool = r#"[{"type":"tool_use","id":"1","name":"invoice","input":{"a":1}}]"#;
        let said = tool.replacen('[', r#"[{"type":"text","text":"I call it:"},"#, 1);
        #[rustfmt::skip]
        let table = [
            ("done",       body(r#""end_turn""#, text),                      FinishReason::Complete, "{}"),
            ("by a tool",  body(r#""tool_use""#, tool),                      FinishReason::Complete, r#"{"a":1}"#),
            ("said first", body(r#""tool_use""#, &said),                     FinishReason::Complete, r#"{"a":1}"#),
            ("cut",        body(r#""max_tokens""#, text),                    FinishReason::Cut,      "{}"),
            ("window",     body(r#""model_context_window_exceeded""#, text), FinishReason::Cut,      "{}"),
            ("declined",   body(r#""refusal""#, "[]"),                       FinishReason::Refused,  ""),
            ("unheard of", body(r#""new_reason""#, text),                    FinishReason::Stopped,  "{}"),
            ("no reason",  body("null", text),                               FinishReason::Cut,      "{}"),
        ];
        for (name, body, stop, text) in table {
            let reply = parse_reply(body.as_bytes(), "asked").unwrap();
            assert_eq!((reply.stop, reply.text.as_str()), (stop, text), "{name}");
            let usage = ModelUsage { input: 2, cache_read: 4, cache_write: 1, output: 3 };
            assert_eq!((reply.usage, reply.model.as_str()), (usage, "m-1"), "{name}");
        }
    }

    #[test]
    fn an_invalid_message_is_reported_without_its_text() {
        for body in ["", "<html>secret</html>", r#"{"content":"secret"}"#] {
            let error = parse_reply(body.as_bytes(), "m").unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
