//! Stamps, recognised by their form: a ring with letters along it, or a skewed frame with letters
//! in it. Precision over recall: uncertain marks are dropped.
//!
//! Not covered: upright frames, which may be fields and tables; rings in the letterhead, which are
//! badges; stamps without a frame, oval ones, and frames that are broken or joined to other lines.
//! Colour is not used: pages are read in grey.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind};
use opencv::core::{Point, Point2f, Rect, Vector};
use opencv::imgproc;

use super::ruling_removal::{PenPiece, UnruledInk, to_f32, to_pixels};
use crate::image::opencv_mat::OpenCvError;

/// Longer side of a stamp.
const LONG_SIDE_INCHES: std::ops::Range<f32> = 0.8..4.0;
const MIN_SHORT_SIDE_INCHES: f32 = 0.3;
const RADIUS_INCHES: std::ops::Range<f32> = 0.4..1.3;
/// Distance of the outline from its circle.
const MAX_OFF_CIRCLE_INCHES: f32 = 0.018;
/// Circles through three points of an outline that are tried.
const CIRCLE_TRIES: u32 = 150;
/// Directions from the middle, and the share of them in which there is outline.
const DIRECTIONS: u16 = 72;
const MIN_CLOSED_SHARE: f32 = 0.85;
/// Letters along a ring: their distance from the middle in radii, how many there are, and in how
/// many twelfths of the ring.
const RIM_RADII: std::ops::Range<f32> = 0.55..0.97;
const MIN_LETTERS: usize = 8;
const MIN_TWELFTHS: usize = 7;
/// Heights on the page, as a share. Rings above and below belong to its letterhead or foot.
const BODY_SHARES: std::ops::Range<f32> = 0.17..0.95;
const SKEW_DEGREES: std::ops::Range<f32> = 2.5..35.0;
const MIN_FRAMED_LETTERS: usize = 4;
/// A page with more pieces of a stamp's size has no stamps.
const MAX_CANDIDATES: usize = PageMark::MAX_PER_PAGE;

/// A circle in pixels of the ink.
#[derive(Debug, Clone, Copy)]
struct RingFit {
    x: f32,
    y: f32,
    radius: f32,
}

/// Stamps and rings of a page.
#[derive(Debug, Default)]
pub(super) struct StampForms {
    pub(super) stamps: Vec<PageMark>,
    /// Closed rings, badges among them, in pixels of the page's picture: letters along them are not
    /// handwriting.
    pub(super) rings: Vec<BoundingBox>,
}

/// The stamps.
///
/// # Errors
/// No memory.
pub(super) fn find_stamps(ink: &UnruledInk) -> Result<StampForms, OpenCvError> {
    let candidates = ink.pieces.iter().filter(|piece| has_stamp_size(piece, ink.inch));
    let candidates: Vec<&PenPiece> = candidates.take(MAX_CANDIDATES + 1).collect();
    let mut found = StampForms::default();
    if candidates.len() > MAX_CANDIDATES {
        return Ok(found);
    }
    for piece in candidates {
        let outline = trace_outline(ink, piece);
        let area = match fit_ring(&outline, ink.inch) {
            Some(ring) => {
                found.rings.push(ink.to_page(ring.area()));
                has_letters_along(ink, ring).then(|| ring.area())
            }
            None => is_askew_frame(ink, piece, &outline)?.then_some(piece.area),
        };
        if let Some(area) = area {
            let bounding_box = ink.to_page(area);
            found.stamps.push(PageMark { kind: PageMarkKind::Stamp, bounding_box });
        }
    }
    Ok(found)
}

fn has_stamp_size(piece: &PenPiece, inch: f32) -> bool {
    let (width, height) = (to_f32(piece.area.width), to_f32(piece.area.height));
    LONG_SIDE_INCHES.contains(&(width.max(height) / inch))
        && width.min(height) >= MIN_SHORT_SIDE_INCHES * inch
}

