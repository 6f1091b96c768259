//! Numbers with digits or signs smaller, raised, rotated or paler than their neighbours; and
//! numbers in illegibly small print.
//!
//! Producers print a number evenly. In an uneven one a person may overlook a digit, or take it for
//! a note. Such numbers are read once more from the rendered page; with larger differences they
//! stay marked. Not covered: numbers that are pale as a whole.

use hayro::kurbo::Vec2;

use crate::pdf::glyph_cells::GlyphCells;
use crate::pdf::page_glyph::PageGlyph;

/// The gap between neighbours in a number, in ems of the larger one; a space is wider.
const MAX_GAP_EMS: f64 = 0.22;
/// Overlap of neighbours, in ems; with more they are printed over each other.
const MAX_OVERLAP_EMS: f64 = 0.3;
/// Vertical offset within one line of text, in ems of the larger glyph.
const MAX_RAISE_EMS: f64 = 0.75;
/// Tolerances within an even number: ratio of size, of stretch, ...
const EVEN_SIZE: f64 = 1.06;
const EVEN_STRETCH: f64 = 1.5;
/// ... baseline in ems, sine of the rotation, grey level; ...
const EVEN_RAISE_EMS: f64 = 0.04;
const EVEN_TURN: f64 = 0.02;
const EVEN_GREY: u8 = 48;
/// ... and within a number that a second reading may clear.
const CLEARED_SIZE: f64 = 1.25;
const CLEARED_RAISE_EMS: f64 = 0.12;
const CLEARED_TURN: f64 = 0.07;
/// Minimum legible size of digits, as a share of the page's longer side: 4.2 points on A4.
const MIN_PRINT_SHARE: f64 = 1.0 / 200.0;
/// Grey levels of pale ink, which may be overlooked beside dark ink. Lighter ink is invisible.
const MIN_PALE_GREY: u8 = 128;
const MAX_PALE_GREY: u8 = 250;

/// How alike two neighbours are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NeighbourLikeness {
    Alike,
    /// A reading of the drawn page decides.
    Uneven,
    /// No reading decides.
    Unlike,
}

/// Marks the digits and signs whose neighbours in a number are drawn otherwise.
pub(super) fn mark_uneven(glyphs: &mut [PageGlyph], cells: &GlyphCells) {
    for at in 0..glyphs.len() {
        let Some(digit) = glyphs.get(at).filter(|glyph| is_digit(glyph)).cloned() else { continue };
        let reach = digit.letter_box().inflate(MAX_GAP_EMS * digit.size, 0.0);
        let is_fine = digit.size < cells.longer_side() * MIN_PRINT_SHARE;
        let alone = if is_fine { NeighbourLikeness::Unlike } else { NeighbourLikeness::Alike };
        let mut likeness = alone;
        for cell in cells.cells_of(reach) {
            for other in cells.latest(cell).filter(|other| *other != at) {
                let Some(neighbour) = glyphs.get_mut(other).filter(|it| is_part(it)) else {
                    continue;
                };
                let found = compare_neighbours(&digit, neighbour);
                mark_glyph(neighbour, found);
                likeness = likeness.max(found);
            }
        }
        if let Some(digit) = glyphs.get_mut(at) {
            mark_glyph(digit, likeness);
        }
    }
}

fn mark_glyph(glyph: &mut PageGlyph, likeness: NeighbourLikeness) {
    glyph.unproven |= likeness > NeighbourLikeness::Alike;
    glyph.contested |= likeness == NeighbourLikeness::Unlike;
}

/// A painted digit of any size and colour.
fn is_digit(glyph: &PageGlyph) -> bool {
    glyph.drawn && glyph.text.chars().all(char::is_numeric) && is_inked(glyph)
}

/// A digit or a sign that occurs in numbers.
fn is_part(glyph: &PageGlyph) -> bool {
    const SIGNS: &str = "-.,\u{2212}\u{2013}";
    glyph.drawn
        && glyph.text.chars().all(|c| c.is_numeric() || SIGNS.contains(c))
        && is_inked(glyph)
}

fn is_inked(glyph: &PageGlyph) -> bool {
    glyph.visible || (MIN_PALE_GREY..=MAX_PALE_GREY).contains(&glyph.ink)
}

