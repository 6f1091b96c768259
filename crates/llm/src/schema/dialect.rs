//! One schema, compiled to what each vendor's structured output takes.
//!
//! The differences are data. Constraints that a dialect cannot carry but a reader can follow
//! (`pattern`, `minimum`, ...) move into the description; those that matter only to docmill are
//! dropped. Nothing is lost: a reply is validated against the whole schema afterwards.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::closed::close_schema;
use super::examples::write_examples;
use super::nulls::{self, append_description};
use docmill_core::config::LlmConfig;

/// How a reply is written in a dialect without unions. The kind's rules speak of null.
const WITHOUT_NULL: &str = "\nIn this reply nothing is null. Where the rules above have null, write an empty text: \
    \"\". A list that is not on the document is [], an object that is not has all its fields empty. A number, or true \
    or false, in a field of type string is written as text: \"1234.50\", \"true\".\n";

/// How numbers are written as texts. The kind's rules have them in JSON.
const PRINTED_NUMBERS: &str = "\nIn this reply every number in `fields` is a text, copied from the document as it is \
    printed, with its own separators and every decimal, without unit or currency: where the rules above have 15387.08 and \
    the document 15.387,08, write \"15.387,08\". A number that is not printed is null.\n";

/// Which JSON schema features a vendor accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaDialect {
    /// `format`s that may be sent.
    formats: &'static [&'static str],
    /// Whether `type` may be a list, also beside `enum`; else null has no place in a schema either
    /// ([`nulls`]): the services that take no lists take few unions.
    type_lists: bool,
    /// The highest `minItems` that may be sent.
    min_items: Option<u64>,
    /// Whether numbers that may be null are texts that copy the document.
    printed_numbers: bool,
}

impl SchemaDialect {
    /// OpenAI's strict mode (`openai/lib/_pydantic.py` of openai 3.52), cut down to what
    /// compatible servers take as well: one that does not know a keyword answers 400.
    pub(crate) const STRICT: Self =
        Self { formats: &[], type_lists: true, min_items: None, printed_numbers: false };

    /// The same for servers that make a grammar of the schema.
    pub(crate) const PRINTED: Self = Self { printed_numbers: true, ..Self::STRICT };

    /// Anthropic's (`anthropic/lib/_parse/_transform.py` of anthropic 2.11), and Bedrock's subset
    /// of Draft 2020-12, which refuses any other keyword at once.
    pub(crate) const SUBSET: Self = Self {
        formats: &[
            "date-time",
            "time",
            "date",
            "duration",
            "email",
            "hostname",
            "uri",
            "ipv4",
            "ipv6",
            "uuid",
        ],
        type_lists: false,
        min_items: Some(1),
        printed_numbers: false,
    };

    /// The dialect of a model's vendor.
    pub(crate) fn from_config(config: &LlmConfig) -> Self {
        match config.asks_for_printed_numbers() {
            _ if config.asks_claude() => Self::SUBSET,
            true => Self::PRINTED,
            false => Self::STRICT,
        }
    }

    /// Whether its schemas have no unions with null.
    pub(crate) fn lacks_unions(self) -> bool {
        !self.type_lists
    }

    /// Differences of a reply from the kind's rules.
    pub(crate) fn reply_note(self, schema: &Value) -> Option<&'static str> {
        match self {
            _ if self.lacks_unions() => nulls::allows_null(schema).then_some(WITHOUT_NULL),
            Self { printed_numbers: true, .. } => {
                nulls::has_numbers(schema).then_some(PRINTED_NUMBERS)
            }
            _ => None,
        }
    }

    /// Writes the example replies in a prompt's text as replies of this dialect are written.
    pub(crate) fn write_examples<'t>(self, text: &'t str, schema: &Value) -> Cow<'t, str> {
        if self.type_lists && !self.printed_numbers {
            return Cow::Borrowed(text);
        }
        write_examples(text, schema, self.type_lists)
    }

    /// Compiles a schema: first into the form of all dialects ([`close_schema`]), then into this one.
    pub(crate) fn compile(self, schema: &Value) -> Value {
        let closed = close_schema(schema);
        if self.lacks_unions() {
            return self.compile_schema(&nulls::without_nulls(&closed));
        }
        if self.printed_numbers {
            return self.compile_schema(&nulls::with_printed_numbers(&closed));
        }
        self.compile_schema(&closed)
    }

    fn compile_schema(self, schema: &Value) -> Value {
        let Some(object) = schema.as_object() else { return schema.clone() };
        let mut object = flatten_all_of(object);
        if let Some(reference) = object.get("$ref") {
            // Nothing may stand beside it.
            return json!({"$ref": reference});
        }
        if let Some(any) = object.remove("oneOf") {
            object.insert("anyOf".to_owned(), any);
        }
        if !self.type_lists {
            object = expand_type_list(object);
        }
        let (mut out, mut told) = (Map::new(), Vec::new());
        for (key, value) in object {
            if self.allows_keyword(&key, &value) {
                let value = self.compile_value(&key, value);
                out.insert(key, value);
            } else if CHECKS.contains(&key.as_str()) {
                told.push(format!("{key} {}", value_text(&value)));
            }
        }
        if !told.is_empty() {
            append_description(&mut out, &told.join(", "));
        }
        Value::Object(out)
    }

    fn allows_keyword(self, key: &str, value: &Value) -> bool {
        match key {
            "format" => value.as_str().is_some_and(|format| self.formats.contains(&format)),
            "minItems" => value.as_u64().is_some_and(|least| Some(least) <= self.min_items),
            _ => STRUCTURE.contains(&key),
        }
    }

    /// The value of a keyword, with the schemas in it compiled.
    fn compile_value(self, key: &str, value: Value) -> Value {
        match (key, value) {
            ("properties" | "$defs" | "definitions", Value::Object(map)) => map
                .iter()
                .map(|(name, schema)| (name.clone(), self.compile_schema(schema)))
                .collect(),
            ("anyOf", Value::Array(list)) => {
                list.iter().map(|schema| self.compile_schema(schema)).collect()
            }
            ("items", schema) => self.compile_schema(&schema),
            (_, value) => value,
        }
    }
}

