//! Words to lines in reading order.
//!
//! A line is everything on one baseline across the page, however wide the gaps: a label and its
//! value at the far end belong together, as do the cells of a table's row. Exceptions are two
//! columns side by side whose lines do not share baselines, or that are full of running text: their
//! left column is read before the right one. A table between such columns stays whole. Text in
//! other directions follows after the main text.

mod columns;
mod row;

use std::collections::BTreeMap;

use columns::order_rows;
use row::WordRow;

use crate::pdf::words::{WordPiece, join_pieces};
use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Orders the words of a page.
pub(crate) fn order_lines(pieces: Vec<WordPiece>) -> Vec<TextLine> {
    let mut directions: BTreeMap<i32, Vec<WordPiece>> = BTreeMap::new();
    for piece in pieces {
        directions.entry(piece.angle).or_default().push(piece);
    }
    let mut directions: Vec<(i32, Vec<WordPiece>)> = directions.into_iter().collect();
    directions.sort_by_key(|(_, pieces)| std::cmp::Reverse(pieces.len()));
    let mut ordered = Vec::new();
    for (angle, pieces) in directions {
        let mut rows = Vec::new();
        order_rows(group_rows(pieces), 0, &mut rows);
        ordered.extend(rows.into_iter().flat_map(|row| lines_from_row(angle, row)));
    }
    ordered
}

/// Joins lines that OCR found in separate blocks where they share a row: labels and values of a
/// form, columns of a table. Orders them as those of a text layer.
pub fn join_rows(lines: Vec<TextLine>) -> Vec<TextLine> {
    let mut waiting: Vec<TextLine> =
        lines.into_iter().filter(|line| !line.words.is_empty()).collect();
    if waiting.len() > MAX_JOINED_LINES {
        return waiting;
    }
    waiting.sort_by(|one, other| first_x(one).total_cmp(&first_x(other)));
    let mut chains: Vec<TextLine> = Vec::new();
    for line in waiting {
        let before = chains.iter_mut().filter_map(|chain| Some((row_gap(chain, &line)?, chain)));
        match before.min_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((_, chain)) => chain.words.extend(line.words),
            None => chains.push(line),
        }
    }
    let mut found: Vec<WordRow> = chains.into_iter().map(row_of_words).collect();
    found.sort_by(|one, other| one.baseline.total_cmp(&other.baseline));
    let mut ordered = Vec::new();
    order_rows(found, 0, &mut ordered);
    let mut lines = Vec::new();
    for row in ordered {
        let words = row.pieces.into_iter().filter_map(|piece| piece.word).collect();
        lines.push(TextLine { words });
    }
    lines
}

/// Pages with more lines are noise, and not worth comparing each with each.
const MAX_JOINED_LINES: usize = 2000;

fn first_x(line: &TextLine) -> f32 {
    line.words.first().map_or(0.0, |word| word.bounding_box.x)
}

/// How far `next` begins right of where `line` ends, if it is in the same row.
fn row_gap(line: &TextLine, next: &TextLine) -> Option<f32> {
    let last = line.words.last()?.bounding_box;
    let first = next.words.first()?.bounding_box;
    let shared = last.bottom().min(first.bottom()) - last.y.max(first.y);
    let (low, high) = (last.h.min(first.h), last.h.max(first.h));
    let gap = first.x - last.right();
    (shared > 0.5 * low && high < 2.5 * low && gap > -0.3 * low).then_some(gap)
}

fn row_of_words(line: TextLine) -> WordRow {
    let mut heights: Vec<f32> = line.words.iter().map(|word| word.bounding_box.h).collect();
    heights.sort_by(f32::total_cmp);
    let size = f64::from(heights.get(heights.len() / 2).copied().unwrap_or(1.0));
    let baseline = f64::from(line.words.first().map_or(0.0, |word| word.bounding_box.bottom()));
    let pieces = line.words.into_iter().map(|word| WordPiece {
        text: String::new(),
        angle: 0,
        start: f64::from(word.bounding_box.x),
        end: f64::from(word.bounding_box.right()),
        baseline,
        size,
        after_space: true,
        unproven: false,
        contested: false,
        word: Some(word),
    });
    WordRow { baseline, size, pieces: pieces.collect() }
}

