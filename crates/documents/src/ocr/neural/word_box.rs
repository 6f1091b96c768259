//! Positions on the page of the words of a strip.
//!
//! The columns of a word's characters say about where it is. Its edges are found in the strip
//! itself: from the middle of the gap before it to the middle of the gap behind it, less the rows
//! and columns without ink. Rules of a table are no ink of a word: what runs through a strip from
//! its one end to the other.

use std::ops::Range;

use opencv::core::{self, Mat};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use super::ctc::StripWord;
use super::line_box::LineBox;
use super::pixels;
use docmill_core::model::BoundingBox;

/// Which pixels of a strip are ink.
pub(super) struct StripInk {
    /// Byte for byte, 0 where there is none.
    ink: Vec<u8>,
    width: usize,
    height: usize,
}

/// A part of a strip, in pixels of it; not empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StripArea {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
    width: f32,
    height: f32,
}

impl StripInk {
    /// Separates ink from paper at the level that splits the strip's pixels best (Otsu). The rarer
    /// class is ink, whichever is darker.
    pub(super) fn measure(strip: &Mat) -> Result<Self> {
        let mut ink = Mat::default();
        imgproc::threshold(
            strip,
            &mut ink,
            0.0,
            255.0,
            imgproc::THRESH_BINARY_INV | imgproc::THRESH_OTSU,
        )?;
        if core::count_non_zero(&ink)? > ink.rows() * ink.cols() / 2 {
            let paper = ink;
            ink = Mat::default();
            core::bitwise_not(&paper, &mut ink, &core::no_array())?;
        }
        let rules = rules_across(&ink)?;
        ink.set_to(&core::Scalar::all(0.0), &rules)?;
        let (width, height) = (pixels::side(ink.cols()), pixels::side(ink.rows()));
        Ok(Self { ink: ink.data_bytes()?.to_vec(), width, height })
    }

    /// Ranges of at most `max` columns that cover the strip; all but the last are multiples of
    /// `stride`. Each ends in the middle of the widest gap in its second half, rounded down to
    /// `stride`; without a gap, at `max`.
    pub(super) fn pieces(&self, max: usize, stride: usize) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while self.width - start > max {
            let gap = self.widest_gap(start + max / 2..start + max);
            let middle = (gap.start + gap.end) / 2 / stride * stride;
            let end = if gap.is_empty() { start + max } else { middle.max(start + stride) };
            pieces.push(start..end);
            start = end;
        }
        pieces.push(start..self.width);
        pieces
    }

    /// The widest run of columns without ink; empty without one.
    fn widest_gap(&self, columns: Range<usize>) -> Range<usize> {
        let mut best = columns.start..columns.start;
        let mut start = columns.start;
        for column in columns {
            if self.has_ink(column) {
                start = column + 1;
            } else if column + 1 - start > best.len() {
                best = start..column + 1;
            }
        }
        best
    }

    /// The area of each word; `per_column`: pixels of a column of the reading.
    pub(super) fn word_boxes(&self, words: &[StripWord], per_column: f32) -> Vec<StripArea> {
        let pixel = |column: usize| {
            let place = f32::from(u16::try_from(column).unwrap_or(u16::MAX)) * per_column;
            pixels::side(pixels::to_i32(place.round())).min(self.width)
        };
        let mut areas = Vec::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            let after = words.get(at + 1);
            let (start, end) = (pixel(word.columns.start), pixel(word.columns.end));
            let left = before.map_or(0, |it| self.gap_middle(pixel(it.columns.end), start));
            let right =
                after.map_or(self.width, |it| self.gap_middle(end, pixel(it.columns.start)));
            areas.push(self.ink_area(left, right.max(left + 1), (start, end)));
        }
        areas
    }

    /// The middle of the widest gap without ink from one column to another.
    fn gap_middle(&self, from: usize, to: usize) -> usize {
        let (from, to) = (from.min(to), to.max(from));
        let (mut best, mut start) = ((from + to) / 2..(from + to) / 2, None);
        for column in from..=to {
            let is_empty = column < to && !self.has_ink(column);
            match (is_empty, start) {
                (true, None) => start = Some(column),
                (false, Some(since)) => {
                    if column - since > best.len() {
                        best = since..column;
                    }
                    start = None;
                }
                _ => {}
            }
        }
        best.start + best.len() / 2
    }

    fn has_ink(&self, column: usize) -> bool {
        self.ink.iter().skip(column).step_by(self.width.max(1)).any(|pixel| *pixel != 0)
    }

    /// The rows with ink of the columns from `left` to `right`: from the middle of the strip up and
    /// down to the first gap wider than one below a dot. Beyond are parts of other lines. All rows
    /// with ink where the middle has none.
    fn ink_rows(&self, left: usize, right: usize) -> Option<(usize, usize)> {
        let has_ink: Vec<bool> = self
            .ink
            .chunks_exact(self.width.max(1))
            .map(|row| row.get(left..right).is_some_and(|part| part.iter().any(|it| *it != 0)))
            .collect();
        let (gap, middle) = (self.height / 5, self.height / 2);
        let reach = |rows: &mut dyn Iterator<Item = usize>| {
            let mut last = None;
            let mut empty = 0;
            for row in rows {
                if has_ink.get(row).copied().unwrap_or(false) {
                    (last, empty) = (Some(row), 0);
                } else if empty >= gap {
                    break;
                } else {
                    empty += 1;
                }
            }
            last
        };
        let top = reach(&mut (0..middle).rev());
        let bottom = reach(&mut (middle..self.height));
        match (top.or(bottom), bottom.or(top)) {
            (Some(_), Some(last)) => {
                let first =
                    top.or_else(|| (middle..=last).find(|row| has_ink.get(*row) == Some(&true)));
                first.map(|first| (first, last + 1))
            }
            _ => {
                let first = has_ink.iter().position(|it| *it)?;
                Some((first, has_ink.iter().rposition(|it| *it)? + 1))
            }
        }
    }

    /// The inked part of the columns from `left` to `right`; without ink, the position by the
    /// reading, over all rows.
    fn ink_area(&self, left: usize, right: usize, read: (usize, usize)) -> StripArea {
        let right = right.min(self.width);
        let mut columns: Option<(usize, usize)> = None;
        for column in left..right {
            if self.has_ink(column) {
                columns = Some((columns.map_or(column, |(first, _)| first), column + 1));
            }
        }
        let rows = self.ink_rows(left, right);
        let (left, right) = columns.unwrap_or((read.0, read.1.max(read.0 + 1)));
        let (top, bottom) = rows.unwrap_or((0, self.height));
        let place = |pixel: usize| f32::from(u16::try_from(pixel).unwrap_or(u16::MAX));
        StripArea {
            left: place(left),
            top: place(top),
            right: place(right),
            bottom: place(bottom),
            width: place(self.width.max(1)),
            height: place(self.height.max(1)),
        }
    }
}

