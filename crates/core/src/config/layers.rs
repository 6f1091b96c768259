//! The reading of file and environment over the defaults, and what is said of what cannot be read.
//!
//! A problem names position or key and what would be right, never a line of the file or a value:
//! what is mistyped is often an address with a password, or a key without its quotes.

use std::path::Path;

use config::ConfigError;

use super::Config;

/// Settings that the environment gives as a list, separated by commas.
const LISTS: [&str; 7] = [
    "ocr.languages",
    "llm.scheduler.models",
    "ocr.providers",
    "ocr.document_ai.languages",
    "store.allow",
    "webhooks.allowed_networks",
    "web.proxy.networks",
];

/// The whole configuration file as a variable, where a platform hands over texts and no files.
const TEXT_VARIABLE: &str = "DOCMILL_CONFIG_TEXT";

/// The values that could be read, and the problems of the others.
pub(super) struct LoadedConfig {
    /// Sections that could not be read have their defaults.
    pub(super) config: Config,
    /// Section (empty: the file as a whole) and what is wrong with it.
    pub(super) problems: Vec<(String, String)>,
}

impl LoadedConfig {
    fn from_problem(problem: String) -> Self {
        Self { config: Config::default(), problems: vec![(String::new(), problem)] }
    }
}

/// Merges the file and the environment (`DOCMILL__SECTION__KEY`) over the defaults.
///
/// A single underscore after the prefix is deliberately not ours: Kubernetes injects variables
/// such as `DOCMILL_PORT` for a service of that name.
pub(super) fn load_layers(file: Option<&Path>, environment: Vec<(String, String)>) -> LoadedConfig {
    let given = std::env::var(TEXT_VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let named = match (file, given) {
        (Some(_), Some(_)) => {
            let problem = format!("both a configuration file and {TEXT_VARIABLE} are given");
            return LoadedConfig::from_problem(problem);
        }
        (Some(path), None) => match std::fs::read_to_string(path) {
            Ok(text) => Some((path, text)),
            Err(error) => {
                let place = path.display();
                let problem = format!("the configuration file {place} cannot be read: {error}");
                return LoadedConfig::from_problem(problem);
            }
        },
        (None, given) => given.map(|text| (Path::new(TEXT_VARIABLE), text)),
    };
    merge_layers(named.as_ref().map(|(path, text)| (*path, text.as_str())), environment)
}

/// As [`load_layers`], of a file whose text is known.
pub(super) fn merge_layers(
    file: Option<(&Path, &str)>,
    environment: Vec<(String, String)>,
) -> LoadedConfig {
    let mut builder = config::Config::builder();
    if let Some((path, text)) = file {
        // Parsed separately, because only this error has the position of the TOML problem.
        if let Err(error) = toml::from_str::<toml::Table>(text) {
            return LoadedConfig::from_problem(describe_syntax(path, text, &error));
        }
        builder = builder.add_source(config::File::from_str(text, config::FileFormat::Toml));
    }
    let (lists, plain) = environment.into_iter().partition(|(name, _)| is_list(name));
    // Values stay the texts that they are: `00123` and `1e5` may be passwords. Where a number is
    // wanted it is made of the text.
    let plain = environment_source(plain);
    let lists = LISTS
        .iter()
        .fold(environment_source(lists).try_parsing(true).list_separator(","), |source, key| {
            source.with_list_parse_key(key)
        });
    match builder.add_source(plain).add_source(lists).build() {
        Ok(merged) => every_problem(&merged),
        Err(error) => LoadedConfig::from_problem(describe_problem("", &error)),
    }
}

fn environment_source(pairs: Vec<(String, String)>) -> config::Environment {
    config::Environment::with_prefix("DOCMILL")
        .prefix_separator("__")
        .separator("__")
        .source(Some(pairs.into_iter().collect()))
}

fn is_list(variable: &str) -> bool {
    let key = variable.to_lowercase().replace("__", ".");
    key.strip_prefix("docmill.").is_some_and(|key| LISTS.contains(&key))
}

/// Reads the merged settings; on failure reads section by section, so that one wrong section does
/// not hide the mistakes of the next.
fn every_problem(merged: &config::Config) -> LoadedConfig {
    let error = match merged.clone().try_deserialize::<Config>() {
        Ok(config) => return LoadedConfig { config, problems: Vec::new() },
        Err(error) => error,
    };
    let mut problems = Vec::new();
    let mut readable = config::Config::builder();
    for (section, value) in merged.cache.clone().into_table().unwrap_or_default() {
        let alone = config::Config::builder()
            .set_override(section.as_str(), value.clone())
            .and_then(|builder| builder.build())
            .and_then(config::Config::try_deserialize::<Config>);
        match alone {
            Ok(_) => {
                readable = match readable.set_override(section.as_str(), value) {
                    Ok(readable) => readable,
                    Err(error) => {
                        return LoadedConfig::from_problem(describe_problem(&section, &error));
                    }
                }
            }
            Err(error) => {
                let problem = describe_problem(&section, &error);
                problems.push((section, problem));
            }
        }
    }
    if problems.is_empty() {
        problems.push((String::new(), describe_problem("", &error)));
    }
    problems.sort();
    let config = readable.build().and_then(config::Config::try_deserialize::<Config>);
    LoadedConfig { config: config.unwrap_or_default(), problems }
}

/// Where the file stops being TOML, and the parser's own words, which quote nothing of it.
fn describe_syntax(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}, line {line}, column {column}: {}", path.display(), error.message())
}