impl RingFit {
    fn area(self) -> Rect {
        let side = to_pixels(2.0 * self.radius);
        let (left, top) = (self.x - self.radius, self.y - self.radius);
        Rect::new(to_pixels(left), to_pixels(top), side, side)
    }

    fn distance(self, x: f32, y: f32) -> f32 {
        (x - self.x).hypot(y - self.y)
    }

    /// Which of so many equal parts of the circle lies in the direction of a point.
    fn sector(self, x: f32, y: f32, parts: u16) -> usize {
        let turn = (y - self.y).atan2(x - self.x) / std::f32::consts::TAU + 0.5;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "parts")]
        let part = (turn * f32::from(parts)) as usize;
        part % usize::from(parts)
    }
}

/// The outermost pixels of a piece in each row and each column.
fn trace_outline(ink: &UnruledInk, piece: &PenPiece) -> Vec<Point> {
    let area = piece.area;
    let mut outline = Vec::new();
    let mut columns: Vec<Option<(i32, i32)>> = vec![None; ink.row_of(area, area.y).len()];
    for y in area.y..area.y + area.height {
        let (mut first, mut last) = (None, None);
        let row = (area.x..).zip(ink.row_of(area, y)).zip(&mut columns);
        for ((x, _), ends) in row.filter(|((_, label), _)| **label == piece.label) {
            first = first.or(Some(x));
            last = Some(x);
            *ends = Some((ends.map_or(y, |(top, _)| top), y));
        }
        outline.extend(first.into_iter().chain(last).map(|x| Point::new(x, y)));
    }
    for (x, ends) in (area.x..).zip(columns) {
        outline.extend(
            ends.into_iter().flat_map(|(top, bottom)| [top, bottom]).map(|y| Point::new(x, y)),
        );
    }
    outline
}

/// The circle that most of an outline lies on, if it is closed (RANSAC, because letters that touch
/// a stamp are part of its outline). The random sequence is fixed.
fn fit_ring(outline: &[Point], inch: f32) -> Option<RingFit> {
    let mut seed = 0x2545_f491_u32;
    let mut best: Option<(f32, RingFit)> = None;
    for _ in 0..CIRCLE_TRIES {
        let mut points = [(0.0, 0.0); 3];
        for point in &mut points {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let drawn = outline.get((seed >> 8) as usize % outline.len().max(1))?;
            *point = (to_f32(drawn.x), to_f32(drawn.y));
        }
        let ring = circle_through(points);
        let Some(ring) = ring.filter(|ring| RADIUS_INCHES.contains(&(ring.radius / inch))) else {
            continue;
        };
        let closed = closed_share(outline, ring, MAX_OFF_CIRCLE_INCHES * inch);
        if best.is_none_or(|(share, _)| closed > share) {
            best = Some((closed, ring));
        }
    }
    best.filter(|(share, _)| *share >= MIN_CLOSED_SHARE).map(|(_, ring)| ring)
}

fn circle_through([(ax, ay), (bx, by), (cx, cy)]: [(f32, f32); 3]) -> Option<RingFit> {
    let twice = 2.0 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by));
    if twice.abs() < 1.0 {
        return None;
    }
    let (a, b, c) = (ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy);
    let x = (a * (by - cy) + b * (cy - ay) + c * (ay - by)) / twice;
    let y = (a * (cx - bx) + b * (ax - cx) + c * (bx - ax)) / twice;
    Some(RingFit { x, y, radius: (ax - x).hypot(ay - y) })
}

/// The share of directions in which the outline lies on the circle.
fn closed_share(outline: &[Point], ring: RingFit, off: f32) -> f32 {
    let mut seen = [false; DIRECTIONS as usize];
    for point in outline {
        let (x, y) = (to_f32(point.x), to_f32(point.y));
        if (ring.distance(x, y) - ring.radius).abs() < off
            && let Some(seen) = seen.get_mut(ring.sector(x, y, DIRECTIONS))
        {
            *seen = true;
        }
    }
    let count = seen.iter().filter(|seen| **seen).count();
    f32::from(u16::try_from(count).unwrap_or(u16::MAX)) / f32::from(DIRECTIONS)
}

