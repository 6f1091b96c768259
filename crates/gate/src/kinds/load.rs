//! Making kinds of their files, and holding the files of each against each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::DeTable;

use super::examples::{self, KindExample};
use super::labels::SECTIONS;
use super::problem::{KindProblem, ProblemReport};
use super::role::RoleNames;
use super::rule::{self, ParsedRules};
use super::signals::KindDescription;
use super::source::{self, KindSource};
use super::{GateRule, Kind, KindLabels, RuleCheck, schema};
use docmill_core::model::digest::{LengthOrder, encode_hex, sha256_of_parts};

/// The files of every kind: of the built-in ones and those in `folder`, if one is given. Of one name,
/// the one in the folder holds.
pub(super) fn list_sources(folder: &Path, problems: &mut Vec<KindProblem>) -> Vec<KindSource> {
    let mut sources = source::built_in_sources();
    if !folder.as_os_str().is_empty() {
        let own = source::sources_in_folder(folder, false, problems);
        replace_sources(&mut sources, own);
    }
    sources
}

/// Every kind of these files; `problems`: those of reading them.
pub(super) fn build_kinds(
    sources: &[KindSource],
    mut problems: Vec<KindProblem>,
) -> Result<Vec<Arc<Kind>>, Vec<KindProblem>> {
    let kinds = sources.iter().filter_map(|own| build_kind(own, sources, &mut problems));
    let kinds = kinds.map(Arc::new).collect();
    if problems.is_empty() { Ok(kinds) } else { Err(problems) }
}

/// The kinds in a folder, or the one of a folder of a single kind (`None` for one that has problems), and all
/// problems.
pub(super) fn check_folder(folder: &Path) -> (Vec<Option<Kind>>, Vec<KindProblem>) {
    let mut problems = Vec::new();
    let own = source::sources_in_folder(folder, true, &mut problems);
    let mut sources = source::built_in_sources();
    replace_sources(&mut sources, own.clone());
    let kinds = own.iter().map(|source| build_kind(source, &sources, &mut problems)).collect();
    (kinds, problems)
}

/// The problems of a kind of this name with these files.
pub(super) fn check_files(name: &str, files: BTreeMap<String, String>) -> Vec<KindProblem> {
    let own = KindSource::from_files(name, files);
    let mut problems = Vec::new();
    let mut sources = source::built_in_sources();
    replace_sources(&mut sources, vec![own.clone()]);
    build_kind(&own, &sources, &mut problems);
    problems
}

pub(super) fn replace_sources(sources: &mut Vec<KindSource>, own: Vec<KindSource>) {
    sources.retain(|known| !own.iter().any(|source| source.name == known.name));
    sources.extend(own);
    sources.sort_by(|a, b| a.name.cmp(&b.name));
}

/// A kind of its files. `all` are the kinds it may include.
fn build_kind(
    source: &KindSource,
    all: &[KindSource],
    problems: &mut Vec<KindProblem>,
) -> Option<Kind> {
    let mut making = KindBuilder { source, all, hash: Sha256::new(), problems: Vec::new() };
    source.hash_into(&mut making.hash);
    making.check_name();
    let path = source.folder.join("schema.json");
    let schema = schema::parse_schema(&path, source.file_text("schema.json"));
    let schema = making.collect_problems(schema);
    let path = source.folder.join("kind.toml");
    let description = KindDescription::parse(&path, source.file_text("kind.toml"));
    let description = making.collect_problems(description);
    let rules = making.build_rules(schema.as_ref());
    let roles = description.as_ref().map(|own| own.roles.clone()).unwrap_or_default();
    making.check_roles(&roles, schema.as_ref());
    let not_asked = description.as_ref().map(|own| own.not_asked.clone()).unwrap_or_default();
    making.check_not_asked(&not_asked, schema.as_ref());
    let labels = making.build_labels(schema.as_ref(), &roles);
    let prompt = making.build_prompt();
    let examples = making.build_examples(schema.as_ref());
    let KindBuilder { hash, problems: mut own, .. } = making;
    let sound = own.is_empty();
    problems.append(&mut own);
    let (schema, description) = (schema?, description?);
    sound.then(|| Kind {
        name: source.name.clone(),
        title: description.title,
        built_in: source.built_in,
        version: encode_hex(hash.finalize()),
        asked_version: hash_question(
            &prompt,
            &schema::without_fields(&schema, &not_asked),
            &examples,
        ),
        schema,
        prompt,
        examples,
        rules,
        labels,
        roles,
        not_asked,
        signals: description.signals,
        read_by: description.read_by,
        showing: description.showing,
    })
}

