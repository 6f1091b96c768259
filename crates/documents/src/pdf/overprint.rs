//! Letters that overlap other letters, and digits with small drawings beside or on them, which a
//! person reads as part of the number.
//!
//! A letter under another one may be invisible, and two of one size are illegible: the text counts
//! only if the rendered page confirms it. A letter that is drawn twice, as fake bold is, stays
//! valid.

use hayro::kurbo::{Point, Rect, Vec2};

use crate::pdf::glyph_cells::GlyphCells;
use crate::pdf::page_glyph::PageGlyph;
use crate::pdf::uneven_numbers::mark_uneven;

/// A letter is covered if this share of its box is within another one's.
const MIN_COVERED_SHARE: f64 = 0.4;
/// Letters of these proportions are of one size.
const ONE_SIZE: std::ops::RangeInclusive<f64> = 0.6..=1.67;
/// Difference in grey within one ink.
const SAME_INK: u8 = 16;
/// A digit's copy, as bold print and shadows have it, is nearer along the line, in ems.
const MAX_COPY_EMS: f64 = 0.1;
/// Small drawings that are kept; with more, all digits of the page are doubtful.
const MAX_SIGNS: usize = 50_000;
/// The longest side of a drawing that may be a sign, in points.
const MAX_SIGN_POINTS: f64 = 60.0;
/// A minus may reach so far into its digit's place, in ems.
const MAX_MINUS_OVERLAP: f64 = 0.1;
/// Maximum size of a stroke on a digit, in ems; a larger drawing surrounds it.
const MAX_STROKE_EMS: f64 = 1.1;
/// A longer minus is read as a rule, in ems.
const MAX_MINUS_EMS: f64 = 0.65;
/// The gap between a digit and a sign that belongs to it, in ems.
const MAX_SIGN_GAP: f64 = 0.35;
/// The same for a minus, which stands farther away.
const MAX_MINUS_GAP: f64 = 0.9;

/// Small dark drawings of a page, as boxes on it.
#[derive(Debug, Default)]
pub(crate) struct SmallDrawings {
    boxes: Vec<Rect>,
    /// Drawings that some viewers omit.
    disputed: Vec<Rect>,
    is_full: bool,
}

impl SmallDrawings {
    /// Keeps a drawing that may be a digit or a sign.
    pub(crate) fn note(&mut self, area: Rect) {
        self.is_full |= !keep_sign(&mut self.boxes, area);
    }

    /// The same for a drawing that some viewers omit.
    pub(crate) fn note_disputed(&mut self, area: Rect) {
        self.is_full |= !keep_sign(&mut self.disputed, area);
    }
}

/// Keeps a drawing of the size of a sign; `false`: no room for it.
fn keep_sign(signs: &mut Vec<Rect>, area: Rect) -> bool {
    let longest = area.width().max(area.height());
    if !(longest > 0.0 && longest <= MAX_SIGN_POINTS) {
        return true;
    }
    let has_room = signs.len() < MAX_SIGNS;
    if has_room {
        signs.push(area);
    }
    has_room
}

/// Marks the letters that others are printed over, and the digits that small drawings stand at. A
/// minus that is drawn before a digit becomes a letter of its own.
pub(crate) fn mark_overprinted(glyphs: &mut Vec<PageGlyph>, drawings: &SmallDrawings, page: Rect) {
    let mut cells = GlyphCells::new(page);
    for at in 0..glyphs.len() {
        let Some(later) = glyphs.get(at).filter(|glyph| glyph.drawn && !glyph.is_blank()) else {
            continue;
        };
        let (later, area) = (later.clone(), later.letter_box());
        if !area.is_finite() || area.is_zero_area() {
            continue;
        }
        for cell in cells.cells_of(whole_box(&later)) {
            for before in cells.latest(cell) {
                if let Some(earlier) = glyphs.get_mut(before) {
                    let is_one_size = print_over(earlier, &later);
                    if let Some(later) = glyphs.get_mut(at).filter(|_| is_one_size) {
                        (later.doubtful, later.unproven) = (true, true);
                    }
                }
            }
        }
        for cell in cells.cells_of(area) {
            cells.add(cell, at);
        }
    }
    mark_uneven(glyphs, &cells);
    if drawings.is_full {
        glyphs.iter_mut().filter(|glyph| is_digit(glyph)).for_each(|glyph| glyph.unproven = true);
        return;
    }
    let mut minus_signs: Vec<(usize, PageGlyph)> = Vec::new();
    let disputed = drawings.disputed.iter().map(|drawing| (drawing, true));
    for (drawing, is_disputed) in drawings.boxes.iter().map(|it| (it, false)).chain(disputed) {
        let around = drawing.inflate(MAX_SIGN_POINTS / 4.0, 0.0);
        for cell in cells.cells_of(around) {
            for at in cells.latest(cell) {
                let Some(glyph) = glyphs.get_mut(at).filter(|glyph| is_digit(glyph)) else {
                    continue;
                };
                let Some(sign) = sign_of(*drawing, glyph) else { continue };
                glyph.unproven = true;
                glyph.contested |= is_disputed || matches!(sign, NumberSign::Contested);
                if let NumberSign::Minus(minus) = sign
                    && !is_disputed
                {
                    minus_signs.push((at, minus));
                }
            }
        }
    }
    minus_signs.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    minus_signs.dedup_by_key(|(at, _)| *at);
    for (at, minus) in minus_signs {
        glyphs.insert(at, minus);
    }
}

