//! Which way the lines of a page run: along rows or columns, by how many degrees off, and whether
//! the letters stand on their feet.
//!
//! Angle: the page's ink is sheared by each candidate and summed along the rows; where the lines
//! run level the sums jump between line and gap, so the sum of squared differences of neighbours
//! is greatest (Postl's criterion, US patent 4,723,297, as in Leptonica's `pixFindSkew`). Shearing
//! instead of rotating leaves each piece of ink in its column, which is all that a sum needs.
//!
//! Axis: the search runs along rows and along columns, and the maxima are compared. Without the
//! search the comparison flips at three degrees of skew.
//!
//! Head or feet: in the scripts of Europe letters share their baseline but not their upper edge
//! (x-height, capitals, ascenders), so lower edges of the boxes pile up on fewer rows. The measure
//! is the log ratio of the piles; upright pages of letters gave 0.02 to 0.8, the same on their head
//! the negative. It says nothing of a page with few letters, and little of one in capitals only.

use opencv::core::{self, Mat, Rect, Scalar, Size};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use super::glyphs::Glyph;

/// Skew that is looked for, either way, in degrees.
const WIDEST: f64 = 20.0;
/// Steps of the search in degrees, each over the neighbourhood of the best of the one before, and
/// the width in pixels that the ink is reduced to for it.
const COARSE: (f64, i32) = (1.0, 320);
const FINE: [(f64, i32); 3] = [(0.25, 480), (0.05, 800), (0.01, 800)];
/// Fewer letters than this say nothing.
const FEWEST: usize = 12;
/// Fewer letters than this do not tell head from feet.
const FEWEST_FOR_FEET: usize = 60;

/// Along what the lines run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// As on an upright page, or one on its head.
    Rows,
    /// From top to bottom: the page lies on its side.
    Columns,
}

/// How the lines run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Direction {
    /// Along what.
    pub axis: Axis,
    /// How much clearer the lines are along `axis` than along the other one: 1 is not at all.
    pub clarity: f32,
    /// Degrees that the lines fall to the right (after the quarter turn if `axis` is
    /// [`Axis::Columns`]); turning the page anticlockwise by this straightens it.
    pub skew_degrees: f32,
    /// Above 0 the letters stand on their feet (after one quarter turn clockwise if `axis` is
    /// [`Axis::Columns`]), below on their heads; 0.25 either way is sure. 0 where nothing is known.
    pub feet: f32,
}

impl Direction {
    /// What is assumed of a page with next to no letters.
    pub(super) const UNKNOWN: Self =
        Self { axis: Axis::Rows, clarity: 1.0, skew_degrees: 0.0, feet: 0.0 };
}

/// Finds the direction of the lines that `glyphs`, boxes in `ink`, make up.
pub(super) fn direction(ink: &Mat, glyphs: &[Glyph]) -> Result<Direction> {
    if glyphs.len() < FEWEST {
        return Ok(Direction::UNKNOWN);
    }
    let letters = only(ink, glyphs)?;
    let mut sideways = Mat::default();
    core::rotate(&letters, &mut sideways, core::ROTATE_90_CLOCKWISE)?;
    let (along_rows, row_degrees) = coarse(&letters)?;
    let (along_columns, column_degrees) = coarse(&sideways)?;
    let (axis, plane, start) = if along_columns > along_rows {
        (Axis::Columns, &sideways, column_degrees)
    } else {
        (Axis::Rows, &letters, row_degrees)
    };
    let (more, less) = (along_rows.max(along_columns), along_rows.min(along_columns));
    let skew = fine(plane, start)?;
    let upright: Vec<Glyph> = match axis {
        Axis::Rows => glyphs.to_vec(),
        Axis::Columns => glyphs.iter().map(|glyph| glyph.turned(ink.rows())).collect(),
    };
    let feet = feet(&upright, plane.size()?, skew);
    Ok(Direction { axis, clarity: narrow(more / less.max(1.0)), skew_degrees: narrow(skew), feet })
}

