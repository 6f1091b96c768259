//! A JSON Schema in the strict dialect of OpenAI's structured outputs.
//!
//! Rules (`openai/lib/_pydantic.py` of openai 3.52): closed objects that require everything, which
//! is [`schema::closed`]; a single `allOf` is flattened; `default` goes. Keywords that only check
//! values are left out: not every server takes them, and one that does not answers 400. The reply
//! is validated against the whole schema afterwards anyway.

use serde_json::{Map, Value};

use crate::llm::schema;

/// Everything else is dropped, also what nobody has heard of.
const KEPT: [&str; 12] = [
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
    "definitions",
    "additionalProperties",
];

/// Compiles a schema.
pub(super) fn strict(schema: &Value) -> Value {
    plain(&schema::closed(schema))
}

fn plain(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut object = flattened(object);
    if let Some(any) = object.remove("oneOf") {
        object.insert("anyOf".to_owned(), any);
    }
    let kept = object.into_iter().filter(|(key, _)| KEPT.contains(&key.as_str()));
    Value::Object(kept.map(|(key, value)| compiled(key, value)).collect())
}

/// One keyword, with the schemas below it compiled.
fn compiled(key: String, value: Value) -> (String, Value) {
    let value = match (key.as_str(), value) {
        ("properties" | "$defs" | "definitions", Value::Object(map)) => {
            map.iter().map(|(name, schema)| (name.clone(), plain(schema))).collect()
        }
        ("anyOf", Value::Array(list)) => list.iter().map(plain).collect(),
        ("items", schema) => plain(&schema),
        (_, value) => value,
    };
    (key, value)
}

fn flattened(object: &Map<String, Value>) -> Map<String, Value> {
    let mut object = object.clone();
    let single = match object.get("allOf") {
        Some(Value::Array(list)) if list.len() == 1 => list.first().cloned(),
        _ => None,
    };
    if let Some(Value::Object(inner)) = single {
        object.remove("allOf");
        for (key, value) in inner {
            object.entry(key).or_insert(value);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_dialects_own_keywords_are_sent() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["a", "pattern"],
            "properties": {
                "a": {"type": "string", "pattern": "^x", "format": "date", "default": null},
                "pattern": {"allOf": [{"$ref": "#/$defs/g"}]},
                "b": {"oneOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
                "c": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
            },
            "$defs": {"g": {"type": "string", "title": "G"}},
            "x-ours": 1
        });
        let expected = json!({
            "type": "object",
            "required": ["a", "pattern", "b", "c"],
            "properties": {
                "a": {"type": "string"},
                "pattern": {"$ref": "#/$defs/g"},
                "b": {"anyOf": [
                    {"anyOf": [{"type": "number"}, {"type": "null"}]},
                    {"type": "null"}
                ]},
                "c": {"type": ["array", "null"], "items": {"type": "string"}}
            },
            "$defs": {"g": {"type": "string"}},
            "additionalProperties": false
        });
        assert_eq!(strict(&schema), expected);
    }

    #[test]
    fn a_property_that_is_called_like_a_keyword_is_kept() {
        let schema = json!({"type": "object", "properties": {"format": {"type": "string"}}});
        assert_eq!(strict(&schema)["properties"]["format"]["type"], json!(["string", "null"]));
    }
}