/// Groups words by baseline, top to bottom.
fn group_rows(mut pieces: Vec<WordPiece>) -> Vec<WordRow> {
    pieces.sort_by(|one, other| one.baseline.total_cmp(&other.baseline));
    let mut rows: Vec<WordRow> = Vec::new();
    for piece in pieces {
        // Baselines only grow, so a row that fits is among the last few.
        let row =
            rows.iter_mut().rev().take(4).find(|row| {
                (piece.baseline - row.baseline).abs() <= 0.3 * piece.size.min(row.size)
            });
        match row {
            Some(row) => {
                row.size = row.size.max(piece.size);
                row.pieces.push(piece);
            }
            None => rows.push(WordRow::from_piece(piece)),
        }
    }
    rows
}

/// Words of a line; longer ones are split, to bound the comparisons within a line.
const MAX_LINE_WORDS: usize = 1_000;

fn lines_from_row(angle: i32, row: WordRow) -> Vec<TextLine> {
    let words: Vec<TextWord> =
        join_pieces(row.pieces).into_iter().map(|piece| word_from_piece(angle, piece)).collect();
    if words.len() <= MAX_LINE_WORDS {
        return if words.is_empty() { Vec::new() } else { vec![TextLine { words }] };
    }
    words.chunks(MAX_LINE_WORDS).map(|words| TextLine { words: words.to_vec() }).collect()
}

/// Turns a word back into the frame of the page. Ascent and descent are taken as 0.8 and 0.2 of
/// the size, which is near enough for every font.
fn word_from_piece(angle: i32, piece: WordPiece) -> TextWord {
    let (sin, cos) = f64::from(angle).to_radians().sin_cos();
    let (top, bottom) = (piece.baseline - 0.8 * piece.size, piece.baseline + 0.2 * piece.size);
    let corners =
        [(piece.start, top), (piece.end, top), (piece.start, bottom), (piece.end, bottom)];
    let page = corners.map(|(u, v)| (u * cos - v * sin, u * sin + v * cos));
    let (mut left, mut right) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut high, mut low) = (f64::INFINITY, f64::NEG_INFINITY);
    for (x, y) in page {
        (left, right) = (left.min(x), right.max(x));
        (high, low) = (high.min(y), low.max(y));
    }
    TextWord {
        text: piece.text.into(),
        bounding_box: BoundingBox {
            x: round_to_tenth(left),
            y: round_to_tenth(high),
            w: round_to_tenth(right - left),
            h: round_to_tenth(low - high),
        },
        confidence: if piece.contested { TextWord::CONTRADICTED } else { 1.0 },
        unwitnessed: piece.unproven,
    }
}

