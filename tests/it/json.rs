//! `docs/json.md` against what the commands print.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::process::docmill;
use crate::support::world::World;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md");

/// Field and type, by command.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut commands = BTreeMap::new();
    for section in page.split("\n## `docmill ").skip(1) {
        let (command, text) = section.split_once('`').unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let field = cells[0].strip_prefix('`')?.strip_suffix('`')?;
            Some((field.to_owned(), cells[1].to_owned()))
        };
        let fields = text.lines().filter(|line| line.starts_with("| `")).filter_map(row);
        commands.insert(command.to_owned(), fields.collect());
    }
    commands
}

/// The paths of all fields, but for those inside of a document's own data.
fn paths(value: &Value, at: &str, free: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                if !free.contains(path.as_str()) {
                    paths(value, &path, free, found);
                }
                found.insert(path);
            }
        }
        Value::Array(elements) => {
            let at = if at.is_empty() { String::new() } else { format!("{at}[]") };
            elements.iter().for_each(|element| paths(element, &at, free, found));
        }
        _ => {}
    }
}

fn check(command: &str, printed: &Value) {
    let documented = documented();
    let fields = documented.get(command).unwrap_or_else(|| panic!("{command} is not documented"));
    let is_free = |(_, kind): &(&String, &String)| kind.starts_with("data");
    let free = fields.iter().filter(is_free).map(|(name, _)| name.as_str()).collect();
    let mut found = BTreeSet::new();
    paths(printed, "", &free, &mut found);
    for path in &found {
        assert!(fields.contains_key(path), "docs/json.md, {command}: `{path}` is missing");
    }
    // What lies inside of an empty list or of null does not show.
    for path in fields.keys().filter(|path| !path.contains('.')) {
        assert!(found.contains(path), "docs/json.md, {command}: `{path}` does not exist");
    }
}

fn run(world: &World, arguments: &[&str]) -> Value {
    let output = docmill(world, &[arguments, &["--json"]].concat(), &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {said}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_commands_print_is_what_the_page_says() {
    let world = World::new().await;
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/invoice_en.pdf");
    let sample = sample.to_str().unwrap();
    check("process", &run(&world, &["process", sample]));
    let submitted = run(&world, &["submit", sample, "--tenant", "t", "--kind", "invoice"]);
    check("submit", &submitted);
    check("search", &run(&world, &["search", "invoice_en"]));
    let id = submitted[0]["ingestion_id"].as_str().unwrap();
    let worker = world.worker().await;
    world.until(id.parse().unwrap(), "status", "completed").await;
    world.until_empty().await;
    check("status", &run(&world, &["status", id]));
    let listed = run(&world, &["list"]);
    let (status, printed) = (&documented()["status"], listed[0].as_object().unwrap());
    assert!(printed.len() > 20 && printed.keys().all(|field| status.contains_key(field)));
    check("retry", &run(&world, &["retry", id]));
    world.until(id.parse().unwrap(), "status", "completed").await;
    worker.stop().await;
    check("pause", &run(&world, &["pause", "--kind", "receipt"]));
    world
        .execute(
            "UPDATE docmill.ingestion SET status = 'failed', reason = 'no_text',
        valid_structured_data = false, needs_human_review = true",
        )
        .await;
    check("dashboard", &run(&world, &["dashboard"]));
    check("doctor", &run(&world, &["doctor"]));
    check("janitor", &run(&world, &["janitor", "--dry-run"]));
    check("block", &run(&world, &["block", &"ab".repeat(32)]));
    check("retention", &run(&world, &["retention", "set", "--tenant", "t", "--days", "30"]));
    check("erase", &run(&world, &["erase", "--tenant", "t", "--dry-run"]));
    check("migrate", &run(&world, &["migrate"]));
    check("config check", &run(&world, &["config", "check"]));
}

#[test]
fn every_command_has_a_man_page_and_every_shell_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let program = env!("CARGO_BIN_EXE_docmill");
    let made = std::process::Command::new(program).arg("man").arg(&pages).output().unwrap();
    assert!(made.status.success());
    for page in ["docmill.1", "docmill-submit.1", "docmill-dead-redrive.1"] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".SH"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let made = std::process::Command::new(program).args(["completions", shell]).output();
        let script = String::from_utf8(made.unwrap().stdout).unwrap();
        assert!(script.contains("dashboard"), "{shell}");
    }
}
