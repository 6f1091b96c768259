//! The steps of a repair, one function each, and which of them a page needs.
//!
//! The constants are those that read best on degraded pages among the few that were tried for
//! each; none was taken over a neighbour for less than a hundredth of the words.

use opencv::core::{self, Mat, Point2f, Scalar, Size};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use crate::image::opencv_mat::{self, PixelMatrix};
use crate::quality::PageAssessment;
use docmill_core::model::{PageDefectKind, RepairSwitches};

/// A step of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStep {
    /// Quarter turns.
    Turn,
    /// The sheet was cut out of its surroundings and made a rectangle.
    Perspective,
    /// The bent lines of a sheet that was cut out were straightened.
    Dewarp,
    /// Shadows were evened out.
    Flatten,
    /// The paper was made white and the ink black.
    Stretch,
    /// Specks that lie alone were removed.
    Despeckle,
    /// Noise was smoothed, or the specks among letters.
    Denoise,
    /// Edges were sharpened.
    Sharpen,
    /// Skewed lines were levelled.
    Deskew,
    /// Small text was enlarged.
    Upscale,
}

impl RepairStep {
    /// Whether afterwards the ink lies elsewhere on the page, its scale left aside.
    pub fn moves_ink(self) -> bool {
        matches!(self, Self::Turn | Self::Perspective | Self::Dewarp | Self::Deskew)
    }

    /// Its name in transcripts and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Perspective => "perspective",
            Self::Dewarp => "dewarp",
            Self::Flatten => "flatten",
            Self::Stretch => "stretch",
            Self::Despeckle => "despeckle",
            Self::Denoise => "denoise",
            Self::Sharpen => "sharpen",
            Self::Deskew => "deskew",
            Self::Upscale => "upscale",
        }
    }
}

/// Letters are enlarged to this height in pixels, by a whole number. The dots of a fax are not
/// enlarged more than twice: they would become letters of their own.
const READABLE_HEIGHT: f32 = 20.0;
const MAX_ENLARGED: u32 = 4;
const MAX_ENLARGED_BILEVEL: u32 = 2;
/// A page that is worked on anyway is enlarged below this height.
const SMALL_HEIGHT: f32 = 20.0;
/// How many times the difference from a smoothed page is added to a blurred one.
const SHARPENING: f64 = 3.0;
/// Growth of a page's pixels by deskewing: only strips would exceed it.
const MAX_GROWTH: f32 = 4.0;
/// Pixels of an enlarged page, at most: an A4 page of 300 dots per inch stays as it is, small print
/// and all, because reading four times as many pixels takes long and finds little more.
const MAX_PIXELS: f32 = 20_000_000.0;

/// What `found` calls for, in order.
pub(super) fn plan_steps(found: &PageAssessment, switches: RepairSwitches) -> Vec<RepairStep> {
    let plan = called_for(found, switches, false);
    let worked_on = plan.iter().any(|step| *step != RepairStep::Turn);
    let enlarges = found.has_defect(PageDefectKind::TextTooSmall) || (is_small(found) && worked_on);
    match switches.upscale && enlarges && enlargement_factor(found) > 1 {
        true => called_for(found, switches, true),
        false => plan,
    }
}

fn called_for(found: &PageAssessment, switches: RepairSwitches, enlarge: bool) -> Vec<RepairStep> {
    let steps = [
        (switches.orientation && found.quarter_turns() > 0, RepairStep::Turn),
        (switches.illumination && found.has_defect(PageDefectKind::Shadowed), RepairStep::Flatten),
        (switches.contrast && needs_stretch(found), RepairStep::Stretch),
        (
            (needs_smoothing(found) || enlarge && needs_presmoothing(found)) && switches.noise,
            RepairStep::Denoise,
        ),
        (switches.sharpen && found.has_defect(PageDefectKind::Blurry), RepairStep::Sharpen),
        // While a speck is smaller than any stroke.
        (found.is_speckled() && switches.noise, RepairStep::Despeckle),
        (enlarge, RepairStep::Upscale),
        // A median is kinder to letters that are large.
        (found.is_speckled() && switches.noise, RepairStep::Denoise),
        (switches.deskew && needs_deskew(found), RepairStep::Deskew),
    ];
    steps.into_iter().filter(|(needed, _)| *needed).map(|(_, step)| step).collect()
}

