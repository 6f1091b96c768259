//! Requests and replies as they travel.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::form::ReplyForm;
use crate::picture::{TurnPart, encode_base64, media_type, turn_parts};
use crate::{FinishReason, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::model::ModelUsage;

/// Which of its two names the cap on the reply goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenLimitField {
    /// `max_tokens`: every compatible server accepts it, OpenAI's own newer models refuse it.
    Older,
    /// `max_completion_tokens`: what OpenAI's own newer models want, unknown to many servers.
    Newer,
}

/// The options of a request, besides the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenAiOptions {
    pub(super) limit: TokenLimitField,
    pub(super) stream: bool,
    pub(super) form: ReplyForm,
    pub(super) cache_key: bool,
}

#[derive(Serialize)]
pub(super) struct OpenAiRequest<'a> {
    model: &'a str,
    messages: Vec<OpenAiMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

#[derive(Serialize)]
struct OpenAiMessage<'a> {
    role: &'static str,
    content: OpenAiContent<'a>,
}

/// A text by itself is what every server takes.
#[derive(Serialize)]
#[serde(untagged)]
enum OpenAiContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// Text and pictures, each of these as a data URL: an address would make the server fetch it.
/// The default of `detail` differs from model to model.
fn user_content(prompt: &Prompt) -> OpenAiContent<'_> {
    if prompt.pictures.is_empty() {
        return OpenAiContent::Text(Cow::Borrowed(&prompt.user));
    }
    let parts = turn_parts(prompt).into_iter().map(|part| match part {
        TurnPart::Text(text) => json!({"type": "text", "text": text}),
        TurnPart::Picture(image) => {
            let url = format!("data:{};base64,{}", media_type(image), encode_base64(image));
            json!({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
        }
    });
    OpenAiContent::Parts(parts.collect())
}

pub(super) fn build_request<'a>(
    model: &'a str,
    prompt: &'a Prompt,
    options: OpenAiOptions,
) -> OpenAiRequest<'a> {
    let form = options.form;
    let cap = |name| (options.limit == name).then_some(prompt.max_output_tokens);
    let schema = || {
        json!({
            "type": "json_schema",
            "json_schema": {
                "name": prompt.schema_name,
                "schema": form.compile(prompt),
                "strict": true,
            },
        })
    };
    let text = form.write_system_text(prompt);
    let user = OpenAiMessage { role: "user", content: user_content(prompt) };
    // Models that were trained without a system message are asked without one.
    let messages = if text.is_empty() {
        vec![user]
    } else {
        vec![OpenAiMessage { role: "system", content: OpenAiContent::Text(text) }, user]
    };
    OpenAiRequest {
        model,
        messages,
        response_format: form.has_schema().then(schema),
        max_tokens: cap(TokenLimitField::Older),
        max_completion_tokens: cap(TokenLimitField::Newer),
        prompt_cache_key: options.cache_key.then(|| format!("docmill-{}", prompt.schema_name)),
        stream: options.stream.then_some(true),
        stream_options: options.stream.then(|| json!({"include_usage": true})),
    }
}

#[derive(Deserialize)]
struct OpenAiCompletion {
    #[serde(default)]
    model: Option<String>,
    choices: Vec<OpenAiChoice>,
    #[serde(default)]
    usage: Option<OpenAiUsage>,
}

#[derive(Deserialize)]
struct OpenAiChoice {
    message: OpenAiReplyMessage,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct OpenAiReplyMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

/// `prompt_tokens` includes the cached ones and `completion_tokens` the reasoning.
#[derive(Deserialize)]
pub(super) struct OpenAiUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<OpenAiCachedTokens>,
}

#[derive(Deserialize, Default)]
struct OpenAiCachedTokens {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

impl From<OpenAiUsage> for ModelUsage {
    fn from(tokens: OpenAiUsage) -> Self {
        let cached = tokens.prompt_tokens_details.unwrap_or_default();
        let (read, written) =
            (cached.cached_tokens.unwrap_or(0), cached.cache_write_tokens.unwrap_or(0));
        let prompt = tokens.prompt_tokens.unwrap_or(0);
        Self {
            input: prompt.saturating_sub(read).saturating_sub(written),
            cache_read: read,
            cache_write: written,
            output: tokens.completion_tokens.unwrap_or(0),
        }
    }
}

/// Why a body is no chat completion.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompletionParseError {
    /// It has another shape. Only the place is kept: the text around it is the reply's.
    #[error("not the expected JSON at line {line}, column {column}")]
    Shape { line: usize, column: usize },
    /// There is nothing in it.
    #[error("no choices in it")]
    Empty,
}

/// Reads a successful body. `asked` names the model if the server does not.
pub(super) fn parse_reply(body: &[u8], asked: &str) -> Result<ModelReply, CompletionParseError> {
    let completion: OpenAiCompletion = serde_json::from_slice(body)
        .map_err(|e| CompletionParseError::Shape { line: e.line(), column: e.column() })?;
    let choice = completion.choices.into_iter().next().ok_or(CompletionParseError::Empty)?;
    let declined = choice.message.refusal.is_some_and(|text| !text.is_empty());
    let stop = parse_finish_reason(choice.finish_reason.as_deref(), declined);
    let usage = completion.usage.map(ModelUsage::from).unwrap_or_default();
    Ok(ModelReply {
        text: choice.message.content.unwrap_or_default(),
        stop,
        usage,
        model: completion.model.filter(|name| !name.is_empty()).unwrap_or_else(|| asked.to_owned()),
        limits: RateLimitHeaders::default(),
    })
}