/// The ink under the boxes of letters: rules and pictures have directions of their own.
fn only(ink: &Mat, glyphs: &[Glyph]) -> Result<Mat> {
    let mut boxes = super::plane::uniform(ink.size()?, 0.0)?;
    for glyph in glyphs {
        let rect = Rect::new(glyph.left, glyph.top, glyph.width, glyph.height);
        imgproc::rectangle(&mut boxes, rect, Scalar::all(255.0), imgproc::FILLED, imgproc::LINE_8, 0)?;
    }
    let mut letters = Mat::default();
    core::min(ink, &boxes, &mut letters)?;
    Ok(letters)
}

/// The best angle of a first search and how clear it is.
fn coarse(plane: &Mat) -> Result<(f64, f64)> {
    let (step, width) = COARSE;
    let small = reduced(plane, width)?;
    best(&small, (-WIDEST, WIDEST), step)
}

/// The angle near `start`, to a hundredth of a degree.
fn fine(plane: &Mat, start: f64) -> Result<f64> {
    let mut degrees = start;
    let mut before = COARSE.0;
    for (step, width) in FINE {
        let small = reduced(plane, width)?;
        (_, degrees) = best(&small, (degrees - before, degrees + before), step)?;
        before = step;
    }
    Ok(degrees)
}

fn reduced(plane: &Mat, width: i32) -> Result<Mat> {
    super::plane::shrunk(plane, (plane.cols() / width).max(1))
}

/// The greatest clarity between two angles, and its angle.
fn best(plane: &Mat, (from, to): (f64, f64), step: f64) -> Result<(f64, f64)> {
    let mut found = (f64::MIN, 0.0);
    let mut degrees = from;
    while degrees <= to + step / 2.0 {
        let clarity = clarity(plane, degrees)?;
        if clarity > found.0 {
            found = (clarity, degrees);
        }
        degrees += step;
    }
    Ok(found)
}

/// Sum of squared differences of neighbouring row sums, once the page is sheared back by `degrees`.
fn clarity(plane: &Mat, degrees: f64) -> Result<f64> {
    let fall = degrees.to_radians().tan();
    let middle = f64::from(plane.cols()) / 2.0;
    // Row y of the result is read along y + fall * (x - middle).
    let shear = Mat::from_slice_2d(&[[1.0, 0.0, 0.0], [fall, 1.0, -fall * middle]])?;
    let mut level = Mat::default();
    imgproc::warp_affine(
        plane,
        &mut level,
        &shear,
        plane.size()?,
        imgproc::INTER_LINEAR | imgproc::WARP_INVERSE_MAP,
        core::BORDER_CONSTANT,
        Scalar::default(),
    )?;
    let mut sums = Mat::default();
    core::reduce(&level, &mut sums, 1, core::REDUCE_SUM, core::CV_32S)?;
    let sums = sums.data_typed::<i32>()?;
    let steps = sums.iter().zip(sums.iter().skip(1)).map(|(here, next)| f64::from(next - here));
    Ok(steps.map(|step| step * step).sum())
}

/// Log ratio of how lower and upper edges pile up on rows.
fn feet(glyphs: &[Glyph], page: Size, skew: f64) -> f32 {
    if glyphs.len() < FEWEST_FOR_FEET {
        return 0.0;
    }
    let fall = skew.to_radians().tan();
    let level = |glyph: &Glyph, y: i32| {
        let middle = f64::from(glyph.left) + f64::from(glyph.width - page.width) / 2.0;
        row(f64::from(y) - fall * middle + f64::from(page.width) / 2.0)
    };
    let piled = |edge: fn(&Glyph) -> i32| {
        let mut rows: Vec<i64> = glyphs.iter().map(|glyph| level(glyph, edge(glyph))).collect();
        rows.sort_unstable();
        let piles = rows.chunk_by(|one, other| one == other).map(<[i64]>::len);
        piles.map(|pile| u32::try_from(pile).map_or(0.0, f64::from).powi(2)).sum::<f64>()
    };
    let lower = piled(|glyph| glyph.top + glyph.height);
    let upper = piled(|glyph| glyph.top);
    narrow((lower / upper.max(1.0)).ln())
}

#[expect(clippy::cast_possible_truncation, reason = "a row of a page")]
fn row(y: f64) -> i64 {
    y.round() as i64
}

#[expect(clippy::cast_possible_truncation, reason = "a measure, not a count")]
fn narrow(value: f64) -> f32 {
    value as f32
}