/// Whether lines are skewed, and deskewing would not blow up the page.
fn needs_deskew(found: &PageAssessment) -> bool {
    let (sine, cosine) = found.direction.skew_degrees.to_radians().sin_cos();
    let growth = 1.0 + (sine * cosine).abs() * found.elongation;
    found.has_defect(PageDefectKind::Skewed) && growth <= MAX_GROWTH
}

fn needs_stretch(found: &PageAssessment) -> bool {
    !found.has_defect(PageDefectKind::Shadowed)
        && (found.has_defect(PageDefectKind::Dark) || found.has_defect(PageDefectKind::Faint))
}

/// Whether noise is smoothed: grain, a fax, and small letters out of a shadow, where evening out
/// the light amplified the noise.
fn needs_smoothing(found: &PageAssessment) -> bool {
    let from_shadow = found.has_defect(PageDefectKind::Shadowed) && is_small(found);
    !found.is_speckled() && (found.has_defect(PageDefectKind::Noisy) || from_shadow)
}

/// Whether a page that is enlarged is smoothed first: the squares of a coarse JPEG and the grain of
/// a scanner get edges of their own otherwise. Clean letters lose by it, blurred ones too.
fn needs_presmoothing(found: &PageAssessment) -> bool {
    found.rough && !found.is_speckled() && !found.has_defect(PageDefectKind::Blurry)
}

fn is_small(found: &PageAssessment) -> bool {
    (f32::EPSILON..SMALL_HEIGHT).contains(&found.letter_height)
}

/// How many times larger the page gets, 1 to [`MAX_ENLARGED`].
pub(super) fn enlargement_factor(found: &PageAssessment) -> u32 {
    let wanted = READABLE_HEIGHT / found.letter_height.max(1.0);
    let allowed = (MAX_PIXELS / found.pixels.max(1.0)).sqrt();
    let most = if found.bilevel { MAX_ENLARGED_BILEVEL } else { MAX_ENLARGED };
    let times = (1..most).find(|times| f64::from(*times) >= f64::from(wanted));
    let mut fitting = (1..=times.unwrap_or(most)).rev();
    let fitting =
        fitting.find(|times| f32::from(u16::try_from(*times).unwrap_or(u16::MAX)) <= allowed);
    fitting.unwrap_or(1)
}

/// Applies one step of the repair to a page.
pub(super) fn apply_step(step: RepairStep, page: &Mat, found: &PageAssessment) -> Result<Mat> {
    match step {
        RepairStep::Turn => opencv_mat::turn_mat(page, found.quarter_turns()),
        RepairStep::Perspective | RepairStep::Dewarp => page.try_clone(),
        RepairStep::Flatten => opencv_mat::flatten_light(page, &opencv_mat::estimate_paper(page)?),
        RepairStep::Stretch => stretch_contrast(page),
        RepairStep::Despeckle => opencv_mat::remove_lone_specks(page, found.letter_height),
        RepairStep::Denoise => denoise_page(page, found),
        RepairStep::Sharpen => sharpen_page(page),
        RepairStep::Upscale => enlarge_page(page, enlargement_factor(found)),
        RepairStep::Deskew => deskew_page(page, f64::from(found.direction.skew_degrees)),
    }
}

/// Paper to white and ink to black, linearly.
fn stretch_contrast(page: &Mat) -> Result<Mat> {
    let values = opencv_mat::count_values(page, &Mat::default())?;
    let (ink, paper) = (f64::from(values.quantile(0.002)), f64::from(values.quantile(0.5)));
    let gain = 255.0 / (paper - ink).max(1.0);
    let mut stretched = Mat::default();
    page.convert_to(&mut stretched, core::CV_8U, gain, -ink * gain)?;
    Ok(stretched)
}

/// Specks by a median, grain, the squares of a JPEG and the dots of a fax by smoothing them into
/// the paper.
fn denoise_page(page: &Mat, found: &PageAssessment) -> Result<Mat> {
    if found.is_speckled() {
        // Specks are single pixels of the page, whose letters may have been enlarged since.
        opencv_mat::smooth_median(page, if found.letter_height < SMALL_HEIGHT { 5 } else { 3 })
    } else {
        let sigma = match needs_smoothing(found) {
            true if found.bilevel => 0.8,
            true => 0.7,
            false => 0.6,
        };
        opencv_mat::smooth_gaussian(page, sigma)
    }
}

