//! Amazon Bedrock's Converse and `ConverseStream` (botocore's `bedrock-runtime/2023-09-30`).

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    End, Outgoing, Said, Tokens, Trouble, Wrong, is_temperature, json_reply, one_of, only,
    outgoing, pieces, subset, text,
};

const KNOWN: [&str; 7] = [
    "system",
    "messages",
    "inferenceConfig",
    "outputConfig",
    "toolConfig",
    "additionalModelRequestFields",
    "serviceTier",
];

pub(super) fn check(headers: &HashMap<String, String>, body: &Value) -> Result<(), Wrong> {
    let signed = headers.get("authorization").is_some_and(|value| {
        value.starts_with("AWS4-HMAC-SHA256 ") || value.starts_with("Bearer ")
    });
    if !signed {
        return Err(("headers", "the request is not signed".to_owned()));
    }
    only(body, &KNOWN)?;
    let user = body.pointer("/messages/0/role").and_then(Value::as_str) == Some("user");
    if !user || text(body.pointer("/messages/0/content/0/text")).is_none() {
        return Err(("messages", "a conversation must start with a user message".to_owned()));
    }
    if body.pointer("/inferenceConfig/maxTokens").and_then(Value::as_u64) == Some(0) {
        return Err(("inferenceConfig", "maxTokens must be at least 1".to_owned()));
    }
    if !one_of(body, "/serviceTier/type", &["priority", "default", "flex", "reserved"]) {
        return Err(("serviceTier", "type failed to satisfy constraint".to_owned()));
    }
    if !is_temperature(body, "/inferenceConfig/temperature", 1.0) {
        return Err(("inferenceConfig", "temperature must be at most 1".to_owned()));
    }
    if let Some(format) = body.pointer("/outputConfig/textFormat") {
        let schema = text(format.pointer("/structure/jsonSchema/schema"));
        let schema = schema.and_then(|text| serde_json::from_str(text).ok());
        let schema: Value = schema.ok_or(("outputConfig", "schema must be JSON".to_owned()))?;
        subset::check(&schema).map_err(|wrong| ("outputConfig", wrong))?;
    }
    if let Some(schema) = body.pointer("/toolConfig/tools/0/toolSpec/inputSchema/json") {
        subset::check(schema).map_err(|wrong| ("toolConfig", wrong))?;
    }
    Ok(())
}

fn tool(body: &Value) -> Option<&str> {
    body.pointer("/toolConfig/toolChoice/tool/name").and_then(Value::as_str)
}

fn reason<'a>(body: &Value, end: &'a End) -> &'a str {
    match end {
        End::Done if tool(body).is_some() => "tool_use",
        End::Done => "end_turn",
        End::Length => "max_tokens",
        End::Filter => "content_filtered",
        End::Declined => "guardrail_intervened",
        End::Other(word) => word,
    }
}

fn usage(tokens: Tokens) -> Value {
    json!({
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "totalTokens": tokens.input + tokens.read + tokens.written + tokens.output,
        "cacheReadInputTokens": tokens.read,
        "cacheWriteInputTokens": tokens.written,
    })
}

pub(super) fn reply(body: &Value, said: &Said) -> Value {
    let content = match tool(body) {
        Some(name) => json!([{"toolUse": {
            "toolUseId": "tooluse_1", "name": name, "input": json_reply(&said.text),
        }}]),
        None => json!([{"text": said.text}]),
    };
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason(body, &said.end),
        "usage": usage(said.tokens),
        "metrics": {"latencyMs": 1},
    })
}

pub(super) fn events(body: &Value, said: &Said) -> Vec<(Option<&'static str>, Value)> {
    let mut events = vec![("messageStart", json!({"role": "assistant"}))];
    if let Some(name) = tool(body) {
        let start = json!({"toolUse": {"toolUseId": "tooluse_1", "name": name}});
        events.push(("contentBlockStart", json!({"start": start, "contentBlockIndex": 0})));
    }
    for piece in pieces(&said.text) {
        let delta = match tool(body) {
            Some(_) => json!({"toolUse": {"input": piece}}),
            None => json!({"text": piece}),
        };
        events.push(("contentBlockDelta", json!({"delta": delta, "contentBlockIndex": 0})));
    }
    events.push(("contentBlockStop", json!({"contentBlockIndex": 0})));
    events.push(("messageStop", json!({"stopReason": reason(body, &said.end)})));
    let metadata = json!({"usage": usage(said.tokens), "metrics": {"latencyMs": 1}});
    events.push(("metadata", metadata));
    events.into_iter().map(|(name, data)| (Some(name), data)).collect()
}

pub(super) fn error(trouble: &Trouble<'_>) -> Outgoing {
    let kind = trouble.code.unwrap_or(match trouble.status {
        401 | 403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    });
    let mut answer = outgoing(trouble.status, json!({"message": trouble.message}));
    answer.headers.push(("x-amzn-errortype", kind.to_owned()));
    answer
}
