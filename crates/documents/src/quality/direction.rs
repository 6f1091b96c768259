//! Direction of a page's lines: along rows or columns, by how many degrees off, and whether the
//! letters are upside down.
//!
//! Angle: the page's ink is sheared by each candidate and summed along the rows. Where the lines
//! run level the sums jump between line and gap, so the sum of squared differences of neighbours is
//! greatest (Postl's criterion, US patent 4,723,297, as in Leptonica's `pixFindSkew`). Shearing
//! instead of rotating leaves each piece of ink in its column, which is all that a sum needs
//! ([`projection_profile`]).
//!
//! Axis: a letter's nearest neighbour is in its own line (O'Gorman's docstrum, PAMI 15, 1993). That
//! holds under any skew in the search, and on typewritten pages whose letters are aligned below
//! each other: comparing the clarity of rows and columns was wrong on these.
//!
//! Head or feet: in the scripts of Europe letters share their baseline but not their upper edge
//! (x-height, capitals, ascenders). So lower edges of the boxes pile up on fewer rows. The measure
//! is the log ratio of the piles; upright pages of letters gave 0.02 to 0.8, the same on their head
//! the negative. It is meaningless on a page with few letters, and weak on one in capitals only.

use opencv::core::{self, Mat, Rect, Scalar, Size};
use opencv::prelude::*;
use opencv::{Result, imgproc};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::glyphs::InkBox;
use super::projection_profile;
use crate::image::opencv_mat::{self, to_f32};

/// Greatest skew in the first search, either way, ...
const USUAL_SKEW_DEGREES: f64 = 20.0;
/// ... and of a sheet skewed in its photograph, up to which letters still show the axis of its
/// lines. Accepted if the sums jump so many times as much as at any smaller angle.
const MAX_SKEW_DEGREES: f64 = 30.0;
const CLEARER: f64 = 1.5;
/// The second search is run only if no smaller angle is so many times as clear as the widest of
/// them.
const DISTINCT: f64 = 2.0;
/// Steps of the search in degrees, each around the best angle of the one before, with the width in
/// pixels to which the ink is reduced.
const COARSE: (f64, i32) = (1.0, 320);
const FINE: [(f64, i32); 2] = [(0.2, 480), (0.05, 700)];
/// Sampled letters whose neighbours are found; spread over the page.
const ASKED: usize = 300;
/// Letters of a page with a direction.
const MIN_GLYPHS: usize = 12;
/// Letters of a page whose head and feet are distinguished.
const MIN_FOR_FEET: usize = 60;

/// Axis of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineAxis {
    /// As on an upright page, or one on its head.
    Rows,
    /// From top to bottom: the page lies on its side.
    Columns,
}

/// In which direction the lines run, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineDirection {
    /// Whether lines run along the rows or the columns of the picture.
    pub axis: LineAxis,
    /// How many times more letters have their nearest neighbour along `axis` than across it.
    pub clarity: f32,
    /// Degrees that the lines fall to the right (after the quarter turn if `axis` is
    /// [`LineAxis::Columns`]); turning the page anticlockwise by this straightens it.
    pub skew_degrees: f32,
    /// Above 0 the letters stand on their feet (after one quarter turn clockwise if `axis` is
    /// [`LineAxis::Columns`]), below on their heads; 0.25 either way is sure. 0 where nothing is
    /// known.
    pub feet: f32,
}

impl LineDirection {
    /// Assumed of a page with next to no letters.
    pub(super) const UNKNOWN: Self =
        Self { axis: LineAxis::Rows, clarity: 1.0, skew_degrees: 0.0, feet: 0.0 };
}