/// A problem in words: its key, else the section, and what would be right.
fn describe_problem(section: &str, error: &ConfigError) -> String {
    let (key, what) = split_problem(error);
    match key.map(|key| dot_after_index(&key)).as_deref().unwrap_or(section) {
        "" => what,
        key => format!("{key}: {what}"),
    }
}

/// The key as docs/reference/configuration.md writes it: the `config` crate leaves out the dot
/// after an index.
fn dot_after_index(key: &str) -> String {
    let mut dotted = String::with_capacity(key.len() + 1);
    for part in key.split_inclusive(']') {
        if dotted.ends_with(']') && !part.starts_with(['.', '[']) {
            dotted.push('.');
        }
        dotted.push_str(part);
    }
    dotted
}

/// The key, if it is known, and what is wrong with its value, without the value.
fn split_problem(error: &ConfigError) -> (Option<String>, String) {
    match error {
        ConfigError::Type { unexpected, expected, key, .. } => {
            // `string "…"`, `boolean `…``: what it is, and then the thing itself.
            let found = unexpected.to_string();
            let found = found.split(['"', '`']).next().unwrap_or_default().trim_end();
            (key.clone(), format!("expected {expected}, found a {found}"))
        }
        ConfigError::At { error, key, .. } => {
            let (inner, what) = split_problem(error);
            (key.clone().or(inner), what)
        }
        ConfigError::NotFound(key) => (Some(key.clone()), "is missing".to_owned()),
        ConfigError::Message(message) => (None, without_value(message)),
        _ => (None, "cannot be read".to_owned()),
    }
}

