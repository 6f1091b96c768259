//! `docs/reference/configuration.md` against the configuration's own types.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs;

use docmill_core::config::{Config, ConfigNeeds};
use toml::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/configuration.md");

/// Every key with its default, as it would be written in the file.
fn defaults() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    walk("", &Value::try_from(Config::default()).unwrap(), &mut found);
    found
}

fn walk(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    let Some(table) = value.as_table().filter(|table| path.is_empty() || !table.is_empty()) else {
        let shown = match value {
            Value::Float(number) => single(*number),
            other => other.to_string(),
        };
        found.insert(path.to_owned(), shown);
        return;
    };
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        walk(&path, value, found);
    }
}

/// Numbers are kept as f32; as f64 they would show the noise of the way there.
#[expect(clippy::cast_possible_truncation, reason = "it came from an f32")]
fn single(number: f64) -> String {
    format!("{}", number as f32)
}

/// Whether two values mean the same: durations may be written in any unit.
fn same(one: &str, other: &str) -> bool {
    let duration = |text: &str| humantime::parse_duration(text.trim_matches('"')).ok();
    one == other || duration(one).is_some_and(|one| Some(one) == duration(other))
}

/// Rows of the page: `` | `section.key` | `default` | meaning | ``.
fn documented() -> BTreeMap<String, (String, String)> {
    let page = fs::read_to_string(PAGE).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let [key, default, meaning] = cells.as_slice() else { return None };
        let key = key.strip_prefix('`')?.strip_suffix('`')?;
        let default = default.strip_prefix('`')?.strip_suffix('`')?;
        Some((key.to_owned(), (default.to_owned(), (*meaning).to_owned())))
    };
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let read: BTreeMap<_, _> = rows.iter().filter_map(|line| row(line)).collect();
    assert_eq!(read.len(), rows.len(), "a row of {PAGE} has another form, or a key is there twice");
    read
}

#[test]
fn every_key_is_documented_with_its_default_and_no_other_is() {
    let (defaults, documented) = (defaults(), documented());
    let mut wrong = Vec::new();
    for (key, default) in &defaults {
        match documented.get(key) {
            None => wrong.push(format!("missing: | `{key}` | `{default}` | … |")),
            Some((shown, _)) if !same(shown, default) => {
                wrong.push(format!("`{key}` is documented as `{shown}`, but it is `{default}`"));
            }
            Some((_, meaning)) if meaning.len() < 10 => wrong.push(format!("`{key}`: no meaning")),
            Some(_) => {}
        }
    }
    let unknown = documented.keys().filter(|key| !defaults.contains_key(*key));
    wrong.extend(unknown.map(|key| format!("`{key}` is documented but does not exist")));
    assert!(wrong.is_empty(), "docs/reference/configuration.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_example_of_the_page_is_a_valid_configuration() {
    let page = fs::read_to_string(PAGE).unwrap();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), example).unwrap();
    let config = Config::load(Some(file.path())).unwrap();
    config.check(ConfigNeeds::WORKER).unwrap();
}
