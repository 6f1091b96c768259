//! Faults of a set-up with their remedies: the findings of `docmill doctor`.
//!
//! Every check is a small function from facts to a [`DoctorFinding`]; `app`, which has the
//! implementations, gathers the facts. Nothing here changes anything: permissions are probed by
//! requests that cannot succeed. Not promised: that a set-up without a finding works for ever.

pub mod clock;
pub mod database;
pub mod prices;
pub mod probe;
pub mod process;
pub mod queue;
pub mod store;

use serde::Serialize;

use docmill_core::fault;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Everything is as it should be.
    Ok,
    /// Works, but will hurt one day.
    Warn,
    /// The set-up does not work like this and must be changed.
    Wrong,
}

/// The finding of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// Name of the check, e.g. `queue.redrive`.
    pub check: &'static str,
    /// How serious the finding is.
    pub verdict: Severity,
    /// The finding in words.
    pub found: String,
    /// The remedy; `None` if nothing has to change.
    pub advice: Option<String>,
}

impl DoctorFinding {
    /// A finding about something that is as it should be.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Ok, found: found.into(), advice: None }
    }

    /// A finding about something that works, but should be changed.
    pub fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { check, verdict: Severity::Warn, found: found.into(), advice }
    }

    /// A finding about something that must be changed.
    pub fn wrong(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Severity::Wrong, ..Self::warn(check, found, advice) }
    }

    /// A dependency does not answer or refuses access; the error names what to check.
    pub fn unusable(check: &'static str, error: &impl std::fmt::Display) -> Self {
        let (verdict, found) = (Severity::Wrong, error.to_string());
        Self { check, verdict, found, advice: None }
    }
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorReport {
    /// Whether the set-up can stay as it is.
    pub well: bool,
    /// In the order of the checks.
    pub findings: Vec<DoctorFinding>,
}

impl DoctorReport {
    /// Builds the report from its findings.
    pub fn from_findings(findings: Vec<DoctorFinding>) -> Self {
        let well = findings.iter().all(|finding| finding.verdict != Severity::Wrong);
        Self { well, findings }
    }
}

/// The finding of a check that made a request; without an answer it is `unusable`.
pub fn findings_or_unusable(
    check: &'static str,
    answer: fault::Result<Vec<DoctorFinding>>,
) -> Vec<DoctorFinding> {
    answer.unwrap_or_else(|error| vec![DoctorFinding::unusable(check, &error)])
}
