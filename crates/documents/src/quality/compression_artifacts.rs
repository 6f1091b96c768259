//! Artifacts of compression and scanning between the letters, where a page has no ink.
//!
//! JPEG codes squares of eight by eight pixels separately. Coarsely coded paper then has steps
//! where squares meet and is level within them: isolated steps lie on one column in eight. The
//! measure is how much more often they do than elsewhere, after Z. Fan and R. de Queiroz,
//! "Identification of bitmap compression history", IEEE Trans. Image Processing 12 (2003).
//!
//! Only pictures that were not scaled since have such squares.

use opencv::Result;
use opencv::core::{Mat, Rect};
use opencv::prelude::*;

use crate::image::opencv_mat::PixelMatrix;

/// Side of a square of JPEG.
const SQUARE: usize = 8;
/// Grey levels of a step, and of level paper beside it.
const STEP: u8 = 3;
const LEVEL: u8 = 1;
/// Added to the count, so that a handful of steps on a blank page means nothing: one in this many
/// pixels.
const FEW: usize = 20_000;

/// How many times as many lone steps lie on one column in eight, the fullest, as on the median of
/// the others; about 1 to 2 without coarse compression.
pub(super) fn measure_blockiness(page: &impl PixelMatrix, bands: &[Rect]) -> Result<f32> {
    let mut steps = [0_usize; SQUARE];
    let mut pixels = 0;
    for band in bands {
        let band: Mat = page.roi(*band)?.try_clone()?;
        for row in 0..band.rows() {
            let row = band.at_row::<u8>(row)?;
            pixels += row.len();
            count_lone_steps(row, &mut steps);
        }
    }
    steps.sort_unstable();
    let [_, _, _, median, _, _, _, fullest] = steps;
    let few = pixels / FEW / SQUARE + 1;
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts of pixels")]
    let ratio = fullest as f32 / (median + few) as f32;
    Ok(ratio)
}

/// Adds to `steps`, by their column modulo eight, the steps of `row` with level pixels on both
/// sides.
fn count_lone_steps(row: &[u8], steps: &mut [usize; SQUARE]) {
    for (column, pixels) in row.windows(4).enumerate() {
        let &[before, left, right, after] = pixels else { continue };
        let is_lone = left.abs_diff(right) >= STEP
            && before.abs_diff(left) <= LEVEL
            && right.abs_diff(after) <= LEVEL;
        if let (true, Some(count)) = (is_lone, steps.get_mut(column % SQUARE)) {
            *count += 1;
        }
    }
}
