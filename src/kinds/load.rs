//! Reading kinds from what is built in or from a folder, and holding their files against each other.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Check, Kind, KindsError, Labels, Rule, rule};

/// The four files of a kind: name and text.
type Files = [(&'static str, String); 4];

const NAMES: [&str; 4] = ["schema.json", "prompt.md", "rules.toml", "labels.toml"];

const INVOICE: [&str; 4] = [
    include_str!("../../config/kinds/invoice/schema.json"),
    include_str!("../../config/kinds/invoice/prompt.md"),
    include_str!("../../config/kinds/invoice/rules.toml"),
    include_str!("../../config/kinds/invoice/labels.toml"),
];

/// Largest file that is read; a prompt or table of labels is a hundredth of it.
const LARGEST_FILE: u64 = 4 << 20;

type Problems = Vec<(PathBuf, String)>;

/// Every kind: built in if `folder` is empty, else one per folder in it.
pub(super) fn kinds(folder: &Path) -> Result<Vec<Kind>, KindsError> {
    let mut problems = Vec::new();
    let mut kinds = Vec::new();
    if folder.as_os_str().is_empty() {
        let texts = INVOICE.map(str::to_owned);
        kinds.extend(build("invoice", Path::new("invoice"), with_names(texts), &mut problems));
    } else {
        for path in folders(folder, &mut problems) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if let Some(files) = read(&path, &mut problems) {
                kinds.extend(build(name, &path, files, &mut problems));
            }
        }
        if kinds.is_empty() && problems.is_empty() {
            let problem = "holds no folder with the files of a kind".to_owned();
            problems.push((folder.to_owned(), problem));
        }
    }
    if problems.is_empty() { Ok(kinds) } else { Err(KindsError(problems)) }
}

fn with_names(texts: [String; 4]) -> Files {
    let mut names = NAMES.into_iter();
    texts.map(|text| (names.next().unwrap_or_default(), text))
}

fn folders(folder: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push((folder.to_owned(), format!("kinds.path cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

fn read(folder: &Path, problems: &mut Problems) -> Option<Files> {
    let before = problems.len();
    let texts = NAMES.map(|name| {
        let path = folder.join(name);
        let text = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > LARGEST_FILE => {
                Err(format!("has {} bytes, the limit is {LARGEST_FILE}", metadata.len()))
            }
            Ok(_) => std::fs::read_to_string(&path).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        text.unwrap_or_else(|problem| {
            problems.push((path, problem));
            String::new()
        })
    });
    (problems.len() == before).then(|| with_names(texts))
}

fn build(name: &str, folder: &Path, files: Files, problems: &mut Problems) -> Option<Kind> {
    let before = problems.len();
    let mut hash = Sha256::new();
    for (file, text) in &files {
        hash.update(format!("{file} {}\n", text.len()));
        hash.update(text);
    }
    let [schema, prompt, rules, labels] = files.map(|(_, text)| text);
    let mut complain = |file: &str, problem: String| problems.push((folder.join(file), problem));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        complain("", "a kind's name has 1 to 64 of a-z, A-Z, 0-9, _ and -".to_owned());
    }
    let schema = checked_schema(&schema).map_err(|problem| complain("schema.json", problem));
    if prompt.trim().is_empty() {
        complain("prompt.md", "is empty".to_owned());
    }
    let rules = rule::parse(&rules);
    let labels = Labels::parse(&labels).map_err(|problem| complain("labels.toml", problem));
    match &rules {
        Ok(rules) => {
            for problem in schema.iter().flat_map(|schema| unknown_fields(schema, rules)) {
                complain("rules.toml", problem);
            }
        }
        Err(own) => own.iter().for_each(|problem| complain("rules.toml", problem.clone())),
    }
    let (schema, rules, labels) = (schema.ok()?, rules.ok()?, labels.ok()?);
    let version = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let name = name.to_owned();
    (problems.len() == before).then_some(Kind { name, version, schema, prompt, rules, labels })
}

fn checked_schema(text: &str) -> Result<Value, String> {
    let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    jsonschema::meta::validate(&schema).map_err(|error| error.to_string())?;
    let has_fields =
        schema.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if has_fields { Ok(schema) } else { Err("has no `properties`".to_owned()) }
}

/// Fields that rules name and the schema does not have.
fn unknown_fields(schema: &Value, rules: &[Rule]) -> Vec<String> {
    let known = |path: &str| {
        let mut at = schema;
        path.split('.').all(|step| {
            let inner = at.get("items").unwrap_or(at);
            match inner.get("properties").and_then(|properties| properties.get(step)) {
                Some(next) => {
                    at = next;
                    true
                }
                None => false,
            }
        })
    };
    let named = rules.iter().flat_map(|rule| {
        let fields = Check::fields(&rule.check);
        fields.into_iter().map(|field| (rule.name.clone(), field))
    });
    named
        .filter(|(_, field)| !known(field))
        .map(|(rule, field)| {
            format!("rule `{rule}` names `{field}`, which schema.json does not have")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KindsConfig;
    use crate::kinds::{FieldType, Kinds};

    fn copy_of_invoice(at: &Path) -> PathBuf {
        let folder = at.join("invoice");
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in NAMES.iter().zip(INVOICE) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        folder
    }

    fn load(path: &Path) -> Result<Kinds, KindsError> {
        Kinds::load(&KindsConfig { path: path.to_owned(), ..KindsConfig::default() })
    }

    #[test]
    fn the_built_in_kinds_are_sound() {
        let kinds = Kinds::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.for_name(None).unwrap();
        assert_eq!(invoice.name, "invoice");
        assert_eq!(invoice.fields().count(), 11);
        assert!(invoice.fields().any(|f| f == ("due_date", FieldType::Date)));
        assert!(invoice.fields().any(|f| f == ("line_items", FieldType::List)));
        assert!(kinds.for_name(Some("nonsense")).is_none());
    }

    #[test]
    fn a_folder_gives_the_same_kind_and_any_change_another_version() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        let version = |kinds: &Kinds| kinds.get("invoice").unwrap().version.clone();
        let built_in = version(&Kinds::load(&KindsConfig::default()).unwrap());
        assert_eq!(version(&load(root.path()).unwrap()), built_in);
        let prompt = folder.join("prompt.md");
        std::fs::write(&prompt, format!("{}\n", INVOICE[1])).unwrap();
        assert_ne!(version(&load(root.path()).unwrap()), built_in);
    }

    #[test]
    fn every_problem_is_said_by_file() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        std::fs::write(folder.join("schema.json"), "{ \"type\": 5, \"properties\": {} }").unwrap();
        std::fs::write(folder.join("labels.toml"), "[total]\nstrong = 'x'").unwrap();
        std::fs::remove_file(folder.join("prompt.md")).unwrap();
        let text = load(root.path()).unwrap_err().to_string();
        assert!(text.contains("invoice/prompt.md"), "{text}");
        std::fs::write(folder.join("prompt.md"), "Read.").unwrap();
        let text = load(root.path()).unwrap_err().to_string();
        assert!(text.contains("invoice/schema.json"), "{text}");
        assert!(text.contains("invoice/labels.toml"), "{text}");
    }

    #[test]
    fn a_rule_over_a_field_that_does_not_exist_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        let rule = "[[rule]]\nname='r'\ncheck='required'\nfields=['totl']\nconsequence='flag'";
        std::fs::write(folder.join("rules.toml"), rule).unwrap();
        let text = load(root.path()).unwrap_err().to_string();
        assert!(text.contains("rules.toml") && text.contains("totl"), "{text}");
    }

    #[test]
    fn a_default_that_is_no_kind_and_an_empty_folder_are_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(load(root.path()).unwrap_err().to_string().contains("no folder"));
        let config = KindsConfig { default: "recipt".to_owned(), ..KindsConfig::default() };
        assert!(Kinds::load(&config).unwrap_err().to_string().contains("recipt"));
    }
}
