//! `schema.json`: the subset of JSON Schema in which a kind's fields are described.
//!
//! A subset, because every model's dialect, the validator, the rules reader and the gate have to
//! understand all of it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::json_lines;
use super::problem::{KindProblem, ProblemReport};

/// Keywords of the whole, beside those of a value.
const OF_THE_WHOLE: [&str; 3] = ["$schema", "$id", "title"];

/// Keywords of every value.
const OF_A_VALUE: [&str; 15] = [
    "type",
    "description",
    "format",
    "pattern",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "items",
    "properties",
    "required",
    "additionalProperties",
];

/// How deep objects may lie in each other: vendors refuse what is deeper, and nobody reviews it.
const MAX_DEPTH: usize = 4;

/// Reads and checks the file.
pub(super) fn parse_schema(file: &Path, text: &str) -> Result<Value, Vec<KindProblem>> {
    let mut report = ProblemReport::new(file, text);
    let schema: Value = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(error) => {
            report.add(Some(error.line()), error.to_string());
            return Err(report.problems);
        }
    };
    let lines = json_lines::lines_by_pointer(text);
    if let Err(error) = jsonschema::meta::validate(&schema) {
        let pointer = error.instance_path().to_string();
        report.add(lines.get(&pointer).copied(), format!("is no JSON Schema: {error}"));
        return Err(report.problems);
    }
    SchemaChecker { lines: &lines, report: &mut report }.check_schema(&schema);
    if report.problems.is_empty() { Ok(schema) } else { Err(report.problems) }
}

/// The schema without these properties; `list.field` is one of a list's entries.
pub(super) fn without_fields(schema: &Value, paths: &[String]) -> Value {
    let mut left = schema.clone();
    for path in paths {
        let (object, name) = match path.split_once('.') {
            Some((list, name)) => (left.pointer_mut(&format!("/properties/{list}/items")), name),
            None => (Some(&mut left), path.as_str()),
        };
        let properties = object.and_then(|object| object.get_mut("properties"));
        if let Some(properties) = properties.and_then(Value::as_object_mut) {
            properties.shift_remove(name);
        }
    }
    left
}

struct SchemaChecker<'c, 'r> {
    lines: &'c BTreeMap<String, usize>,
    report: &'c mut ProblemReport<'r>,
}

impl SchemaChecker<'_, '_> {
    fn report_at(&mut self, pointer: &str, problem: impl Into<String>) {
        self.report.add(self.lines.get(pointer).copied(), problem);
    }

    fn check_schema(&mut self, schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        if schema.get("type").and_then(Value::as_str) != Some("object")
            || properties.is_none_or(Map::is_empty)
        {
            self.report_at("", "must be of type object and have `properties`, the kind's fields");
            return;
        }
        self.check_keywords("", schema, &OF_THE_WHOLE);
        self.check_object("", schema);
    }

    fn check_keywords(&mut self, pointer: &str, schema: &Value, more: &[&str]) {
        for key in schema.as_object().into_iter().flat_map(Map::keys) {
            if !OF_A_VALUE.contains(&key.as_str()) && !more.contains(&key.as_str()) {
                let known = OF_A_VALUE.join(", ");
                let problem = format!("`{key}` is outside the subset that kinds use: {known}");
                self.report_at(&format!("{pointer}/{key}"), problem);
            }
        }
    }

    /// The properties of an object that is no value itself.
    fn check_object(&mut self, pointer: &str, schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in properties.into_iter().flatten() {
            let inner = format!("{pointer}/properties/{name}");
            let plain = name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'));
            if name.is_empty() || !plain {
                self.report_at(&inner, format!("`{name}`: fields are named with a-z, 0-9 and _"));
            }
            self.check_value(&inner, value);
        }
        let required = schema.get("required").and_then(Value::as_array);
        for (index, name) in required.into_iter().flatten().enumerate() {
            let known = name.as_str().is_some_and(|name| {
                properties.is_some_and(|properties| properties.contains_key(name))
            });
            if !known {
                let problem = format!("`required` names {name}, which is no property");
                self.report_at(&format!("{pointer}/required/{index}"), problem);
            }
        }
    }

    fn check_value(&mut self, pointer: &str, schema: &Value) {
        self.check_keywords(pointer, schema, &[]);
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let (nulls, own): (Vec<&str>, Vec<&str>) = types.iter().partition(|name| **name == "null");
        let one = matches!(
            own.as_slice(),
            ["string" | "number" | "integer" | "boolean" | "array" | "object"]
        );
        if nulls.len() != 1 || !one {
            let problem = "`type` is one of string, number, integer, boolean, array and object, \
                           and null: [\"string\", \"null\"], since any field may be missing on a \
                           document";
            self.report_at(pointer, problem);
        }
        self.check_format(pointer, schema);
        if own == ["array"] {
            self.check_list(pointer, schema);
        } else if own == ["object"] {
            self.check_nested(pointer, schema);
        }
    }

