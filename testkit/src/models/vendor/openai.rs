//! OpenAI's chat completions (`openai/openai-openapi` 2.3.0).

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{End, Outgoing, Said, Trouble, Wrong, only, outgoing, pieces, text};
use super::{is_temperature, one_of};
use crate::models::script::{LimitNames, ModelRules};

const KNOWN: [&str; 15] = [
    "reasoning_effort",
    "chat_template_kwargs",
    "temperature",
    "service_tier",
    "store",
    "prompt_cache_options",
    "top_p",
    "model",
    "messages",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "prompt_cache_key",
    "stream",
    "stream_options",
];

pub(super) fn check(body: &Value, rules: &ModelRules) -> Result<(), Wrong> {
    only(body, &KNOWN)?;
    values(body)?;
    text(body.get("model")).ok_or(("model", "you must provide a model".to_owned()))?;
    messages(body)?;
    caps(body, rules.limit)?;
    if body.get("stream_options").is_some() && body.get("stream") != Some(&Value::Bool(true)) {
        return Err(("stream_options", "only allowed when stream is enabled".to_owned()));
    }
    let Some(format) = body.get("response_format") else { return Ok(()) };
    if format.get("type").and_then(Value::as_str) != Some("json_schema") {
        return Err(("response_format", "type must be json_schema".to_owned()));
    }
    let json_schema = format.get("json_schema").unwrap_or(&Value::Null);
    let name = text(json_schema.get("name")).unwrap_or_default();
    if name.is_empty()
        || name.len() > 64
        || !name.chars().all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        return Err((
            "response_format",
            "json_schema.name must match ^[a-zA-Z0-9_-]{1,64}$".into(),
        ));
    }
    let root = json_schema.get("schema").unwrap_or(&Value::Null);
    if root.get("type").and_then(Value::as_str) != Some("object") {
        return Err(("response_format", "schema must be of type object".to_owned()));
    }
    if json_schema.get("strict") == Some(&Value::Bool(true)) {
        let checked = strict(root, 0).and_then(|()| size(root));
        checked.map_err(|wrong| {
            ("response_format", format!("Invalid schema for response_format '{name}': {wrong}"))
        })?;
    }
    Ok(())
}

/// The values of fields that have few (`types/shared_params/reasoning_effort.py`,
/// `types/chat/completion_create_params.py`).
fn values(body: &Value) -> Result<(), Wrong> {
    if !one_of(body, "/reasoning_effort", &["none", "minimal", "low", "medium", "high", "xhigh"]) {
        return Err(("reasoning_effort", "Invalid value: 'reasoning_effort'".to_owned()));
    }
    if !one_of(body, "/service_tier", &["auto", "default", "flex", "scale", "priority"]) {
        return Err(("service_tier", "Invalid value: 'service_tier'".to_owned()));
    }
    if !one_of(body, "/prompt_cache_options/mode", &["implicit", "explicit"]) {
        return Err(("prompt_cache_options", "Invalid value: 'mode'".to_owned()));
    }
    if !is_temperature(body, "/temperature", 2.0) {
        return Err(("temperature", "Invalid value: 'temperature'".to_owned()));
    }
    Ok(())
}

fn messages(body: &Value) -> Result<(), Wrong> {
    let list = body.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return Err(("messages", "must not be empty".to_owned()));
    }
    for message in list {
        let role = text(message.get("role")).unwrap_or_default();
        if !matches!(role, "system" | "developer" | "user" | "assistant") {
            return Err(("messages", format!("`{role}` is no role")));
        }
        let is_content = match message.get("content") {
            Some(Value::String(_)) => true,
            Some(Value::Array(parts)) => {
                !parts.is_empty()
                    && parts.iter().all(|part: &Value| {
                        match part.get("type").and_then(Value::as_str) {
                            Some("text") => text(part.get("text")).is_some(),
                            Some("image_url") => role == "user" && part.get("image_url").is_some(),
                            _ => false,
                        }
                    })
            }
            _ => false,
        };
        if !is_content {
            return Err((
                "messages",
                "content must be text, or parts of text and image".to_owned(),
            ));
        }
    }
    Ok(())
}

