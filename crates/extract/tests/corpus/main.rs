//! Reads the pages of `tests/corpus` and checks what their front matter expects of the rules reader.
//! scripts/corpus/README.md describes the files.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod languages;
mod roles;
mod suppliers;
mod tokens;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use docmill_core::config::KindsConfig;
use docmill_core::model::{BoundingBox, PageSource, PageText, TextLine, TextWord, Transcript};
use docmill_extract::rules::extract_by_rules;
use docmill_formats::notation::date;
use docmill_gate::kinds::KindSet;
use docmill_gate::{GateLookups, judge_extraction};
use serde_json::Value;
use time::Date;
use time::macros::date;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus");

/// The day of the gate's verdict where a page names none.
const TODAY: Date = date!(2024 - 01 - 15);

/// The keys that front matter may have. Those from `name` on hold the truth of the page.
const KEYS: [&str; 20] = [
    "kind",
    "country",
    "sector",
    "first_seen",
    "today",
    "about",
    "expect",
    "flagged",
    "unflagged",
    "lower",
    "name",
    "address",
    "vat",
    "number",
    "date",
    "due",
    "currency",
    "net",
    "tax",
    "total",
];

/// One file of the corpus.
struct CorpusPage {
    path: PathBuf,
    head: BTreeMap<String, String>,
    pages: Vec<String>,
}

impl CorpusPage {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, body) = text.split_once("---\n").unwrap();
        let mut pairs = BTreeMap::new();
        for line in head.lines() {
            let whole = ["about: ", "expect: ", "name: ", "address: "];
            let parts: Vec<&str> = match whole.iter().any(|key| line.starts_with(key)) {
                true => vec![line],
                false => line.split("  ").collect(),
            };
            for part in parts {
                let (key, value) = part.split_once(": ").unwrap();
                assert!(
                    pairs.insert(key.to_owned(), value.to_owned()).is_none(),
                    "{path:?}: {key}"
                );
            }
        }
        let pages = body.trim_end_matches('\n').split("\n+++\n").map(str::to_owned).collect();
        Self { path, head: pairs, pages }
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.head.get(key).map(String::as_str)
    }

    fn reasons(&self, key: &str) -> impl Iterator<Item = &str> {
        self.value(key).into_iter().flat_map(|reasons| reasons.split(", "))
    }
}

fn corpus() -> Vec<CorpusPage> {
    let mut paths = Vec::new();
    for folder in std::fs::read_dir(FOLDER).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            paths.push(file.unwrap().path());
        }
    }
    paths.sort();
    paths.into_iter().map(CorpusPage::read).collect()
}

/// A page drawn in characters: a column is 5 wide, a row 12 high.
fn page_text(number: u32, drawing: &str) -> PageText {
    let mut lines = Vec::new();
    for (row, text) in drawing.lines().enumerate() {
        let mut words: Vec<TextWord> = Vec::new();
        let mut open = false;
        for (column, c) in text.chars().enumerate() {
            let blank = c.is_whitespace();
            if !blank && !open {
                let (x, y) = (column as f32 * 5.0, row as f32 * 12.0);
                let bounding_box = BoundingBox { x, y, w: 0.0, h: 10.0 };
                words.push(TextWord {
                    text: String::new().into(),
                    bounding_box,
                    confidence: 1.0,
                    unwitnessed: false,
                });
            }
            if let Some(word) = words.last_mut().filter(|_| !blank) {
                word.text.push(c);
                word.bounding_box.w += 5.0;
            }
            open = !blank;
        }
        if !words.is_empty() {
            lines.push(TextLine { words });
        }
    }
    PageText {
        number,
        source: PageSource::Native,
        width: 600.0,
        height: 840.0,
        quality: 1.0,
        defects: Vec::new(),
        languages: Vec::new(),
        repaired: false,
        provider: None,
        codes: Vec::new(),
        marks: Vec::new(),
        notes: Vec::new(),
        lines,
    }
}

fn transcript(pages: &[String]) -> Transcript {
    Transcript {
        format: Transcript::FORMAT,
        sha256: "0".repeat(64),
        provider: "test".to_owned(),
        pages: pages.iter().zip(1..).map(|(page, number)| page_text(number, page)).collect(),
        quality: 1.0,
    }
}

/// Whether a value is the expected one; of a list of objects the fields that are expected.
fn is_expected(given: &Value, expected: &Value) -> bool {
    match (given, expected) {
        (Value::Array(given), Value::Array(expected)) => {
            given.len() == expected.len()
                && given.iter().zip(expected).all(|(given, expected)| is_expected(given, expected))
        }
        (Value::Object(given), Value::Object(expected)) => expected
            .iter()
            .all(|(name, value)| is_expected(given.get(name).unwrap_or(&Value::Null), value)),
        (Value::Number(_), Value::Number(_)) => given.as_f64() == expected.as_f64(),
        _ => given == expected,
    }
}

#[test]
fn every_layout_is_read_and_flagged_as_its_file_expects() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let mut wrong = Vec::new();
    for page in corpus().iter().filter(|page| page.value("expect").is_some()) {
        let kind = kinds.get(page.value("kind").unwrap()).unwrap();
        let transcript = transcript(&page.pages);
        let read = extract_by_rules(&transcript, kind);
        let expected: Value = serde_json::from_str(page.value("expect").unwrap()).unwrap();
        for (field, value) in expected.as_object().unwrap() {
            let given = read.data.get(field).unwrap_or(&Value::Null);
            if !is_expected(given, value) {
                wrong.push(format!("{:?}: {field} is {given}, not {value}", page.path));
            }
        }
        let today = page.value("today").map_or(TODAY, |day| date::parse_iso(day).unwrap());
        let lookups = GateLookups { quality_threshold: 0.7, ..GateLookups::on_day(today) };
        let reasons = judge_extraction(&read, &transcript, kind, &lookups).review_reasons();
        for (key, flagged) in [("flagged", true), ("unflagged", false)] {
            for reason in page.reasons(key) {
                if reasons.iter().any(|one| one == reason) != flagged {
                    wrong.push(format!("{:?}: {reason} in {reasons:?}", page.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_of_the_corpus_states_where_it_is_from_and_what_is_true() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let pages = corpus();
    assert!(pages.len() >= 1_200, "{} files", pages.len());
    for page in &pages {
        let unknown: Vec<&String> =
            page.head.keys().filter(|key| !KEYS.contains(&key.as_str())).collect();
        assert!(unknown.is_empty(), "{:?}: {unknown:?}", page.path);
        assert!(kinds.get(page.value("kind").unwrap()).is_some(), "{:?}", page.path);
        let days = ["first_seen", "today", "date", "due"];
        assert!(page.value("first_seen").is_some(), "{:?}", page.path);
        for day in days.iter().filter_map(|key| page.value(key)) {
            assert!(date::parse_iso(day).is_some(), "{:?}: {day}", page.path);
        }
        for amount in ["net", "tax", "total"].iter().filter_map(|key| page.value(key)) {
            assert!(amount.parse::<f64>().is_ok(), "{:?}: {amount}", page.path);
        }
        let known = page.value("expect").is_some() || page.value("name").is_some();
        assert!(known && Path::new(&page.path).extension().is_some_and(|end| end == "txt"));
    }
}
