//! Straight edges in a small picture along which it gets brighter: candidates for the edges of a
//! sheet of paper.
//!
//! Every point where the logarithm of the brightness rises votes for the lines through it that run
//! across the rise (Hough's transform with the direction of the gradient, as in D. Ballard,
//! "Generalizing the Hough transform", Pattern Recognition 13, 1981). A shadow changes both sides
//! of an edge by the same factor, so it does not change the logarithm's slope. Print is removed
//! first by a morphological closing, up to the width of a headline's strokes.

use opencv::core::{self, Mat, Size};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use crate::image::opencv_mat;

/// Side of the square by which print is closed, in pixels of the small picture.
const CLOSING_PIXELS: i32 = 13;
/// Rise per pixel, in logarithms, that counts as rising, and above which it counts for no more.
const MIN_RISE: f32 = 0.06;
const MAX_RISE: f32 = 0.3;
/// The picture is brighter by this, in logarithms, this many pixels inside an edge than outside.
const MIN_STEP: f32 = 0.12;
const STEP_REACH_PIXELS: f64 = 7.0;
/// Degrees between directions that are voted for, and how many to either side a place votes for.
const DEGREES_PER_VOTE: usize = 2;
const DIRECTIONS: usize = 360 / DEGREES_PER_VOTE;
const VOTE_SPREAD: usize = 3;
/// Candidates for each side, and their distance from each other: directions, pixels.
const MAX_EDGES: usize = 10;
const MIN_APART: (usize, usize) = (4, 6);
/// Degrees by which a side may be turned.
const MAX_TILT_DEGREES: f64 = 46.0;
/// A place of an edge may lie this many pixels beside its line.
const MAX_BESIDE_PIXELS: i32 = 3;

/// A place in the small picture, counted from its middle.
pub(super) type PlanePoint = (f64, f64);

/// A line across the whole picture, and where along it the picture rises.
#[derive(Debug, Clone)]
pub(super) struct EdgeLine {
    /// The direction into the sheet, of length 1.
    pub normal: PlanePoint,
    /// Pixels from the middle of the picture, along the normal.
    pub distance: f64,
    /// `None` for a side of the picture itself.
    pub support: Option<EdgeSupport>,
}

/// How many of the places along a line lie in the picture, and at how many it rises, added up.
#[derive(Debug, Clone)]
pub(super) struct EdgeSupport {
    rising: Vec<u32>,
    inside: Vec<u32>,
    reach: i32,
}

/// A part of a line: pixels, those in the picture, and those where it rises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SegmentSupport {
    pub length: f64,
    pub inside: f64,
    pub rising: f64,
}

impl EdgeLine {
    /// Where a place lies along the line.
    fn along(&self, (x, y): PlanePoint) -> f64 {
        y * self.normal.0 - x * self.normal.1
    }

    /// Where two lines meet, unless they are all but parallel.
    pub(super) fn crossing(&self, other: &Self) -> Option<PlanePoint> {
        let ((a, b), (c, d)) = (self.normal, other.normal);
        let sine = a * d - b * c;
        (sine.abs() > 0.5).then(|| {
            let x = (self.distance * d - other.distance * b) / sine;
            (x, (a * other.distance - c * self.distance) / sine)
        })
    }

    /// Support of the line between two of its points; `None` for a side of the picture.
    pub(super) fn support_between(
        &self,
        one: PlanePoint,
        other: PlanePoint,
    ) -> Option<SegmentSupport> {
        let support = self.support.as_ref()?;
        let (one, other) = (self.along(one), self.along(other));
        let last = support.rising.len().saturating_sub(1);
        let [from, to] = [one.min(other), one.max(other)].map(|at| {
            let index = usize::try_from(round_to_i32(at).saturating_add(support.reach));
            index.unwrap_or_default().min(last)
        });
        Some(SegmentSupport {
            length: (one - other).abs(),
            inside: count_between(&support.inside, from, to),
            rising: count_between(&support.rising, from, to),
        })
    }
}

