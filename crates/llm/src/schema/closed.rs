//! Closed objects that require all their properties, where what was optional may be null.

use serde_json::{Map, Value, json};

/// Brings a schema into the common form. Checks of values are kept. Idempotent.
pub fn close_schema(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut out = object.clone();
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(map)) = out.get_mut(key) {
            map.values_mut().for_each(|value| *value = close_schema(value));
        }
    }
    if let Some(items) = out.get_mut("items") {
        *items = close_schema(items);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(list)) = out.get_mut(key) {
            list.iter_mut().for_each(|value| *value = close_schema(value));
        }
    }
    if out.contains_key("properties") {
        close_object(&mut out);
    }
    Value::Object(out)
}

fn close_object(object: &mut Map<String, Value>) {
    let required: Vec<String> = match object.get("required") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, schema) in properties.iter_mut() {
            let inner = close_schema(schema);
            *schema = if required.contains(name) { inner } else { make_nullable(inner) };
            all.push(Value::String(name.clone()));
        }
    }
    object.insert("required".to_owned(), Value::Array(all));
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
}

/// The same schema, null allowed as well.
fn make_nullable(mut schema: Value) -> Value {
    let null = || Value::String("null".to_owned());
    let Some(object) = schema.as_object_mut() else { return schema };
    let restricted = object.contains_key("enum") || object.contains_key("const");
    if let Some(Value::Array(any)) = object.get("anyOf")
        && any.contains(&json!({"type": "null"}))
    {
        return schema;
    }
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
    fn optional_properties_may_be_null_at_every_depth() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "pattern": "^x"},
                "b": {"type": ["number", "null"], "minimum": 0},
                "c": {"type": "array", "items": {
                    "type": "object", "properties": {"d": {"type": "string"}}
                }},
                "e": {"enum": ["x", "y"], "type": "string"},
                "f": {"$ref": "#/$defs/g"}
            },
            "$defs": {"g": {"type": "object", "properties": {}}}
        });
        let expected = json!({
            "type": "object",
            "required": ["a", "b", "c", "e", "f"],
            "properties": {
                "a": {"type": "string", "pattern": "^x"},
                "b": {"type": ["number", "null"], "minimum": 0},
                "c": {"type": ["array", "null"], "items": {
                    "type": "object",
                    "properties": {"d": {"type": ["string", "null"]}},
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
        assert_eq!(close_schema(&schema), expected);
        assert_eq!(close_schema(&expected), expected);
    }
}
