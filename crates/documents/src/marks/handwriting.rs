//! Handwriting and signatures, recognised by the ink: joined letters, strokes of one pen, a height
//! that the print around does not have, and no confident word there.
//!
//! A signature is handwriting below the closing of a letter or beside a word for signatures, in the
//! eleven languages of layouts. Precision over recall: uncertain marks are dropped. Pages that were
//! read badly have none, because illegible print looks alike. Not covered: block letters,
//! handwritten digits, ticks, and words that OCR could read.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind, TextLine, TextWord};
use opencv::core::{CV_32F, Mat, Rect};
use opencv::imgproc;
use opencv::prelude::*;

use super::ruling_removal::{PenPiece, UnruledInk, box_of, to_f32};
use crate::image::opencv_mat::OpenCvError;

/// A word of at least this confidence is print.
const PRINT_CONFIDENCE: f32 = 0.7;
/// Such words of a page, and their share of its words.
const MIN_PRINT_WORDS: usize = 8;
const MIN_PRINT_SHARE: f32 = 0.6;
/// Share of a piece, and of a whole group, that such words cover.
const MAX_READ_SHARE: f32 = 0.35;
const MAX_READ_SHARE_OF_GROUP: f32 = 0.25;
/// A page with more pieces is not a page of print.
const MAX_PIECES: usize = 3000;
/// Gap between pieces of a group, in heights of a word.
const MAX_GAP: f32 = 0.9;
/// Share of the ink in pieces as wide as joined letters, and their width in heights of a word.
const MIN_JOINED_SHARE: f32 = 0.66;
const MIN_JOINED_WIDTH: f32 = 3.0;
const MAX_STROKE_INCHES: f32 = 0.065;
/// Share of its box that is ink.
const INK_SHARES: std::ops::Range<f32> = 0.03..0.45;
/// Share of its edges that runs in one of eight directions.
const MAX_ONE_WAY_SHARE: f32 = 0.47;
/// Strokes that a column and a row cross on average.
const MIN_STROKES_DOWN: f32 = 1.15;
const MIN_STROKES_ACROSS: f32 = 3.0;
/// By how much it is darker than the paper around it.
const MIN_CONTRAST: f64 = 45.0;
/// Pieces of a group within its largest one: a badge or a drawing has more.
const MAX_WITHIN: usize = 3;
const WIDTH_INCHES: std::ops::Range<f32> = 0.4..4.5;
const MAX_HEIGHT_INCHES: f32 = 1.6;
/// In heights of a word; of any handwriting and of a signature.
const MIN_HEIGHT: f32 = 0.9;
const MIN_SIGNATURE_HEIGHT: f32 = 1.5;

/// Words beside the line for a signature.
const SIGNED: [&str; 27] = [
    "signature",
    "signatures",
    "signed",
    "signatory",
    "unterschrift",
    "unterschriften",
    "unterzeichner",
    "unterzeichnet",
    "signataire",
    "signé",
    "firma",
    "firmato",
    "firmado",
    "sottoscritto",
    "assinatura",
    "assinado",
    "handtekening",
    "ondertekening",
    "ondertekend",
    "underskrift",
    "undertecknad",
    "underskrevet",
    "underskriver",
    "podpis",
    "podpisy",
    "podpisano",
    "podpisał",
];
/// Words of a letter's closing.
const CLOSING: [&str; 29] = [
    "regards",
    "sincerely",
    "faithfully",
    "truly",
    "grüßen",
    "grüssen",
    "grüße",
    "gruß",
    "hochachtungsvoll",
    "cordialement",
    "salutations",
    "sentiments",
    "saluti",
    "distinti",
    "saludos",
    "atentamente",
    "cordialmente",
    "cumprimentos",
    "atenciosamente",
    "groet",
    "groeten",
    "hoogachtend",
    "hälsning",
    "hälsningar",
    "hilsen",
    "hilsener",
    "poważaniem",
    "szacunkiem",
    "wyrazami",
];

/// Words of a page in pixels of the ink.
struct ReadWords<'a> {
    all: Vec<(&'a TextWord, BoundingBox)>,
    /// Median height of the print.
    height: f32,
}

