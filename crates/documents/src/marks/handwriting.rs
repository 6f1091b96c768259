//! What was written by hand, and signatures, told from print by the ink: letters that are joined, strokes of
//! one pen, a height that print around does not have, and no word there that was read surely.
//!
//! A signature is such writing below words that end a letter or beside a word for signatures, in the eleven
//! languages of layouts. Rather none than one that is none: pages that were read badly have none, because
//! print that nobody can read looks alike; letters that stand alone, as in block writing, are not told, and
//! neither are digits by hand, ticks and words that were read.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind, TextLine, TextWord};
use opencv::core::{CV_32F, Mat, Rect};
use opencv::imgproc;
use opencv::prelude::*;

use super::ruling_removal::{PenPiece, UnruledInk, box_of, to_f32};
use crate::image::opencv_mat::OpenCvError;

/// A word that is read at least this surely is print.
const SURE: f32 = 0.7;
/// So many of them have to be on a page, and so large a share of its words.
const MIN_SURE: usize = 8;
const SURE_SHARE: f32 = 0.6;
/// Share of a piece that such words cover at most, and of a whole piece of writing.
const READ: f32 = 0.35;
const READ_OF_ALL: f32 = 0.25;
/// Pieces of a page that are looked at. A page with more is no page of print.
const MAX_PIECES: usize = 3000;
/// Pieces closer than this, in heights of a word, stand together.
const TOGETHER: f32 = 0.9;
/// Share of the ink in pieces as wide as joined letters, and how wide these are in heights of a word.
const JOINED: f32 = 0.66;
const JOINED_WIDTH: f32 = 3.0;
/// Widest stroke, as it is measured, in inches.
const STROKE: f32 = 0.065;
/// Share of its box that is ink.
const FILLED: std::ops::Range<f32> = 0.03..0.45;
/// Largest share of its edges that runs in one of eight directions.
const ONE_WAY: f32 = 0.47;
/// Strokes that a column and a row cross on average.
const STROKES_DOWN: f32 = 1.15;
const STROKES_ACROSS: f32 = 3.0;
/// By how much it is darker than the paper around it.
const CONTRAST: f64 = 45.0;
/// Pieces of a group that lie within its largest one: in a badge or a drawing there are more.
const MAX_WITHIN: usize = 3;
/// Sizes in inches; the least height is in heights of a word.
const WIDTHS: std::ops::Range<f32> = 0.4..4.5;
const MAX_HEIGHT: f32 = 1.6;
const MIN_HEIGHT: f32 = 0.9;
/// Least height of a signature.
const SIGNATURE_HEIGHT: f32 = 1.5;

/// Words beside a line to be signed on.
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
/// Words that end a letter.
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

/// Words of a page in pixels of what was looked at.
struct ReadWords<'a> {
    all: Vec<(&'a TextWord, BoundingBox)>,
    /// Height of those that were read surely.
    height: f32,
}

/// Pieces that stand together.
struct PenGroup {
    area: Rect,
    members: Vec<PenPiece>,
}

