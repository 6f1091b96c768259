//! Spatial index of a page's glyphs, to find neighbours.

use hayro::kurbo::Rect;

#[cfg(test)]
use crate::pdf::page_glyph::PageGlyph;

/// Cells across and down.
const CELLS: usize = 128;
/// Cells searched for one glyph.
const MAX_GLYPH_CELLS: usize = 1 << 14;
/// Glyphs that are compared in one cell.
const MAX_COMPARED: usize = 64;

/// Glyphs by grid cell, as linked lists.
pub(super) struct GlyphCells {
    page: Rect,
    /// The latest entry of each cell.
    latest: Vec<Option<usize>>,
    /// Glyph, and the previous entry of its cell.
    entries: Vec<(usize, Option<usize>)>,
}

impl GlyphCells {
    pub(super) fn new(page: Rect) -> Self {
        Self { page, latest: vec![None; CELLS * CELLS], entries: Vec::new() }
    }

    pub(super) fn longer_side(&self) -> f64 {
        self.page.width().max(self.page.height())
    }

    /// The cells of an area of the page.
    pub(super) fn cells_of(&self, area: Rect) -> impl Iterator<Item = usize> + use<> {
        let [left, right] =
            [area.x0, area.x1].map(|x| cell_at(x - self.page.x0, self.page.width()));
        let [top, bottom] =
            [area.y0, area.y1].map(|y| cell_at(y - self.page.y0, self.page.height()));
        let rows = top..=bottom;
        let cells = rows.flat_map(move |row| (left..=right).map(move |x| row * CELLS + x));
        cells.take(MAX_GLYPH_CELLS)
    }

    #[cfg(test)]
    pub(super) fn of_glyphs(glyphs: &[PageGlyph], page: Rect) -> Self {
        let mut cells = Self::new(page);
        for (at, glyph) in glyphs.iter().enumerate() {
            cells.cells_of(glyph.letter_box()).for_each(|cell| cells.add(cell, at));
        }
        cells
    }

    pub(super) fn add(&mut self, cell: usize, glyph: usize) {
        if let Some(latest) = self.latest.get_mut(cell) {
            let before = latest.replace(self.entries.len());
            self.entries.push((glyph, before));
        }
    }

    /// The glyphs of a cell, latest first.
    pub(super) fn latest(&self, cell: usize) -> impl Iterator<Item = usize> {
        let latest = self.latest.get(cell).copied().flatten();
        let first = latest.and_then(|at| self.entries.get(at));
        let all = std::iter::successors(first, |(_, before)| self.entries.get((*before)?));
        all.take(MAX_COMPARED).map(|(glyph, _)| *glyph)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to the cells of a page"
)]
fn cell_at(place: f64, length: f64) -> usize {
    (place / length * CELLS as f64).clamp(0.0, CELLS as f64 - 1.0) as usize
}