fn count_between(sums: &[u32], from: usize, to: usize) -> f64 {
    match (sums.get(from), sums.get(to)) {
        (Some(from), Some(to)) => f64::from(to - from),
        _ => 0.0,
    }
}

/// Slope of a picture, across (1, 0) or down (0, 1).
fn slope(logarithm: &Mat, dx: i32, dy: i32) -> Result<Vec<f32>> {
    let mut slope = Mat::default();
    let (kind, edge) = (core::CV_32F, core::BORDER_REPLICATE);
    // The kernel sums four differences over two pixels; here it is per two pixels.
    imgproc::sobel(logarithm, &mut slope, kind, dx, dy, 3, 0.25, 0.0, edge)?;
    Ok(slope.data_typed::<f32>()?.to_vec())
}

/// How the logarithm of a small picture's brightness rises.
pub(super) struct RiseMap {
    width: i32,
    height: i32,
    across: Vec<f32>,
    down: Vec<f32>,
    level: Vec<f32>,
}

impl RiseMap {
    /// Of a picture of some hundred pixels each way.
    pub(super) fn from_picture(small: &Mat) -> Result<Self> {
        let square = imgproc::get_structuring_element_def(
            imgproc::MORPH_RECT,
            Size::new(CLOSING_PIXELS, CLOSING_PIXELS),
        )?;
        let mut closed = Mat::default();
        imgproc::morphology_ex_def(small, &mut closed, imgproc::MORPH_CLOSE, &square)?;
        let (mut bright, mut logarithm) = (Mat::default(), Mat::default());
        closed.convert_to(&mut bright, core::CV_32F, 1.0, 4.0)?;
        core::log(&bright, &mut logarithm)?;
        let mut level = Mat::default();
        imgproc::blur_def(&logarithm, &mut level, Size::new(5, 5))?;
        Ok(Self {
            width: small.cols(),
            height: small.rows(),
            across: slope(&logarithm, 1, 0)?,
            down: slope(&logarithm, 0, 1)?,
            level: level.data_typed::<f32>()?.to_vec(),
        })
    }

    /// The middle of the picture, from which places count.
    pub(super) fn middle(&self) -> PlanePoint {
        (f64::from(self.width - 1) / 2.0, f64::from(self.height - 1) / 2.0)
    }

    /// Half the diagonal.
    fn reach(&self) -> i32 {
        let (x, y) = self.middle();
        round_to_i32(x.hypot(y)) + 2
    }

    fn index(&self, (x, y): PlanePoint) -> Option<usize> {
        let (middle_x, middle_y) = self.middle();
        let (x, y) = (round_to_i32(x + middle_x), round_to_i32(y + middle_y));
        let is_inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        if is_inside { usize::try_from(y * self.width + x).ok() } else { None }
    }

    /// Lines that may be the left side of the sheet, its top, its right side and its bottom: the
    /// strongest ones, and the side of the picture.
    pub(super) fn candidates(&self) -> [Vec<EdgeLine>; 4] {
        let votes = self.count_votes();
        [0, 1, 2, 3].map(|side| {
            let mut found = self.strongest_lines(votes.clone(), 90.0 * f64::from(side));
            let (x, y) = self.middle();
            let distance = if side % 2 == 0 { -x } else { -y };
            let normal = direction(90.0 * f64::from(side));
            found.push(EdgeLine { normal, distance, support: None });
            found
        })
    }

