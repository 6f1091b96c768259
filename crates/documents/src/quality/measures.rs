//! Measures of a page image, in numbers; the parent module interprets them.
//!
//! A page whose longer side exceeds [`LONGER_SIDE`] is measured at a whole fraction of its size;
//! noise is measured at full size, on four bands, because averaging hides it.

use opencv::core::{self, Mat, Size};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use super::compression_artifacts;
use super::glyphs::{self, InkPieces};
use super::outline::{self, PaperOutline};
use crate::image::opencv_mat::{self, PixelMatrix};
use crate::page::PageRaster;

/// Longer side of the measured picture.
const LONGER_SIDE: i32 = 2_600;
/// Noise, in grey levels, from which letters are searched for on a smoothed page.
const NOISY: f32 = 6.0;
/// Ink is darker than its paper by this much, of 255, whatever the rest of the page looks like,
/// and by this many deviations of the noise.
const MIN_INK: f64 = 25.0;
const MIN_INK_IN_NOISE: f64 = 3.0;

/// Blockiness from which compression is coarse. Pages that were compressed well had 1.3 to 2.2,
/// such as read better smoothed 3.9 and more.
const BLOCKY: f32 = 3.0;

/// Measures of a page image.
pub(crate) struct PageMeasures {
    /// How many pixels of the page's side are one measured pixel.
    pub factor: i32,
    /// Size of the measured picture, in measured pixels.
    pub size: Size,
    /// Grey level of the paper: three quarters of the page are not brighter.
    pub paper: f32,
    /// Share of the pixels that are neither black nor white.
    pub grey: f32,
    /// Share of the paper that has neither of its two commonest shades, within 5 %.
    pub uneven: f32,
    /// The bright paper's shade as a multiple of the dark paper's (95th and 5th percentile).
    pub shade_range: f32,
    /// Share of the page covered by spots without any shade inside a darker page.
    pub glare: f32,
    /// Deviation of the noise in grey levels (Immerkaer 1996, with the median for the mean).
    pub noise: f32,
    /// The same of its upper quartile: 0 only on paper that a program made.
    pub grain: f32,
    /// How far coarse JPEG shows, see `compression_artifacts`.
    pub blockiness: f32,
    /// How much darker than its paper ink is, 0 to 255, as it would be on white paper.
    pub contrast: f32,
    /// Pixels, as measured, that an edge of a letter takes from paper to ink.
    pub edge_width: f32,
    /// The pieces of ink: letters and specks.
    pub pieces: InkPieces,
    /// Ink, 255 or 0, at the measured size.
    pub ink: Mat,
    /// The paper's outline in the picture, in pixels of the page.
    pub outline: PaperOutline,
}

/// Measures `page`, scaled down if it is large.
pub(super) fn measure_page(page: &PageRaster) -> Result<PageMeasures> {
    let whole = opencv_mat::view_raster(page)?;
    let factor = 1 + (whole.cols().max(whole.rows()) - 1) / LONGER_SIDE;
    let small = opencv_mat::shrink_mat(&whole, factor)?;
    let values = opencv_mat::count_values(&small, &Mat::default())?;
    let shades = opencv_mat::estimate_paper(&small)?;
    let (uneven, shade_range) = paper_evenness(&shades)?;
    let bands = page_bands(whole.size()?);
    let answers = noise_answers(&whole, &bands)?;
    let noise = answers.quantile(0.5) / (ANSWER_TO_ONE * 0.6745);
    let flat = calm_noise(opencv_mat::flatten_light(&small, &shades)?, noise)?;
    let ink = threshold_ink(&flat, noise)?;
    let contrast = 255.0 - opencv_mat::count_values(&flat, &ink)?.quantile(0.3);
    Ok(PageMeasures {
        factor,
        size: small.size()?,
        paper: values.quantile(0.75),
        grey: values.share_within(16..240),
        uneven,
        shade_range,
        glare: glare_share(&shades)?,
        noise,
        grain: answers.quantile(0.75) / (ANSWER_TO_ONE * 1.1503),
        blockiness: compression_artifacts::measure_blockiness(&whole, &bands)?,
        contrast,
        edge_width: edge_width(&flat, &ink, contrast)?,
        pieces: glyphs::sort_pieces(&ink)?,
        outline: outline::find_outline(&small)?.scaled(factor),
        ink,
    })
}

