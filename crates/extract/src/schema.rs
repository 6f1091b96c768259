//! The expected form of a model's reply: the kind's fields in an envelope, and its validator.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use docmill_core::fault::{Error, Result};
use docmill_gate::kinds::{Kind, KindExample};
use docmill_llm::schema::{close_schema, restore_reply};

use super::printed::PrintedNumbers;
use super::prompt::write_system_prompt;

/// Forms of the kinds of this process by name: compiling one costs more than the gate's checks of a
/// page.
static COMPILED: LazyLock<Mutex<HashMap<FormName, Arc<ReplySchema>>>> =
    LazyLock::new(Mutex::default);

/// A kind's name, and whether its pages are shown.
type FormName = (String, bool);

/// The expected form of a reply.
pub struct ReplySchema {
    /// The kind's schema.
    source: Value,
    /// The part of it that a model is asked for.
    asked: Value,
    /// The instructions and examples of that kind.
    prompt: String,
    examples: Vec<KindExample>,
    /// The stable text of prompts for such a reply, shared by all of them.
    pub system: Arc<str>,
    /// JSON Schema of the whole reply.
    pub schema: Arc<Value>,
    /// The same as text, since each extraction counts and hashes it.
    pub(super) schema_text: Arc<str>,
    validator: Validator,
    /// A self-contained schema for each field.
    fields: Vec<(String, Value)>,
}

/// Where and how a reply breaks its schema. Names the place and the rule, never a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON Pointer into the reply, made of names that the schema knows and of indexes.
    pub path: String,
    /// The broken rule.
    pub demand: String,
    /// Whether a value is absent, so that only the document can mend it.
    pub is_absence: bool,
}

/// JSON of short names and numbers has fewer bytes in a token than text: 25 in ten.
const ENTRY_BYTES_PER_TEN_TOKENS: usize = 25;
/// Most violations that are reported.
const MAX_REPORTED: usize = 20;

impl ReplySchema {
    /// The form of a kind's replies, compiled at the first call with this schema and prompt.
    ///
    /// # Errors
    /// The kind's schema is not a valid one.
    pub fn for_kind(kind: &Kind) -> Result<Arc<Self>> {
        Self::for_reading(kind, false)
    }

    /// The form of replies about a transcript and, with `pictures`, pages that are shown beside it.
    ///
    /// # Errors
    /// As [`ReplySchema::for_kind`].
    pub fn for_reading(kind: &Kind, pictures: bool) -> Result<Arc<Self>> {
        let name = (kind.name.clone(), pictures);
        let known = COMPILED.lock().get(&name).cloned();
        if let Some(form) = known.filter(|form| form.is_of(kind)) {
            return Ok(form);
        }
        // Not under the lock; two compilations at once do no harm.
        let form = Arc::new(Self::compile_for(kind, pictures)?);
        let mut forms = COMPILED.lock();
        forms.insert(name, Arc::clone(&form));
        Ok(form)
    }

    fn is_of(&self, kind: &Kind) -> bool {
        self.prompt == kind.prompt && self.source == kind.schema && self.examples == kind.examples
    }

    fn compile_for(kind: &Kind, pictures: bool) -> Result<Self> {
        let asked = kind.asked_schema();
        let mut schema = envelope_schema(&asked);
        if pictures {
            schema = close_schema(&with_pictures(schema));
        }
        let validator = compile_schema(&schema).map_err(|problem| {
            Error::internal(format!("the schema of kind {} is not valid: {problem}", kind.name))
        })?;
        let defs = schema.get("$defs").cloned();
        let properties = schema.pointer("/properties/fields/properties").and_then(Value::as_object);
        let fields = properties.into_iter().flatten().map(|(name, field)| {
            let mut field = field.clone();
            if let (Some(defs), Some(field)) = (&defs, field.as_object_mut()) {
                field.insert("$defs".to_owned(), defs.clone());
            }
            (name.clone(), field)
        });
        let (source, fields) = (kind.schema.clone(), fields.collect());
        let system = write_system_prompt(kind, pictures).into();
        let (prompt, examples) = (kind.prompt.clone(), kind.examples.clone());
        let schema_text = schema.to_string().into();
        let schema = Arc::new(schema);
        Ok(Self { source, asked, prompt, examples, system, fields, validator, schema, schema_text })
    }

    /// Whether places in pictures are asked for.
    pub fn has_pictures(&self) -> bool {
        self.schema.pointer("/properties/pictures").is_some()
    }

    /// The violations of the schema in a reply, twenty at most.
    pub fn find_violations(&self, reply: &Value) -> Vec<SchemaViolation> {
        let errors = self.validator.iter_errors(reply).take(MAX_REPORTED);
        errors.map(|error| SchemaViolation::from_error(&error)).collect()
    }

    /// Reads a reply of a dialect without null, or with numbers as texts, as one of this schema
    /// ([`restore_reply`]).
    pub fn restore_reply(&self, reply: &mut Value, numbers: &PrintedNumbers) {
        restore_reply(&self.schema, reply, &|text| numbers.read(text));
    }

