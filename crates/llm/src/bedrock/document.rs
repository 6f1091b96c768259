//! JSON as the AWS SDK carries it: schemas of tools, and what a tool was given.

use std::collections::HashMap;

use aws_smithy_types::{Document, Number};
use serde_json::{Map, Value};

/// JSON as a document.
pub(super) fn from_json(value: &Value) -> Document {
    match value {
        Value::Null => Document::Null,
        Value::Bool(bool) => Document::Bool(*bool),
        Value::String(text) => Document::String(text.clone()),
        Value::Number(number) => Document::Number(match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Number::PosInt(number),
            (None, Some(number)) => Number::NegInt(number),
            (None, None) => Number::Float(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Value::Array(list) => Document::Array(list.iter().map(from_json).collect()),
        Value::Object(map) => Document::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), from_json(value)))
                .collect::<HashMap<_, _>>(),
        ),
    }
}

/// A document as JSON; a number that JSON cannot write is null.
pub(super) fn to_json(document: &Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Bool(bool) => Value::Bool(*bool),
        Document::String(text) => Value::String(text.clone()),
        Document::Number(Number::PosInt(number)) => Value::from(*number),
        Document::Number(Number::NegInt(number)) => Value::from(*number),
        Document::Number(Number::Float(number)) => Value::from(*number),
        Document::Array(list) => Value::Array(list.iter().map(to_json).collect()),
        Document::Object(map) => {
            // The SDK has lost the order; one that is always the same is put in its place.
            let mut names: Vec<&String> = map.keys().collect();
            names.sort();
            Value::Object(
                names
                    .into_iter()
                    .filter_map(|name: &String| Some((name.clone(), to_json(map.get(name)?))))
                    .collect::<Map<_, _>>(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_comes_back_as_it_was() {
        let value =
            json!({"a": [1, -2, 2.5, true, null, "é"], "b": {"c": 18_446_744_073_709_551_615_u64}});
        assert_eq!(to_json(&from_json(&value)), value);
    }
}
