//! Shapes of drawn glyphs, to compare them with those of the standard fonts
//! ([`crate::pdf::standard_shapes`]).
//!
//! A shape is a grid of cells that are ink or not, height and width stretched to the same, with the
//! proportions of the glyph and its position above the baseline. Not promised: that the letters of
//! every honest font are near to those of the standard fonts.

use hayro::kurbo::{BezPath, PathEl, Point, Rect, Shape as _};

/// Cells of a shape across and down.
const ACROSS: usize = 12;
const DOWN: usize = 18;
/// Rows of cells in one word of 64 bits, and the words of a shape.
const WORD_ROWS: usize = 5;
pub(crate) const WORDS: usize = 4;
/// An outline of more elements than this is no character of a text font.
const MAX_ELEMENTS: usize = 400;
/// Distance of straight pieces from the curve they approximate, in cells.
const FLATNESS: f64 = 0.02;
/// Straight pieces of one curve.
const MAX_PIECES: f64 = 64.0;
/// Units of an outline to the size of its font.
pub(crate) const EM_UNITS: f64 = 1000.0;
/// Parts of a difference: other proportions (a logarithm), and each edge at another height (ems).
const STRETCH_WEIGHT: f32 = 0.15;
const EDGE_WEIGHT: f32 = 0.4;
const MAX_STRETCH_STEP: f32 = 1.0;
const MAX_EDGE_STEP: f32 = 0.4;

/// A glyph as cells that are ink or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GlyphShape {
    pub cells: [u64; WORDS],
    /// Logarithm of width by height.
    pub stretch: f32,
    /// Lower and upper edge above the baseline, in ems.
    pub bottom: f32,
    pub top: f32,
}

impl GlyphShape {
    /// Share of the cells that differ, and something for other proportions and another height.
    pub(crate) fn difference(&self, other: &Self) -> f32 {
        self.outer_difference(other) + self.cell_difference(other)
    }

    /// Whether the difference is less than `most`. Most glyphs are found out without their cells.
    pub(crate) fn is_within(&self, other: &Self, most: f32) -> bool {
        let outer = self.outer_difference(other);
        outer < most && outer + self.cell_difference(other) < most
    }

    fn outer_difference(&self, other: &Self) -> f32 {
        let stretch = (self.stretch - other.stretch).abs().min(MAX_STRETCH_STEP) * STRETCH_WEIGHT;
        let bottom = (self.bottom - other.bottom).abs().min(MAX_EDGE_STEP);
        let top = (self.top - other.top).abs().min(MAX_EDGE_STEP);
        stretch + (bottom + top) * EDGE_WEIGHT
    }

