//! Checkboxes: an outline of four straight sides beside a word, empty or ticked.
//!
//! Precision over recall: uncertain marks are dropped. So are squares in a row (one field per
//! letter), squares within codes, and pages in scripts with square letters. Not covered: which of
//! two words beside a box it belongs to.

use docmill_core::model::{BoundingBox, TextLine, TextWord};

use super::ink::{InkPiece, PageInk};

const MIN_SIDE_INCHES: f32 = 0.075;
const MAX_SIDE_INCHES: f32 = 0.32;
const MIN_SIDE_PIXELS: i32 = 9;
/// Shorter side by longer side.
const MIN_RATIO: f32 = 0.8;
/// Share of each side that is drawn.
const MIN_DRAWN_SHARE: f32 = 0.93;
/// Thickness of the sides, as a share of the box.
const MAX_THICKNESS: f32 = 0.2;
/// Share of ink within the sides, of an empty box and of a ticked one.
const MAX_EMPTY_INK: f32 = 0.015;
const TICKED_INK: std::ops::RangeInclusive<f32> = 0.07..=0.75;
/// A page with more squares has none that are checkboxes.
const MAX_BOXES: usize = 400;
/// Gap between a box and the word behind it, in sides of the box.
const MAX_WORD_GAP: f32 = 1.8;
/// Squares closer than this, in sides, are a row of fields.
const MAX_ROW_GAP: f32 = 0.9;

/// The texts of a box with a mark, and of one without.
const CHECKED: &str = "☒";
const UNCHECKED: &str = "☐";
/// Characters that boxes and ticks are read as.
const TICK_READINGS: &str = "xXvVyY✓✔✗✘×☐☒☑□oO0DUuLlIi1";

/// Whether a word is the text of a checkbox, which was found by its outline.
pub(crate) fn is_checkbox(word: &TextWord) -> bool {
    [CHECKED, UNCHECKED].contains(&word.text.as_str())
}

/// A checkbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TickBox {
    /// Its outline.
    pub(crate) area: BoundingBox,
    /// Whether something is drawn in it.
    pub(crate) checked: bool,
}

/// Finds the checkboxes beside words; `lines` with boxes in pixels of the picture, `taken` the
/// areas of codes in pixels of `ink`.
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
    let mut squares: Vec<TickBox> = Vec::new();
    for (label, piece) in ink.pieces.iter().enumerate().skip(1) {
        if !has_size_of_box(*piece, inch) {
            continue;
        }
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
            square.checked = inside > MAX_EMPTY_INK;
            if inside > MAX_EMPTY_INK && !TICKED_INK.contains(&inside) {
                // Neither empty nor ticked, but evidence that the squares beside it are a row.
                square.area.h = 0.0;
            }
        }
    }
    let mut found = Vec::new();
    for square in &squares {
        let is_alone = square.area.h > 0.0
            && !squares.iter().any(|other| are_in_row(&square.area, &other.area));
        if is_alone && line_beside(lines, square).is_some() {
            found.push(*square);
        }
    }
    found
}

/// Writes the boxes into the lines as Unicode's signs for them, replacing words read from their
/// ink.
pub(crate) fn write_boxes(lines: &mut [TextLine], boxes: &[TickBox]) {
    for square in boxes {
        let Some(at) = line_beside(lines, square) else { continue };
        let Some(line) = lines.get_mut(at) else { continue };
        line.words.retain(|word| !is_within(&word.bounding_box, &square.area));
        let sign = TextWord {
            text: if square.checked { CHECKED } else { UNCHECKED }.into(),
            bounding_box: square.area,
            confidence: 0.9,
            unwitnessed: false,
        };
        let next = line.words.iter().position(|word| word.bounding_box.x >= square.area.x);
        line.words.insert(next.unwrap_or(line.words.len()), sign);
    }
}

