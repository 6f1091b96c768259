//! Kinds of documents as data: a folder of schema, prompt, rules and labels each.
//!
//! Some kinds are built in. A folder in the configuration adds kinds and replaces those of the same
//! name. A kind is checked while it is loaded, so that a misspelt field or check stops the start,
//! not a document.

mod built_in;
mod classify;
mod examples;
mod json_lines;
mod kind_labels;
mod label_index;
mod labels;
mod load;
mod problem;
mod role;
mod rule;
mod schema;
mod showing;
mod signals;
mod source;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

pub use classify::{ClassifiedKind, KindAmbiguity, PageTitles, begins_subject};
pub use examples::KindExample;
pub use kind_labels::KindLabels;
pub use label_index::{LabelHit, LabelIndex};
pub use labels::ValueStyle;
pub use problem::KindProblem;
pub use role::FieldRole;
pub use rule::{
    CashRounding, GateRule, PaymentFields, PaymentWords, RoundingMode, RuleCheck, RuleConsequence,
    ValueFormat,
};
pub use showing::{PageShowing, ShowPages};
pub use signals::{KindSignal, SignalArea, SignalPhrase};

use self::role::RoleNames;
use self::source::KindSource;
use docmill_core::config::{KindsConfig, OcrProvider};

/// One kind of document.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Name of its folder, e.g. `invoice`.
    pub name: String,
    /// The kind's name for people.
    pub title: String,
    /// It ships; otherwise it comes from the configured folder.
    pub built_in: bool,
    /// SHA-256, in hex, over its files and those of the kinds it includes.
    pub version: String,
    /// SHA-256, in hex, over what a model is asked: instructions, fields and examples. Part of the
    /// identity of stored replies: other rules or labels ask nothing else.
    pub asked_version: String,
    /// JSON Schema of its fields.
    pub schema: Value,
    /// The model's instructions.
    pub prompt: String,
    /// Documents with their data, shown to a model.
    pub examples: Vec<KindExample>,
    /// The rules that the gate checks.
    pub rules: Vec<GateRule>,
    /// The texts beside the values, for the rules reader.
    pub labels: KindLabels,
    /// The fields of roles that have other names.
    roles: RoleNames,
    /// Fields, and `list.field`, that no model is asked for: e-invoices and the rules reader fill them.
    not_asked: Vec<String>,
    /// The signals by which its documents are recognised.
    pub signals: Vec<KindSignal>,
    /// Who reads page images of documents whose producer names this kind, in this order; none: as
    /// for all.
    pub read_by: Option<Vec<OcrProvider>>,
    /// Which pages are shown to a model that extracts, beside the transcript.
    pub showing: PageShowing,
}

/// The kind of documents of no known kind.
pub const GENERIC: &str = "generic";

/// The type of a kind's field, by its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Text of any form.
    Text,
    /// A calendar day, `YYYY-MM-DD`.
    Date,
    /// A decimal number.
    Number,
    /// True or false, which only a model can judge.
    Boolean,
    /// A list of objects, or of single texts or numbers.
    List,
    /// An object with fields of its own, which only a model fills.
    Object,
}

impl Kind {
    /// The fields in the order of the schema.
    pub fn fields(&self) -> impl Iterator<Item = (&str, FieldType)> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), field_type(schema)))
    }

    /// The schema without the fields that no model is asked for.
    pub fn asked_schema(&self) -> Value {
        schema::without_fields(&self.schema, &self.not_asked)
    }

    /// The fields without which nothing was read: what the rules require, unless they only flag it.
    pub fn required_fields(&self) -> Vec<&str> {
        let rules = self.rules.iter().filter(|rule| rule.consequence > RuleConsequence::Flag);
        let fields = rules.filter_map(|rule| match &rule.check {
            RuleCheck::Required(fields) => Some(fields),
            _ => None,
        });
        fields.flatten().map(String::as_str).collect()
    }

    /// Whether a second document of one supplier and number is more than flagged.
    pub fn acts_on_duplicates(&self) -> bool {
        self.rules.iter().any(|rule| {
            rule.check == RuleCheck::Duplicate && rule.consequence > RuleConsequence::Flag
        })
    }

    /// The names of the fields of a list's entries; none where they are single values.
    pub fn item_fields(&self, list: &str) -> Vec<&str> {
        self.item_types(list).map(|(name, _)| name).collect()
    }

    /// The fields of a list's items in the order of the schema.
    pub fn item_types(&self, list: &str) -> impl Iterator<Item = (&str, FieldType)> {
        let items = self.schema.get("properties").and_then(|all| all.get(list)?.get("items"));
        let properties = items.and_then(|items| items.get("properties")?.as_object());
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), field_type(schema)))
    }

    /// The field of a role, which the kind need not have.
    pub fn field_of(&self, role: FieldRole) -> &str {
        self.field_named(role.name())
    }

    /// The role of a field.
    pub fn role_of(&self, field: &str) -> Option<FieldRole> {
        FieldRole::from_name(self.role_name(field))
    }

    /// The field with the role of this name; for other names the field of that name.
    pub fn field_named<'n>(&'n self, name: &'n str) -> &'n str {
        self.roles.field_of(name)
    }

    /// The name of a field's role, or of a field without one.
    pub fn role_name<'n>(&'n self, field: &'n str) -> &'n str {
        self.roles.name_of(field)
    }

    /// Whether the kind has a field of this role.
    pub fn has_role(&self, role: FieldRole) -> bool {
        self.has_field(self.field_of(role))
    }

    /// Whether the kind has this field.
    pub fn has_field(&self, field: &str) -> bool {
        self.schema.get("properties").is_some_and(|properties| properties.get(field).is_some())
    }
}

