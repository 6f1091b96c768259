//! The bound of what an envelope may hold.

use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// The refusal of content that exceeds `most` bytes.
pub(super) fn too_large(most: u64) -> PageRefusal {
    let detail = format!("an envelope holds more than limits.document_bytes, {most} bytes");
    PageRefusal::new(OutcomeReason::TooLarge, detail)
}
