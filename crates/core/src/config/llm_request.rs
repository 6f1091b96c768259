//! Fields of a request to a model beside the prompt: effort, temperature, service tier, further
//! fields and headers.
//!
//! The names of the fields differ from vendor to vendor and belong to `docmill-llm`; here they are
//! only checked against the fields that docmill sets itself.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::secret::SecretSource;
use super::units::SecretString;

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelEffort {
    /// As the vendor has it; nothing is sent.
    #[default]
    Default,
    /// Not at all, where the model can be told so; else as little as it can.
    None,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// A number, or `auto`: chosen by the server that is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AutoOr<T> {
    /// Chosen by the server.
    #[default]
    Auto,
    /// Set.
    Value(T),
}

impl<T: Copy> AutoOr<T> {
    /// The number that is set, if one is.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl<T: Serialize> Serialize for AutoOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

/// A text as the environment gives it, or a number of the file.
impl<'de, T: FromStr> Deserialize<'de> for AutoOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AutoOrVisitor(PhantomData))
    }
}

struct AutoOrVisitor<T>(PhantomData<T>);

impl<T: FromStr> AutoOrVisitor<T> {
    fn read<E: serde::de::Error>(text: &str) -> Result<AutoOr<T>, E> {
        if text == "auto" {
            return Ok(AutoOr::Auto);
        }
        // Without the text: it may be anything that was written in the wrong place.
        text.parse().map(AutoOr::Value).map_err(|_| E::custom("expected `auto` or a number"))
    }
}

impl<T: FromStr> Visitor<'_> for AutoOrVisitor<T> {
    type Value = AutoOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`auto` or a number")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Self::read(text)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Self::read(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Self::read(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Self::read(&number.to_string())
    }
}

/// A table of the configuration that goes into a request as it is, `llm.extra_body`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ExtraBody(pub Map<String, Value>);

impl<'de> Deserialize<'de> for ExtraBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(D::Error::custom("expected a table")),
        }
    }
}

/// Fields of a request that docmill sets itself, in the words of every vendor; a path names one
/// below another.
const OWN_FIELDS: [&str; 23] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "system",
    "tools",
    "tool_choice",
    "output_config/format",
    "contents",
    "systemInstruction",
    "generationConfig/maxOutputTokens",
    "generationConfig/responseMimeType",
    "generationConfig/responseSchema",
    "generationConfig/responseJsonSchema",
    "generationConfig/candidateCount",
    "inferenceConfig",
    "outputConfig",
    "toolConfig",
    "functions",
];

impl ExtraBody {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Merges the fields into a request: tables field by field, anything else in its place.
    pub fn merge_into(&self, request: &mut Value) {
        merge_fields(request, &self.0);
    }

    /// Names the first of docmill's own fields in it.
    fn find_own_field(&self) -> Option<&'static str> {
        let fields = Value::Object(self.0.clone());
        OWN_FIELDS.into_iter().find(|path| fields.pointer(&format!("/{path}")).is_some())
    }
}

fn merge_fields(target: &mut Value, fields: &Map<String, Value>) {
    let Some(target) = target.as_object_mut() else { return };
    for (name, value) in fields {
        match (target.get_mut(name), value) {
            (Some(inner @ Value::Object(_)), Value::Object(more)) => merge_fields(inner, more),
            _ => _ = target.insert(name.clone(), value.clone()),
        }
    }
}

/// The headers of `llm.headers` and `llm.header_files`.
#[derive(Debug, Clone, Default)]
pub struct ExtraHeaders {
    plain: BTreeMap<String, String>,
    files: Vec<(String, SecretSource)>,
}

impl ExtraHeaders {
    /// Headers with their values, and those whose values are in files.
    pub fn new(plain: &BTreeMap<String, String>, files: &BTreeMap<String, PathBuf>) -> Self {
        let none = SecretString::default();
        let files = files.iter();
        let files = files.map(|(name, file)| (name.clone(), SecretSource::new(&none, file)));
        Self { plain: plain.clone(), files: files.collect() }
    }

    /// Names and values as they are now: a file is read again when it changes.
    ///
    /// # Errors
    /// A file that could never be read.
    pub fn current_headers(&self) -> Result<Vec<(String, SecretString)>, String> {
        let mut headers: Vec<(String, SecretString)> =
            self.plain.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        for (name, file) in &self.files {
            let value =
                file.current_secret().map_err(|why| format!("header_files.{name}: {why}"))?;
            headers.push((name.clone(), value));
        }
        Ok(headers)
    }
}

/// Headers that the connection sets.
const OWN_HEADERS: [&str; 5] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection"];

