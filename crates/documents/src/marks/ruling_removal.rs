//! The ink of a page without its rulings, as connected pieces with the width of their strokes. Ink
//! of a pen or a stamp stays one piece even where it crosses the line for a signature.

use opencv::core::{CV_8U, CV_32S, Mat, Point, Rect, Scalar, Size};
use opencv::imgproc;
use opencv::prelude::*;

use super::ink::{MIN_DARKER, SURROUNDINGS_PIXELS};
use crate::image::opencv_mat::{OpenCvError, shrink_mat, view_raster};
use crate::page::PageRaster;
use docmill_core::model::BoundingBox;

/// Finer pictures are shrunk: at half of that a pen's stroke still has two or three pixels.
const MAX_DPI: u32 = 250;
/// An A4 page just below that.
const MAX_PIXELS: u64 = 8_600_000;
const MIN_RULING_INCHES: f32 = 0.5;
const MAX_THICKNESS_INCHES: f32 = 0.045;
/// Gaps in a ruling that are closed.
const MAX_GAP_PIXELS: i32 = 5;
/// How far ink is followed across a removed ruling.
const MAX_CROSSING_INCHES: f32 = 0.035;

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
        let mut factor = 1_u8;
        while factor < 32
            && (picture.dpi / u32::from(factor) >= MAX_DPI
                || pixels > MAX_PIXELS * u64::from(factor) * u64::from(factor))
        {
            factor += 1;
        }
        let grey = shrink_mat(&view_raster(picture)?, i32::from(factor))?;
        #[expect(clippy::cast_precision_loss, reason = "dots per inch")]
        let inch = picture.dpi.max(1) as f32 / f32::from(factor);
        let mut bits = Mat::default();
        let (mean, inverse) = (imgproc::ADAPTIVE_THRESH_MEAN_C, imgproc::THRESH_BINARY_INV);
        imgproc::adaptive_threshold(
            &grey,
            &mut bits,
            255.0,
            mean,
            inverse,
            SURROUNDINGS_PIXELS,
            MIN_DARKER,
        )?;
        let bits = without_rulings(&bits, inch)?;
        let (labels, pieces) = find_pieces(&bits)?;
        Ok(Self { grey, labels, pieces, inch, scale: f32::from(factor) })
    }

    /// Rows and columns of the ink.
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
        let mut ink = Mat::new_size_with_default(area.size(), CV_8U, Scalar::all(0.0))?;
        let mut paper = ink.try_clone()?;
        for y in 0..area.height {
            let pixels = ink.at_row_mut::<u8>(y)?.iter_mut().zip(paper.at_row_mut::<u8>(y)?);
            for (label, (mark, blank)) in self.row_of(area, area.y + y).iter().zip(pixels) {
                *mark = if members.contains(label) { 255 } else { 0 };
                *blank = if *label == 0 { 255 } else { 0 };
            }
        }
        Ok([ink, paper])
    }

    /// An area in pixels of the page's picture.
    pub(super) fn to_page(&self, area: Rect) -> BoundingBox {
        box_of(area).scaled(self.scale, self.scale)
    }
}

/// A rectangle of pixels as a box.
pub(super) fn box_of(area: Rect) -> BoundingBox {
    let (x, y) = (to_f32(area.x), to_f32(area.y));
    BoundingBox { x, y, w: to_f32(area.width), h: to_f32(area.height) }
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
    let reach = to_pixels(MAX_CROSSING_INCHES * inch).max(3) | 1;
    morph(&left, &mut closed, imgproc::MORPH_CLOSE, &rectangle(3, reach)?)?;
    opencv::core::bitwise_and(&closed, &rulings, &mut crossing, &opencv::core::no_array())?;
    opencv::core::bitwise_and(&crossing, bits, &mut closed, &opencv::core::no_array())?;
    opencv::core::bitwise_or(&left, &closed, &mut crossing, &opencv::core::no_array())?;
    Ok(crossing)
}

fn find_rulings(bits: &Mat, inch: f32, upright: bool) -> Result<Mat, OpenCvError> {
    let (mut closed, mut long) = (Mat::default(), Mat::default());
    morph(bits, &mut closed, imgproc::MORPH_CLOSE, &line_element(MAX_GAP_PIXELS, upright)?)?;
    let length = to_pixels(MIN_RULING_INCHES * inch).max(MAX_GAP_PIXELS);
    morph(&closed, &mut long, imgproc::MORPH_OPEN, &line_element(length, upright)?)?;
    let (labels, stats) = label_pieces(&long)?;
    let mut thin = Vec::new();
    for numbers in stats.data_typed::<i32>()?.chunks_exact(5) {
        let [_, _, width, height, count] = *numbers else { continue };
        let length = if upright { height } else { width };
        thin.push(to_f32(count) <= MAX_THICKNESS_INCHES * inch * to_f32(length));
    }
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
    let numbers = stats.data_typed::<i32>()?.chunks_exact(5).zip(sums);
    let mut pieces = Vec::new();
    // The first piece is the paper.
    for (label, (numbers, sum)) in (0..).zip(numbers).skip(1) {
        let [left, top, width, height, count] = *numbers else { continue };
        let area = Rect::new(left, top, width, height);
        // A stroke's pixels are on average a quarter of its width from its edge.
        let stroke = 4.0 * sum / to_f32(count.max(1)) - 1.0;
        pieces.push(PenPiece { label, area, count, stroke });
    }
    Ok((labels, pieces))
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

fn line_element(length: i32, upright: bool) -> Result<Mat, OpenCvError> {
    if upright { rectangle(1, length) } else { rectangle(length, 1) }
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
