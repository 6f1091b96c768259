//! Remarks on a page that was read from an Office document, web page or text file.

use serde::{Deserialize, Serialize};

/// Something that such a page has and its text has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageNote {
    /// Text that a person does not see: hidden, white on white, of no size.
    HiddenText,
    /// Hidden sheets, rows, columns or slides.
    HiddenCells,
    /// Crossed-out text, and deleted text whose deletion is tracked.
    DeletedText,
    /// Comments or speaker notes.
    Comments,
    /// A formula without a stored value: its cell is empty here.
    FormulaWithoutValue,
    /// An embedded picture that was not read.
    UnreadPicture,
    /// A value that the file may hide or show as another: by a condition that is not decided here,
    /// under a picture, or by a stored value that its text contradicts.
    DoubtfulText,
}

impl PageNote {
    /// Notes of one page: each kind once.
    pub const MAX_PER_PAGE: usize = 7;

    /// Whether a part of the page that a person would see is missing from its text, or may be
    /// another one.
    #[must_use]
    pub fn is_gap(self) -> bool {
        matches!(self, Self::FormulaWithoutValue | Self::DoubtfulText)
    }
}
