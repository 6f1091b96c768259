//! Whether a request keeps the contract. The real service answers 400 to what does not.

use serde_json::Value;

use super::script::LimitNames;

/// A broken rule: the parameter and what is wrong with it.
pub(crate) type Wrong = (&'static str, String);

pub(crate) fn request(body: &Value, limit: LimitNames) -> Result<(), Wrong> {
    text(body.get("model")).ok_or(("model", "you must provide a model".to_owned()))?;
    messages(body)?;
    caps(body, limit)?;
    let format = body.get("response_format").ok_or(("response_format", "missing".to_owned()))?;
    if format.get("type").and_then(Value::as_str) != Some("json_schema") {
        return Err(("response_format", "type must be json_schema".to_owned()));
    }
    let json_schema = format.get("json_schema").unwrap_or(&Value::Null);
    let name = text(json_schema.get("name")).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
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
        strict(root, 0).map_err(|wrong| ("response_format", wrong))?;
    }
    Ok(())
}

fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
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
        if message.get("content").and_then(Value::as_str).is_none() {
            return Err(("messages", "content must be text".to_owned()));
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

/// The rules of strict mode.
fn strict(schema: &Value, depth: usize) -> Result<(), String> {
    if depth > 10 {
        return Err("more than 10 levels of nesting".to_owned());
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
