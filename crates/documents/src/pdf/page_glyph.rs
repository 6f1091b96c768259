//! A glyph on a page of a PDF, with its visibility.
//!
//! Geometry only: [`crate::pdf::glyph_collector`] decides the visibility.

use compact_str::CompactString;
use hayro::kurbo::{Point, Rect, Vec2};

/// A glyph on the page. Coordinates in points, origin top left, y downwards.
#[derive(Debug, Clone)]
pub(crate) struct PageGlyph {
    /// Its text: usually one character; `U+FFFD` if the font gives none.
    pub text: CompactString,
    /// Where the glyph's baseline starts.
    pub origin: Point,
    /// From its origin to where the next glyph is due.
    pub advance: Vec2,
    /// One em along the baseline.
    pub em: Vec2,
    /// Font size on the page.
    pub size: f64,
    /// Whether a person looking at the page sees it.
    pub visible: bool,
    /// Whether it is painted, in whatever ink, within its clip.
    pub drawn: bool,
    /// Its ink on white paper, as a grey of the rendered page.
    pub ink: u8,
    /// Whether transparency or a clip of any shape leave its visibility open.
    pub doubtful: bool,
    /// Whether its drawing does not show its text.
    pub unproven: bool,
    /// Whether viewers draw different glyphs for it.
    pub contested: bool,
}

/// A wider gap than this share of the letters' size parts two words.
const MAX_GAP_EMS: f64 = 0.3;

impl PageGlyph {
    /// Whether it is white space alone.
    pub(super) fn is_blank(&self) -> bool {
        self.text.chars().all(char::is_whitespace)
    }

    /// Whether `next` goes on with the word of this one.
    pub(super) fn is_joined_by(&self, next: &Self) -> bool {
        let gap = (next.origin - (self.origin + self.advance)).length();
        !self.is_blank() && !next.is_blank() && gap < MAX_GAP_EMS * self.size.min(next.size)
    }

    /// A black one of ten points that is seen, half as wide as high.
    #[cfg(test)]
    pub(crate) fn sample(text: &str, x: f64, y: f64) -> Self {
        Self {
            text: text.into(),
            origin: Point::new(x, y),
            advance: Vec2::new(5.0, 0.0),
            em: Vec2::new(10.0, 0.0),
            size: 10.0,
            visible: true,
            drawn: true,
            ink: 0,
            doubtful: false,
            unproven: false,
            contested: false,
        }
    }

    /// Its width by its height, of the font's own.
    pub(crate) fn stretch(&self) -> f64 {
        self.em.length() / self.size
    }

    /// The middle of its lower case letters.
    pub(crate) fn centre(&self) -> Point {
        let up = Vec2::new(self.em.y, -self.em.x).normalize() * (self.size * 0.3);
        self.origin + self.advance * 0.5 + up
    }

    /// Where nearly all letters and digits have ink: within its width, from the line to the height of
    /// capitals.
    pub(crate) fn ink_box(&self) -> Rect {
        let up = Vec2::new(self.em.y, -self.em.x).normalize() * self.size;
        let (start, end) = (self.origin + self.advance * 0.08, self.origin + self.advance * 0.92);
        let corners = [start + up * 0.04, start + up * 0.68, end + up * 0.04, end + up * 0.68];
        let [first, second, ..] = corners;
        let around = Rect::from_points(first, second);
        corners.into_iter().fold(around, |all, corner| all.union_pt(corner))
    }

    /// Where it has ink if it is a small letter or a digit, as good as.
    pub(crate) fn letter_box(&self) -> Rect {
        let up = Vec2::new(self.em.y, -self.em.x).normalize() * (self.size * 0.6);
        let (start, end) = (self.origin, self.origin + self.advance);
        Rect::from_points(start, end).union_pt(start + up).union_pt(end + up)
    }
}
