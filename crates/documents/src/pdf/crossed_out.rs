//! Letters that a line is drawn through. Crossed-out text prints nothing: a person takes the price
//! beside it.
//!
//! Lines are found as strokes, thin boxes, and dashes among the letters. Not covered: lines in
//! pictures, and scribbles of curves only.

use hayro::kurbo::{Affine, BezPath, PathEl, Point, Rect, Vec2};

use crate::pdf::page_glyph::PageGlyph;

/// Lines that are kept; with more, all digits of the page are doubtful.
const MAX_LINES: usize = 20_000;
/// A shorter line crosses out no letter, in points.
const MIN_LINE_POINTS: f64 = 2.0;
/// A box of less than this is a line, in points.
const MAX_LINE_POINTS: f64 = 3.0;
/// Between these heights over the baseline, in ems, a line goes through a letter.
const CROSSED_EMS: std::ops::RangeInclusive<f64> = 0.12..=0.55;
/// Rise of a line by its length; a steeper one is a stroke of a letter.
const MAX_RISE: f64 = 1.0;
/// A letter is crossed out if lines go through this share of its width.
const MIN_CROSSED_SHARE: f64 = 0.5;
/// A line through this share of a letter's height may change it.
const MIN_TOUCHED_SHARE: f64 = 0.2;
/// Comparisons of lines with letters on a page.
const MAX_COMPARISONS: usize = 4_000_000;

/// Lines on a page that may cross out letters.
#[derive(Debug, Default)]
pub(crate) struct PageLines {
    lines: Vec<[Point; 2]>,
    is_full: bool,
}

impl PageLines {
    /// Keeps the straight parts of a stroked path, the chords of its curves, within its clip.
    pub(crate) fn note_path(&mut self, path: &BezPath, transform: Affine, clip: Rect) {
        let (mut first, mut last) = (Point::ORIGIN, Point::ORIGIN);
        for element in path.elements() {
            let next = match *element {
                PathEl::MoveTo(to) => {
                    (first, last) = (to, to);
                    continue;
                }
                PathEl::LineTo(to) | PathEl::QuadTo(_, to) | PathEl::CurveTo(_, _, to) => to,
                PathEl::ClosePath => first,
            };
            self.note_line([transform * last, transform * next], clip);
            last = next;
        }
    }

    /// Keeps a thin box.
    pub(crate) fn note_box(&mut self, area: Rect, clip: Rect) {
        let (centre, is_wide) = (area.center(), area.width() >= area.height());
        if area.width().min(area.height()) > MAX_LINE_POINTS {
            return;
        }
        let ends = match is_wide {
            true => [Point::new(area.x0, centre.y), Point::new(area.x1, centre.y)],
            false => [Point::new(centre.x, area.y0), Point::new(centre.x, area.y1)],
        };
        self.note_line(ends, clip);
    }

    fn note_line(&mut self, line: [Point; 2], clip: Rect) {
        let [from, to] = line;
        let around = Rect::from_points(from, to).inflate(1.0, 1.0);
        let is_shown = around.is_finite() && around.overlaps(clip);
        if !is_shown || (to - from).length() < MIN_LINE_POINTS {
            return;
        }
        self.is_full |= self.lines.len() >= MAX_LINES;
        if !self.is_full {
            self.lines.push(line);
        }
    }