/// SHA-256, in hex, over what a model is asked.
fn hash_question(prompt: &str, asked: &Value, examples: &[KindExample]) -> String {
    let mut parts = vec![prompt.to_owned(), asked.to_string()];
    parts.extend(examples.iter().flat_map(|it| [it.text.clone(), it.fields.to_string()]));
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    sha256_of_parts(LengthOrder::BigEndian, &parts)
}

struct KindBuilder<'a> {
    source: &'a KindSource,
    all: &'a [KindSource],
    hash: Sha256,
    problems: Vec<KindProblem>,
}

impl<'a> KindBuilder<'a> {
    fn collect_problems<T>(&mut self, result: Result<T, Vec<KindProblem>>) -> Option<T> {
        result.map_err(|mut own| self.problems.append(&mut own)).ok()
    }

    fn check_name(&mut self) {
        if !super::is_kind_name(&self.source.name) {
            let text = "a kind's name has 1 to 64 of a-z, A-Z, 0-9, _ and -".to_owned();
            self.problems.push(KindProblem { file: self.source.folder.clone(), line: None, text });
        }
    }

    /// Each role is of a field of the schema with no other role, and its name is no other field's.
    fn check_roles(&mut self, roles: &RoleNames, schema: Option<&Value>) {
        let Some(schema) = schema else { return };
        let (path, text) =
            (self.source.folder.join("kind.toml"), self.source.file_text("kind.toml"));
        let mut report = ProblemReport::new(&path, text);
        for (role, field) in &roles.0 {
            let problem = if !has_field_path(schema, field) {
                "which schema.json does not have"
            } else if role != field && has_field_path(schema, role) {
                "and schema.json has a field of the role's name"
            } else if roles.0.values().filter(|other| *other == field).count() > 1 {
                "which has another role"
            } else {
                continue;
            };
            report.report_file(format!("gives the role `{role}` to `{field}`, {problem}"));
        }
        self.problems.append(&mut report.problems);
    }

    /// Each field that no model is asked for is one of the schema's that a reply may lack.
    fn check_not_asked(&mut self, fields: &[String], schema: Option<&Value>) {
        let Some(schema) = schema else { return };
        let (path, text) =
            (self.source.folder.join("kind.toml"), self.source.file_text("kind.toml"));
        let mut report = ProblemReport::new(&path, text);
        for field in fields {
            let problem = if !has_field_path(schema, field) {
                "which schema.json does not have"
            } else if is_required_path(schema, field) {
                "which schema.json requires"
            } else {
                continue;
            };
            report.report_file(format!("`not_asked` names `{field}`, {problem}"));
        }
        self.problems.append(&mut report.problems);
    }

