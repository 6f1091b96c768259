//! Boxes to be ticked: an outline of four straight sides, beside a word, empty or with something in it.
//!
//! Rather none than one that is none: what lies between empty and ticked is left out, and so are
//! squares in a row (a field for each letter), squares within codes, and pages in scripts that have
//! squares for letters. Which of two words beside a box it belongs to is not told.

use docmill_core::model::{BoundingBox, TextLine, TextWord};

use super::ink::{InkPiece, PageInk};

/// Sides of a box, in inches.
const MIN_SIDE: f32 = 0.075;
const MAX_SIDE: f32 = 0.32;
/// Pixels of a side below which nothing is told.
const MIN_PIXELS: i32 = 9;
/// How square it is.
const MIN_RATIO: f32 = 0.8;
/// Share of each side that is drawn.
const DRAWN: f32 = 0.93;
/// Thickest side, as a share of the box.
const THICKEST: f32 = 0.2;
/// Share of a box within its sides that is ink: of an empty one at most, of a ticked one at least and
/// at most.
const EMPTY: f32 = 0.015;
const TICKED: std::ops::RangeInclusive<f32> = 0.07..=0.75;
/// Boxes of a page that are looked at.
const MAX_BOXES: usize = 400;
/// How far the word behind it begins, in sides of the box.
const BESIDE: f32 = 1.8;
/// Squares closer than this are a row of fields.
const ROW_GAP: f32 = 0.9;

/// A box to be ticked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TickBox {
    /// Its outline.
    pub(crate) area: BoundingBox,
    /// Whether something is drawn in it.
    pub(crate) checked: bool,
}

/// Finds the boxes beside words; `lines` with boxes in pixels of the picture, `taken` the places of
/// codes in pixels of what was looked at.
pub(super) fn find_boxes(
    ink: &PageInk,
    dpi: u32,
    taken: &[BoundingBox],
    lines: &[TextLine],
) -> Vec<TickBox> {
    if has_square_letters(lines) {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "dots per inch")]
    let inch = dpi.max(1) as f32 / ink.scale;
    let is_candidate = |piece: &&InkPiece| has_size_of_box(**piece, inch);
    let mut squares: Vec<TickBox> = Vec::new();
    for (label, piece) in ink.pieces.iter().enumerate().skip(1).filter(|(_, it)| is_candidate(it)) {
        if squares.len() == MAX_BOXES {
            return Vec::new();
        }
        let area = area_of(*piece);
        if taken.iter().any(|code| contains(code, &area)) || !has_four_sides(ink, label, *piece) {
            continue;
        }
        squares.push(TickBox { area: scaled(area, ink.scale), checked: false });
        let Some(inside) = ink_inside(ink, *piece) else {
            continue;
        };
        if let Some(square) = squares.last_mut() {
            square.checked = inside > EMPTY;
            if inside > EMPTY && !TICKED.contains(&inside) {
                // Neither: it still says that those beside it are a row.
                square.area.h = 0.0;
            }
        }
    }
    let alone = |square: &TickBox| {
        square.area.h > 0.0 && !squares.iter().any(|other| are_in_row(&square.area, &other.area))
    };
    let beside = |square: &TickBox| line_beside(lines, square).is_some();
    squares.iter().copied().filter(|square| alone(square) && beside(square)).collect()
}

/// Writes the boxes into the lines, as signs that Unicode has for them, in the place of what was read
/// of their ink.
pub(crate) fn write_boxes(lines: &mut [TextLine], boxes: &[TickBox]) {
    for square in boxes {
        let Some(at) = line_beside(lines, square) else { continue };
        let Some(line) = lines.get_mut(at) else { continue };
        line.words.retain(|word| !is_within(&word.bounding_box, &square.area));
        let sign = TextWord {
            text: if square.checked { "☒" } else { "☐" }.into(),
            bounding_box: square.area,
            confidence: 0.9,
            unwitnessed: false,
        };
        let behind = |word: &TextWord| word.bounding_box.x >= square.area.x;
        let place = line.words.iter().position(behind).unwrap_or(line.words.len());
        line.words.insert(place, sign);
    }
}

/// Whether letters of the page are squares themselves.
fn has_square_letters(lines: &[TextLine]) -> bool {
    let letters = || {
        let words = lines.iter().flat_map(|line| &line.words);
        words.flat_map(|word| word.text.chars()).filter(|c| c.is_alphabetic())
    };
    let is_square = |c: &char| matches!(c, '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}');
    letters().filter(is_square).count() * 20 > letters().count()
}

#[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
fn has_size_of_box(piece: InkPiece, inch: f32) -> bool {
    let (width, height) = (piece.width as f32, piece.height as f32);
    let within = |side: f32| (MIN_SIDE * inch..=MAX_SIDE * inch).contains(&side);
    piece.width.min(piece.height) >= MIN_PIXELS
        && within(width)
        && within(height)
        && width.min(height) >= MIN_RATIO * width.max(height)
}

#[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
fn area_of(piece: InkPiece) -> BoundingBox {
    let InkPiece { left, top, width, height, .. } = piece;
    BoundingBox { x: left as f32, y: top as f32, w: width as f32, h: height as f32 }
}

fn scaled(area: BoundingBox, scale: f32) -> BoundingBox {
    let BoundingBox { x, y, w, h } = area;
    BoundingBox { x: x * scale, y: y * scale, w: w * scale, h: h * scale }
}