    /// Hides the letters that are crossed out. Where there are too many lines to look at, digits are
    /// not proven.
    pub(crate) fn hide_crossed_out(mut self, glyphs: &mut [PageGlyph]) {
        self.add_dashes(glyphs);
        if self.lines.is_empty() {
            return;
        }
        if self.is_full {
            let digits = glyphs.iter_mut().filter(|glyph| glyph.text.contains(char::is_numeric));
            digits.for_each(|glyph| glyph.unproven = true);
            return;
        }
        let mut order: Vec<usize> = (0..glyphs.len()).collect();
        order.retain(|at| glyphs.get(*at).is_some_and(is_crossable));
        order.sort_by(|one, other| height_of(glyphs, *one).total_cmp(&height_of(glyphs, *other)));
        let tallest = order.iter().filter_map(|at| glyphs.get(*at)).map(|glyph| glyph.size);
        let tallest = tallest.fold(0.0, f64::max);
        let (mut crossed, mut comparisons) = (vec![0.0; glyphs.len()], 0);
        for [from, to] in &self.lines {
            let (top, bottom) = (from.y.min(to.y) - tallest, from.y.max(to.y) + tallest);
            let start = order.partition_point(|at| height_of(glyphs, *at) < top);
            let near = order.iter().skip(start);
            for at in near.take_while(|at| height_of(glyphs, **at) <= bottom) {
                comparisons += 1;
                if let Some((glyph, share)) = glyphs.get(*at).zip(crossed.get_mut(*at)) {
                    *share += crossed_share(glyph, [*from, *to]);
                }
            }
            if comparisons > MAX_COMPARISONS {
                break;
            }
        }
        hide_words(glyphs, &crossed);
    }

    /// Dashes that are letters may stand on others.
    fn add_dashes(&mut self, glyphs: &[PageGlyph]) {
        for glyph in glyphs.iter().filter(|glyph| glyph.visible) {
            let height = match glyph.text.as_str() {
                "-" | "\u{2013}" | "\u{2014}" | "\u{2212}" | "\u{336}" | "~" | "=" => 0.28,
                "_" => -0.12,
                _ => continue,
            };
            let up = Vec2::new(glyph.em.y, -glyph.em.x).normalize() * (glyph.size * height);
            let from = glyph.origin + up;
            let around = Rect::from_points(from, from + glyph.advance).inflate(50.0, 50.0);
            self.note_line([from, from + glyph.advance], around);
        }
    }
}

fn height_of(glyphs: &[PageGlyph], at: usize) -> f64 {
    glyphs.get(at).map_or(0.0, |glyph| glyph.origin.y)
}

fn is_crossable(glyph: &PageGlyph) -> bool {
    glyph.visible && glyph.text.contains(char::is_alphanumeric) && glyph.advance.length() > 0.0
}

/// The share of a letter's width that a line goes through.
fn crossed_share(glyph: &PageGlyph, line: [Point; 2]) -> f64 {
    let along = glyph.em.normalize();
    let up = Vec2::new(along.y, -along.x);
    let [from, to] = line
        .map(|point| (point - glyph.origin) / glyph.size)
        .map(|offset| Point::new(offset.dot(along), offset.dot(up)));
    let (left, right) = if from.x <= to.x { (from, to) } else { (to, from) };
    let advance = glyph.advance.length() / glyph.size;
    let (start, end) = (left.x.max(0.0), right.x.min(advance));
    let run = right.x - left.x;
    if end <= start || (right.y - left.y).abs() > run * MAX_RISE {
        return 0.0;
    }
    let middle = left.y + (right.y - left.y) * ((start + end) / 2.0 - left.x) / run;
    if CROSSED_EMS.contains(&middle) { (end - start) / advance } else { 0.0 }
}

/// Hides each word with most letters crossed out. A line through fewer letters may turn them into
/// others: a crossed zero looks like an 8.
fn hide_words(glyphs: &mut [PageGlyph], crossed: &[f64]) {
    let mut start = 0;
    while start < glyphs.len() {
        let rest = glyphs.get(start..).unwrap_or_default();
        let length = 1 + rest.windows(2).take_while(|pair| is_one_word(pair)).count();
        let end = (start + length).min(glyphs.len());
        let word = glyphs.get(start..end).unwrap_or_default();
        let shares = crossed.get(start..end).unwrap_or_default();
        let letters = word.iter().zip(shares).filter(|(glyph, _)| is_crossable(glyph));
        let (all, struck) = letters.fold((0, 0), |(all, struck), (_, share)| {
            (all + 1, struck + usize::from(*share >= MIN_CROSSED_SHARE))
        });
        if struck * 2 > all {
            let word = glyphs.get_mut(start..end).unwrap_or_default();
            word.iter_mut().for_each(|glyph| glyph.visible = false);
        } else {
            let touched = glyphs.iter_mut().zip(crossed).take(end).skip(start);
            let touched = touched.filter(|(_, share)| **share >= MIN_TOUCHED_SHARE);
            touched.for_each(|(glyph, _)| glyph.unproven = true);
        }
        start = end;
    }
}