/// The sign that a drawing at a digit may be.
enum NumberSign {
    /// A minus before it, as a letter.
    Minus(PageGlyph),
    /// A digit, a point, a bracket: a reading of the drawn page decides.
    Other,
    /// A stroke of the digit itself, a point within its number, a minus behind it or apart from it:
    /// readings overlook these.
    Contested,
}

/// Marks `earlier` if `later` is printed over it. Whether the two are letters of one size, of which
/// neither can be read.
fn print_over(earlier: &mut PageGlyph, later: &PageGlyph) -> bool {
    let is_one_size = ONE_SIZE.contains(&(later.size / earlier.size));
    let place = earlier.letter_box();
    let cover = if is_one_size { later.letter_box() } else { whole_box(later) };
    let shared = place.intersect(cover);
    let is_covered = shared.width() > 0.0
        && shared.height() > 0.0
        && shared.area() > place.area() * MIN_COVERED_SHARE;
    if !is_covered || !earlier.visible {
        return false;
    }
    let is_same_ink = earlier.ink.abs_diff(later.ink) <= SAME_INK;
    if earlier.text == later.text && is_same_ink && is_one_size {
        // At this distance, two equal digits may be two digits and no copy.
        let apart = (later.origin - earlier.origin).dot(earlier.em.normalize()).abs();
        let is_two = is_digit(earlier) && apart > MAX_COPY_EMS * earlier.size;
        earlier.unproven |= is_two;
        return is_two;
    }
    earlier.doubtful = true;
    let are_letters = [&*earlier, later].iter().all(|glyph| is_alphanumeric(glyph))
        || is_digit(earlier) && !is_accent(later);
    let is_both = is_one_size && later.visible && are_letters && earlier.text != later.text;
    // The rest that lighter letters leave of it may be another one.
    let is_pared = later.ink > earlier.ink.saturating_add(SAME_INK);
    earlier.unproven |= is_both || is_pared || later.unproven;
    is_both
}

/// The area in which a glyph may have ink, whatever it draws.
fn whole_box(glyph: &PageGlyph) -> Rect {
    let up = Vec2::new(glyph.em.y, -glyph.em.x).normalize() * glyph.size;
    let (start, end) = (glyph.origin, glyph.origin + glyph.advance);
    let corners = [start - up * 0.25, start + up, end - up * 0.25, end + up];
    corners.into_iter().fold(Rect::from_points(start, end), |all, corner| all.union_pt(corner))
}

/// A box beside a glyph's origin, along its line and upwards from it, in ems.
fn box_in_ems(drawing: Rect, glyph: &PageGlyph) -> Rect {
    let along = glyph.em.normalize();
    let up = Vec2::new(along.y, -along.x);
    let corners = [
        drawing.origin(),
        Point::new(drawing.x1, drawing.y0),
        Point::new(drawing.x0, drawing.y1),
        Point::new(drawing.x1, drawing.y1),
    ];
    let [first, rest @ ..] = corners
        .map(|corner| (corner - glyph.origin) / glyph.size)
        .map(|from| Point::new(from.dot(along), from.dot(up)));
    rest.iter().fold(Rect::from_points(first, first), |all, one| all.union_pt(*one))
}

