//! Grey pixels handed to `OpenCV` and back.
//!
//! Every call of `OpenCV` can fail (it allocates memory). The failure becomes an [`OpenCvError`]
//! with the error's number and nothing of the page. `OpenCV` itself writes only sizes and types to
//! stderr.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use opencv::boxed_ref::BoxedRef;
use opencv::core::{self, Mat, Scalar, Size};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use crate::page::PageRaster;
use crate::refusal::PageRefusal;
use docmill_core::fault::Error;
use docmill_core::model::OutcomeReason;

/// `OpenCV` refused a call: no memory, or a bug of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("OpenCV error {code}")]
pub struct OpenCvError {
    /// `OpenCV`'s error number, negative.
    pub code: i32,
}

impl From<opencv::Error> for OpenCvError {
    fn from(error: opencv::Error) -> Self {
        Self { code: error.code }
    }
}

impl From<OpenCvError> for Error {
    fn from(error: OpenCvError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<OpenCvError> for PageRefusal {
    fn from(error: OpenCvError) -> Self {
        Self::new(OutcomeReason::Internal, error.to_string())
    }
}

/// Pixels in `OpenCV`'s hands, its own or borrowed ones.
pub(crate) trait PixelMatrix: MatTraitConst + core::ToInputArray {}

impl<T: MatTraitConst + core::ToInputArray> PixelMatrix for T {}

/// Turns off the threads of `OpenCV` itself: pages are shared out over the cores by page, a second
/// level only gets in the way. Once in the life of a process, because the call takes its arena of
/// threads down and sets it up again without a lock: two at the same time crash.
fn disable_threads() -> Result<()> {
    static TURNED_OFF: LazyLock<std::result::Result<(), i32>> =
        LazyLock::new(|| core::set_num_threads(0).map_err(|error| error.code));
    (*TURNED_OFF).map_err(|code| opencv::Error::new(code, "turning threads off"))
}

/// The raster's own bytes as a matrix, without a copy.
pub(crate) fn view_raster(page: &PageRaster) -> Result<BoxedRef<'_, Mat>> {
    disable_threads()?;
    Mat::new_rows_cols_with_data(to_i32(page.height)?, to_i32(page.width)?, &page.pixels)
}

/// A matrix of grey bytes as a raster.
pub(crate) fn raster_from_mat(plane: &Mat, dpi: u32) -> Result<PageRaster> {
    Ok(PageRaster {
        width: u32::try_from(plane.cols()).map_err(|_| out_of_range())?,
        height: u32::try_from(plane.rows()).map_err(|_| out_of_range())?,
        dpi,
        pixels: plane.data_bytes()?.to_vec(),
    })
}

fn to_i32(side: u32) -> Result<i32> {
    i32::try_from(side).map_err(|_| out_of_range())
}

fn out_of_range() -> opencv::Error {
    opencv::Error::new(core::StsOutOfRange, "a side of the page")
}

/// `plane` averaged down to `1 / factor`; at least one pixel each way. Rows and columns that do not
/// make up a pixel are left out: with them each pixel would be the mean of broken ones, at a
/// multiple of the time.
pub(crate) fn shrink_mat(plane: &impl PixelMatrix, factor: i32) -> Result<Mat> {
    let size = Size::new((plane.cols() / factor).max(1), (plane.rows() / factor).max(1));
    let whole = core::Rect::new(0, 0, size.width * factor, size.height * factor);
    let whole = plane.roi(whole & core::Rect::new(0, 0, plane.cols(), plane.rows()))?;
    let mut small = Mat::default();
    imgproc::resize(&whole, &mut small, size, 0.0, 0.0, imgproc::INTER_AREA)?;
    Ok(small)
}

/// Sides of the closing and the median in [`estimate_paper`], in its eighths of a pixel: wider than
/// the strokes of a headline, narrower than a shadow.
const CLOSING_PIXELS: i32 = 15;
const MEDIAN_PIXELS: i32 = 21;
/// How much coarser [`estimate_paper`] is than its page.
pub(crate) const PAPER_FACTOR: i32 = 8;

/// The shade of the paper everywhere, without the ink, at an eighth of the page's size: a grey
/// closing takes the ink out, a median the blots that were larger.
pub(crate) fn estimate_paper(plane: &impl PixelMatrix) -> Result<Mat> {
    let small = shrink_mat(plane, PAPER_FACTOR)?;
    let kernel = imgproc::get_structuring_element_def(
        imgproc::MORPH_RECT,
        Size::new(CLOSING_PIXELS, CLOSING_PIXELS),
    )?;
    let (mut closed, mut smooth) = (Mat::default(), Mat::default());
    imgproc::morphology_ex_def(&small, &mut closed, imgproc::MORPH_CLOSE, &kernel)?;
    imgproc::median_blur(&closed, &mut smooth, MEDIAN_PIXELS)?;
    Ok(smooth)
}

/// `plane` divided by its paper: ink on white.
pub(crate) fn flatten_light(plane: &impl PixelMatrix, paper: &Mat) -> Result<Mat> {
    let (mut whole, mut flat) = (Mat::default(), Mat::default());
    imgproc::resize(paper, &mut whole, plane.size()?, 0.0, 0.0, imgproc::INTER_LINEAR)?;
    core::divide2(plane, &whole, &mut flat, 255.0, -1)?;
    Ok(flat)
}

/// Gaussian smoothing; `sigma` in pixels.
pub(crate) fn smooth_gaussian(plane: &impl PixelMatrix, sigma: f64) -> Result<Mat> {
    let mut smooth = Mat::default();
    imgproc::gaussian_blur_def(plane, &mut smooth, Size::default(), sigma)?;
    Ok(smooth)
}

/// Median over a square of `side` pixels, odd.
pub(crate) fn smooth_median(plane: &impl PixelMatrix, side: i32) -> Result<Mat> {
    let mut calm = Mat::default();
    imgproc::median_blur(plane, &mut calm, side)?;
    Ok(calm)
}

/// Specks taken out and grain smoothed, so that neither is taken for ink.
pub(crate) fn reduce_noise(plane: &impl PixelMatrix) -> Result<Mat> {
    smooth_gaussian(&smooth_median(plane, 3)?, 0.8)
}

/// A pixel is ink if it is this much darker than most of the page.
const MIN_INK_CONTRAST: f32 = 40.0;
/// Length of a stroke as a share of a letter's height, and its cap in pixels. Specks of three
/// pixels are not strokes, and not all strokes of a headline need to be found.
const MIN_STROKE_SHARE: f32 = 0.5;
const STROKE_PIXELS: RangeInclusive<f32> = (5.0)..=15.0;
/// Farthest that ink may be from a stroke, in pixels, to belong to it: a letter's height, within
/// bounds that keep the dots of small letters, and the work small.
const REACH_PIXELS: RangeInclusive<f32> = 8.0..=40.0;

/// Ink without a stroke near it made paper, on paper of even light. Near is as far as a letter of
/// `letter_height` pixels is high, so that the dots and commas of a text stay, specks among them.
pub(crate) fn remove_lone_specks(plane: &impl PixelMatrix, letter_height: f32) -> Result<Mat> {
    let page = plane.try_clone()?;
    let paper = count_values(&page, &Mat::default())?.quantile(0.5);
    let mut ink = Mat::default();
    let darkest = f64::from(paper - MIN_INK_CONTRAST);
    imgproc::threshold(&page, &mut ink, darkest, 255.0, imgproc::THRESH_BINARY_INV)?;
    let stroke = length_in_pixels(letter_height * MIN_STROKE_SHARE, &STROKE_PIXELS);
    let mut strokes = opened_mask(&ink, Size::new(stroke, 1))?;
    let down = opened_mask(&ink, Size::new(1, stroke))?;
    let across = std::mem::take(&mut strokes);
    core::bitwise_or_def(&across, &down, &mut strokes)?;
    let reach = 2 * length_in_pixels(letter_height, &REACH_PIXELS) + 1;
    let (mut near, mut lone) = (Mat::default(), Mat::default());
    imgproc::dilate_def(&strokes, &mut near, &rectangle(Size::new(reach, reach))?)?;
    core::subtract_def(&ink, &near, &mut lone)?;
    // The lighter rim of a speck goes with it.
    let mut specks = Mat::default();
    imgproc::dilate_def(&lone, &mut specks, &rectangle(Size::new(3, 3))?)?;
    let mut kept = page;
    kept.set_to(&Scalar::all(f64::from(paper)), &specks)?;
    Ok(kept)
}

/// The parts of a mask that a rectangle of this size fits into.
fn opened_mask(mask: &Mat, size: Size) -> Result<Mat> {
    let mut opened = Mat::default();
    imgproc::morphology_ex_def(mask, &mut opened, imgproc::MORPH_OPEN, &rectangle(size)?)?;
    Ok(opened)
}

fn rectangle(size: Size) -> Result<Mat> {
    imgproc::get_structuring_element_def(imgproc::MORPH_RECT, size)
}

#[expect(clippy::cast_possible_truncation, reason = "clamped")]
fn length_in_pixels(length: f32, within: &RangeInclusive<f32>) -> i32 {
    length.clamp(*within.start(), *within.end()).round() as i32
}

/// How many of the pixels under `mask` have each of the 256 values.
pub(crate) fn count_values(plane: &Mat, mask: &Mat) -> Result<GreyHistogram> {
    let images = core::Vector::<Mat>::from_iter([plane.try_clone()?]);
    let (channels, sizes) = (core::Vector::from_slice(&[0]), core::Vector::from_slice(&[256]));
    let ranges = core::Vector::from_slice(&[0.0, 256.0]);
    let mut counts = Mat::default();
    imgproc::calc_hist_def(&images, &channels, mask, &mut counts, &sizes, &ranges)?;
    Ok(GreyHistogram(counts.data_typed::<f32>()?.to_vec()))
}

/// Counts of the values 0 to 255.
pub(crate) struct GreyHistogram(Vec<f32>);

impl GreyHistogram {
    /// The value that `share` (0 to 1) of the pixels do not exceed; 0 of no pixels.
    pub(crate) fn quantile(&self, share: f32) -> f32 {
        let wanted = self.0.iter().sum::<f32>() * share;
        let mut seen = 0.0;
        let mut value = 0.0;
        for (at, count) in (0_u16..).zip(&self.0) {
            seen += count;
            value = f32::from(at);
            if seen > 0.0 && seen >= wanted {
                return value;
            }
        }
        value
    }