/// Mask of rules in a strip's ink: components that reach from one end to the other, as no word does
/// whose strip has a margin, and are less than half as high. A rule may be slanted.
fn rules_across(ink: &Mat) -> Result<Mat> {
    let (mut pieces, mut sizes, mut middles) = (Mat::default(), Mat::default(), Mat::default());
    let count =
        imgproc::connected_components_with_stats_def(ink, &mut pieces, &mut sizes, &mut middles)?;
    let mut rules = Mat::zeros(ink.rows(), ink.cols(), core::CV_8U)?.to_mat()?;
    for piece in 1..count {
        let size = |which| sizes.at_2d::<i32>(piece, which).copied();
        let is_across = size(imgproc::CC_STAT_WIDTH)? == ink.cols();
        if is_across && size(imgproc::CC_STAT_HEIGHT)? < ink.rows() / 2 {
            let mut own = Mat::default();
            let number = core::Scalar::all(f64::from(piece));
            core::in_range(&pieces, &number, &number, &mut own)?;
            let before = rules;
            rules = Mat::default();
            core::bitwise_or(&before, &own, &mut rules, &core::no_array())?;
        }
    }
    Ok(rules)
}

impl StripArea {
    /// The box on the page, level, around the area of the strip that was cut out of `line`.
    pub(super) fn on_page(&self, line: &LineBox) -> BoundingBox {
        let corners = [
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        ];
        let (mut x, mut y) = ((f32::MAX, f32::MIN), (f32::MAX, f32::MIN));
        for (along, across) in corners {
            let place = line.place(along / self.width, across / self.height);
            x = (x.0.min(place.0), x.1.max(place.0));
            y = (y.0.min(place.1), y.1.max(place.1));
        }
        BoundingBox { x: x.0, y: y.0, w: x.1 - x.0, h: y.1 - y.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_where_their_ink_is() {
        let mut strip =
            Mat::new_rows_cols_with_default(48, 200, core::CV_8U, 230.0.into()).unwrap();
        for (x, width) in [(12, 60), (90, 70)] {
            let part = core::Rect::new(x, 10, width, 28);
            imgproc::rectangle(&mut strip, part, 20.0.into(), -1, imgproc::LINE_8, 0).unwrap();
        }
        let word = |columns| StripWord {
            text: "x".to_owned(),
            columns,
            confidence: 1.0,
            rivals: Vec::new(),
        };
        // Characters say about where a word is: their columns begin late and end early.
        let words = [word(2..7), word(13..19)];
        let found = StripInk::measure(&strip).unwrap().word_boxes(&words, 8.0);
        let line =
            LineBox { corners: [(100.0, 50.0), (300.0, 50.0), (300.0, 98.0), (100.0, 98.0)] };
        let boxes: Vec<BoundingBox> = found.iter().map(|area| area.on_page(&line)).collect();
        let expected = [(112.0, 60.0, 60.0, 28.0), (190.0, 60.0, 70.0, 28.0)];
        for (found, (x, y, w, h)) in boxes.iter().zip(expected) {
            let off = [found.x - x, found.y - y, found.w - w, found.h - h];
            assert!(off.iter().all(|by| by.abs() < 1.5), "{found:?}");
        }
    }

    /// Ends of the pieces of a strip of ink with gaps at these columns.
    fn piece_ends(gaps: &[Range<usize>], width: usize) -> Vec<usize> {
        let ink = (0..width).map(|at| u8::from(!gaps.iter().any(|gap| gap.contains(&at))));
        let strip = StripInk { ink: ink.collect(), width, height: 1 };
        let mut ends = Vec::new();
        for piece in strip.pieces(800, 8) {
            assert_eq!(piece.start, ends.last().copied().unwrap_or(0), "pieces cover the strip");
            ends.push(piece.end);
        }
        ends
    }

    #[test]
    fn a_strip_is_read_in_pieces_that_part_between_words() {
        assert_eq!(piece_ends(&[], 800), [800], "short");
        assert_eq!(piece_ends(&[500..510, 600..640], 1000), [616, 1000], "at the wider of gaps");
        assert_eq!(piece_ends(&[100..200, 900..910], 1000), [800, 1000], "no gap in its half");
        assert_eq!(piece_ends(&[700..720, 1300..1340], 1900), [704, 1320, 1900], "in each");
        assert_eq!(piece_ends(&[0..900, 900..1700], 1700), [600, 1200, 1700], "no ink");
    }

    #[test]
    fn ink_of_the_lines_above_and_below_is_none_of_a_words() {
        let mut strip = Mat::new_rows_cols_with_default(48, 80, core::CV_8U, 255.0.into()).unwrap();
        for (y, height) in [(0, 2), (12, 2), (17, 15), (45, 3)] {
            let part = core::Rect::new(10, y, 50, height);
            imgproc::rectangle(&mut strip, part, 0.0.into(), -1, imgproc::LINE_8, 0).unwrap();
        }
        let words = [StripWord {
            text: "x".to_owned(),
            columns: 1..8,
            confidence: 1.0,
            rivals: Vec::new(),
        }];
        let found = StripInk::measure(&strip).unwrap().word_boxes(&words, 8.0);
        // A dot, and the letter below it.
        assert_eq!((found[0].top, found[0].bottom), (12.0, 32.0));
    }

    #[test]
    fn rules_of_a_table_are_none_of_a_words_ink_level_or_aslant() {
        for rise in [0, 7] {
            let mut strip =
                Mat::new_rows_cols_with_default(48, 80, core::CV_8U, 255.0.into()).unwrap();
            let word = core::Rect::new(30, 17, 12, 18);
            imgproc::rectangle(&mut strip, word, 0.0.into(), -1, imgproc::LINE_8, 0).unwrap();
            let (from, to) = (core::Point::new(0, 12), core::Point::new(79, 12 - rise));
            imgproc::line(&mut strip, from, to, 0.0.into(), 2, imgproc::LINE_8, 0).unwrap();
            let columns = 4..5;
            let text = "1".to_owned();
            let words = [StripWord { text, columns, confidence: 1.0, rivals: Vec::new() }];
            let found = StripInk::measure(&strip).unwrap().word_boxes(&words, 8.0);
            let area = (found[0].left, found[0].top, found[0].right, found[0].bottom);
            assert_eq!(area, (30.0, 17.0, 42.0, 35.0), "rises by {rise}");
        }
    }

    #[test]
    fn a_word_without_ink_keeps_the_place_that_was_read() {
        let strip = Mat::new_rows_cols_with_default(48, 80, core::CV_8U, 255.0.into()).unwrap();
        let words = [StripWord {
            text: "x".to_owned(),
            columns: 2..4,
            confidence: 0.5,
            rivals: Vec::new(),
        }];
        let found = StripInk::measure(&strip).unwrap().word_boxes(&words, 8.0);
        let line = LineBox { corners: [(0.0, 0.0), (80.0, 0.0), (80.0, 48.0), (0.0, 48.0)] };
        let area = found[0].on_page(&line);
        assert!(area.w > 0.0 && area.h > 0.0 && area.right() <= 80.5, "{area:?}");
    }
}
