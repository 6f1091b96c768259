//! Marks of a page besides words and codes, and their positions: found in its ink, kept in the
//! transcript.

use serde::{Deserialize, Serialize};

use super::BoundingBox;

/// Kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageMarkKind {
    /// A picture or drawing.
    Figure,
    /// Handwriting: found by its ink, or by words that a provider marks so, joined along a line.
    Handwriting,
    /// Handwriting where people sign; the signer is not identified.
    Signature,
    /// A stamp, by the form of its frame.
    Stamp,
}

/// Something on a page that is no text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageMark {
    /// Its kind.
    pub kind: PageMarkKind,
    /// The smallest box around it, in the unit of the page's boxes.
    #[serde(rename = "box")]
    pub bounding_box: BoundingBox,
}

impl PageMark {
    /// Marks of one page that are kept. A page that has so many may have had more.
    pub const MAX_PER_PAGE: usize = 32;
}
