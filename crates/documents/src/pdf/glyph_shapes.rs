//! Shapes of drawn glyphs, to compare them with those of the standard fonts
//! ([`crate::pdf::standard_shapes`]).
//!
//! A shape is a grid of cells that are ink or not, height and width stretched to the same, with the
//! proportions of the glyph and its position above the baseline. A cell counts by the area of its
//! ink: slivers and holes that nobody sees make no shape. Not promised: that the letters of
//! every honest font are near to those of the standard fonts.

use hayro::kurbo::{BezPath, PathEl, Point, Rect, Shape as _};

/// Cells of a shape across and down.
const ACROSS: usize = 12;
const DOWN: usize = 18;
/// Rows of cells in one word of 64 bits, and the words of a shape.
const WORD_ROWS: usize = 5;
pub(crate) const WORDS: usize = 4;
/// Minimum covered share of a cell that counts as ink.
const MIN_INK_SHARE: f64 = 0.25;
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
            let mut cover = CellCover::default();
            for piece in pieces {
                cover.add_edge(scale.cells_of(piece.start), scale.cells_of(piece.end));
            }
            for (row, ink) in cover.rows(*is_even_odd).enumerate() {
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

/// How much of each cell an outline covers, times its turns: as steps from the cell before.
#[derive(Default)]
struct CellCover([[f64; ACROSS]; DOWN]);

impl CellCover {
    /// Adds what lies right of an edge, whose ends are in cells.
    fn add_edge(&mut self, start: Point, end: Point) {
        let (high, low, direction) =
            if start.y < end.y { (start, end, 1.0) } else { (end, start, -1.0) };
        let slope = (low.x - high.x) / (low.y - high.y);
        for (row, steps) in self.0.iter_mut().enumerate().skip(to_cell(high.y)) {
            let (top, bottom) = (edge_of(row).max(high.y), edge_of(row + 1).min(low.y));
            if top >= bottom {
                break;
            }
            let ends = [top, bottom].map(|y| high.x + slope * (y - high.y));
            add_row(steps, ends, direction * (bottom - top));
        }
    }

    /// The rows from the top, the first cell in the lowest bit.
    fn rows(&self, is_even_odd: bool) -> impl Iterator<Item = u64> {
        self.0.iter().map(move |steps| {
            let (mut row, mut turns) = (0, 0.0_f64);
            for (column, step) in steps.iter().enumerate() {
                turns += step;
                let rest = turns.abs() % 2.0;
                let share = if is_even_odd { rest.min(2.0 - rest) } else { turns.abs() };
                row |= u64::from(share >= MIN_INK_SHARE) << column;
            }
            row
        })
    }
}

/// Adds an edge of `height` within a row to the cells that it goes through.
fn add_row(steps: &mut [f64; ACROSS], [from, to]: [f64; 2], height: f64) {
    let (left, right) = (from.min(to), from.max(to));
    for column in to_cell(left)..=to_cell(right).min(ACROSS - 1) {
        let (start, end) = (edge_of(column).max(left), edge_of(column + 1).min(right));
        let part = if right > left { height * (end - start) / (right - left) } else { height };
        let before = (start + end) / 2.0 - edge_of(column);
        if let Some(step) = steps.get_mut(column) {
            *step += part * (1.0 - before);
        }
        if let Some(step) = steps.get_mut(column + 1) {
            *step += part * before;
        }
    }
}

/// The cell of a coordinate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place before all cells is in the first, one behind them in none"
)]
fn to_cell(place: f64) -> usize {
    place.floor() as usize
}

#[expect(clippy::cast_precision_loss, reason = "a few")]
fn edge_of(cell: usize) -> f64 {
    cell as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample points across and down a cell.
    const TRIED: u8 = 8;

    fn shape_of(path: &BezPath, is_even_odd: bool) -> GlyphShape {
        let drawn = DrawnOutline { path: path.clone(), is_even_odd };
        GlyphDrawing::from_outlines(&[drawn]).shape().unwrap()
    }

    /// The share of a cell that a path covers.
    fn covered_share(path: &BezPath, cell: (usize, usize), is_even_odd: bool) -> f64 {
        let bounds = path.bounding_box();
        let (width, height) = (bounds.width() / edge_of(ACROSS), bounds.height() / edge_of(DOWN));
        let middles = (0..TRIED).map(|at| (f64::from(at) + 0.5) / f64::from(TRIED));
        let places = middles.clone().flat_map(|x| middles.clone().map(move |y| (x, y)));
        let inside = places.filter(|(x, y)| {
            let right = bounds.x0 + (edge_of(cell.0) + x) * width;
            let turns = path.winding(Point::new(right, bounds.y1 - (edge_of(cell.1) + y) * height));
            if is_even_odd { turns % 2 != 0 } else { turns != 0 }
        });
        inside.map(|_| 1.0).sum::<f64>() / f64::from(TRIED * TRIED)
    }

    #[test]
    fn a_shape_has_ink_where_its_outline_covers_enough_of_a_cell() {
        // A ring, lines and curves, a curve that turns back.
        for path in [
            "M10,10 C10,90 90,90 90,10 C90,-40 10,-40 10,10 Z M30,10 Q50,60 70,10 Q50,-30 30,10 Z",
            "M0,0 L100,0 L100,50 L60,50 L60,140 L0,140 Z M20,20 L40,20 L40,90 L20,90 Z",
            "M0,0 C120,300 -60,-200 70,110 L90,-30 Z",
        ] {
            let path = BezPath::from_svg(path).unwrap();
            let (mut sure, mut inked) = (0, 0);
            for is_even_odd in [false, true] {
                let shape = shape_of(&path, is_even_odd);
                for cell in (0..DOWN).flat_map(|y| (0..ACROSS).map(move |x| (x, y))) {
                    let share = covered_share(&path, cell, is_even_odd);
                    let bit =
                        shape.cells[cell.1 / WORD_ROWS] >> (cell.1 % WORD_ROWS * ACROSS + cell.0);
                    if (share - MIN_INK_SHARE).abs() > 0.15 {
                        assert_eq!(bit & 1 == 1, share > MIN_INK_SHARE, "{cell:?}, {is_even_odd}");
                        sure += 1;
                    }
                    inked += bit & 1;
                }
            }
            assert!(sure > 300 && inked > 40, "{sure} cells are sure, {inked} ink");
        }
    }

    #[test]
    fn slivers_that_nobody_sees_make_no_shape() {
        let bar = "M0,0 L100,0 L100,1400 L0,1400 Z M600,0 L601,0 L601,1 L600,1 Z ";
        let slivers = |x: f64| -> String {
            let rows = (0..DOWN).map(|row| (edge_of(row) + 0.5) * 1400.0 / edge_of(DOWN));
            rows.map(|y| format!("M{x},{y} L600,{y} L600,{} L{x},{} Z ", y + 2.0, y + 2.0))
                .collect()
        };
        let plain = BezPath::from_svg(bar).unwrap();
        let dusty = BezPath::from_svg(&format!("{bar}{}", slivers(150.0))).unwrap();
        assert_eq!(shape_of(&plain, false).cells, shape_of(&dusty, false).cells);
    }
}
