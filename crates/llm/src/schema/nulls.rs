//! Schemas without unions with null, those with numbers as printed text, and replies to both.
//!
//! Anthropic and Bedrock take at most 16 unions in a schema, and any field may be missing on a document. In their
//! dialect a value that may be null is a text, empty for null: numbers and booleans too. A list is empty for null,
//! an object has only empty fields. Printed decimals stay as they are printed. Self-hosted servers take unions; only
//! numbers that may be null are texts there.

use serde_json::{Map, Number, Value, json};

use super::closed::close_schema;

/// Most significant digits of a decimal that a double holds exactly.
const MAX_EXACT_DIGITS: usize = 15;

/// A schema that allows null beside values of one sort.
pub(super) struct NullableSchema<'a> {
    /// The schema of the values; its `type` and `enum` may name null as well.
    pub(super) schema: &'a Map<String, Value>,
    /// Their type; `None` beside an `enum` or `const` without one.
    pub(super) kind: Option<&'a str>,
}

impl<'a> NullableSchema<'a> {
    pub(super) fn of(schema: &'a Value) -> Option<Self> {
        let object = schema.as_object()?;
        if let Some(Value::Array(any)) = object.get("anyOf") {
            let (nulls, values): (Vec<&Value>, Vec<&Value>) =
                any.iter().partition(|it| is_null(it));
            return match (nulls.len(), values.as_slice()) {
                (1, [value]) => Self::of_values(value.as_object()?),
                _ => None,
            };
        }
        let names_null = match object.get("type") {
            Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
            Some(_) => false,
            None => object.get("enum").and_then(Value::as_array)?.contains(&Value::Null),
        };
        if names_null { Self::of_values(object) } else { None }
    }

