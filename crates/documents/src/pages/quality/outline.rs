//! The outline of a sheet of paper in a photograph: four edges, dark outside and bright inside.
//!
//! Each edge is the straight line along which the logarithm of the brightness rises most on its
//! way in, on average over its length and with single jumps clipped: a shadow changes both sides
//! of an edge by the same factor, so the logarithm does not see it, and a block of print is
//! steeper than paper but only in places. A line counts as an edge of the paper only if nine
//! tenths of it rise.

use opencv::core::{self, Mat, Point2f, Scalar};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use super::shear;
use crate::pages::plane::{self, PixelMatrix, to_f32};

/// The longer side of the picture in which edges are searched for.
const LONGER_SIDE: i32 = 400;
/// Steepest edge that is searched for, as a tangent, and the steps.
const STEEPEST: i32 = 16;
const SLOPE_STEP: f64 = 0.015;
/// An edge lies within this share of the page from its side.
const REACH: f64 = 0.35;
/// The ends of an edge, where it meets the next one, are not examined.
const ENDS: f64 = 0.12;
/// Rise per pixel, in logarithms, that is clipped, and that counts as rising.
const CLIPPED: f64 = 0.35;
const RISING: f64 = 0.08;
/// What an edge of paper reaches: mean rise, and share of its length that rises.
const EDGE_RISE: f32 = 0.15;
const EDGE_SHARE: f32 = 0.9;
/// The frame of the picture is darker than the paper by this factor somewhere.
const FRAME: f64 = 0.75;

/// What was found of the sheet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::pages) enum PaperOutline {
    /// The page fills its picture.
    None,
    /// Some edges, one to three: the picture cuts the sheet off.
    Partial(u8),
    /// All four corners in pixels of the page: top left, top right, bottom right, bottom left.
    Sheet([Point2f; 4]),
}

impl PaperOutline {
    /// On a page that is `factor` times as large.
    pub(super) fn scaled(self, factor: i32) -> Self {
        let factor = f64::from(factor);
        let larger = |corner: Point2f| {
            Point2f::new(to_f32(f64::from(corner.x) * factor), to_f32(f64::from(corner.y) * factor))
        };
        match self {
            Self::Sheet(corners) => Self::Sheet(corners.map(larger)),
            other => other,
        }
    }
}

/// A line: where it crosses the middle of the page, and its slope against the side.
#[derive(Clone, Copy)]
struct PaperEdge {
    middle: f64,
    slope: f64,
    found: bool,
}

/// Finds the outline in `plane`.
pub(in crate::pages) fn find_outline(plane: &impl PixelMatrix) -> Result<PaperOutline> {
    let factor = (plane.cols().max(plane.rows()) / LONGER_SIDE).max(1);
    let small = plane::smooth_median(&plane::shrink_mat(plane, factor)?, 5)?;
    if small.cols() < 64 || small.rows() < 64 || !has_dark_frame(&small)? {
        return Ok(PaperOutline::None);
    }
    let (mut bright, mut logarithm) = (Mat::default(), Mat::default());
    small.convert_to(&mut bright, core::CV_32F, 1.0, 4.0)?;
    core::log(&bright, &mut logarithm)?;
    let mut edges = Vec::with_capacity(4);
    for (across, direction) in [(false, 1.0), (false, -1.0), (true, 1.0), (true, -1.0)] {
        edges.push(find_edge(&brightness_rise(&logarithm, across, direction)?, direction > 0.0)?);
    }
    let found = edges.iter().filter(|edge| edge.found).count();
    let size = (f64::from(small.cols()), f64::from(small.rows()));
    match edges.as_slice() {
        [left, right, top, bottom] if found == 4 => {
            let corner = |side, cap| edge_crossing(side, cap, size, f64::from(factor));
            Ok(PaperOutline::Sheet([
                corner(left, top),
                corner(right, top),
                corner(right, bottom),
                corner(left, bottom),
            ]))
        }
        _ if found > 0 => Ok(PaperOutline::Partial(u8::try_from(found).unwrap_or(3))),
        _ => Ok(PaperOutline::None),
    }
}

