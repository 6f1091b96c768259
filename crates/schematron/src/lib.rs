//! Schematron rules, as the authors of EN 16931, Peppol BIS Billing and `XRechnung` publish them,
//! applied to XML: rule ids, severities, texts and locations.
//!
//! The way of a rule: `schema` reads the official source, `parser` its XPath expressions and
//! `context_pattern` the contexts. `library` walks over the document and `evaluator` computes, with
//! `decimal`s of any length. An expression beyond the subset makes the rules unusable, so that none
//! is skipped silently. A document costs at most [`library::MAX_STEPS`] steps for each set.
//!
//! Rules are data of others under their own licences (EUPL among them) and no part of this
//! repository: `scripts/einvoice_rules.py` makes a rules file of pinned sources.
//!
//! Not promised: XPath beyond what those rules use (times, `treat as`, maps), and the schemas of
//! UBL and CII, which say which elements there may be.

mod context_pattern;
mod decimal;
mod evaluator;
mod expression;
mod function_reader;
mod functions;
pub mod library;
mod names;
mod parser;
mod pattern_cache;
mod pattern_text;
mod schema;
#[cfg(test)]
mod tests;
mod token;
mod tree;
mod value;

pub use library::{RuleLibrary, RulesError};
