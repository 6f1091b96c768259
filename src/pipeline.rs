//! The way of a document: the one place where the order of the steps is written.

pub mod reading;

use crate::fault;
use crate::model::Reason;

/// Why a step could not hand its document on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The input ends here, for this reason. The text is for operators: never document content.
    #[error("{reason:?}: {detail}")]
    Rejected {
        /// The code that goes into the row.
        reason: Reason,
        /// Counts and limits, e.g. `812 pages, the limit is 500`.
        detail: String,
    },
    /// The outside failed; its fault says how to react.
    #[error(transparent)]
    Fault(#[from] fault::Error),
    /// The claim is no longer ours: nothing more is written or started.
    #[error("the claim is lost")]
    ClaimLost,
}

impl StepError {
    /// The input ends here.
    pub fn rejected(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Rejected { reason, detail: detail.into() }
    }
}