/// Whether some side of the frame is darker than the page: a search is worth its time.
fn has_dark_frame(small: &Mat) -> Result<bool> {
    let (width, height) = (small.cols(), small.rows());
    let (thin_x, thin_y) = ((width / 50).max(1), (height / 50).max(1));
    let page = plane::count_values(small, &Mat::default())?.quantile(0.6);
    let strips = [
        core::Rect::new(0, 0, thin_x, height),
        core::Rect::new(width - thin_x, 0, thin_x, height),
        core::Rect::new(0, 0, width, thin_y),
        core::Rect::new(0, height - thin_y, width, thin_y),
    ];
    for strip in strips {
        let [mean, ..] = core::mean_def(&small.roi(strip)?)?.0;
        if mean < FRAME * f64::from(page) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How the logarithm rises towards the right, or downwards as a transposed page.
fn brightness_rise(logarithm: &Mat, across: bool, direction: f64) -> Result<Mat> {
    let (dx, dy) = if across { (0, 1) } else { (1, 0) };
    let mut slope = Mat::default();
    // A Sobel kernel of three sums four differences over two pixels; here it is per two pixels.
    imgproc::sobel(
        logarithm,
        &mut slope,
        core::CV_32F,
        dx,
        dy,
        3,
        direction / 4.0,
        0.0,
        core::BORDER_REPLICATE,
    )?;
    let mut upright = slope;
    if across {
        let mut turned = Mat::default();
        core::transpose(&upright, &mut turned)?;
        upright = turned;
    }
    let (mut clipped, mut bounded) = (Mat::default(), Mat::default());
    core::min(&upright, &Scalar::all(CLIPPED), &mut clipped)?;
    core::max(&clipped, &Scalar::all(-0.1), &mut bounded)?;
    Ok(bounded)
}

/// The line, near the left side or the right one, that `rise` is greatest along.
fn find_edge(rise: &Mat, left: bool) -> Result<PaperEdge> {
    let rises = RiseRows::from_mat(rise)?;
    let mut found = (f32::MIN, PaperEdge { middle: 0.0, slope: 0.0, found: false }, 0_i32);
    for step in -STEEPEST..=STEEPEST {
        let slope = f64::from(step) * SLOPE_STEP;
        for (x, mean) in (0_i32..).zip(rises.mean_rises(slope)) {
            if mean > found.0 && is_near_side(x, rise.cols(), left) {
                found = (mean, PaperEdge { middle: f64::from(x), slope, found: false }, x);
            }
        }
    }
    let (mean, mut edge, x) = found;
    let share = rises.rising_share(edge.slope, x);
    edge.found = mean >= EDGE_RISE && share >= EDGE_SHARE;
    Ok(edge)
}

fn is_near_side(x: i32, width: i32, left: bool) -> bool {
    let from_side = if left { x } else { width - 1 - x };
    from_side >= 2 && f64::from(from_side) <= REACH * f64::from(width)
}

/// How a page rises, row by row; its ends are left out.
struct RiseRows<'a> {
    rows: Vec<(f64, &'a [f32])>,
    width: usize,
}

impl<'a> RiseRows<'a> {
    /// The rows with their places from the middle.
    fn from_mat(rise: &'a Mat) -> Result<Self> {
        let width = usize::try_from(rise.cols()).unwrap_or_default().max(1);
        let end = share_of(rise.rows(), ENDS);
        let middle = f64::from(rise.rows()) / 2.0;
        let rows = (0_i32..).zip(rise.data_typed::<f32>()?.chunks_exact(width));
        let body = rows.filter(|(y, _)| (end..rise.rows() - end).contains(y));
        Ok(Self { rows: body.map(|(y, row)| (f64::from(y) - middle, row)).collect(), width })
    }

    /// The mean rise along each line of `slope`, by the column where it crosses the middle.
    fn mean_rises(&self, slope: f64) -> Vec<f32> {
        let mut sums = vec![0.0; self.width];
        for (place, row) in &self.rows {
            shear::add_shifted(&mut sums, row, slope * place);
        }
        let rows = rows_to_f32(self.rows.len().max(1));
        sums.iter().map(|sum| sum / rows).collect()
    }

    /// Share of the rows that rise within two pixels of the line of `slope` through column `x`.
    fn rising_share(&self, slope: f64, x: i32) -> f32 {
        let mut near = vec![0.0_f32; self.width];
        let from = usize::try_from(x - 2).unwrap_or_default();
        let rises = |(place, row): &&(f64, &[f32])| {
            near.fill(0.0);
            shear::add_shifted(&mut near, row, slope * place);
            near.iter().skip(from).take(5).any(|rise| f64::from(*rise) > RISING)
        };
        rows_to_f32(self.rows.iter().filter(rises).count()) / rows_to_f32(self.rows.len().max(1))
    }
}

fn rows_to_f32(rows: usize) -> f32 {
    u16::try_from(rows).map_or(f32::MAX, f32::from)
}

#[expect(clippy::cast_possible_truncation, reason = "a part of some hundred pixels")]
fn share_of(side: i32, share: f64) -> i32 {
    (f64::from(side) * share) as i32
}

/// Where an upright and a level edge meet, in pixels of the page.
fn edge_crossing(
    side: &PaperEdge,
    cap: &PaperEdge,
    (width, height): (f64, f64),
    factor: f64,
) -> Point2f {
    // x = side.middle + side.slope * (y - height / 2), y = cap.middle + cap.slope * (x - width / 2)
    let level = cap.middle + cap.slope * (side.middle - side.slope * height / 2.0 - width / 2.0);
    let y = level / (1.0 - side.slope * cap.slope);
    let x = side.middle + side.slope * (y - height / 2.0);
    let whole = |small: f64| to_f32((small + 0.5) * factor);
    Point2f::new(whole(x), whole(y))
}