    fn of_values(schema: &'a Map<String, Value>) -> Option<Self> {
        let kind = match schema.get("type") {
            Some(Value::String(name)) => Some(name.as_str()),
            Some(Value::Array(names)) => {
                let mut names =
                    names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
                let only = names.next();
                if names.next().is_some() {
                    return None;
                }
                only
            }
            _ if schema.contains_key("enum") || schema.contains_key("const") => None,
            _ => return None,
        };
        Some(Self { schema, kind })
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind, Some("number" | "integer")) && self.listed_values().is_none()
    }

    /// The values that are allowed, if they are listed; without null.
    fn listed_values(&self) -> Option<Vec<&'a Value>> {
        if let Some(value) = self.schema.get("const") {
            return Some(vec![value]);
        }
        let values = self.schema.get("enum").and_then(Value::as_array)?;
        Some(values.iter().filter(|value| !value.is_null()).collect())
    }

    /// Whether an object of it can have only empty fields.
    pub(super) fn can_be_empty(&self) -> bool {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flat_map(Map::values)
            .all(|property| NullableSchema::of(property).is_some())
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// Whether null is allowed anywhere in a schema.
pub(crate) fn allows_null(schema: &Value) -> bool {
    has_nullable(schema, |_| true)
}

/// Whether a schema has numbers that may be null.
pub(crate) fn has_numbers(schema: &Value) -> bool {
    has_nullable(&close_schema(schema), |nullable| nullable.is_number())
}

fn has_nullable(schema: &Value, is_meant: fn(&NullableSchema<'_>) -> bool) -> bool {
    match schema {
        Value::Object(object) => {
            NullableSchema::of(schema).is_some_and(|nullable| is_meant(&nullable))
                || object.values().any(|inner| has_nullable(inner, is_meant))
        }
        Value::Array(list) => list.iter().any(|inner| has_nullable(inner, is_meant)),
        _ => false,
    }
}

/// The schema with texts in place of numbers that may be null.
pub(super) fn with_printed_numbers(schema: &Value) -> Value {
    let Some(nullable) = NullableSchema::of(schema).filter(NullableSchema::is_number) else {
        return change_inner(schema, with_printed_numbers);
    };
    let mut out = nullable.schema.clone();
    if let Some(text) = schema.get("description") {
        out.insert("description".to_owned(), text.clone());
    }
    out.insert("type".to_owned(), json!(["string", "null"]));
    append_description(&mut out, "number, as printed");
    Value::Object(out)
}

/// The schema with empty texts, lists and objects in place of null. Unions that are not with null stay.
pub(super) fn without_nulls(schema: &Value) -> Value {
    let Some(nullable) = NullableSchema::of(schema) else {
        return change_inner(schema, without_nulls);
    };
    let mut out = nullable.schema.clone();
    if let Some(text) = schema.get("description") {
        out.insert("description".to_owned(), text.clone());
    }
    if let Some(values) = nullable.listed_values() {
        return listed_texts(out, &values);
    }
    match nullable.kind {
        Some("string") => text_schema(out, &["format"]),
        Some(kind @ ("number" | "integer")) => {
            append_description(&mut out, kind);
            text_schema(out, &[])
        }
        Some("boolean") => listed_texts(out, &[&json!(true), &json!(false)]),
        Some("array") => {
            out.insert("type".to_owned(), json!("array"));
            move_into_words(&mut out, &["minItems"]);
            change_inner(&Value::Object(out), without_nulls)
        }
        Some("object") if nullable.can_be_empty() => {
            out.insert("type".to_owned(), json!("object"));
            change_inner(&Value::Object(out), without_nulls)
        }
        _ => change_inner(schema, without_nulls),
    }
}

/// A schema of texts, with the checks of `words` in words: an empty text would break them.
fn text_schema(mut object: Map<String, Value>, words: &[&str]) -> Value {
    object.insert("type".to_owned(), json!("string"));
    move_into_words(&mut object, words);
    Value::Object(object)
}

fn move_into_words(object: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        if let Some(value) = object.shift_remove(*key) {
            append_description(object, &format!("{key} {}", text_of(&value)));
        }
    }
}

/// These values as texts, and the empty one.
fn listed_texts(mut object: Map<String, Value>, values: &[&Value]) -> Value {
    let mut texts: Vec<Value> = values.iter().map(|value| Value::String(text_of(value))).collect();
    let empty = json!("");
    if !texts.contains(&empty) {
        texts.push(empty);
    }
    object.shift_remove("const");
    object.insert("type".to_owned(), json!("string"));
    object.insert("enum".to_owned(), Value::Array(texts));
    Value::Object(object)
}

/// A value as text.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A schema with the schemas in it changed.
fn change_inner(schema: &Value, change: fn(&Value) -> Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut out = object.clone();
    for (key, value) in &mut out {
        match (key.as_str(), &mut *value) {
            ("properties" | "$defs" | "definitions", Value::Object(map)) => {
                map.values_mut().for_each(|inner| *inner = change(inner));
            }
            ("anyOf", Value::Array(list)) => {
                list.iter_mut().for_each(|inner| *inner = change(inner));
            }
            ("items", items) => *items = change(items),
            _ => {}
        }
    }
    Value::Object(out)
}

/// Reads the text of a number as a decimal of JSON; `None`: it is no number, or may be more than one.
pub type NumberReader<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Converts a reply to the original schema. Texts become numbers where these may be null. In a
/// dialect without null, empty texts, lists and objects become null where allowed, and texts become
/// booleans.
///
/// A reply that has null somewhere is not one without, nor is one that has no text in place of another value. A number
/// that cannot be read, or has more digits than a JSON number keeps, stays a text, which the schema then refuses.
pub fn restore_reply(schema: &Value, reply: &mut Value, read_number: NumberReader<'_>) {
    let restorer = ReplyRestorer { root: schema, has_null: holds_null(reply), read_number };
    let mut restored = reply.clone();
    if restorer.restore(schema, &mut restored) {
        *reply = restored;
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(holds_null),
        Value::Object(object) => object.values().any(holds_null),
        _ => false,
    }
}

/// The schema that another refers to by `$ref`, also beside null. Chains of references are not followed.
pub(super) fn find_definition<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let beside = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let name = std::iter::once(schema).chain(beside).find_map(|it| it.get("$ref")?.as_str())?;
    root.pointer(name.strip_prefix('#')?).filter(|found| found.get("type").is_some())
}

struct ReplyRestorer<'a> {
    /// The schema of the whole reply.
    root: &'a Value,
    /// Whether the reply's dialect has null, so that an empty text is one.
    has_null: bool,
    read_number: NumberReader<'a>,
}

