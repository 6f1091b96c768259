//! Keeps the workspace layered: a crate uses those that docs/architecture.md draws below it, which
//! Cargo then enforces, and a module names only modules of a lower layer of its own crate or of
//! crates that its manifest names.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod dependencies;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Lowest first. Modules that share a line do not know each other.
const LAYERS: &[&[&str]] = &[
    &["fault"],
    &["model", "retry"],
    &["config", "metrics", "notation", "xml"],
    &["aws", "cluster", "cpu", "http", "kinds", "shutdown"],
    &["ledger", "telemetry"],
    &["db", "pages", "store"],
    &["throttle"],
    &["llm", "ocr", "queue"],
    &["extract", "gate", "scheduler"],
    &["pipeline"],
    &["runner"],
    &["eval", "ops", "worker"],
    &["web"],
    &["app"],
    &["cli"],
];
/// What the table tests of formats and gate do not wait for.
const HEAVY: &[&str] = &["aws-", "hyper", "opencv", "reqwest", "sqlx", "tesseract"];

/// The libraries' folders, by name.
fn libraries() -> BTreeSet<String> {
    let folders = fs::read_dir("crates").unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    assert!(names.len() > 5, "the libraries are looked for in crates/: {names:?}");
    names
}

fn manifest(library: &str) -> toml::Table {
    fs::read_to_string(format!("crates/{library}/Cargo.toml")).unwrap().parse().unwrap()
}

/// The words in backticks in one cell of a table.
fn words(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The table of libraries in docs/architecture.md: what each uses, and its modules.
fn drawn() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let page = fs::read_to_string("docs/architecture.md").unwrap();
    let (_, table) = page.split_once("| crate | uses | modules |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, uses, modules, ..] = *cells else { panic!("no row of the table: {row}") };
        (name.trim_matches('`').to_owned(), (words(uses), words(modules)))
    })
    .collect()
}

/// Every source file of the workspace but the stand-ins.
fn every_source() -> Vec<(String, String, String)> {
    let mut files = Vec::new();
    sources(Path::new("src"), None, &mut files);
    for library in libraries() {
        sources(&Path::new("crates").join(library).join("src"), None, &mut files);
    }
    files
}

fn layer_of(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| layer.contains(&module))
        .unwrap_or_else(|| panic!("module `{module}` has no place in LAYERS"))
}

/// Every `.rs` file below `dir`, as (top-level module, path, text without line comments).
fn sources(dir: &Path, module: Option<&str>, found: &mut Vec<(String, String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            sources(&path, Some(module), found);
        } else if !matches!(module, "lib" | "main") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().map(|line| line.split("//").next().unwrap());
            let code = code.collect::<Vec<_>>().join("\n");
            found.push((module.to_owned(), path.display().to_string(), code));
        }
    }
}

/// The first path segments that follow `crate::`, through braces of any depth.
fn modules_named_in(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.push(first_word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.push(first_word(list.get(start..at).unwrap()));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn imports_run_downward_only() {
    let files = every_source();
    let mut upward = Vec::new();
    for (module, path, code) in &files {
        for target in modules_named_in(code) {
            if target != *module && layer_of(&target) >= layer_of(module) {
                upward.push(format!("{path}: {module} -> {target}"));
            }
        }
    }
    assert!(upward.is_empty(), "imports must run downward:\n{}", upward.join("\n"));
}

#[test]
fn sql_is_written_in_one_room_only() {
    let files = every_source();
    let may = |path: &str| {
        let path = path.replace('\\', "/");
        path == "crates/ledger/src/db.rs" || path.starts_with("crates/ledger/src/db/")
    };
    let (inside, outside): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|(_, _, code)| code.contains("sqlx::"))
        .map(|(_, path, _)| path.as_str())
        .partition(|path| may(path));
    assert!(outside.is_empty(), "sqlx is for db: {outside:?}");
    assert!(inside.len() > 3, "the reader of sources finds no SQL: {inside:?}");
    let service: toml::Table = fs::read_to_string("Cargo.toml").unwrap().parse().unwrap();
    let manifests = libraries().into_iter().map(|name| (name.clone(), manifest(&name)));
    let users = manifests.chain([("the service".to_owned(), service)]);
    let users = users.filter(|(_, manifest)| manifest["dependencies"].get("sqlx").is_some());
    assert_eq!(users.map(|(name, _)| name).collect::<Vec<_>>(), ["ledger"]);
}

#[test]
fn the_libraries_use_each_other_as_the_map_draws() {
    let drawn = drawn();
    assert_eq!(drawn.keys().cloned().collect::<BTreeSet<_>>(), libraries());
    for (name, (uses, modules)) in drawn {
        let dependencies = manifest(&name)["dependencies"].as_table().unwrap().clone();
        let used = dependencies.keys().filter_map(|name| name.strip_prefix("docmill-"));
        assert_eq!(uses, used.map(str::to_owned).collect(), "what {name} uses");
        let files = fs::read_dir(format!("crates/{name}/src")).unwrap();
        let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let here = files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned()));
        assert_eq!(modules, here.filter(|name| name != "lib").collect(), "the modules of {name}");
    }
}

#[test]
fn the_tests_of_formats_and_gate_wait_for_nothing_heavy() {
    let lock: toml::Table = fs::read_to_string("Cargo.lock").unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let mut open = vec!["docmill-formats".to_owned(), "docmill-gate".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let heavy = HEAVY.iter().any(|start| name.starts_with(start));
        assert!(!heavy, "formats or gate would wait for {name}");
        for package in packages.iter().filter(|each| each["name"].as_str() == Some(&name)) {
            let needs = package.get("dependencies").and_then(|list| list.as_array());
            let needs = needs.into_iter().flatten().filter_map(|need| need.as_str());
            open.extend(needs.map(|need| need.split(' ').next().unwrap().to_owned()));
        }
    }
    assert!(seen.len() > 50, "the lock file is not read: {seen:?}");
}

#[test]
fn builds_for_measuring_optimise_every_crate_of_ours() {
    let optimised = fs::read_to_string("scripts/optimised.toml").unwrap();
    for library in libraries() {
        assert!(optimised.contains(&format!("docmill-{library}.opt-level = 2")), "{library}");
    }
}

#[test]
fn commands_reach_the_database_through_what_operators_do() {
    let mut files = Vec::new();
    sources(Path::new("src"), None, &mut files);
    let commands: Vec<_> = files.iter().filter(|(module, ..)| module == "cli").collect();
    assert!(commands.len() > 20, "the reader of sources finds the commands");
    let direct: Vec<_> = commands
        .iter()
        .filter(|(_, _, code)| modules_named_in(code).iter().any(|target| target == "db"))
        .map(|(_, path, _)| path)
        .collect();
    assert!(direct.is_empty(), "commands ask `ops`: {direct:?}");
}

#[test]
fn the_reader_of_imports_sees_through_braces() {
    let table = [
        ("use crate::db;", vec!["db"]),
        ("use crate::{\n    db::{a, b},\n    ocr,\n};", vec!["db", "ocr"]),
        ("fn f(x: crate::model::Id) -> crate::fault::Error;", vec!["model", "fault"]),
        ("use std::fmt;", vec![]),
    ];
    for (code, expected) in table {
        assert_eq!(modules_named_in(code), expected, "{code}");
    }
}
