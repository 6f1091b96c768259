//! Anthropic's messages (types of `PyPI`'s anthropic 2.11).
#![expect(clippy::indexing_slicing, reason = "a key of a JSON object made here")]

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    End, Outgoing, Said, Trouble, Wrong, is_temperature, json_reply, one_of, only, outgoing,
    pieces, subset, text,
};

const KNOWN: [&str; 11] = [
    "thinking",
    "temperature",
    "service_tier",
    "model",
    "max_tokens",
    "system",
    "messages",
    "output_config",
    "tools",
    "tool_choice",
    "stream",
];

pub(super) fn check(headers: &HashMap<String, String>, body: &Value) -> Result<(), Wrong> {
    if !headers.contains_key("anthropic-version") {
        return Err(("headers", "anthropic-version: header is required".to_owned()));
    }
    only(body, &KNOWN)?;
    text(body.get("model")).ok_or(("model", "Field required".to_owned()))?;
    check_message(body)
}

/// At Vertex AI the model is in the path and the version in the body.
pub(super) fn check_on_vertex(
    headers: &HashMap<String, String>,
    body: &Value,
) -> Result<(), Wrong> {
    if body.get("anthropic_version") != Some(&json!("2026-10-21")) {
        return Err(("anthropic_version", "Field required".to_owned()));
    }
    if headers.contains_key("x-api-key") {
        return Err(("headers", "a key is of no use here".to_owned()));
    }
    let known: Vec<&str> = KNOWN.into_iter().filter(|name| *name != "model").collect();
    only(body, &[known.as_slice(), &["anthropic_version"]].concat())?;
    check_message(body)
}

fn check_message(body: &Value) -> Result<(), Wrong> {
    if body.get("max_tokens").and_then(Value::as_u64).is_none_or(|most| most == 0) {
        return Err(("max_tokens", "Field required, at least 1".to_owned()));
    }
    if !one_of(body, "/output_config/effort", &["low", "medium", "high", "xhigh", "max"]) {
        return Err(("output_config", "effort: Input should be 'low', 'medium' …".to_owned()));
    }
    if !one_of(body, "/thinking/type", &["enabled", "disabled", "adaptive"]) {
        return Err(("thinking", "type: Input should be 'enabled', 'disabled' …".to_owned()));
    }
    if !one_of(body, "/service_tier", &["auto", "standard_only"]) {
        return Err(("service_tier", "Input should be 'auto' or 'standard_only'".to_owned()));
    }
    if !is_temperature(body, "/temperature", 1.0) {
        return Err(("temperature", "range: 0..1".to_owned()));
    }
    let roles = body.pointer("/messages/0/role").and_then(Value::as_str);
    if roles != Some("user") {
        return Err(("messages", "first message must use the \"user\" role".to_owned()));
    }
    let blocks = ["/system", "/messages/0/content"].map(|pointer| body.pointer(pointer));
    for block in blocks.into_iter().flatten().filter_map(Value::as_array).flatten() {
        let kind = block.get("type").and_then(Value::as_str);
        if kind == Some("image") && block.get("source").is_some() {
            continue;
        }
        if kind != Some("text") || text(block.get("text")).is_none() {
            return Err(("messages", "text content blocks must be non-empty".to_owned()));
        }
        let ttl = block.pointer("/cache_control/ttl").and_then(Value::as_str);
        if ttl.is_some_and(|ttl| !matches!(ttl, "5m" | "1h")) {
            return Err(("cache_control", "ttl must be 5m or 1h".to_owned()));
        }
    }
    if let Some(format) = body.pointer("/output_config/format") {
        if format.get("type").and_then(Value::as_str) != Some("json_schema") {
            return Err(("output_config", "format.type must be json_schema".to_owned()));
        }
        let schema = format.get("schema").unwrap_or(&Value::Null);
        subset::check(schema).map_err(|wrong| ("output_config.format.schema", wrong))?;
    }
    if let Some(schema) = body.pointer("/tools/0/input_schema") {
        subset::check(schema).map_err(|wrong| ("tools.0.input_schema", wrong))?;
    }
    Ok(())
}

