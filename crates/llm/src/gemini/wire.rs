//! Requests and replies as they travel.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::form::ReplyForm;
use crate::options::{CallEffort, CallOptions};
use crate::picture::{TurnPart, encode_base64, media_type, turn_parts};
use crate::{FinishReason, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::model::ModelUsage;

/// The options of a request, besides the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct GeminiOptions<'a> {
    pub(super) form: ReplyForm,
    /// Whether thinking is set by a budget of tokens.
    pub(super) has_budget: bool,
    pub(super) call: CallOptions<'a>,
}

/// The request for a prompt.
pub(super) fn build_request(prompt: &Prompt, options: GeminiOptions<'_>) -> Value {
    let GeminiOptions { form, call, .. } = options;
    let parts = turn_parts(prompt, form).into_iter().map(|part| match part {
        TurnPart::Text(text) => json!({"text": text}),
        TurnPart::Picture(image) => {
            json!({"inlineData": {"mimeType": media_type(image), "data": encode_base64(image)}})
        }
    });
    let parts: Vec<Value> = parts.collect();
    let mut generation = json!({"maxOutputTokens": call.max_tokens});
    if let (true, Some(fields)) = (form.is_by_schema(), generation.as_object_mut()) {
        fields.insert("responseMimeType".to_owned(), json!("application/json"));
        fields.insert("responseJsonSchema".to_owned(), form.compile(prompt));
    }
    if let Some(fields) = generation.as_object_mut() {
        let temperature = call.temperature.map(|value| json!(value));
        fields.extend(temperature.map(|value| ("temperature".to_owned(), value)));
        fields.extend(thinking_config(options).map(|value| ("thinkingConfig".to_owned(), value)));
    }
    let mut request = json!({
        "contents": [{"role": "user", "parts": parts}],
        "generationConfig": generation,
    });
    let text = form.write_system_text(prompt);
    if let (false, Some(fields)) = (text.is_empty(), request.as_object_mut()) {
        let system = json!({"parts": [{"text": text}]});
        fields.insert("systemInstruction".to_owned(), system);
    }
    if let (Some(tier), Some(fields)) = (call.service_tier, request.as_object_mut()) {
        fields.insert("serviceTier".to_owned(), json!(tier));
    }
    request
}

