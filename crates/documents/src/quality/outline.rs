//! The outline of a sheet of paper in a photograph: four straight edges, dark outside and bright
//! inside, at whatever angle the sheet lies.
//!
//! Of the candidates for each side ([`edges`]) the four with the best support along their whole
//! length are taken, larger sheets before smaller ones. One or two sides may be missing where the
//! picture cuts the sheet off: such a side is put at the end of the picture, in the direction that
//! the other sides imply.
//!
//! Not covered: white paper on a white table, and sheets whose corners are torn off or folded over
//! half of a side. Precision over recall: cutting into the text costs more than a table beside it.

mod edges;

use opencv::Result;
use opencv::core::{self, Mat, Point2f};
use opencv::prelude::*;

use crate::image::opencv_mat::{self, PixelMatrix, to_f32};
use edges::{EdgeLine, PlanePoint, RiseMap};

/// The longer side of the picture in which edges are searched for.
const LONGER_SIDE: i32 = 400;
/// The frame of the picture is darker than the paper by this factor somewhere.
const MAX_FRAME_RATIO: f64 = 0.75;
/// Share of a side that has to be seen as an edge, and to lie in the picture.
const MIN_EDGE_SHARE: f64 = 0.6;
const MIN_INSIDE_SHARE: f64 = 0.4;
/// Weight of a side that the picture cuts off, as a share of a visible one.
const CUT_SHARE: f64 = 0.45;
const MAX_CUT_SIDES: usize = 2;
/// The least a sheet's sides are supported, on average, times the fourth root of its share of the
/// picture.
const MIN_SCORE: f64 = 0.66;
/// The least share of the picture that a sheet takes.
const MIN_AREA_SHARE: f64 = 0.2;
/// Corners may lie outside the picture by this share of a side, ...
const MAX_OUTSIDE_SHARE: f64 = 0.12;
/// ... and are right angles, more or less: the sine.
const MIN_SINE: f64 = 0.75;
/// A sheet whose corners are all this near to those of the picture, as a share of a side, fills it.
const MAX_FILLED_MARGIN: f64 = 0.015;

/// The sheet in a photograph, if it was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PaperOutline {
    /// The page fills its picture, or nothing is sure.
    None,
    /// A sheet, of which the picture may cut off a part.
    Sheet {
        /// In pixels of the page: top left, top right, bottom right, bottom left.
        corners: [Point2f; 4],
        /// How many of its edges are in the picture, 2 to 4.
        edges: u8,
    },
}

impl PaperOutline {
    /// On a page that is `factor` times as large.
    pub(super) fn scaled(self, factor: i32) -> Self {
        let factor = f64::from(factor);
        let Self::Sheet { corners, edges } = self else { return Self::None };
        let corners = corners.map(|corner| {
            Point2f::new(to_f32(f64::from(corner.x) * factor), to_f32(f64::from(corner.y) * factor))
        });
        Self::Sheet { corners, edges }
    }
}

/// Finds the outline in `plane`.
pub(crate) fn find_outline(plane: &impl PixelMatrix) -> Result<PaperOutline> {
    let factor = (plane.cols().max(plane.rows()) / LONGER_SIDE).max(1);
    let small = edges::shrink_for_edges(plane, factor)?;
    if small.cols() < 64 || small.rows() < 64 || !has_dark_frame(&small)? {
        return Ok(PaperOutline::None);
    }
    let rises = RiseMap::from_picture(&small)?;
    let search = SheetSearch { size: (f64::from(small.cols()), f64::from(small.rows())) };
    let Some(sides) = search.best_sides(&rises.candidates()) else {
        return Ok(PaperOutline::None);
    };
    let refined = search.refine_sides(&rises, &sides);
    let Some(corners) = refined.as_ref().and_then(corners_of) else {
        return Ok(PaperOutline::None);
    };
    if search.fills_picture(&corners) {
        return Ok(PaperOutline::None);
    }
    let (middle_x, middle_y) = rises.middle();
    let corners = corners.map(|(x, y)| {
        let [x, y] = [x + middle_x, y + middle_y].map(|at| to_f32((at + 0.5) * f64::from(factor)));
        Point2f::new(x, y)
    });
    let seen = sides.iter().filter(|side| side.support.is_some()).count();
    let edges = u8::try_from(seen).unwrap_or(4);
    Ok(PaperOutline::Sheet { corners, edges })
}