/// The parts of a model's settings that are checked here; `at` is their key.
pub(super) struct RequestSettings<'a> {
    pub(super) at: &'a str,
    pub(super) temperature: AutoOr<f64>,
    pub(super) thinking_tokens: AutoOr<u32>,
    pub(super) extra_body: &'a ExtraBody,
    pub(super) headers: &'a BTreeMap<String, String>,
    pub(super) header_files: &'a BTreeMap<String, PathBuf>,
}

impl RequestSettings<'_> {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        let at = self.at;
        if self.temperature.value().is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            problems.push(format!("{at}.temperature must be `auto` or between 0 and 2"));
        }
        if self.thinking_tokens.value().is_some_and(|tokens| tokens > 1_000_000) {
            problems.push(format!("{at}.thinking_tokens must be `auto` or at most 1000000"));
        }
        if let Some(field) = self.extra_body.find_own_field() {
            let field = field.replace('/', ".");
            problems.push(format!(
                "{at}.extra_body.{field} is set by docmill and cannot be replaced: leave it out"
            ));
        }
        for name in self.headers.keys().chain(self.header_files.keys()) {
            if !is_header_name(name) || OWN_HEADERS.contains(&name.to_lowercase().as_str()) {
                problems.push(format!("{at}.headers: a header of this name cannot be set: {name}"));
            }
            if self.headers.contains_key(name) && self.header_files.contains_key(name) {
                problems.push(format!("{at}.headers and {at}.header_files both set {name}"));
            }
        }
        if let Err(problem) = ExtraHeaders::new(self.headers, self.header_files).current_headers() {
            problems.push(format!("{at}.{problem}"));
        }
    }
}

/// A token of RFC 9110 §5.6.2, as far as names of headers use it.
fn is_header_name(name: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 100 && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Held {
        number: AutoOr<u32>,
    }

    #[test]
    fn a_number_may_be_written_as_text_and_auto_is_none() {
        for (text, expected) in
            [("number = 7", Some(7)), ("number = '7'", Some(7)), ("number = 'auto'", None)]
        {
            assert_eq!(toml::from_str::<Held>(text).unwrap().number.value(), expected, "{text}");
        }
        for wrong in ["number = 'much'", "number = -1", "number = []"] {
            assert!(toml::from_str::<Held>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn further_fields_are_merged_table_by_table() {
        let more: ExtraBody =
            toml::from_str("a.x = 2\nb = 'new'\nc.d = [1]\n[A]\nKeepsCase = true").unwrap();
        let mut request = json!({"a": {"x": 1, "y": 1}, "b": {"z": 1}, "e": 1});
        more.merge_into(&mut request);
        let expected = json!({
            "a": {"x": 2, "y": 1}, "b": "new", "e": 1, "c": {"d": [1]}, "A": {"KeepsCase": true},
        });
        assert_eq!(request, expected);
    }

    fn problems(body: &str, headers: &[&str], files: &[&str]) -> String {
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut problems = Vec::new();
        RequestSettings {
            at: "llm",
            temperature: AutoOr::Auto,
            thinking_tokens: AutoOr::Auto,
            extra_body: &toml::from_str(body).unwrap(),
            headers: &named(headers).into_iter().map(|name| (name, "x".to_owned())).collect(),
            header_files: &named(files).into_iter().map(|name| (name, "/none".into())).collect(),
        }
        .collect_problems(&mut problems);
        problems.join("\n")
    }

    #[test]
    fn a_field_that_docmill_owns_cannot_be_replaced_nor_a_header_of_the_connection() {
        assert_eq!(problems("top_p = 0.5\n[generationConfig]\ntopK = 1", &["x-team"], &[]), "");
        for (body, field) in [
            ("model = 'x'", "llm.extra_body.model"),
            ("stream = true", "llm.extra_body.stream"),
            ("messages = []", "llm.extra_body.messages"),
            ("output_config.format = {}", "llm.extra_body.output_config.format"),
            (
                "generationConfig.responseJsonSchema = {}",
                "llm.extra_body.generationConfig.responseJsonSchema",
            ),
        ] {
            let said = problems(body, &[], &[]);
            assert!(said.contains(field) && said.contains("leave it out"), "{body}: {said}");
        }
        for header in ["Host", "two words", "content-length"] {
            assert!(problems("", &[header], &[]).contains(header), "{header}");
        }
        assert!(problems("", &[], &["x-key"]).contains("llm.header_files.x-key"));
        assert!(problems("", &["x-key"], &["x-key"]).contains("both set x-key"));
    }
}
