//! Why a picture is not decoded: its size, which is checked before, its encoding, its damage.

use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Whether a picture of this size may be decoded.
pub(super) fn check_size(
    width: u32,
    height: u32,
    limits: &LimitsConfig,
) -> Result<(), PageRefusal> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 {
        return Err(PageRefusal::new(OutcomeReason::Corrupt, "a picture without pixels"));
    }
    if pixels > limits.page_pixels {
        let limit = limits.page_pixels;
        let detail = format!("{width} x {height} pixels, the limit is {limit}");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    Ok(())
}

/// A picture that a decoder of its format does not decode.
pub(super) fn unread_encoding() -> PageRefusal {
    PageRefusal::new(OutcomeReason::UnsupportedType, "a picture in an unsupported encoding")
}

/// A picture that is damaged.
pub(super) fn undecodable() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "a picture that cannot be decoded")
}