    /// The sum of the rises along each line: directions one after the other, in each the lines by
    /// their distance from the middle.
    fn count_votes(&self) -> EdgeVotes {
        let reach = self.reach();
        let columns = usize::try_from(2 * reach + 1).unwrap_or_default();
        let mut votes = EdgeVotes { sums: vec![0.0; DIRECTIONS * columns], columns };
        let directions: Vec<PlanePoint> =
            (0..DIRECTIONS).map(|at| direction(degrees_of(at))).collect();
        let (middle_x, middle_y) = self.middle();
        let row_length = usize::try_from(self.width).unwrap_or(1).max(1);
        for (at, (dx, dy)) in self.across.iter().zip(&self.down).enumerate() {
            let rise = dx.hypot(*dy);
            if rise < MIN_RISE {
                continue;
            }
            let (x, y) = (to_f64(at % row_length) - middle_x, to_f64(at / row_length) - middle_y);
            let degrees = f64::from(*dy).atan2(f64::from(*dx)).to_degrees().rem_euclid(360.0);
            let nearest = to_usize(degrees / degrees_of(1));
            for turn in 0..=2 * VOTE_SPREAD {
                let turned = (nearest + DIRECTIONS + turn - VOTE_SPREAD) % DIRECTIONS;
                let Some((cosine, sine)) = directions.get(turned) else { continue };
                let column = round_to_i32(x * cosine + y * sine).saturating_add(reach);
                votes.add(turned, usize::try_from(column).unwrap_or_default(), rise.min(MAX_RISE));
            }
        }
        votes
    }

    fn strongest_lines(&self, mut votes: EdgeVotes, side: f64) -> Vec<EdgeLine> {
        let least = MIN_RISE * 0.1 * self.width.min(self.height).max(1) as f32;
        let mut found = Vec::with_capacity(MAX_EDGES + 1);
        while found.len() < MAX_EDGES {
            let Some((turned, column, sum)) = votes.fullest(side) else { break };
            if sum < least {
                break;
            }
            votes.clear_around(turned, column);
            let normal = direction(degrees_of(turned));
            let distance = to_f64(column) - f64::from(self.reach());
            let mut line = EdgeLine { normal, distance, support: None };
            line.support = Some(self.measure_support(&line));
            found.push(line);
        }
        found
    }

    fn measure_support(&self, line: &EdgeLine) -> EdgeSupport {
        let reach = 2 * self.reach();
        let places = usize::try_from(2 * reach + 2).unwrap_or_default();
        let (mut rising, mut inside) = (Vec::with_capacity(places), Vec::with_capacity(places));
        let (mut rises, mut insides) = (0, 0);
        rising.push(0);
        inside.push(0);
        for along in -reach..=reach {
            let along = f64::from(along);
            rises += u32::from(self.rise_beside(line, along).is_some());
            insides += u32::from(self.index(place_on(line, along, 0.0)).is_some());
            rising.push(rises);
            inside.push(insides);
        }
        EdgeSupport { rising, inside, reach }
    }

    /// How many pixels beside a place of a line the picture rises most, if it rises as an edge
    /// does.
    fn rise_beside(&self, line: &EdgeLine, along: f64) -> Option<i32> {
        let rises = (-MAX_BESIDE_PIXELS..=MAX_BESIDE_PIXELS).filter_map(|beside| {
            let at = self.index(place_on(line, along, f64::from(beside)))?;
            let (dx, dy) = (self.across.get(at)?, self.down.get(at)?);
            Some((beside, f64::from(*dx) * line.normal.0 + f64::from(*dy) * line.normal.1))
        });
        let (beside, steepest) = rises.max_by(|one, other| one.1.total_cmp(&other.1))?;
        let [within, without] = [STEP_REACH_PIXELS, -STEP_REACH_PIXELS].map(|beside| {
            self.index(place_on(line, along, beside)).and_then(|at| self.level.get(at))
        });
        // Beyond the picture nothing is known: the edge counts.
        let is_step = match (within, without) {
            (Some(within), Some(without)) => within - without > MIN_STEP,
            _ => true,
        };
        (steepest > f64::from(MIN_RISE) && is_step).then_some(beside)
    }

    /// `line` moved to where the picture really rises between two of its places: a straight line
    /// through these, without those that lie far off it.
    pub(super) fn refine(&self, line: &EdgeLine, one: PlanePoint, other: PlanePoint) -> EdgeLine {
        let (one, other) = (line.along(one), line.along(other));
        let (from, to) = (round_to_i32(one.min(other)), round_to_i32(one.max(other)));
        let seen = (from..=to).filter_map(|along| {
            let along = f64::from(along);
            Some((along, f64::from(self.rise_beside(line, along)?)))
        });
        let mut seen: Vec<PlanePoint> = seen.collect();
        let (mut offset, mut slope) = fit_line(&seen);
        seen.retain(|(along, beside)| (beside - offset - slope * along).abs() < 1.5);
        if seen.len() > 1 {
            (offset, slope) = fit_line(&seen);
        }
        let length = 1.0_f64.hypot(slope);
        let (x, y) = line.normal;
        let normal = ((x + slope * y) / length, (y - slope * x) / length);
        let distance = (line.distance + offset) / length;
        EdgeLine { normal, distance, support: line.support.clone() }
    }
}