/// Keywords of every dialect.
const STRUCTURE: [&str; 11] = [
    "type",
    "description",
    "enum",
    "const",
    "properties",
    "required",
    "items",
    "anyOf",
    "$defs",
    "definitions",
    "additionalProperties",
];

/// Keywords that check values and can be put in words. All others are dropped, unknown ones too.
const CHECKS: [&str; 12] = [
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `allOf` of one schema is that schema.
fn flatten_all_of(object: &Map<String, Value>) -> Map<String, Value> {
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

/// A list of types as `anyOf`, with all that belongs to the values in its first alternative; the
/// description stays outside. Beside `enum` and `const` a type says nothing.
fn expand_type_list(mut object: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(types)) = object.get("type").cloned() else { return object };
    if object.contains_key("enum") || object.contains_key("const") {
        object.shift_remove("type");
        return object;
    }
    let description = object.remove("description");
    let alternatives = types.into_iter().map(|name| {
        if name == "null" {
            return json!({"type": "null"});
        }
        let mut alternative = object.clone();
        alternative.insert("type".to_owned(), name);
        Value::Object(alternative)
    });
    let alternatives: Vec<Value> = alternatives.collect();
    let mut out = Map::new();
    out.extend(description.map(|text| ("description".to_owned(), text)));
    out.insert("anyOf".to_owned(), Value::Array(alternatives));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["a", "pattern", "d"],
            "properties": {
                "a": {"type": "string", "description": "A.", "pattern": "^x", "format": "date", "default": null},
                "pattern": {"allOf": [{"$ref": "#/$defs/g"}]},
                "b": {"oneOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
                "c": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
                "d": {"type": "string", "enum": ["x", "y"]},
                "e": {"type": ["number", "null"], "description": "E.", "maximum": 9}
            },
            "$defs": {"g": {"type": "string", "title": "G"}},
            "x-ours": 1
        })
    }

    #[test]
    fn the_strict_dialect_keeps_structure_and_puts_the_rest_in_words() {
        let b =
            json!({"anyOf": [{"type": "number", "description": "(minimum 0)"}, {"type": "null"}]});
        let expected = json!({
            "type": "object",
            "required": ["a", "pattern", "b", "c", "d", "e"],
            "properties": {
                "a": {"type": "string", "description": "A. (pattern ^x, format date)"},
                "pattern": {"$ref": "#/$defs/g"},
                "b": {"anyOf": [b, {"type": "null"}]},
                "c": {
                    "type": ["array", "null"],
                    "items": {"type": "string", "description": "(minLength 1)"},
                    "description": "(minItems 1)"
                },
                "d": {"type": "string", "enum": ["x", "y"]},
                "e": {"type": ["number", "null"], "description": "E. (maximum 9)"}
            },
            "$defs": {"g": {"type": "string"}},
            "additionalProperties": false
        });
        assert_eq!(SchemaDialect::STRICT.compile(&schema()), expected);
    }

    #[test]
    fn the_subset_has_no_unions_with_null_and_keeps_its_formats() {
        let compiled = SchemaDialect::SUBSET.compile(&schema());
        let expected = json!({
            "a": {"type": "string", "description": "A. (pattern ^x)", "format": "date"},
            "pattern": {"$ref": "#/$defs/g"},
            "b": {"anyOf": [
                {"anyOf": [{"type": "number", "description": "(minimum 0)"}, {"type": "null"}]},
                {"type": "null"}
            ]},
            "c": {
                "type": "array",
                "items": {"type": "string", "description": "(minLength 1)"},
                "description": "(minItems 1)"
            },
            "d": {"type": "string", "enum": ["x", "y"]},
            "e": {"type": "string", "description": "E. (number) (maximum 9)"}
        });
        assert_eq!(compiled["properties"], expected);
        assert_eq!(compiled["additionalProperties"], json!(false));
    }

    #[test]
    fn a_union_of_several_types_is_written_as_alternatives() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": ["string", "number"], "description": "A."}
        }});
        let alternatives = json!([{"type": "string"}, {"type": "number"}]);
        let expected = json!({"description": "A.", "anyOf": alternatives});
        assert_eq!(SchemaDialect::SUBSET.compile(&schema)["properties"]["a"], expected);
    }

    #[test]
    fn a_property_that_is_called_like_a_keyword_is_kept() {
        let schema = json!({"type": "object", "properties": {"format": {"type": "string"}}});
        let compiled = SchemaDialect::STRICT.compile(&schema);
        assert_eq!(compiled["properties"]["format"]["type"], json!(["string", "null"]));
    }
}