fn sharpen_page(page: &Mat) -> Result<Mat> {
    unsharp_mask(page, 1.5, SHARPENING)
}

/// Grain smoothed and edges sharpened on a page of enlarged letters: the widths are those of a
/// pixel and of a stroke after enlarging.
pub(super) fn sharpen_letters(page: &impl PixelMatrix) -> Result<Mat> {
    unsharp_mask(&opencv_mat::smooth_gaussian(page, 1.0)?, 3.0, 1.0)
}

/// Unsharp masking: `amount` times the difference from the page smoothed by `sigma` pixels is
/// added.
fn unsharp_mask(page: &Mat, sigma: f64, amount: f64) -> Result<Mat> {
    let soft = opencv_mat::smooth_gaussian(page, sigma)?;
    let mut sharp = Mat::default();
    core::add_weighted_def(page, 1.0 + amount, &soft, -amount, 0.0, &mut sharp)?;
    Ok(sharp)
}

fn enlarge_page(page: &Mat, times: u32) -> Result<Mat> {
    let times = f64::from(times);
    let mut large = Mat::default();
    imgproc::resize(page, &mut large, Size::default(), times, times, imgproc::INTER_CUBIC)?;
    Ok(large)
}

/// The page turned back by its skew, on a sheet that holds all of it.
fn deskew_page(page: &Mat, degrees: f64) -> Result<Mat> {
    let (width, height) = (f64::from(page.cols()), f64::from(page.rows()));
    let (sine, cosine) = degrees.to_radians().sin_cos();
    let (sine, cosine) = (sine.abs(), cosine.abs());
    let wide = (width * cosine + height * sine).ceil();
    let tall = (width * sine + height * cosine).ceil();
    let middle = Point2f::new(to_f32(width / 2.0), to_f32(height / 2.0));
    let mut rotation = imgproc::get_rotation_matrix_2d(middle, degrees, 1.0)?;
    *rotation.at_2d_mut::<f64>(0, 2)? += (wide - width) / 2.0;
    *rotation.at_2d_mut::<f64>(1, 2)? += (tall - height) / 2.0;
    let paper = opencv_mat::count_values(page, &Mat::default())?.quantile(0.75);
    let mut level = Mat::default();
    imgproc::warp_affine(
        page,
        &mut level,
        &rotation,
        Size::new(to_i32(wide), to_i32(tall)),
        imgproc::INTER_LINEAR,
        core::BORDER_CONSTANT,
        Scalar::all(f64::from(paper)),
    )?;
    Ok(level)
}

/// The sheet with these corners (from the top left, clockwise) as a rectangle of its longer sides.
/// Parts of it outside the picture are blank.
pub(super) fn rectify_sheet(page: &impl PixelMatrix, corners: [Point2f; 4]) -> Result<Mat> {
    let [top_left, top_right, bottom_right, bottom_left] = corners;
    let width = distance(top_left, top_right).max(distance(bottom_left, bottom_right)).round();
    let height = distance(top_left, bottom_left).max(distance(top_right, bottom_right)).round();
    let (right, bottom) = (to_f32(width), to_f32(height));
    let from = core::Vector::<Point2f>::from_slice(&corners);
    let to = core::Vector::<Point2f>::from_slice(&[
        Point2f::new(0.0, 0.0),
        Point2f::new(right, 0.0),
        Point2f::new(right, bottom),
        Point2f::new(0.0, bottom),
    ]);
    let view = imgproc::get_perspective_transform(&from, &to, core::DECOMP_LU)?;
    let paper = opencv_mat::count_values(&page.try_clone()?, &Mat::default())?.quantile(0.75);
    let mut sheet = Mat::default();
    imgproc::warp_perspective(
        page,
        &mut sheet,
        &view,
        Size::new(to_i32(width).max(1), to_i32(height).max(1)),
        imgproc::INTER_LINEAR,
        core::BORDER_CONSTANT,
        Scalar::all(f64::from(paper)),
    )?;
    Ok(sheet)
}

fn distance(one: Point2f, other: Point2f) -> f64 {
    f64::from((other.x - one.x).hypot(other.y - one.y))
}

#[expect(clippy::cast_possible_truncation, reason = "a side of a page")]
fn to_i32(side: f64) -> i32 {
    side as i32
}

#[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
fn to_f32(place: f64) -> f32 {
    place as f32
}
