//! Glyphs to words, by their positions.
//!
//! PDF has no words: producers draw whole lines, single letters, or pieces in any order, with or
//! without glyphs for spaces. A word ends at a space, at a gap that is wide for the font and for
//! the letter spacing around it, and where the baseline or the direction changes. Letters that are drawn
//! again in the same place count once. Right-to-left scripts are left in drawing order.

use std::collections::HashMap;

use crate::pdf::glyph_collector::PIECES_PER_WORD;
use crate::pdf::page_glyph::PageGlyph;
use docmill_core::model::{TextAmount, TextWord};

/// A gap of this many ems between two letters ends a word; a space is about 0.25 em.
const WORD_GAP_EMS: f64 = 0.15;
/// Pieces of one word that were drawn apart may have this gap.
const MAX_PIECE_GAP_EMS: f64 = 0.05;
/// Letters may overlap by kerning and by wrong widths, but not jump back further than this.
const MAX_BACK_JUMP_EMS: f64 = 0.6;
/// Distance of two drawings of one letter, as bold print and shadows have it: in ems, in points, and as a
/// share of its width, since the same letter beside it is no copy.
const MAX_COPY_SHIFT_EMS: f64 = 0.2;
const MAX_COPY_SHIFT_POINTS: f64 = 4.0;
const MAX_COPY_SHIFT_WIDTH: f64 = 0.5;
/// Side of the squares in which copies are looked for, and letters of one that are compared.
const SQUARE_POINTS: f64 = 8.0;
const MAX_SQUARE_LETTERS: usize = 64;
/// Equal steps from letter to letter in a row that are no accident, and how equal.
const MIN_EQUAL_STEPS: usize = 4;
const STEP_TOLERANCE_EMS: f64 = 0.005;
/// Such steps of a page that are kept.
const MAX_STEPS: usize = 64;
/// Letters with one typed space between each that are words set wide.
const MIN_TYPED_APART: usize = 6;

/// A word in the frame of its direction: `u` along the baseline, `v` across it, downwards.
#[derive(Debug, Clone)]
pub(crate) struct WordPiece {
    /// The characters of the word.
    pub text: String,
    /// Direction of its baseline in whole degrees, clockwise, 0 for ordinary text.
    pub angle: i32,
    /// Where it starts on the baseline.
    pub start: f64,
    /// Where it ends on the baseline (`u`).
    pub end: f64,
    /// Position of its baseline across the direction of writing (`v`).
    pub baseline: f64,
    /// Size of the font, in the unit of the positions.
    pub size: f64,
    /// Follows a space: it does not continue a word.
    pub after_space: bool,
    /// Whether one of its glyphs does not show its text.
    pub unproven: bool,
    /// Whether viewers draw different glyphs for one of them.
    pub contested: bool,
    /// The word itself, if it was read by OCR and not made from glyphs.
    pub word: Option<TextWord>,
}

/// A glyph in the frame of its direction.
#[derive(Clone)]
struct AlignedGlyph<'a> {
    text: &'a str,
    angle: i32,
    start: f64,
    end: f64,
    baseline: f64,
    size: f64,
    blank: bool,
    unproven: bool,
    contested: bool,
}

/// Groups the visible glyphs into words, in drawing order.
pub(crate) fn group_words(glyphs: &[PageGlyph]) -> Vec<WordPiece> {
    group_glyphs(glyphs.iter().filter(|glyph| glyph.visible))
}

/// Amount of invisible text. A word drawn in pieces counts as one; lines are not formed.
pub(crate) fn measure_hidden(glyphs: &[PageGlyph]) -> TextAmount {
    let pieces = group_glyphs(glyphs.iter().filter(|glyph| !glyph.visible));
    let letters = pieces.iter().map(|piece| piece.text.len() as u64).sum();
    let words = (pieces.len() as u64).div_ceil(PIECES_PER_WORD);
    TextAmount { words, letters, lines: 0 }
}

fn group_glyphs<'a>(glyphs: impl Iterator<Item = &'a PageGlyph>) -> Vec<WordPiece> {
    let mut drawn = DrawnLetters::default();
    let set: Vec<AlignedGlyph<'_>> =
        glyphs.map(align_glyph).filter(|glyph| drawn.add_letter(glyph)).collect();
    let mut strips = Vec::new();
    let mut rest = set.as_slice();
    while !rest.is_empty() {
        let length = 1 + rest.windows(2).take_while(|pair| continues_strip(pair)).count();
        let (strip, after) = rest.split_at(length.min(rest.len()));
        strips.push(strip);
        rest = after;
    }
    let mut page_steps = Vec::new();
    for strip in &strips {
        add_equal_steps(strip, &mut page_steps);
    }
    let mut found = Vec::new();
    for strip in strips {
        words_of_strip(strip, &page_steps, &mut found);
    }
    found
}