fn caps(body: &Value, limit: LimitNames) -> Result<(), Wrong> {
    let (older, newer) = (body.get("max_tokens"), body.get("max_completion_tokens"));
    if older.is_some() && newer.is_some() {
        let wrong = "max_tokens and max_completion_tokens cannot both be set";
        return Err(("max_tokens", wrong.to_owned()));
    }
    if older.is_some() && limit == LimitNames::Newer {
        let wrong = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                     'max_completion_tokens' instead.";
        return Err(("max_tokens", wrong.to_owned()));
    }
    match older.or(newer) {
        Some(cap) if cap.as_u64().is_none_or(|cap| cap == 0) => {
            Err(("max_tokens", "must be at least 1".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Most properties of a whole schema, most values of all its enums, and most characters of the names of properties
/// and definitions and of the values of enums and constants together: developers.openai.com, structured outputs,
/// "Supported schemas".
const MAX_PROPERTIES: usize = 5_000;
const MAX_ENUM_VALUES: usize = 1_000;
const MAX_NAME_CHARS: usize = 120_000;

/// Counts of a schema and of all within it.
#[derive(Debug, Default, Clone, Copy)]
struct Size {
    properties: usize,
    enum_values: usize,
    chars: usize,
}

impl Size {
    fn add(&mut self, schema: &Value) {
        let chars = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        for (key, named) in ["properties", "$defs"]
            .into_iter()
            .filter_map(|key| Some((key, schema.get(key)?.as_object()?)))
        {
            self.properties += if key == "properties" { named.len() } else { 0 };
            self.chars += named.keys().map(|name| name.chars().count()).sum::<usize>();
            named.values().for_each(|inner| self.add(inner));
        }
        let values = schema.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.enum_values += values.len();
        self.chars += values.iter().chain(schema.get("const")).map(chars).sum::<usize>();
        let any = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        any.chain(schema.get("items")).for_each(|inner| self.add(inner));
    }
}

/// The published limits. Words of nesting as recorded in ellmer #671, of enums in Portkey's list of errors; the
/// others in their manner.
fn size(schema: &Value) -> Result<(), String> {
    let mut size = Size::default();
    size.add(schema);
    let Size { properties, enum_values, chars } = size;
    let most = [
        (properties, MAX_PROPERTIES, "object properties"),
        (enum_values, MAX_ENUM_VALUES, "enum values"),
        (chars, MAX_NAME_CHARS, "characters of names and enum values"),
    ];
    match most.into_iter().find(|(count, most, _)| count > most) {
        Some((count, most, what)) => Err(format!(
            "Expected at most {most} {what} in total within a single schema when using structured outputs, but \
             received {count}."
        )),
        None => Ok(()),
    }
}

/// The rules of strict mode.
fn strict(schema: &Value, depth: usize) -> Result<(), String> {
    if depth > 10 {
        return Err(format!("{depth} levels of nesting exceeds limit of 10."));
    }
    for keyword in ["allOf", "oneOf", "not", "default", "pattern", "format", "minimum", "maxLength"]
    {
        if schema.get(keyword).is_some() {
            return Err(format!("'{keyword}' is not permitted"));
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Err("'additionalProperties' is required to be false".to_owned());
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.map_or(&[][..], Vec::as_slice);
        for (name, property) in properties {
            if !required.iter().any(|entry| entry.as_str() == Some(name)) {
                return Err(format!("'required' must include every key; '{name}' is missing"));
            }
            strict(property, depth + 1)?;
        }
    }
    if let Some(items) = schema.get("items") {
        strict(items, depth + 1)?;
    }
    for any in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        strict(any, depth + 1)?;
    }
    Ok(())
}

fn reason(end: &End) -> &str {
    match end {
        End::Done | End::Declined => "stop",
        End::Length => "length",
        End::Filter => "content_filter",
        End::Other(word) => word,
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn usage(said: &Said) -> Value {
    let tokens = said.tokens;
    let prompt = tokens.input + tokens.read + tokens.written;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {
            "cached_tokens": tokens.read, "cache_write_tokens": tokens.written,
        },
    })
}

/// Every field that the contract requires is there, `logprobs` and `refusal` as null.
pub(super) fn reply(body: &Value, said: &Said) -> Value {
    let (content, refusal) = match said.end {
        End::Declined => (None, Some("I'm sorry, I cannot help with that request.")),
        _ => (Some(&said.text), None),
    };
    json!({
        "id": format!("chatcmpl-{}", said.number),
        "object": "chat.completion",
        "created": now(),
        "model": body.get("model"),
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": content, "refusal": refusal},
            "logprobs": null,
            "finish_reason": reason(&said.end),
        }],
        "usage": usage(said),
    })
}

pub(super) fn events(body: &Value, said: &Said) -> Vec<(Option<&'static str>, Value)> {
    let mut events = vec![chunk_of(
        body,
        said,
        choice_of(json!({"role": "assistant"}), Value::Null),
        Value::Null,
    )];
    if said.end == End::Declined {
        let delta = json!({"refusal": "I'm sorry, I cannot help with that request."});
        events.push(chunk_of(body, said, choice_of(delta, Value::Null), Value::Null));
    } else {
        events.extend(pieces(&said.text).into_iter().map(|text| {
            chunk_of(body, said, choice_of(json!({"content": text}), Value::Null), Value::Null)
        }));
    }
    events.push(chunk_of(body, said, choice_of(json!({}), json!(reason(&said.end))), Value::Null));
    events.push(chunk_of(body, said, json!([]), usage(said)));
    events.into_iter().map(|event| (None, event)).collect()
}

fn choice_of(delta: Value, reason: Value) -> Value {
    json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}])
}