/// Pieces close to each other.
struct PenGroup {
    area: Rect,
    members: Vec<PenPiece>,
}

/// Handwriting, from the top. `lines` and `taken`, the areas of other marks, are in pixels of the
/// page's picture.
///
/// # Errors
/// No memory.
pub(super) fn find_handwriting(
    ink: &UnruledInk,
    lines: &[TextLine],
    taken: &[BoundingBox],
) -> Result<Vec<PageMark>, OpenCvError> {
    let Some(words) = ReadWords::from_lines(lines, ink.scale) else { return Ok(Vec::new()) };
    let taken: Vec<BoundingBox> = taken.iter().map(|area| shrunk(area, ink.scale)).collect();
    let mut found = Vec::new();
    for group in group_pieces(words.unread_pieces(ink, &taken), MAX_GAP * words.height) {
        if found.len() < PageMark::MAX_PER_PAGE
            && words.may_be_handwriting(&group, ink.inch)
            && is_drawn_by_pen(ink, &group)?
        {
            let kind = match words.is_signed(&box_of(group.area), ink.inch) {
                true => PageMarkKind::Signature,
                false => PageMarkKind::Handwriting,
            };
            found.push(PageMark { kind, bounding_box: ink.to_page(group.area) });
        }
    }
    found.sort_by(|one, other| one.bounding_box.y.total_cmp(&other.bounding_box.y));
    Ok(found)
}

impl<'a> ReadWords<'a> {
    /// `None` if the page was not read well enough.
    fn from_lines(lines: &'a [TextLine], scale: f32) -> Option<Self> {
        let words = lines.iter().flat_map(|line| &line.words);
        let all: Vec<_> = words.map(|word| (word, shrunk(&word.bounding_box, scale))).collect();
        let counts = all.iter().filter(|(word, _)| is_word(word)).count();
        let mut heights: Vec<f32> =
            all.iter().filter(|(word, _)| is_sure(word)).map(|(_, area)| area.h).collect();
        heights.sort_by(f32::total_cmp);
        let share = MIN_PRINT_SHARE * to_f32(i32::try_from(counts).unwrap_or(i32::MAX));
        let sure = to_f32(i32::try_from(heights.len()).unwrap_or(i32::MAX));
        let height = heights.get(heights.len() / 2).copied().filter(|height| *height >= 4.0)?;
        (heights.len() >= MIN_PRINT_WORDS && sure >= share).then_some(Self { all, height })
    }

    fn sure(&self) -> impl Iterator<Item = &BoundingBox> {
        self.all.iter().filter(|(word, _)| is_sure(word)).map(|(_, area)| area)
    }

    fn read_share(&self, area: &BoundingBox) -> f32 {
        let covered: f32 = self.sure().map(|word| word.shared_area(area)).sum();
        covered / (area.w * area.h).max(f32::MIN_POSITIVE)
    }

    /// Unread pieces at least as large as letters; none if there are too many.
    fn unread_pieces(&self, ink: &UnruledInk, taken: &[BoundingBox]) -> Vec<PenPiece> {
        let mut pieces = Vec::new();
        for piece in &ink.pieces {
            let area = box_of(piece.area);
            let is_candidate = area.h >= 0.35 * self.height
                && to_f32(piece.count) >= 0.02 * self.height * self.height
                && area.w <= WIDTH_INCHES.end * ink.inch
                && area.h <= 2.0 * ink.inch
                && !taken.iter().any(|mark| mark.shared_area(&area) > 0.5 * area.w * area.h)
                && self.read_share(&area) < MAX_READ_SHARE;
            if !is_candidate {
                continue;
            }
            if pieces.len() == MAX_PIECES {
                return Vec::new();
            }
            pieces.push(*piece);
        }
        pieces
    }

