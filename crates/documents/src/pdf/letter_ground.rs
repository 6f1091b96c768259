//! Dark backgrounds, which make white letters visible.

use hayro::kurbo::Rect;

use crate::pdf::page_glyph::PageGlyph;

/// Minimum overlap of paint and letter that changes the letter, in ems.
pub(super) const MIN_CUT_EMS: f64 = 0.05;

/// Painted backgrounds, in painting order.
#[derive(Debug, Default)]
pub(super) struct PaintedGrounds(Vec<GroundPiece>);

/// Paint that may be under white letters.
#[derive(Debug, Clone, Copy)]
struct GroundPiece {
    area: Rect,
    is_dark: bool,
}

/// The ground under a white letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterGround {
    /// White letters on it are invisible.
    White,
    /// The whole letter is visible.
    Dark,
    /// Only a part of the letter is visible.
    Uneven,
}

impl PaintedGrounds {
    /// Keeps paint in `area`.
    pub(super) fn add(&mut self, area: Rect, is_dark: bool) {
        self.0.push(GroundPiece { area, is_dark });
    }

    /// The background of a white letter, and the number of pieces examined.
    pub(super) fn under(&self, glyph: &PageGlyph) -> (LetterGround, usize) {
        let (centre, ink) = (glyph.centre(), glyph.ink_box());
        let is_dark = |piece: &GroundPiece| piece.is_dark && piece.area.contains(centre);
        let found = self.0.iter().rposition(is_dark);
        let later = self.0.get(found.unwrap_or(0)..).unwrap_or_default();
        let ground = match later.split_first().filter(|_| found.is_some()) {
            None => LetterGround::White,
            Some((dark, light)) => {
                let edge = MIN_CUT_EMS * glyph.size;
                let is_whole = dark.area.inflate(edge, edge).contains_rect(ink)
                    && !light.iter().any(|it| !it.is_dark && is_cut_by(ink, it.area, glyph.size));
                if is_whole { LetterGround::Dark } else { LetterGround::Uneven }
            }
        };
        (ground, later.len())
    }
}

/// Whether paint overlaps visible ink.
pub(super) fn is_cut_by(ink: Rect, paint: Rect, size: f64) -> bool {
    let shared = ink.intersect(paint);
    shared.width() > MIN_CUT_EMS * size && shared.height() > MIN_CUT_EMS * size
}
