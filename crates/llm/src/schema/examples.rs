//! The example replies of a prompt, in the dialect of the model that is asked.
//!
//! Kinds have the data of their examples as JSON with numbers and null. A model whose replies have texts in their
//! place would be shown one form and held to another: a small one then writes neither.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::closed::close_schema;
use super::nulls::{NullableSchema, find_definition, text_of};

/// The beginning of a line that is an example of a reply.
const EXAMPLE_START: &str = "{\"fields\":";
/// Most decimals that a printed number is looked for with; two come first.
const PRINTED_DECIMALS: [usize; 4] = [2, 0, 1, 3];

/// Writes the example replies in a prompt's text as replies to a schema are written. Each is a line of its own: a JSON
/// object that begins with `fields`. A printed number is taken from the text before its example.
pub(super) fn write_examples<'t>(text: &'t str, schema: &Value, has_null: bool) -> Cow<'t, str> {
    if !text.contains(EXAMPLE_START) {
        return Cow::Borrowed(text);
    }
    let root = &close_schema(schema);
    let (mut out, mut shown) = (String::with_capacity(text.len()), String::new());
    for line in text.split_inclusive('\n') {
        let example = line.starts_with(EXAMPLE_START).then(|| serde_json::from_str(line).ok());
        let Some(reply) = example.flatten() else {
            shown.push_str(line);
            out.push_str(line);
            continue;
        };
        let writer = ExampleWriter { root, has_null, shown: &shown };
        out.push_str(&writer.write(root, &reply).to_string());
        out.push_str(line.strip_suffix('\n').map_or("", |_| "\n"));
        shown.clear();
    }
    Cow::Owned(out)
}

/// The inverse of `restore_reply`.
struct ExampleWriter<'a> {
    /// The schema of the whole reply.
    root: &'a Value,
    /// Whether the dialect has null; else all values beside null are texts.
    has_null: bool,
    /// The document of the example.
    shown: &'a str,
}

impl ExampleWriter<'_> {
    fn write(&self, schema: &Value, value: &Value) -> Value {
        let schema = find_definition(self.root, schema).unwrap_or(schema);
        match NullableSchema::of(schema) {
            Some(nullable) => self.write_nullable(&nullable, value),
            None => schema
                .as_object()
                .map_or_else(|| value.clone(), |schema| self.write_inner(schema, value)),
        }
    }

    fn write_nullable(&self, nullable: &NullableSchema<'_>, value: &Value) -> Value {
        match value {
            Value::Null if self.has_null => Value::Null,
            Value::Null if nullable.kind == Some("array") => json!([]),
            Value::Null if nullable.kind == Some("object") && nullable.can_be_empty() => {
                self.write_inner(nullable.schema, &json!({}))
            }
            Value::Null if nullable.kind == Some("object") => Value::Null,
            Value::Null => json!(""),
            Value::Number(_) if self.has_null && !nullable.is_number() => value.clone(),
            Value::Number(_) if self.has_null => {
                json!(find_printed(self.shown, value).unwrap_or_else(|| value.to_string()))
            }
            Value::Number(_) | Value::Bool(_) if !self.has_null => json!(text_of(value)),
            _ => self.write_inner(nullable.schema, value),
        }
    }

    fn write_inner(&self, schema: &Map<String, Value>, value: &Value) -> Value {
        match (value, schema.get("properties").and_then(Value::as_object), schema.get("items")) {
            (Value::Object(object), Some(properties), _) => {
                let written = properties.iter().map(|(name, inner)| {
                    let value = object.get(name).unwrap_or(&Value::Null);
                    (name.clone(), self.write(inner, value))
                });
                Value::Object(written.collect())
            }
            (Value::Array(entries), _, Some(items)) => {
                Value::Array(entries.iter().map(|entry| self.write(items, entry)).collect())
            }
            _ => value.clone(),
        }
    }
}

/// A number as a text prints it, without unit and currency.
fn find_printed(text: &str, number: &Value) -> Option<String> {
    let number = number.as_f64()?;
    PRINTED_DECIMALS.into_iter().find_map(|decimals| {
        let written = format!("{number:.decimals$}");
        if written.parse() != Ok(number) {
            return None;
        }
        let tokens = text.split_whitespace().map(|token| {
            token.trim_matches(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '+'))
        });
        let found = tokens.into_iter().find(|token| prints_number(token, &written, decimals));
        found.map(str::to_owned)
    })
}

