//! Why a step could not hand its document on, and which one it was.

use docmill_core::fault::{self, Fault};
use docmill_core::model::{IngestionStage, OutcomeReason};
use docmill_documents::sandbox::DocumentReadError;

/// Why a step could not hand its document on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The input ends here, for this reason. The text is for operators: never document content.
    #[error("{}: {detail}", reason.code())]
    Rejected {
        /// The code that goes into the row.
        reason: OutcomeReason,
        /// Counts and limits, e.g. `1812 pages, limits.pages is 1000`.
        detail: String,
    },
    /// A dependency failed, or the claim is lost; the fault decides the reaction.
    #[error(transparent)]
    Fault(#[from] fault::Error),
}

impl StepError {
    /// The word of the log and the metric.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rejected { reason, .. } => reason.code(),
            Self::Fault(error) => error.fault.code(),
        }
    }

    /// The input ends here.
    pub fn rejected(reason: OutcomeReason, detail: impl Into<String>) -> Self {
        Self::Rejected { reason, detail: detail.into() }
    }

    /// Whether the object is another version than was asked for.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(self, Self::Rejected { reason: OutcomeReason::Superseded, .. })
    }

    /// Whether a password is needed that is not known yet.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Rejected { reason: OutcomeReason::Encrypted, .. })
    }

    /// The claim is lost: nothing more is written or started.
    pub fn claim_lost() -> Self {
        Self::Fault(fault::Error::claim_lost())
    }

    /// Whether the claim is lost.
    pub fn is_claim_lost(&self) -> bool {
        matches!(self, Self::Fault(error) if error.fault == Fault::ClaimLost)
    }
}

/// A step that failed, and which one.
#[derive(Debug)]
pub struct StageFailure {
    /// The stage in which the step failed.
    pub stage: IngestionStage,
    /// Why the step failed.
    pub error: StepError,
}

/// A page process's error as a step error.
pub(super) fn step_error(error: DocumentReadError) -> StepError {
    match error {
        DocumentReadError::Refused { reason, detail } => StepError::rejected(reason, detail),
        DocumentReadError::Fault(error) => StepError::Fault(error),
    }
}