/// `ThinkingConfig` of google-genai 3.4: a level, or of older models a budget of tokens. Models with
/// levels cannot be told not to think: the lowest level is the nearest.
fn thinking_config(options: GeminiOptions<'_>) -> Option<Value> {
    Some(match (options.call.effort, options.has_budget) {
        (CallEffort::Unsaid, _) => return None,
        (CallEffort::Off, true) => json!({"thinkingBudget": 0}),
        (CallEffort::Off, false) => json!({"thinkingLevel": "minimal"}),
        (CallEffort::Level("low"), true) => json!({"thinkingBudget": 1_024}),
        (CallEffort::Level("medium"), true) => json!({"thinkingBudget": 4_096}),
        // Of high the model is the judge.
        (CallEffort::Level(_), true) => json!({"thinkingBudget": -1}),
        (CallEffort::Level(level), false) => json!({"thinkingLevel": level}),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiResponse {
    #[serde(default)]
    candidates: Vec<GeminiCandidate>,
    #[serde(default)]
    prompt_feedback: Option<GeminiPromptFeedback>,
    #[serde(default)]
    usage_metadata: GeminiUsage,
    #[serde(default)]
    model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate {
    #[serde(default)]
    content: GeminiContent,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct GeminiContent {
    #[serde(default)]
    parts: Vec<GeminiPart>,
}

#[derive(Deserialize)]
struct GeminiPart {
    #[serde(default)]
    text: String,
    /// Reasoning, which is no part of the reply.
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPromptFeedback {
    #[serde(default)]
    block_reason: Option<String>,
}

/// `promptTokenCount` includes what was cached, `candidatesTokenCount` leaves reasoning out.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiUsage {
    prompt_token_count: u64,
    cached_content_token_count: u64,
    tool_use_prompt_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

impl From<GeminiUsage> for ModelUsage {
    fn from(tokens: GeminiUsage) -> Self {
        let prompt = tokens.prompt_token_count.saturating_add(tokens.tool_use_prompt_token_count);
        Self {
            input: prompt.saturating_sub(tokens.cached_content_token_count),
            cache_read: tokens.cached_content_token_count,
            cache_write: 0,
            output: tokens.candidates_token_count.saturating_add(tokens.thoughts_token_count),
        }
    }
}

/// Why a body is no generated content.
#[derive(Debug, thiserror::Error)]
pub(super) enum GeminiParseError {
    /// It has another shape. Only the place is kept: the text around it is the reply's.
    #[error("not the expected JSON at line {line}, column {column}")]
    Shape { line: usize, column: usize },
    /// There is neither a candidate nor a reason why there is none.
    #[error("no candidates in it")]
    Empty,
}

/// Reads a successful body. `asked` names the model if the server does not.
pub(super) fn parse_reply(body: &[u8], asked: &str) -> Result<ModelReply, GeminiParseError> {
    let response: GeminiResponse = serde_json::from_slice(body)
        .map_err(|e| GeminiParseError::Shape { line: e.line(), column: e.column() })?;
    let blocked = response.prompt_feedback.is_some_and(|told| told.block_reason.is_some());
    let candidate = response.candidates.into_iter().next();
    let stop = match &candidate {
        Some(candidate) => parse_finish_reason(candidate.finish_reason.as_deref()),
        None if blocked => FinishReason::Refused,
        None => return Err(GeminiParseError::Empty),
    };
    let parts = candidate.map(|candidate| candidate.content.parts).unwrap_or_default();
    let text = parts.into_iter().filter(|part| !part.thought).map(|part| part.text).collect();
    let version = response.model_version.filter(|name| !name.is_empty());
    Ok(ModelReply {
        text,
        stop,
        usage: response.usage_metadata.into(),
        model: version.unwrap_or_else(|| asked.to_owned()),
        limits: RateLimitHeaders::default(),
    })
}

/// Why a reply ended. A reason that is unknown here, or `OTHER`, is no normal end.
fn parse_finish_reason(reason: Option<&str>) -> FinishReason {
    match reason {
        Some("STOP") => FinishReason::Complete,
        Some(
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION",
        ) => FinishReason::Refused,
        Some("MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL") => {
            FinishReason::Garbled
        }
        Some("MAX_TOKENS") | None => FinishReason::Cut,
        Some(_) => FinishReason::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PromptThinking;
    use crate::options::{OptionalField, RequestOptions};
    use docmill_core::config::{LlmConfig, LlmProvider, ModelEffort, StructuredOutput};

    fn prompt() -> Prompt {
        Prompt {
            system: "s".into(),
            user: "u".into(),
            schema_name: "invoice".into(),
            schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}).into(),
            schema_in_text: false,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 9,
            pictures: Vec::new(),
        }
    }

    fn sent_by(prompt: &Prompt, config: &LlmConfig, has_budget: bool) -> Value {
        let config = LlmConfig { provider: LlmProvider::Gemini, ..config.clone() };
        let options = RequestOptions::new(&config).without(&OptionalField::OPENAI_ONLY);
        let call = options.for_call(prompt);
        let form = ReplyForm::from_config(&config);
        build_request(prompt, GeminiOptions { form, has_budget, call })
    }

    #[test]
    fn thinking_is_a_level_or_with_older_models_a_budget() {
        #[rustfmt::skip]
        let table = [
            (ModelEffort::Default, Value::Null, Value::Null),
            (ModelEffort::None,   json!({"thinkingBudget": 0}),     json!({"thinkingLevel": "minimal"})),
            (ModelEffort::Low,    json!({"thinkingBudget": 1_024}), json!({"thinkingLevel": "low"})),
            (ModelEffort::Medium, json!({"thinkingBudget": 4_096}), json!({"thinkingLevel": "medium"})),
            (ModelEffort::High,   json!({"thinkingBudget": -1}),    json!({"thinkingLevel": "high"})),
        ];
        for (effort, budget, level) in table {
            let config = LlmConfig { effort, ..LlmConfig::default() };
            for (has_budget, expected) in [(true, budget), (false, level)] {
                let body = sent_by(&prompt(), &config, has_budget);
                assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{effort:?}");
            }
        }
        let flex = LlmConfig { service_tier: "flex".to_owned(), ..LlmConfig::default() };
        assert_eq!(sent_by(&prompt(), &flex, false)["serviceTier"], "flex");
    }

    #[test]
    fn the_form_is_demanded_by_a_schema_or_by_the_prompt_alone() {
        let sent = sent_by(&prompt(), &LlmConfig::default(), false);
        let generation = sent.get("generationConfig").unwrap();
        assert_eq!(generation.get("responseMimeType"), Some(&json!("application/json")));
        let closed = generation.pointer("/responseJsonSchema/additionalProperties");
        assert_eq!(closed, Some(&json!(false)));
        assert_eq!(sent.pointer("/systemInstruction/parts/0/text"), Some(&json!("s")));
        let by_prompt = LlmConfig { structured: StructuredOutput::Prompt, ..LlmConfig::default() };
        let free = sent_by(&Prompt { system: "".into(), ..prompt() }, &by_prompt, false);
        assert_eq!(free.get("generationConfig"), Some(&json!({"maxOutputTokens": 9 + 4_096})));
        assert!(free.get("systemInstruction").is_none(), "an empty one would be refused");
    }

    #[test]
    fn error_bodies_are_understood() {
        let body = |reason: &str| {
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":"hm","thought":true}},
                {{"text":"{{"}},{{"text":"}}"}}]}},"finishReason":"{reason}"}}],"modelVersion":"m-1",
                "usageMetadata":{{"promptTokenCount":7,"cachedContentTokenCount":4,
                "candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":12}}}}"#
            )
        };
        for (reason, expected) in [
            ("STOP", FinishReason::Complete),
            ("MAX_TOKENS", FinishReason::Cut),
            ("RECITATION", FinishReason::Refused),
            ("SPII", FinishReason::Refused),
            ("MALFORMED_RESPONSE", FinishReason::Garbled),
            ("OTHER", FinishReason::Stopped),
            ("A_NEW_REASON", FinishReason::Stopped),
        ] {
            let reply = parse_reply(body(reason).as_bytes(), "asked").unwrap();
            assert_eq!((reply.stop, reply.text.as_str()), (expected, "{}"), "{reason}");
            let usage = ModelUsage { input: 3, cache_read: 4, cache_write: 0, output: 5 };
            assert_eq!((reply.usage, reply.model.as_str()), (usage, "m-1"));
        }
        let blocked = br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#;
        assert_eq!(parse_reply(blocked, "asked").unwrap().stop, FinishReason::Refused);
        assert!(parse_reply(b"{}", "asked").is_err(), "an empty answer is none");
        assert!(parse_reply(b"<html>", "asked").is_err());
    }
}