    fn cell_difference(&self, other: &Self) -> f32 {
        let pairs = self.cells.iter().zip(&other.cells);
        let differing: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
        narrow(f64::from(differing) / CELLS)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred")]
const CELLS: f64 = (ACROSS * DOWN) as f64;

#[expect(clippy::cast_possible_truncation, reason = "a proportion, and positions in ems")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// One filled path of a glyph.
#[derive(Debug, Clone)]
pub(crate) struct DrawnOutline {
    /// In units of [`EM_UNITS`], y upwards.
    pub path: BezPath,
    /// Whether it is filled by the even-odd rule.
    pub is_even_odd: bool,
}

/// Outlines in straight pieces, filled one over the other.
pub(crate) struct GlyphDrawing {
    /// Those of each outline, and whether it is filled by the even-odd rule. `None`: they are too
    /// involved for a character.
    pieces: Option<Vec<(Vec<StraightPiece>, bool)>>,
    bounds: Option<Rect>,
}

impl GlyphDrawing {
    pub(crate) fn from_outlines(outlines: &[DrawnOutline]) -> Self {
        let elements = outlines.iter().map(|it| it.path.elements().len()).sum::<usize>();
        if elements > MAX_ELEMENTS {
            let boxes = outlines.iter().map(|it| it.path.bounding_box());
            return Self { pieces: None, bounds: boxes.reduce(|all, one| all.union(one)) };
        }
        let boxes = outlines.iter().map(|it| it.path.control_box());
        let scale = CellScale::of(boxes.reduce(|all, one| all.union(one)).unwrap_or_default());
        let mut pieces = Vec::with_capacity(outlines.len());
        let mut bounds: Option<Rect> = None;
        for outline in outlines {
            let straight = straight_pieces(&outline.path, scale);
            for piece in &straight {
                let area = Rect::from_points(piece.start, piece.end);
                bounds = Some(bounds.map_or(area, |all| all.union(area)));
            }
            pieces.push((straight, outline.is_even_odd));
        }
        Self { pieces: Some(pieces), bounds }
    }

    /// The box around it, in units of [`EM_UNITS`]; `None` if nothing is drawn.
    pub(crate) fn bounds(&self) -> Option<Rect> {
        self.bounds
    }

    /// Its shape. `None`: nothing is drawn, or it is no plain shape.
    pub(crate) fn shape(&self) -> Option<GlyphShape> {
        let bounds = self.bounds.filter(|bounds| bounds.is_finite())?;
        if bounds.width() <= 0.0 || bounds.height() <= 0.0 {
            return None;
        }
        let scale = CellScale::of(bounds);
        let mut cells = [0_u64; WORDS];
        for (pieces, is_even_odd) in self.pieces.as_ref()? {
            let mut turns = CellTurns::default();
            for piece in pieces {
                turns.cross_rows(scale.cells_of(piece.start), scale.cells_of(piece.end));
            }
            for (row, ink) in turns.rows(*is_even_odd).enumerate() {
                if let Some(word) = cells.get_mut(row / WORD_ROWS) {
                    *word |= ink << (row % WORD_ROWS * ACROSS);
                }
            }
        }
        let [stretch, bottom, top] =
            [(bounds.width() / bounds.height()).ln(), bounds.y0 / EM_UNITS, bounds.y1 / EM_UNITS]
                .map(narrow);
        Some(GlyphShape { cells, stretch, bottom, top })
    }
}

/// From the font's coordinates to columns and rows. However an outline is stretched, it comes to as
/// many pieces as its shape needs.
#[derive(Clone, Copy)]
struct CellScale {
    left: f64,
    top: f64,
    across: f64,
    down: f64,
}

impl CellScale {
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    fn of(bounds: Rect) -> Self {
        let (across, down) = (ACROSS as f64 / bounds.width(), DOWN as f64 / bounds.height());
        Self { left: bounds.x0, top: bounds.y1, across, down }
    }

    /// The place of a point in cells from the top left corner.
    fn cells_of(self, point: Point) -> Point {
        Point::new((point.x - self.left) * self.across, (self.top - point.y) * self.down)
    }

    /// Pieces of a curve: by the bound of its distance from its chords that its second differences
    /// give (Wang's formula), `weight` being n (n - 1) / 8 for degree n.
    fn pieces(self, second_differences: &[Point], weight: f64) -> f64 {
        let lengths = second_differences
            .iter()
            .map(|step| (step.x * self.across).hypot(step.y * self.down))
            .fold(0.0, f64::max);
        (lengths * weight / FLATNESS).sqrt().ceil().clamp(1.0, MAX_PIECES)
    }
}

#[derive(Debug, Clone, Copy)]
struct StraightPiece {
    start: Point,
    end: Point,
}

/// An outline in straight pieces.
fn straight_pieces(outline: &BezPath, scale: CellScale) -> Vec<StraightPiece> {
    let mut pieces = Vec::with_capacity(outline.elements().len() * 4);
    let (mut first, mut at) = (Point::ORIGIN, Point::ORIGIN);
    for element in outline.elements() {
        match *element {
            PathEl::MoveTo(to) => (first, at) = (to, to),
            PathEl::LineTo(to) => at = push_piece(&mut pieces, at, to),
            PathEl::QuadTo(one, to) => {
                let count = scale.pieces(&[second_difference(at, one, to)], 0.25);
                at = push_curve(
                    &mut pieces,
                    [at, at.lerp(one, 2.0 / 3.0), to.lerp(one, 2.0 / 3.0), to],
                    count,
                );
            }
            PathEl::CurveTo(one, two, to) => {
                let bends = [second_difference(at, one, two), second_difference(one, two, to)];
                let count = scale.pieces(&bends, 0.75);
                at = push_curve(&mut pieces, [at, one, two, to], count);
            }
            PathEl::ClosePath => at = push_piece(&mut pieces, at, first),
        }
    }
    pieces
}

fn second_difference(one: Point, two: Point, three: Point) -> Point {
    Point::new(one.x - 2.0 * two.x + three.x, one.y - 2.0 * two.y + three.y)
}

fn push_piece(pieces: &mut Vec<StraightPiece>, start: Point, end: Point) -> Point {
    if start != end {
        pieces.push(StraightPiece { start, end });
    }
    end
}

/// Adds a cubic curve in `count` pieces.
fn push_curve(pieces: &mut Vec<StraightPiece>, curve: [Point; 4], count: f64) -> Point {
    let [start, one, two, end] = curve;
    let mut before = start;
    let mut step = 1.0;
    while step < count {
        let (after, left) = (step / count, 1.0 - step / count);
        let weights = [
            left * left * left,
            3.0 * left * left * after,
            3.0 * left * after * after,
            after * after * after,
        ];
        let points = [start, one, two, end];
        let place = points.iter().zip(weights).fold(Point::ORIGIN, |sum, (point, weight)| {
            Point::new(sum.x + point.x * weight, sum.y + point.y * weight)
        });
        before = push_piece(pieces, before, place);
        step += 1.0;
    }
    push_piece(pieces, before, end)
}

/// How often an outline winds around the middle of each cell, as steps from the cell before.
#[derive(Default)]
struct CellTurns([[i32; ACROSS]; DOWN]);

impl CellTurns {
    /// Counts a straight piece, whose ends are in cells, in each row whose middle it crosses.
    fn cross_rows(&mut self, start: Point, end: Point) {
        let (low, high) = (start.y.min(end.y), start.y.max(end.y));
        let direction = if end.y < start.y { 1 } else { -1 };
        let first = to_cell(low);
        for (row, steps) in self.0.iter_mut().enumerate().skip(first) {
            let middle = middle_of(row);
            if middle >= high {
                break;
            }
            let x = start.x + (end.x - start.x) * (middle - start.y) / (end.y - start.y);
            if let Some(step) = steps.get_mut(to_cell(x)) {
                *step += direction;
            }
        }
    }

    /// The rows from the top, the first cell in the lowest bit.
    fn rows(&self, is_even_odd: bool) -> impl Iterator<Item = u64> {
        self.0.iter().map(move |steps| {
            let (mut row, mut turns) = (0, 0);
            for (column, step) in steps.iter().enumerate() {
                turns += step;
                let is_ink = if is_even_odd { turns % 2 != 0 } else { turns != 0 };
                row |= u64::from(is_ink) << column;
            }
            row
        })
    }
}

/// The first cell whose middle is not before this place.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place before all cells is in the first, one behind them in none"
)]
fn to_cell(place: f64) -> usize {
    (place - 0.5).ceil() as usize
}

