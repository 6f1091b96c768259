//! Options for both the library and the program.

/// Page segmentation mode 3: automatic, without orientation detection, which costs as much as
/// reading the page.
pub(super) const SEGMENTATION: u32 = 3;
