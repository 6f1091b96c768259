//! Scores what was read against the truth beside it: `docmill eval DIR`.
//!
//! A folder holds documents, `truth/NAME.json` (the kind's fields; null: unknown, not scored) and
//! `truth/NAME.txt` (the text). How a document is read is the caller's: [`run`] is handed a
//! function. Nothing here decides whether a result is good enough.

mod assign;
pub mod baseline;
pub mod calibration;
mod compare;
pub mod decided;
mod families;
mod html;
pub mod inject;
mod items;
pub mod limits;
mod measures;
mod plot;
mod report;
mod scans;
mod table;
mod text;
mod trade_off;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::StreamExt as _;
use serde::Serialize;
use serde_json::{Map, Value};

pub use families::FamilyPart;
pub use html::html_page;
pub use report::{EvalReport, GroupReport, build_report};
pub use scans::{ScanKindScore, TextMeans};
pub use text::TextScore;
pub use trade_off::{FlagReasonCount, FlagTradeOff};

/// The scored part of one document's extraction.
#[derive(Debug, Clone, Default)]
pub struct EvalSample {
    /// How the document ended: `completed` or `failed`.
    pub status: String,
    /// Reason code of a failure.
    pub reason: Option<String>,
    /// The data, partial data of a refused document included.
    pub data: Option<Map<String, Value>>,
    /// The text of all pages, if it is scored.
    pub text: Option<String>,
    /// Whether a person was asked to check the document.
    pub needs_review: bool,
    /// The gate's score, if it reached a verdict.
    pub score: Option<f32>,
    /// The least certainty of a field, where the reader weighs them.
    pub certainty: Option<f32>,
    /// A person was asked for other reasons than that certainty.
    pub flagged_otherwise: bool,
    /// Why a person was asked, or the document refused: `rule` or `rule:field`.
    pub reasons: Vec<String>,
}

/// Why a folder cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A truth file is not a JSON object.
    #[error("{} is not a JSON object: {detail}", path.display())]
    BadTruth {
        /// Path of the truth file.
        path: PathBuf,
        /// The problem.
        detail: String,
    },
    /// A table of scans without its columns.
    #[error("the first line of {} names no columns `file` and `kind`", path.display())]
    BadTable {
        /// Path of the table.
        path: PathBuf,
    },
    /// No document has a truth beside it.
    #[error("{} holds no document with a file of its name in truth/", path.display())]
    Nothing {
        /// Path of the folder.
        path: PathBuf,
    },
}

/// How often a field was right.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FieldScore {
    /// Number of values that are right.
    pub correct: usize,
    /// Given, but wrong; for lines also those that do not exist.
    pub wrong: usize,
    /// Known, but not given or given wrong.
    pub missed: usize,
    /// Share of right values among those given.
    pub precision: Option<f64>,
    /// Share of right values among those known.
    pub recall: Option<f64>,
    /// Harmonic mean of precision and recall.
    pub f1: Option<f64>,
}

impl FieldScore {
    fn compute_ratios(&mut self) {
        self.precision = share_of(self.correct, self.correct + self.wrong);
        self.recall = share_of(self.correct, self.correct + self.missed);
        self.f1 = share_of(2 * self.correct, 2 * self.correct + self.wrong + self.missed);
    }

