//! The ink of a page without its rulings, as connected pieces with the width of their strokes: what a pen
//! or a stamp left is one piece of it, even where it crosses a line to be signed on.

use opencv::core::{CV_8U, CV_32S, Mat, Point, Rect, Scalar, Size};
use opencv::imgproc;
use opencv::prelude::*;

use super::ink::{DARKER, SURROUNDINGS};
use crate::image::opencv_mat::{OpenCvError, shrink_mat, view_raster};
use crate::page::PageRaster;
use docmill_core::model::BoundingBox;

/// A picture of so many dots per inch or more is looked at smaller: at half of that a pen's stroke still has
/// two or three pixels.
const FINE_DPI: u32 = 250;
/// Pixels that are looked at: an A4 page just below that.
const MAX_PIXELS: u64 = 8_600_000;
/// Length of a ruling at least and thickness at most, in inches.
const RULING: f32 = 0.5;
const THICKNESS: f32 = 0.045;
/// Gaps in a ruling that count for nothing, in pixels.
const GAP: i32 = 5;
/// How far ink is followed across a ruling that was taken out, in inches.
const CROSSED: f32 = 0.035;

/// A connected piece of ink.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PenPiece {
    /// Its number among the labels.
    pub(super) label: i32,
    pub(super) area: Rect,
    /// Its pixels.
    pub(super) count: i32,
    /// How wide its strokes are, in pixels.
    pub(super) stroke: f32,
}

/// The ink without rulings.
pub(super) struct UnruledInk {
    /// The picture it is of.
    pub(super) grey: Mat,
    labels: Mat,
    pub(super) pieces: Vec<PenPiece>,
    /// Pixels of an inch.
    pub(super) inch: f32,
    /// How much larger the picture of the page is.
    pub(super) scale: f32,
}

impl UnruledInk {
    /// # Errors
    /// No memory.
    pub(super) fn from_raster(picture: &PageRaster) -> Result<Self, OpenCvError> {
        let pixels = u64::from(picture.width) * u64::from(picture.height);
        let is_small = |factor: &u8| {
            let factor = u32::from(*factor);
            picture.dpi / factor < FINE_DPI && pixels <= MAX_PIXELS * u64::from(factor * factor)
        };
        let factor = (1..=32_u8).find(is_small).unwrap_or(32);
        let grey = shrink_mat(&view_raster(picture)?, i32::from(factor))?;
        #[expect(clippy::cast_precision_loss, reason = "dots per inch")]
        let inch = picture.dpi.max(1) as f32 / f32::from(factor);
        let mut bits = Mat::default();
        let (mean, inverse) = (imgproc::ADAPTIVE_THRESH_MEAN_C, imgproc::THRESH_BINARY_INV);
        imgproc::adaptive_threshold(&grey, &mut bits, 255.0, mean, inverse, SURROUNDINGS, DARKER)?;
        let bits = without_rulings(&bits, inch)?;
        let (labels, pieces) = find_pieces(&bits)?;
        Ok(Self { grey, labels, pieces, inch, scale: f32::from(factor) })
    }

    /// Rows and columns of what was looked at.
    pub(super) fn size(&self) -> (i32, i32) {
        (self.labels.rows(), self.labels.cols())
    }

    /// The piece that a pixel is of; 0 is paper or beyond the picture.
    pub(super) fn label_at(&self, x: i32, y: i32) -> i32 {
        let row = self.labels.at_row::<i32>(y).ok();
        let at = usize::try_from(x).ok();
        row.zip(at).and_then(|(row, x)| row.get(x).copied()).unwrap_or_default()
    }

    /// The pieces that the pixels of a row within an area are of.
    pub(super) fn row_of(&self, area: Rect, y: i32) -> &[i32] {
        let row = self.labels.at_row::<i32>(y).unwrap_or_default();
        let ends = (usize::try_from(area.x), usize::try_from(area.x + area.width));
        let (Ok(from), Ok(to)) = ends else { return &[] };
        row.get(from..to).unwrap_or_default()
    }

    /// The ink of these pieces within an area, 255 on 0, and its paper alike.
    pub(super) fn cut_masks(&self, area: Rect, members: &[i32]) -> Result<[Mat; 2], OpenCvError> {
        let zeros = || Mat::new_size_with_default(area.size(), CV_8U, Scalar::all(0.0));
        let (mut ink, mut paper) = (zeros()?, zeros()?);
        for y in 0..area.height {
            let pixels = ink.at_row_mut::<u8>(y)?.iter_mut().zip(paper.at_row_mut::<u8>(y)?);
            for (label, (mark, blank)) in self.row_of(area, area.y + y).iter().zip(pixels) {
                *mark = if members.contains(label) { 255 } else { 0 };
                *blank = if *label == 0 { 255 } else { 0 };
            }
        }
        Ok([ink, paper])
    }

    /// A place in pixels of the page's picture.
    pub(super) fn to_page(&self, area: Rect) -> BoundingBox {
        box_of(area).scaled(self.scale, self.scale)
    }
}

/// A rectangle of pixels as a box.
#[expect(clippy::cast_precision_loss, reason = "pixels of a page")]
pub(super) fn box_of(area: Rect) -> BoundingBox {
    let length = |pixels: i32| pixels as f32;
    let (x, y) = (length(area.x), length(area.y));
    BoundingBox { x, y, w: length(area.width), h: length(area.height) }
}