    /// By sizes and by the words that were read there.
    fn may_be_handwriting(&self, group: &PenGroup, inch: f32) -> bool {
        let area = box_of(group.area);
        let (mut all, mut joined, mut joined_width, mut weighed) = (0.0, 0.0, 0.0, 0.0);
        for piece in &group.members {
            let count = to_f32(piece.count);
            all += count;
            weighed += piece.stroke * count;
            if self.is_joined(piece) {
                joined += count;
                joined_width += to_f32(piece.area.width);
            }
        }
        let all = f32::max(all, 1.0);
        WIDTH_INCHES.contains(&(area.w / inch))
            && area.h <= MAX_HEIGHT_INCHES * inch
            && area.h >= MIN_HEIGHT * self.height
            && joined >= MIN_JOINED_SHARE * all
            && joined_width >= MIN_JOINED_WIDTH * self.height
            && weighed / all <= MAX_STROKE_INCHES * inch
            && INK_SHARES.contains(&(all / (area.w * area.h)))
            && group.pieces_within_largest() <= MAX_WITHIN
            && self.read_share(&area) < MAX_READ_SHARE_OF_GROUP
            && !self.sure().any(|word| is_in_middle(word, &area))
    }

    /// Whether a piece is as wide as joined letters.
    fn is_joined(&self, piece: &PenPiece) -> bool {
        let (width, height) = (to_f32(piece.area.width), to_f32(piece.area.height));
        let is_low = width >= 1.6 * self.height && width >= 1.1 * height;
        is_low || width >= 2.0 * self.height && height >= 1.5 * self.height
    }

    /// Whether the area lies where people sign.
    fn is_signed(&self, area: &BoundingBox, inch: f32) -> bool {
        area.h >= MIN_SIGNATURE_HEIGHT * self.height
            && self.all.iter().any(|(word, place)| asks_for_signature(word, place, area, inch))
    }
}

/// Whether the word lies in the middle of an area. Above and below are labels.
fn is_in_middle(word: &BoundingBox, area: &BoundingBox) -> bool {
    let middle = (word.y + word.h / 2.0 - area.y) / area.h;
    word.shared_area(area) > 0.5 * word.w * word.h && (0.2..0.8).contains(&middle)
}

/// Whether a word at `place` is a label for signatures beside `area`, or a letter's closing above
/// it.
fn asks_for_signature(word: &TextWord, place: &BoundingBox, area: &BoundingBox, inch: f32) -> bool {
    let apart = (place.x - area.right()).max(area.x - place.right());
    let above = area.bottom() - 0.4 * area.h - 0.3 * inch;
    let is_beside = (above..area.bottom() + 0.55 * inch).contains(&place.y);
    let is_above = (0.0..1.3 * inch).contains(&(area.y + area.h / 2.0 - place.y));
    let letters = word.text.chars().filter(|c| c.is_alphabetic());
    let text: String = letters.flat_map(char::to_lowercase).collect();
    is_sure(word)
        && apart < inch
        && (is_beside && SIGNED.contains(&text.as_str())
            || is_above && CLOSING.contains(&text.as_str()))
}

impl PenGroup {
    fn pieces_within_largest(&self) -> usize {
        let largest = self
            .members
            .iter()
            .max_by_key(|piece| i64::from(piece.area.width) * i64::from(piece.area.height));
        let Some(largest) = largest else { return 0 };
        let others = self.members.iter().filter(|piece| piece.label != largest.label);
        others.filter(|piece| (piece.area & largest.area) == piece.area).count()
    }
}

fn is_word(word: &TextWord) -> bool {
    word.text.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some()
}

fn is_sure(word: &TextWord) -> bool {
    word.confidence >= PRINT_CONFIDENCE && is_word(word)
}

fn shrunk(area: &BoundingBox, scale: f32) -> BoundingBox {
    area.scaled(1.0 / scale, 1.0 / scale)
}

/// Joins pieces side by side, in any order of the list.
fn group_pieces(pieces: Vec<PenPiece>, reach: f32) -> Vec<PenGroup> {
    let mut groups: Vec<PenGroup> = Vec::new();
    for piece in pieces {
        let mut joined = PenGroup { area: piece.area, members: vec![piece] };
        let (near, others): (Vec<PenGroup>, Vec<PenGroup>) =
            groups.into_iter().partition(|group| {
                group.members.iter().any(|member| are_beside(member.area, piece.area, reach))
            });
        groups = others;
        for group in near {
            joined.area |= group.area;
            joined.members.extend(group.members);
        }
        groups.push(joined);
    }
    groups
}

