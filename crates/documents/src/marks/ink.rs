//! The ink of a picture as its connected pieces.
//!
//! They are joined from runs, of which a page has some hundred thousand: labelling each pixel takes
//! ten times as long for the same pieces.

use std::ops::Range;

use opencv::core::{Mat, Rect};
use opencv::imgproc;
use opencv::prelude::*;

use crate::image::opencv_mat::{OpenCvError, shrink_mat, view_raster};
use crate::page::PageRaster;
use docmill_core::model::BoundingBox;

/// A4 at 350 dpi. A larger picture is shrunk.
const MAX_PIXELS: u64 = 12_000_000;
/// Side of the surroundings that ink has to be darker than: wider than a finder pattern of a code
/// at any resolution in use.
pub(super) const SURROUNDINGS_PIXELS: i32 = 151;
/// By how much it has to be darker.
pub(super) const MIN_DARKER: f64 = 18.0;

/// Value of a pixel of ink.
const INK: u8 = 255;
/// Sampled points across and down by which the ink of an area is estimated.
const SAMPLES: u16 = 32;

/// Ink that changes to paper or back at least once in so many pixels is busy. A code does so once
/// in a module or two, and codes with larger modules are decoded.
const MAX_PIXELS_PER_CHANGE: i64 = 12;

/// Pixels between the lines that are read.
const LINE_STEP: usize = 6;
/// Widths of bars and spaces in turn along a line, a bar first and last.
pub(super) struct BarLine {
    /// Where the line lies: the row or the column.
    pub(super) at: i32,
    /// Where each bar and space begins, and where the last one ends.
    pub(super) edges: Vec<i32>,
}

/// A connected piece of ink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InkPiece {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) width: i32,
    pub(super) height: i32,
    /// Its pixels.
    pub(super) count: i32,
}

/// Pixels of ink side by side in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InkRun {
    /// The first pixel.
    pub(super) from: i32,
    /// The first one behind it.
    pub(super) to: i32,
    /// Its piece. While pieces are joined: index of a run of the same piece, itself or an earlier
    /// one.
    piece: usize,
}

/// The ink of a picture.
pub(super) struct PageInk {
    bits: Mat,
    /// From the top, those of a row from the left.
    runs: Vec<InkRun>,
    /// How many runs end before each row, and all.
    rows: Vec<usize>,
    /// The pieces; the first one is the paper.
    pub(super) pieces: Vec<InkPiece>,
    /// How much larger the picture is than this ink.
    pub(super) scale: f32,
}

impl PageInk {
    pub(super) fn from_raster(picture: &PageRaster) -> Result<Self, OpenCvError> {
        let pixels = u64::from(picture.width) * u64::from(picture.height);
        let factor = (1_u8..=8)
            .find(|factor| pixels / (u64::from(*factor) * u64::from(*factor)) <= MAX_PIXELS);
        let factor = factor.unwrap_or(8);
        let small = shrink_mat(&view_raster(picture)?, i32::from(factor))?;
        let mut bits = Mat::default();
        let (mean, inverse) = (imgproc::ADAPTIVE_THRESH_MEAN_C, imgproc::THRESH_BINARY_INV);
        imgproc::adaptive_threshold(
            &small,
            &mut bits,
            f64::from(INK),
            mean,
            inverse,
            SURROUNDINGS_PIXELS,
            MIN_DARKER,
        )?;
        Self::from_bits(bits, f32::from(factor))
    }

    fn from_bits(bits: Mat, scale: f32) -> Result<Self, OpenCvError> {
        let (mut runs, mut rows) = (Vec::new(), vec![0]);
        let mut above = 0;
        for y in 0..bits.rows() {
            let begin = runs.len();
            push_runs(bits.at_row::<u8>(y)?, &mut runs);
            join_rows(&mut runs, above..begin);
            rows.push(runs.len());
            above = begin;
        }
        let mut ink = Self { bits, runs, rows, pieces: Vec::new(), scale };
        ink.number_pieces();
        Ok(ink)
    }

    /// Numbers the pieces by their first runs, and measures them.
    fn number_pieces(&mut self) {
        let (width, height) = (self.width(), self.height());
        let mut pieces = vec![InkPiece { left: 0, top: 0, width, height, count: 0 }];
        let ends = self.rows.iter().skip(1);
        for (y, (begin, end)) in (0_i32..).zip(self.rows.iter().zip(ends)) {
            for at in *begin..*end {
                let Some(InkRun { from, to, piece }) = self.runs.get(at).copied() else { continue };
                // An earlier run has its number already.
                let number = match self.runs.get(piece).filter(|_| piece != at) {
                    Some(first) => first.piece,
                    None => pieces.len(),
                };
                if let Some(run) = self.runs.get_mut(at) {
                    run.piece = number;
                }
                match pieces.get_mut(number) {
                    Some(known) => known.take_in(from, to, y),
                    None => pieces.push(InkPiece {
                        left: from,
                        top: y,
                        width: to - from,
                        height: 1,
                        count: to - from,
                    }),
                }
            }
        }
        self.pieces = pieces;
    }