fn compare_neighbours(digit: &PageGlyph, other: &PageGlyph) -> NeighbourLikeness {
    let (along, size) = (digit.em.normalize(), digit.size.max(other.size));
    let up = Vec2::new(along.y, -along.x);
    let offset = other.origin - digit.origin;
    let (start, raise) = (offset.dot(along) / size, offset.dot(up).abs() / size);
    let end = start + other.advance.dot(along) / size;
    let own_end = digit.advance.length() / size;
    let gap = (start.min(end) - own_end).max(-start.max(end));
    let is_beside = (-MAX_OVERLAP_EMS..=MAX_GAP_EMS).contains(&gap) && raise <= MAX_RAISE_EMS;
    if !is_beside {
        return NeighbourLikeness::Alike;
    }
    let ratio = size / digit.size.min(other.size);
    let turn = along.cross(other.em.normalize()).abs();
    let is_turned_round = along.dot(other.em) < 0.0;
    let stretch = (digit.stretch() / other.stretch()).max(other.stretch() / digit.stretch());
    let is_pale = digit.ink.max(other.ink) >= MIN_PALE_GREY;
    let is_of_one_ink = digit.ink.abs_diff(other.ink) <= EVEN_GREY;
    if ratio > CLEARED_SIZE
        || raise > CLEARED_RAISE_EMS
        || turn > CLEARED_TURN
        || is_turned_round
        || is_pale && !is_of_one_ink
    {
        return NeighbourLikeness::Unlike;
    }
    let is_stretched = stretch > EVEN_STRETCH && other.text.chars().all(char::is_numeric);
    match ratio > EVEN_SIZE
        || raise > EVEN_RAISE_EMS
        || turn > EVEN_TURN
        || is_stretched
        || !is_of_one_ink
    {
        true => NeighbourLikeness::Uneven,
        false => NeighbourLikeness::Alike,
    }
}

#[cfg(test)]
mod tests {
    use hayro::kurbo::{Point, Rect};

    use super::*;

    fn mark(glyphs: &mut [PageGlyph]) {
        let cells = GlyphCells::of_glyphs(glyphs, Rect::new(0.0, 0.0, 595.0, 842.0));
        mark_uneven(glyphs, &cells);
    }

    #[test]
    fn a_number_in_print_that_nobody_reads_is_marked() {
        for (size, expected) in [(5.0, false), (4.0, true)] {
            let em = Vec2::new(size, 0.0);
            let mut glyphs = vec![PageGlyph { size, em, ..PageGlyph::sample("9", 50.0, 100.0) }];
            mark(&mut glyphs);
            assert_eq!(glyphs[0].contested, expected, "{size}");
        }
    }

    #[test]
    fn a_number_of_which_a_digit_is_drawn_otherwise_than_its_neighbour_is_marked() {
        let digit = |x: f64| PageGlyph::sample("9", x, 100.0);
        let raised = |by: f64| PageGlyph { origin: Point::new(55.0, 100.0 - by), ..digit(55.0) };
        let turned = |by: f64| {
            let direction = Vec2::new(by.cos(), by.sin());
            PageGlyph { em: direction * 10.0, advance: direction * 5.0, ..digit(55.0) }
        };
        let sized = |size: f64| {
            let (em, advance) = (Vec2::new(size, 0.0), Vec2::new(size / 2.0, 0.0));
            PageGlyph { size, em, advance, ..digit(55.0) }
        };
        let inked = |ink: u8| PageGlyph { ink, visible: ink < 180, ..digit(55.0) };
        let text = |text: &str, x: f64| PageGlyph { text: text.into(), ..digit(x) };
        // Whether it is marked, and whether it stays so.
        #[rustfmt::skip]
        let table = [
            ("alike",              digit(55.0),                (false, false)),
            ("a little raised",    raised(0.8),                (true, false)),
            ("raised",             raised(3.3),                (true, true)),
            ("on the line above",  raised(9.0),                (false, false)),
            ("of another size",    sized(9.0),                 (true, false)),
            ("half as large",      sized(5.0),                 (true, true)),
            ("aslant",             turned(0.05),               (true, false)),
            ("turned",             turned(0.12),               (true, true)),
            ("in another ink",     inked(80),                  (true, false)),
            ("pale",               inked(150),                 (true, true)),
            ("hardly seen",        inked(230),                 (true, true)),
            ("white",              inked(255),                 (false, false)),
            ("behind a space",     PageGlyph { ink: 150, ..digit(57.8) }, (false, false)),
            ("a pale letter",      PageGlyph { ink: 150, ..text("x", 55.0) }, (false, false)),
            ("a pale minus",       PageGlyph { ink: 150, ..text("-", 45.0) }, (true, true)),
            ("squeezed",           PageGlyph { em: Vec2::new(4.0, 0.0), ..digit(55.0) }, (true, false)),
        ];
        for (name, neighbour, expected) in table {
            let mut glyphs = vec![digit(50.0), neighbour];
            mark(&mut glyphs);
            for glyph in glyphs.iter().filter(|glyph| is_inked(glyph) && glyph.text != "x") {
                assert_eq!((glyph.unproven, glyph.contested), expected, "{name}");
            }
        }
    }
}