fn chunk_of(body: &Value, said: &Said, choices: Value, usage: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", said.number),
        "object": "chat.completion.chunk",
        "created": now(),
        "model": body.get("model"),
        "choices": choices,
        "usage": usage,
    })
}

pub(super) fn error(trouble: &Trouble<'_>) -> Outgoing {
    let Trouble { status, message, param, code, .. } = *trouble;
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    outgoing(
        status,
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}}),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn object(properties: Map<String, Value>) -> Value {
        let required: Vec<&String> = properties.keys().collect();
        json!({
            "type": "object", "additionalProperties": false, "required": required, "properties": properties,
        })
    }

    fn many(count: usize, name_chars: usize) -> Value {
        let name = |at: usize| format!("{at:0>name_chars$}");
        object((0..count).map(|at| (name(at), json!({"type": "string"}))).collect())
    }

    fn nested(levels: usize) -> Value {
        let text = json!({"type": "string"});
        (0..levels).fold(text, |inner, _| object(Map::from_iter([("a".to_owned(), inner)])))
    }

    fn listed(values: usize) -> Value {
        let values: Vec<String> = (0..values).map(|at| at.to_string()).collect();
        object(Map::from_iter([("a".to_owned(), json!({"type": "string", "enum": values}))]))
    }

    #[test]
    fn a_schema_is_refused_once_a_published_limit_is_passed_by_one() {
        let checked = |schema: &Value| strict(schema, 0).and_then(|()| size(schema));
        for (within, beyond, words) in [
            (many(5_000, 4), many(5_001, 4), "at most 5000 object properties"),
            (nested(10), nested(11), "11 levels of nesting exceeds limit of 10"),
            (listed(1_000), listed(1_001), "at most 1000 enum values"),
            (many(100, 1_200), many(100, 1_201), "at most 120000 characters"),
        ] {
            assert_eq!(checked(&within), Ok(()), "{words}");
            assert!(checked(&beyond).unwrap_err().contains(words), "{words}");
        }
    }
}
