//! What others have written and we ship: under licences that `deny.toml` allows, from the registry,
//! without the crates that it denies. Asks cargo alone, so that it runs wherever the tests do.
//!
//! Not promised: that no dependency has a known weakness. That takes the advisories of a day, which
//! `cargo deny check` fetches (`make release-check`).

use std::process::Command;

use toml::Value;

fn deny_list() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml");
    Value::Table(std::fs::read_to_string(path).unwrap().parse().unwrap())
}

/// Every crate that any target is made of, tests included: name, version and source, and licence.
/// Not `--offline`: a machine that has only built for itself lacks what other systems need, and cargo
/// fetches it once.
fn resolved_crates() -> Vec<(String, String)> {
    let edges = "normal,build,dev";
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--target", "all", "--edges", edges])
        .args(["--prefix", "none", "--format", "{p}|{l}|"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let found = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once('|')?;
        // What follows is a mark at a crate that was listed before.
        let (licence, _mark) = rest.split_once('|')?;
        Some((name.to_owned(), licence.to_owned()))
    });
    let mut all: Vec<(String, String)> = found.collect();
    all.sort();
    all.dedup();
    all
}

/// Whether an SPDX expression can be met by what is allowed. An old `/` means OR.
fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any_of(&mut rest, allowed);
    met && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = all_of(words, allowed);
    while let [first, rest @ ..] = *words
        && *first == "OR"
    {
        *words = rest;
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = one(words, allowed);
    while let [first, rest @ ..] = *words
        && *first == "AND"
    {
        *words = rest;
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = any_of(words, allowed);
            *words = words.strip_prefix(&[")"]).unwrap_or(&["unclosed"]);
            met
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed(&format!("{name} WITH {exception}"))
        }
        [name, rest @ ..] => {
            *words = rest;
            allowed(name)
        }
        [] => false,
    }
}

#[test]
fn an_expression_of_licences_is_met_as_spdx_says() {
    let allowed = |name: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&name);
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("ISC AND (GPL-3.0 OR MIT)", true),
        ("ISC AND (GPL-3.0 OR LGPL-3.0)", false),
        ("MIT OR GPL-3.0 AND ISC", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn every_dependency_is_under_a_licence_that_is_allowed_and_from_the_registry() {
    let deny = deny_list();
    let licences = deny["licenses"]["allow"].as_array().unwrap().clone();
    let allowed = |name: &str| licences.iter().any(|licence| licence.as_str() == Some(name));
    let crates = resolved_crates();
    assert!(crates.len() > 200, "only {} crates were found", crates.len());
    let own = env!("CARGO_MANIFEST_DIR");
    let mut wrong = Vec::new();
    for (name, licence) in &crates {
        // A path or an address stands behind what is not from the registry.
        let elsewhere = name.replace("(proc-macro)", "").contains('(') && !name.contains(own);
        if elsewhere || !is_allowed(licence, &allowed) {
            wrong.push(format!("{name}: {licence}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let lock = std::fs::read_to_string(format!("{own}/Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    for package in lock["package"].as_array().unwrap() {
        let Some(source) = package.get("source").and_then(Value::as_str) else { continue };
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert_eq!(source, registry, "{package:?}");
        assert!(package.get("checksum").is_some(), "{package:?}");
    }
}

#[test]
fn no_second_tls_and_nothing_else_that_is_denied_is_part_of_the_program() {
    let deny = deny_list();
    let denied = deny["bans"]["deny"].as_array().unwrap();
    let names: Vec<&str> = denied.iter().filter_map(|one| one["crate"].as_str()).collect();
    assert!(names.contains(&"openssl-sys"), "{names:?}");
    let crates = resolved_crates();
    let found: Vec<_> = crates
        .iter()
        .filter(|(name, _)| name.split(' ').next().is_some_and(|name| names.contains(&name)))
        .collect();
    assert!(found.is_empty(), "{found:?}");
}