    /// Sets optional fields that the reply leaves out to null, at every depth, and the places in
    /// pictures to none.
    pub fn fill_absent_fields(&self, reply: &mut Value) {
        if let Some(reply) = reply.as_object_mut().filter(|_| self.has_pictures()) {
            reply.entry("pictures").or_insert_with(|| json!([]));
        }
        if let Some(fields) = reply.get_mut("fields") {
            fill_absent(&self.asked, fields);
        }
    }

    /// Sets the fields of lists that no model is asked for to null.
    pub fn fill_unasked_fields(&self, fields: &mut Map<String, Value>) {
        let properties = self.source.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            if let Some(value) = fields.get_mut(name) {
                fill_absent(schema, value);
            }
        }
    }

    /// The fields of a reply that are valid by themselves, the others null: for the reviewer of a
    /// reply that was never whole.
    pub fn salvage_fields(&self, reply: &Value) -> Option<Map<String, Value>> {
        let fields = reply.get("fields")?.as_object()?;
        let mut sound = Map::new();
        for (name, schema) in &self.fields {
            let value = fields.get(name).cloned().unwrap_or(Value::Null);
            let fits = compile_schema(schema).is_ok_and(|validator| validator.is_valid(&value));
            sound.insert(name.clone(), if fits { value } else { Value::Null });
        }
        Some(sound)
    }
}

fn fill_absent(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            let required = schema.get("required").and_then(Value::as_array);
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, inner) in properties.into_iter().flatten() {
                match object.get_mut(name) {
                    Some(value) => fill_absent(inner, value),
                    None if required.is_some_and(|all| all.contains(&json!(name))) => {}
                    None => {
                        object.insert(name.clone(), Value::Null);
                    }
                }
            }
        }
        Value::Array(entries) => {
            let Some(items) = schema.get("items") else { return };
            entries.iter_mut().for_each(|entry| fill_absent(items, entry));
        }
        _ => {}
    }
}

impl SchemaViolation {
    fn from_error(error: &jsonschema::ValidationError<'_>) -> Self {
        Self {
            path: error.instance_path().to_string(),
            demand: describe_demand(error.kind()),
            is_absence: matches!(error.kind(), ValidationErrorKind::Required { .. }),
        }
    }
}

/// The violations of a kind's schema in data that a person entered.
///
/// # Errors
/// The kind's schema is not a valid one.
pub fn find_data_violations(kind: &Kind, data: &Value) -> Result<Vec<SchemaViolation>> {
    let validator = compile_schema(&kind.schema).map_err(|problem| {
        Error::internal(format!("the schema of kind {} is not valid, {problem}", kind.name))
    })?;
    let errors = validator.iter_errors(data).take(MAX_REPORTED);
    Ok(errors.map(|error| SchemaViolation::from_error(&error)).collect())
}

fn compile_schema(schema: &Value) -> std::result::Result<Validator, String> {
    // Formats with look-ups and references to other schemas are not compiled into this build.
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| format!("at {}", error.instance_path()))
}

/// The reply: fields first and the judgement on them last, because a model writes in this order and
/// should judge written values.
fn envelope_schema(kind: &Value) -> Value {
    let mut fields = kind.clone();
    let mut defs = None;
    if let Some(object) = fields.as_object_mut() {
        defs = object.remove("$defs");
        object.retain(|key, _| !matches!(key.as_str(), "$schema" | "$id" | "title"));
    }
    let mut schema = json!({
        "type": "object",
        "required": ["fields", "evidence", "confidence", "extraction_successful"],
        "properties": {
            "fields": fields,
            "evidence": {
                "type": "array",
                "description": "Empty where a whole document is shown; in a part of one, the lines of every entry of a list.",
                "items": {
                    "type": "object",
                    "required": ["field", "lines"],
                    "properties": {
                        "field": {
                            "type": "string",
                            "description": "The entry, e.g. line_items[2]."
                        },
                        "lines": {
                            "type": "array",
                            "description": "Line ids such as p1.l12.",
                            "items": {"type": "string"}
                        }
                    }
                }
            },
            "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
            "extraction_successful": {
                "type": "boolean",
                "description": "Whether everything asked for that is on these pages was read."
            }
        }
    });
    if let (Some(defs), Some(object)) = (defs, schema.as_object_mut()) {
        object.insert("$defs".to_owned(), defs);
    }
    close_schema(&schema)
}

/// The whole reply about an example, in the order of the schema and with all its fields.
pub(super) fn example_reply(kind: &Value, fields: &Value, asks_for_places: bool) -> Value {
    let mut reply = json!({
        "fields": order_fields(kind, fields),
        "evidence": [],
        "confidence": "high",
        "extraction_successful": true,
    });
    if let Some(reply) = reply.as_object_mut().filter(|_| asks_for_places) {
        reply.insert("pictures".to_owned(), json!([]));
    }
    reply
}