fn field_type(schema: &Value) -> FieldType {
    if has_type(schema, "array") {
        FieldType::List
    } else if has_type(schema, "object") {
        FieldType::Object
    } else if has_type(schema, "number") || has_type(schema, "integer") {
        FieldType::Number
    } else if has_type(schema, "boolean") {
        FieldType::Boolean
    } else if schema.get("format").and_then(Value::as_str) == Some("date") {
        FieldType::Date
    } else {
        FieldType::Text
    }
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    }
}

/// Every kind that is known.
#[derive(Debug, Clone)]
pub struct KindSet {
    kinds: Vec<Arc<Kind>>,
    /// The files that they are made of.
    sources: Vec<KindSource>,
    default: String,
}

/// Everything that is wrong with the kinds, by file and line.
#[derive(Debug, thiserror::Error)]
#[error("the kinds of documents have problems:\n{}", .0.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n"))]
pub struct KindsError(pub Vec<KindProblem>);

/// Whether a text can be the name of a kind: 1 to 64 of a-z, A-Z, 0-9, _ and -. Names become parts of
/// paths, metrics and labels; Postgres demands the same of `ingestion.kind`.
pub fn is_kind_name(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    is_plain && (1..=64).contains(&name.len())
}

impl KindSet {
    /// Loads the built-in kinds, and those in the configured folder.
    ///
    /// # Errors
    /// Every problem of every file at once; a default kind that is not among them.
    pub fn load(config: &KindsConfig) -> Result<Self, KindsError> {
        let mut problems = Vec::new();
        let sources = load::list_sources(&config.path, &mut problems);
        let kinds = load::build_kinds(&sources, problems).map_err(KindsError)?;
        if !kinds.iter().any(|kind| kind.name == config.default) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            let text = format!(
                "kinds.default is `{}`, which is none of: {}",
                config.default,
                names.join(", ")
            );
            return Err(KindsError(vec![KindProblem {
                file: config.path.clone(),
                line: None,
                text,
            }]));
        }
        Ok(Self { kinds, sources, default: config.default.clone() })
    }

    /// The files of a kind, by their paths within its folder.
    pub fn files_of(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.sources.iter().find(|source| source.name == name).map(KindSource::files)
    }

    /// These kinds with a draft in the place of the one of its name. Kinds that include it change
    /// with it.
    ///
    /// # Errors
    /// Every problem of its files, then those of kinds that include it.
    pub fn with_draft(
        &self,
        name: &str,
        files: BTreeMap<String, String>,
    ) -> Result<Self, KindsError> {
        let mut sources = self.sources.clone();
        load::replace_sources(&mut sources, vec![KindSource::from_files(name, files)]);
        let kinds = load::build_kinds(&sources, Vec::new()).map_err(|mut problems| {
            problems.sort_by_key(|problem| !problem.file.starts_with(name));
            KindsError(problems)
        })?;
        Ok(Self { kinds, sources, default: self.default.clone() })
    }

    /// The kinds in a folder, or the one of a folder of a single kind, and all problems; `None` for a
    /// kind that has problems. Kinds may include the built-in ones and each other.
    pub fn check_folder(folder: &Path) -> (Vec<Option<Kind>>, Vec<KindProblem>) {
        load::check_folder(folder)
    }

    /// The problems of a kind of this name with these files, by their paths within its folder. It
    /// may include the built-in ones.
    pub fn check_files(name: &str, files: BTreeMap<String, String>) -> Vec<KindProblem> {
        load::check_files(name, files)
    }

    /// The kind of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// The kind for a document for which the producer named `name`, or none.
    pub fn for_name(&self, name: Option<&str>) -> Option<&Arc<Kind>> {
        self.get(name.unwrap_or(&self.default))
    }

    /// Every kind, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().map(Arc::as_ref)
    }
}
