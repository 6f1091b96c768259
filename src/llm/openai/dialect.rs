//! A JSON Schema in the strict dialect of OpenAI's structured outputs.
//!
//! Rules (`openai/lib/_pydantic.py` of openai 3.52): every object is closed and requires all its
//! properties; what was optional may be null; a single `allOf` is flattened; `default` goes.
//! Keywords that only check values are left out: not every server takes them, and a server that
//! does not answers 400. The reply is validated against the whole schema afterwards anyway.

use serde_json::{Map, Value, json};

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
    let Some(object) = schema.as_object() else { return schema.clone() };
    let object = flattened(object);
    let mut out: Map<String, Value> = object
        .iter()
        .filter(|(key, _)| KEPT.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(any) = object.get("oneOf") {
        out.insert("anyOf".to_owned(), any.clone());
    }
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(map)) = out.get_mut(key) {
            map.values_mut().for_each(|value| *value = strict(value));
        }
    }
    if let Some(items) = out.get_mut("items") {
        *items = strict(items);
    }
    if let Some(Value::Array(list)) = out.get_mut("anyOf") {
        list.iter_mut().for_each(|value| *value = strict(value));
    }
    if out.contains_key("properties") {
        close(&mut out);
    }
    Value::Object(out)
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

fn close(object: &mut Map<String, Value>) {
    let required: Vec<String> = match object.get("required") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, schema) in properties.iter_mut() {
            let compiled = strict(schema);
            *schema = if required.contains(name) { compiled } else { nullable(compiled) };
            all.push(Value::String(name.clone()));
        }
    }
    object.insert("required".to_owned(), Value::Array(all));
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
}

/// The same schema, null allowed as well.
fn nullable(mut schema: Value) -> Value {
    let null = || Value::String("null".to_owned());
    let Some(object) = schema.as_object_mut() else { return schema };
    let restricted = object.contains_key("enum") || object.contains_key("const");
    match object.get_mut("type") {
        Some(Value::String(name)) if name == "null" => schema,
        Some(Value::Array(names)) if names.contains(&null()) => schema,
        Some(Value::String(name)) if !restricted => {
            let both = json!([name, "null"]);
            object.insert("type".to_owned(), both);
            schema
        }
        Some(Value::Array(names)) if !restricted => {
            names.push(null());
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_all_required_and_what_was_optional_may_be_null() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "pattern": "^x", "minLength": 3, "default": null},
                "b": {"type": ["number", "null"], "minimum": 0},
                "c": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "properties": {"d": {"type": "string", "description": "D"}}
                }},
                "e": {"enum": ["x", "y"], "type": "string"},
                "f": {"allOf": [{"$ref": "#/$defs/g"}]}
            },
            "$defs": {"g": {"type": "object", "properties": {}, "title": "G"}},
            "x-ours": 1
        });
        let expected = json!({
            "type": "object",
            "required": ["a", "b", "c", "e", "f"],
            "properties": {
                "a": {"type": "string"},
                "b": {"type": ["number", "null"]},
                "c": {"type": ["array", "null"], "items": {
                    "type": "object",
                    "properties": {"d": {"type": ["string", "null"], "description": "D"}},
                    "required": ["d"],
                    "additionalProperties": false
                }},
                "e": {"anyOf": [{"enum": ["x", "y"], "type": "string"}, {"type": "null"}]},
                "f": {"anyOf": [{"$ref": "#/$defs/g"}, {"type": "null"}]}
            },
            "$defs": {"g": {
                "type": "object", "properties": {}, "required": [], "additionalProperties": false
            }},
            "additionalProperties": false
        });
        assert_eq!(strict(&schema), expected);
    }

    #[test]
    fn compiling_twice_changes_nothing() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(strict(&strict(&schema)), strict(&schema));
    }
}
