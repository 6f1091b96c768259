//! Glyphs to words, by their positions.
//!
//! PDF has no words: producers draw whole lines, single letters, or pieces in any order, with or
//! without glyphs for spaces. A word ends at a space, at a gap that is wide for the font and for
//! the letter spacing around it, and where the baseline or the direction changes. Right-to-left
//! scripts are left in drawing order.

use crate::pdf::glyph_collector::PIECES_PER_WORD;
use crate::pdf::page_glyph::PageGlyph;
use docmill_core::model::{TextAmount, TextWord};

/// A gap of this many ems between two letters ends a word; a space is about 0.25 em.
const WORD_GAP_EMS: f64 = 0.15;
/// Pieces of one word that were drawn apart may have this gap.
const MAX_PIECE_GAP_EMS: f64 = 0.05;
/// Letters may overlap by kerning and by wrong widths, but not jump back further than this.
const MAX_BACK_JUMP_EMS: f64 = 0.6;

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
    /// The word itself, if it was read by OCR and not made from glyphs.
    pub word: Option<TextWord>,
}

/// A glyph in the frame of its direction.
struct AlignedGlyph<'a> {
    text: &'a str,
    angle: i32,
    start: f64,
    end: f64,
    baseline: f64,
    size: f64,
    blank: bool,
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
    let set: Vec<AlignedGlyph<'_>> = glyphs.map(align_glyph).collect();
    let mut found = Vec::new();
    let mut rest = set.as_slice();
    while !rest.is_empty() {
        let length = 1 + rest.windows(2).take_while(|pair| continues_strip(pair)).count();
        let (strip, after) = rest.split_at(length.min(rest.len()));
        words_of_strip(strip, &mut found);
        rest = after;
    }
    found
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

fn words_of_strip(strip: &[AlignedGlyph<'_>], found: &mut Vec<WordPiece>) {
    let widest = WORD_GAP_EMS + letter_spacing(strip);
    let mut word: Option<WordPiece> = None;
    let mut after_space = false;
    for glyph in strip {
        if glyph.blank {
            found.extend(word.take());
            after_space = true;
            continue;
        }
        let apart = word.as_ref().is_some_and(|word| glyph.start - word.end > widest * glyph.size);
        if apart {
            found.extend(word.take());
        }
        match &mut word {
            Some(word) => {
                push_normalised(&mut word.text, glyph.text);
                word.end = word.end.max(glyph.end);
                word.size = word.size.max(glyph.size);
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
        let table: [(&str, Vec<PageGlyph>, &[&str]); 9] = [
            ("letters that touch",       place(&[("a", 0.0), ("b", 5.0), ("c", 10.0)]),              &["abc"]),
            ("kerned letters",           place(&[("a", 0.0), ("b", 4.2), ("c", 9.9)]),               &["abc"]),
            ("a drawn space",            place(&[("a", 0.0), (" ", 5.0), ("b", 7.5)]),               &["a", "b"]),
            ("a gap without a space",    place(&[("a", 0.0), ("b", 7.5)]),                           &["a", "b"]),
            ("a narrow drawn space",     place(&[("a", 0.0), (" ", 5.0), ("b", 5.5)]),               &["a", "b"]),
            ("spaced letters",           place(&[("a", 0.0), ("b", 7.0), ("c", 14.0), ("d", 21.0), ("e", 28.0)]), &["abcde"]),
            ("pieces drawn out of order", place(&[("c", 10.0), ("a", 0.0), ("b", 5.0)]),             &["abc"]),
            ("bold by drawing twice",    place(&[("a", 0.0), ("b", 5.0), ("a", 0.3), ("b", 5.3)]),   &["ab"]),
            ("a ligature",               place(&[("\u{fb01}", 0.0), ("n", 5.0)]),                    &["fin"]),
        ];
        for (name, glyphs, expected) in table {
            assert_eq!(texts(&glyphs), expected, "{name}");
        }
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
