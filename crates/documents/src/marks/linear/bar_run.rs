//! Bars and spaces along a line, from one bar on.

use docmill_core::model::CodeSymbology;

/// Bars from one on, and the space before it; none at the end of the line.
pub(super) struct BarRun<'a> {
    pub(super) widths: &'a [i32],
    pub(super) before: Option<i32>,
}

/// A code at the beginning of a run: its payload and how many bars and spaces it takes.
pub(super) type ReadCode = (CodeSymbology, String, usize);

impl BarRun<'_> {
    /// Bars and spaces from one on.
    pub(super) fn part<const N: usize>(&self, at: usize) -> Option<[i32; N]> {
        self.widths.get(at..at + N)?.try_into().ok()
    }

    /// Whether so much paper lies before the first bar, or none is left.
    pub(super) fn is_quiet_before(&self, pixels: i32) -> bool {
        self.before.is_none_or(|space| space >= pixels)
    }

    /// Whether so much paper lies behind the last of so many bars and spaces.
    pub(super) fn is_quiet_behind(&self, count: usize, pixels: i32) -> bool {
        self.widths.get(count).is_none_or(|space| *space >= pixels)
    }
}
