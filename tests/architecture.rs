//! Keeps `src/` layered: a module may name only modules of a lower layer.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;

/// Lowest first. Modules that share a line do not know each other.
const LAYERS: &[&[&str]] = &[
    &["fault"],
    &["model", "retry"],
    &["config", "metrics", "notation"],
    &["aws", "cluster", "cpu", "http", "kinds", "shutdown"],
    &["telemetry"],
    &["db", "pages", "store"],
    &["throttle"],
    &["ledger", "llm", "ocr", "queue"],
    &["extract", "gate"],
    &["pipeline"],
    &["eval", "ops", "worker"],
    &["web"],
    &["app"],
    &["cli"],
];

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
    let mut files = Vec::new();
    sources(Path::new("src"), None, &mut files);
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
fn sql_is_written_in_the_modules_of_the_database_only() {
    let mut files = Vec::new();
    sources(Path::new("src"), None, &mut files);
    let may = |path: &str| {
        let path = path.replace('\\', "/");
        path == "src/db.rs"
            || path.starts_with("src/db/")
            || path == "src/ledger/postgres.rs"
            || path.starts_with("src/ledger/postgres/")
    };
    let (inside, outside): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|(_, _, code)| code.contains("sqlx::"))
        .map(|(_, path, _)| path.as_str())
        .partition(|path| may(path));
    assert!(outside.is_empty(), "sqlx is for db and ledger/postgres: {outside:?}");
    assert!(inside.len() > 3, "the reader of sources finds no SQL: {inside:?}");
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
