//! Why a document is not laid out.

use docmill_core::model::OutcomeReason;
use docmill_formats::xml::XmlError;

/// Why a document is not laid out: its reason code, and counts, limits and names of formats in
/// words; never document content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason:?}: {detail}")]
pub struct OfficeError {
    /// The code for the row.
    pub reason: OutcomeReason,
    /// The limit or the damage, for a person.
    pub detail: String,
}

impl OfficeError {
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self { reason: OutcomeReason::TooLarge, detail: detail.into() }
    }

    pub(crate) fn corrupt(detail: impl Into<String>) -> Self {
        Self { reason: OutcomeReason::Corrupt, detail: detail.into() }
    }

    pub(crate) fn unsupported(detail: impl Into<String>) -> Self {
        Self { reason: OutcomeReason::UnsupportedType, detail: detail.into() }
    }

    pub(crate) fn encrypted() -> Self {
        let detail = "an Office document that is encrypted: save it without a password";
        Self { reason: OutcomeReason::Encrypted, detail: detail.into() }
    }
}

impl From<XmlError> for OfficeError {
    fn from(error: XmlError) -> Self {
        match error {
            XmlError::TooLarge => Self::too_large(
                "a part in XML of more than 32 MiB, 64 levels, 64 attributes or 2,000,000 marks",
            ),
            XmlError::Encoding | XmlError::Malformed | XmlError::Entities => {
                Self::corrupt(error.to_string())
            }
        }
    }
}