fn has_letters_along(ink: &UnruledInk, ring: RingFit) -> bool {
    let (rows, _) = ink.size();
    if !BODY_SHARES.contains(&(ring.y / to_f32(rows.max(1)))) {
        return false;
    }
    let mut twelfths = [false; 12];
    let mut letters = 0;
    for piece in &ink.pieces {
        let (x, y) = middle_of(piece.area);
        let side = to_f32(piece.area.width.max(piece.area.height)) / ring.radius;
        if (0.05..0.45).contains(&side) && RIM_RADII.contains(&(ring.distance(x, y) / ring.radius))
        {
            letters += 1;
            if let Some(seen) = twelfths.get_mut(ring.sector(x, y, 12)) {
                *seen = true;
            }
        }
    }
    letters >= MIN_LETTERS && twelfths.iter().filter(|seen| **seen).count() >= MIN_TWELFTHS
}

/// Whether the piece runs along all four sides of a rectangle that is skewed, with letters in it.
fn is_askew_frame(
    ink: &UnruledInk,
    piece: &PenPiece,
    outline: &[Point],
) -> Result<bool, OpenCvError> {
    let frame = imgproc::min_area_rect(&Vector::<Point>::from_slice(outline))?;
    let (long, short) =
        (frame.size.width.max(frame.size.height), frame.size.width.min(frame.size.height));
    let turned = ((frame.angle + 45.0).rem_euclid(90.0) - 45.0).abs();
    if !SKEW_DEGREES.contains(&turned)
        || !LONG_SIDE_INCHES.contains(&(long / ink.inch))
        || short < MIN_SHORT_SIDE_INCHES * ink.inch
    {
        return Ok(false);
    }
    let mut corners = [Point2f::default(); 4];
    frame.points(&mut corners)?;
    let ends = corners.iter().zip(corners.iter().cycle().skip(1));
    if !ends.clone().all(|(from, to)| side_share(ink, piece.label, *from, *to) >= MIN_CLOSED_SHARE)
    {
        return Ok(false);
    }
    let (sin, cos) = frame.angle.to_radians().sin_cos();
    let mut letters = 0;
    for other in &ink.pieces {
        let (x, y) = middle_of(other.area);
        let (x, y) = (x - frame.center.x, y - frame.center.y);
        let (along, beside) = (x * cos + y * sin, y * cos - x * sin);
        let side = to_f32(other.area.width.max(other.area.height)) / short;
        letters += usize::from(
            (0.05..0.6).contains(&side)
                && along.abs() < 0.48 * frame.size.width
                && beside.abs() < 0.48 * frame.size.height,
        );
    }
    Ok(letters >= MIN_FRAMED_LETTERS)
}

/// The share of a side near which there is ink of the piece.
fn side_share(ink: &UnruledInk, label: i32, from: Point2f, to: Point2f) -> f32 {
    let near = to_pixels(0.02 * ink.inch).max(2);
    let steps = to_pixels((to.x - from.x).hypot(to.y - from.y)).max(1);
    let mut drawn = 0;
    for step in 0..steps {
        let part = to_f32(step) / to_f32(steps);
        let x = to_pixels(from.x + (to.x - from.x) * part);
        let y = to_pixels(from.y + (to.y - from.y) * part);
        drawn += i32::from(
            (y - near..=y + near)
                .any(|y| (x - near..=x + near).any(|x| ink.label_at(x, y) == label)),
        );
    }
    to_f32(drawn) / to_f32(steps)
}

fn middle_of(area: Rect) -> (f32, f32) {
    (to_f32(area.x) + to_f32(area.width) / 2.0, to_f32(area.y) + to_f32(area.height) / 2.0)
}