/// Whether the second glyph goes on with the word of the first.
fn is_one_word(pair: &[PageGlyph]) -> bool {
    matches!(pair, [one, next] if one.is_joined_by(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters of ten points on one line from (50, 100) on, five points each.
    fn word(text: &str) -> Vec<PageGlyph> {
        let letters = text.chars().zip(0_u32..);
        letters
            .map(|(c, at)| PageGlyph::sample(&c.to_string(), 50.0 + 5.0 * f64::from(at), 100.0))
            .collect()
    }

    fn left_of(mut glyphs: Vec<PageGlyph>, lines: &[[f64; 4]]) -> String {
        let mut drawn = PageLines::default();
        for [x0, y0, x1, y1] in lines {
            let mut path = BezPath::new();
            path.move_to((*x0, *y0));
            path.line_to((*x1, *y1));
            drawn.note_path(&path, Affine::IDENTITY, Rect::new(0.0, 0.0, 595.0, 842.0));
        }
        drawn.hide_crossed_out(&mut glyphs);
        let seen = glyphs.iter().filter(|glyph| glyph.visible);
        seen.map(|glyph| glyph.text.as_str()).collect()
    }

    #[test]
    fn a_word_is_crossed_out_by_a_line_through_most_of_its_letters() {
        // Baseline at 100, digits from 93 on.
        #[rustfmt::skip]
        let table: [(&str, &[[f64; 4]], &str); 10] = [
            ("through all",          &[[49.0, 97.0, 86.0, 97.0]],                            "7"),
            ("two lines",            &[[49.0, 96.0, 86.0, 96.0], [49.0, 98.0, 86.0, 98.0]],  "7"),
            ("aslant",               &[[49.0, 100.0, 86.0, 93.0]],                           "7"),
            ("a cross",              &[[49.0, 100.0, 86.0, 93.0], [49.0, 93.0, 86.0, 100.0]], "7"),
            ("an underline",         &[[49.0, 101.0, 86.0, 101.0]],                          "1,320.0 7"),
            ("a rule above",         &[[49.0, 91.0, 86.0, 91.0]],                            "1,320.0 7"),
            ("through a few",        &[[49.0, 97.0, 60.0, 97.0]],                            "1,320.0 7"),
            ("a rule between columns", &[[62.0, 80.0, 62.0, 120.0]],                         "1,320.0 7"),
            ("a slash",              &[[50.0, 101.0, 55.0, 92.0]],                           "1,320.0 7"),
            ("none",                 &[],                                                    "1,320.0 7"),
        ];
        for (name, lines, expected) in table {
            assert_eq!(left_of(word("1,320.0 7"), lines).trim(), expected, "{name}");
        }
    }

    #[test]
    fn dashes_over_digits_cross_them_out_and_dashes_within_a_number_do_not() {
        let mut over = word("1320");
        over.extend(word("----"));
        assert_eq!(left_of(over, &[]), "----");
        assert_eq!(left_of(word("HF-20-41"), &[]), "HF-20-41");
    }

    #[test]
    fn on_a_page_of_too_many_lines_no_digit_is_proven() {
        let mut drawn = PageLines::default();
        let clip = Rect::new(0.0, 0.0, 595.0, 842.0);
        for _ in 0..=MAX_LINES {
            drawn.note_box(Rect::new(300.0, 300.0, 320.0, 301.0), clip);
        }
        let mut glyphs = word("A1");
        drawn.hide_crossed_out(&mut glyphs);
        assert_eq!(glyphs.iter().map(|glyph| glyph.unproven).collect::<Vec<_>>(), [false, true]);
    }
}
