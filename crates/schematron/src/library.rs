//! The sets of rules that a document is checked by, and what they find.

use std::collections::BTreeMap;

use docmill_core::model::{RuleFinding, RuleReport, RuleSeverity};
use docmill_formats::xml::{XmlNode, XmlTree};
use serde::Deserialize;

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

/// A set of rules: one official file, as `EN 16931 UBL`.
#[derive(Debug)]
struct RuleSet {
    title: String,
    schema: CompiledSchema,
}

/// All sets of rules that documents are checked by.
#[derive(Debug, Default)]
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
        let mut library = Self::default();
        library.add_json(text)?;
        Ok(library)
    }

    /// Compiles one more rules file.
    ///
    /// # Errors
    /// As [`Self::from_json`].
    pub fn add_json(&mut self, text: &str) -> Result<(), RulesError> {
        let file: RulesFile = serde_json::from_str(text)?;
        if file.format != RULES_FORMAT {
            return Err(RulesError::Format(file.format));
        }
        for source in file.sets {
            let schema = SchemaSource {
                schematron: &source.schematron,
                includes: &source.includes,
                applies: &source.applies,
            };
            let schema =
                compile_schema(schema, &mut self.names).map_err(|SyntaxError(detail)| {
                    RulesError::Rules { set: source.name.clone(), detail }
                })?;
            let title = format!("{} {}", source.name, source.version);
            self.sets.push(RuleSet { title, schema });
        }
        Ok(())
    }

    /// Name and version of each set.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().map(|set| set.title.as_str())
    }

    /// Checks a document by every set that is meant for it.
    pub fn check(&self, document: &XmlTree<'_>) -> RuleReport {
        self.check_within(document.root())
    }

    /// Checks the document that an element is the root of: one within an envelope.
    pub fn check_within(&self, root: XmlNode<'_, '_>) -> RuleReport {
        let mut report = RuleReport::default();
        let tree = NodeTree::new(root, &self.names);
        for set in &self.sets {
            set.check(&tree, false, &mut report);
        }
        report
    }

    /// Checks a document by the set of this name and version, for which it need not be meant.
    pub fn check_by_set(&self, title: &str, document: &XmlTree<'_>) -> RuleReport {
        let mut report = RuleReport::default();
        let tree = NodeTree::new(document.root(), &self.names);
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
            for node in pattern.candidates(self.tree) {
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
        let parent = self.tree.parent(node).map(|parent| self.tree.name(parent));
        let fits = |context: &&RuleContext| context.parent.is_none() || context.parent == parent;
        for context in contexts.iter().filter(fits) {
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
            let found = RuleFinding {
                rule: check.id.clone(),
                severity: RuleSeverity::from_word(&check.severity),
                text,
                location: cut_text(&self.tree.location(node)),
                error,
            };
            if self.report.findings.len() < MAX_FINDINGS {
                self.report.findings.push(found);
            } else {
                self.report.more_findings = self.report.more_findings.saturating_add(1);
            }
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
                RuleTextPart::Name => text.push_str(self.tree.written_name(node)),
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

/// A text on one line, cut to [`RuleReport::MAX_TEXT_CHARS`].
fn cut_text(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(RuleReport::MAX_TEXT_CHARS).collect()
}
