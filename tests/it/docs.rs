//! The manual is correct: its queries run; its codes, metrics, settings, modules and links exist.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use docmill_core::config::Config;
use docmill_core::fault::Fault;
use docmill_core::model::OutcomeReason;
use sqlx::AssertSqlSafe;

use crate::support::postgres::TestDatabase;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Every page of the documentation, laboratory notes too, as a path from the project's root.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".into(), "CONTRIBUTING.md".into(), "CHANGELOG.md".into()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
            if path.ends_with(".md") {
                pages.push(path);
            } else if root().join(&path).is_dir() {
                folders.push(path);
            }
        }
    }
    pages
}

/// The texts between two marks, in order.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

/// Words in the text that begin with `docmill_` and go on in lower case.
fn words_beginning(text: &str, prefix: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .filter(|word| word.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

/// The blocks that a reader may paste as they are; those marked otherwise (`sql example`) are left.
fn queries(page: &str) -> Vec<String> {
    let blocks: Vec<String> =
        between(&read(page), "```sql\n", "```").into_iter().map(str::to_owned).collect();
    assert!(blocks.len() > 5, "{page} has only {} queries", blocks.len());
    blocks
}

#[tokio::test]
async fn every_query_in_the_docs_runs() {
    let database = TestDatabase::create().await;
    // One connection, as a reader's psql: the first block of each page sets its search path. The
    // producers' page runs first, so that the operators' queries find rows.
    let mut session = database.pool().acquire().await.unwrap();
    for page in ["docs/guides/producers.md", "docs/guides/operations.md"] {
        for query in queries(page) {
            let result = sqlx::raw_sql(AssertSqlSafe(query.as_str())).execute(&mut *session).await;
            assert!(result.is_ok(), "{page}: {}\n{query}", result.unwrap_err());
        }
    }
    let waiting: i64 = sqlx::query_scalar("SELECT count(*) FROM ops_in_flight")
        .fetch_one(&mut *session)
        .await
        .unwrap();
    assert_eq!(waiting, 4, "each ingestion of the producers' page waits for its message");
}

#[test]
fn every_reason_and_every_fault_is_explained_to_the_operator() {
    let page = read("docs/guides/operations.md");
    for reason in OutcomeReason::ALL {
        let row = format!("\n| `{}` | ", reason.code());
        assert!(
            page.contains(&row),
            "docs/guides/operations.md does not explain {}",
            reason.code()
        );
    }
    // Additional ends of an attempt.
    let (_, faults) = page.split_once("An attempt may also end in a fault").unwrap();
    for fault in [
        Fault::Transient,
        Fault::Throttled(None),
        Fault::Unavailable,
        Fault::Denied,
        Fault::Misconfigured,
        Fault::Paused,
        Fault::OverBudget(std::time::Duration::ZERO),
        Fault::Batched(std::time::Duration::ZERO),
        Fault::Missing,
        Fault::Rejected,
        Fault::Interrupted,
        Fault::Internal,
    ] {
        let code = format!("`{}`", fault.code());
        assert!(faults.contains(&code), "docs/guides/operations.md does not explain {code}");
    }
}

#[test]
fn the_operators_page_names_every_metric_and_no_other() {
    let page = read("docs/guides/operations.md");
    let exported: BTreeSet<String> =
        between(&read("crates/core/src/metrics.rs"), "= \"docmill_", "\"")
            .into_iter()
            .map(|rest| format!("docmill_{rest}"))
            .collect();
    // Not metrics: the clock in SQL, the roles, a login in an example.
    let others = [
        "docmill_now",
        "docmill_reader",
        "docmill_worker",
        "docmill_operator",
        "docmill_producer",
        "docmill_migrator",
    ];
    let mut named = words_beginning(&page, "docmill_");
    named.retain(|word| !others.contains(&word.as_str()) && word != "docmill_production");
    assert!(exported.len() > 10, "the names are read from metrics.rs");
    assert_eq!(named, exported);
}

#[test]
fn the_example_settings_are_the_defaults_and_leave_none_out() {
    let path = root().join("config/docmill.example.toml");
    assert_eq!(Config::load(Some(&path)).unwrap(), Config::default());

    let written: toml::Table = toml::from_str(&read("config/docmill.example.toml")).unwrap();
    let every = toml::Table::try_from(Config::default()).unwrap();
    for (section, keys) in &every {
        for key in keys.as_table().unwrap().keys() {
            let shown = written.get(section).and_then(|section| section.get(key));
            assert!(shown.is_some(), "config/docmill.example.toml leaves out {section}.{key}");
        }
    }
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for target in between(&read(&page), "](", ")") {
            let file = target.split('#').next().unwrap();
            if !target.starts_with("https://") && !folder.join(file).exists() {
                dead.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn every_library_and_every_module_of_the_program_is_on_the_map() {
    let map = read("docs/explanation/architecture.md");
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let libraries = names("crates");
    assert!(libraries.len() > 5, "only {libraries:?} in crates/");
    let files = names("src");
    let modules = files.iter().filter_map(|name| name.strip_suffix(".rs"));
    for name in libraries.iter().map(String::as_str).chain(modules) {
        let is_shown = matches!(name, "lib" | "main") || map.contains(&format!("| `{name}` |"));
        assert!(is_shown, "docs/explanation/architecture.md has no row for {name}");
    }
}

#[test]
fn every_rule_and_check_of_the_built_in_kinds_is_explained() {
    let page = read("docs/reference/gate.md");
    let kinds =
        docmill_gate::kinds::KindSet::load(&docmill_core::config::KindsConfig::default()).unwrap();
    let mut rules = 0;
    for rule in kinds.iter().flat_map(|kind| &kind.rules) {
        rules += 1;
        assert!(
            page.contains(&format!("| `{}` |", rule.name)),
            "docs/reference/gate.md lacks {}",
            rule.name
        );
    }
    assert!(rules > 30);
    let file = read("crates/gate/src/kinds/rule/read.rs");
    let arms =
        file.lines().filter_map(|line| line.strip_prefix("            \"")?.split_once("\" => "));
    let checks: BTreeSet<&str> = arms.flat_map(|(names, _)| names.split("\" | \"")).collect();
    assert!(checks.len() > 10, "{checks:?}");
    for check in checks {
        assert!(
            page.contains(&format!("| `{check}` |")),
            "docs/reference/gate.md lacks the check {check}"
        );
    }
}

#[test]
fn every_sample_has_an_expected_end_and_every_end_a_sample() {
    let expected: BTreeSet<String> = read("samples/EXPECT.tsv")
        .lines()
        .skip(1)
        .map(|line| line.split('\t').next().unwrap().to_owned())
        .collect();
    let mut drawn: BTreeSet<String> = std::fs::read_dir(root().join("samples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    drawn.remove("EXPECT.tsv");
    assert!(drawn.len() >= 10);
    assert_eq!(drawn, expected);
}