    /// The kind that a file includes, or a complaint at the place where it is named.
    fn find_included(
        &mut self,
        name: &Spanned<String>,
        report: &mut ProblemReport<'_>,
    ) -> Option<&'a KindSource> {
        let found = self.all.iter().find(|other| other.name == *name.get_ref());
        let found = found.filter(|other| other.name != self.source.name);
        if found.is_none() {
            let names: Vec<&str> = self.all.iter().map(|other| other.name.as_str()).collect();
            let problem = format!(
                "`include` names `{}`, which is no other kind: there are {}",
                name.get_ref(),
                names.join(", ")
            );
            report.report_at(name.span().start, problem);
        }
        if let Some(found) = found {
            found.hash_into(&mut self.hash);
        }
        found
    }

    /// Its own rules after those it includes; an own rule replaces the included ones of its name.
    fn build_rules(&mut self, schema: Option<&Value>) -> Vec<GateRule> {
        let (path, text) =
            (self.source.folder.join("rules.toml"), self.source.file_text("rules.toml"));
        let mut report = ProblemReport::new(&path, text);
        let own = rule::parse_rules(text).unwrap_or_else(|found| {
            found.into_iter().for_each(|(at, problem)| report.report_at(at, problem));
            ParsedRules::default()
        });
        let mut rules: Vec<GateRule> = Vec::new();
        for name in &own.include {
            for rule in self.included_rules(name, &own, &mut report) {
                for field in schema.iter().flat_map(|schema| unknown_fields(schema, &rule)) {
                    let problem = format!(
                        "the included rule `{}` names `{field}`, which schema.json does not have",
                        rule.name
                    );
                    report.report_at(name.span().start, problem);
                }
                rules.push(rule);
            }
        }
        for (place, rule) in own.rules {
            for field in schema.iter().flat_map(|schema| unknown_fields(schema, &rule)) {
                let problem = format!(
                    "rule `{}` names `{field}`, which schema.json does not have",
                    rule.name
                );
                report.report_mention(&place, field.rsplit('.').next().unwrap_or(&field), problem);
            }
            rules.push(rule);
        }
        self.problems.append(&mut report.problems);
        rules
    }

    /// The rules of `kind`, or of `kind.rule` those of that name, without those that `own`
    /// replaces.
    fn included_rules(
        &mut self,
        name: &Spanned<String>,
        own: &ParsedRules,
        report: &mut ProblemReport<'_>,
    ) -> Vec<GateRule> {
        let (kind, wanted) = match name.get_ref().split_once('.') {
            Some((kind, rule)) => (kind, Some(rule)),
            None => (name.get_ref().as_str(), None),
        };
        let kind = Spanned::new(name.span(), kind.to_owned());
        let Some(other) = self.find_included(&kind, report) else { return Vec::new() };
        // Problems of the other kind are reported with that kind.
        let theirs = rule::parse_rules(other.file_text("rules.toml")).unwrap_or_default();
        if wanted.is_none() && !theirs.include.is_empty() {
            report.report_at(name.span().start, format!("`{}` includes others itself", other.name));
        }
        let all = theirs.rules.into_iter().map(|(_, rule)| rule);
        let rules: Vec<GateRule> =
            all.filter(|rule| wanted.is_none_or(|wanted| rule.name == wanted)).collect();
        if let Some(wanted) = wanted.filter(|_| rules.is_empty()) {
            let problem = format!("`{}` has no rule `{wanted}`", other.name);
            report.report_at(name.span().start, problem);
        }
        let kept =
            rules.into_iter().filter(|rule| own.rules.iter().all(|(_, own)| own.name != rule.name));
        kept.collect()
    }

    /// Its own labels and those of the kinds it includes. Built-in labels are known to be sound and
    /// are parsed on first use.
    fn build_labels(&mut self, schema: Option<&Value>, roles: &RoleNames) -> KindLabels {
        let (path, text) =
            (self.source.folder.join("labels.toml"), self.source.file_text("labels.toml"));
        // The longest table of all need not be parsed to learn that it includes nothing; labels may have the word.
        if self.source.built_in
            && !text.lines().any(|line| line.trim_start().starts_with("include"))
        {
            return KindLabels::of_sound_files(self.source.clone(), Vec::new(), roles);
        }
        let mut report = ProblemReport::new(&path, text);
        let labels = match DeTable::parse(text) {
            Ok(table) => {
                let names = read_includes(table.get_ref(), &mut report);
                let included =
                    names.iter().filter_map(|name| self.find_included(name, &mut report));
                let included = included.cloned().collect();
                let labels = KindLabels::of_sound_files(self.source.clone(), included, roles);
                match self.source.built_in {
                    true => labels,
                    false => labels.check(
                        table.get_ref(),
                        |section: &str| {
                            SECTIONS.contains(&section)
                                || schema.is_none_or(|schema| {
                                    has_field_path(schema, roles.field_of(section))
                                })
                        },
                        &mut report,
                    ),
                }
            }
            Err(error) => {
                report.report_toml(&error);
                KindLabels::of_sound_files(self.source.clone(), Vec::new(), roles)
            }
        };
        self.problems.append(&mut report.problems);
        labels
    }

    fn build_prompt(&mut self) -> String {
        let prompt = self.source.file_text("prompt.md").trim_end();
        if prompt.is_empty() {
            let (file, text) = (self.source.folder.join("prompt.md"), "is empty".to_owned());
            self.problems.push(KindProblem { file, line: None, text });
        }
        prompt.to_owned()
    }

    fn build_examples(&mut self, schema: Option<&Value>) -> Vec<KindExample> {
        let (folder, files) =
            (self.source.folder.join("examples"), self.source.folder_files("examples"));
        let examples = examples::read_examples(&folder, &files, schema);
        self.collect_problems(examples).unwrap_or_default()
    }
}