    /// Share of the pixels of each value.
    pub(crate) fn value_shares(&self) -> impl Iterator<Item = f32> {
        let all = self.0.iter().sum::<f32>().max(1.0);
        self.0.iter().map(move |count| count / all)
    }

    /// Share of the pixels in `values`.
    pub(crate) fn share_within(&self, values: std::ops::Range<usize>) -> f32 {
        let all: f32 = self.0.iter().sum();
        let some: f32 = self.0.get(values).unwrap_or_default().iter().sum();
        if all > 0.0 { some / all } else { 0.0 }
    }
}

/// A plane of one value.
pub(crate) fn uniform_mat(size: Size, value: f64) -> Result<Mat> {
    Mat::new_rows_cols_with_default(size.height, size.width, core::CV_8UC1, Scalar::all(value))
}

/// Turns a page clockwise by a number of quarter turns.
pub(crate) fn turn_mat(plane: &impl PixelMatrix, quarter_turns: u8) -> Result<Mat> {
    let code = match quarter_turns % 4 {
        1 => core::ROTATE_90_CLOCKWISE,
        2 => core::ROTATE_180,
        3 => core::ROTATE_90_COUNTERCLOCKWISE,
        _ => {
            let mut same = Mat::default();
            plane.copy_to(&mut same)?;
            return Ok(same);
        }
    };
    let mut turned = Mat::default();
    core::rotate(plane, &mut turned, code)?;
    Ok(turned)
}

/// As `OpenCV` counts: of a measure or a place on a page nothing is lost that matters.
#[expect(clippy::cast_possible_truncation, reason = "a measure or a place on a page, not a count")]
pub(crate) fn to_f32(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specks_that_lie_alone_become_paper_and_the_dots_beside_letters_stay() {
        let mut page = uniform_mat(Size::new(200, 100), 220.0).unwrap();
        let mut draw = |x, y, width, height| {
            let part = core::Rect::new(x, y, width, height);
            imgproc::rectangle(&mut page, part, Scalar::all(20.0), -1, imgproc::LINE_8, 0).unwrap();
        };
        // A letter, its dot, a comma behind it, and a speck as large as the dot far from all.
        draw(40, 40, 2, 12);
        draw(40, 34, 2, 2);
        draw(46, 50, 2, 4);
        draw(120, 40, 3, 3);
        let clean = remove_lone_specks(&page, 12.0).unwrap();
        let at = |x, y| *clean.at_2d::<u8>(y, x).unwrap();
        assert_eq!([at(40, 45), at(41, 35), at(47, 51)], [20; 3]);
        assert_eq!(at(121, 41), 220);
        let letters = |height| remove_lone_specks(&page, height).map(|_| ());
        assert!([0.0, 1.0, 5000.0].into_iter().all(|height| letters(height).is_ok()));
    }

    #[test]
    fn many_threads_may_look_at_pages_at_the_same_time() {
        let page = PageRaster { width: 2, height: 2, dpi: 300, pixels: vec![0; 4] };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        assert_eq!(view_raster(&page).unwrap().rows(), 2);
                    }
                });
            }
        });
    }
}