/// Whether some side of the frame is darker than the page: a search is worth its time.
fn has_dark_frame(small: &Mat) -> Result<bool> {
    let (width, height) = (small.cols(), small.rows());
    let (thin_x, thin_y) = ((width / 50).max(1), (height / 50).max(1));
    let page = opencv_mat::count_values(small, &Mat::default())?.quantile(0.6);
    let strips = [
        core::Rect::new(0, 0, thin_x, height),
        core::Rect::new(width - thin_x, 0, thin_x, height),
        core::Rect::new(0, 0, width, thin_y),
        core::Rect::new(0, height - thin_y, width, thin_y),
    ];
    for strip in strips {
        let [mean, ..] = core::mean_def(&small.roi(strip)?)?.0;
        if mean < MAX_FRAME_RATIO * f64::from(page) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Left, top, right, bottom.
type Sides = [EdgeLine; 4];
/// Top left, top right, bottom right, bottom left.
type Corners = [PlanePoint; 4];

struct SheetSearch {
    size: (f64, f64),
}

fn corners_of([left, top, right, bottom]: &Sides) -> Option<Corners> {
    Some([
        left.crossing(top)?,
        top.crossing(right)?,
        right.crossing(bottom)?,
        bottom.crossing(left)?,
    ])
}

impl SheetSearch {
    /// The four sides that are best supported.
    fn best_sides(&self, candidates: &[Vec<EdgeLine>; 4]) -> Option<Sides> {
        let [lefts, tops, rights, bottoms] = candidates;
        let mut best: Option<(f64, [&EdgeLine; 4])> = None;
        for left in lefts {
            for top in tops {
                // Most pairs do not meet in or near the picture.
                if !left.crossing(top).is_some_and(|corner| self.is_near(corner)) {
                    continue;
                }
                for right in rights {
                    for bottom in bottoms {
                        let sides = [left, top, right, bottom];
                        let score = self.score(sides).unwrap_or(0.0);
                        if score > best.map_or(MIN_SCORE, |(best, _)| best) {
                            best = Some((score, sides));
                        }
                    }
                }
            }
        }
        best.map(|(_, sides)| sides.map(EdgeLine::clone))
    }

    fn is_near(&self, (x, y): PlanePoint) -> bool {
        let (width, height) = self.size;
        x.abs() <= (0.5 + MAX_OUTSIDE_SHARE) * width
            && y.abs() <= (0.5 + MAX_OUTSIDE_SHARE) * height
    }

    /// How well four sides are supported; `None` if they make no sheet.
    fn score(&self, sides: [&EdgeLine; 4]) -> Option<f64> {
        if sides.iter().filter(|side| side.support.is_none()).count() > MAX_CUT_SIDES {
            return None;
        }
        let [left, top, right, bottom] = sides;
        let corners = [
            left.crossing(top)?,
            top.crossing(right)?,
            right.crossing(bottom)?,
            bottom.crossing(left)?,
        ];
        if !corners.iter().all(|corner| self.is_near(*corner)) {
            return None;
        }
        let area = convex_area(&corners)? / (self.size.0 * self.size.1);
        if area < MIN_AREA_SHARE {
            return None;
        }
        let [top_left, top_right, bottom_right, bottom_left] = corners;
        let ends = [
            (bottom_left, top_left),
            (top_left, top_right),
            (top_right, bottom_right),
            (bottom_right, bottom_left),
        ];
        let (mut supported, mut length) = (0.0, 0.0);
        for (side, (one, other)) in sides.into_iter().zip(ends) {
            let whole = (one.0 - other.0).hypot(one.1 - other.1);
            length += whole;
            supported += match side.support_between(one, other) {
                None => CUT_SHARE * whole,
                Some(seen) => {
                    let is_seen = seen.inside >= MIN_INSIDE_SHARE * seen.length
                        && seen.rising >= MIN_EDGE_SHARE * seen.inside;
                    is_seen.then_some(seen.rising + CUT_SHARE * (seen.length - seen.inside))?
                }
            };
        }
        Some(supported / length.max(1.0) * area.powf(0.25))
    }

    /// The sides where they really are; those that are cut off in the direction of the others.
    fn refine_sides(&self, rises: &RiseMap, sides: &Sides) -> Option<Sides> {
        let [top_left, top_right, bottom_right, bottom_left] = corners_of(sides)?;
        let [left, top, right, bottom] = sides;
        let mut refined = [
            rises.refine(left, bottom_left, top_left),
            rises.refine(top, top_left, top_right),
            rises.refine(right, top_right, bottom_right),
            rises.refine(bottom, bottom_right, bottom_left),
        ];
        for at in 0..refined.len() {
            let [before, own, after, opposite] =
                [3, 0, 1, 2].map(|turn| refined.get((at + turn) % 4));
            let (Some(before), Some(own), Some(after), Some(opposite)) =
                (before, own, after, opposite)
            else {
                return None;
            };
            if own.support.is_some() {
                continue;
            }
            let normal = match opposite.support {
                Some(_) => (-opposite.normal.0, -opposite.normal.1),
                None => normal_between(before.normal, after.normal),
            };
            // Out to where the neighbours leave the picture.
            let ends = [own.crossing(before)?, own.crossing(after)?];
            let away = ends.map(|(x, y)| x * normal.0 + y * normal.1);
            let distance = away.into_iter().fold(f64::MAX, f64::min);
            let moved = EdgeLine { normal, distance, support: None };
            *refined.get_mut(at)? = moved;
        }
        Some(refined)
    }

    fn fills_picture(&self, corners: &Corners) -> bool {
        let (width, height) = self.size;
        corners.iter().all(|(x, y)| {
            (0.5 * width - x.abs()).abs() <= MAX_FILLED_MARGIN * width
                && (0.5 * height - y.abs()).abs() <= MAX_FILLED_MARGIN * height
        })
    }
}

/// The normal of a side between two others, of which the one before it in the order left, top,
/// right, bottom comes first: both are turned by a quarter towards it.
fn normal_between(before: PlanePoint, after: PlanePoint) -> PlanePoint {
    let (x, y) = (-before.1 + after.1, before.0 - after.0);
    let length = x.hypot(y).max(f64::EPSILON);
    (x / length, y / length)
}

/// The area within corners that go round clockwise and are right angles, more or less.
fn convex_area(corners: &Corners) -> Option<f64> {
    let mut twice = 0.0;
    for at in 0..corners.len() {
        let [before, own, after] = [3, 0, 1].map(|turn| corners.get((at + turn) % 4));
        let (before, own, after) = (before?, own?, after?);
        let (one, other) =
            ((own.0 - before.0, own.1 - before.1), (after.0 - own.0, after.1 - own.1));
        let turn = one.0 * other.1 - one.1 * other.0;
        let lengths = one.0.hypot(one.1) * other.0.hypot(other.1);
        if turn < MIN_SINE * lengths || lengths <= 0.0 {
            return None;
        }
        twice += own.0 * after.1 - own.1 * after.0;
    }
    Some(twice / 2.0)
}