/// The sign in a drawing that stands at a digit as its neighbour in a number does: a digit, a point,
/// a minus, a bracket.
fn sign_of(drawing: Rect, glyph: &PageGlyph) -> Option<NumberSign> {
    let along = glyph.em.normalize();
    let place = box_in_ems(drawing, glyph);
    let advance = glyph.advance.length() / glyph.size;
    let gap = (place.x0 - advance).max(-place.x1);
    let (width, height, middle) = (place.width(), place.height(), place.center().y);
    let is_minus =
        height <= 0.2 && (0.15..=1.3).contains(&width) && (0.12..=0.55).contains(&middle);
    let is_rule = width < 0.12 && (height > 1.4 || place.y1 > 0.95 && place.y0 < -0.1);
    let is_figure = (0.35..=1.4).contains(&height)
        && (0.01..=1.1).contains(&width)
        && (0.1..=0.6).contains(&middle)
        && !is_rule;
    let is_point =
        height <= 0.3 && (0.05..=0.2).contains(&width) && (-0.2..=0.15).contains(&middle);
    let on_digit = place.intersect(Rect::new(0.04, 0.05, advance - 0.04, 0.74));
    let is_stroke = on_digit.width() >= 0.01
        && on_digit.height() >= 0.01
        && on_digit.width().max(on_digit.height()) >= 0.1
        && width.max(height) <= MAX_STROKE_EMS
        && !is_rule;
    let most = if is_minus { MAX_MINUS_GAP } else { MAX_SIGN_GAP };
    if gap > most || !(is_minus || is_figure || is_point || is_stroke) {
        return None;
    }
    if !is_minus || place.x1 > MAX_MINUS_OVERLAP {
        // A person reads a thin one as a digit, a reader as a speck.
        let is_thin = is_figure && width < 0.12;
        let is_within = is_stroke || is_thin || is_point && gap <= 0.0;
        return Some(if is_within || is_minus { NumberSign::Contested } else { NumberSign::Other });
    }
    let start = glyph.origin + along * (place.x0 * glyph.size);
    let advance = along * (width * glyph.size);
    let minus = PageGlyph { text: "-".into(), origin: start, advance, ..glyph.clone() };
    Some(match minus.is_joined_by(glyph) && width <= MAX_MINUS_EMS {
        true => NumberSign::Minus(PageGlyph { unproven: true, ..minus }),
        false => NumberSign::Contested,
    })
}

fn is_digit(glyph: &PageGlyph) -> bool {
    glyph.visible && glyph.text.chars().any(char::is_numeric)
}

fn is_alphanumeric(glyph: &PageGlyph) -> bool {
    glyph.text.chars().any(char::is_alphanumeric)
}

