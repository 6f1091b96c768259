//! The sets of rules that a document is checked by, and what they find.

use std::collections::BTreeMap;

use docmill_formats::xml::XmlTree;
use serde::{Deserialize, Serialize};

use crate::evaluator::{XPathEvaluator, XPathFocus};
use crate::names::NameTable;
use crate::schema::{
    CompiledCheck, CompiledRule, CompiledSchema, RuleContext, RulePattern, RuleTextPart,
    SchemaSource, compile_schema,
};
use crate::token::SyntaxError;
use crate::tree::{NodeNumber, NodeSort, NodeTree};
use crate::value::{AtomicValue, EvaluationError};

/// Steps of evaluation that one document may take under one set of rules: an invoice of 1,000
/// lines takes less than a third.
pub const MAX_STEPS: u64 = 60_000_000;
/// Most findings of one document. The rest is counted.
pub const MAX_FINDINGS: usize = 500;
/// Most characters of a finding's text, and of its location.
pub const MAX_TEXT_CHARS: usize = 2_000;
/// The form of the rules file that this version reads.
const RULES_FORMAT: u32 = 1;

/// Why a rules file is not used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// It is no rules file of this version.
    #[error("no rules file: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version of the form.
    #[error("a rules file of format {0}; this version reads format {RULES_FORMAT}")]
    Format(u32),
    /// A set has an expression, or another part, that is not read.
    #[error("the rules {set}: {detail}")]
    Rules {
        /// The set's name.
        set: String,
        /// The part, and why it is not read.
        detail: String,
    },
}

/// A rules file: sources of sets of rules, written by `scripts/einvoice_rules.py`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    format: u32,
    sets: Vec<RulesSource>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesSource {
    name: String,
    version: String,
    applies: String,
    schematron: String,
    #[serde(default)]
    includes: BTreeMap<String, String>,
}

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
    fn from_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "warning" | "warn" => Self::Warning,
            "information" | "info" => Self::Information,
            _ => Self::Fatal,
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
    /// At most [`MAX_FINDINGS`], in the order of sets, patterns and nodes.
    pub findings: Vec<RuleFinding>,
    /// Findings beyond those.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub more_findings: usize,
    /// Whether a set took more than [`MAX_STEPS`] and was not checked to its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
}

fn is_none_left(more: &usize) -> bool {
    *more == 0
}

fn is_false(truth: &bool) -> bool {
    !truth
}

impl RuleReport {
    fn add(&mut self, finding: RuleFinding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.more_findings = self.more_findings.saturating_add(1);
        }
    }
}

/// A set of rules: one official file, as `EN 16931 UBL`.
#[derive(Debug)]
struct RuleSet {
    title: String,
    schema: CompiledSchema,
}

/// All sets of rules that documents are checked by.
#[derive(Debug)]
pub struct RuleLibrary {
    sets: Vec<RuleSet>,
    /// Names of nodes in all sets.
    names: NameTable,
}

impl RuleLibrary {
    /// Compiles a rules file.
    ///
    /// # Errors
    /// It is none of this version, or an expression in it is not read: rules are never applied by
    /// half.
    pub fn from_json(text: &str) -> Result<Self, RulesError> {
        let file: RulesFile = serde_json::from_str(text)?;
        if file.format != RULES_FORMAT {
            return Err(RulesError::Format(file.format));
        }
        let (mut sets, mut names) = (Vec::new(), NameTable::default());
        for source in file.sets {
            let schema = SchemaSource {
                schematron: &source.schematron,
                includes: &source.includes,
                applies: &source.applies,
            };
            let schema = compile_schema(schema, &mut names).map_err(|SyntaxError(detail)| {
                RulesError::Rules { set: source.name.clone(), detail }
            })?;
            sets.push(RuleSet { title: format!("{} {}", source.name, source.version), schema });
        }
        Ok(Self { sets, names })
    }

    /// Name and version of each set.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().map(|set| set.title.as_str())
    }

    /// Checks a document by every set that is meant for it.
    pub fn check(&self, document: &XmlTree<'_>) -> RuleReport {
        let mut report = RuleReport::default();
        let tree = NodeTree::new(document, &self.names);
        for set in &self.sets {
            set.check(&tree, false, &mut report);
        }
        report
    }

    /// Checks a document by the set of this name and version, for which it need not be meant.
    pub fn check_by_set(&self, title: &str, document: &XmlTree<'_>) -> RuleReport {
        let mut report = RuleReport::default();
        let tree = NodeTree::new(document, &self.names);
        for set in self.sets.iter().filter(|set| set.title == title) {
            set.check(&tree, true, &mut report);
        }
        report
    }
}