    /// A part of it by itself, in which ink connected only outside of it is not connected.
    pub(super) fn cut_out(&self, area: Rect) -> Result<Self, OpenCvError> {
        let mut bits = Mat::default();
        self.bits.roi(area)?.copy_to(&mut bits)?;
        Self::from_bits(bits, self.scale)
    }

    /// Whether ink and paper change about as often as on a code, along rows and along columns.
    pub(super) fn is_busy(&self) -> Result<bool, OpenCvError> {
        let (width, height) = (self.width(), self.height());
        if width < 2 || height < 2 {
            return Ok(false);
        }
        let before = Rect::new(0, 0, width - 1, height);
        let across = self.count_changes(before, Rect::new(1, 0, width - 1, height))?;
        let above = Rect::new(0, 0, width, height - 1);
        let down = self.count_changes(above, Rect::new(0, 1, width, height - 1))?;
        let pixels = i64::from(width) * i64::from(height);
        Ok(across.min(down) * MAX_PIXELS_PER_CHANGE >= pixels)
    }

    /// Pixels that differ between two areas of the same size.
    fn count_changes(&self, from: Rect, to: Rect) -> Result<i64, OpenCvError> {
        let mut differs = Mat::default();
        opencv::core::absdiff(&self.bits.roi(from)?, &self.bits.roi(to)?, &mut differs)?;
        Ok(i64::from(opencv::core::count_non_zero(&differs)?))
    }

    /// Rows of the ink.
    pub(super) fn height(&self) -> i32 {
        self.bits.rows()
    }

    /// Pixels per row.
    pub(super) fn width(&self) -> i32 {
        self.bits.cols()
    }

    /// The runs of a row.
    pub(super) fn row(&self, at: i32) -> &[InkRun] {
        let ends = usize::try_from(at).ok().and_then(|at| self.rows.get(at..at.checked_add(2)?));
        let Some(&[begin, end]) = ends else { return &[] };
        self.runs.get(begin..end).unwrap_or_default()
    }

    /// Bars and spaces along rows, some pixels apart.
    pub(super) fn list_rows(&self) -> Vec<BarLine> {
        let rows = (0..self.height()).step_by(LINE_STEP);
        rows.map(|at| BarLine { at, edges: edges_of(self.row(at)) }).collect()
    }

    /// Bars and spaces along columns, some pixels apart.
    pub(super) fn list_columns(&self) -> Result<Vec<BarLine>, OpenCvError> {
        let mut turned = Mat::default();
        opencv::core::transpose(&self.bits, &mut turned)?;
        let mut lines = Vec::new();
        for at in (0..turned.rows()).step_by(LINE_STEP) {
            let mut runs = Vec::new();
            push_runs(turned.at_row::<u8>(at)?, &mut runs);
            lines.push(BarLine { at, edges: edges_of(&runs) });
        }
        Ok(lines)
    }

    /// The piece that a pixel is of; 0 is the paper, and beyond the picture.
    pub(super) fn label_at(&self, x: i32, y: i32) -> usize {
        let row = self.row(y);
        let run = row.get(row.partition_point(|run| run.to <= x));
        run.filter(|run| run.from <= x).map_or(0, |run| run.piece)
    }

    /// Whether there is ink.
    pub(super) fn is_ink(&self, x: i32, y: i32) -> bool {
        self.label_at(x, y) != 0
    }

    /// Whether a quarter of an area is ink, as of codes and hardly of anything else.
    pub(super) fn is_dense(&self, area: &BoundingBox) -> bool {
        let mut inked = 0;
        for row in 0..SAMPLES {
            let y = sample_point(area.y, area.h, row);
            for column in 0..SAMPLES {
                inked += usize::from(self.is_ink(sample_point(area.x, area.w, column), y));
            }
        }
        inked * 4 > usize::from(SAMPLES) * usize::from(SAMPLES)
    }

    pub(super) fn piece(&self, label: usize) -> Option<InkPiece> {
        self.pieces.get(label).copied()
    }
}

