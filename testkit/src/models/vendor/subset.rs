//! The subset of JSON Schema that Anthropic and Bedrock accept
//! (`anthropic/lib/_parse/_transform.py` of anthropic 2.11): anything else is refused at once.

use serde_json::Value;

const KNOWN: [&str; 13] = [
    "type",
    "description",
    "enum",
    "const",
    "properties",
    "required",
    "items",
    "anyOf",
    "$ref",
    "$defs",
    "additionalProperties",
    "format",
    "minItems",
];
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The schema's error, if any.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let object = schema.as_object().ok_or("a schema must be an object")?;
    if let Some(key) = object.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("keyword '{key}' is not supported"));
    }
    if object.get("type").is_some_and(|name| !name.is_string()) {
        return Err("'type' must be one name".to_owned());
    }
    if let Some(format) = object.get("format").and_then(Value::as_str)
        && !FORMATS.contains(&format)
    {
        return Err(format!("format '{format}' is not supported"));
    }
    if object.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 1) {
        return Err("'minItems' must be 0 or 1".to_owned());
    }
    let is_object = object.get("type").and_then(Value::as_str) == Some("object");
    if is_object && object.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err("'additionalProperties' must be false".to_owned());
    }
    let maps = ["properties", "$defs"].into_iter().filter_map(|key| object.get(key)?.as_object());
    let lists = object.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    maps.flat_map(|map| map.values()).chain(lists).chain(object.get("items")).try_for_each(check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_the_services_refuse_are_refused_at_any_depth() {
        let under = |schema: Value| {
            check(&json!({"type": "object", "additionalProperties": false, "properties": {
                "a": {"anyOf": [{"type": "array", "items": schema}, {"type": "null"}]}
            }}))
        };
        assert!(under(json!({"type": "string", "format": "date"})).is_ok());
        for wrong in [
            json!({"type": "string", "pattern": "x"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "string", "format": "iban"}),
            json!({"type": "array", "minItems": 2}),
        ] {
            assert!(under(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
