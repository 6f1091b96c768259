//! Runs the fuzzing corpora (`make fuzz`) once: inputs of past findings, and seeds. Does not
//! search.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::fs;

#[path = "../../fuzz/data/src/targets.rs"]
mod data;
#[path = "../../fuzz/pages/src/targets.rs"]
mod pages;

#[test]
fn every_stored_fuzzing_input_passes_its_target() {
    let mut folders: BTreeSet<String> = fs::read_dir("fuzz/corpora")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for (name, run) in data::TARGETS.iter().chain(&pages::TARGETS) {
        assert!(folders.remove(*name), "fuzz/corpora/{name} is missing");
        let inputs: Vec<_> = fs::read_dir(format!("fuzz/corpora/{name}")).unwrap().collect();
        assert!(!inputs.is_empty(), "fuzz/corpora/{name} has no input");
        for input in inputs {
            let path = input.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let held = std::panic::catch_unwind(|| run(&bytes));
            assert!(held.is_ok(), "{}", path.display());
        }
    }
    assert!(folders.is_empty(), "inputs of no target: {folders:?}");
}

#[test]
fn the_files_of_every_kind_that_ships_pass_the_fuzzing_target_of_kinds() {
    let (_, run) = data::TARGETS.iter().find(|(name, _)| *name == "kind_files").unwrap();
    for kind in fs::read_dir("config/kinds").unwrap() {
        let kind = kind.unwrap().path();
        let files = ["rules.toml", "labels.toml", "schema.json", "kind.toml"]
            .map(|file| fs::read_to_string(kind.join(file)).unwrap());
        run(files.join("\u{1}").as_bytes());
    }
}