/// A message of serde without the value. Of messages that quote a value only the expectation is
/// kept: it comes last and contains no input.
fn without_value(message: &str) -> String {
    const NAME_KEYS: [&str; 3] = ["unknown field `", "missing field `", "duplicate field `"];
    const QUOTE: [&str; 4] =
        ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `"];
    let begins = |openings: &[&str]| openings.iter().any(|opening| message.starts_with(opening));
    if begins(&NAME_KEYS) {
        return message.to_owned();
    }
    match message.rsplit_once("expected ") {
        Some((_, expected)) if begins(&QUOTE) && expected.starts_with("struct ") => {
            "this is a section, its keys have values of their own".to_owned()
        }
        Some((_, "a duration")) if begins(&QUOTE) => {
            "expected a duration such as 20s, 5m or 8h".to_owned()
        }
        Some((_, expected)) if begins(&QUOTE) => format!("expected {expected}"),
        _ if message.contains("socket address") => {
            "expected an IP address and a port, such as 127.0.0.1:8090".to_owned()
        }
        _ => "this value cannot be used, see docs/reference/configuration.md".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "SECRETMARK";

    fn variable(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn load_text(text: &str) -> LoadedConfig {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        load_layers(Some(file.path()), Vec::new())
    }

    fn said(loaded: &LoadedConfig) -> String {
        loaded.problems.iter().map(|(_, problem)| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_file_that_is_no_toml_is_named_by_position_and_none_of_its_words_is_repeated() {
        for (text, place) in [
            ("[llm]\nmodel = 'm'\napi_key = sk-live-SECRETMARK\n", "line 3, column 11"),
            ("[database]\nurl = \"postgres://u:SECRETMARK@h/d\n", "line 2"),
            ("[llm]\napi_key SECRETMARK\n", "line 2"),
            ("[llm]\napi_key = 'SECRETMARK'\napi_key = 'SECRETMARK'\n", "line 3"),
        ] {
            let said = said(&load_text(text));
            assert!(said.contains(place), "{text:?}: {said}");
            assert!(!said.contains(SECRET), "{text:?}: {said}");
        }
    }

    #[test]
    fn of_a_file_that_cannot_be_read_only_that_is_told_and_nothing_is_called_missing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[database\n").unwrap();
        for path in [file.path(), Path::new("/nowhere/docmill.toml")] {
            let told = Config::load_for(Some(path), crate::config::ConfigNeeds::WORKER);
            let told = told.unwrap_err().to_string();
            assert!(!told.contains("missing") && told.contains("1 problem"), "{told}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_sort_is_named_by_its_key_and_never_repeated() {
        for (text, key, right) in [
            ("database = 'SECRETMARK'", "database", "a section"),
            ("[queue]\nvisibility = 'SECRETMARK'", "queue.visibility", "such as 20s"),
            ("[limits]\ndocument_bytes = 'SECRETMARK'", "limits.document_bytes", "64KiB"),
            ("[llm]\nprovider = 'SECRETMARK expected it'", "llm.provider", "cannot be used"),
            ("[ocr]\ndpi = 'SECRETMARK'", "ocr.dpi", "integer"),
            ("[cost]\ndaily_budget = 'SECRETMARK'", "cost.daily_budget", "expected"),
            ("[worker]\naddress = 'SECRETMARK'", "worker.address", "127.0.0.1:8090"),
            ("[[llm.chain]]\nmodel = ['SECRETMARK']", "llm.chain[0].model", "string"),
        ] {
            let said = said(&load_text(text));
            assert!(said.contains(key) && said.contains(right), "{text:?}: {said}");
            assert!(!said.contains(SECRET), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_section_that_is_given_one_value_by_the_environment_does_not_show_it() {
        let forgotten = variable("DOCMILL__DATABASE", "postgres://u:SECRETMARK@h/d");
        let said = said(&load_layers(None, vec![forgotten]));
        assert!(said.contains("database") && !said.contains(SECRET), "{said}");
    }

    #[test]
    fn a_secret_keeps_its_text_also_if_it_looks_like_a_number() {
        for written in ["00123", "1e5", "true", "1,2", "0x10"] {
            let loaded = load_layers(None, vec![variable("DOCMILL__LLM__API_KEY", written)]);
            assert_eq!(loaded.config.llm.api_key.reveal(), written, "{}", said(&loaded));
        }
        let said = said(&load_text("[llm]\napi_key = 1e5\n"));
        assert!(said.contains("llm.api_key: expected text in quotes"), "{said}");
    }

    #[test]
    fn numbers_and_switches_are_made_of_the_texts_of_the_environment() {
        let pairs = vec![
            variable("DOCMILL__WORKER__SLOTS", "7"),
            variable("DOCMILL__DATABASE__IAM", "true"),
            variable("DOCMILL__TELEMETRY__SAMPLE", "0.25"),
            variable("DOCMILL__COST__DAILY_BUDGET", "2.50"),
            variable("DOCMILL__LIMITS__DOCUMENT_BYTES", "4096"),
        ];
        let loaded = load_layers(None, pairs);
        assert!(loaded.problems.is_empty(), "{}", said(&loaded));
        let config = loaded.config;
        assert_eq!((config.worker.slots, config.database.iam), (7, true));
        assert!((config.telemetry.sample - 0.25).abs() < 1e-9);
        assert_eq!(config.cost.daily_budget.to_string(), "2.50");
        assert_eq!(config.limits.document_bytes.0, 4096);
    }

    #[test]
    fn misspelt_keys_of_several_sections_are_refused_at_once_by_name() {
        let environment = vec![
            variable("DOCMILL__QUEUE__VISIBILTY", "1s"),
            variable("DOCMILL__WORKER__DRIAN", "1s"),
        ];
        let said = said(&load_layers(None, environment));
        assert!(said.contains("visibilty") && said.contains("drian"), "{said}");
    }

    #[test]
    fn a_service_link_variable_of_kubernetes_is_not_taken_for_a_setting() {
        let loaded = load_layers(None, vec![variable("DOCMILL_PORT", "tcp://10.0.0.1:80")]);
        assert!(loaded.problems.is_empty());
        assert_eq!(loaded.config, Config::default());
    }

    #[test]
    fn the_order_of_providers_may_come_from_the_environment() {
        use crate::config::OcrProvider::{DocumentAi, Tesseract};
        let order = variable("DOCMILL__OCR__PROVIDERS", "document_ai,tesseract");
        let loaded = load_layers(None, vec![order]);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        assert_eq!(loaded.config.ocr.providers, [DocumentAi, Tesseract]);
    }

    #[test]
    fn places_may_come_from_the_environment_and_as_tables_from_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let table = "[[store.allow]]\nbucket = 'up'\nprefix = 'in/'\ntenant = 'acme'\n";
        std::fs::write(file.path(), table).unwrap();
        let loaded = load_layers(Some(file.path()), Vec::new());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        assert_eq!(loaded.config.store.allow[0].tenant.as_deref(), Some("acme"));
        let allow = ("DOCMILL__STORE__ALLOW".to_owned(), "a/b/,c/{tenant}/".to_owned());
        let loaded = load_layers(None, vec![allow]);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let places: Vec<String> =
            loaded.config.store.allow.iter().map(ToString::to_string).collect();
        assert_eq!(places, ["a/b/", "c/{tenant}/"]);
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[queue]\nwait = '3s'\nvisibility = '40s'\n").unwrap();
        let environment = vec![variable("DOCMILL__QUEUE__WAIT", "7s")];
        let config = load_layers(Some(file.path()), environment).config;
        assert_eq!(config.queue.wait.as_secs(), 7);
        assert_eq!(config.queue.visibility.as_secs(), 40);
    }
}