/// Whether a text has the digits and the sign of a decimal, and its last separator where that one's stands or
/// before three digits.
fn prints_number(token: &str, written: &str, decimals: usize) -> bool {
    let is_in_place = match (token.chars().rev().position(is_separator), decimals) {
        (None | Some(3), 0) => true,
        (place, _) => place == Some(decimals),
    };
    token.chars().all(|c| c.is_ascii_digit() || is_separator(c) || c == '-')
        && token.starts_with('-') == written.starts_with('-')
        && list_digits(token) == list_digits(written)
        && is_in_place
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | ',' | '\'')
}

fn list_digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::nulls::restore_reply;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "fields": {"type": "object", "properties": {
                "name": {"type": ["string", "null"]}, "total": {"type": ["number", "null"]},
                "paid": {"type": ["boolean", "null"]}, "due": {"$ref": "#/$defs/due"},
                "lines": {"type": ["array", "null"], "items": {"type": "object", "properties": {
                    "quantity": {"type": ["number", "null"]}, "amount": {"type": ["number", "null"]}
                }}}
            }},
            "count": {"type": "integer"}
        }, "required": ["fields", "count"], "$defs": {"due": {"type": ["object", "null"], "properties": {
            "amount": {"type": ["number", "null"]}
        }}}})
    }

    const EXAMPLE: &str = "p1.l1| Bread | 40 | 3,20 | €1.280,00\np1.l2| Rebate | -8,00\n\
        {\"fields\":{\"name\":null,\"total\":1280.0,\"paid\":true,\"due\":null,\"lines\":\
        [{\"quantity\":40,\"amount\":-8.0},{\"quantity\":null,\"amount\":7.25}]},\"count\":1}\nafter";

    #[test]
    fn examples_have_the_form_that_the_schema_of_the_reply_demands() {
        let printed = "{\"fields\":{\"name\":null,\"total\":\"1.280,00\",\"paid\":true,\"due\":null,\"lines\":\
            [{\"quantity\":\"40\",\"amount\":\"-8,00\"},{\"quantity\":null,\"amount\":\"7.25\"}]},\"count\":1}";
        let without_null = "{\"fields\":{\"name\":\"\",\"total\":\"1280.0\",\"paid\":\"true\",\
            \"due\":{\"amount\":\"\"},\"lines\":[{\"quantity\":\"40\",\"amount\":\"-8.0\"},\
            {\"quantity\":\"\",\"amount\":\"7.25\"}]},\"count\":1}";
        for (has_null, expected) in [(true, printed), (false, without_null)] {
            let text = write_examples(EXAMPLE, &schema(), has_null);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(
                lines,
                [
                    "p1.l1| Bread | 40 | 3,20 | €1.280,00",
                    "p1.l2| Rebate | -8,00",
                    expected,
                    "after"
                ]
            );
            let mut reply = serde_json::from_str(expected).unwrap();
            let as_json = |text: &str| Some(text.replace("1.280,00", "1280.0").replace(',', "."));
            restore_reply(&close_schema(&schema()), &mut reply, &as_json);
            let shown: Value = serde_json::from_str(EXAMPLE.lines().nth(2).unwrap()).unwrap();
            assert_eq!(reply["fields"]["lines"], shown["fields"]["lines"], "read back");
        }
    }

    #[test]
    fn a_printed_number_is_the_one_of_its_value_digits_and_separator() {
        for (number, text, expected) in [
            (json!(120), "12,0 120 120,00", Some("120,00")),
            (json!(120), "1.20 1,2,0 120%", Some("120")),
            (json!(1234.5), "£1,234.50", Some("1,234.50")),
            (json!(1234), "12,34 1.234", Some("1.234")),
            (json!(8), "-8 8kg #8", Some("8")),
            (json!(5.5), "55 5.5", Some("5.5")),
            (json!(7.125), "7,125", Some("7,125")),
            (json!(3), "03.03.2024", None),
        ] {
            assert_eq!(find_printed(text, &number).as_deref(), expected, "{number} in {text}");
        }
    }
}
