//! Record of paint under and over text, from which doubts about visibility follow.
//!
//! Paint is recorded by its boxes, never by its shape: it only makes text doubtful, and then the
//! rendered page decides ([`crate::pdf::contrast`]).

use hayro::kurbo::{Point, Rect};

use crate::image::luminance::{is_seen_on_white, stands_out};
use crate::pdf::page_glyph::PageGlyph;

/// Cells across and down in which it is kept where paint is.
const PAINT_CELLS: usize = 128;
/// Recorded pieces of paint; with more, all text of the page is doubtful.
const MAX_PAINT: usize = 1_000;

/// Paint that text could be on or under.
#[derive(Debug)]
pub(crate) enum PaintRecord {
    /// In which cells of the page there is any, row by row: all text in them is doubtful.
    Cells {
        /// The page.
        page: Rect,
        /// Whether each cell has some.
        cells: Vec<bool>,
    },
    /// Pieces in drawing order: text that stands out from all possible backgrounds is not doubtful.
    /// Rendering a page costs many times as much as drawing it here, and nearly every page has a
    /// background somewhere.
    Pieces(Vec<PaintPiece>),
    /// More pieces than [`MAX_PAINT`]: all text is doubtful, whatever else is painted.
    Everywhere,
}

/// A piece of paint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaintPiece {
    /// The box around it on the page.
    pub area: Rect,
    /// `None`: not a single grey, or translucent.
    pub grey: Option<u8>,
    /// Whether nothing under it is seen in its area.
    pub covers: bool,
}

impl PaintRecord {
    /// A page of which it is kept in which cells there is paint.
    pub(crate) fn in_cells(page: Rect) -> Self {
        Self::Cells { page, cells: vec![false; PAINT_CELLS * PAINT_CELLS] }
    }

    /// A page of which each piece is kept.
    pub(crate) fn in_pieces() -> Self {
        Self::Pieces(Vec::new())
    }

    /// Records a piece that is painted over `glyphs`. Returns how many of them were examined.
    pub(crate) fn add_piece(&mut self, piece: PaintPiece, glyphs: &mut [PageGlyph]) -> usize {
        match self {
            Self::Cells { page, cells } => mark_cells(cells, *page, piece.area),
            Self::Pieces(pieces) if pieces.len() < MAX_PAINT => {
                pieces.push(piece);
                for glyph in glyphs.iter_mut().filter(|glyph| glyph.visible) {
                    glyph.doubtful |= overlap(piece.area, glyph.letter_box());
                }
                return glyphs.len();
            }
            Self::Pieces(_) => *self = Self::Everywhere,
            Self::Everywhere => {}
        }
        0
    }

    /// Whether there is paint at a glyph with an unknown effect on it.
    pub(crate) fn is_near(&self, glyph: &PageGlyph) -> bool {
        match self {
            Self::Cells { page, cells } => {
                let cell = cell_of(*page, glyph.centre());
                cell.and_then(|cell| cells.get(cell)).copied().unwrap_or(false)
            }
            Self::Pieces(_) => false,
            Self::Everywhere => true,
        }
    }

    /// Whether the pieces that were painted before a glyph leave open if it is seen.
    pub(crate) fn is_doubtful_ground(&self, glyph: &PageGlyph) -> bool {
        let Self::Pieces(pieces) = self else { return false };
        let place = glyph.letter_box();
        for piece in pieces.iter().rev().filter(|piece| overlap(piece.area, place)) {
            if !piece.grey.is_some_and(|grey| stands_out(glyph.ink, grey)) {
                return true;
            }
            if piece.covers && piece.area.contains_rect(place) {
                return false;
            }
        }
        !is_seen_on_white(glyph.ink)
    }
}

/// Column and row of the cell of a page that has this point.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to the cells of a page"
)]
fn cell_at(page: Rect, place: Point) -> Option<(usize, usize)> {
    let cells = PAINT_CELLS as f64;
    let column = (place.x - page.x0) / page.width() * cells;
    let row = (place.y - page.y0) / page.height() * cells;
    let usable = column.is_finite() && row.is_finite();
    let [column, row] = [column, row].map(|at| at.clamp(0.0, cells - 1.0) as usize);
    usable.then_some((column, row))
}

fn cell_of(page: Rect, place: Point) -> Option<usize> {
    cell_at(page, place).map(|(column, row)| row * PAINT_CELLS + column)
}

fn mark_cells(cells: &mut [bool], page: Rect, area: Rect) {
    let first = cell_at(page, area.origin());
    let last = cell_at(page, Point::new(area.x1, area.y1));
    let (Some((left, top)), Some((right, bottom))) = (first, last) else { return };
    for row in top..=bottom {
        for column in left..=right {
            if let Some(cell) = cells.get_mut(row * PAINT_CELLS + column) {
                *cell = true;
            }
        }
    }
}

/// Whether they share more than an edge. Every glyph is compared with every piece, most of which
/// lie above or below it: that is tested first, and nothing is computed.
fn overlap(one: Rect, other: Rect) -> bool {
    let apart =
        one.y1 <= other.y0 || other.y1 <= one.y0 || one.x1 <= other.x0 || other.x1 <= one.x0;
    !apart && !one.is_zero_area() && !other.is_zero_area()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_overlap_where_what_they_share_has_an_area() {
        let mut random = fastrand::Rng::with_seed(17);
        let mut side = || f64::from(random.u8(0..6));
        let mut found = [0, 0];
        for _ in 0..20_000 {
            let mut area = || Rect::new(side(), side(), side(), side()).abs();
            let (one, other) = (area(), area());
            let shares = !one.intersect(other).is_zero_area();
            assert_eq!(overlap(one, other), shares, "{one:?} and {other:?}");
            found[usize::from(shares)] += 1;
        }
        assert!(found.iter().all(|count| *count > 1_000), "{found:?}");
        // NaN boxes are treated as overlapping everything.
        let nowhere = Rect::new(f64::NAN, f64::NAN, f64::NAN, f64::NAN);
        assert!(overlap(nowhere, Rect::new(0.0, 0.0, 1.0, 1.0)));
    }

    #[test]
    fn on_a_page_of_too_much_paint_no_background_makes_text_certain() {
        let page = Rect::new(0.0, 0.0, 100.0, 100.0);
        let glyph = PageGlyph::sample("7", 10.0, 50.0);
        let grey = PaintPiece { area: page, grey: Some(20), covers: false };
        let paper = PaintPiece { area: page, grey: Some(255), covers: true };
        for (pieces, expected) in [(MAX_PAINT - 1, false), (MAX_PAINT, true)] {
            let mut paint = PaintRecord::in_pieces();
            for piece in vec![grey; pieces].into_iter().chain([paper]) {
                paint.add_piece(piece, &mut []);
            }
            let is_doubtful = paint.is_doubtful_ground(&glyph) || paint.is_near(&glyph);
            assert_eq!(is_doubtful, expected, "{pieces} pieces under the paper");
        }
    }
}