/// Takes long thin lines along rows and columns out, and joins again what crosses them.
fn without_rulings(bits: &Mat, inch: f32) -> Result<Mat, OpenCvError> {
    let across = find_rulings(bits, inch, false)?;
    let down = find_rulings(bits, inch, true)?;
    let (mut both, mut rulings) = (Mat::default(), Mat::default());
    opencv::core::bitwise_or(&across, &down, &mut both, &opencv::core::no_array())?;
    let around = rectangle(3, 3)?;
    morph(&both, &mut rulings, imgproc::MORPH_DILATE, &around)?;
    let (mut others, mut left) = (Mat::default(), Mat::default());
    opencv::core::bitwise_not(&rulings, &mut others, &opencv::core::no_array())?;
    opencv::core::bitwise_and(bits, &others, &mut left, &opencv::core::no_array())?;
    let (mut closed, mut crossing) = (Mat::default(), Mat::default());
    let reach = to_pixels(CROSSED * inch).max(3) | 1;
    morph(&left, &mut closed, imgproc::MORPH_CLOSE, &rectangle(3, reach)?)?;
    opencv::core::bitwise_and(&closed, &rulings, &mut crossing, &opencv::core::no_array())?;
    opencv::core::bitwise_and(&crossing, bits, &mut closed, &opencv::core::no_array())?;
    opencv::core::bitwise_or(&left, &closed, &mut crossing, &opencv::core::no_array())?;
    Ok(crossing)
}

fn find_rulings(bits: &Mat, inch: f32, upright: bool) -> Result<Mat, OpenCvError> {
    let along = |length: i32| if upright { rectangle(1, length) } else { rectangle(length, 1) };
    let (mut closed, mut long) = (Mat::default(), Mat::default());
    morph(bits, &mut closed, imgproc::MORPH_CLOSE, &along(GAP)?)?;
    morph(&closed, &mut long, imgproc::MORPH_OPEN, &along(to_pixels(RULING * inch).max(GAP))?)?;
    let (labels, stats) = label_pieces(&long)?;
    let is_thin = |numbers: &[i32]| match *numbers {
        [_, _, width, height, count] => {
            let length = if upright { height } else { width };
            to_f32(count) <= THICKNESS * inch * to_f32(length)
        }
        _ => false,
    };
    let thin: Vec<bool> = stats.data_typed::<i32>()?.chunks_exact(5).map(is_thin).collect();
    for y in 0..labels.rows() {
        let row = labels.at_row::<i32>(y)?;
        for (label, pixel) in row.iter().zip(long.at_row_mut::<u8>(y)?) {
            let at = usize::try_from(*label).unwrap_or_default();
            if *label == 0 || !thin.get(at).copied().unwrap_or_default() {
                *pixel = 0;
            }
        }
    }
    Ok(long)
}

fn find_pieces(bits: &Mat) -> Result<(Mat, Vec<PenPiece>), OpenCvError> {
    let (labels, stats) = label_pieces(bits)?;
    let mut distances = Mat::default();
    let (l2, mask, float) = (imgproc::DIST_L2, imgproc::DIST_MASK_3, opencv::core::CV_32F);
    imgproc::distance_transform(bits, &mut distances, l2, mask, float)?;
    let mut sums = vec![0.0_f32; usize::try_from(stats.rows()).unwrap_or_default()];
    for y in 0..labels.rows() {
        let far = distances.at_row::<f32>(y)?;
        for (label, far) in labels.at_row::<i32>(y)?.iter().zip(far).filter(|it| *it.0 != 0) {
            if let Some(sum) = usize::try_from(*label).ok().and_then(|at| sums.get_mut(at)) {
                *sum += far;
            }
        }
    }
    let piece = |(label, (numbers, sum)): (i32, (&[i32], f32))| match *numbers {
        [left, top, width, height, count] => Some(PenPiece {
            label,
            area: Rect::new(left, top, width, height),
            count,
            // Of a stroke so wide the pixels are a quarter of that from its edge on average.
            stroke: 4.0 * sum / to_f32(count.max(1)) - 1.0,
        }),
        _ => None,
    };
    let numbers = stats.data_typed::<i32>()?.chunks_exact(5).zip(sums);
    // The first piece is the paper.
    Ok((labels, (0..).zip(numbers).skip(1).filter_map(piece).collect()))
}

fn label_pieces(bits: &Mat) -> Result<(Mat, Mat), OpenCvError> {
    let (mut labels, mut stats, mut centres) = (Mat::default(), Mat::default(), Mat::default());
    imgproc::connected_components_with_stats(
        bits,
        &mut labels,
        &mut stats,
        &mut centres,
        8,
        CV_32S,
    )?;
    Ok((labels, stats))
}

fn rectangle(width: i32, height: i32) -> Result<Mat, OpenCvError> {
    let (side, middle) = (Size::new(width, height), Point::new(-1, -1));
    Ok(imgproc::get_structuring_element(imgproc::MORPH_RECT, side, middle)?)
}

fn morph(from: &Mat, to: &mut Mat, how: i32, element: &Mat) -> Result<(), OpenCvError> {
    let (border, middle) = (opencv::core::BORDER_CONSTANT, Point::new(-1, -1));
    let beyond = imgproc::morphology_default_border_value()?;
    Ok(imgproc::morphology_ex(from, to, how, element, middle, 1, border, beyond)?)
}

#[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
pub(super) fn to_pixels(length: f32) -> i32 {
    length as i32
}

#[expect(clippy::cast_precision_loss, reason = "pixels of a page")]
pub(super) fn to_f32(pixels: i32) -> f32 {
    pixels as f32
}
