//! What the library and the program are both told.

/// Page segmentation mode 3: automatic, without orientation detection, which costs as much as
/// reading the page.
pub(super) const SEGMENTATION: u32 = 3;