/// The tool that must be used, if one must.
fn tool(body: &Value) -> Option<&str> {
    body.pointer("/tool_choice/name").and_then(Value::as_str)
}

fn reason(body: &Value, end: &End) -> String {
    match end {
        End::Done if tool(body).is_some() => "tool_use",
        End::Done => "end_turn",
        End::Length => "max_tokens",
        End::Filter | End::Declined => "refusal",
        End::Other(word) => word,
    }
    .to_owned()
}

fn usage(said: &Said) -> Value {
    json!({
        "input_tokens": said.tokens.input,
        "cache_creation_input_tokens": said.tokens.written,
        "cache_read_input_tokens": said.tokens.read,
        "output_tokens": said.tokens.output,
        "service_tier": "standard",
    })
}

fn details(end: &End) -> Value {
    match end {
        End::Filter | End::Declined => {
            json!({"type": "refusal", "category": null, "explanation": null})
        }
        _ => Value::Null,
    }
}

fn message(body: &Value, said: &Said, content: Value, stop: Value) -> Value {
    json!({
        "id": format!("msg_{}", said.number),
        "type": "message",
        "role": "assistant",
        "model": body.get("model").map_or(json!("model-1"), Value::clone),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "stop_details": details(&said.end),
        "usage": usage(said),
    })
}

pub(super) fn reply(body: &Value, said: &Said) -> Value {
    let content = match tool(body) {
        _ if matches!(said.end, End::Declined | End::Filter) => json!([]),
        Some(name) => json!([{
            "type": "tool_use", "id": "toolu_1", "name": name, "input": json_reply(&said.text),
        }]),
        None => json!([{"type": "text", "text": said.text, "citations": null}]),
    };
    message(body, said, content, json!(reason(body, &said.end)))
}

pub(super) fn events(body: &Value, said: &Said) -> Vec<(Option<&'static str>, Value)> {
    let mut start = message(body, said, json!([]), Value::Null);
    if let Some(usage) = start.get_mut("usage") {
        usage["output_tokens"] = json!(1);
    }
    let mut events = vec![
        ("message_start", json!({"type": "message_start", "message": start})),
        ("ping", json!({"type": "ping"})),
    ];
    if !matches!(said.end, End::Declined | End::Filter) {
        let block = match tool(body) {
            Some(name) => json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}),
            None => json!({"type": "text", "text": "", "citations": null}),
        };
        let begin = json!({"type": "content_block_start", "index": 0, "content_block": block});
        events.push(("content_block_start", begin));
        for piece in pieces(&said.text) {
            let delta = match tool(body) {
                Some(_) => json!({"type": "input_json_delta", "partial_json": piece}),
                None => json!({"type": "text_delta", "text": piece}),
            };
            let data = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            events.push(("content_block_delta", data));
        }
        events.push(("content_block_stop", json!({"type": "content_block_stop", "index": 0})));
    }
    let delta = json!({
        "stop_reason": reason(body, &said.end),
        "stop_sequence": null,
        "stop_details": details(&said.end),
    });
    let count = json!({"output_tokens": said.tokens.output});
    let last = json!({"type": "message_delta", "delta": delta, "usage": count});
    events.push(("message_delta", last));
    events.push(("message_stop", json!({"type": "message_stop"})));
    events.into_iter().map(|(name, data)| (Some(name), data)).collect()
}

pub(super) fn error(trouble: &Trouble<'_>) -> Outgoing {
    let kind = match trouble.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let mut error = json!({"type": kind, "message": trouble.message});
    if let Some(code) = trouble.code {
        error["details"] = json!({"error_code": code});
    }
    outgoing(trouble.status, json!({"type": "error", "error": error, "request_id": "req_1"}))
}