/// Rounded to a tenth of a point, which keeps stored transcripts small.
#[expect(clippy::cast_possible_truncation, reason = "coordinates on a page")]
fn round_to_tenth(points: f64) -> f32 {
    ((points * 10.0).round() / 10.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, x: f64, y: f64) -> WordPiece {
        let end = x + 5.0 * text.len() as f64;
        let (start, baseline) = (x, y);
        WordPiece {
            text: text.to_owned(),
            angle: 0,
            start,
            end,
            baseline,
            size: 10.0,
            after_space: true,
            unproven: false,
            contested: false,
            word: None,
        }
    }

    fn read(pieces: &[(&str, f64, f64)]) -> Vec<String> {
        let pieces = pieces.iter().map(|(text, x, y)| piece(text, *x, *y)).collect();
        order_lines(pieces).iter().map(TextLine::text).collect()
    }

    #[test]
    fn a_label_and_its_value_at_the_far_end_are_one_line() {
        let page = [("Total", 50.0, 500.0), ("120.00", 500.0, 501.0), ("Net", 50.0, 480.0)];
        assert_eq!(read(&page), ["Net", "Total 120.00"]);
    }

    #[test]
    fn the_rows_of_a_table_stay_together() {
        let page = [
            ("Pos", 50.0, 100.0),
            ("Amount", 400.0, 100.0),
            ("1", 50.0, 112.0),
            ("10.00", 400.0, 112.0),
            ("2", 50.0, 124.0),
            ("20.00", 400.0, 124.0),
        ];
        assert_eq!(read(&page), ["Pos Amount", "1 10.00", "2 20.00"]);
    }

    #[test]
    fn columns_on_different_baselines_are_read_one_after_the_other() {
        let page = [
            ("left-1", 50.0, 100.0),
            ("left-2", 50.0, 112.0),
            ("left-3", 50.0, 124.0),
            ("right-1", 300.0, 105.0),
            ("right-2", 300.0, 117.0),
            ("right-3", 300.0, 129.0),
        ];
        assert_eq!(read(&page), ["left-1", "left-2", "left-3", "right-1", "right-2", "right-3"]);
    }

    #[test]
    fn a_table_below_a_letterhead_keeps_its_rows() {
        let page = [
            ("customer", 50.0, 100.0),
            ("street", 50.0, 112.0),
            ("city", 50.0, 124.0),
            ("sender", 400.0, 93.0),
            ("phone", 400.0, 106.0),
            ("fax", 400.0, 118.0),
            ("mail", 400.0, 130.0),
            ("Item", 50.0, 200.0),
            ("Amount", 400.0, 200.0),
            ("paper", 50.0, 214.0),
            ("10.00", 400.0, 214.0),
            ("white", 50.0, 226.0),
            ("pens", 50.0, 240.0),
            ("20.00", 400.0, 240.0),
            ("thanks", 50.0, 300.0),
            ("bank", 400.0, 306.0),
            ("iban", 400.0, 318.0),
        ];
        #[rustfmt::skip]
        let expected = [
            "customer", "street", "city", "sender", "phone", "fax", "mail",
            "Item Amount", "paper 10.00", "white", "pens 20.00",
            "thanks", "bank", "iban",
        ];
        assert_eq!(read(&page), expected);
    }

    fn seen(text: &str, x: f32, y: f32) -> TextLine {
        let words = text.split(' ').scan(x, |x, word| {
            let w = 8.0 * f32::from(u16::try_from(word.len()).unwrap());
            let bounding_box = BoundingBox { x: *x, y, w, h: 12.0 };
            *x += w + 6.0;
            Some(TextWord { text: word.into(), bounding_box, confidence: 0.9, unwitnessed: false })
        });
        TextLine { words: words.collect() }
    }

    #[test]
    fn labels_and_values_that_an_ocr_saw_in_two_blocks_meet_again() {
        let blocks = vec![
            seen("Number:", 50.0, 100.0),
            seen("Date of issue:", 50.0, 120.0),
            seen("4711", 300.0, 103.0),
            seen("13.06.2026", 300.0, 123.0),
            seen("Goods", 50.0, 160.0),
        ];
        let found: Vec<String> = join_rows(blocks).iter().map(TextLine::text).collect();
        assert_eq!(found, ["Number: 4711", "Date of issue: 13.06.2026", "Goods"]);
    }

    #[test]
    fn columns_of_running_text_stay_apart_after_ocr() {
        let line = |x, n: u16| seen("some words that fill it", x, 100.0 + 20.0 * f32::from(n));
        let blocks: Vec<TextLine> =
            (0..8).map(|n| line(50.0, n)).chain((0..8).map(|n| line(400.0, n))).collect();
        let found = join_rows(blocks);
        assert_eq!(found.len(), 16);
        assert!(found[..8].iter().all(|line| line.words[0].bounding_box.x < 300.0));
    }

    #[test]
    fn sideways_text_comes_last_with_its_box_on_the_page() {
        let side = WordPiece { angle: 270, ..piece("side", -200.0, 30.0) };
        let found = order_lines(vec![side, piece("a", 50.0, 100.0), piece("b", 50.0, 120.0)]);
        let last = found.last().unwrap();
        assert_eq!(last.text(), "side");
        let place = last.words[0].bounding_box;
        assert_eq!((place.x, place.y, place.w, place.h), (22.0, 180.0, 10.0, 20.0));
    }
}