fn contains(around: &BoundingBox, area: &BoundingBox) -> bool {
    let (x, y) = (area.x + area.w / 2.0, area.y + area.h / 2.0);
    (around.x..around.right()).contains(&x) && (around.y..around.bottom()).contains(&y)
}

/// Whether the piece runs along all four edges of its box, thinly, and its middle rows and columns
/// are no solid ink.
fn has_four_sides(ink: &PageInk, label: usize, piece: InkPiece) -> bool {
    let InkPiece { left, top, width, height, .. } = piece;
    let strip = (width.min(height) / 9).max(1);
    let is_own = |x: i32, y: i32| ink.label_at(x, y) == label;
    let share = |length: i32, is_drawn: &dyn Fn(i32) -> bool| {
        let drawn = (0..length).filter(|at| is_drawn(*at)).count();
        #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
        let share = drawn as f32 / length.max(1) as f32;
        share
    };
    let any = |is_drawn: &dyn Fn(i32) -> bool| (0..strip).any(is_drawn);
    let above = share(width, &|x| any(&|y| is_own(left + x, top + y)));
    let below = share(width, &|x| any(&|y| is_own(left + x, top + height - 1 - y)));
    let before = share(height, &|y| any(&|x| is_own(left + x, top + y)));
    let behind = share(height, &|y| any(&|x| is_own(left + width - 1 - x, top + y)));
    [above, below, before, behind].into_iter().all(|side| side >= DRAWN)
        && thickness(ink, label, piece).is_some_and(|thick| thick <= THICKEST)
}

/// How thick the sides are, as a share of the box: the middle of what is measured along each.
fn thickness(ink: &PageInk, label: usize, piece: InkPiece) -> Option<f32> {
    let InkPiece { left, top, width, height, .. } = piece;
    let run = |length: i32, is_drawn: &dyn Fn(i32) -> bool| {
        // The first pixel of a side that is not quite straight may be paper.
        let begin = (0..length).find(|at| is_drawn(*at)).unwrap_or(length);
        (begin..length).find(|at| !is_drawn(*at)).unwrap_or(length)
    };
    let is_own = |x: i32, y: i32| ink.label_at(x, y) == label;
    let (right, bottom) = (left + width - 1, top + height - 1);
    let mut runs: Vec<i32> = Vec::new();
    for y in top..=bottom {
        runs.push(run(width, &|x| is_own(left + x, y)));
        runs.push(run(width, &|x| is_own(right - x, y)));
    }
    for x in left..=right {
        runs.push(run(height, &|y| is_own(x, top + y)));
        runs.push(run(height, &|y| is_own(x, bottom - y)));
    }
    runs.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
    let share = *runs.get(runs.len() / 2)? as f32 / width.min(height) as f32;
    Some(share)
}

/// Share of ink well within the sides, whatever piece it is of.
fn ink_inside(ink: &PageInk, piece: InkPiece) -> Option<f32> {
    let InkPiece { left, top, width, height, .. } = piece;
    let (across, down) = (width * 11 / 50 + 1, height * 11 / 50 + 1);
    let (mut all, mut drawn) = (0_u32, 0_u32);
    for y in top + down..top + height - down {
        for x in left + across..left + width - across {
            all += 1;
            drawn += u32::from(ink.is_ink(x, y));
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "pixels of a box")]
    let share = drawn as f32 / all as f32;
    (all > 0).then_some(share)
}

/// Of about the same size, on one level, and hardly apart.
fn are_in_row(one: &BoundingBox, other: &BoundingBox) -> bool {
    let gap = (other.x - one.right()).max(one.x - other.right());
    let side = one.w.max(other.w);
    one != other
        && (-0.3 * side..ROW_GAP * side).contains(&gap)
        && (one.y - other.y).abs() < 0.5 * side
}

/// The line of which a word stands beside the box.
fn line_beside(lines: &[TextLine], square: &TickBox) -> Option<usize> {
    let side = square.area.h;
    let middle = square.area.y + side / 2.0;
    let is_beside = |word: &TextWord| {
        let place = word.bounding_box;
        let gap = place.x - square.area.right();
        (-0.15 * side..BESIDE * side).contains(&gap)
            && (place.y..place.bottom()).contains(&middle)
            && (0.3 * side..2.2 * side).contains(&place.h)
            && word.text.chars().any(char::is_alphabetic)
    };
    let mut marks = lines.iter().map(|line| {
        line.words.iter().any(is_beside)
            && !line.words.iter().any(|word| is_letter_within(word, &square.area))
    });
    marks.position(|is_line| is_line)
}

/// Whether the word is what was read of the box.
fn is_within(word: &BoundingBox, square: &BoundingBox) -> bool {
    let across = word.right().min(square.right()) - word.x.max(square.x);
    let down = word.bottom().min(square.bottom()) - word.y.max(square.y);
    let shared = across.max(0.0) * down.max(0.0);
    shared > 0.6 * (word.w * word.h).max(f32::MIN_POSITIVE)
}

/// A letter or number in a frame is none that was ticked.
fn is_letter_within(word: &TextWord, square: &BoundingBox) -> bool {
    let is_tick = |c: char| "xXvVyY✓✔✗✘×☐☒☑□oO0DUuLlIi1".contains(c);
    is_within(&word.bounding_box, square)
        && word.confidence > 0.5
        && word.text.chars().any(|c| c.is_alphanumeric() && !is_tick(c))
}
