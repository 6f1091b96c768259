//! The deterministic verdict on an extraction: a pure function over the data, the transcript, the
//! kind's rules and what the pipeline looked up.
//!
//! Amounts are compared as exact decimals. Findings name rules and fields, never values. What a
//! consequence leads to (next rung, refusal, flag) is the pipeline's to carry out.

mod checks;
mod einvoice;
mod ground;

use serde::{Deserialize, Serialize};
use time::Date;

use crate::kinds::{Consequence, Kind};
use crate::model::{Extraction, IngestionId, Transcript};

use self::checks::Subject;
pub use self::einvoice::Einvoice;

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

/// Everything that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// In the order of the kind's rules.
    pub findings: Vec<Finding>,
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

/// Applies the kind's rules.
pub fn judge(
    extraction: &Extraction,
    transcript: &Transcript,
    kind: &Kind,
    lookups: &Lookups,
) -> Verdict {
    let subject = Subject::new(extraction, transcript, lookups);
    let mut findings = Vec::new();
    for rule in &kind.rules {
        if !rule.readers.is_empty() && !rule.readers.contains(&extraction.reader) {
            continue;
        }
        for field in subject.failures(&rule.check).into_iter().take(MOST_FINDINGS) {
            findings.push(Finding {
                rule: rule.name.clone(),
                field,
                consequence: rule.consequence,
            });
        }
    }
    Verdict { findings }
}

#[cfg(test)]
mod tests;
