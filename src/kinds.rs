//! Kinds of documents as data: a folder of schema, prompt, rules and labels each.
//!
//! What ships is built in; a folder in the configuration replaces it. A kind is checked while it
//! is loaded, so that a misspelt field or check stops the start, not a document.

mod labels;
mod load;
mod rule;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

pub use labels::{FieldLabels, Labels};
pub use rule::{Check, Consequence, Form, Rule};

use crate::config::KindsConfig;

/// One kind of document.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Name of its folder, e.g. `invoice`.
    pub name: String,
    /// SHA-256, in hex, over its files: part of the identity of what was extracted with it.
    pub version: String,
    /// JSON Schema of its fields.
    pub schema: Value,
    /// The model's system prompt.
    pub prompt: String,
    /// What the gate checks.
    pub rules: Vec<Rule>,
    /// What stands beside the values, for the rules reader.
    pub labels: Labels,
}

/// What a field of a kind holds, as its schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Any text.
    Text,
    /// `YYYY-MM-DD`.
    Date,
    /// A number.
    Number,
    /// A list of objects.
    List,
}

impl Kind {
    /// The fields in the order of the schema.
    pub fn fields(&self) -> impl Iterator<Item = (&str, FieldType)> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), field_type(schema)))
    }

    /// Whether the kind has this field.
    pub fn has(&self, field: &str) -> bool {
        self.fields().any(|(name, _)| name == field)
    }
}

fn field_type(schema: &Value) -> FieldType {
    let is = |wanted: &str| match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    };
    if is("array") {
        FieldType::List
    } else if is("number") || is("integer") {
        FieldType::Number
    } else if schema.get("format").and_then(Value::as_str) == Some("date") {
        FieldType::Date
    } else {
        FieldType::Text
    }
}

/// Every kind that is known.
#[derive(Debug, Clone)]
pub struct Kinds {
    kinds: Vec<Arc<Kind>>,
    default: String,
}

/// Everything that is wrong with the kinds, by file.
#[derive(Debug, thiserror::Error)]
#[error("the kinds of documents have problems:\n{}", .0.iter().map(|(file, problem)| format!("  {}: {problem}", file.display())).collect::<Vec<_>>().join("\n"))]
pub struct KindsError(pub Vec<(PathBuf, String)>);

impl Kinds {
    /// Loads the built-in kinds, or those in the configured folder.
    ///
    /// # Errors
    /// Every problem of every file at once; a default kind that is not among them.
    pub fn load(config: &KindsConfig) -> Result<Self, KindsError> {
        let kinds: Vec<Arc<Kind>> = load::kinds(&config.path)?.into_iter().map(Arc::new).collect();
        if !kinds.iter().any(|kind| kind.name == config.default) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            let problem = format!(
                "kinds.default is `{}`, which is none of: {}",
                config.default,
                names.join(", ")
            );
            return Err(KindsError(vec![(config.path.clone(), problem)]));
        }
        Ok(Self { kinds, default: config.default.clone() })
    }

    /// The kind of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// The kind for a document for which the producer named `name`, or none.
    pub fn for_name(&self, name: Option<&str>) -> Option<&Arc<Kind>> {
        self.get(name.unwrap_or(&self.default))
    }

    /// Every kind.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().map(Arc::as_ref)
    }
}