    fn check_format(&mut self, pointer: &str, schema: &Value) {
        let format = schema.get("format").and_then(Value::as_str);
        if format.is_some_and(|format| format != "date") {
            self.report_at(&format!("{pointer}/format"), "the only `format` is date");
        }
    }

    /// Entries are objects with fields of their own, or single texts or numbers.
    fn check_list(&mut self, pointer: &str, schema: &Value) {
        let inner = format!("{pointer}/items");
        let items = schema.get("items");
        let plain = items.and_then(|items| items.get("type")?.as_str());
        match (items, plain) {
            (Some(items), _) if items.get("properties").is_some() => {
                self.check_keywords(&inner, items, &[]);
                self.check_nested(&inner, items);
            }
            (Some(items), Some("string" | "number" | "integer")) => {
                self.check_keywords(&inner, items, &[]);
                self.check_format(&inner, items);
            }
            _ => {
                let problem = "`items` of a list must be objects with `properties`, or of `type` \
                               string, number or integer: an entry that is null is none";
                self.report_at(pointer, problem);
            }
        }
    }

    /// An object within another.
    fn check_nested(&mut self, pointer: &str, schema: &Value) {
        let depth = pointer.matches("/properties/").count();
        if depth > MAX_DEPTH {
            self.report_at(pointer, format!("objects are nested at most {MAX_DEPTH} deep"));
            return;
        }
        if schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) {
            self.report_at(pointer, "an object must have `properties`, its fields");
            return;
        }
        self.check_object(pointer, schema);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(properties: &str) -> Vec<String> {
        let text = format!("{{\n\"type\": \"object\",\n\"properties\": {{\n{properties}\n}}\n}}");
        let parsed = parse_schema(Path::new("schema.json"), &text);
        parsed.err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_outside_the_subset_is_said_by_line() {
        let number = r#"{"type": ["number", "null"]}"#;
        for (properties, problem) in [
            (r#""a": {"type": "string"}"#.to_owned(), "schema.json:4: `type` is one of"),
            (
                format!("\"a\": {number},\n\"b\": {{\"type\": [\"object\", \"null\"]}}"),
                "schema.json:5: an object must have",
            ),
            ("\"a\": {\n\"anyOf\": []}".to_owned(), "schema.json:5: is no JSON Schema"),
            (
                "\"a\": {\"type\": [\"string\", \"null\"],\n\"if\": {}}".to_owned(),
                "schema.json:5: `if` is outside",
            ),
            (
                "\"a\": {\"type\": [\"string\", \"null\"],\n\"format\": \"time\"}".to_owned(),
                "schema.json:5: the only",
            ),
            (format!("\"Größe\": {number}"), "schema.json:4: `Größe`: fields"),
            ("\"a\": {\"type\": [\"array\", \"null\"]}".to_owned(), "schema.json:4: `items`"),
            (
                format!(
                    "\"a\": {{\"type\": [\"array\", \"null\"], \"items\": {{\n\"required\": [\"c\"],\n\"properties\": {{\"b\": {number}}}}}}}"
                ),
                "schema.json:5: `required`",
            ),
            ("\"a\": ".to_owned(), "schema.json:5: expected"),
        ] {
            let found = problems(&properties);
            assert!(found.iter().any(|it| it.starts_with(problem)), "{properties}: {found:?}");
        }
        assert!(problems(&format!("\"a\": {number}")).is_empty());
        let nullable = r#""a": {"type": ["array", "null"], "items": {"type": ["string", "null"]}}"#;
        assert!(problems(nullable)[0].contains("an entry that is null is none"));
        assert!(problems("")[0].starts_with("schema.json:1: must be of type object"));
    }
    #[test]
    fn objects_lie_in_objects_and_lists_hold_texts() {
        let object = |inner: &str| {
            format!("{{\"type\": [\"object\", \"null\"], \"properties\": {{{inner}}}}}")
        };
        let texts = r#""tags": {"type": ["array", "null"], "items": {"type": "string"}}"#;
        let number = r#""n": {"type": ["number", "null"]}"#;
        let nested = format!("\"a\": {}", object(&format!("{number}, {texts}")));
        assert!(problems(&nested).is_empty(), "{:?}", problems(&nested));
        let listed = format!(
            "\"l\": {{\"type\": [\"array\", \"null\"], \"items\": {{\"type\": \"object\", \"properties\": {{{nested}}}}}}}"
        );
        assert!(problems(&listed).is_empty(), "{:?}", problems(&listed));
        let wrong = format!("\"a\": {}", object("\"n\": {\"type\": \"number\"}"));
        assert!(problems(&wrong)[0].contains("`type` is one of"), "{:?}", problems(&wrong));
        let deep = (0..5).fold(number.to_owned(), |inner, _| format!("\"a\": {}", object(&inner)));
        assert!(problems(&deep)[0].contains("at most 4 deep"), "{:?}", problems(&deep));
    }
}
