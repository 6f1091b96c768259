//! Whether the edges of a path cross the ink of a letter. A clipped letter may look like another
//! one: an 8 without its left side is a 3.
//!
//! Letters and curves are compared by their bounding boxes: a letter near a curve may count as cut,
//! never the other way round.

use hayro::hayro_interpret::{DrawMode, FillRule};
use hayro::kurbo::{BezPath, PathEl, Point, Rect, Shape as _};

use crate::pdf::glyph_proof::closed_path;

/// A path that was painted, in points of the page.
pub(crate) struct PaintedPath {
    path: BezPath,
    /// The fill rule; `None`: not filled.
    filled: Option<FillRule>,
    /// Half the width of its stroke, in points.
    reach: f64,
}

impl PaintedPath {
    /// `stroke`: the stroke width in points; `None`: filled.
    pub(crate) fn new(path: BezPath, mode: &DrawMode, stroke: Option<f64>) -> Self {
        let filled = match mode {
            DrawMode::Fill(rule) | DrawMode::FillAndStroke(rule, _) => Some(*rule),
            _ => None,
        };
        let path = if filled.is_some() { closed_path(&path) } else { path };
        Self { path, filled, reach: stroke.unwrap_or(0.0) / 2.0 }
    }

    pub(crate) fn element_count(&self) -> usize {
        self.path.elements().len()
    }

    /// Whether its paint touches a letter.
    pub(crate) fn touches(&self, ink: Rect) -> bool {
        has_edge_in(ink.inflate(self.reach, self.reach), &self.path)
            || self.filled.is_some_and(|rule| has_inside(&self.path, rule, ink.center()))
    }
}

/// Whether all of a letter lies within a filled path, whose parts are closed.
pub(crate) fn is_within(ink: Rect, path: &BezPath, rule: FillRule) -> bool {
    !has_edge_in(ink, path) && has_inside(path, rule, ink.center())
}

fn has_inside(path: &BezPath, rule: FillRule, place: Point) -> bool {
    let turns = path.winding(place);
    match rule {
        FillRule::EvenOdd => turns % 2 != 0,
        FillRule::NonZero => turns != 0,
    }
}

fn has_edge_in(area: Rect, path: &BezPath) -> bool {
    let (mut first, mut last) = (Point::ORIGIN, Point::ORIGIN);
    for element in path.elements() {
        let (next, is_edge) = match *element {
            PathEl::MoveTo(to) => {
                first = to;
                (to, false)
            }
            PathEl::LineTo(to) => (to, is_line_in(area, last, to)),
            PathEl::QuadTo(one, to) => {
                (to, area.overlaps(Rect::from_points(last, to).union_pt(one)))
            }
            PathEl::CurveTo(one, two, to) => {
                (to, area.overlaps(Rect::from_points(last, to).union_pt(one).union_pt(two)))
            }
            PathEl::ClosePath => (first, is_line_in(area, last, first)),
        };
        if is_edge {
            return true;
        }
        last = next;
    }
    false
}

/// Whether a part of a line lies in an area.
fn is_line_in(area: Rect, from: Point, to: Point) -> bool {
    let step = to - from;
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    for (at, step, low, high) in
        [(from.x, step.x, area.x0, area.x1), (from.y, step.y, area.y0, area.y1)]
    {
        if step == 0.0 {
            if at <= low || at >= high {
                return false;
            }
            continue;
        }
        let (one, other) = ((low - at) / step, (high - at) / step);
        start = start.max(one.min(other));
        end = end.min(one.max(other));
    }
    start < end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_touches_a_letter_where_an_edge_or_its_filling_is() {
        let letter = Rect::new(10.0, 10.0, 15.0, 17.0);
        #[rustfmt::skip]
        let table = [
            ("beside it",           "M0,0 L8,0 L8,30 L0,30 Z",                  false, false),
            ("around it",           "M0,0 L30,0 L30,30 L0,30 Z",                true,  true),
            ("through its left",    "M0,0 L12,0 L12,30 L0,30 Z",                true,  false),
            ("a corner over it",    "M14,16 L30,16 L30,30 L14,30 Z",            true,  false),
            ("a frame around it",   "M0,0 L30,0 L30,30 L0,30 Z M5,5 L5,25 L25,25 L25,5 Z", false, false),
            ("aslant past it",      "M0,20 L20,40 L0,40 Z",                     false, false),
            ("aslant through it",   "M0,0 L30,32 L0,40 Z",                      true,  false),
            ("not closed, around",  "M0,0 L60,0 L0,60",                         true,  true),
            ("a bow over it",       "M0,12 C10,5 20,5 30,12 L30,0 L0,0 Z",      true,  false),
        ];
        for (name, path, touched, within) in table {
            let path = BezPath::from_svg(path).unwrap();
            let painted = PaintedPath::new(path.clone(), &DrawMode::Fill(FillRule::NonZero), None);
            assert_eq!(painted.touches(letter), touched, "{name}");
            assert_eq!(is_within(letter, &closed_path(&path), FillRule::NonZero), within, "{name}");
        }
    }
}
