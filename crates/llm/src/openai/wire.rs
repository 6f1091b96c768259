//! Requests and replies as they travel.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::servers::EffortForm;
use crate::form::ReplyForm;
use crate::options::{CallEffort, CallOptions, OptionalField};
use crate::picture::{TurnPart, data_url, turn_parts};
use crate::{FinishReason, ModelReply, Prompt};
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::config::PromptCache;
use docmill_core::model::ModelUsage;

/// The options of a request, besides the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenAiOptions<'a> {
    pub(super) stream: bool,
    pub(super) form: ReplyForm,
    pub(super) cache: PromptCache,
    pub(super) effort: EffortForm,
    pub(super) call: CallOptions<'a>,
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
    /// Not before the end of the stable part is anything written to a cache that charges for it
    /// (`types/chat/completion_create_params.py` of openai 3.52).
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    /// Completions of new accounts are kept unless this is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
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
fn user_content(prompt: &Prompt, form: ReplyForm) -> OpenAiContent<'_> {
    if prompt.pictures.is_empty() {
        return OpenAiContent::Text(form.write_user_text(prompt));
    }
    let parts = turn_parts(prompt, form).into_iter().map(|part| match part {
        TurnPart::Text(text) => json!({"type": "text", "text": text}),
        TurnPart::Picture(image) => {
            let url = data_url(image);
            json!({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
        }
    });
    OpenAiContent::Parts(parts.collect())
}

/// The system prompt; behind a breakpoint nothing is written to the vendor's cache.
fn system_content(text: Cow<'_, str>, has_breakpoint: bool) -> OpenAiContent<'_> {
    if !has_breakpoint {
        return OpenAiContent::Text(text);
    }
    OpenAiContent::Parts(vec![json!({
        "type": "text",
        "text": text,
        "prompt_cache_breakpoint": {"mode": "explicit"},
    })])
}

/// The words for effort of a server: the field, and what goes to the model's template.
fn effort_fields(form: EffortForm, effort: CallEffort) -> (Option<&'static str>, Option<Value>) {
    match (form, effort) {
        (_, CallEffort::Unsaid) => (None, None),
        (EffortForm::Field, CallEffort::Off) => (Some("none"), None),
        (_, CallEffort::Off) => (None, Some(json!({"enable_thinking": false}))),
        (EffortForm::Template, CallEffort::Level(level)) => {
            (None, Some(json!({"enable_thinking": true, "reasoning_effort": level})))
        }
        (_, CallEffort::Level(level)) => (Some(level), None),
    }
}

pub(super) fn build_request<'a>(
    model: &'a str,
    prompt: &'a Prompt,
    options: OpenAiOptions<'a>,
) -> OpenAiRequest<'a> {
    let OpenAiOptions { form, call, .. } = options;
    // `max_tokens`: every compatible server accepts it, OpenAI's own newer models refuse it.
    let is_older = call.keeps(OptionalField::OlderLimit);
    let has_breakpoint =
        call.keeps(OptionalField::CacheOptions) && options.cache != PromptCache::Off;
    let (reasoning_effort, chat_template_kwargs) = effort_fields(options.effort, call.effort);
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
    let user = OpenAiMessage { role: "user", content: user_content(prompt, form) };
    // Models that were trained without a system message are asked without one.
    let messages = if text.is_empty() {
        vec![user]
    } else {
        vec![OpenAiMessage { role: "system", content: system_content(text, has_breakpoint) }, user]
    };
    OpenAiRequest {
        model,
        messages,
        response_format: form.has_schema().then(schema),
        max_tokens: is_older.then_some(call.max_tokens),
        max_completion_tokens: (!is_older).then_some(call.max_tokens),
        prompt_cache_key: call
            .keeps(OptionalField::CacheKey)
            .then(|| format!("docmill-{}", prompt.schema_name)),
        prompt_cache_options: call
            .keeps(OptionalField::CacheOptions)
            .then(|| json!({"mode": "explicit"})),
        reasoning_effort,
        chat_template_kwargs,
        temperature: call.temperature,
        service_tier: call.service_tier,
        store: call.keeps(OptionalField::Store).then_some(false),
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

/// `prompt_tokens` includes the cached ones and `completion_tokens` the reasoning. A gateway before another
/// vendor may leave the cached ones out.
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
            input: prompt.checked_sub(read.saturating_add(written)).unwrap_or(prompt),
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
    /// The server aborted.
    #[error("the server gave up on the reply")]
    GivenUp,
}

/// Reads a successful body. `asked` names the model if the server does not.
pub(super) fn parse_reply(body: &[u8], asked: &str) -> Result<ModelReply, CompletionParseError> {
    let completion: OpenAiCompletion = serde_json::from_slice(body)
        .map_err(|e| CompletionParseError::Shape { line: e.line(), column: e.column() })?;
    let choice = completion.choices.into_iter().next().ok_or(CompletionParseError::Empty)?;
    let declined = choice.message.refusal.is_some_and(|text| !text.is_empty());
    let stop = parse_finish_reason(choice.finish_reason.as_deref(), declined)
        .ok_or(CompletionParseError::GivenUp)?;
    let usage = completion.usage.map(ModelUsage::from);
    let text = choice.message.content.unwrap_or_default();
    // `OpenRouter` while a provider starts: no token, and no reason for that.
    let has_no_token = usage.is_some_and(|usage| usage.output == 0);
    if stop == FinishReason::Complete && text.is_empty() && has_no_token {
        return Err(CompletionParseError::GivenUp);
    }
    Ok(ModelReply {
        text,
        stop,
        usage: usage.unwrap_or_default(),
        model: completion.model.filter(|name| !name.is_empty()).unwrap_or_else(|| asked.to_owned()),
        limits: RateLimitHeaders::default(),
    })
}

/// Maps the vendor's finish reason to ours; `None`: the server failed (`OpenRouter`, vLLM, `DeepSeek`). Many servers
/// give none; one that is unknown here is no normal end.
pub(super) fn parse_finish_reason(reason: Option<&str>, declined: bool) -> Option<FinishReason> {
    Some(match reason {
        _ if declined => FinishReason::Refused,
        Some("content_filter") => FinishReason::Refused,
        // The second is Mistral's, for a full window.
        Some("length" | "model_length") => FinishReason::Cut,
        Some("error" | "abort" | "insufficient_system_resource") => return None,
        None | Some("" | "stop" | "tool_calls" | "function_call" | "eos") => FinishReason::Complete,
        Some(_) => FinishReason::Stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::super::servers::ServerProfile;
    use super::*;
    use crate::PromptThinking;
    use crate::options::RequestOptions;
    use docmill_core::config::{LlmConfig, LlmProvider, LlmServer, ModelEffort, StructuredOutput};

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
            ("of its own",         body(r#""pause""#, r#"{"content":"{}"}"#),                   FinishReason::Stopped,  "{}"),
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
    fn a_reply_that_its_server_gave_up_is_a_failure_of_the_server() {
        for reason in ["error", "abort", "insufficient_system_resource"] {
            let body =
                json!({"choices": [{"message": {"content": "{}"}, "finish_reason": reason}]});
            let failed = parse_reply(body.to_string().as_bytes(), "m");
            assert!(matches!(failed, Err(CompletionParseError::GivenUp)), "{reason}");
        }
        let nothing = br#"{"choices":[{"message":{"content":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":0}}"#;
        assert!(matches!(parse_reply(nothing, "m"), Err(CompletionParseError::GivenUp)));
    }

    #[test]
    fn a_server_that_omits_optional_fields_is_understood() {
        let reply = parse_reply(br#"{"choices":[{"message":{"content":"{}"}}]}"#, "asked").unwrap();
        assert_eq!((reply.model.as_str(), reply.usage), ("asked", ModelUsage::default()));
    }

    #[test]
    fn a_gateway_that_leaves_cached_tokens_out_of_its_count_is_understood() {
        let body = r#"{"choices":[{"message":{"content":"{}"}}],"usage":{"prompt_tokens":500,
            "prompt_tokens_details":{"cached_tokens":3000}}}"#;
        let usage = parse_reply(body.as_bytes(), "asked").unwrap().usage;
        assert_eq!((usage.input, usage.prompt_tokens()), (500, 3_500));
    }

    #[test]
    fn an_invalid_completion_is_reported_without_its_text() {
        for body in ["", "<html>secret</html>", r#"{"choices":"secret"}"#, r#"{"choices":[]}"#] {
            let error = parse_reply(body.as_bytes(), "m").unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    fn prompt() -> Prompt {
        Prompt {
            system: "s".into(),
            user: "u".into(),
            schema_name: "invoice".into(),
            schema: json!({"type": "object", "properties": {}}).into(),
            schema_in_text: false,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 9,
            pictures: Vec::new(),
        }
    }

    /// The request of a server's first call for a model.
    fn sent(config: &LlmConfig) -> Value {
        let server = ServerProfile::from_config(config.server);
        let options = RequestOptions::new(config).without(&server.unknown_fields(&config.model));
        let prompt = prompt();
        let form = OpenAiOptions {
            stream: false,
            form: ReplyForm::from_config(config),
            cache: config.prompt_cache,
            effort: server.effort,
            call: options.for_call(&prompt),
        };
        serde_json::to_value(build_request(&config.model, &prompt, form)).unwrap()
    }

    fn config(server: LlmServer, model: &str) -> LlmConfig {
        let (provider, model) = (LlmProvider::Openai, model.to_owned());
        // An address of its own: what is learned is shared by address and model.
        LlmConfig {
            provider,
            server,
            model,
            base_url: format!("{server:?}"),
            ..LlmConfig::default()
        }
    }

    #[test]
    fn each_server_is_sent_the_fields_that_it_takes_and_one_cap_on_the_reply() {
        #[rustfmt::skip]
        let table = [
            (LlmServer::Openai,   "gpt-5.4",  json!({"max_completion_tokens": 4_105, "prompt_cache_key": "docmill-invoice", "store": false})),
            (LlmServer::Openai,   "gpt-6-sol", json!({"max_completion_tokens": 4_105, "prompt_cache_key": "docmill-invoice", "store": false, "prompt_cache_options": {"mode": "explicit"}})),
            (LlmServer::Azure,    "gpt-6-sol", json!({"max_completion_tokens": 4_105, "prompt_cache_key": "docmill-invoice"})),
            (LlmServer::Vllm,     "qwen",     json!({"max_tokens": 9, "temperature": 0.0})),
            (LlmServer::Ollama,   "qwen",     json!({"max_tokens": 9, "temperature": 0.0})),
            (LlmServer::LlamaCpp, "qwen",     json!({"max_tokens": 9, "temperature": 0.0})),
            (LlmServer::Other,    "gpt-6-sol", json!({"max_tokens": 9})),
        ];
        for (server, model, expected) in table {
            let mut body = sent(&config(server, model));
            let fields = body.as_object_mut().unwrap();
            for known in ["model", "messages", "response_format"] {
                fields.shift_remove(known).unwrap();
            }
            assert_eq!(body, expected, "{server:?} {model}");
        }
        let bare =
            LlmConfig { structured: StructuredOutput::Prompt, ..config(LlmServer::Other, "other") };
        assert!(sent(&bare).get("response_format").is_none());
    }

    #[test]
    fn effort_is_written_in_each_servers_own_way() {
        let effort = |server, effort| {
            let name = format!("effort {effort:?}");
            let body = sent(&LlmConfig { effort, ..config(server, &name) });
            (body["reasoning_effort"].clone(), body["chat_template_kwargs"].clone())
        };
        let (none, low) = (ModelEffort::None, ModelEffort::Low);
        let off = json!({"enable_thinking": false});
        for server in [LlmServer::Openai, LlmServer::Azure, LlmServer::Ollama, LlmServer::Other] {
            assert_eq!(effort(server, none), (json!("none"), Value::Null), "{server:?}");
            assert_eq!(effort(server, low), (json!("low"), Value::Null), "{server:?}");
        }
        assert_eq!(effort(LlmServer::Vllm, none), (Value::Null, off.clone()));
        assert_eq!(effort(LlmServer::Vllm, low), (json!("low"), Value::Null));
        assert_eq!(effort(LlmServer::LlamaCpp, none), (Value::Null, off));
        let little = json!({"enable_thinking": true, "reasoning_effort": "low"});
        assert_eq!(effort(LlmServer::LlamaCpp, low), (Value::Null, little));
    }

    #[test]
    fn the_cache_of_newer_models_ends_with_the_system_prompt_or_holds_nothing() {
        let body = sent(&config(LlmServer::Openai, "gpt-5.6-luna"));
        let mark = &body["messages"][0]["content"][0]["prompt_cache_breakpoint"];
        assert_eq!(mark, &json!({"mode": "explicit"}));
        assert_eq!(body["messages"][1]["content"], "u", "the document is behind it");
        let off = LlmConfig {
            prompt_cache: PromptCache::Off,
            ..config(LlmServer::Openai, "gpt-5.6-luna")
        };
        let body = sent(&off);
        assert_eq!(body["messages"][0]["content"], "s");
        assert_eq!(body["prompt_cache_options"], json!({"mode": "explicit"}));
    }
}
