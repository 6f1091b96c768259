//! A piece of a page, independent of the picture's size.

use serde::{Deserialize, Serialize};

/// A rectangle on a page in ten-thousandths of its width and height, from its top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCrop {
    /// Left edge, 0 to 10,000.
    pub left: u16,
    /// Top edge, 0 to 10,000.
    pub top: u16,
    /// Right edge, beyond the left one.
    pub right: u16,
    /// Bottom edge, beyond the top one.
    pub bottom: u16,
}

impl PageCrop {
    /// A whole side in these units.
    pub const WHOLE: u16 = 10_000;

    /// Of two corners in shares of width and height. `None`: it has no area on the page.
    pub fn from_shares([left, top, right, bottom]: [f64; 4]) -> Option<Self> {
        let (left, top, right, bottom) =
            (unit_of(left)?, unit_of(top)?, unit_of(right)?, unit_of(bottom)?);
        (left < right && top < bottom).then_some(Self { left, top, right, bottom })
    }

    /// The pixels from and to which it reaches on a side of so many, at least one.
    pub fn pixels_between(from: u16, to: u16, side: u32) -> (u32, u32) {
        let at = |unit: u16| {
            let pixel = u64::from(side) * u64::from(unit.min(Self::WHOLE)) / u64::from(Self::WHOLE);
            u32::try_from(pixel).unwrap_or(side)
        };
        let first = at(from).min(side.saturating_sub(1));
        (first, at(to).max(first + 1).min(side.max(1)))
    }
}

/// A share of a side in the units of a crop; none for NaN or a share far outside of the page.
fn unit_of(share: f64) -> Option<u16> {
    // NaN fails these comparisons.
    (-0.05..=1.05).contains(&share).then(|| {
        let whole = share.clamp(0.0, 1.0) * f64::from(PageCrop::WHOLE);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
        let whole = whole.round() as u16;
        whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crop_without_an_area_on_the_page_is_refused() {
        let piece = PageCrop::from_shares([0.1, 0.2, 0.3, 0.25]).unwrap();
        assert_eq!((piece.left, piece.top, piece.right, piece.bottom), (1000, 2000, 3000, 2500));
        assert!(PageCrop::from_shares([-0.01, 0.0, 1.01, 1.0]).is_some(), "a pixel beside it");
        for wrong in [
            [0.3, 0.2, 0.1, 0.25],
            [0.1, 0.2, 0.3, 0.2],
            [0.1, 0.2, 3.0, 0.25],
            [f64::NAN, 0.2, 0.3, 0.25],
            [0.1, f64::NEG_INFINITY, 0.3, 0.25],
        ] {
            assert_eq!(PageCrop::from_shares(wrong), None, "{wrong:?}");
        }
        assert_eq!(PageCrop::pixels_between(0, 10_000, 300), (0, 300));
        assert_eq!(PageCrop::pixels_between(9_999, 10_000, 3), (2, 3));
    }
}
