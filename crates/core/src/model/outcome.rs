//! The end of an attempt: one closed table of codes (design §6) that is at once the word in the
//! log, the metric label, the text in the row and the filter of the command line.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::model::IngestionStatus;

/// Why an ingestion ended other than completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeReason {
    /// The bytes are damaged beyond reading.
    Corrupt,
    /// A password is needed.
    Encrypted,
    /// No bytes or no pages.
    Empty,
    /// None of the formats we read.
    UnsupportedType,
    /// Over one of the limits: bytes, pages, pixels, decompressed bytes.
    TooLarge,
    /// Over its own time limit.
    Timeout,
    /// Read to the end, and there is nothing on it.
    NoText,
    /// No acceptable extraction, or a hook stopped it; the partial data is kept.
    GateRefused,
    /// The model's reply was cut and could not be completed.
    Cut,
    /// The model declined to answer.
    ModelRefused,
    /// Workers died on it as often as is allowed.
    Crashed,
    /// The object is not in the store.
    Missing,
    /// Our own bug, as often as is allowed.
    Internal,
    /// Passing trouble, as often as is allowed.
    Transient,
    /// Put off for longer than `retry.max_deferral`.
    DeferredTooLong,
    /// A newer object took its place.
    Superseded,
    /// Withdrawn by an operator.
    Cancelled,
    /// The content is on the operator's block list.
    Blocked,
}

impl OutcomeReason {
    /// Every code, in the order of the design's table.
    pub const ALL: [Self; 18] = [
        Self::Corrupt,
        Self::Encrypted,
        Self::Empty,
        Self::UnsupportedType,
        Self::TooLarge,
        Self::Timeout,
        Self::NoText,
        Self::GateRefused,
        Self::Cut,
        Self::ModelRefused,
        Self::Crashed,
        Self::Missing,
        Self::Internal,
        Self::Transient,
        Self::DeferredTooLong,
        Self::Superseded,
        Self::Cancelled,
        Self::Blocked,
    ];

    /// The stable code that is stored, logged and counted.
    pub fn code(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Encrypted => "encrypted",
            Self::Empty => "empty",
            Self::UnsupportedType => "unsupported_type",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::NoText => "no_text",
            Self::GateRefused => "gate_refused",
            Self::Cut => "cut",
            Self::ModelRefused => "model_refused",
            Self::Crashed => "crashed",
            Self::Missing => "missing",
            Self::Internal => "internal",
            Self::Transient => "transient",
            Self::DeferredTooLong => "deferred_too_long",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
            Self::Blocked => "blocked",
        }
    }

    /// The inverse of [`OutcomeReason::code`].
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// The status a row with this reason has.
    pub fn status(self) -> IngestionStatus {
        match self {
            Self::Superseded | Self::Cancelled | Self::Blocked => IngestionStatus::Cancelled,
            _ => IngestionStatus::Failed,
        }
    }

    /// Whether the failure is technical: not the input's fault and no verdict on it either.
    pub fn is_technical(self) -> bool {
        matches!(
            self,
            Self::Crashed
                | Self::Missing
                | Self::Internal
                | Self::Transient
                | Self::DeferredTooLong
        )
    }
}

/// How one attempt ended: the text of `attempt.outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The ingestion is completed.
    Completed,
    /// The ingestion ended for this reason.
    Ended(OutcomeReason),
    /// The attempt failed with this fault and another will follow.
    Fault(Fault),
}

impl AttemptOutcome {
    /// The stable code that is stored, logged and counted.
    pub fn code(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Ended(reason) => reason.code(),
            Self::Fault(fault) => fault.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_as_itself() {
        for reason in OutcomeReason::ALL {
            assert_eq!(OutcomeReason::from_code(reason.code()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.code());
            assert!(reason.status().is_terminal());
        }
    }
}
