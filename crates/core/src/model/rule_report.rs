//! The verdict of official rules on an e-invoice, by their own ids.

use serde::{Deserialize, Serialize};

/// The gravity of a finding, as the rule's author put it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleSeverity {
    /// A remark.
    Information,
    /// The document is valid all the same.
    Warning,
    /// The document is not valid.
    Fatal,
}

impl RuleSeverity {
    /// By the word in the rules. A word that is not known counts as fatal.
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "warning" | "warn" => Self::Warning,
            "information" | "info" => Self::Information,
            _ => Self::Fatal,
        }
    }

    /// Its stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Information => "information",
            Self::Warning => "warning",
            Self::Fatal => "fatal",
        }
    }
}

/// A rule that a document breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFinding {
    /// The rule's official id: `BR-CO-15`.
    pub rule: String,
    /// Its gravity.
    pub severity: RuleSeverity,
    /// The rule's text. May quote the document.
    pub text: String,
    /// The names on the way to the element, with a number where a name is not alone.
    pub location: String,
    /// The standard's code for why the rule has no verdict: `FORG0001` for a text where a number
    /// has to be. The official validators end with an error there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The verdict of the rules on a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport {
    /// Name and version of every set that is meant for the document.
    pub sets: Vec<String>,
    /// In the order of sets, patterns and nodes.
    pub findings: Vec<RuleFinding>,
    /// Findings beyond those.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub more_findings: usize,
    /// Whether a set took more steps than allowed and was not checked to its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_none_left(more: &usize) -> bool {
    *more == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(truth: &bool) -> bool {
    !truth
}

impl RuleReport {
    /// Most findings of a report that is kept with a result.
    pub const MAX_KEPT_FINDINGS: usize = 100;
    /// Most sets of rules that one document is checked by.
    const MAX_SETS: usize = 32;
    /// Bytes of the name of a set, of a rule's id and of an error's code.
    const MAX_NAME_BYTES: usize = 100;
    /// Most characters of a finding's text, and of its location.
    pub const MAX_TEXT_CHARS: usize = 2_000;

    /// Keeps the first [`Self::MAX_KEPT_FINDINGS`], the gravest first, and counts the others.
    pub fn keep_gravest(&mut self) {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let more = self.findings.len().saturating_sub(Self::MAX_KEPT_FINDINGS);
        self.findings.truncate(Self::MAX_KEPT_FINDINGS);
        self.more_findings = self.more_findings.saturating_add(more);
    }

    /// Whether [`Self::keep_gravest`] can have left this: for a report that another process made.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (1..=Self::MAX_SETS).contains(&self.sets.len())
            && self.sets.iter().all(|set| is_line(set, Self::MAX_NAME_BYTES))
            && self.findings.len() <= Self::MAX_KEPT_FINDINGS
            && self.findings.iter().all(RuleFinding::is_sound)
    }
}

impl RuleFinding {
    /// The id may become a reason for a review, so it is a word and no text.
    fn is_sound(&self) -> bool {
        is_word(&self.rule)
            && self.error.as_deref().is_none_or(is_word)
            && [&self.text, &self.location].into_iter().all(|text| {
                // A character has four bytes at most.
                is_line(text, 4 * RuleReport::MAX_TEXT_CHARS)
            })
    }
}

fn is_line(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}

fn is_word(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= RuleReport::MAX_NAME_BYTES && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, severity: RuleSeverity) -> RuleFinding {
        let (text, location) = ("The sum is wrong.".to_owned(), "/Invoice".to_owned());
        RuleFinding { rule: rule.to_owned(), severity, text, location, error: None }
    }

    fn report(findings: Vec<RuleFinding>) -> RuleReport {
        RuleReport { sets: vec!["EN 16931 UBL 1".to_owned()], findings, ..RuleReport::default() }
    }

    #[test]
    fn of_many_findings_the_gravest_are_kept_and_the_others_counted() {
        let mut many = vec![finding("W", RuleSeverity::Warning); 100];
        many.push(finding("F", RuleSeverity::Fatal));
        let mut report = RuleReport { more_findings: 3, ..report(many) };
        report.keep_gravest();
        assert_eq!((report.findings.len(), report.more_findings), (100, 4));
        assert_eq!(report.findings[0].rule, "F");
        assert!(report.is_sound());
    }

    #[test]
    fn a_report_beyond_the_bounds_is_not_sound() {
        let with = |change: fn(&mut RuleFinding)| {
            let mut one = finding("BR-CO-15", RuleSeverity::Fatal);
            change(&mut one);
            report(vec![one])
        };
        assert!(with(|_| ()).is_sound() && report(Vec::new()).is_sound());
        for (name, wrong) in [
            ("an id that is a sentence", with(|it| it.rule = "Pay to NO93 8601".to_owned())),
            ("an endless id", with(|it| it.rule = "x".repeat(101))),
            ("an endless text", with(|it| it.text = "x".repeat(8_001))),
            ("a text with a control character", with(|it| it.text = "a\u{1b}]".to_owned())),
            ("an endless location", with(|it| it.location = "x".repeat(8_001))),
            ("an error that is a sentence", with(|it| it.error = Some("oh no".to_owned()))),
            ("no set", RuleReport { sets: Vec::new(), ..report(Vec::new()) }),
            ("too many sets", RuleReport { sets: vec![String::new(); 33], ..report(Vec::new()) }),
            ("too many findings", report(vec![finding("R", RuleSeverity::Fatal); 101])),
        ] {
            assert!(!wrong.is_sound(), "{name}");
        }
    }
}