/// A value with every property of its schema, in the schema's order; absent ones are null.
fn order_fields(schema: &Value, value: &Value) -> Value {
    match (value, schema.get("properties").and_then(Value::as_object)) {
        (Value::Object(object), Some(properties)) => {
            let ordered = properties.iter().map(|(name, inner)| {
                let value = object.get(name).unwrap_or(&Value::Null);
                (name.clone(), order_fields(inner, value))
            });
            Value::Object(ordered.collect())
        }
        (Value::Array(entries), _) => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            Value::Array(entries.iter().map(|entry| order_fields(items, entry)).collect())
        }
        _ => value.clone(),
    }
}

/// Tokens of a list entry without its values: names, punctuation and nulls. Of several lists the
/// largest counts.
pub(super) fn entry_tokens(kind: &Value) -> usize {
    let properties = kind.get("properties").and_then(Value::as_object);
    let lists = properties.into_iter().flatten().filter_map(|(_, field)| field.get("items"));
    let sizes = lists.map(|items| order_fields(items, &json!({})).to_string().len());
    sizes.max().unwrap_or_default() * 10 / ENTRY_BYTES_PER_TEN_TOKENS
}

/// The form with the places of values that were read from pictures.
fn with_pictures(mut schema: Value) -> Value {
    let entries = json!({
        "type": "array",
        "description": "For every value that was read from a picture: where it stands there.",
        "items": {
            "type": "object",
            "required": ["field", "page", "box"],
            "properties": {
                "field": {
                    "type": "string",
                    "description": "Name of the field, e.g. total or line_items[2].amount."
                },
                "page": {"type": "integer", "description": "Number of the page."},
                "box": {
                    "type": "array",
                    "description": "Left, top, right, bottom in pixels of the picture.",
                    "items": {"type": "number"}
                }
            }
        }
    });
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("pictures".to_owned(), entries);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push(json!("pictures"));
    }
    schema
}

/// A rule in the schema's own words.
fn describe_demand(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Required { property } => {
            format!("must have the property {property}")
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(name) } => {
            format!("must be of type {name}")
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(names) } => {
            let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
            format!("must be of type {}", names.join(" or "))
        }
        ValidationErrorKind::Pattern { pattern } => format!("must match {pattern}"),
        ValidationErrorKind::Format { format } => format!("must be a valid {format}"),
        ValidationErrorKind::Enum { options } => format!("must be one of {options}"),
        ValidationErrorKind::AdditionalProperties { .. } => {
            "must not have properties that the schema does not name".to_owned()
        }
        other => format!("must keep the rule {}", other.keyword()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    pub(crate) fn invoice() -> Kind {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        Kind::clone(kinds.for_name(None).unwrap())
    }

    /// The fields that a model is asked for.
    fn asked_names(kind: &Kind) -> Vec<String> {
        kind.asked_schema()["properties"].as_object().unwrap().keys().cloned().collect()
    }

    /// A whole reply about an invoice with these fields, all others null.
    pub(crate) fn whole(fields: Value) -> Value {
        let kind = invoice();
        let mut all: Map<String, Value> =
            asked_names(&kind).into_iter().map(|name| (name, Value::Null)).collect();
        all.extend(fields.as_object().unwrap().clone());
        json!({
            "fields": all, "evidence": [], "confidence": "high", "extraction_successful": true
        })
    }

    #[test]
    fn a_whole_reply_has_no_violations_and_every_breach_is_named_by_place_and_rule() {
        let form = ReplySchema::for_kind(&invoice()).unwrap();
        assert_eq!(form.find_violations(&whole(json!({"total": 12.5}))), []);
        #[rustfmt::skip]
        let table = [
            (json!({"total": "12,50 secret"}),        "/fields/total",         "number"),
            (json!({"currency": "secret"}),           "/fields/currency",      "^[A-Z]{3}$"),
            (json!({"invoice_date": "31.secret"}),    "/fields/invoice_date",  "date"),
            (json!({"invoice_date": "2026-02-30"}),   "/fields/invoice_date",  "date"),
            (json!({"secret": 1}),                    "/fields",               "does not name"),
            (json!({"line_items": [{"amount": 1}]}),  "/fields/line_items/0",  "description"),
        ];
        for (fields, path, demand) in table {
            let found = form.find_violations(&whole(fields.clone()));
            assert!(
                found.iter().any(|it| it.path == path && it.demand.contains(demand)),
                "{fields}: {found:?}"
            );
            assert!(!format!("{found:?}").contains("secret"), "{found:?}");
        }
    }

    #[test]
    fn valid_fields_of_a_broken_reply_are_kept_for_the_reviewer() {
        let form = ReplySchema::for_kind(&invoice()).unwrap();
        let reply = whole(json!({"total": 12.5, "currency": "euros", "unheard_of": 1}));
        let kept = form.salvage_fields(&reply).unwrap();
        assert_eq!((&kept["total"], &kept["currency"]), (&json!(12.5), &Value::Null));
        assert!(!kept.contains_key("unheard_of"));
    }
}
