//! Where lines of text are.
//!
//! The page is scaled to the size at which the network detects text best and passes it in
//! overlapping tiles, so that memory does not grow with the page. The output for a pixel depends on
//! some dozen pixels around it, so only the inside of each tile is taken. [`super::line_box`] makes
//! boxes of the output, one probability for each pixel.

use std::ops::Range;

use opencv::core::{Mat, Size};
use opencv::prelude::*;
use ort::environment::Environment;

use super::line_box::{LineBox, find_boxes};
use super::network::{NetworkInput, NeuralNetwork};
use super::pixels::{self, LevelScale};
use crate::image::opencv_mat::{OpenCvError, PixelMatrix};
use docmill_core::fault::Result;

/// Minimum of the shorter side of a page given to the network, in pixels; ...
const SHORTER_SIDE: f32 = 736.0;
/// ... maximum of the longer side; ...
const LONGER_SIDE: f32 = 2016.0;
/// ... its length where half of it exceeds this, as with A4 at 300 dpi: letters are large there.
const HALVED_SIDE: f32 = 1440.0;
/// Maximum pixels of a strip, which is scaled by its shorter side only.
const MAX_PIXELS: f32 = 8_000_000.0;
const STRIP: f32 = 3.0;
/// Maximum enlargement of a page.
const MAX_ENLARGED: f32 = 4.0;
/// Sides of a tile, and how far two of them overlap; both multiples of what the network divides by.
const TILE: usize = 640;
const OVERLAP: usize = 128;
const STRIDE: usize = 32;
/// Input scaling of the network's training, for blue, green and red.
const SCALES: [LevelScale; 3] = [
    LevelScale { mean: 0.485, deviation: 0.229 },
    LevelScale { mean: 0.456, deviation: 0.224 },
    LevelScale { mean: 0.406, deviation: 0.225 },
];

/// Finds lines on pages.
pub(super) struct LineDetector {
    network: NeuralNetwork,
}

impl LineDetector {
    /// Loads the network from the bytes of its file.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(super) fn load(runtime: &Environment, bytes: &[u8]) -> Result<Self> {
        Ok(Self { network: NeuralNetwork::load(runtime, "detector", bytes)? })
    }

    /// The lines on `page`, in no order; boxes in its pixels.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn find_lines(&mut self, page: &impl PixelMatrix) -> Result<Vec<LineBox>> {
        let size = viewing_size(page);
        let view = pixels::resize_mat(page, size).map_err(OpenCvError::from)?;
        let map = self.probability_map(&view)?;
        let scale = (
            pixels::side_to_f32(page.cols()) / pixels::side_to_f32(size.width),
            pixels::side_to_f32(page.rows()) / pixels::side_to_f32(size.height),
        );
        Ok(find_boxes(&map, scale).map_err(OpenCvError::from)?)
    }

    /// Probability of text for each pixel of `view`, 0 to 255.
    fn probability_map(&mut self, view: &Mat) -> Result<Mat> {
        let grey = view.data_bytes().map_err(OpenCvError::from)?;
        let mut map = ProbabilityMap::empty(view);
        for rows in tile_ranges(map.height) {
            for columns in tile_ranges(map.width) {
                let tile = ViewTile { rows: rows.clone(), columns };
                let input = tile_input(grey, map.width, &tile.rows, &tile.columns);
                let output = self.network.run(&input)?;
                map.write_inside(&tile, &output.values);
            }
        }
        let map = Mat::new_rows_cols_with_data(view.rows(), view.cols(), &map.shares);
        Ok(map.and_then(|map| map.try_clone()).map_err(OpenCvError::from)?)
    }
}

/// How surely each pixel of a view is text.
struct ProbabilityMap {
    width: usize,
    height: usize,
    /// Row by row, of 255.
    shares: Vec<u8>,
}

/// A part of the view that the network sees at once.
struct ViewTile {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl ProbabilityMap {
    /// Of a view of which nothing is known yet.
    fn empty(view: &Mat) -> Self {
        let (width, height) = (pixels::side(view.cols()), pixels::side(view.rows()));
        Self { width, height, shares: vec![0; width * height] }
    }