    fn add(&mut self, other: &Self) {
        self.correct += other.correct;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

/// How well one document was read.
#[derive(Debug, Clone, Serialize)]
pub struct DocumentScore {
    /// File name without its ending.
    pub name: String,
    /// The defect of the scan, where a table names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the document ended: `completed` or `failed`.
    pub status: String,
    /// Reason code of a failure.
    pub reason: Option<String>,
    /// Whether a person was asked to check the document.
    pub needs_review: bool,
    /// Every scored field outside lists is right; none if no data is known.
    pub whole: Option<bool>,
    /// Scored fields that are wrong or lacking. Names only, no values.
    pub faults: Vec<String>,
    /// How the text that was read compares with the true text.
    pub text: Option<TextScore>,
    /// Why a person was asked, or the document refused: `rule` or `rule:field`, no values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The gate's score, if it reached a verdict.
    pub score: Option<f32>,
    /// The least certainty of a field, where the reader weighs them.
    pub certainty: Option<f32>,
    /// A person was asked for other reasons than that certainty.
    #[serde(skip)]
    flagged_otherwise: bool,
    /// Known entries of lists, and how many of them are there at all.
    pub rows: ListCompleteness,
    #[serde(skip)]
    fields: BTreeMap<String, FieldScore>,
    /// The known value and the extracted one. Document content: only for a report that was
    /// requested as a file.
    #[serde(skip)]
    differences: Vec<FieldDifference>,
}

/// How complete lists are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ListCompleteness {
    /// Entries that the truth has.
    pub known: usize,
    /// Of those, how many have a partner that is alike.
    pub found: usize,
}

/// A value that is not the known one.
#[derive(Debug, Clone)]
struct FieldDifference {
    field: String,
    known: Value,
    given: Value,
}

/// A document and what is known of it.
#[derive(Debug, Clone)]
pub struct LabelledDocument {
    /// File name without its ending.
    pub name: String,
    /// Path of the document's file.
    pub path: PathBuf,
    kind: Option<String>,
    /// Its issuer and layout: parameters fitted to one document of a family fit the others.
    pub family: String,
    /// The kind's fields as they are known; null where they are not.
    pub data: Option<Map<String, Value>>,
    text: Option<String>,
}

/// Reads every labelled document of `dir`, or of one part of it, `at_once` at a time, and scores the
/// results.
///
/// # Errors
/// A folder or file that cannot be read, a truth that is no JSON object, nothing to score.
pub async fn run<F, R>(
    dir: &Path,
    part: Option<FamilyPart>,
    at_once: usize,
    process: F,
) -> Result<EvalReport, EvalError>
where
    F: Fn(PathBuf, Bytes) -> R,
    R: Future<Output = EvalSample>,
{
    let (labelled, without_truth) = find_labelled(dir, part)?;
    let jobs = labelled.into_iter().map(|document| {
        let process = &process;
        async move {
            let bytes = tokio::fs::read(&document.path).await;
            let bytes = bytes.map_err(|source| unreadable_error(&document.path, source))?;
            let sample = process(document.path.clone(), bytes.into()).await;
            Ok(score_document(&document, &sample))
        }
    });
    let scored = futures::stream::iter(jobs).buffer_unordered(at_once.max(1));
    let scored: Vec<Result<DocumentScore, EvalError>> = scored.collect().await;
    Ok(build_report(scored.into_iter().collect::<Result<_, _>>()?, without_truth))
}

fn unreadable_error(path: &Path, source: io::Error) -> EvalError {
    EvalError::Unreadable { path: path.to_owned(), source }
}

/// The labelled documents of a folder by name, or those of one part of it, and how many files have no
/// truth.
///
/// # Errors
/// As [`run`].
pub fn find_labelled(
    dir: &Path,
    part: Option<FamilyPart>,
) -> Result<(Vec<LabelledDocument>, usize), EvalError> {
    let entries = std::fs::read_dir(dir).map_err(|source| unreadable_error(dir, source))?;
    let kinds = scans::read_kinds(dir)?;
    let families = families::read_families(dir)?;
    let (mut labelled, mut without_truth) = (Vec::new(), 0);
    for entry in entries {
        let path = entry.map_err(|source| unreadable_error(dir, source))?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let Some(name) = name.filter(|_| path.is_file()) else { continue };
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        if file == scans::TABLE {
            continue;
        }
        let kind = kinds.get(file).cloned();
        let data = read_truth(&dir.join("truth").join(format!("{name}.json")))?;
        let text = read_optional(&dir.join("truth").join(format!("{name}.txt")))?;
        if data.is_none() && text.is_none() {
            without_truth += 1;
        } else {
            let known = families.get(&name).cloned();
            let family = known.unwrap_or_else(|| families::own_family(&name, data.as_ref()));
            labelled.push(LabelledDocument { name, path, kind, family, data, text });
        }
    }
    if labelled.is_empty() {
        return Err(EvalError::Nothing { path: dir.to_owned() });
    }
    labelled.retain(|one| part.is_none_or(|part| FamilyPart::of_family(&one.family) == part));
    labelled.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((labelled, without_truth))
}

fn read_optional(path: &Path) -> Result<Option<String>, EvalError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unreadable_error(path, source)),
    }
}