/// Finds the direction of the lines that `glyphs`, boxes in `ink`, make up.
pub(super) fn find_direction(ink: &Mat, glyphs: &[InkBox]) -> Result<LineDirection> {
    if glyphs.len() < MIN_GLYPHS {
        return Ok(LineDirection::UNKNOWN);
    }
    let votes = count_votes(glyphs);
    let axis = if votes.columns > votes.rows { LineAxis::Columns } else { LineAxis::Rows };
    let mut plane = mask_glyphs(ink, glyphs)?;
    let mut upright = glyphs.to_vec();
    if axis == LineAxis::Columns {
        let mut turned = Mat::default();
        core::rotate(&plane, &mut turned, core::ROTATE_90_CLOCKWISE)?;
        plane = turned;
        upright.iter_mut().for_each(|glyph| *glyph = glyph.turned(ink.rows()));
    }
    let skew = find_skew(&plane)?;
    let feet = feet_ratio(&upright, plane.size()?, skew);
    Ok(LineDirection { axis, clarity: votes.clarity(), skew_degrees: to_f32(skew), feet })
}

/// How many letters have their nearest neighbour in their row, and in their column.
#[derive(Default)]
struct NeighbourVotes {
    rows: u16,
    columns: u16,
}

impl NeighbourVotes {
    fn clarity(&self) -> f32 {
        let (more, less) = (self.rows.max(self.columns), self.rows.min(self.columns));
        f32::from(more + 1) / f32::from(less + 1)
    }
}

/// Asks letters for their nearest neighbours.
fn count_votes(glyphs: &[InkBox]) -> NeighbourVotes {
    let transposed: Vec<InkBox> = glyphs.iter().map(|glyph| glyph.transposed()).collect();
    let mut votes = NeighbourVotes::default();
    for at in (0..glyphs.len()).step_by(glyphs.len() / ASKED + 1) {
        let (beside, below) = (nearest_gap(glyphs, at), nearest_gap(&transposed, at));
        match beside.cmp(&below) {
            std::cmp::Ordering::Less => votes.rows += 1,
            std::cmp::Ordering::Greater => votes.columns += 1,
            std::cmp::Ordering::Equal => {}
        }
    }
    votes
}

/// Clear pixels from a letter to the nearest one to its right; `i32::MAX` if there is none.
fn nearest_gap(glyphs: &[InkBox], at: usize) -> i32 {
    let Some(asked) = glyphs.get(at) else { return i32::MAX };
    glyphs.iter().filter_map(|other| gap_beside(asked, other)).min().unwrap_or(i32::MAX)
}

/// Clear pixels from one letter to another to its right that shares half of its height.
fn gap_beside(one: &InkBox, other: &InkBox) -> Option<i32> {
    let gap = other.left - one.left - one.width;
    let shared = (one.top + one.height).min(other.top + other.height) - one.top.max(other.top);
    (gap >= 0 && 2 * shared >= one.height.min(other.height)).then_some(gap)
}

/// The ink under the boxes of letters: rules and pictures have directions of their own.
fn mask_glyphs(ink: &Mat, glyphs: &[InkBox]) -> Result<Mat> {
    let mut boxes = opencv_mat::uniform_mat(ink.size()?, 0.0)?;
    for glyph in glyphs {
        let rect = Rect::new(glyph.left, glyph.top, glyph.width, glyph.height);
        imgproc::rectangle(
            &mut boxes,
            rect,
            Scalar::all(255.0),
            imgproc::FILLED,
            imgproc::LINE_8,
            0,
        )?;
    }
    let mut letters = Mat::default();
    core::min(ink, &boxes, &mut letters)?;
    Ok(letters)
}

/// Degrees that the lines fall to the right.
fn find_skew(plane: &Mat) -> Result<f64> {
    let (mut step, width) = COARSE;
    let coarse = ProjectionColumns::from_mat(plane, width)?;
    let mut degrees = find_best_angle(&coarse, (-USUAL_SKEW_DEGREES, USUAL_SKEW_DEGREES), step);
    let near = coarse.clarity(degrees);
    let usual =
        f64::midpoint(coarse.clarity(-USUAL_SKEW_DEGREES), coarse.clarity(USUAL_SKEW_DEGREES));
    if near < DISTINCT * usual {
        for (from, to) in [
            (-MAX_SKEW_DEGREES, -USUAL_SKEW_DEGREES - step),
            (USUAL_SKEW_DEGREES + step, MAX_SKEW_DEGREES),
        ] {
            let farther = find_best_angle(&coarse, (from, to), step);
            if coarse.clarity(farther) > CLEARER * near.max(coarse.clarity(degrees)) {
                degrees = farther;
            }
        }
    }
    for (finer, width) in FINE {
        degrees = find_best_angle(
            &ProjectionColumns::from_mat(plane, width)?,
            (degrees - step, degrees + step),
            finer,
        );
        step = finer;
    }
    Ok(degrees)
}