/// `include = ["kind"]`.
fn read_includes(table: &DeTable<'_>, report: &mut ProblemReport<'_>) -> Vec<Spanned<String>> {
    let entry = table.iter().find(|(key, _)| key.get_ref() == "include");
    let Some((key, value)) = entry else { return Vec::new() };
    let names: Option<Vec<_>> = value.get_ref().as_array().and_then(|list| {
        let names = list
            .iter()
            .map(|name| Some(Spanned::new(name.span(), name.get_ref().as_str()?.to_owned())));
        names.collect()
    });
    names.unwrap_or_else(|| {
        report.report_at(key.span().start, "`include` is a list of kinds: [\"invoice\"]");
        Vec::new()
    })
}

/// Whether the schema has this field; `a.b` is a field of a list.
fn has_field_path(schema: &Value, path: &str) -> bool {
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
}

/// Whether the schema requires this field; `a.b` is a field of a list.
fn is_required_path(schema: &Value, path: &str) -> bool {
    let (object, name) = match path.split_once('.') {
        Some((list, name)) => (schema.pointer(&format!("/properties/{list}/items")), name),
        None => (Some(schema), path),
    };
    let required = object.and_then(|object| object.get("required")?.as_array());
    required.is_some_and(|all| all.iter().any(|own| own == name))
}

