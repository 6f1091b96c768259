//! Sums over documents: the output of `docmill eval`.
//!
//! Counts and means only. The reader, or `limits`, judges whether a figure is good enough.

use std::collections::BTreeMap;

use serde::Serialize;

use super::calibration::ScoreCalibration;
use super::trade_off::FlagCase;
use super::{
    DocumentScore, FieldScore, FlagReasonCount, FlagTradeOff, ListCompleteness, ScanKindScore,
    measures, scans,
};

/// All documents, or those whose names begin alike.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GroupReport {
    /// Number of documents.
    pub documents: usize,
    /// Documents that ended completed.
    pub completed: usize,
    /// Completed documents that a person was asked to check.
    pub flagged: usize,
    /// Number of failed documents by reason code.
    pub failed: BTreeMap<String, usize>,
    /// Completed without a word to a person, although a scored field outside lists is wrong.
    pub silent_errors: usize,
    /// Documents whose scored fields outside lists are all right.
    pub whole_documents: usize,
    /// Documents whose data is known.
    pub with_truth: usize,
    /// By field; fields of lists as `line_items.amount`.
    pub fields: BTreeMap<String, FieldScore>,
    /// How complete the lists are.
    pub rows: ListCompleteness,
    /// Whether the gate's score separates documents that are all right from others.
    pub calibration: ScoreCalibration,
    /// The documents that each level of certainty passes and sends to a person; empty where none
    /// were weighed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trade_off: Vec<FlagTradeOff>,
    /// Why documents were sent to a person or refused, by `rule` or `rule:field`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, FlagReasonCount>,
    /// Documents whose text is known.
    pub with_text: usize,
    /// Mean over those of the share of words found.
    pub word_recall: Option<f64>,
    /// Mean over those of edits per character of the truth.
    pub character_error_rate: Option<f64>,
}

/// The scores of a whole folder.
#[derive(Debug, Clone, Serialize)]
pub struct EvalReport {
    /// The sums over all documents.
    pub all: GroupReport,
    /// By the part of the name up to its first `_`.
    pub groups: BTreeMap<String, GroupReport>,
    /// How scans were read, by what is wrong with them; empty without a table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, ScanKindScore>,
    /// Each document, by name.
    pub documents: Vec<DocumentScore>,
    /// Files in the folder that have no truth.
    pub without_truth: usize,
    /// Every figure by name, as `--fail-under` and `--baseline` know it.
    pub measures: BTreeMap<String, f64>,
}

/// Sums up scored documents into a report.
pub fn build_report(mut documents: Vec<DocumentScore>, without_truth: usize) -> EvalReport {
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    let mut groups: BTreeMap<String, Vec<&DocumentScore>> = BTreeMap::new();
    for document in &documents {
        let prefix = document.name.split_once('_').map_or("other", |(prefix, _)| prefix);
        groups.entry(prefix.to_owned()).or_default().push(document);
    }
    let groups: BTreeMap<String, GroupReport> =
        groups.into_iter().map(|(name, own)| (name, build_group(own.into_iter()))).collect();
    let all = build_group(documents.iter());
    let measures = measures::collect_measures(&all, &groups);
    let kinds = scans::score_by_kind(&documents);
    EvalReport { all, groups, kinds, documents, without_truth, measures }
}

fn build_group<'a>(documents: impl Iterator<Item = &'a DocumentScore>) -> GroupReport {
    let mut group = GroupReport::default();
    let (mut recalls, mut errors, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    let mut cases = Vec::new();
    for document in documents {
        group.documents += 1;
        if document.status == "completed" {
            group.completed += 1;
            group.flagged += usize::from(document.needs_review);
            let silent = document.whole == Some(false) && !document.needs_review;
            group.silent_errors += usize::from(silent);
        } else {
            let reason = document.reason.clone().unwrap_or_else(|| document.status.clone());
            *group.failed.entry(reason).or_default() += 1;
        }
        group.with_truth += usize::from(document.whole.is_some());
        group.whole_documents += usize::from(document.whole == Some(true));
        group.rows.known += document.rows.known;
        group.rows.found += document.rows.found;
        if let (Some(score), Some(whole)) = (document.score, document.whole) {
            scores.push((f64::from(score), whole));
        }
        if let (Some(certainty), Some(right)) = (document.certainty, document.whole) {
            let otherwise = document.flagged_otherwise;
            cases.push(FlagCase { right, certainty, otherwise });
        }
        for reason in &document.reasons {
            let alone = document.reasons.len() == 1;
            group.reasons.entry(reason.clone()).or_default().add(document.whole, alone);
        }
        for (field, own) in &document.fields {
            group.fields.entry(field.clone()).or_default().add(own);
        }
        if let Some(text) = &document.text {
            group.with_text += 1;
            recalls.push(text.word_recall);
            errors.extend(text.character_error_rate);
        }
    }
    group.fields.values_mut().for_each(FieldScore::compute_ratios);
    group.calibration = ScoreCalibration::from_results(&scores);
    group.trade_off = FlagTradeOff::measure_levels(&cases);
    group.word_recall = mean(&recalls);
    group.character_error_rate = mean(&errors);
    group
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