fn are_beside(one: Rect, other: Rect, reach: f32) -> bool {
    let gap = (one.x - other.x - other.width).max(other.x - one.x - one.width);
    let shared = (one.y + one.height).min(other.y + other.height) - one.y.max(other.y);
    to_f32(gap) < reach && to_f32(shared) > 0.3 * to_f32(one.height.min(other.height))
}

/// Whether its strokes run in all directions, cross each other's rows and columns, and are dark.
fn is_drawn_by_pen(ink: &UnruledInk, group: &PenGroup) -> Result<bool, OpenCvError> {
    let labels: Vec<i32> = group.members.iter().map(|piece| piece.label).collect();
    let [mask, paper] = ink.cut_masks(group.area, &labels)?;
    let part = ink.grey.roi(group.area)?;
    let [paper_grey, ..] = opencv::core::mean(&part, &paper)?.0;
    let [ink_grey, ..] = opencv::core::mean(&part, &mask)?.0;
    if paper_grey - ink_grey < MIN_CONTRAST {
        return Ok(false);
    }
    let (width, height) = (group.area.width, group.area.height);
    if width < 2 || height < 2 {
        return Ok(false);
    }
    let before = Rect::new(0, 0, width - 1, height);
    let across = count_beginnings(&mask, before, Rect::new(1, 0, width - 1, height))?;
    let above = Rect::new(0, 0, width, height - 1);
    let down = count_beginnings(&mask, above, Rect::new(0, 1, width, height - 1))?;
    let columns: f32 = group.members.iter().map(|piece| to_f32(piece.area.width)).sum();
    Ok(across >= MIN_STROKES_ACROSS * to_f32(height)
        && down >= MIN_STROKES_DOWN * columns
        && one_way_share(&mask)? < MAX_ONE_WAY_SHARE)
}

/// Pixels of ink in the area `to` with paper at the same position in `from`.
fn count_beginnings(mask: &Mat, from: Rect, to: Rect) -> Result<f32, OpenCvError> {
    let (mut other, mut begun) = (Mat::default(), Mat::default());
    opencv::core::bitwise_not(&mask.roi(from)?, &mut other, &opencv::core::no_array())?;
    let ends = mask.roi(to)?;
    opencv::core::bitwise_and(&other, &ends, &mut begun, &opencv::core::no_array())?;
    Ok(to_f32(opencv::core::count_non_zero(&begun)?))
}

/// The largest share of the edges that runs in one of eight directions.
fn one_way_share(mask: &Mat) -> Result<f32, OpenCvError> {
    let border = opencv::core::BORDER_CONSTANT;
    let (mut across, mut down) = (Mat::default(), Mat::default());
    imgproc::sobel(mask, &mut across, CV_32F, 1, 0, 3, 1.0, 0.0, border)?;
    imgproc::sobel(mask, &mut down, CV_32F, 0, 1, 3, 1.0, 0.0, border)?;
    let mut counts = [0_u32; 8];
    for y in 0..mask.rows() {
        for (x, y) in across.at_row::<f32>(y)?.iter().zip(down.at_row::<f32>(y)?) {
            if x.abs() + y.abs() >= 1.0 {
                let turn = y.atan2(*x).rem_euclid(std::f32::consts::PI) / std::f32::consts::PI;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "0 to 8"
                )]
                let bin = (turn * 8.0 + 0.5) as usize % 8;
                if let Some(count) = counts.get_mut(bin) {
                    *count += 1;
                }
            }
        }
    }
    let all: u32 = counts.iter().sum();
    let most = counts.iter().max().copied().unwrap_or_default();
    let [most, all] = [most, all.max(1)].map(|it| i32::try_from(it).unwrap_or(i32::MAX));
    Ok(to_f32(most) / to_f32(all))
}
