//! Curvature of a sheet's text lines: curl and folds that remain once its corners are in place.
//!
//! Letters are chained to lines by their nearest neighbours; every line gives the height of its
//! baseline along the page, up to a constant of its own. One smooth surface, polynomial across and
//! down the page, is fitted to all of them at once by least squares. A second fit leaves out the
//! letters with descenders. (Straightening by text lines: for instance S. Bukhari, F. Shafait and
//! T. Breuel, "Dewarping of document images using coupled-snakes", CBDAR 2009; the surface in place
//! of snakes keeps it from following single lines.)
//!
//! Not promised: sharp folds, crumpled paper, and the narrowing of letters on the sides of a roll.

use opencv::Result;
use opencv::core::{self, Mat, Size, Size2d};
use opencv::prelude::*;

use super::glyphs::{self, InkBox};
use crate::image::opencv_mat::to_f32;

/// Powers of the place across and down in each term; none without the place across, which moves
/// lines but does not bend them.
const TERMS: [(i32, i32); 11] =
    [(1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (3, 2)];
/// Clear pixels to the next letter of a line, as a multiple of the median letter.
const MAX_GAP_LETTERS: f32 = 2.0;
/// Letters of a line, at least; lines and letters of a page.
const MIN_IN_LINE_LETTERS: usize = 8;
const MIN_LINES: usize = 4;
const MIN_LETTERS: usize = 80;
/// Pages with more letters are not dewarped: finding neighbours is quadratic.
const MAX_LETTERS: usize = 6_000;
/// Share of the width over which the lines reach, at least: beyond them nothing is known.
const MIN_REACH: f64 = 0.5;
/// Letters farther off their line than this, as a multiple of the median letter, are left out of
/// the second fit: descenders, and neighbours of another line.
const OFF_LINE: f64 = 0.25;
/// Regularisation of the terms, as a share of the letters: terms with little evidence are damped.
const HELD_BACK: f64 = 1e-3;
/// Lines that bend less than this, as a multiple of the median letter, are straight.
const MIN_BEND_LINES: f64 = 0.3;
/// Letters move by no more than this share of the height.
const MAX_MOVE_LETTERS: f64 = 0.15;

/// By how much lines are lower than they should be, all over a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineBend {
    /// Of the [`TERMS`], in pixels of the page.
    weights: Vec<f64>,
    size: Size2d,
}

/// The foot of a letter: the place across and down from -1 to 1, and its height in measured pixels.
struct GlyphBaseline {
    across: f64,
    down: f64,
    height: f64,
}

impl LineBend {
    /// Pixels by which the line through this place of the page is too low.
    pub(crate) fn offset(&self, x: f64, y: f64) -> f64 {
        let across = x / (self.size.width / 2.0).max(1.0) - 1.0;
        let down = y / (self.size.height / 2.0).max(1.0) - 1.0;
        value(&self.weights, &GlyphBaseline { across, down, height: 0.0 })
    }

    /// Where each of the `width` pixels of row `y` comes from: between places some pixels apart the
    /// bend is straight.
    fn push_row(&self, y: f64, width: i32, rows: &mut Vec<f32>) {
        let mut from = self.source_row(0.0, y);
        for x in (0..width).step_by(APART) {
            let to = self.source_row(f64::from(x + APART_PIXELS), y);
            for step in 0..APART_PIXELS.min(width - x) {
                rows.push(to_f32(from + (to - from) * f64::from(step) / f64::from(APART_PIXELS)));
            }
            from = to;
        }
    }

    fn source_row(&self, x: f64, y: f64) -> f64 {
        y + self.offset(x, y + self.offset(x, y))
    }

    /// On a page that is `factor` times as large.
    pub(super) fn scaled(mut self, factor: i32) -> Self {
        let factor = f64::from(factor);
        self.weights.iter_mut().for_each(|weight| *weight *= factor);
        self.size = Size2d::new(self.size.width * factor, self.size.height * factor);
        self
    }
}

