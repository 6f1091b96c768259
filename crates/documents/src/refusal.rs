//! Why a document is not read, and how a decoder of hostile bytes is kept from taking the worker
//! with it: a panic becomes a refusal. An abort (a failed allocation, an overflowing stack) does
//! not.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use docmill_core::model::{OutcomeReason, TextOverflow};
use docmill_formats::xml::XmlError;
use docmill_office::OfficeError;

/// Why a document is not read: it goes no further, and trying again gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason:?}: {detail}")]
pub struct PageRefusal {
    /// The code for the row.
    pub reason: OutcomeReason,
    /// Counts, limits and names of formats; never document content.
    pub detail: String,
}

impl PageRefusal {
    pub(crate) fn new(reason: OutcomeReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl From<XmlError> for PageRefusal {
    fn from(error: XmlError) -> Self {
        let reason = match error {
            XmlError::TooLarge => OutcomeReason::TooLarge,
            XmlError::Encoding | XmlError::Malformed | XmlError::Entities => OutcomeReason::Corrupt,
        };
        Self::new(reason, error.to_string())
    }
}

impl From<OfficeError> for PageRefusal {
    fn from(error: OfficeError) -> Self {
        let OfficeError { reason, detail } = error;
        Self { reason, detail }
    }
}

impl From<TextOverflow> for PageRefusal {
    fn from(overflow: TextOverflow) -> Self {
        Self::new(OutcomeReason::TooLarge, overflow.to_string())
    }
}

/// Runs a decoder on hostile bytes. A panic becomes `corrupt`; a [`stop_decoder`] becomes its
/// refusal.
pub(crate) fn catch_decoder<T>(
    decode: impl FnOnce() -> Result<T, PageRefusal>,
) -> Result<T, PageRefusal> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|payload| Err(refusal_from_panic(payload)))
}

fn refusal_from_panic(payload: Box<dyn Any + Send>) -> PageRefusal {
    match payload.downcast::<PageRefusal>() {
        Ok(refusal) => *refusal,
        Err(_panic) => {
            tracing::error!("a decoder panicked; its document is refused as corrupt");
            PageRefusal::new(OutcomeReason::Corrupt, "a decoder panicked on it")
        }
    }
}

/// Leaves a decoder from inside one of its callbacks, which offer no other way out. Unwinds to
/// [`catch_decoder`] without the panic hook, so nothing is printed.
pub(crate) fn stop_decoder(refusal: PageRefusal) -> ! {
    std::panic::resume_unwind(Box::new(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_that_panics_costs_its_document_only() {
        let refused = catch_decoder::<()>(|| panic!("on purpose")).unwrap_err();
        assert_eq!(refused.reason, OutcomeReason::Corrupt);
        assert!(!refused.detail.contains("on purpose"), "a panic's text may hold content");
    }

    #[test]
    fn a_callback_leaves_its_decoder_with_its_own_reason() {
        let too_large = PageRefusal::new(OutcomeReason::TooLarge, "2 > 1");
        let refused = catch_decoder::<()>(|| stop_decoder(too_large.clone())).unwrap_err();
        assert_eq!(refused, too_large);
    }
}
