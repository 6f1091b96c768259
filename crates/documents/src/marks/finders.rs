//! The three finder patterns of a QR code: a ring of ink around a stone of ink, 1, 1, 3, 1 and 1
//! modules wide across.
//!
//! The decoding crate compares each pattern with each pair of others. So the patterns that it would
//! find on a part of the page are counted first, by its own rules.

use std::collections::HashSet;

use docmill_core::model::BoundingBox;

use super::ink::{InkPiece, InkRun, PageInk};
use super::ruling_removal::to_f32;

const MIN_SIDE_PIXELS: i32 = 7;
const MAX_FINDERS: usize = 600;
/// Patterns of like size around each.
const MAX_NEIGHBOURS: usize = 24;
const MAX_TRIPLES: usize = 2_000;
/// Modules between the middles of two patterns: of the smallest code and of the largest.
const MIN_MODULES: f32 = 12.0;
const MAX_MODULES: f32 = 185.0;

/// A finder pattern, in the corner of a code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CornerFinder {
    /// Its middle.
    pub(super) x: f32,
    pub(super) y: f32,
    /// Width of a module.
    pub(super) module: f32,
}

/// Three patterns in the positions of those of a code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FinderTriple {
    /// The one between the others, and those.
    corner: CornerFinder,
    arms: [CornerFinder; 2],
    /// Indexes of the three.
    pub(super) members: [usize; 3],
}

impl FinderTriple {
    /// The smallest box around the code, with its margin.
    pub(super) fn area(&self) -> BoundingBox {
        let [one, other] = self.arms;
        let fourth = (one.x + other.x - self.corner.x, one.y + other.y - self.corner.y);
        let all = [(self.corner.x, self.corner.y), (one.x, one.y), (other.x, other.y), fourth];
        let reach = 6.5 * self.corner.module.max(one.module).max(other.module);
        let (mut left, mut top, mut right, mut bottom) = (f32::MAX, f32::MAX, f32::MIN, f32::MIN);
        for (x, y) in all {
            (left, top) = (left.min(x), top.min(y));
            (right, bottom) = (right.max(x), bottom.max(y));
        }
        let (x, y) = (left - reach, top - reach);
        BoundingBox { x, y, w: right + reach - x, h: bottom + reach - y }
    }

    fn span(&self) -> f32 {
        let [one, other] = self.arms;
        distance(self.corner, one) + distance(self.corner, other)
    }
}

/// The corner patterns of a page, from the top, at most [`MAX_FINDERS`]: pieces of ink about as
/// high as wide with another one in their middle.
pub(super) fn find_finders(ink: &PageInk) -> Vec<CornerFinder> {
    let mut found = Vec::new();
    for (label, ring) in ink.pieces.iter().enumerate().skip(1) {
        let (small, large) = (ring.width.min(ring.height), ring.width.max(ring.height));
        if small < MIN_SIDE_PIXELS || small * 10 < large * 7 {
            continue;
        }
        let (x, y) = (ring.left + ring.width / 2, ring.top + ring.height / 2);
        let middle = ink.label_at(x, y);
        let Some(stone) = ink.piece(middle).filter(|_| middle != 0 && middle != label) else {
            continue;
        };
        if is_stone(ring, stone) {
            found.push(placed(*ring));
        }
        if found.len() == MAX_FINDERS {
            break;
        }
    }
    found
}

/// Whether a piece has the size and place of the stone in a ring.
fn is_stone(ring: &InkPiece, stone: InkPiece) -> bool {
    let share = i64::from(stone.count) * 100 / i64::from(ring.count.max(1));
    (11..70).contains(&share)
        && is_centred((ring.left, ring.width), (stone.left, stone.width))
        && is_centred((ring.top, ring.height), (stone.top, stone.height))
}

/// Whether `stone` lies within `ring`, about in its middle; start and length of both.
fn is_centred(ring: (i32, i32), stone: (i32, i32)) -> bool {
    let (before, behind) = (stone.0 - ring.0, ring.0 + ring.1 - stone.0 - stone.1);
    before > 0 && behind > 0 && (before - behind).abs() * 5 <= ring.1
}

/// Lower bound of the patterns that the decoding crate may find on a part of a page, counted up to
/// one more than `most`. It searches along rows, for rings of any outline.
pub(super) fn count_patterns(part: &PageInk, most: usize) -> usize {
    let mut known: HashSet<(usize, usize)> = HashSet::new();
    for y in 0..part.height() {
        let mut scan = RunScan::default();
        for run in part.row(y) {
            known.extend(scan.take_in(run).and_then(|runs| pattern_at(part, &runs, y)));
        }
        if known.len() > most {
            break;
        }
    }
    known.len()
}

