//! Google's `generateContent` (types of `PyPI`'s google-genai 3.4). Replies come whole.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{End, Outgoing, Said, Trouble, Wrong, is_temperature, one_of, only, outgoing, text};

const KNOWN: [&str; 4] = ["contents", "systemInstruction", "generationConfig", "serviceTier"];

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
    thinking(generation)?;
    if !is_temperature(generation, "/temperature", 2.0) {
        return Err(("generationConfig", "temperature must be in the range [0.0, 2.0]".to_owned()));
    }
    if !one_of(body, "/serviceTier", &["standard", "flex", "priority"]) {
        return Err(("serviceTier", "Invalid value at 'service_tier'".to_owned()));
    }
    let in_json = generation.get("responseMimeType") == Some(&json!("application/json"));
    match generation.get("responseJsonSchema") {
        Some(schema) if !in_json || !schema.is_object() => {
            Err(("generationConfig", "a schema is for the type application/json".to_owned()))
        }
        _ => Ok(()),
    }
}

/// `ThinkingConfig`: a level or a budget.
fn thinking(generation: &Value) -> Result<(), Wrong> {
    let config = generation.get("thinkingConfig").unwrap_or(&Value::Null);
    if config.get("thinkingLevel").is_some() && config.get("thinkingBudget").is_some() {
        let wrong = "You can only set only one of thinking budget and thinking level.";
        return Err(("thinkingConfig", wrong.to_owned()));
    }
    if !one_of(config, "/thinkingLevel", &["minimal", "low", "medium", "high"]) {
        return Err(("thinkingConfig", "Invalid value at 'thinking_level'".to_owned()));
    }
    let budget = config.get("thinkingBudget");
    if budget.is_some_and(|budget| budget.as_i64().is_none_or(|tokens| tokens < -1)) {
        return Err(("thinkingConfig", "Invalid value at 'thinking_budget'".to_owned()));
    }
    Ok(())
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
    let details = trouble.quota.map(|quota| {
        json!([
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": quota.id}],
            },
            {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{}s", quota.seconds),
            },
        ])
    });
    let mut error = json!({"code": code, "message": message, "status": status});
    if let (Some(details), Some(fields)) = (details, error.as_object_mut()) {
        fields.insert("details".to_owned(), details);
    }
    outgoing(code, json!({"error": error}))
}
