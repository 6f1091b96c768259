//! Holds the list of guards (tests/guards) against the sources: each still stands where the list says,
//! and the tests that are to fall without it exist. Whether they do fall is tried by `make guards`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardList {
    guard: Vec<ListedGuard>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedGuard {
    name: String,
    states: String,
    tests: Vec<String>,
    change: Vec<GuardChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardChange {
    file: String,
    find: String,
    without: String,
    #[serde(default)]
    sql: bool,
}

fn read_list() -> Vec<ListedGuard> {
    let mut files: Vec<_> =
        fs::read_dir("tests/guards").unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lists =
        files.iter().map(|file| toml::from_str::<GuardList>(&fs::read_to_string(file).unwrap()));
    lists.flat_map(|list| list.unwrap().guard).collect()
}

/// The names of all tests of the workspace.
fn collect_tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_tests(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let tests = text.split("#[test]").chain(text.split("#[tokio::test")).skip(1);
            let names = tests.filter_map(|rest| rest.split_once("fn ")?.1.split_once('('));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn every_guard_stands_where_the_list_says_and_its_tests_are_there() {
    let (guards, mut tests, mut wrong) = (read_list(), BTreeSet::new(), Vec::new());
    ["src", "crates", "tests", "model"]
        .iter()
        .for_each(|at| collect_tests(Path::new(at), &mut tests));
    let mut names = BTreeSet::new();
    let mut places = BTreeMap::<String, Vec<(usize, usize, String)>>::new();
    for ListedGuard { name, states, tests: falling, change } in &guards {
        if !names.insert(name) || states.is_empty() || falling.is_empty() {
            wrong.push(format!("{name}: a second one, or nothing is said of it"));
        }
        if !change.iter().any(|change| change.without.contains("$OUT")) {
            wrong.push(format!("{name}: it is out at all times, for want of $OUT"));
        }
        for GuardChange { file, find, sql, .. } in change {
            let text = fs::read_to_string(file).unwrap_or_default();
            let found = text.matches(find.as_str()).count();
            let place = text.find(find.as_str()).map(|at| (at, at + find.len(), name.clone()));
            places.entry(file.clone()).or_default().extend(place);
            if found != 1 || *sql && file.ends_with(".sql") {
                wrong.push(format!("{name}: its text is {found} times in {file}"));
            }
        }
        let missing = falling.iter().filter(|test| !tests.contains(*test));
        wrong.extend(missing.map(|test| format!("{name}: no test {test}")));
    }
    // All are written into one copy.
    for (file, places) in &mut places {
        places.sort();
        let both = places.windows(2).filter(|pair| pair[1].0 < pair[0].1);
        wrong.extend(
            both.map(|pair| format!("{} and {}: one place of {file}", pair[0].2, pair[1].2)),
        );
    }
    assert!(wrong.is_empty(), "see scripts/guards.py\n{}", wrong.join("\n"));
    assert!(guards.len() >= 80, "{} guards", guards.len());
}