impl InkPiece {
    /// Adds a run that lies in the last of its rows or below.
    fn take_in(&mut self, from: i32, to: i32, y: i32) {
        let right = to.max(self.left + self.width);
        self.left = self.left.min(from);
        self.width = right - self.left;
        self.height = y - self.top + 1;
        self.count += to - from;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
fn sample_point(start: f32, length: f32, index: u16) -> i32 {
    (start + length * (f32::from(index) + 0.5) / f32::from(SAMPLES)) as i32
}

fn edges_of(runs: &[InkRun]) -> Vec<i32> {
    runs.iter().flat_map(|run| [run.from, run.to]).collect()
}

/// Adds the runs of a row, each a piece by itself.
fn push_runs(row: &[u8], runs: &mut Vec<InkRun>) {
    let mut behind = 0;
    while let Some(rest) = row.get(behind..)
        && let Some(skipped) = memchr::memchr(INK, rest)
    {
        let from = behind + skipped;
        let length = rest.get(skipped..).and_then(|ink| memchr::memchr(0, ink));
        behind = length.map_or(row.len(), |length| from + length);
        runs.push(InkRun { from: to_i32(from), to: to_i32(behind), piece: runs.len() });
    }
}

pub(super) fn to_i32(pixels: usize) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}

/// Joins the runs of a row, the last ones, with those of the row above that they touch.
fn join_rows(runs: &mut [InkRun], above: Range<usize>) {
    let (mut upper, mut lower) = (above.start, above.end);
    while upper < above.end
        && let (Some(one), Some(other)) = (runs.get(upper).copied(), runs.get(lower).copied())
    {
        if one.from < other.to && other.from < one.to {
            join_runs(runs, upper, lower);
        }
        if one.to < other.to { upper += 1 } else { lower += 1 }
    }
}

fn join_runs(runs: &mut [InkRun], one: usize, other: usize) {
    let (one, other) = (first_of_piece(runs, one), first_of_piece(runs, other));
    if let Some(run) = runs.get_mut(one.max(other)) {
        run.piece = one.min(other);
    }
}

/// The first run of a piece (union-find with path compression).
fn first_of_piece(runs: &mut [InkRun], at: usize) -> usize {
    let mut first = at;
    while earlier_run(runs, first) != first {
        first = earlier_run(runs, first);
    }
    let mut passed = at;
    while passed != first {
        let next = earlier_run(runs, passed);
        if let Some(run) = runs.get_mut(passed) {
            run.piece = first;
        }
        passed = next;
    }
    first
}

fn earlier_run(runs: &[InkRun], at: usize) -> usize {
    runs.get(at).map_or(at, |run| run.piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use opencv::core::{CV_8U, CV_32S};

    /// Pieces of the same ink by the library, which labels each pixel.
    fn pieces_by_pixels(bits: &Mat) -> Vec<InkPiece> {
        let (mut labels, mut stats, mut centres) = (Mat::default(), Mat::default(), Mat::default());
        imgproc::connected_components_with_stats(
            bits,
            &mut labels,
            &mut stats,
            &mut centres,
            4,
            CV_32S,
        )
        .unwrap();
        let rows = stats.data_typed::<i32>().unwrap().chunks_exact(5).skip(1);
        let piece = |row: &[i32]| InkPiece {
            left: row[0],
            top: row[1],
            width: row[2],
            height: row[3],
            count: row[4],
        };
        rows.map(piece).collect()
    }

    #[test]
    fn pieces_of_runs_are_those_that_labelling_each_pixel_finds() {
        let mut random = fastrand::Rng::with_seed(3);
        for (width, height, share) in
            [(1, 1, 0.5), (9, 1, 0.5), (1, 9, 0.5), (64, 48, 0.3), (64, 48, 0.6), (97, 61, 0.9)]
        {
            let pixels: Vec<u8> =
                (0..width * height).map(|_| if random.f64() < share { INK } else { 0 }).collect();
            let bits = Mat::new_rows_cols_with_data(height, width, &pixels).unwrap();
            let bits = bits.try_clone().unwrap();
            assert_eq!(bits.typ(), CV_8U);
            let ink = PageInk::from_bits(bits.clone(), 1.0).unwrap();
            let sorted = |mut pieces: Vec<InkPiece>| {
                pieces.sort_by_key(|it| (it.top, it.left, it.width, it.height, it.count));
                pieces
            };
            let found = sorted(ink.pieces.iter().skip(1).copied().collect());
            assert_eq!(found, sorted(pieces_by_pixels(&bits)), "{width} x {height}, {share}");
            let is_ink = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
            let is_ink: Vec<bool> = is_ink.map(|(x, y)| ink.is_ink(x, y)).collect();
            assert_eq!(is_ink, pixels.iter().map(|pixel| *pixel == INK).collect::<Vec<_>>());
        }
    }
}