/// A place of a line: so far along it, and so far beside it towards the inside.
fn place_on(line: &EdgeLine, along: f64, beside: f64) -> PlanePoint {
    let (x, y) = line.normal;
    let away = line.distance + beside;
    (x * away - y * along, y * away + x * along)
}

/// Least squares: the height at 0 and the slope.
fn fit_line(places: &[PlanePoint]) -> (f64, f64) {
    let count = to_f64(places.len().max(1));
    let x = places.iter().map(|place| place.0).sum::<f64>() / count;
    let y = places.iter().map(|place| place.1).sum::<f64>() / count;
    let spread: f64 = places.iter().map(|place| (place.0 - x).powi(2)).sum();
    let common: f64 = places.iter().map(|place| (place.0 - x) * (place.1 - y)).sum();
    let slope = if spread > 0.0 { common / spread } else { 0.0 };
    (y - slope * x, slope)
}

/// Rises added up by direction and distance.
#[derive(Clone)]
struct EdgeVotes {
    sums: Vec<f32>,
    columns: usize,
}

impl EdgeVotes {
    fn add(&mut self, direction: usize, column: usize, rise: f32) {
        let from = direction * self.columns;
        let near = [(column.wrapping_sub(1), 0.5), (column, 1.0), (column + 1, 0.5)];
        for (column, weight) in near.into_iter().filter(|(column, _)| *column < self.columns) {
            if let Some(sum) = self.sums.get_mut(from + column) {
                *sum += weight * rise;
            }
        }
    }

    /// The line with most votes among those whose normal is `side` degrees, more or less.
    fn fullest(&self, side: f64) -> Option<(usize, usize, f32)> {
        let rows = self.sums.chunks_exact(self.columns.max(1)).enumerate();
        let best = rows.filter_map(|(direction, row)| {
            let apart = (degrees_of(direction) - side + 180.0).rem_euclid(360.0) - 180.0;
            if apart.abs() > MAX_TILT_DEGREES {
                return None;
            }
            let fullest = row.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
            fullest.map(|(column, sum)| (direction, column, *sum))
        });
        best.max_by(|one, other| one.2.total_cmp(&other.2))
    }

    fn clear_around(&mut self, direction: usize, column: usize) {
        let (turns, beside) = MIN_APART;
        let columns = column.saturating_sub(beside)..(column + beside + 1).min(self.columns);
        for turn in 0..=2 * turns {
            let from = (direction + DIRECTIONS + turn - turns) % DIRECTIONS * self.columns;
            let cleared = from + columns.start..from + columns.end;
            self.sums.get_mut(cleared).unwrap_or_default().fill(0.0);
        }
    }
}

fn degrees_of(direction: usize) -> f64 {
    to_f64(direction * DEGREES_PER_VOTE)
}

fn direction(degrees: f64) -> PlanePoint {
    let (sine, cosine) = degrees.to_radians().sin_cos();
    (cosine, sine)
}

fn to_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

#[expect(clippy::cast_possible_truncation, reason = "a place in a picture of some hundred pixels")]
pub(super) fn round_to_i32(place: f64) -> i32 {
    place.round() as i32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "one of some directions, never below 0"
)]
fn to_usize(direction: f64) -> usize {
    direction.round() as usize
}

/// The picture in which edges are searched for: small, and without specks.
pub(super) fn shrink_for_edges(plane: &impl opencv_mat::PixelMatrix, factor: i32) -> Result<Mat> {
    opencv_mat::smooth_median(&opencv_mat::shrink_mat(plane, factor)?, 5)
}