/// What was written by hand, from the top; `lines` and the places in pixels of the page's picture, `taken`
/// what something else was found to be.
///
/// # Errors
/// No memory.
pub(super) fn find_hands(
    ink: &UnruledInk,
    lines: &[TextLine],
    taken: &[BoundingBox],
) -> Result<Vec<PageMark>, OpenCvError> {
    let Some(words) = ReadWords::from_lines(lines, ink.scale) else { return Ok(Vec::new()) };
    let taken: Vec<BoundingBox> = taken.iter().map(|area| shrunk(area, ink.scale)).collect();
    let mut found = Vec::new();
    for group in group_pieces(words.unread_pieces(ink, &taken), TOGETHER * words.height) {
        if found.len() < PageMark::MAX_PER_PAGE
            && words.may_be_hand(&group, ink.inch)
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
    /// `None` of a page that was not read well enough.
    fn from_lines(lines: &'a [TextLine], scale: f32) -> Option<Self> {
        let words = lines.iter().flat_map(|line| &line.words);
        let all: Vec<_> = words.map(|word| (word, shrunk(&word.bounding_box, scale))).collect();
        let counts = all.iter().filter(|(word, _)| is_word(word)).count();
        let mut heights: Vec<f32> =
            all.iter().filter(|(word, _)| is_sure(word)).map(|(_, area)| area.h).collect();
        heights.sort_by(f32::total_cmp);
        let share = SURE_SHARE * to_f32(i32::try_from(counts).unwrap_or(i32::MAX));
        let sure = to_f32(i32::try_from(heights.len()).unwrap_or(i32::MAX));
        let height = heights.get(heights.len() / 2).copied().filter(|height| *height >= 4.0)?;
        (heights.len() >= MIN_SURE && sure >= share).then_some(Self { all, height })
    }

    fn sure(&self) -> impl Iterator<Item = &BoundingBox> {
        self.all.iter().filter(|(word, _)| is_sure(word)).map(|(_, area)| area)
    }

    fn read_share(&self, area: &BoundingBox) -> f32 {
        let covered: f32 = self.sure().map(|word| word.shared_area(area)).sum();
        covered / (area.w * area.h).max(f32::MIN_POSITIVE)
    }

    /// The pieces as large as letters or larger that nobody read; none if there are too many.
    fn unread_pieces(&self, ink: &UnruledInk, taken: &[BoundingBox]) -> Vec<PenPiece> {
        let is_candidate = |piece: &&PenPiece| {
            let Rect { width, height, .. } = piece.area;
            let area = box_of(piece.area);
            let in_taken = |place: &BoundingBox| place.shared_area(&area) > 0.5 * area.w * area.h;
            to_f32(height) >= 0.35 * self.height
                && to_f32(piece.count) >= 0.02 * self.height * self.height
                && to_f32(width) <= WIDTHS.end * ink.inch
                && to_f32(height) <= 2.0 * ink.inch
                && !taken.iter().any(in_taken)
                && self.read_share(&area) < READ
        };
        let pieces: Vec<PenPiece> =
            ink.pieces.iter().filter(is_candidate).take(MAX_PIECES + 1).copied().collect();
        if pieces.len() > MAX_PIECES { Vec::new() } else { pieces }
    }

    /// By sizes and by what was read there.
    fn may_be_hand(&self, group: &PenGroup, inch: f32) -> bool {
        let area = box_of(group.area);
        let is_joined = |piece: &&PenPiece| {
            let (width, height) = (to_f32(piece.area.width), to_f32(piece.area.height));
            let is_low = width >= 1.6 * self.height && width >= 1.1 * height;
            is_low || width >= 2.0 * self.height && height >= 1.5 * self.height
        };
        let ink_of = |pieces: &mut dyn Iterator<Item = &PenPiece>| -> f32 {
            pieces.map(|piece| to_f32(piece.count)).sum()
        };
        let all = ink_of(&mut group.members.iter()).max(1.0);
        let joined = ink_of(&mut group.members.iter().filter(is_joined));
        let joined_width: f32 =
            group.members.iter().filter(is_joined).map(|piece| to_f32(piece.area.width)).sum();
        let weighed = group.members.iter().map(|piece| piece.stroke * to_f32(piece.count));
        let stroke = weighed.sum::<f32>() / all;
        WIDTHS.contains(&(area.w / inch))
            && area.h <= MAX_HEIGHT * inch
            && area.h >= MIN_HEIGHT * self.height
            && joined >= JOINED * all
            && joined_width >= JOINED_WIDTH * self.height
            && stroke <= STROKE * inch
            && FILLED.contains(&(all / (area.w * area.h)))
            && group.pieces_within_largest() <= MAX_WITHIN
            && self.read_share(&area) < READ_OF_ALL
            && !self.has_word_within(&area)
    }

    /// Whether a word that was read surely stands in its middle. Above and below are labels.
    fn has_word_within(&self, area: &BoundingBox) -> bool {
        let is_within = |word: &&BoundingBox| {
            let middle = (word.y + word.h / 2.0 - area.y) / area.h;
            word.shared_area(area) > 0.5 * word.w * word.h && (0.2..0.8).contains(&middle)
        };
        self.sure().any(|word| is_within(&word))
    }

    /// Whether what stands here stands where people sign.
    fn is_signed(&self, area: &BoundingBox, inch: f32) -> bool {
        let says = |list: &[&str], word: &TextWord| {
            let letters = word.text.chars().filter(|c| c.is_alphabetic());
            let text: String = letters.flat_map(char::to_lowercase).collect();
            list.contains(&text.as_str())
        };
        let is_label = |(word, place): &(&TextWord, BoundingBox)| {
            let apart = (place.x - area.right()).max(area.x - place.right());
            let above = area.bottom() - 0.4 * area.h - 0.3 * inch;
            let is_here = (above..area.bottom() + 0.55 * inch).contains(&place.y);
            let closes = (0.0..1.3 * inch).contains(&(area.y + area.h / 2.0 - place.y));
            is_sure(word)
                && apart < inch
                && (is_here && says(&SIGNED, word) || closes && says(&CLOSING, word))
        };
        area.h >= SIGNATURE_HEIGHT * self.height && self.all.iter().any(is_label)
    }
}

impl PenGroup {
    fn pieces_within_largest(&self) -> usize {
        let size = |piece: &&PenPiece| i64::from(piece.area.width) * i64::from(piece.area.height);
        let Some(largest) = self.members.iter().max_by_key(size) else { return 0 };
        let is_within = |piece: &&PenPiece| {
            piece.label != largest.label && (piece.area & largest.area) == piece.area
        };
        self.members.iter().filter(is_within).count()
    }
}

fn is_word(word: &TextWord) -> bool {
    word.text.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some()
}

fn is_sure(word: &TextWord) -> bool {
    word.confidence >= SURE && is_word(word)
}

fn shrunk(area: &BoundingBox, scale: f32) -> BoundingBox {
    area.scaled(1.0 / scale, 1.0 / scale)
}

/// Joins pieces side by side, whatever is between them in the list.
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
    let light = |mask: &Mat| {
        opencv::core::mean(&part, mask).map(|mean| {
            let [grey, ..] = mean.0;
            grey
        })
    };
    if light(&paper)? - light(&mask)? < CONTRAST {
        return Ok(false);
    }
    let beginnings = |from: Rect, to: Rect| -> Result<f32, OpenCvError> {
        let (mut other, mut begun) = (Mat::default(), Mat::default());
        opencv::core::bitwise_not(&mask.roi(from)?, &mut other, &opencv::core::no_array())?;
        let ends = mask.roi(to)?;
        opencv::core::bitwise_and(&other, &ends, &mut begun, &opencv::core::no_array())?;
        Ok(to_f32(opencv::core::count_non_zero(&begun)?))
    };
    let (width, height) = (group.area.width, group.area.height);
    if width < 2 || height < 2 {
        return Ok(false);
    }
    let across =
        beginnings(Rect::new(0, 0, width - 1, height), Rect::new(1, 0, width - 1, height))?;
    let down = beginnings(Rect::new(0, 0, width, height - 1), Rect::new(0, 1, width, height - 1))?;
    let columns: f32 = group.members.iter().map(|piece| to_f32(piece.area.width)).sum();
    Ok(across >= STROKES_ACROSS * to_f32(height)
        && down >= STROKES_DOWN * columns
        && one_way_share(&mask)? < ONE_WAY)
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
    let number = |count: u32| to_f32(i32::try_from(count).unwrap_or(i32::MAX));
    Ok(number(most) / number(all.max(1)))
}