fn read_truth(path: &Path) -> Result<Option<Map<String, Value>>, EvalError> {
    let Some(text) = read_optional(path)? else { return Ok(None) };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| EvalError::BadTruth { path: path.to_owned(), detail: error.to_string() })
}

/// Scores the text of a document, if its transcript is known.
fn score_text(document: &LabelledDocument, sample: &EvalSample) -> Option<TextScore> {
    let read = sample.text.as_deref().unwrap_or_default();
    document.text.as_deref().map(|known| TextScore::compare_texts(known, read))
}

/// The known values, those of objects by their fields: `payment.iban`.
fn known_values(document: &LabelledDocument) -> Vec<(String, &Value)> {
    fn add<'v>(prefix: &str, fields: &'v Map<String, Value>, into: &mut Vec<(String, &'v Value)>) {
        for (name, value) in fields {
            match value {
                Value::Object(inner) => add(&format!("{prefix}{name}."), inner, into),
                value => into.push((format!("{prefix}{name}"), value)),
            }
        }
    }
    let mut known = Vec::new();
    document.data.iter().for_each(|fields| add("", fields, &mut known));
    known
}

/// The value of a name such as `payment.iban`; null if there is none.
fn value_within<'v>(fields: &'v Map<String, Value>, name: &str) -> &'v Value {
    let mut steps = name.split('.');
    let first = steps.next().and_then(|step| fields.get(step));
    let found = steps.try_fold(first, |at, step| at.map(|value| value.get(step)));
    found.flatten().unwrap_or(&Value::Null)
}

/// Scores one document: what was read of it against what is known.
pub fn score_document(document: &LabelledDocument, sample: &EvalSample) -> DocumentScore {
    let empty = Map::new();
    let given = sample.data.as_ref().unwrap_or(&empty);
    let mut fields: BTreeMap<String, FieldScore> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut whole = None;
    let (mut all_rows, mut differences) = (ListCompleteness::default(), Vec::new());
    let mut differs = |field: &str, known: &Value, given: &Value| {
        let (known, given) = (known.clone(), given.clone());
        differences.push(FieldDifference { field: field.to_owned(), known, given });
    };
    for (field, known) in known_values(document) {
        let value = value_within(given, &field);
        match known {
            Value::Null => {}
            Value::Array(entries) => {
                let own = items::list_completeness(entries, value);
                all_rows.known += own.known;
                all_rows.found += own.found;
                if own.found < own.known {
                    differs(&field, known, value);
                }
                for (item, own) in items::score_fields(&field, entries, value) {
                    if own.wrong + own.missed > 0 {
                        faults.push(item.clone());
                    }
                    fields.entry(item).or_default().add(&own);
                }
            }
            known => {
                let right = compare::same_value(&field, known, value);
                let own = fields.entry(field.clone()).or_default();
                own.correct += usize::from(right);
                own.missed += usize::from(!right);
                own.wrong += usize::from(!right && !value.is_null());
                whole = Some(whole.unwrap_or(true) && right);
                if !right {
                    faults.push(field.clone());
                    differs(&field, known, value);
                }
            }
        }
    }
    DocumentScore {
        name: document.name.clone(),
        kind: document.kind.clone(),
        status: sample.status.clone(),
        reason: sample.reason.clone(),
        needs_review: sample.needs_review,
        whole,
        faults,
        text: score_text(document, sample),
        score: sample.score,
        certainty: sample.certainty,
        flagged_otherwise: sample.flagged_otherwise,
        reasons: sample.reasons.clone(),
        rows: all_rows,
        fields,
        differences,
    }
}

fn share_of(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}
