//! This run against an earlier one: which figures moved, which documents got better or worse.
//!
//! The earlier run is what `docmill eval --json` printed. A figure that only one of them has is
//! not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::EvalReport;

/// As much of an earlier report as is compared.
#[derive(Debug, Deserialize)]
pub struct EarlierReport {
    measures: BTreeMap<String, f64>,
    documents: Vec<EarlierDocument>,
}

#[derive(Debug, Deserialize)]
struct EarlierDocument {
    name: String,
    faults: Vec<String>,
}

/// A figure that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedFigure {
    /// Name of the figure, as in the report's `measures`.
    pub name: String,
    /// The figure's value in the earlier run.
    pub before: f64,
    /// The figure's value in this run.
    pub after: f64,
}

/// A document that is read otherwise than before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedDocument {
    /// File name of the document, without its ending.
    pub name: String,
    /// Fields that are wrong now and were not.
    pub worse: Vec<String>,
    /// Fields that were wrong and are not now.
    pub better: Vec<String>,
}

/// Two runs side by side.
#[derive(Debug, Clone, Serialize)]
pub struct RunComparison {
    /// The figures that differ between the runs.
    pub moved: Vec<MovedFigure>,
    /// Documents of both runs that changed.
    pub changed: Vec<ChangedDocument>,
    /// Documents that only one run has.
    pub only_in_one: usize,
}

/// Less than this is the last digit of a printed share.
const SAME: f64 = 5e-4;

impl RunComparison {
    /// Compares `report` with an earlier one.
    pub fn from_reports(earlier: &EarlierReport, report: &EvalReport) -> Self {
        let moved = report.measures.iter().filter_map(|(name, after)| {
            let before = *earlier.measures.get(name)?;
            let moved = MovedFigure { name: name.clone(), before, after: *after };
            ((before - after).abs() >= SAME).then_some(moved)
        });
        let known: BTreeMap<&str, BTreeSet<&String>> = earlier
            .documents
            .iter()
            .map(|document| (document.name.as_str(), document.faults.iter().collect()))
            .collect();
        let mut changed = Vec::new();
        let mut both = 0;
        for document in &report.documents {
            let Some(before) = known.get(document.name.as_str()) else { continue };
            both += 1;
            let now: BTreeSet<&String> = document.faults.iter().collect();
            let worse: Vec<String> = now.difference(before).copied().cloned().collect();
            let better: Vec<String> = before.difference(&now).copied().cloned().collect();
            if !worse.is_empty() || !better.is_empty() {
                changed.push(ChangedDocument { name: document.name.clone(), worse, better });
            }
        }
        let only_in_one = known.len() + report.documents.len() - 2 * both;
        Self { moved: moved.collect(), changed, only_in_one }
    }
}

impl fmt::Display for RunComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "against the earlier run:")?;
        if self.moved.is_empty() {
            writeln!(f, "  no figure moved")?;
        }
        for moved in &self.moved {
            let MovedFigure { name, before, after } = moved;
            writeln!(f, "  {name:<34}{before:>9.3} -> {after:<9.3}{:+.3}", after - before)?;
        }
        for changed in &self.changed {
            write!(f, "  {}:", changed.name)?;
            changed.worse.iter().try_for_each(|field| write!(f, " -{field}"))?;
            changed.better.iter().try_for_each(|field| write!(f, " +{field}"))?;
            writeln!(f)?;
        }
        if self.only_in_one > 0 {
            writeln!(f, "  {} documents are in one of the runs only", self.only_in_one)?;
        }
        Ok(())
    }
}