/// Marks over or under a letter, and lines to write on.
fn is_accent(glyph: &PageGlyph) -> bool {
    const MARKS: &str = "_.,'\"^`~\u{a8}\u{af}\u{b4}\u{b8}";
    glyph
        .text
        .chars()
        .all(|c| MARKS.contains(c) || matches!(c, '\u{300}'..='\u{36f}' | '\u{2018}'..='\u{201d}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Rect = Rect::new(0.0, 0.0, 595.0, 842.0);

    fn glyph(text: &str, x: f64, size: f64, ink: u8) -> PageGlyph {
        let (advance, em) = (Vec2::new(size / 2.0, 0.0), Vec2::new(size, 0.0));
        let visible = ink < 250;
        PageGlyph { advance, em, size, ink, visible, ..PageGlyph::sample(text, x, 100.0) }
    }

    #[test]
    fn letters_that_share_a_place_are_doubtful_unless_they_are_one_letter_drawn_twice() {
        let first = || glyph("1", 50.0, 10.0, 0);
        #[rustfmt::skip]
        let table = [
            ("beside it",                 glyph("9", 55.0, 10.0, 0),   (false, false), false),
            ("kerned",                    glyph("9", 53.5, 10.0, 0),   (false, false), false),
            ("another digit on it",       glyph("9", 50.0, 10.0, 0),   (true,  true),  true),
            ("nearly on it",              glyph("9", 51.5, 10.0, 0),   (true,  true),  true),
            ("fake bold",                 glyph("1", 50.3, 10.0, 0),   (false, false), false),
            ("its own outline in white",  glyph("1", 50.0, 10.0, 255), (true,  true),  false),
            ("an accent",                 glyph("´", 50.0, 10.0, 0),   (true,  false), false),
            ("a white block",             glyph("■", 30.0, 80.0, 255), (true,  true),  false),
            ("a large letter",            glyph("D", 30.0, 80.0, 0),   (true,  false), false),
            ("a blank",                   glyph(" ", 50.0, 10.0, 0),   (false, false), false),
        ];
        for (name, later, expected, is_both) in table {
            let mut glyphs = vec![first(), later];
            mark_overprinted(&mut glyphs, &SmallDrawings::default(), PAGE);
            assert_eq!((glyphs[0].doubtful, glyphs[0].unproven), expected, "{name}");
            assert_eq!(glyphs[1].unproven, is_both, "{name}");
        }
        let invisible = PageGlyph { drawn: false, ..glyph("9", 50.0, 10.0, 0) };
        let mut glyphs = vec![first(), invisible];
        mark_overprinted(&mut glyphs, &SmallDrawings::default(), PAGE);
        assert!(!glyphs[0].doubtful, "text that is not painted");
    }

    #[test]
    fn a_digit_with_a_drawing_where_its_neighbour_stands_is_unproven() {
        // Relative to the digit's origin, in points of a font of ten, y downwards. The last is whether
        // no reading clears the digit.
        #[rustfmt::skip]
        let table = [
            ("a digit before it",     Rect::new(-6.0, -7.0, -1.0, 0.0),    (true, "1", false)),
            ("a digit behind it",     Rect::new(6.0, -7.0, 11.0, 0.0),     (true, "1", false)),
            ("a digit on it",         Rect::new(0.0, -7.0, 5.0, 0.0),      (true, "1", true)),
            ("a minus",               Rect::new(-5.0, -3.4, -1.0, -2.6),   (true, "-1", false)),
            ("a minus apart",         Rect::new(-9.0, -3.4, -5.0, -2.6),   (true, "1", true)),
            ("a minus behind it",     Rect::new(6.0, -3.4, 10.0, -2.6),    (true, "1", true)),
            ("a long minus",          Rect::new(-8.0, -3.4, -1.0, -2.6),   (true, "1", true)),
            ("a thin one before it",  Rect::new(-3.0, -7.0, -2.5, 0.0),    (true, "1", true)),
            ("a bracket",             Rect::new(-4.0, -7.5, -1.5, 2.0),    (true, "1", false)),
            ("a point",               Rect::new(5.2, -1.0, 6.2, 0.0),      (true, "1", false)),
            ("a point within",        Rect::new(4.8, -1.0, 5.8, 0.0),      (true, "1", true)),
            ("far from it",           Rect::new(-15.0, -7.0, -10.0, 0.0),  (false, "1", false)),
            ("on the line above",     Rect::new(-6.0, -19.0, -1.0, -12.0), (false, "1", false)),
            ("a stroke on it",        Rect::new(0.5, -5.0, 1.0, -1.0),     (true, "1", true)),
            ("a bar on its top",      Rect::new(0.5, -7.0, 4.0, -6.4),     (true, "1", true)),
            ("an underline",          Rect::new(0.0, 1.5, 5.0, 2.0),       (false, "1", false)),
            ("a rule of the table",   Rect::new(-3.0, -10.0, -2.5, 3.0),   (false, "1", false)),
            ("a rule below the row",  Rect::new(-40.0, 4.0, 12.0, 4.5),    (false, "1", false)),
        ];
        for (name, drawing, expected) in table {
            let mut glyphs = vec![glyph("1", 50.0, 10.0, 0)];
            let mut drawings = SmallDrawings::default();
            drawings.note(drawing + Vec2::new(50.0, 100.0));
            mark_overprinted(&mut glyphs, &drawings, PAGE);
            let found: String = glyphs.iter().map(|glyph| glyph.text.as_str()).collect();
            let (unproven, contested) =
                (glyphs.iter().all(|it| it.unproven), glyphs.iter().any(|it| it.contested));
            assert_eq!((unproven, found.as_str(), contested), expected, "{name}");
        }
    }

    #[test]
    fn on_a_page_of_too_many_small_drawings_no_digit_is_proven() {
        for (count, expected) in [(MAX_SIGNS, false), (MAX_SIGNS + 1, true)] {
            let mut drawings = SmallDrawings::default();
            (0..count).for_each(|_| drawings.note(Rect::new(0.0, 0.0, 5.0, 5.0)));
            let mut glyphs = vec![glyph("1", 50.0, 10.0, 0)];
            mark_overprinted(&mut glyphs, &drawings, PAGE);
            assert_eq!(glyphs[0].unproven, expected, "{count}");
        }
    }
}