impl ReplyRestorer<'_> {
    /// Whether a text was replaced.
    fn restore(&self, schema: &Value, value: &mut Value) -> bool {
        let schema = find_definition(self.root, schema).unwrap_or(schema);
        let Some(nullable) = NullableSchema::of(schema) else {
            return schema.as_object().is_some_and(|schema| self.restore_inner(schema, value));
        };
        if let Value::String(text) = value {
            let Some(restored) = self.restore_text(&nullable, text) else { return false };
            *value = restored;
            return true;
        }
        let replaced = self.restore_inner(nullable.schema, value);
        let is_empty = match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(object) => !object.is_empty() && object.values().all(Value::is_null),
            _ => false,
        };
        if is_empty && !self.has_null {
            *value = Value::Null;
        }
        replaced
    }

    fn restore_inner(&self, schema: &Map<String, Value>, value: &mut Value) -> bool {
        let mut replaced = false;
        match value {
            Value::Object(object) => {
                let properties = schema.get("properties").and_then(Value::as_object);
                for (name, inner) in properties.into_iter().flatten() {
                    if let Some(value) = object.get_mut(name) {
                        replaced |= self.restore(inner, value);
                    }
                }
            }
            Value::Array(entries) => {
                let Some(items) = schema.get("items") else { return false };
                for entry in entries {
                    replaced |= self.restore(items, entry);
                }
            }
            _ => {}
        }
        replaced
    }

    /// The value of a text in the original schema; `None`: the text itself.
    fn restore_text(&self, nullable: &NullableSchema<'_>, text: &str) -> Option<Value> {
        if nullable.is_number() {
            let text = text.trim();
            if text.is_empty() || text == "null" {
                return Some(Value::Null);
            }
            return (self.read_number)(text)
                .and_then(|number| parse_exact(&number))
                .map(Value::Number);
        }
        if self.has_null {
            return None;
        }
        if let Some(values) = nullable.listed_values() {
            if values.iter().any(|value| value.as_str() == Some(text)) {
                return None;
            }
            let listed = values.into_iter().find(|value| text_of(value) == text);
            return listed.cloned().or_else(|| text.is_empty().then_some(Value::Null));
        }
        match (text.trim(), nullable.kind?) {
            ("", _) => Some(Value::Null),
            ("true", "boolean") => Some(json!(true)),
            ("false", "boolean") => Some(json!(false)),
            _ => None,
        }
    }
}

/// A decimal as a JSON number of exactly that value.
fn parse_exact(text: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(text).ok()?;
    let digits = text.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    (digits <= MAX_EXACT_DIGITS || number.is_i64() || number.is_u64()).then_some(number)
}

