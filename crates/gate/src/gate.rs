//! The deterministic verdict on an extraction: a pure function over the data, the transcript, the
//! kind's rules and what the pipeline looked up.
//!
//! Amounts are compared as exact decimals. Findings name rules and fields, never values. What a
//! consequence leads to (next rung, refusal, flag) is the pipeline's to carry out.

mod checks;
mod einvoice;
mod forms;
mod ground;
mod instructions;
mod rows;
mod score;
mod subject;
mod sums;
mod tax;

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};
use time::Date;

use crate::kinds::{Check, Consequence, Kind, Rule};
use crate::model::{Extraction, IngestionId, Transcript};

pub use self::einvoice::Einvoice;
use self::ground::Ground;
use self::subject::Subject;
pub use crate::model::{Grounded, Place};

/// What the pipeline looked up for the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookups {
    /// An earlier document with the same supplier and number.
    pub duplicate_of: Option<IngestionId>,
    /// The day the verdict is given on.
    pub today: Date,
    /// 0..1: a transcript below it is flagged.
    pub quality_threshold: f32,
    /// What became of the XML in the document.
    pub einvoice: Einvoice,
}

/// One rule that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: String,
    /// The field at fault, if it is one.
    pub field: Option<String>,
    /// What follows.
    pub consequence: Consequence,
}

/// Everything that failed, and how likely the data is right.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// In the order of the kind's rules.
    pub findings: Vec<Finding>,
    /// 0..1, see the module `score`. One signal beside the rules.
    pub score: f32,
    /// Where the values were found, in the order of the data.
    pub grounded: Vec<Grounded>,
}

impl Verdict {
    /// Whether the data is refused, if no further rung is left.
    pub fn refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.consequence >= Consequence::Review)
    }

    /// Whether a further rung (better pages, stronger model) may help. A rule that demands a
    /// person is not helped by one.
    pub fn again(&self) -> bool {
        self.findings.iter().any(|finding| finding.consequence == Consequence::Again)
            && !self.findings.iter().any(|finding| finding.consequence == Consequence::Review)
    }

    /// What a person should look at although the data is complete.
    pub fn flags(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.consequence == Consequence::Flag)
    }

    /// Whether a person has to look.
    pub fn needs_review(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Every finding as `rule` or `rule:field`, the grave ones first, each once.
    pub fn review_reasons(&self) -> Vec<String> {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| finding.consequence == Consequence::Flag);
        let mut reasons: Vec<String> = Vec::new();
        for finding in findings {
            let reason = match &finding.field {
                Some(field) => format!("{}:{field}", finding.rule),
                None => finding.rule.clone(),
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }
}

/// Findings of one rule that are kept: a long list that is wrong in every line needs no thousand.
const MOST_FINDINGS: usize = 20;

/// Values of which the place is kept; more would be a table of its own.
const MOST_PLACES: usize = 2_000;

/// Applies the kind's rules.
pub fn judge(
    extraction: &Extraction,
    transcript: &Transcript,
    kind: &Kind,
    lookups: &Lookups,
) -> Verdict {
    let instructions = instructions::find(transcript, kind);
    let ground = Ground::new(transcript, |page, at| !instructions.contains(&(page.number, at)));
    let instructions = instructions.len();
    let rows = OnceCell::new();
    let subject = Subject { extraction, transcript, lookups, ground, instructions, rows };
    let applies = |rule: &&Rule| {
        (rule.readers.is_empty() || rule.readers.contains(&extraction.reader))
            && (!rule.only_ocr || subject.was_recognised())
    };
    let mut findings = Vec::new();
    for rule in kind.rules.iter().filter(applies) {
        for field in subject.failures(&rule.check).into_iter().take(MOST_FINDINGS) {
            findings.push(finding(rule, field));
        }
    }
    let grounded = places(&subject);
    let single: Vec<Place> =
        grounded.iter().filter(|it| !it.field.contains('[')).map(|it| it.place).collect();
    let score = score::score(kind, &findings, &single);
    // Where a rule has spoken already, the score only counts if it leads to something graver.
    let gravest = findings.iter().map(|it| it.consequence).max();
    for rule in kind.rules.iter().filter(applies) {
        let low = matches!(rule.check, Check::Score { least } if score < least);
        if low && gravest.is_none_or(|gravest| rule.consequence > gravest) {
            findings.push(finding(rule, None));
        }
    }
    Verdict { findings, score, grounded }
}

fn finding(rule: &Rule, field: Option<String>) -> Finding {
    Finding { rule: rule.name.clone(), field, consequence: rule.consequence }
}

/// The first place of every value that is printed.
fn places(subject: &Subject<'_>) -> Vec<Grounded> {
    let mut names: Vec<String> = Vec::new();
    for (field, value) in &subject.extraction.data {
        match value.as_array().and_then(|rows| rows.iter().find_map(|row| row.as_object())) {
            Some(row) => names.extend(row.keys().map(|item| format!("{field}.{item}"))),
            None => names.push(field.clone()),
        }
    }
    let values = names.iter().flat_map(|name| subject.values(name));
    let found = values.filter_map(|(field, value)| {
        let place = subject.ground.places(value).first().copied()?;
        Some(Grounded { field, place })
    });
    found.take(MOST_PLACES).collect()
}

#[cfg(test)]
mod tests;