/// The bend of the lines of upright letters on a page of `size`; `None` if they are straight or too
/// few.
pub(super) fn find_bend(letters: &[InkBox], size: Size) -> Result<Option<LineBend>> {
    let median = glyphs::median_side(letters, |letter| letter.height);
    if letters.len() < MIN_LETTERS || letters.len() > MAX_LETTERS || median < 1.0 {
        return Ok(None);
    }
    let page = Size2d::new(f64::from(size.width), f64::from(size.height));
    let mut lines = letter_lines(letters, median, page);
    let Some(first) = fit_lines(&lines)? else { return Ok(None) };
    let letter = f64::from(median);
    for line in &mut lines {
        let level = line_level(line, &first);
        line.retain(|foot| (foot.height - value(&first, foot) - level).abs() < OFF_LINE * letter);
    }
    lines.retain(|line| line.len() >= MIN_IN_LINE_LETTERS / 2);
    let Some(weights) = fit_lines(&lines)? else { return Ok(None) };
    let bend = LineBend { weights, size: page };
    Ok(bend.is_worth_it(&lines, letter).then_some(bend))
}

impl LineBend {
    /// Whether the lines reach across the page, and bend by more than a letter's part, but not more
    /// than paper does.
    fn is_worth_it(&self, lines: &[Vec<GlyphBaseline>], letter: f64) -> bool {
        let slope = self.weights.first().copied().unwrap_or(0.0);
        let (mut left, mut right, mut bend, mut moved) = (1.0_f64, -1.0_f64, 0.0_f64, 0.0_f64);
        for foot in lines.iter().flatten() {
            (left, right) = (left.min(foot.across), right.max(foot.across));
            let height = value(&self.weights, foot);
            bend = bend.max((height - slope * foot.across).abs());
            moved = moved.max(height.abs());
        }
        (right - left) / 2.0 >= MIN_REACH
            && bend >= MIN_BEND_LINES * letter
            && moved <= MAX_MOVE_LETTERS * self.size.height
    }
}

fn terms(across: f64, down: f64) -> Vec<f64> {
    TERMS.iter().map(|(x, y)| across.powi(*x) * down.powi(*y)).collect()
}

fn value(weights: &[f64], foot: &GlyphBaseline) -> f64 {
    let weighted = TERMS.iter().zip(weights);
    weighted.map(|((x, y), weight)| weight * foot.across.powi(*x) * foot.down.powi(*y)).sum()
}

/// The median residual of a line's heights.
fn line_level(line: &[GlyphBaseline], weights: &[f64]) -> f64 {
    let mut left: Vec<f64> = line.iter().map(|foot| foot.height - value(weights, foot)).collect();
    left.sort_by(f64::total_cmp);
    left.get(left.len() / 2).copied().unwrap_or(0.0)
}

/// Letters chained to lines: each to the nearest one to its right if that has it for its nearest
/// one to the left.
fn letter_lines(letters: &[InkBox], median: f32, page: Size2d) -> Vec<Vec<GlyphBaseline>> {
    let mut letters = letters.to_vec();
    letters.retain(|letter| (0.5..2.5).contains(&(f64::from(letter.height) / f64::from(median))));
    letters.sort_unstable_by_key(|letter| (letter.left, letter.top));
    let farthest = MAX_GAP_LETTERS * median;
    let mut next: Vec<Option<usize>> = vec![None; letters.len()];
    let mut before: Vec<Option<(usize, i32)>> = vec![None; letters.len()];
    for (at, letter) in letters.iter().enumerate() {
        let mut nearest: Option<(usize, i32)> = None;
        for (other, candidate) in letters.iter().enumerate().skip(at + 1) {
            let gap = candidate.left - letter.left - letter.width;
            if f64::from(gap) > f64::from(nearest.map_or(farthest, |(_, gap)| gap as f32)) {
                break;
            }
            if shares_line(letter, candidate) {
                nearest = Some((other, gap));
            }
        }
        let Some((other, gap)) = nearest else { continue };
        if let Some(known) = before.get_mut(other)
            && known.is_none_or(|(_, known)| gap < known)
        {
            *known = Some((at, gap));
        }
        if let Some(own) = next.get_mut(at) {
            *own = Some(other);
        }
    }
    // Only neighbours that chose each other are linked.
    let mut is_start = vec![true; letters.len()];
    for (at, other) in next.iter_mut().enumerate() {
        let chosen = other.and_then(|other| before.get(other).copied().flatten());
        *other = other.filter(|_| chosen.is_some_and(|(own, _)| own == at));
        if let Some(follower) = other.and_then(|other| is_start.get_mut(other)) {
            *follower = false;
        }
    }
    let mut lines = Vec::new();
    for start in (0..letters.len()).filter(|at| is_start.get(*at).copied().unwrap_or_default()) {
        let chain = std::iter::successors(Some(start), |at| next.get(*at).copied().flatten());
        let line: Vec<GlyphBaseline> =
            chain.filter_map(|at| letters.get(at)).map(|letter| foot_of(letter, page)).collect();
        if line.len() >= MIN_IN_LINE_LETTERS {
            lines.push(line);
        }
    }
    lines
}

