//! QR codes: from three corner patterns to what the code says.
//!
//! The crate that reads them is shown only a piece of the page on which few patterns lie, as black and
//! white: what it does there is bounded, and a panic of it costs the code.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rqrr::PreparedImage;

use opencv::core::Rect;

use super::finders::{CornerFinder, FinderTriple, count_patterns};
use super::ink::PageInk;
use crate::image::opencv_mat::OpenCvError;
use docmill_core::model::{BoundingBox, CodeSymbology, PageCode};

/// Codes of a page that are tried.
const MAX_TRIES: usize = 96;
/// Patterns that may lie on the piece of a page that is tried, the code's own included.
const MAX_WITHIN: usize = 8;
/// Least side of a piece, in pixels: the smallest code has 21 modules.
const MIN_SIDE: usize = 21;
/// Pixels of all pieces together: so many as the largest page has four times.
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

    /// What the codes on it say.
    fn read(self, ink: &PageInk) -> Result<Vec<PageCode>, OpenCvError> {
        let sides = (usize::try_from(self.width), usize::try_from(self.height));
        let (Ok(width), Ok(height)) = sides else { return Ok(Vec::new()) };
        if width.min(height) < MIN_SIDE {
            return Ok(Vec::new());
        }
        let part = ink.cut_out(Rect::new(self.left, self.top, self.width, self.height))?;
        if count_patterns(&part, MAX_WITHIN) > MAX_WITHIN {
            return Ok(Vec::new());
        }
        let side = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
        let is_ink = |x: usize, y: usize| part.is_ink(side(x), side(y));
        let decode = || {
            let mut prepared = PreparedImage::prepare_from_bitmap(width, height, is_ink);
            let mut said = Vec::new();
            for grid in prepared.detect_grids() {
                let mut bytes = Vec::new();
                if grid.decode_to(&mut bytes).is_ok() {
                    said.push((grid.bounds.map(|corner| (corner.x, corner.y)), bytes));
                }
            }
            said
        };
        let said = catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_payload| {
            tracing::debug!("reading a code panicked; the page has it not");
            Vec::new()
        });
        let code = |(corners, bytes): ([(i32, i32); 4], Vec<u8>)| {
            let area = self.place_on_page(corners, ink.scale);
            PageCode::from_bytes(CodeSymbology::Qr, bytes, area)
        };
        Ok(said.into_iter().filter_map(code).collect())
    }

    /// The box around corners within the piece, in pixels of the picture.
    #[expect(clippy::cast_precision_loss, reason = "pixels of a side")]
    fn place_on_page(self, corners: [(i32, i32); 4], scale: f32) -> BoundingBox {
        let clamp = |at: i32, most: i32| at.clamp(0, most);
        let across = corners.map(|(x, _)| clamp(x, self.width));
        let down = corners.map(|(_, y)| clamp(y, self.height));
        let least = |values: [i32; 4]| values.into_iter().min().unwrap_or_default();
        let most = |values: [i32; 4]| values.into_iter().max().unwrap_or_default();
        let (left, top) = (least(across), least(down));
        BoundingBox {
            x: (self.left + left) as f32 * scale,
            y: (self.top + top) as f32 * scale,
            w: (most(across) - left) as f32 * scale,
            h: (most(down) - top) as f32 * scale,
        }
    }
}