/// Adds what must hold to the description.
pub(super) fn append_description(schema: &mut Map<String, Value>, told: &str) {
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} ({told})"),
        None => format!("({told})"),
    };
    schema.insert("description".to_owned(), Value::String(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::close_schema;
    use crate::schema::dialect::SchemaDialect;

    fn schema() -> Value {
        close_schema(&json!({
            "type": "object",
            "required": ["sure"],
            "properties": {
                "sure": {"type": "string", "format": "date"},
                "name": {"type": ["string", "null"], "description": "N.", "pattern": "^x"},
                "day": {"type": ["string", "null"], "format": "date"},
                "total": {"type": ["number", "null"], "description": "T.", "minimum": 0},
                "count": {"type": "integer"},
                "paid": {"type": ["boolean", "null"]},
                "unit": {"type": "string", "enum": ["kg", "m"]},
                "level": {"enum": [1, 2, null], "description": "L."},
                "tags": {"type": ["array", "null"], "minItems": 1, "items": {"type": "string"}},
                "payment": {"type": ["object", "null"], "properties": {
                    "iban": {"type": ["string", "null"]},
                    "bank": {"type": ["object", "null"], "properties": {"bic": {"type": "string"}}}
                }},
                "lines": {"type": ["array", "null"], "items": {"type": "object", "properties": {
                    "text": {"type": ["string", "null"]}, "amount": {"type": ["number", "null"]}
                }}}
            }
        }))
    }

    const AS_JSON: NumberReader<'static> = &|text| Some(text.to_owned());

    #[test]
    fn printed_numbers_are_texts_beside_null_and_are_read_where_definitions_are_named_too() {
        let schema = close_schema(&json!({
            "type": "object", "properties": {
                "total": {"type": ["number", "null"], "description": "T."},
                "days": {"type": "integer"}, "name": {"type": "string"},
                "level": {"enum": [1, 2, null]}, "due": {"$ref": "#/$defs/due"}
            },
            "required": ["level"],
            "$defs": {"due": {"type": "object", "properties": {"amount": {"type": "number"}}}}
        }));
        let compiled = SchemaDialect::PRINTED.compile(&schema);
        let text = |words: &str| json!({"type": ["string", "null"], "description": words});
        let fields = &compiled["properties"];
        assert_eq!(fields["total"], text("T. (number, as printed)"));
        assert_eq!(fields["days"], text("(number, as printed)"));
        assert_eq!(fields["level"], json!({"enum": [1, 2, null]}));
        assert_eq!(compiled["$defs"]["due"]["properties"]["amount"], text("(number, as printed)"));
        for (written, name) in [(json!(null), json!("")), (json!("1"), json!(null))] {
            let mut reply = json!({"total": "12.50", "days": "null", "name": name, "level": 1,
                "due": {"amount": written}});
            restore_reply(&schema, &mut reply, AS_JSON);
            let amount = written.as_str().map_or(json!(null), |_| json!(1));
            let expected = json!({"total": 12.5, "days": null, "name": name, "level": 1,
                "due": {"amount": amount}});
            assert_eq!(reply, expected);
        }
    }

    #[test]
    fn a_schema_without_unions_has_texts_lists_and_objects_in_place_of_null() {
        let compiled = SchemaDialect::SUBSET.compile(&schema());
        let text = compiled.to_string();
        assert!(!text.contains("anyOf") && !text.contains("null"), "{text}");
        let line = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "amount": {"type": "string", "description": "(number)"}
            },
            "required": ["text", "amount"],
            "additionalProperties": false
        });
        let bank = json!({
            "type": "object", "properties": {"bic": {"type": "string"}}, "required": ["bic"],
            "additionalProperties": false
        });
        let expected = json!({
            "sure": {"type": "string", "format": "date"},
            "name": {"type": "string", "description": "N. (pattern ^x)"},
            "day": {"type": "string", "description": "(format date)"},
            "total": {"type": "string", "description": "T. (number) (minimum 0)"},
            "count": {"type": "string", "description": "(integer)"},
            "paid": {"type": "string", "enum": ["true", "false", ""]},
            "unit": {"type": "string", "enum": ["kg", "m", ""]},
            "level": {"enum": ["1", "2", ""], "description": "L.", "type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "(minItems 1)"},
            "payment": {
                "type": "object",
                "properties": {"iban": {"type": "string"}, "bank": bank},
                "required": ["iban", "bank"],
                "additionalProperties": false
            },
            "lines": {"type": "array", "items": line}
        });
        assert_eq!(compiled["properties"], expected);
        assert_eq!(compiled["required"].as_array().unwrap().len(), 11, "nothing is optional");
    }

    #[test]
    fn a_reply_without_null_becomes_what_the_real_schema_says() {
        let mut reply = json!({
            "sure": "2026-11-28", "name": "", "day": "2026-11-28", "total": "1234.50", "count": "12",
            "paid": "false", "unit": "", "level": "2", "tags": [],
            "payment": {"iban": "", "bank": {"bic": ""}},
            "lines": [{"text": "a", "amount": "-0.10"}, {"text": " ", "amount": ""}]
        });
        restore_reply(&schema(), &mut reply, AS_JSON);
        let expected = json!({
            "sure": "2026-11-28", "name": null, "day": "2026-11-28", "total": 1234.50, "count": 12,
            "paid": false, "unit": null, "level": 2, "tags": null, "payment": null,
            "lines": [{"text": "a", "amount": -0.10}, {"text": null, "amount": null}]
        });
        assert_eq!(reply, expected);
    }

    #[test]
    fn a_decimal_is_kept_to_the_digit_or_stays_a_text() {
        let nullable = json!({"type": ["number", "null"]});
        #[rustfmt::skip]
        let table = [
            ("0.1", json!(0.1)), ("1234.50", json!(1234.5)), ("-7", json!(-7)), (" 12 ", json!(12)),
            ("999999999999.999", json!(999_999_999_999.999)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("0.00000000000000012", json!(0.000_000_000_000_000_12)),
            ("1234567890123.4567", json!("1234567890123.4567")),
            ("1.234,50", json!("1.234,50")), ("12 EUR", json!("12 EUR")), ("007", json!("007")),
            ("1e999", json!("1e999")),
        ];
        for (text, expected) in table {
            let mut value = json!(text);
            restore_reply(&nullable, &mut value, AS_JSON);
            assert_eq!(value, expected, "{text}");
        }
    }

    #[test]
    fn a_reply_in_the_form_of_the_real_schema_stays_as_it_is() {
        for reply in [
            json!({"name": null, "total": "twelve", "paid": "true", "unit": "", "tags": []}),
            json!({"name": "x", "total": 12.5, "tags": []}),
            json!({"sure": "", "unknown": ""}),
            json!("no object"),
        ] {
            let mut read = reply.clone();
            restore_reply(&schema(), &mut read, AS_JSON);
            assert_eq!(read, reply);
        }
    }

    #[test]
    fn an_object_that_cannot_be_empty_stays_a_union() {
        let schema = close_schema(&json!({"type": "object", "properties": {
            "a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "boolean"}}}
        }}));
        let compiled = SchemaDialect::SUBSET.compile(&schema);
        assert_eq!(compiled["properties"]["a"]["anyOf"][1], json!({"type": "null"}), "{compiled}");
    }
}