/// Maps the vendor's finish reason to ours. Many servers give none; one that is unknown here is no normal end
/// (`error` of OpenRouter, `abort` of vLLM, `insufficient_system_resource` of DeepSeek).
pub(super) fn parse_finish_reason(reason: Option<&str>, declined: bool) -> FinishReason {
    match reason {
        _ if declined => FinishReason::Refused,
        Some("content_filter") => FinishReason::Refused,
        // The second is Mistral's, for a full window.
        Some("length" | "model_length") => FinishReason::Cut,
        None | Some("" | "stop" | "tool_calls" | "function_call" | "eos") => FinishReason::Complete,
        Some(_) => FinishReason::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::{LlmConfig, LlmProvider, StructuredOutput};

    #[test]
    fn error_bodies_are_understood() {
        let body = |reason: &str, message: &str| {
            format!(
                r#"{{"model":"m-1","choices":[{{"finish_reason":{reason},"message":{message}}}],
                "usage":{{"prompt_tokens":7,"completion_tokens":3,
                    "prompt_tokens_details":{{"cached_tokens":4,"cache_write_tokens":1}}}}}}"#
            )
        };
        #[rustfmt::skip]
        let table = [
            ("done",               body(r#""stop""#, r#"{"content":"{}"}"#),                    FinishReason::Complete, "{}"),
            ("cut",                body(r#""length""#, r#"{"content":"{"}"#),                   FinishReason::Cut,      "{"),
            ("filtered",           body(r#""content_filter""#, r#"{"content":null}"#),          FinishReason::Refused,  ""),
            ("declined",           body(r#""stop""#, r#"{"content":null,"refusal":"I can't"}"#),FinishReason::Refused,  ""),
            ("declining nothing",  body(r#""stop""#, r#"{"content":"{}","refusal":""}"#),       FinishReason::Complete, "{}"),
            ("end of sequence",    body(r#""eos""#, r#"{"content":"{}"}"#),                     FinishReason::Complete, "{}"),
            ("full window",        body(r#""model_length""#, r#"{"content":"{"}"#),             FinishReason::Cut,      "{"),
            ("given up",           body(r#""abort""#, r#"{"content":"{}"}"#),                   FinishReason::Stopped,  "{}"),
            ("no reason",          body("null", r#"{"content":"{}"}"#),                         FinishReason::Complete, "{}"),
        ];
        for (name, body, stop, text) in table {
            let reply = parse_reply(body.as_bytes(), "asked").unwrap();
            assert_eq!((reply.stop, reply.text.as_str()), (stop, text), "{name}");
            assert_eq!(
                reply.usage,
                ModelUsage { input: 2, cache_read: 4, cache_write: 1, output: 3 },
                "{name}"
            );
            assert_eq!(reply.model, "m-1", "{name}");
        }
    }

    #[test]
    fn a_server_that_omits_optional_fields_is_understood() {
        let reply = parse_reply(br#"{"choices":[{"message":{"content":"{}"}}]}"#, "asked").unwrap();
        assert_eq!((reply.model.as_str(), reply.usage), ("asked", ModelUsage::default()));
    }

    #[test]
    fn an_invalid_completion_is_reported_without_its_text() {
        for body in ["", "<html>secret</html>", r#"{"choices":"secret"}"#, r#"{"choices":[]}"#] {
            let error = parse_reply(body.as_bytes(), "m").unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn exactly_one_cap_on_the_reply_is_sent_and_no_temperature() {
        let prompt = Prompt {
            system: "s".into(),
            user: "u".into(),
            schema_name: "invoice".into(),
            schema: json!({"type": "object", "properties": {}}).into(),
            schema_in_text: false,
            max_output_tokens: 9,
            pictures: Vec::new(),
        };
        for (limit, sent, unsent) in [
            (TokenLimitField::Older, "max_tokens", "max_completion_tokens"),
            (TokenLimitField::Newer, "max_completion_tokens", "max_tokens"),
        ] {
            let body = serde_json::to_value(build_request("m", &prompt, options(limit))).unwrap();
            assert_eq!(body[sent], 9);
            assert!(body.get(unsent).is_none() && body.get("temperature").is_none());
            assert!(body.get("stream").is_none() && body.get("prompt_cache_key").is_none());
        }
        let bare = OpenAiOptions {
            form: ReplyForm::from_config(&LlmConfig {
                structured: StructuredOutput::Prompt,
                ..config()
            }),
            stream: true,
            ..options(TokenLimitField::Older)
        };
        let body = serde_json::to_value(build_request("m", &prompt, bare)).unwrap();
        assert!(body.get("response_format").is_none());
        assert_eq!(
            (&body["stream"], &body["stream_options"]["include_usage"]),
            (&json!(true), &json!(true))
        );
    }

    fn config() -> LlmConfig {
        LlmConfig { provider: LlmProvider::Openai, ..LlmConfig::default() }
    }

    fn options(limit: TokenLimitField) -> OpenAiOptions {
        let form = ReplyForm::from_config(&config());
        OpenAiOptions { limit, stream: false, form, cache_key: false }
    }
}
