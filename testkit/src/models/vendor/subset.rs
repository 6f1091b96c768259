//! The subset of JSON Schema that Anthropic and Bedrock accept
//! (`anthropic/lib/_parse/_transform.py` of anthropic 2.11), and the limits of its size: anything else is refused
//! at once.
//!
//! Limits as published at platform.claude.com (structured outputs, "JSON Schema limitations"); words as recorded in
//! langchain-aws #1114 (unions, Converse) and inbox-zero #2323 (optional parameters). Both count the whole request.

use serde_json::{Map, Value};

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

/// Most schemas with `anyOf` or a list of types.
const MAX_UNIONS: usize = 16;
/// Most properties that are not required.
const MAX_OPTIONAL: usize = 24;

/// The schema's error, if any: of its keywords, or of its size.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    check_keywords(schema)?;
    let (unions, optional) = counts(schema);
    if unions > MAX_UNIONS {
        return Err(format!(
            "Schemas contains too many parameters with union types ({unions} parameters with type arrays or anyOf). \
             This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters \
             (limit: {MAX_UNIONS} parameters with unions)."
        ));
    }
    if optional > MAX_OPTIONAL {
        return Err(format!(
            "Schemas contains too many optional parameters ({optional}), which would make grammar compilation \
             inefficient. Reduce the number of optional parameters in your tool schemas (limit: {MAX_OPTIONAL})."
        ));
    }
    Ok(())
}

/// Unions and optional properties of a schema and all within it.
fn counts(schema: &Value) -> (usize, usize) {
    let Some(object) = schema.as_object() else { return (0, 0) };
    let is_union = object.contains_key("anyOf") || object.get("type").is_some_and(Value::is_array);
    let required = object.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let properties = object.get("properties").and_then(Value::as_object);
    let optional = properties.into_iter().flat_map(|map| map.keys());
    let optional = optional.filter(|name| !required.iter().any(|entry| entry == name.as_str()));
    let own = (usize::from(is_union), optional.count());
    inner_schemas(object)
        .map(counts)
        .fold(own, |(unions, optional), inner| (unions + inner.0, optional + inner.1))
}

fn inner_schemas(object: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let maps = ["properties", "$defs"].into_iter().filter_map(|key| object.get(key)?.as_object());
    let lists = object.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    maps.flat_map(|map| map.values()).chain(lists).chain(object.get("items"))
}

fn check_keywords(schema: &Value) -> Result<(), String> {
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
    inner_schemas(object).try_for_each(check_keywords)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An object with this many properties of a schema, of which `required` are.
    fn many(count: usize, schema: &Value, required: usize) -> Value {
        let names: Vec<String> = (0..count).map(|at| format!("p{at}")).collect();
        let properties: Map<String, Value> =
            names.iter().map(|name| (name.clone(), schema.clone())).collect();
        let required = names.get(..required).unwrap();
        json!({
            "type": "object", "additionalProperties": false, "properties": properties, "required": required,
        })
    }

    #[test]
    fn a_schema_is_refused_once_a_published_limit_is_passed_by_one() {
        let union = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
        let text = json!({"type": "string"});
        let listed = |entry: Value| {
            json!({
                "type": "object", "additionalProperties": false, "required": ["l"],
                "properties": {"l": {"type": "array", "items": entry}},
            })
        };
        for (within, beyond, words) in [
            (
                many(16, &union, 16),
                many(17, &union, 17),
                "(17 parameters with type arrays or anyOf)",
            ),
            (many(25, &text, 1), many(25, &text, 0), "too many optional parameters (25)"),
        ] {
            assert_eq!(check(&within), Ok(()));
            assert_eq!(check(&listed(within)), Ok(()));
            assert!(check(&beyond).unwrap_err().contains(words));
            assert!(check(&listed(beyond)).unwrap_err().contains(words), "within lists as well");
        }
    }

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
