//! Strict parsing of replies. Errors never repeat the reply's text.
//!
//! A reply is one JSON object that matches the schema, in one Markdown fence at most: chat models add
//! fences, and a second call would cost more. Everything else is a [`ReplyDefect`]. Prose around the
//! object is not removed: a reply of the wrong form may have wrong content too.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::printed::PrintedNumbers;
use super::schema::{ReplySchema, SchemaViolation};
use super::shown_pages::PictureEntry;
use docmill_core::model::StatedConfidence;

/// Most bytes of a reply that is read.
const MAX_BYTES: usize = 10 << 20;

/// Why a reply cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyDefect {
    /// No text.
    #[error("the reply is empty")]
    Empty,
    /// More than 10 MiB.
    #[error("the reply is too large: {0} bytes")]
    TooLarge(usize),
    /// A Markdown fence that is not closed, or more than one.
    #[error("the reply is fenced; it must be one bare JSON object")]
    Fenced,
    /// Words instead of JSON.
    #[error("the reply does not begin with a JSON object")]
    Prose,
    /// Endless white space, or a form that the vendor reports as broken.
    #[error("the reply did not come to an end: write compact JSON, without white space")]
    Garbled,
    /// The vendor ended it for a reason that is unknown here.
    #[error("the reply ended before it was whole")]
    Stopped,
    /// The text is not JSON.
    #[error("the reply is not valid JSON at line {line}, column {column}")]
    Syntax {
        /// Line in the reply, from 1.
        line: usize,
        /// Column in it, from 1.
        column: usize,
    },
    /// A key occurs twice in one object: either value could be meant.
    #[error("a key occurs twice in one object, at line {line}, column {column}")]
    DuplicateKey {
        /// Line in the reply, from 1.
        line: usize,
        /// Column in it, from 1.
        column: usize,
    },
    /// Something follows the object.
    #[error("text follows the JSON object, at line {line}, column {column}")]
    Trailing {
        /// Line in the reply, from 1.
        line: usize,
        /// Column in it, from 1.
        column: usize,
    },
    /// A NUL character, which Postgres cannot keep in `jsonb`.
    #[error("a text holds a NUL character")]
    Nul,
    /// JSON of another form than asked for.
    #[error("the reply does not match the schema:{}", join_violations(.0))]
    Schema(Vec<SchemaViolation>),
}

impl ReplyDefect {
    /// The stable word for logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLarge(_) => "too_large",
            Self::Fenced => "fenced",
            Self::Prose => "prose",
            Self::Garbled => "garbled",
            Self::Stopped => "stopped",
            Self::Syntax { .. } => "invalid_json",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::Trailing { .. } => "trailing_text",
            Self::Nul => "nul_character",
            Self::Schema(_) => "schema",
        }
    }

    /// Whether every value is there and only the form of some is wrong: the document is not needed
    /// to mend it.
    pub(super) fn is_of_form_alone(&self) -> bool {
        let Self::Schema(violations) = self else { return false };
        !violations.is_empty() && violations.iter().all(|violation| !violation.is_absence)
    }
}

fn join_violations(violations: &[SchemaViolation]) -> String {
    let mut text = String::new();
    for SchemaViolation { path, demand, .. } in violations {
        let path = if path.is_empty() { "/" } else { path };
        text.push_str(&format!("\n{path} {demand}"));
    }
    text
}

/// A reply that matches its schema.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ReplyEnvelope {
    /// The kind's fields and their values.
    pub fields: Map<String, Value>,
    /// The lines that the fields were read from.
    pub evidence: Vec<EvidenceEntry>,
    /// The places in pictures that fields were read from; none where no page was shown.
    #[serde(default)]
    pub pictures: Vec<PictureEntry>,
    /// The model's own confidence.
    pub confidence: StatedConfidence,
    /// Whether the model reports success.
    pub extraction_successful: bool,
}

/// Lines that a field was read from, by id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EvidenceEntry {
    /// Name of the field.
    pub field: String,
    /// Ids such as `p1.l12`, as the model gives them.
    pub lines: Vec<String>,
}

/// Reads a reply. A field that the kind does not require may be left out: it is null. A number may be a text.
///
/// # Errors
/// The first problem; of a wrong form up to twenty violations.
pub fn read_reply(
    text: &str,
    form: &ReplySchema,
    numbers: &PrintedNumbers,
) -> Result<ReplyEnvelope, ReplyDefect> {
    let mut value = parse_json_object(text)?;
    form.restore_reply(&mut value, numbers);
    form.fill_absent_fields(&mut value);
    let violations = form.find_violations(&value);
    if !violations.is_empty() {
        return Err(ReplyDefect::Schema(violations));
    }
    let mut reply =
        ReplyEnvelope::deserialize(value).map_err(|_| ReplyDefect::Schema(Vec::new()))?;
    form.fill_unasked_fields(&mut reply.fields);
    Ok(reply)
}

