//! Google's `generateContent` (types of `PyPI`'s google-genai 3.4). Replies come whole.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{End, Outgoing, Said, Trouble, Wrong, only, outgoing, text};

const KNOWN: [&str; 3] = ["contents", "systemInstruction", "generationConfig"];

pub(super) fn check(headers: &HashMap<String, String>, body: &Value) -> Result<(), Wrong> {
    if !headers.contains_key("x-goog-api-key") {
        return Err(("headers", "Method doesn't allow unregistered callers".to_owned()));
    }
    check_content(body)
}

/// The body, which is the same at Vertex AI.
pub(super) fn check_content(body: &Value) -> Result<(), Wrong> {
    only(body, &KNOWN)?;
    let user = body.pointer("/contents/0/role").and_then(Value::as_str) == Some("user");
    if !user || text(body.pointer("/contents/0/parts/0/text")).is_none() {
        return Err(("contents", "contents are not specified".to_owned()));
    }
    if let Some(system) = body.get("systemInstruction")
        && text(system.pointer("/parts/0/text")).is_none()
    {
        return Err(("systemInstruction", "an empty text parameter".to_owned()));
    }
    let generation = body.get("generationConfig").unwrap_or(&Value::Null);
    if generation.get("maxOutputTokens").and_then(Value::as_u64).is_none_or(|most| most == 0) {
        return Err(("generationConfig", "max_output_tokens must be positive".to_owned()));
    }
    let in_json = generation.get("responseMimeType") == Some(&json!("application/json"));
    match generation.get("responseJsonSchema") {
        Some(schema) if !in_json || !schema.is_object() => {
            Err(("generationConfig", "a schema is for the type application/json".to_owned()))
        }
        _ => Ok(()),
    }
}

pub(super) fn reply(said: &Said) -> Value {
    let tokens = said.tokens;
    let prompt = tokens.input + tokens.read + tokens.written;
    let usage = json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": tokens.read,
        "candidatesTokenCount": tokens.output,
        "totalTokenCount": prompt + tokens.output,
    });
    let reason = match &said.end {
        End::Done => "STOP",
        End::Length => "MAX_TOKENS",
        End::Filter => "SAFETY",
        End::Declined => {
            return json!({
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": usage, "modelVersion": "model-1", "responseId": "r",
            });
        }
        End::Other(word) => word,
    };
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": [{"text": said.text}]},
            "finishReason": reason, "index": 0,
        }],
        "usageMetadata": usage, "modelVersion": "model-1", "responseId": "r",
    })
}

pub(super) fn error(trouble: &Trouble<'_>) -> Outgoing {
    let status = trouble.code.unwrap_or(match trouble.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    });
    let (code, message) = (trouble.status, trouble.message);
    outgoing(code, json!({"error": {"code": code, "message": message, "status": status}}))
}