/// Fields that a rule names and the schema does not have.
fn unknown_fields(schema: &Value, rule: &GateRule) -> Vec<String> {
    let fields = RuleCheck::named_fields(&rule.check).into_iter();
    fields.filter(|field| !has_field_path(schema, field)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{FieldType, KindSet, KindsError};
    use docmill_core::config::KindsConfig;
    use std::path::PathBuf;

    fn copy_of_invoice(at: &Path) -> PathBuf {
        let folder = at.join("invoice");
        let (_, files) = crate::kinds::built_in::KINDS[0];
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn load(path: &Path) -> Result<KindSet, KindsError> {
        KindSet::load(&KindsConfig { path: path.to_owned(), ..KindsConfig::default() })
    }

    fn change(file: PathBuf, from: &str, to: &str) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{}", file.display());
        std::fs::write(file, text.replacen(from, to, 1)).unwrap();
    }

    #[test]
    fn the_built_in_kinds_are_sound() {
        for (name, files) in crate::kinds::built_in::KINDS {
            let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
            assert_eq!(check_files(name, files.collect()), [], "{name}");
        }
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        for name in ["invoice", "receipt", "credit_note", "contract", "generic"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let invoice = kinds.get("invoice").unwrap();
        assert_eq!(invoice.fields().count(), 33);
        assert!(invoice.fields().any(|f| f == ("due_date", FieldType::Date)));
        assert!(invoice.fields().any(|f| f == ("line_items", FieldType::List)));
        assert!(invoice.examples.len() >= 3);
        for language in ["en", "de", "fr", "nl", "es", "it", "pt", "sv", "da", "no", "pl"] {
            assert!(invoice.labels.languages().any(|known| known == language), "{language}");
        }
        assert!(kinds.get("nonsense").is_none());
    }

    #[test]
    fn a_folder_replaces_the_kind_of_its_name_and_any_change_is_another_version() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        let version = |kinds: &KindSet, name: &str| kinds.get(name).unwrap().version.clone();
        let built_in = KindSet::load(&KindsConfig::default()).unwrap();
        let same = load(root.path()).unwrap();
        assert_eq!(version(&same, "invoice"), version(&built_in, "invoice"));
        assert!(!same.get("invoice").unwrap().built_in && same.get("receipt").unwrap().built_in);
        for file in source::FILES.into_iter().chain(["examples/services.txt"]) {
            let before = load(root.path()).unwrap();
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, format!("{text}\n")).unwrap();
            let after = load(root.path()).unwrap();
            assert_ne!(version(&after, "invoice"), version(&before, "invoice"), "{file}");
            // The kind that includes it has a new version as well.
            assert_ne!(version(&after, "credit_note"), version(&before, "credit_note"), "{file}");
        }
    }

    #[test]
    fn a_draft_takes_the_place_of_its_kind_and_is_refused_by_file_and_line() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let version = |kinds: &KindSet, name: &str| kinds.get(name).unwrap().version.clone();
        let mut files = kinds.files_of("invoice").unwrap().clone();
        let same = kinds.with_draft("invoice", files.clone()).unwrap();
        files.insert("rules.toml".to_owned(), format!("{}\n", files["rules.toml"]));
        let changed = kinds.with_draft("invoice", files.clone()).unwrap();
        let asked = |kinds: &KindSet| kinds.get("invoice").unwrap().asked_version.clone();
        assert_eq!(asked(&changed), asked(&kinds), "other rules ask a model nothing else");
        for file in ["prompt.md", "schema.json", "examples/services.txt"] {
            let mut files = files.clone();
            let text = files[file].replacen("invoice", "bill", 1);
            files.insert(file.to_owned(), text.replacen("Invoice", "Bill", 1));
            let other = kinds.with_draft("invoice", files).unwrap();
            assert_ne!(asked(&other), asked(&kinds), "{file}");
        }
        for name in ["invoice", "credit_note"] {
            assert_eq!(version(&same, name), version(&kinds, name), "{name}");
            assert_ne!(version(&changed, name), version(&kinds, name), "{name}");
        }
        let rules = files["rules.toml"].replacen("check = \"required\"", "check = \"requird\"", 1);
        files.insert("rules.toml".to_owned(), rules);
        let refused = kinds.with_draft("invoice", files).unwrap_err().to_string();
        assert!(refused.contains("invoice/rules.toml:"), "{refused}");
        assert!(kinds.files_of("nothing").is_none());
    }

    #[test]
    fn every_problem_is_said_by_file_and_line() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        change(
            folder.join("rules.toml"),
            "[[rule]]",
            "[[rule]]\nname = 'r'\ncheck = 'required'\nfields = ['totl']\nconsequence = 'flag'\n\n[[rule]]\nname = 's'\ncheck = 'requird'\nfields = []\nconsequence = 'flag'\n\n[[rule]]",
        );
        let (kinds, problems) = check_folder(root.path());
        let count = kinds.len();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(count == 1 && said.len() == 1, "{said:?}");
        let is_about =
            |file: &str, text: &str| said.iter().any(|it| it.contains(file) && it.contains(text));
        assert!(is_about("invoice/rules.toml:", "no check `requird`"), "{said:?}");
        change(folder.join("rules.toml"), "requird", "required");
        change(folder.join("labels.toml"), "[total]", "[totla]");
        std::fs::remove_file(folder.join("examples/services.json")).unwrap();
        let (_, problems) = check_folder(&folder);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let is_about =
            |file: &str, text: &str| said.iter().any(|it| it.contains(file) && it.contains(text));
        assert!(is_about("invoice/rules.toml:", "rule `r` names `totl`"), "{said:?}");
        assert!(is_about("invoice/labels.toml:", "[totla] is neither"), "{said:?}");
        assert!(is_about("examples/services.txt:", "services.json"), "{said:?}");
        std::fs::remove_file(folder.join("prompt.md")).unwrap();
        let text = load(root.path()).unwrap_err().to_string();
        assert!(text.contains("invoice/prompt.md: is missing"), "{text}");
    }

    #[test]
    fn an_included_kind_has_to_exist_and_its_rules_to_fit() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        std::fs::write(folder.join("rules.toml"), "include = [\n'invoic']").unwrap();
        let (_, problems) = check_folder(root.path());
        assert_eq!(problems[0].line, Some(2));
        assert!(problems[0].text.contains("`invoic`"), "{problems:?}");
        std::fs::write(folder.join("rules.toml"), "include = ['contract']").unwrap();
        let (_, problems) = check_folder(root.path());
        let about = |field| problems.iter().any(|it| it.text.contains(field));
        assert!(about("contract_number") && about("first_party"), "{problems:?}");
        std::fs::write(folder.join("rules.toml"), "include = ['receipt.requird']").unwrap();
        let (_, problems) = check_folder(root.path());
        assert!(problems[0].text.contains("no rule `requird`"), "{problems:?}");
        std::fs::write(folder.join("rules.toml"), "include = ['receipt.required']").unwrap();
        assert_eq!(check_folder(root.path()).1, [], "one rule of another kind");
        std::fs::write(folder.join("rules.toml"), "include = ['invoice']").unwrap();
        assert!(!check_folder(root.path()).1.is_empty(), "a kind does not include itself");
    }

    #[test]
    fn a_role_is_of_one_field_of_the_schema() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        change(folder.join("schema.json"), "\"order_number\": {", "\"purchase\": {");
        change(folder.join("rules.toml"), "\"order_number\", ", "\"purchase\", ");
        std::fs::remove_dir_all(folder.join("examples")).unwrap();
        let description = std::fs::read_to_string(folder.join("kind.toml")).unwrap();
        for (roles, problem) in [
            ("order_number = 'purchase'", None),
            ("order_number = 'purchased'", Some("does not have")),
            ("order = 'purchase'", Some("`order` is none of supplier_name, ")),
            ("total = 'subtotal'", Some("a field of the role's name")),
            (
                "order_number = 'purchase'\ncurrency = 'purchase'",
                Some("a field of the role's name"),
            ),
            ("order_number = 7", Some("names a field")),
        ] {
            let text = format!("{description}\n[roles]\n{roles}\n");
            std::fs::write(folder.join("kind.toml"), text).unwrap();
            let (_, problems) = check_folder(root.path());
            let said: Vec<&str> = problems.iter().map(|it| it.text.as_str()).collect();
            let about = problem.map(|problem| said.iter().any(|text| text.contains(problem)));
            assert!(about.unwrap_or(said.is_empty()), "{roles}: {said:?}");
        }
    }

    #[test]
    fn a_field_that_no_model_is_asked_for_is_optional_and_left_out_of_its_schema() {
        let root = tempfile::tempdir().unwrap();
        let folder = copy_of_invoice(root.path());
        let invoice = load(root.path()).unwrap().get("invoice").unwrap().as_ref().clone();
        let asked = invoice.asked_schema();
        let has = |path: &str| has_field_path(&asked, path);
        assert!(invoice.has_field("document_type") && !has("document_type"));
        assert!(has("amount_due") && has("line_items.amount") && has("taxes.rate"));
        assert!(!has("line_items.price_base_unit") && !has("taxes.exemption_reason"));
        for (wrong, problem) in [("totle", "does not have"), ("taxes.rate", "requires")] {
            let path = folder.join("kind.toml");
            let before = std::fs::read_to_string(&path).unwrap();
            change(path.clone(), "\"document_type\"", &format!("\"{wrong}\""));
            let (_, problems) = check_folder(root.path());
            assert!(problems.iter().any(|it| it.text.contains(problem)), "{wrong}: {problems:?}");
            std::fs::write(path, before).unwrap();
        }
    }

    #[test]
    fn a_default_that_is_no_kind_and_an_empty_folder_are_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(load(root.path()).unwrap_err().to_string().contains("no folder"));
        let config = KindsConfig { default: "recipt".to_owned(), ..KindsConfig::default() };
        assert!(KindSet::load(&config).unwrap_err().to_string().contains("recipt"));
    }
}