/// The letters of a page by place.
#[derive(Default)]
struct DrawnLetters<'a> {
    squares: HashMap<(i32, i32, i32), Vec<AlignedGlyph<'a>>>,
}

impl<'a> DrawnLetters<'a> {
    /// Takes a letter in; false if it was drawn there before.
    fn add_letter(&mut self, glyph: &AlignedGlyph<'a>) -> bool {
        let reach = (MAX_COPY_SHIFT_EMS * glyph.size).min(MAX_COPY_SHIFT_POINTS);
        let [left, right] = [-reach, reach].map(|shift| square_of(glyph.start + shift));
        let [top, bottom] = [-reach, reach].map(|shift| square_of(glyph.baseline + shift));
        for square in (left..=right).flat_map(|u| (top..=bottom).map(move |v| (u, v))) {
            let near = self.squares.get(&(glyph.angle, square.0, square.1));
            if near.into_iter().flatten().any(|other| is_copy(other, glyph, reach)) {
                return false;
            }
        }
        let own = (glyph.angle, square_of(glyph.start), square_of(glyph.baseline));
        let own = self.squares.entry(own).or_default();
        if own.len() < MAX_SQUARE_LETTERS {
            own.push(glyph.clone());
        }
        true
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a place beyond the range is at its border")]
fn square_of(position: f64) -> i32 {
    (position / SQUARE_POINTS).floor() as i32
}

/// Whether the second of two glyphs is the first once more.
fn is_copy(one: &AlignedGlyph<'_>, next: &AlignedGlyph<'_>, reach: f64) -> bool {
    let width = (one.end - one.start).min(next.end - next.start);
    let along = reach.min(MAX_COPY_SHIFT_WIDTH * width);
    one.text == next.text
        && (next.start - one.start).abs() <= along
        && (next.baseline - one.baseline).abs() <= reach
        && one.size.max(next.size) < 1.1 * one.size.min(next.size)
}

/// A step from letter to letter that comes back in a row: the file states it.
struct EqualStep {
    size: f64,
    ems: f64,
    /// From start to start; else from end to start.
    of_pitch: bool,
}

impl EqualStep {
    /// Whether the second letter follows the first by this step.
    fn leads(&self, one: &AlignedGlyph<'_>, next: &AlignedGlyph<'_>) -> bool {
        (next.size - self.size).abs() < STEP_TOLERANCE_EMS * self.size
            && (step_between(one, next, self.of_pitch) - self.ems).abs() < STEP_TOLERANCE_EMS
    }
}

fn step_between(one: &AlignedGlyph<'_>, next: &AlignedGlyph<'_>, of_pitch: bool) -> f64 {
    (next.start - if of_pitch { one.start } else { one.end }) / next.size
}

/// Adds the steps over wide gaps that letters of a strip repeat.
fn add_equal_steps(strip: &[AlignedGlyph<'_>], found: &mut Vec<EqualStep>) {
    for of_pitch in [false, true] {
        let (mut count, mut last) = (0, f64::NAN);
        for pair in strip.windows(2) {
            let [one, next] = pair else { continue };
            let wide = step_between(one, next, false) > WORD_GAP_EMS;
            let step = step_between(one, next, of_pitch);
            let repeats = (step - last).abs() < STEP_TOLERANCE_EMS;
            let is_step = wide && !one.blank && !next.blank;
            count = usize::from(is_step) * (1 + count * usize::from(repeats));
            last = if is_step { step } else { f64::NAN };
            if count == MIN_EQUAL_STEPS && found.len() < MAX_STEPS {
                found.push(EqualStep { size: next.size, ems: step, of_pitch });
            }
        }
    }
}

/// Whether the letters of a strip stand one by one between typed spaces, and words have more of those
/// between them: `W i d e   t e x t`.
fn is_typed_apart(strip: &[AlignedGlyph<'_>]) -> bool {
    let (mut single, mut several) = (0, 0);
    for run in strip.chunk_by(|one, next| one.blank == next.blank) {
        match (run.first().is_some_and(|glyph| glyph.blank), run.len()) {
            (false, 1) => {}
            (true, 1) => single += 1,
            (true, _) => several += 1,
            (false, _) => return false,
        }
    }
    single >= MIN_TYPED_APART && several > 0
}

fn align_glyph(glyph: &PageGlyph) -> AlignedGlyph<'_> {
    // Nearly all text lies along the page, and angles cost as much as all else here.
    let lies = glyph.em.y == 0.0 && glyph.em.x > 0.0;
    let angle = if lies { 0 } else { snapped_angle(glyph.em.y.atan2(glyph.em.x).to_degrees()) };
    let (sin, cos) = if lies { (0.0, 1.0) } else { f64::from(angle).to_radians().sin_cos() };
    let start = glyph.origin.x * cos + glyph.origin.y * sin;
    let baseline = glyph.origin.y * cos - glyph.origin.x * sin;
    let width = glyph.advance.x * cos + glyph.advance.y * sin;
    let blank = glyph.text.chars().all(char::is_whitespace);
    AlignedGlyph {
        text: &glyph.text,
        angle,
        start,
        end: start + width.max(0.0),
        baseline,
        size: glyph.size,
        blank,
        unproven: glyph.unproven,
        contested: glyph.contested,
    }
}

/// Whole degrees; directions close to an axis are on it, so that a crooked label does not leave
/// its line.
#[expect(clippy::cast_possible_truncation, reason = "an angle is between -180 and 180")]
fn snapped_angle(degrees: f64) -> i32 {
    let axis = (degrees / 90.0).round() * 90.0;
    let snapped = if (degrees - axis).abs() <= 5.0 { axis } else { degrees.round() };
    (snapped as i32).rem_euclid(360)
}

/// Whether the second glyph continues the first: one strip of text, spaces included.
fn continues_strip(pair: &[AlignedGlyph<'_>]) -> bool {
    let [one, next] = pair else { return false };
    let size = one.size.min(next.size);
    let gap = next.start - one.end;
    one.angle == next.angle
        && (next.baseline - one.baseline).abs() < 0.25 * size
        && one.size.max(next.size) < 2.0 * size
        && gap > -MAX_BACK_JUMP_EMS * size
        && next.start > one.start - 0.1 * size
        && gap < 1.5 * size
}

/// Splits a strip; `page_steps` are those of the page, for strips that are too short to have their own.
fn words_of_strip(
    strip: &[AlignedGlyph<'_>],
    page_steps: &[EqualStep],
    found: &mut Vec<WordPiece>,
) {
    let (spacing, mut own_steps) = (letter_spacing(strip), Vec::new());
    add_equal_steps(strip, &mut own_steps);
    let is_short = strip.len() <= MIN_EQUAL_STEPS;
    let steps = if is_short { page_steps } else { own_steps.as_slice() };
    let typed_apart = is_typed_apart(strip);
    let mut word: Option<WordPiece> = None;
    let (mut after_space, mut spaces) = (false, 0);
    let mut before: Option<&AlignedGlyph<'_>> = None;
    for glyph in strip {
        if glyph.blank {
            spaces += 1;
            if spaces > usize::from(typed_apart) {
                found.extend(word.take());
                after_space = true;
            }
            continue;
        }
        let widest = (WORD_GAP_EMS + spacing) * glyph.size;
        let wide = word.as_ref().is_some_and(|word| glyph.start - word.end > widest);
        let stated = before.is_some_and(|one| steps.iter().any(|step| step.leads(one, glyph)));
        if wide && !stated && !typed_apart {
            found.extend(word.take());
        }
        (spaces, before) = (0, Some(glyph));
        match &mut word {
            Some(word) => {
                push_normalised(&mut word.text, glyph.text);
                word.end = word.end.max(glyph.end);
                word.size = word.size.max(glyph.size);
                word.unproven |= glyph.unproven;
                word.contested |= glyph.contested;
            }
            None => word = Some(first_letter(glyph, after_space)),
        }
        after_space = false;
    }
    found.extend(word);
}

fn first_letter(glyph: &AlignedGlyph<'_>, after_space: bool) -> WordPiece {
    let mut text = String::new();
    push_normalised(&mut text, glyph.text);
    WordPiece {
        text,
        angle: glyph.angle,
        start: glyph.start,
        end: glyph.end,
        baseline: glyph.baseline,
        size: glyph.size,
        after_space,
        unproven: glyph.unproven,
        contested: glyph.contested,
        word: None,
    }
}

/// The usual gap between letters in ems: above zero in letter-spaced text, where only a gap wider
/// than usual means a space.
fn letter_spacing(strip: &[AlignedGlyph<'_>]) -> f64 {
    let letters = strip.windows(2).filter_map(|pair| match pair {
        [one, next] if !one.blank && !next.blank => Some((next.start - one.end) / one.size),
        _ => None,
    });
    let mut gaps: Vec<f64> = letters.collect();
    if gaps.len() < 4 {
        return 0.0;
    }
    gaps.sort_by(f64::total_cmp);
    let median = gaps.get(gaps.len() / 2).copied().unwrap_or(0.0);
    if median > 0.05 { median } else { 0.0 }
}

/// Appends `text` as a reader would type it: ligatures spelt out, a drawn soft hyphen as the
/// hyphen it looks like, nothing that has no shape.
fn push_normalised(word: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\u{fb00}' => word.push_str("ff"),
            '\u{fb01}' => word.push_str("fi"),
            '\u{fb02}' => word.push_str("fl"),
            '\u{fb03}' => word.push_str("ffi"),
            '\u{fb04}' => word.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => word.push_str("st"),
            '\u{ad}' | '\u{2010}' | '\u{2011}' => word.push('-'),
            '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => {}
            c if c.is_whitespace() || c.is_control() => {}
            c => word.push(c),
        }
    }
}

/// Puts the words of one line in order, joins words that were drawn in pieces, and drops duplicates
/// in the same place (poor man's bold).
pub(crate) fn join_pieces(mut line: Vec<WordPiece>) -> Vec<WordPiece> {
    line.retain(|piece| !piece.text.is_empty());
    line.sort_by(|one, other| one.start.total_cmp(&other.start));
    let mut settled: Vec<WordPiece> = Vec::with_capacity(line.len());
    for piece in line {
        let size = piece.size;
        let twice = settled.iter().rev().take(8).any(|seen| {
            seen.text == piece.text
                && (seen.start - piece.start).abs() < 0.2 * size
                && (seen.end - piece.end).abs() < 0.3 * size
        });
        if twice {
            continue;
        }
        match settled.last_mut() {
            Some(last) if should_join(last, &piece) => {
                last.text.push_str(&piece.text);
                last.end = piece.end;
                last.unproven |= piece.unproven;
                last.contested |= piece.contested;
            }
            _ => settled.push(piece),
        }
    }
    settled
}

fn should_join(last: &WordPiece, next: &WordPiece) -> bool {
    let size = last.size.min(next.size);
    let gap = (next.start - last.end) / size;
    !next.after_space
        && (-0.2..MAX_PIECE_GAP_EMS).contains(&gap)
        && last.size.max(next.size) < 1.3 * size
        && (next.baseline - last.baseline).abs() < 0.1 * size
}

#[cfg(test)]
mod tests {
    use hayro::kurbo::{Point, Vec2};

    use super::*;

    fn texts(glyphs: &[PageGlyph]) -> Vec<String> {
        join_pieces(group_words(glyphs)).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn a_word_ends_where_a_reader_sees_its_end() {
        let place = |letters: &[(&str, f64)]| -> Vec<PageGlyph> {
            letters.iter().map(|(text, x)| PageGlyph::sample(text, *x, 100.0)).collect()
        };
        #[rustfmt::skip]
        let table: [(&str, Vec<PageGlyph>, &[&str]); 18] = [
            ("letters that touch",       place(&[("a", 0.0), ("b", 5.0), ("c", 10.0)]),              &["abc"]),
            ("kerned letters",           place(&[("a", 0.0), ("b", 4.2), ("c", 9.9)]),               &["abc"]),
            ("a drawn space",            place(&[("a", 0.0), (" ", 5.0), ("b", 7.5)]),               &["a", "b"]),
            ("a gap without a space",    place(&[("a", 0.0), ("b", 7.5)]),                           &["a", "b"]),
            ("a narrow drawn space",     place(&[("a", 0.0), (" ", 5.0), ("b", 5.5)]),               &["a", "b"]),
            ("spaced letters",           place(&[("a", 0.0), ("b", 7.0), ("c", 14.0), ("d", 21.0), ("e", 28.0)]), &["abcde"]),
            ("pieces drawn out of order", place(&[("c", 10.0), ("a", 0.0), ("b", 5.0)]),             &["abc"]),
            ("bold by drawing twice",    place(&[("a", 0.0), ("b", 5.0), ("a", 0.3), ("b", 5.3)]),   &["ab"]),
            ("a ligature",               place(&[("\u{fb01}", 0.0), ("n", 5.0)]),                    &["fin"]),
            ("each letter twice",        place(&[("a", 0.0), ("a", 0.4), ("b", 5.0), ("b", 5.4)]),   &["ab"]),
            ("three times",              place(&[("3", 0.0), ("3", 0.4), ("3", 0.8)]),               &["3"]),
            ("a space twice",            place(&[("a", 0.0), (" ", 5.0), (" ", 5.0), ("b", 7.5)]),   &["a", "b"]),
            ("the same letter beside it", place(&[("3", 0.0), ("3", 5.0)]),                          &["33"]),
            ("a narrow step beside it",  place(&[("3", 0.0), ("3", 2.6)]),                           &["33"]),
            ("spaced behind close ones", place(&[("a", 0.0), ("b", 5.0), ("c", 10.0), ("d", 15.0), ("e", 20.0), ("f", 25.0), ("g", 30.0),
                ("1", 41.0), ("2", 50.0), ("3", 59.0), ("4", 68.0), ("5", 77.0)]),                   &["abcdefg", "12345"]),
            ("a short one spaced alike", place(&[("1", 0.0), ("2", 9.0), ("3", 18.0), ("4", 27.0), ("5", 36.0), ("6", 145.0), ("7", 154.0)]), &["12345", "67"]),
            ("a short one apart",        place(&[("1", 0.0), ("2", 9.0), ("3", 18.0), ("4", 27.0), ("5", 36.0), ("6", 145.0), ("7", 153.0)]), &["12345", "6", "7"]),
            ("typed spaces",             place(&[("a", 0.0), (" ", 5.0), ("b", 7.5), (" ", 12.5), ("c", 15.0), (" ", 20.0), ("d", 22.5), (" ", 27.5),
                (" ", 30.0), (" ", 32.5), ("e", 35.0), (" ", 40.0), ("f", 42.5), (" ", 47.5), ("g", 50.0), (" ", 55.0), ("h", 57.5)]), &["abcd", "efgh"]),
        ];
        for (name, glyphs, expected) in table {
            assert_eq!(texts(&glyphs), expected, "{name}");
        }
    }

    #[test]
    fn letters_at_equal_distances_are_one_word_however_wide_they_are() {
        let letter = |(text, at): (&str, u8), width: f64| PageGlyph {
            advance: Vec2::new(width, 0.0),
            ..PageGlyph::sample(text, f64::from(at) * 13.0, 100.0)
        };
        let name = ["W", "i", "n", "d", "m", "l"].into_iter().zip(0..);
        let widths = [9.4, 2.2, 5.5, 5.5, 8.3, 2.2];
        let glyphs: Vec<PageGlyph> =
            name.zip(widths).map(|(drawn, width)| letter(drawn, width)).collect();
        assert_eq!(texts(&glyphs), ["Windml"]);
    }

    #[test]
    fn hidden_glyphs_are_no_text() {
        let mut hidden = PageGlyph::sample("x", 5.0, 100.0);
        hidden.visible = false;
        assert_eq!(texts(&[PageGlyph::sample("a", 0.0, 100.0), hidden]), ["a"]);
    }

    #[test]
    fn invisible_text_is_measured_and_visible_text_is_not() {
        let hidden =
            |text: &str, x: f64| PageGlyph { visible: false, ..PageGlyph::sample(text, x, 100.0) };
        let mut glyphs = vec![PageGlyph::sample("shown", 0.0, 50.0)];
        for word in 0..8 {
            let x = f64::from(word) * 15.0;
            glyphs.extend([hidden("ab", x), hidden("c", x + 5.0), hidden(" ", x + 10.0)]);
        }
        let expected = TextAmount { words: 2, letters: 8 * 3, lines: 0 };
        assert_eq!(measure_hidden(&glyphs), expected);
    }

    #[test]
    fn text_that_runs_upwards_makes_words_as_well() {
        let up = |text: &str, y: f64| PageGlyph {
            origin: Point::new(50.0, y),
            advance: Vec2::new(0.0, -5.0),
            em: Vec2::new(0.0, -10.0),
            ..PageGlyph::sample(text, 0.0, 0.0)
        };
        let found = group_words(&[up("a", 100.0), up("b", 95.0), up(" ", 90.0), up("c", 87.5)]);
        assert_eq!(found.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), ["ab", "c"]);
        assert_eq!(found[0].angle, 270);
    }
}