fn foot_of(letter: &InkBox, page: Size2d) -> GlyphBaseline {
    let foot = f64::from(letter.top + letter.height);
    let middle = f64::from(letter.left) + f64::from(letter.width) / 2.0;
    GlyphBaseline {
        across: middle / (page.width / 2.0).max(1.0) - 1.0,
        down: foot / (page.height / 2.0).max(1.0) - 1.0,
        height: foot,
    }
}

/// Whether two letters beside each other share half of the lower one's height.
fn shares_line(one: &InkBox, other: &InkBox) -> bool {
    let shared = (one.top + one.height).min(other.top + other.height) - one.top.max(other.top);
    2 * shared >= one.height.min(other.height) && other.left >= one.left + one.width / 2
}

/// The weights of the surface that fits the lines, each moved by a constant of its own; `None` if
/// they are too few.
fn fit_lines(lines: &[Vec<GlyphBaseline>]) -> Result<Option<Vec<f64>>> {
    let feet: usize = lines.iter().map(Vec::len).sum();
    if lines.len() < MIN_LINES || feet < MIN_LETTERS {
        return Ok(None);
    }
    let count = TERMS.len();
    let mut squares = vec![vec![0.0_f64; count]; count];
    let mut sums = vec![vec![0.0_f64]; count];
    for line in lines {
        let rows: Vec<(Vec<f64>, f64)> =
            line.iter().map(|foot| (terms(foot.across, foot.down), foot.height)).collect();
        let length = f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX)).max(1.0);
        let means: Vec<f64> = (0..count)
            .map(|at| rows.iter().filter_map(|row| row.0.get(at)).sum::<f64>() / length)
            .collect();
        let mean = rows.iter().map(|row| row.1).sum::<f64>() / length;
        for (row, height) in &rows {
            let row: Vec<f64> = row.iter().zip(&means).map(|(term, mean)| term - mean).collect();
            for ((squares, sum), own) in squares.iter_mut().zip(&mut sums).zip(&row) {
                squares.iter_mut().zip(&row).for_each(|(square, other)| *square += own * other);
                sum.iter_mut().for_each(|sum| *sum += own * (height - mean));
            }
        }
    }
    let held = HELD_BACK * f64::from(u32::try_from(feet).unwrap_or(u32::MAX));
    for (at, row) in squares.iter_mut().enumerate() {
        if let Some(square) = row.get_mut(at) {
            *square += held;
        }
    }
    let (squares, sums) = (Mat::from_slice_2d(&squares)?, Mat::from_slice_2d(&sums)?);
    let mut weights = Mat::default();
    let is_solved = core::solve(&squares, &sums, &mut weights, core::DECOMP_CHOLESKY)?;
    Ok(if is_solved { Some(weights.data_typed::<f64>()?.to_vec()) } else { None })
}

/// The page with its lines made straight, in bands, so that it takes no more memory than a few rows
/// beside the page itself.
pub(crate) fn straighten_lines(page: &Mat, bend: &LineBend) -> Result<Mat> {
    let (width, height) = (page.cols(), page.rows());
    let mut straight = Mat::new_rows_cols_with_default(
        height,
        width,
        core::CV_8UC1,
        core::Scalar::all(f64::from(u8::MAX)),
    )?;
    for top in (0..height).step_by(BAND) {
        let rows = core::Rect::new(0, top, width, BAND_ROWS.min(height - top));
        let (mut across, mut down) = (Vec::new(), Vec::new());
        for y in top..top + rows.height {
            across.extend((0..width).map(|x| to_f32(f64::from(x))));
            bend.push_row(f64::from(y), width, &mut down);
        }
        let across = Mat::new_rows_cols_with_data(rows.height, width, &across)?;
        let down = Mat::new_rows_cols_with_data(rows.height, width, &down)?;
        let mut band = straight.roi_mut(rows)?;
        opencv::imgproc::remap(
            page,
            &mut band,
            &across,
            &down,
            opencv::imgproc::INTER_LINEAR,
            core::BORDER_REPLICATE,
            core::Scalar::default(),
        )?;
    }
    Ok(straight)
}

/// Pixels between the places of a row at which the bend is computed.
const APART: usize = 16;
const APART_PIXELS: i32 = 16;
/// Rows of a band.
const BAND: usize = 128;
const BAND_ROWS: i32 = 128;