#[expect(clippy::cast_precision_loss, reason = "a few")]
fn middle_of(cell: usize) -> f64 {
    cell as f64 + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_ink_where_its_outline_winds_around_the_middle_of_a_cell() {
        // A ring, lines and curves, a bow that crosses itself, a curve that turns back.
        for path in [
            "M10,10 C10,90 90,90 90,10 C90,-40 10,-40 10,10 Z M30,10 Q50,60 70,10 Q50,-30 30,10 Z",
            "M0,0 L100,0 L100,50 L60,50 L60,140 L0,140 Z M20,20 L40,20 L40,90 L20,90 Z",
            "M0,0 L80,120 L80,0 L0,120 Z",
            "M0,0 C120,300 -60,-200 70,110 L90,-30 Z",
        ] {
            let path = BezPath::from_svg(path).unwrap();
            let bounds = path.bounding_box();
            for is_even_odd in [false, true] {
                let drawn = DrawnOutline { path: path.clone(), is_even_odd };
                let shape = GlyphDrawing::from_outlines(&[drawn]).shape().unwrap();
                for y in 0..DOWN {
                    for x in 0..ACROSS {
                        let place = Point::new(
                            bounds.x0 + middle_of(x) / (middle_of(ACROSS) - 0.5) * bounds.width(),
                            bounds.y1 - middle_of(y) / (middle_of(DOWN) - 0.5) * bounds.height(),
                        );
                        let turns = path.winding(place);
                        let is_ink = if is_even_odd { turns % 2 != 0 } else { turns != 0 };
                        let word = shape.cells[y / WORD_ROWS];
                        let bit = word >> (y % WORD_ROWS * ACROSS + x) & 1;
                        assert_eq!(bit == 1, is_ink, "column {x}, row {y}, {is_even_odd}");
                    }
                }
            }
        }
    }
}
