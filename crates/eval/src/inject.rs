//! Errors injected into correct extractions: does the gate find them? `docmill eval DIR --inject`.
//!
//! The known truth of a document, as if a model had read it with certainty, is checked against the
//! pages: first unchanged, then with one error of each sort at a time. A document is left out if
//! its truth lacks a field that the kind requires. Errors of a model that resemble none of these
//! sorts are not measured.

mod errors;

use std::collections::BTreeMap;
use std::fmt;

use fastrand::Rng;
use serde::Serialize;
use serde_json::{Map, Value};

use super::calibration::{ScoreCalibration, ScoredResult};
use super::table::format_figure;
use docmill_core::model::{Extraction, ExtractionMethod, ModelUsage, StatedConfidence, Transcript};
use docmill_gate::GateLookups;
use docmill_gate::kinds::{Kind, RuleCheck, RuleConsequence};

pub use errors::ErrorSort;

/// Errors of each sort that are tried on one document.
const TRIES: usize = 5;

/// How the gate fared with one sort of error.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorDetection {
    /// The sort of error that was put in.
    pub sort: ErrorSort,
    /// Number of errors that were made.
    pub made: usize,
    /// Of those, how many a person would see.
    pub caught: usize,
    /// Chance that a correct extraction scores above one with such an error.
    pub auroc: Option<f64>,
    /// Documents and fields of errors that nobody would see, `document: field`.
    pub missed: Vec<String>,
}

/// The result over all documents.
#[derive(Debug, Clone, Serialize)]
pub struct InjectReport {
    /// Documents that errors were put into.
    pub documents: usize,
    /// Documents whose truth lacks a required field, or that could not be read.
    pub left_out: usize,
    /// Correct extractions that a person would be asked to check.
    pub clean_reviewed: usize,
    /// Those, and why: names of rules and fields.
    pub clean_reasons: Vec<String>,
    /// How the gate fared, by sort of error.
    pub sorts: Vec<ErrorDetection>,
    /// Of the score, over correct and faulty ones together, the correct ones repeated so that they
    /// are as many: how often a reader errs is not known here.
    pub calibration: ScoreCalibration,
    /// Every judgement, for fitting the score (`scripts/corpus/fit_score.py`).
    pub judgements: Vec<GateJudgement>,
}

/// The parts of an extraction's score.
#[derive(Debug, Clone, Serialize)]
pub struct GateJudgement {
    /// Whether the extraction was left without an error.
    pub right: bool,
    /// Rules that failed, each with its gravest consequence; the score's own is not among them.
    pub rules: BTreeMap<String, RuleConsequence>,
    /// Least confidence of the letters under a single field, 0..1.
    pub least: f32,
}

/// Collects verdicts, document by document.
pub struct ErrorInjector<'a> {
    kind: &'a Kind,
    lookups: GateLookups,
    rng: Rng,
    left_out: usize,
    documents: usize,
    clean: Vec<ScoredResult>,
    clean_reasons: Vec<String>,
    sorts: Vec<(ErrorDetection, Vec<ScoredResult>)>,
    judgements: Vec<GateJudgement>,
}

impl<'a> ErrorInjector<'a> {
    /// Errors are chosen at random; the same seed gives the same ones.
    pub fn new(kind: &'a Kind, lookups: GateLookups, seed: u64) -> Self {
        let sorts = ErrorSort::ALL.map(|sort| {
            let (made, caught, auroc, missed) = (0, 0, None, Vec::new());
            (ErrorDetection { sort, made, caught, auroc, missed }, Vec::new())
        });
        Self {
            kind,
            lookups,
            rng: Rng::with_seed(seed),
            left_out: 0,
            documents: 0,
            clean: Vec::new(),
            clean_reasons: Vec::new(),
            sorts: sorts.into(),
            judgements: Vec::new(),
        }
    }

    /// Counts a document that could not be read.
    pub fn count_left_out(&mut self) {
        self.left_out += 1;
    }

    /// Judges a document's truth, and the same with errors.
    pub fn add_document(
        &mut self,
        name: &str,
        truth: &Map<String, Value>,
        transcript: &Transcript,
    ) {
        let mut required = required_fields(self.kind);
        if !required.all(|field| truth.get(field).is_some_and(|value| !value.is_null())) {
            self.left_out += 1;
            return;
        }
        self.documents += 1;
        let clean = self.judge_data(truth, transcript);
        self.clean.push((f64::from(clean.score), true));
        self.judgements.push(self.make_judgement(&clean, true));
        if clean.needs_review() {
            self.clean_reasons.push(format!("{name}: {}", clean.review_reasons().join(", ")));
        }
        for index in 0..self.sorts.len() {
            for _ in 0..TRIES {
                let Some(sort) = self.sorts.get(index).map(|(own, _)| own.sort) else { continue };
                let mut data = truth.clone();
                let Some(field) = sort.inject(self.kind, &mut data, &mut self.rng) else { break };
                let verdict = self.judge_data(&data, transcript);
                self.judgements.push(self.make_judgement(&verdict, false));
                let Some((own, scores)) = self.sorts.get_mut(index) else { continue };
                own.made += 1;
                scores.push((f64::from(verdict.score), false));
                if verdict.needs_review() {
                    own.caught += 1;
                } else {
                    own.missed.push(format!("{name}: {field}"));
                }
            }
        }
    }

