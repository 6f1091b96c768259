//! Text as Postgres can hold it.
//!
//! Neither `text` nor `jsonb` takes the character U+0000, and both documents and messages may hold
//! it. It is replaced by U+FFFD on the way in, in every ledger alike, so that a hostile document
//! cannot make its own outcome unrecordable.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The text without U+0000.
pub(crate) fn strip_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for text that may be absent.
pub(crate) fn strip_nul_optional(given: Option<&str>) -> Option<String> {
    given.map(|given| strip_nul(given).into_owned())
}

/// The same for every key and string of a JSON object.
pub(crate) fn strip_nul_object(given: &Map<String, Value>) -> Map<String, Value> {
    given.iter().map(|(key, inner)| (strip_nul(key).into_owned(), strip_nul_value(inner))).collect()
}

fn strip_nul_value(given: &Value) -> Value {
    match given {
        Value::String(given) => Value::String(strip_nul(given).into_owned()),
        Value::Array(given) => given.iter().map(strip_nul_value).collect(),
        Value::Object(given) => Value::Object(strip_nul_object(given)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_anywhere_in_a_document_is_replaced() {
        let given = serde_json::json!({"a\0": ["x\0y", {"b": "\0"}], "n": 1});
        let expected = serde_json::json!({"a\u{fffd}": ["x\u{fffd}y", {"b": "\u{fffd}"}], "n": 1});
        assert_eq!(Value::Object(strip_nul_object(given.as_object().unwrap())), expected);
    }
}
