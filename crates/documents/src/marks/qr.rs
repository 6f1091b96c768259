//! QR codes: from three finder patterns to the payload.
//!
//! The decoding crate gets only a piece of the page with few patterns, in black and white. So its
//! work is bounded, and a panic costs the code only.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rqrr::PreparedImage;

use opencv::core::Rect;

use super::finders::{CornerFinder, FinderTriple, count_patterns};
use super::ink::{PageInk, to_i32};
use crate::image::opencv_mat::OpenCvError;
use docmill_core::model::{BoundingBox, CodeSymbology, PageCode};

/// Codes of a page that are tried.
const MAX_TRIES: usize = 96;
/// Patterns on the piece of a page that is tried, the code's own included.
const MAX_PATTERNS: usize = 8;
/// The smallest code has 21 modules.
const MIN_SIDE_PIXELS: usize = 21;
/// Pixels of all pieces together: four times the largest page.
const MAX_PIXELS: i64 = 48_000_000;

/// Reads the codes, at most [`PageCode::MAX_PER_PAGE`]; boxes in pixels of the picture.
pub(super) fn read_codes(
    ink: &PageInk,
    finders: &[CornerFinder],
    triples: &[FinderTriple],
) -> Result<Vec<PageCode>, OpenCvError> {
    let mut codes: Vec<PageCode> = Vec::new();
    let mut used = vec![false; finders.len()];
    let (mut tries, mut pixels) = (0, 0);
    for triple in triples {
        let is_used = triple.members.iter().any(|at| used.get(*at).copied().unwrap_or(true));
        let piece = CodePiece::of_area(ink, triple.area());
        if is_used {
            continue;
        }
        (tries, pixels) = (tries + 1, pixels + piece.pixels());
        if tries > MAX_TRIES || pixels > MAX_PIXELS || codes.len() == PageCode::MAX_PER_PAGE {
            break;
        }
        let read = piece.read(ink)?;
        if read.is_empty() {
            continue;
        }
        for at in triple.members {
            if let Some(taken) = used.get_mut(at) {
                *taken = true;
            }
        }
        for code in read {
            let is_known = codes.iter().any(|known| is_same(known, &code));
            if !is_known && codes.len() < PageCode::MAX_PER_PAGE {
                codes.push(code);
            }
        }
    }
    Ok(codes)
}

/// Whether a code was read twice, as a part of two pieces.
fn is_same(one: &PageCode, other: &PageCode) -> bool {
    let (a, b) = (one.bounding_box, other.bounding_box);
    let middle = (b.x + b.w / 2.0, b.y + b.h / 2.0);
    one.payload == other.payload
        && (a.x..a.right()).contains(&middle.0)
        && (a.y..a.bottom()).contains(&middle.1)
}

/// A piece of a page.
#[derive(Clone, Copy)]
struct CodePiece {
    left: i32,
    top: i32,
    width: i32,
    height: i32,
}

impl CodePiece {
    #[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
    fn of_area(ink: &PageInk, area: BoundingBox) -> Self {
        let (left, top) = ((area.x as i32).max(0), (area.y as i32).max(0));
        let right = (area.right() as i32).min(ink.width());
        let bottom = (area.bottom() as i32).min(ink.height());
        Self { left, top, width: (right - left).max(0), height: (bottom - top).max(0) }
    }

    fn pixels(self) -> i64 {
        i64::from(self.width) * i64::from(self.height)
    }

    /// The codes on it.
    fn read(self, ink: &PageInk) -> Result<Vec<PageCode>, OpenCvError> {
        let sides = (usize::try_from(self.width), usize::try_from(self.height));
        let (Ok(width), Ok(height)) = sides else { return Ok(Vec::new()) };
        if width.min(height) < MIN_SIDE_PIXELS {
            return Ok(Vec::new());
        }
        let part = ink.cut_out(Rect::new(self.left, self.top, self.width, self.height))?;
        if count_patterns(&part, MAX_PATTERNS) > MAX_PATTERNS {
            return Ok(Vec::new());
        }
        let decoded = catch_unwind(AssertUnwindSafe(|| decode_grids(&part, width, height)));
        let decoded = decoded.unwrap_or_else(|_payload| {
            tracing::debug!("decoding a code panicked; the code is left out");
            Vec::new()
        });
        let mut codes = Vec::new();
        for (corners, bytes) in decoded {
            let area = self.area_on_page(corners, ink.scale);
            codes.extend(PageCode::from_bytes(CodeSymbology::Qr, bytes, area));
        }
        Ok(codes)
    }

    /// The box around corners within the piece, in pixels of the picture.
    #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
    fn area_on_page(self, corners: [(i32, i32); 4], scale: f32) -> BoundingBox {
        let (mut left, mut top, mut right, mut bottom) = (self.width, self.height, 0, 0);
        for (x, y) in corners {
            let (x, y) = (x.clamp(0, self.width), y.clamp(0, self.height));
            (left, top) = (left.min(x), top.min(y));
            (right, bottom) = (right.max(x), bottom.max(y));
        }
        BoundingBox {
            x: (self.left + left) as f32 * scale,
            y: (self.top + top) as f32 * scale,
            w: (right - left) as f32 * scale,
            h: (bottom - top) as f32 * scale,
        }
    }
}

/// Corners and bytes of each code on a part of a page.
type DecodedGrid = ([(i32, i32); 4], Vec<u8>);

fn decode_grids(part: &PageInk, width: usize, height: usize) -> Vec<DecodedGrid> {
    let mut prepared =
        PreparedImage::prepare_from_bitmap(width, height, |x, y| part.is_ink(to_i32(x), to_i32(y)));
    let mut decoded = Vec::new();
    for grid in prepared.detect_grids() {
        let mut bytes = Vec::new();
        if grid.decode_to(&mut bytes).is_ok() {
            decoded.push((grid.bounds.map(|corner| (corner.x, corner.y)), bytes));
        }
    }
    decoded
}