/// Whether letters of the page are squares themselves.
fn has_square_letters(lines: &[TextLine]) -> bool {
    let (mut square, mut all) = (0, 0);
    let words = lines.iter().flat_map(|line| &line.words);
    for c in words.flat_map(|word| word.text.chars()).filter(|c| c.is_alphabetic()) {
        all += 1;
        square += usize::from(matches!(
            c,
            '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        ));
    }
    square * 20 > all
}

#[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
fn has_size_of_box(piece: InkPiece, inch: f32) -> bool {
    let (width, height) = (piece.width as f32, piece.height as f32);
    let sides = MIN_SIDE_INCHES * inch..=MAX_SIDE_INCHES * inch;
    piece.width.min(piece.height) >= MIN_SIDE_PIXELS
        && sides.contains(&width)
        && sides.contains(&height)
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

/// A side of a piece's box, to be walked along from its beginning and inwards from each point.
#[derive(Clone, Copy)]
struct BoxSide<'a> {
    ink: &'a PageInk,
    label: usize,
    start: (i32, i32),
    along: (i32, i32),
    inwards: (i32, i32),
    length: i32,
    /// Pixels to the opposite side.
    depth: i32,
}

impl<'a> BoxSide<'a> {
    fn all(ink: &'a PageInk, label: usize, piece: InkPiece) -> [Self; 4] {
        let InkPiece { left, top, width, height, .. } = piece;
        let (right, bottom) = (left + width - 1, top + height - 1);
        let above = Self {
            ink,
            label,
            start: (left, top),
            along: (1, 0),
            inwards: (0, 1),
            length: width,
            depth: height,
        };
        let before = Self { along: (0, 1), inwards: (1, 0), length: height, depth: width, ..above };
        let below = Self { start: (left, bottom), inwards: (0, -1), ..above };
        let behind = Self { start: (right, top), inwards: (-1, 0), ..before };
        [above, below, before, behind]
    }

    fn is_drawn(&self, at: i32, inwards: i32) -> bool {
        let x = self.start.0 + at * self.along.0 + inwards * self.inwards.0;
        let y = self.start.1 + at * self.along.1 + inwards * self.inwards.1;
        self.ink.label_at(x, y) == self.label
    }

    /// Share of the side near which there is ink of the piece.
    fn drawn_share(&self, strip: i32) -> f32 {
        let drawn = (0..self.length)
            .filter(|at| (0..strip).any(|inwards| self.is_drawn(*at, inwards)))
            .count();
        #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
        let share = drawn as f32 / self.length.max(1) as f32;
        share
    }

    /// How far in its first stroke ends. The first pixel of a side that is not quite straight may
    /// be paper.
    fn stroke_end(&self, at: i32) -> i32 {
        let begin = (0..self.depth).find(|inwards| self.is_drawn(at, *inwards));
        let begin = begin.unwrap_or(self.depth);
        (begin..self.depth).find(|inwards| !self.is_drawn(at, *inwards)).unwrap_or(self.depth)
    }
}

/// Whether the piece runs along all four edges of its box, thinly, and its middle rows and columns
/// are no solid ink.
fn has_four_sides(ink: &PageInk, label: usize, piece: InkPiece) -> bool {
    let strip = (piece.width.min(piece.height) / 9).max(1);
    let sides = BoxSide::all(ink, label, piece);
    sides.iter().all(|side| side.drawn_share(strip) >= MIN_DRAWN_SHARE)
        && thickness(&sides, piece).is_some_and(|thick| thick <= MAX_THICKNESS)
}

/// Median thickness of the sides, as a share of the box.
fn thickness(sides: &[BoxSide<'_>], piece: InkPiece) -> Option<f32> {
    let mut runs: Vec<i32> = Vec::new();
    for side in sides {
        runs.extend((0..side.length).map(|at| side.stroke_end(at)));
    }
    runs.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
    let share = *runs.get(runs.len() / 2)? as f32 / piece.width.min(piece.height) as f32;
    Some(share)
}

/// Share of ink well within the sides, of any piece.
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
        && (-0.3 * side..MAX_ROW_GAP * side).contains(&gap)
        && (one.y - other.y).abs() < 0.5 * side
}

/// The line with a word beside the box.
fn line_beside(lines: &[TextLine], square: &TickBox) -> Option<usize> {
    lines.iter().position(|line| {
        line.words.iter().any(|word| is_beside(word, &square.area))
            && !line.words.iter().any(|word| is_letter_within(word, &square.area))
    })
}

fn is_beside(word: &TextWord, square: &BoundingBox) -> bool {
    let (side, place) = (square.h, word.bounding_box);
    (-0.15 * side..MAX_WORD_GAP * side).contains(&(place.x - square.right()))
        && (place.y..place.bottom()).contains(&(square.y + side / 2.0))
        && (0.3 * side..2.2 * side).contains(&place.h)
        && word.text.chars().any(char::is_alphabetic)
}

/// Whether the word was read from the ink of the box.
fn is_within(word: &BoundingBox, square: &BoundingBox) -> bool {
    let across = word.right().min(square.right()) - word.x.max(square.x);
    let down = word.bottom().min(square.bottom()) - word.y.max(square.y);
    let shared = across.max(0.0) * down.max(0.0);
    shared > 0.6 * (word.w * word.h).max(f32::MIN_POSITIVE)
}

/// Whether the box frames a letter or number that no tick looks like.
fn is_letter_within(word: &TextWord, square: &BoundingBox) -> bool {
    is_within(&word.bounding_box, square)
        && word.confidence > 0.5
        && word.text.chars().any(|c| c.is_alphanumeric() && !TICK_READINGS.contains(c))
}