    fn judge_data(
        &self,
        data: &Map<String, Value>,
        transcript: &Transcript,
    ) -> docmill_gate::Verdict {
        let fields = self
            .kind
            .fields()
            .map(|(field, _)| (field.to_owned(), data.get(field).cloned().unwrap_or(Value::Null)));
        let extraction = Extraction {
            reader: ExtractionMethod::Llm,
            model: None,
            kind: self.kind.name.clone(),
            data: fields.collect(),
            successful: true,
            confidence: StatedConfidence::High,
            missing_fields: Vec::new(),
            evidence: Vec::new(),
            certainties: Vec::new(),
            usage: ModelUsage::default(),
        };
        docmill_gate::judge_extraction(&extraction, transcript, self.kind, &self.lookups)
    }

    fn make_judgement(&self, verdict: &docmill_gate::Verdict, right: bool) -> GateJudgement {
        let score_rules =
            self.kind.rules.iter().filter(|it| matches!(it.check, RuleCheck::Score { .. }));
        let score_rules: Vec<&String> = score_rules.map(|rule| &rule.name).collect();
        let mut rules: BTreeMap<String, RuleConsequence> = BTreeMap::new();
        for finding in verdict.findings.iter().filter(|it| !score_rules.contains(&&it.rule)) {
            let gravest = rules.entry(finding.rule.clone()).or_insert(finding.consequence);
            *gravest = finding.consequence.max(*gravest);
        }
        let single = verdict.grounded.iter().filter(|it| !it.field.contains('['));
        let least = single.map(|it| it.place.confidence).fold(1.0, f32::min);
        GateJudgement { right, rules, least }
    }

    /// Sums up all documents into the report.
    pub fn finish(self) -> InjectReport {
        let faulty: usize = self.sorts.iter().map(|(_, scores)| scores.len()).sum();
        let times = faulty.checked_div(self.clean.len()).unwrap_or(0).max(1);
        let mut all = self.clean.repeat(times);
        let mut sorts = Vec::new();
        for (mut own, scores) in self.sorts {
            all.extend(&scores);
            let with_clean = [self.clean.as_slice(), scores.as_slice()].concat();
            own.auroc = super::calibration::auroc(&with_clean);
            sorts.push(own);
        }
        InjectReport {
            documents: self.documents,
            left_out: self.left_out,
            clean_reviewed: self.clean_reasons.len(),
            clean_reasons: self.clean_reasons,
            sorts,
            calibration: ScoreCalibration::from_results(&all),
            judgements: self.judgements,
        }
    }
}

/// Fields without which the kind refuses any data.
fn required_fields(kind: &Kind) -> impl Iterator<Item = &String> {
    let refusing = kind.rules.iter().filter(|it| it.consequence > RuleConsequence::Flag);
    let fields = refusing.filter_map(|rule| match &rule.check {
        RuleCheck::Required(fields) => Some(fields),
        _ => None,
    });
    fields.flatten()
}

impl fmt::Display for InjectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} correct extractions ({} documents left out); sent to review: {} ({})",
            self.documents,
            self.left_out,
            self.clean_reviewed,
            format_percent(self.clean_reviewed, self.documents)
        )?;
        self.clean_reasons.iter().try_for_each(|reason| writeln!(f, "  {reason}"))?;
        writeln!(f, "  {:<18}{:>6}{:>8}{:>10}{:>8}", "error", "made", "caught", "share", "AUROC")?;
        for own in &self.sorts {
            writeln!(
                f,
                "  {:<18}{:>6}{:>8}{:>10}{:>8}",
                own.sort.name(),
                own.made,
                own.caught,
                format_percent(own.caught, own.made),
                format_figure(own.auroc)
            )?;
        }
        let all = &self.calibration;
        writeln!(
            f,
            "  AUROC of the score over all: {}, calibration error {}",
            format_figure(all.auroc),
            format_figure(all.expected_error)
        )?;
        for own in self.sorts.iter().filter(|own| !own.missed.is_empty()) {
            writeln!(f, "  {} not seen: {}", own.sort.name(), own.missed.join("; "))?;
        }
        Ok(())
    }
}

fn format_percent(part: usize, of: usize) -> String {
    match of {
        0 => "-".to_owned(),
        of => format!("{:.1} %", part as f64 / of as f64 * 100.0),
    }
}