/// Reads exactly one JSON object.
///
/// # Errors
/// See [`ReplyDefect`]; never `Schema`.
pub fn parse_json_object(text: &str) -> Result<Value, ReplyDefect> {
    if text.len() > MAX_BYTES {
        return Err(ReplyDefect::TooLarge(text.len()));
    }
    let text = strip_fence(strip_thoughts(text.trim()));
    match text.as_bytes().first() {
        None => return Err(ReplyDefect::Empty),
        Some(b'{') => {}
        Some(b'`') => return Err(ReplyDefect::Fenced),
        Some(_) => return Err(ReplyDefect::Prose),
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let StrictJson(value) =
        StrictJson::deserialize(&mut reader).map_err(|error| classify_json_error(&error))?;
    reader
        .end()
        .map_err(|error| ReplyDefect::Trailing { line: error.line(), column: error.column() })?;
    Ok(value)
}

/// The text after a byte order mark and the reasoning that some servers leave in a reply.
fn strip_thoughts(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let thoughts = text.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    thoughts.map_or(text, |(_, reply)| reply.trim_start())
}

/// The text within a Markdown fence that begins and ends it; any other text as it is.
fn strip_fence(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.map(|inner| inner.strip_prefix("json").unwrap_or(inner).trim());
    inner.filter(|inner| inner.starts_with('{')).unwrap_or(text)
}

const DUPLICATE: &str = "duplicate key";
const NUL: &str = "NUL character";

fn classify_json_error(error: &serde_json::Error) -> ReplyDefect {
    let (line, column) = (error.line(), error.column());
    let words = error.to_string();
    // Our own texts; serde_json only appends the position.
    if words.starts_with(DUPLICATE) {
        ReplyDefect::DuplicateKey { line, column }
    } else if words.starts_with(NUL) {
        ReplyDefect::Nul
    } else {
        ReplyDefect::Syntax { line, column }
    }
}

/// A JSON value without duplicate keys and NUL characters. `serde_json::Value` itself silently
/// keeps the last of several equal keys.
struct StrictJson(Value);

impl<'de> Deserialize<'de> for StrictJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictJsonVisitor).map(StrictJson)
    }
}

struct StrictJsonVisitor;