    /// Writes the inside of `tile` from `values`, one for each of its pixels: all but half of each
    /// overlap.
    fn write_inside(&mut self, tile: &ViewTile, values: &[f32]) {
        let across = tile.columns.len();
        let rows = inside(&tile.rows, self.height);
        let columns = inside(&tile.columns, self.width);
        for y in rows {
            let from = (y - tile.rows.start) * across + columns.start - tile.columns.start;
            let to = y * self.width + columns.start;
            let values = values.get(from..from + columns.len()).unwrap_or_default();
            let places = self.shares.get_mut(to..to + columns.len()).unwrap_or_default();
            for (place, value) in places.iter_mut().zip(values) {
                *place = pixels::to_byte(value * 255.0);
            }
        }
    }
}

/// Of a tile's range what no other tile sees better.
fn inside(range: &Range<usize>, length: usize) -> Range<usize> {
    let start = if range.start == 0 { 0 } else { range.start + OVERLAP / 2 };
    let end = if range.end == length { length } else { range.end - OVERLAP / 2 };
    start..end
}

/// Ranges of at most [`TILE`] that cover `length`, a multiple of [`STRIDE`], and overlap by
/// [`OVERLAP`]; of about equal lengths.
fn tile_ranges(length: usize) -> Vec<Range<usize>> {
    let beyond = length.saturating_sub(OVERLAP);
    let count = beyond.div_ceil(TILE - OVERLAP).max(1);
    let step = beyond.div_ceil(count).next_multiple_of(STRIDE);
    (0..count).map(|n| n * step..((n + 1) * step + OVERLAP).min(length)).collect()
}

fn tile_input(
    grey: &[u8],
    width: usize,
    rows: &Range<usize>,
    columns: &Range<usize>,
) -> NetworkInput {
    let mut values = Vec::with_capacity(3 * rows.len() * columns.len());
    for scale in SCALES {
        for y in rows.clone() {
            let row = grey.get(y * width + columns.start..y * width + columns.end);
            values.extend(row.unwrap_or_default().iter().map(|level| scale.value(*level)));
        }
    }
    NetworkInput { shape: [1, 3, rows.len(), columns.len()], values }
}

/// The size at which a page is looked at; both sides multiples of [`STRIDE`].
fn viewing_size(page: &impl PixelMatrix) -> Size {
    let (width, height) = (pixels::side_to_f32(page.cols()), pixels::side_to_f32(page.rows()));
    let (shorter, longer) = (width.min(height), width.max(height));
    let mut scale = (SHORTER_SIDE / shorter).clamp(1.0, MAX_ENLARGED);
    if longer > STRIP * shorter {
        scale = scale.min((MAX_PIXELS / (width * height)).sqrt());
    } else {
        let longest = if longer > 2.0 * HALVED_SIDE { HALVED_SIDE } else { LONGER_SIDE };
        scale = scale.min(longest / longer);
    }
    let [width, height] =
        [width, height].map(|side| pixels::to_i32((side * scale / 32.0).round().max(1.0)) * 32);
    Size::new(width, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_pixel_once_and_none_is_larger_than_memory_allows() {
        for length in (1..400).map(|strides| strides * STRIDE) {
            let tiles = tile_ranges(length);
            assert!(tiles.iter().all(|tile| tile.len() <= TILE && tile.len() % STRIDE == 0));
            let mut next = 0;
            for tile in &tiles {
                let own = inside(tile, length);
                assert_eq!(own.start, next, "{length}: {tiles:?}");
                next = own.end;
            }
            assert_eq!(next, length, "{tiles:?}");
        }
    }

    #[test]
    fn every_page_is_looked_at_in_a_size_that_is_bounded() {
        #[rustfmt::skip]
        let table = [
            ("A4 at 300 dpi",    (2480, 3508), (1024, 1440)),
            ("A4 at 200 dpi",    (1654, 2339), (1440, 2016)),
            ("a small page",     (368, 500),   (736, 992)),
            ("one pixel high",   (2000, 1),    (8000, 32)),
            ("one pixel",        (1, 1),       (32, 32)),
        ];
        for (name, (width, height), most) in table {
            let page = Mat::zeros(height, width, opencv::core::CV_8U).unwrap().to_mat().unwrap();
            let Size { width, height } = viewing_size(&page);
            assert!(width <= most.0 && height <= most.1, "{name}: {width} x {height}");
            assert!(width >= 32 && height >= 32 && width % 32 == 0 && height % 32 == 0, "{name}");
            let pixels = pixels::side_to_f32(width) * pixels::side_to_f32(height);
            assert!(pixels <= 1.1 * MAX_PIXELS, "{name}: {pixels}");
        }
    }
}