/// Smoothed where noise would otherwise be taken for ink.
fn calm_noise(flat: Mat, noise: f32) -> Result<Mat> {
    if noise < NOISY { Ok(flat) } else { opencv_mat::reduce_noise(&flat) }
}

/// Otsu's threshold, bounded: on an empty page it would split the paper.
fn threshold_ink(flat: &Mat, noise: f32) -> Result<Mat> {
    let mut ink = Mat::default();
    let inverse = imgproc::THRESH_BINARY_INV;
    let otsu = imgproc::threshold(flat, &mut ink, 0.0, 255.0, inverse | imgproc::THRESH_OTSU)?;
    let highest = 255.0 - MIN_INK.max(MIN_INK_IN_NOISE * f64::from(noise));
    if otsu > highest {
        imgproc::threshold(flat, &mut ink, highest, 255.0, inverse)?;
    }
    Ok(ink)
}

/// Bins of the logarithm of a shade, each 2 % wide; five of them are "within 5 %".
const BINS_PER_UNIT: f32 = 50.0;
const BINS: usize = 5;

/// Share of the paper that has neither of its two commonest shades, and the range of the shades.
///
/// Paper has one shade; a form or a header in colour adds a second one with a hard edge. Shadows
/// have all shades in between.
fn paper_evenness(shades: &Mat) -> Result<(f32, f32)> {
    let counts = opencv_mat::count_values(shades, &Mat::default())?;
    let range = (counts.quantile(0.95) + 1.0) / (counts.quantile(0.05) + 1.0);
    let mut bins = [0.0_f32; 300];
    for (value, share) in (0_u16..).zip(counts.value_shares()) {
        if let Some(bin) = bins.get_mut(bin_of((f32::from(value) + 1.0).ln() * BINS_PER_UNIT)) {
            *bin += share;
        }
    }
    let common = take_fullest(&mut bins) + take_fullest(&mut bins);
    Ok(((1.0 - common).max(0.0), range))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 300")]
fn bin_of(position: f32) -> usize {
    position.max(0.0) as usize
}

/// Empties the fullest run of [`BINS`] bins and returns its share.
fn take_fullest(bins: &mut [f32]) -> f32 {
    let sums = bins.windows(BINS).map(|run| run.iter().sum::<f32>());
    let best = sums.enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
    let Some((start, share)) = best else { return 0.0 };
    // The rest of a shade beside its run belongs to it.
    if let Some(run) = bins.get_mut(start.saturating_sub(2)..start + BINS) {
        run.fill(0.0);
    }
    share
}

/// Share of the page under saturated spots that do not reach its border, on paper that is darker
/// elsewhere: light from a lamp. A bright corner of a page in shadow reaches the border.
fn glare_share(shades: &Mat) -> Result<f32> {
    if opencv_mat::count_values(shades, &Mat::default())?.quantile(0.5) > 225.0 {
        return Ok(0.0);
    }
    let (mut spots, mut labels) = (Mat::default(), Mat::default());
    let (mut stats, mut centroids) = (Mat::default(), Mat::default());
    imgproc::threshold(shades, &mut spots, 250.0, 255.0, imgproc::THRESH_BINARY)?;
    imgproc::connected_components_with_stats_def(&spots, &mut labels, &mut stats, &mut centroids)?;
    let mut covered = 0;
    for row in stats.data_typed::<i32>()?.chunks_exact(5).skip(1) {
        let &[left, top, width, height, area] = row else { continue };
        let inside = left > 0 && top > 0;
        if inside && left + width < shades.cols() && top + height < shades.rows() {
            covered += area;
        }
    }
    Ok(pixel_ratio(covered, shades.cols() * shades.rows()))
}

/// Answer of the kernel of [`noise_answers`] to noise of deviation 1.
const ANSWER_TO_ONE: f32 = 6.0;

/// Four bands across the page, a quarter of it, for measures at full size.
fn page_bands(page: Size) -> Vec<core::Rect> {
    let tall = (page.height / 16).max(8).min(page.height);
    let mut bands = Vec::new();
    for eighth in [1, 3, 5, 7] {
        let top = (page.height * eighth / 8 - tall / 2).clamp(0, page.height - tall);
        bands.push(core::Rect::new(0, top, page.width, tall));
    }
    bands
}

/// Absolute answers to a kernel that edges and slopes of the page do not answer to. Divided by
/// [`ANSWER_TO_ONE`] and by 0.6745, their median is the deviation of the noise in grey levels; by
/// 1.1503, their upper quartile.
///
/// J. Immerkaer, "Fast noise variance estimation", CVIU 64 (1996). The median instead of his mean
/// leaves letters out of it. On paper that is clipped to white half of the noise is missing.
fn noise_answers(
    whole: &impl PixelMatrix,
    bands: &[core::Rect],
) -> Result<opencv_mat::GreyHistogram> {
    // Along the rows and then along the columns: 1 −2 1, −2 4 −2, 1 −2 1, in whole numbers.
    let kernel = Mat::from_slice(&[1.0_f32, -2.0, 1.0])?.try_clone()?;
    let (mut strengths, mut all) = (core::Vector::<Mat>::new(), Mat::default());
    for band in bands {
        let mut answer = Mat::default();
        let band = whole.roi(*band)?;
        imgproc::sep_filter_2d_def(&band, &mut answer, core::CV_16S, &kernel, &kernel)?;
        let mut strength = Mat::default();
        core::convert_scale_abs_def(&answer, &mut strength)?;
        strengths.push(strength);
    }
    core::vconcat(&strengths, &mut all)?;
    opencv_mat::count_values(&all, &Mat::default())
}

/// Contrast divided by the slope at the letters' edges, where four fifths are not steeper.
fn edge_width(flat: &Mat, ink: &Mat, contrast: f32) -> Result<f32> {
    let (mut wider, mut edges) = (Mat::default(), Mat::default());
    let square = imgproc::get_structuring_element_def(imgproc::MORPH_RECT, Size::new(3, 3))?;
    imgproc::dilate_def(ink, &mut wider, &square)?;
    core::subtract_def(&wider, ink, &mut edges)?;
    let mut steepest = Mat::default();
    for (dx, dy) in [(1, 0), (0, 1)] {
        let (mut slope, mut strength) = (Mat::default(), Mat::default());
        imgproc::sobel_def(flat, &mut slope, core::CV_16S, dx, dy)?;
        // The kernel sums four differences over two pixels.
        core::convert_scale_abs(&slope, &mut strength, 1.0 / 8.0, 0.0)?;
        if steepest.empty() {
            steepest = strength;
        } else {
            let mut both = Mat::default();
            core::max(&steepest, &strength, &mut both)?;
            steepest = both;
        }
    }
    Ok(contrast / opencv_mat::count_values(&steepest, &edges)?.quantile(0.8).max(1.0))
}

fn pixel_ratio(part: i32, all: i32) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "a share")]
    let share = (f64::from(part.max(0)) / f64::from(all.max(1))) as f32;
    share
}

impl PageMeasures {
    /// Whether there is next to no grey.
    pub(super) fn is_bilevel(&self) -> bool {
        self.grey < 0.005
    }

    /// Whether its paper is not level from pixel to pixel: coarse compression, or a scanner's
    /// grain.
    pub(super) fn is_rough(&self) -> bool {
        !self.is_bilevel() && (self.blockiness > BLOCKY || self.grain > 0.0)
    }

    /// Specks per million measured pixels.
    pub(super) fn specks_per_million(&self) -> f32 {
        let specks = i32::try_from(self.pieces.specks).unwrap_or(i32::MAX);
        pixel_ratio(specks, self.size.area()) * 1e6
    }

    /// Share of the letters that touch the frame of the picture.
    pub(super) fn cut_letters(&self) -> f32 {
        let touches = self.pieces.glyphs.iter().filter(|glyph| {
            glyph.left <= 0
                || glyph.top <= 0
                || glyph.left + glyph.width >= self.size.width
                || glyph.top + glyph.height >= self.size.height
        });
        let [touching, all] = [touches.count(), self.pieces.glyphs.len()]
            .map(|count| i32::try_from(count).unwrap_or(i32::MAX));
        pixel_ratio(touching, all)
    }
}