/// The columns of a reduced page, one after the other.
struct ProjectionColumns {
    ink: Vec<u8>,
    height: usize,
}

impl ProjectionColumns {
    /// `plane` reduced to about `width` columns.
    fn from_mat(plane: &Mat, width: i32) -> Result<Self> {
        let small = opencv_mat::shrink_mat(plane, (plane.cols() + width - 1) / width)?;
        let mut columns = Mat::default();
        core::transpose(&small, &mut columns)?;
        Ok(Self {
            ink: columns.data_bytes()?.to_vec(),
            height: usize::try_from(columns.cols()).unwrap_or_default().max(1),
        })
    }

    /// Sum of squared differences of neighbouring row sums, once the page is sheared back by
    /// `degrees`.
    fn clarity(&self, degrees: f64) -> f64 {
        let fall = degrees.to_radians().tan();
        let columns = self.ink.chunks_exact(self.height);
        let mut place = -fall * 0.5 * f64::from(u32::try_from(columns.len()).unwrap_or(u32::MAX));
        let mut sums = vec![0.0_f32; self.height];
        for column in columns {
            projection_profile::add_shifted(&mut sums, column, place);
            place += fall;
        }
        let steps = sums.iter().zip(sums.iter().skip(1));
        steps.map(|(here, next)| f64::from(next - here).powi(2)).sum()
    }
}

/// The angle of the greatest clarity between two angles. Between the steps the peak is taken for
/// a parabola.
fn find_best_angle(plane: &ProjectionColumns, (from, to): (f64, f64), step: f64) -> f64 {
    let mut angles = Vec::new();
    let mut degrees = from;
    while degrees <= to + step / 2.0 {
        angles.push(degrees);
        degrees += step;
    }
    // On idle threads of the pool that the page is read on; without any, on this one.
    let clarities: Vec<(f64, f64)> =
        angles.into_par_iter().map(|degrees| (degrees, plane.clarity(degrees))).collect();
    let greatest = clarities.iter().enumerate().max_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let Some((at, &(degrees, peak))) = greatest else { return 0.0 };
    let before = at.checked_sub(1).and_then(|at| clarities.get(at));
    let (Some((_, before)), Some((_, after))) = (before, clarities.get(at + 1)) else {
        return degrees;
    };
    let bend = before - 2.0 * peak + after;
    let offset = if bend < 0.0 { (before - after) / (2.0 * bend) } else { 0.0 };
    degrees + offset * step
}

/// Log ratio of how lower and upper edges pile up on rows.
fn feet_ratio(glyphs: &[InkBox], page: Size, skew: f64) -> f32 {
    if glyphs.len() < MIN_FOR_FEET {
        return 0.0;
    }
    let fall = skew.to_radians().tan();
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for glyph in glyphs {
        let middle = f64::from(glyph.left) + f64::from(glyph.width - page.width) / 2.0;
        for (rows, y) in [(&mut lower, glyph.top + glyph.height), (&mut upper, glyph.top)] {
            rows.push(row_index(f64::from(y) - fall * middle + f64::from(page.width) / 2.0));
        }
    }
    let (lower, upper) = (pile_up(lower), pile_up(upper));
    to_f32((lower / upper.max(1.0)).ln())
}

/// Sum of the squares of how often each row occurs.
fn pile_up(mut rows: Vec<i64>) -> f64 {
    rows.sort_unstable();
    let piles = rows.chunk_by(|one, other| one == other).map(<[i64]>::len);
    piles.map(|pile| u32::try_from(pile).map_or(0.0, f64::from).powi(2)).sum()
}

#[expect(clippy::cast_possible_truncation, reason = "a row of a page")]
fn row_index(y: f64) -> i64 {
    y.round() as i64
}
