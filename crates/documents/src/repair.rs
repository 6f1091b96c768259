//! Repairs a page image for OCR: only as its defects call for, in an order in which each step helps
//! the next.
//!
//! turn → cut the sheet out of its photograph → straighten its lines → even out the light → stretch
//! the contrast → reduce noise → sharpen → deskew and enlarge. A page without the defects of a step
//! does not get it. The result is grey: no threshold of ours ever beat Tesseract's own.
//!
//! Deterministic. The reader compares whether the repaired page reads better.

mod steps;
#[cfg(test)]
mod tests;

pub use steps::RepairStep;

use opencv::core::Point2f;
use opencv::prelude::*;

use crate::image::opencv_mat::{self, OpenCvError};
use crate::page::{ColourPlanes, PageRaster};
use crate::quality::{self, LineBend, PageAssessment, PaperOutline};
use docmill_core::model::RepairSwitches;

/// A page after its repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedRaster {
    /// The new picture.
    pub raster: PageRaster,
    /// Applied steps in order; never empty.
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
    let Some(sheet) = find_sheet(page, found, switches)? else {
        return repair_surface(page, found, switches);
    };
    let FlatSheet { mut raster, mut steps, seen, .. } = sheet;
    if let Some(further) = repair_surface(&raster, &seen, switches)? {
        steps.extend(further.steps);
        raster = further.raster;
    }
    Ok(Some(RepairedRaster { raster, steps }))
}

/// The sheet in the photograph `page`, of which `found` is known, cut out and made flat, as far as
/// `switches` allow; its light and its grey as they are. `None`: there is no sheet in it, or it
/// fills the picture.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn cut_out_sheet(
    page: &PageRaster,
    found: &PageAssessment,
    switches: RepairSwitches,
) -> Result<Option<RepairedRaster>, OpenCvError> {
    let sheet = find_sheet(page, found, switches)?;
    Ok(sheet.map(|FlatSheet { raster, steps, .. }| RepairedRaster { raster, steps }))
}

/// Whether [`repair_page`] would do anything about what was found.
pub(crate) fn calls_for_repair(found: &PageAssessment, switches: RepairSwitches) -> bool {
    let has_sheet = switches.perspective && matches!(found.outline, PaperOutline::Sheet { .. });
    switches.enabled && (has_sheet || !steps::plan_steps(found, switches).is_empty())
}

/// The colours of `page`, of which `found` is known, moved as [`repair_page`] moves its ink. Their
/// size, light and contrast stay.
///
/// # Errors
/// `OpenCV` had no memory.
pub(crate) fn move_colours(
    page: &PageRaster,
    found: &PageAssessment,
    switches: RepairSwitches,
    colours: ColourPlanes,
) -> Result<ColourPlanes, OpenCvError> {
    let sheet = find_sheet(page, found, switches)?;
    let seen = sheet.as_ref().map_or(found, |sheet| &sheet.seen);
    let mut plan = steps::plan_steps(seen, switches);
    plan.retain(|step| step.moves_ink());
    let mut moved = colours;
    for plane in &mut moved.0 {
        let mut current = opencv_mat::view_raster(plane)?.try_clone()?;
        if let Some(sheet) = &sheet {
            current = steps::rectify_sheet(&current, sheet.corners)?;
            if let Some(bend) = &sheet.bend {
                current = quality::straighten_lines(&current, bend)?;
            }
        }
        for step in &plan {
            current = steps::apply_step(*step, &current, seen)?;
        }
        *plane = opencv_mat::raster_from_mat(&current, plane.dpi)?;
    }
    Ok(moved)
}

/// A sheet that was cut out of its photograph.
struct FlatSheet {
    raster: PageRaster,
    steps: Vec<RepairStep>,
    seen: PageAssessment,
    /// Where it lay, from the top left, clockwise.
    corners: [Point2f; 4],
    /// How its lines were bent.
    bend: Option<LineBend>,
}

fn find_sheet(
    page: &PageRaster,
    found: &PageAssessment,
    switches: RepairSwitches,
) -> Result<Option<FlatSheet>, OpenCvError> {
    let is_allowed = switches.enabled && switches.perspective;
    let (true, PaperOutline::Sheet { corners, .. }) = (is_allowed, found.outline) else {
        return Ok(None);
    };
    let sheet = steps::rectify_sheet(&opencv_mat::view_raster(page)?, corners)?;
    let raster = opencv_mat::raster_from_mat(&sheet, page.dpi)?;
    let (seen, bend) = quality::assess_sheet(&raster)?;
    let Some(lines) = &bend else {
        let steps = vec![RepairStep::Perspective];
        return Ok(Some(FlatSheet { raster, steps, seen, corners, bend }));
    };
    let straight = quality::straighten_lines(&sheet, lines)?;
    let raster = opencv_mat::raster_from_mat(&straight, page.dpi)?;
    let seen = quality::assess_page(&raster)?;
    let steps = vec![RepairStep::Perspective, RepairStep::Dewarp];
    Ok(Some(FlatSheet { raster, steps, seen, corners, bend }))
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
    let mut current = opencv_mat::view_raster(page)?.try_clone()?;
    let mut dpi = page.dpi;
    for step in &plan {
        current = steps::apply_step(*step, &current, found)?;
    }
    if plan.contains(&RepairStep::Upscale) {
        dpi = dpi.saturating_mul(steps::enlargement_factor(found));
    }
    Ok(Some(RepairedRaster { raster: opencv_mat::raster_from_mat(&current, dpi)?, steps: plan }))
}

/// `page`, whose letters were enlarged, with the edges that enlarging softened made steep again,
/// and with the noise smoothed that this would show: another picture to read where the first one
/// was read badly.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn sharpen_enlarged(page: &PageRaster) -> Result<PageRaster, OpenCvError> {
    Ok(opencv_mat::raster_from_mat(
        &steps::sharpen_letters(&opencv_mat::view_raster(page)?)?,
        page.dpi,
    )?)
}

/// `page` turned clockwise by `quarter_turns`, of which only the remainder by four counts.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn turn_page(page: &PageRaster, quarter_turns: u8) -> Result<PageRaster, OpenCvError> {
    let plane = opencv_mat::view_raster(page)?;
    Ok(opencv_mat::raster_from_mat(&opencv_mat::turn_mat(&plane, quarter_turns)?, page.dpi)?)
}