impl<'de> Visitor<'de> for StrictJsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        if value.contains('\0') {
            return Err(E::custom(NUL));
        }
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(StrictJson(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            if key.contains('\0') {
                return Err(serde::de::Error::custom(NUL));
            }
            let StrictJson(value) = object.next_value()?;
            if values.insert(key, value).is_some() {
                return Err(serde::de::Error::custom(DUPLICATE));
            }
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{invoice, whole};
    use serde_json::json;

    #[test]
    fn every_way_of_not_being_one_json_object_has_a_name() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
        let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BYTES));
        #[rustfmt::skip]
        let table = [
            ("empty",            "",                           "empty"),
            ("blank",            " \n\t ",                     "empty"),
            ("prose",            "Here is your JSON: {}",      "prose"),
            ("a list",           "[]",                         "prose"),
            ("null",             "null",                       "prose"),
            ("an open fence",    "```json\n{}",                "fenced"),
            ("a fenced list",    "```\n[]\n```",               "fenced"),
            ("two fences",       "```\n{}\n```\n```\n{}\n```", "trailing_text"),
            ("cut",              r#"{"a": [1, 2"#,             "invalid_json"),
            ("no number",        r#"{"a": NaN}"#,              "invalid_json"),
            ("infinite",         r#"{"a": 1e999}"#,            "invalid_json"),
            ("single quotes",    "{'a': 1}",                   "invalid_json"),
            ("trailing comma",   r#"{"a": 1,}"#,               "invalid_json"),
            ("lone surrogate",   r#"{"a": "\ud800"}"#,         "invalid_json"),
            ("too deep",         &deep,                        "invalid_json"),
            ("same key twice",   r#"{"a": 1, "a": 2}"#,        "duplicate_key"),
            ("deeper down",      r#"{"a": [{"b":1,"b":1}]}"#,  "duplicate_key"),
            ("two objects",      "{} {}",                      "trailing_text"),
            ("a closing word",   "{} Hope this helps!",        "trailing_text"),
            ("NUL",              r#"{"a": "x\u0000y"}"#,       "nul_character"),
            ("huge",             &huge,                        "too_large"),
        ];
        for (name, text, code) in table {
            assert_eq!(parse_json_object(text).unwrap_err().code(), code, "{name}");
        }
        for fenced in ["```json\n{\"a\": 1}\n```", "```{\"a\": 1}```", " ```\n{\"a\": 1}\n``` \n"] {
            assert_eq!(parse_json_object(fenced).unwrap(), json!({"a": 1}), "{fenced}");
        }
        for text in ["\u{feff}{\"a\": 1}", "<think>{\"a\": 2}</think>\n\n```json\n{\"a\": 1}\n```"]
        {
            assert_eq!(parse_json_object(text).unwrap(), json!({"a": 1}), "{text}");
        }
        let object = parse_json_object(" {\"a\": [1, -2, 2.5, true, null, \"\u{e9}\"]}\n").unwrap();
        assert_eq!(object, json!({"a": [1, -2, 2.5, true, null, "\u{e9}"]}));
    }

    #[test]
    fn a_problem_never_repeats_the_reply() {
        let form = ReplySchema::for_kind(&invoice()).unwrap();
        let wrong = whole(json!({"total": "secret", "secret": 1})).to_string();
        for text in [
            "secret",
            r#"{"secret": "#,
            r#"{"secret": 1, "secret": 2}"#,
            r#"{"a": 1} secret"#,
            r#"{"secret": 1}"#,
            wrong.as_str(),
        ] {
            let problem = read_reply(text, &form, &PrintedNumbers::default()).unwrap_err();
            assert!(!problem.to_string().contains("secret"), "{problem}");
        }
    }

    #[test]
    fn a_reply_that_matches_is_read_whole() {
        let form = ReplySchema::for_kind(&invoice()).unwrap();
        let mut reply = whole(json!({"invoice_number": "7", "total": 10}));
        reply["evidence"] = json!([{"field": "total", "lines": ["p1.l2"]}]);
        let envelope = read_reply(&reply.to_string(), &form, &PrintedNumbers::default()).unwrap();
        assert_eq!(envelope.fields["invoice_number"], "7");
        assert_eq!(envelope.evidence[0].lines, ["p1.l2"]);
        assert!(envelope.extraction_successful);
    }

    #[test]
    fn optional_fields_may_be_left_out_at_every_depth() {
        let mut kind = invoice();
        kind.name = "nested".to_owned();
        kind.schema = serde_json::json!({
            "type": "object", "required": ["total"],
            "properties": {
                "total": {"type": ["number", "null"]},
                "tags": {"type": ["array", "null"], "items": {"type": "string"}},
                "payment": {"type": ["object", "null"], "required": ["iban"], "properties": {
                    "iban": {"type": ["string", "null"]}, "bic": {"type": ["string", "null"]}
                }},
                "lines": {"type": ["array", "null"], "items": {"type": "object", "properties": {
                    "unit": {"type": ["string", "null"]}
                }}}
            }
        });
        let form = ReplySchema::for_kind(&kind).unwrap();
        let read = |fields: &str| {
            read_reply(
                &format!(
                    "{{\"fields\":{fields},\"evidence\":[],\"confidence\":\"high\",\
                     \"extraction_successful\":true}}"
                ),
                &form,
                &PrintedNumbers::default(),
            )
        };
        let whole =
            read(r#"{"total":1,"payment":{"iban":"x"},"tags":["a"],"lines":[{}]}"#).unwrap();
        let expected = serde_json::json!({
            "total": 1, "payment": {"iban": "x", "bic": null}, "tags": ["a"], "lines": [{"unit": null}]
        });
        assert_eq!(Value::Object(whole.fields), expected);
        assert_eq!(read(r#"{"total":1}"#).unwrap().fields["payment"], Value::Null);
        for wrong in [r#"{}"#, r#"{"total":1,"payment":{}}"#, r#"{"total":1,"tags":[null]}"#] {
            assert!(matches!(read(wrong), Err(ReplyDefect::Schema(_))), "{wrong}");
        }
    }

    #[test]
    fn a_reply_that_lacks_a_value_is_not_one_of_form_alone() {
        let form = ReplySchema::for_kind(&invoice()).unwrap();
        let is_of_form = |change: &dyn Fn(&mut Value)| {
            let mut reply = whole(json!({"total": 10}));
            change(&mut reply);
            let read = read_reply(&reply.to_string(), &form, &PrintedNumbers::default());
            read.unwrap_err().is_of_form_alone()
        };
        assert!(is_of_form(&|reply| reply["fields"]["total"] = json!("ten")));
        assert!(is_of_form(&|reply| reply["note"] = json!("x")));
        assert!(!is_of_form(&|reply| {
            reply["fields"].as_object_mut().unwrap().remove("total");
        }));
        assert!(!is_of_form(&|reply| reply["fields"] = json!({"total": "ten"})));
        assert!(!ReplyDefect::Fenced.is_of_form_alone());
    }
}
