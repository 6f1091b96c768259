//! Scans by what is wrong with them: `SCANS.tsv` beside the documents, a table whose first line
//! names its columns; `file` and `kind` are used. A kind may have a family, `degraded:skew`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::report::mean;
use super::{DocumentScore, EvalError, EvalReport, read_optional, text::TextScore};

/// File name of the table of scans.
pub(super) const TABLE: &str = "SCANS.tsv";

/// How well the documents of one kind were read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ScanKindScore {
    /// Documents of this kind whose text is known.
    pub documents: usize,
    /// How well their text was read.
    #[serde(flatten)]
    pub text: TextMeans,
    /// The recall without repair, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_repair: Option<TextMeans>,
}

/// Means of text scores over documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TextMeans {
    /// Of the share of words found.
    pub word_recall: Option<f64>,
    /// Of edits per character of the truth.
    pub character_error_rate: Option<f64>,
}

/// Kinds by file name; empty without a table.
///
/// # Errors
/// The table cannot be read, or has no such columns.
pub(super) fn read_kinds(dir: &Path) -> Result<BTreeMap<String, String>, EvalError> {
    let path = dir.join(TABLE);
    let Some(table) = read_optional(&path)? else { return Ok(BTreeMap::new()) };
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = rows.next().unwrap_or_default();
    let columns = ["file", "kind"].map(|name| head.iter().position(|column| *column == name));
    let [Some(file), Some(kind)] = columns else {
        return Err(EvalError::BadTable { path });
    };
    let cells =
        rows.filter_map(|row| Some((row.get(file)?.to_string(), row.get(kind)?.to_string())));
    Ok(cells.collect())
}

/// Sums up by kind, and by family where there are families.
pub(super) fn score_by_kind(documents: &[DocumentScore]) -> BTreeMap<String, ScanKindScore> {
    let mut texts: BTreeMap<&str, Vec<&TextScore>> = BTreeMap::new();
    for document in documents {
        let (Some(kind), Some(text)) = (&document.kind, &document.text) else { continue };
        texts.entry(kind).or_default().push(text);
        if let Some((family, _)) = kind.split_once(':') {
            texts.entry(family).or_default().push(text);
        }
    }
    let scores = texts.into_iter().map(|(kind, texts)| {
        let recalls: Vec<f64> = texts.iter().map(|text| text.word_recall).collect();
        let errors: Vec<f64> = texts.iter().filter_map(|text| text.character_error_rate).collect();
        let text = TextMeans { word_recall: mean(&recalls), character_error_rate: mean(&errors) };
        (kind.to_owned(), ScanKindScore { documents: texts.len(), text, without_repair: None })
    });
    scores.collect()
}

impl EvalReport {
    /// Puts beside each kind what `other`, a reading of the same folder without repair, read.
    pub fn add_unrepaired(&mut self, other: &Self) {
        for (kind, score) in &mut self.kinds {
            score.without_repair = other.kinds.get(kind).map(|other| other.text.clone());
        }
    }
}
