//! The letters of a page as boxes: connected pieces of ink that have about the size of a letter.

use opencv::core::{self, Mat};
use opencv::prelude::*;
use opencv::{Result, imgproc};

/// Sides of a letter in measured pixels.
const SIDE_PIXELS: std::ops::RangeInclusive<i32> = 4..=200;
/// How much longer than wide a letter may be, either way: `l`, `i`, and a few that touch.
const MAX_ASPECT: i32 = 8;
/// Ink pixels of a letter, at least.
const MIN_INK_PIXELS: i32 = 8;
/// Ink pixels of a speck, at most.
const MAX_SPECK_PIXELS: i32 = 4;
/// Clear pixels on each side of a speck: the dot of an i is nearer to its stem than this.
const MIN_SPECK_CLEARANCE: i32 = 4;

/// The box around a connected piece of ink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InkBox {
    pub left: i32,
    pub top: i32,
    pub width: i32,
    pub height: i32,
}

impl InkBox {
    /// The same box after a quarter turn clockwise of a page of `height` rows.
    pub(super) fn turned(self, height: i32) -> Self {
        let left = height - self.top - self.height;
        Self { left, top: self.left, width: self.height, height: self.width }
    }

    /// The same box with rows and columns exchanged.
    pub(super) fn transposed(self) -> Self {
        Self { left: self.top, top: self.left, width: self.height, height: self.width }
    }
}

/// Connected pieces of a page's ink.
pub(crate) struct InkPieces {
    pub glyphs: Vec<InkBox>,
    /// Isolated tiny pieces.
    pub specks: usize,
}

/// Sorts the pieces of `ink` (255 where there is ink, else 0).
pub(super) fn sort_pieces(ink: &Mat) -> Result<InkPieces> {
    let (mut labels, mut stats, mut centroids) = (Mat::default(), Mat::default(), Mat::default());
    imgproc::connected_components_with_stats(
        ink,
        &mut labels,
        &mut stats,
        &mut centroids,
        8,
        core::CV_32S,
    )?;
    let (mut glyphs, mut specks) = (Vec::new(), Vec::new());
    // Each row: left, top, width, height, ink; the first is the paper.
    for row in stats.data_typed::<i32>()?.chunks_exact(5).skip(1) {
        let &[left, top, width, height, ink] = row else { continue };
        let glyph = InkBox { left, top, width, height };
        if ink <= MAX_SPECK_PIXELS {
            specks.push(glyph);
        } else if ink >= MIN_INK_PIXELS
            && SIDE_PIXELS.contains(&width.max(height))
            && width < height * MAX_ASPECT
            && height < width * MAX_ASPECT
        {
            glyphs.push(glyph);
        }
    }
    Ok(InkPieces { glyphs, specks: count_isolated(ink, &specks)? })
}

/// How many of the specks have no other ink around them.
fn count_isolated(ink: &Mat, specks: &[InkBox]) -> Result<usize> {
    let mut count = 0;
    let page = core::Rect::new(0, 0, ink.cols(), ink.rows());
    for speck in specks {
        let around = core::Rect::new(
            speck.left - MIN_SPECK_CLEARANCE,
            speck.top - MIN_SPECK_CLEARANCE,
            speck.width + 2 * MIN_SPECK_CLEARANCE,
            speck.height + 2 * MIN_SPECK_CLEARANCE,
        ) & page;
        let nearby = core::count_non_zero(&ink.roi(around)?)?;
        count += usize::from(nearby <= MAX_SPECK_PIXELS);
    }
    Ok(count)
}

/// The median of the glyphs' sides that `side` names, in measured pixels; 0 of none.
pub(super) fn median_side(glyphs: &[InkBox], side: impl Fn(&InkBox) -> i32) -> f32 {
    let mut sides: Vec<i32> = glyphs.iter().map(side).collect();
    sides.sort_unstable();
    let middle = sides.get(sides.len() / 2).copied().unwrap_or(0);
    u16::try_from(middle).map_or(0.0, f32::from)
}