impl RuleSet {
    /// Adds what the set finds in a document that it is meant for, or in any.
    fn check(&self, tree: &NodeTree<'_>, is_meant_for_any: bool, report: &mut RuleReport) {
        let evaluator = XPathEvaluator::new(&self.schema.program, tree, MAX_STEPS);
        let mut run = RuleRun { tree, evaluator, report };
        let is_meant = run.evaluator.is_true(&self.schema.applies, &XPathFocus::on_node(0));
        if is_meant_for_any || is_meant == Ok(true) {
            run.report.sets.push(self.title.clone());
            let ended = run.check_patterns(&self.schema.patterns);
            run.report.is_cut |= ended.is_err();
        }
    }
}

/// The run of one set of rules over one document.
struct RuleRun<'a, 'r> {
    tree: &'a NodeTree<'a>,
    evaluator: XPathEvaluator<'a>,
    report: &'r mut RuleReport,
}

impl<'a> RuleRun<'a, '_> {
    /// Applies the rules pattern by pattern.
    fn check_patterns(&mut self, patterns: &'a [RulePattern]) -> Result<(), EvaluationError> {
        for pattern in patterns {
            for node in 0..self.tree.len() {
                let contexts = match self.tree.sort(node) {
                    NodeSort::Root => pattern.root_contexts(),
                    NodeSort::Element => pattern.element_contexts(self.tree.name(node)),
                    NodeSort::Attribute => pattern.attribute_contexts(),
                    _ => &[],
                };
                if let Some(rule) = self.find_rule(pattern, contexts, node)? {
                    self.apply_rule(rule, node)?;
                }
            }
        }
        Ok(())
    }

    /// The first rule whose context matches.
    fn find_rule(
        &mut self,
        pattern: &'a RulePattern,
        contexts: &'a [RuleContext],
        node: NodeNumber,
    ) -> Result<Option<&'a CompiledRule>, EvaluationError> {
        for context in contexts {
            if context.pattern.is_match(node, self.tree, &mut self.evaluator)? {
                return Ok(pattern.rules.get(context.rule));
            }
        }
        Ok(None)
    }

    fn apply_rule(
        &mut self,
        rule: &'a CompiledRule,
        node: NodeNumber,
    ) -> Result<(), EvaluationError> {
        self.evaluator.enter_rule(&rule.variables, node);
        let focus = XPathFocus::on_node(node);
        for check in &rule.checks {
            let error = match self.evaluator.is_true(&check.test, &focus) {
                Ok(holds) if holds == check.is_assertion => continue,
                Ok(_) => None,
                Err(EvaluationError::Budget) => return Err(EvaluationError::Budget),
                Err(error) => Some(error.code().to_owned()),
            };
            let text = self.message(check, &focus, node)?;
            self.report.add(RuleFinding {
                rule: check.id.clone(),
                severity: RuleSeverity::from_word(&check.severity),
                text,
                location: cut_text(&self.tree.location(node)),
                error,
            });
        }
        Ok(())
    }

    /// The text of a check, with values of the document where it asks for them.
    fn message(
        &mut self,
        check: &'a CompiledCheck,
        focus: &XPathFocus<'a>,
        node: NodeNumber,
    ) -> Result<String, EvaluationError> {
        let mut text = String::new();
        for part in &check.message {
            match part {
                RuleTextPart::Text(part) => text.push_str(part),
                RuleTextPart::Name => text.push_str(&self.tree.qualified_name(node)),
                RuleTextPart::Value(value) => match self.evaluator.evaluate_values(value, focus) {
                    Ok(values) => {
                        let texts: Vec<_> =
                            values.into_iter().map(AtomicValue::into_text).collect();
                        text.push_str(&texts.join(" "));
                    }
                    Err(EvaluationError::Budget) => return Err(EvaluationError::Budget),
                    Err(_) => {}
                },
            }
        }
        Ok(cut_text(&text))
    }
}

/// A text on one line, cut to [`MAX_TEXT_CHARS`].
fn cut_text(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_TEXT_CHARS).collect()
}
