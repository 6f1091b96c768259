//! Repairs a page image so that it can be read: only what its defects call for, in an order in
//! which each step helps the next.
//!
//! turn → cut the sheet out of its photograph → even out the light → stretch the contrast →
//! calm noise → sharpen → straighten and enlarge. A page without a defect that a step is for is
//! left alone. The result is grey: Tesseract's own threshold was never beaten by one of ours.
//!
//! Deterministic: the same page gives the same pixels. Whether the repaired page reads better is
//! for the reader to compare.

mod steps;
#[cfg(test)]
mod tests;

use opencv::core::{self, Mat};
use opencv::prelude::*;

use super::PageRaster;
use super::plane::{self, OpenCvError, PixelMatrix};
use super::quality::{self, PageAssessment, PaperOutline};
use docmill_core::model::RepairSwitches;

/// What was done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStep {
    /// The page was turned by quarter turns.
    Turn,
    /// The sheet was cut out of its surroundings and made a rectangle.
    Perspective,
    /// Shadows were evened out.
    Flatten,
    /// The paper was made white and the ink black.
    Stretch,
    /// Noise was smoothed or specks removed.
    Denoise,
    /// Blurred edges were sharpened.
    Sharpen,
    /// Skewed lines were levelled.
    Deskew,
    /// Small text was enlarged.
    Upscale,
}

impl RepairStep {
    /// Whether afterwards the ink lies elsewhere on the page, its scale left aside.
    pub fn moves_ink(self) -> bool {
        matches!(self, Self::Turn | Self::Perspective | Self::Deskew)
    }

    /// Its name in transcripts and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Perspective => "perspective",
            Self::Flatten => "flatten",
            Self::Stretch => "stretch",
            Self::Denoise => "denoise",
            Self::Sharpen => "sharpen",
            Self::Deskew => "deskew",
            Self::Upscale => "upscale",
        }
    }
}

/// A page after its repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedRaster {
    /// The picture after all steps.
    pub raster: PageRaster,
    /// What was done, in order; never empty.
    pub steps: Vec<RepairStep>,
}

/// Repairs `page`, of which `found` is known, as far as `switches` allow. `None`: nothing to do.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn repair_page(
    page: &PageRaster,
    found: &PageAssessment,
    switches: RepairSwitches,
) -> Result<Option<RepairedRaster>, OpenCvError> {
    if !switches.enabled {
        return Ok(None);
    }
    if let (true, PaperOutline::Sheet(corners)) = (switches.perspective, found.outline) {
        let sheet = plane::raster_from_mat(
            &steps::rectify_sheet(&plane::view_raster(page)?, corners)?,
            page.dpi,
        )?;
        let seen = quality::assess_page(&sheet)?;
        let mut done = vec![RepairStep::Perspective];
        let further = repair_surface(&sheet, &seen, switches)?;
        done.extend(further.iter().flat_map(|repaired| repaired.steps.iter().copied()));
        let raster = further.map_or(sheet, |repaired| repaired.raster);
        return Ok(Some(RepairedRaster { raster, steps: done }));
    }
    repair_surface(page, found, switches)
}

/// Everything but the perspective.
fn repair_surface(
    page: &PageRaster,
    found: &PageAssessment,
    switches: RepairSwitches,
) -> Result<Option<RepairedRaster>, OpenCvError> {
    let plan = steps::plan_steps(found, switches);
    if plan.is_empty() {
        return Ok(None);
    }
    let mut current = plane::view_raster(page)?.try_clone()?;
    let mut dpi = page.dpi;
    for step in &plan {
        current = steps::apply_step(*step, &current, found)?;
    }
    if plan.contains(&RepairStep::Upscale) {
        dpi = dpi.saturating_mul(steps::enlargement_factor(found));
    }
    Ok(Some(RepairedRaster { raster: plane::raster_from_mat(&current, dpi)?, steps: plan }))
}

/// `page`, whose letters were enlarged, with the edges that enlarging softened made steep again,
/// and with the noise smoothed that this would show: another picture to read where the first one
/// was read badly.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn sharpen_enlarged(page: &PageRaster) -> Result<PageRaster, OpenCvError> {
    Ok(plane::raster_from_mat(&steps::sharpen_letters(&plane::view_raster(page)?)?, page.dpi)?)
}

/// `page` turned clockwise by `quarter_turns`, of which only the remainder by four counts.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn turn_page(page: &PageRaster, quarter_turns: u8) -> Result<PageRaster, OpenCvError> {
    let plane = plane::view_raster(page)?;
    Ok(plane::raster_from_mat(&turn_mat(&plane, quarter_turns)?, page.dpi)?)
}

fn turn_mat(plane: &impl PixelMatrix, quarter_turns: u8) -> opencv::Result<Mat> {
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