/// Where the ring begins, the stone and the ring's other side.
struct PatternRuns {
    left: i32,
    stone: i32,
    right: i32,
}

/// Where the last three runs of a row begin and end.
#[derive(Default)]
struct RunScan {
    ends: [i32; 6],
    count: usize,
}

impl RunScan {
    /// Takes in a run; the last ones, if they look like a pattern.
    fn take_in(&mut self, run: &InkRun) -> Option<PatternRuns> {
        let [_, _, a, b, c, d] = self.ends;
        self.ends = [a, b, c, d, run.from, run.to];
        self.count += 1;
        let widths = [b - a, c - b, d - c, run.from - d, run.to - run.from];
        let is_pattern = self.count >= 3 && is_pattern(widths);
        is_pattern.then_some(PatternRuns { left: a, stone: c, right: run.from })
    }
}

/// Widths of 1, 1, 3, 1 and 1, each off by three quarters of a module at most.
fn is_pattern(runs: [i32; 5]) -> bool {
    let [one, two, three, four, five] = runs;
    let average = (one + two + four + five) / 4;
    let off = average * 3 / 4;
    [one, two, three - 2 * average, four, five].iter().all(|run| (run - average).abs() <= off)
}

/// Ring and stone, if they are pieces of their own.
fn pattern_at(part: &PageInk, runs: &PatternRuns, y: i32) -> Option<(usize, usize)> {
    let ring = part.label_at(runs.left, y);
    let stone = part.label_at(runs.stone, y);
    if ring != part.label_at(runs.right, y) || ring == stone {
        return None;
    }
    let (around, within) = (part.piece(ring)?, part.piece(stone)?);
    let share = i64::from(within.count) * 100 / i64::from(around.count.max(1));
    (11..70).contains(&share).then_some((ring, stone))
}

fn placed(ring: InkPiece) -> CornerFinder {
    let x = to_f32(ring.left) + to_f32(ring.width) / 2.0;
    let y = to_f32(ring.top) + to_f32(ring.height) / 2.0;
    CornerFinder { x, y, module: to_f32(ring.width.max(ring.height)) / 7.0 }
}

fn distance(one: CornerFinder, other: CornerFinder) -> f32 {
    (one.x - other.x).hypot(one.y - other.y)
}

/// Every three patterns that may be those of one code, the closest ones first.
pub(super) fn group_finders(finders: &[CornerFinder]) -> Vec<FinderTriple> {
    let mut triples: Vec<FinderTriple> = Vec::new();
    for (at, corner) in finders.iter().enumerate() {
        let mut near: Vec<(usize, CornerFinder)> = finders
            .iter()
            .copied()
            .enumerate()
            .filter(|(other, finder)| *other != at && may_belong(*corner, *finder))
            .collect();
        near.sort_by(|one, other| distance(*corner, one.1).total_cmp(&distance(*corner, other.1)));
        near.truncate(MAX_NEIGHBOURS);
        for (index, (first, one)) in near.iter().enumerate() {
            for (second, other) in near.iter().skip(index + 1) {
                if is_square(*corner, *one, *other) {
                    let members = [at, *first, *second];
                    triples.push(FinderTriple { corner: *corner, arms: [*one, *other], members });
                }
            }
        }
    }
    triples.sort_by(|one, other| one.span().total_cmp(&other.span()));
    triples.truncate(MAX_TRIPLES);
    triples
}

/// Like size, and as far apart as a code is wide.
fn may_belong(one: CornerFinder, other: CornerFinder) -> bool {
    let (small, large) = (one.module.min(other.module), one.module.max(other.module));
    let modules = distance(one, other) / small.max(0.1);
    large < 1.6 * small && (MIN_MODULES..MAX_MODULES).contains(&modules)
}

/// Two arms of like length at about a right angle.
fn is_square(corner: CornerFinder, one: CornerFinder, other: CornerFinder) -> bool {
    let (first, second) = (distance(corner, one), distance(corner, other));
    let along =
        (one.x - corner.x) * (other.x - corner.x) + (one.y - corner.y) * (other.y - corner.y);
    let product = (first * second).max(1.0);
    (along / product).abs() < 0.26 && first.max(second) < 1.35 * first.min(second)
}
