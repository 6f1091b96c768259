//! Marks on a page's picture besides its text: QR codes and codes of bars with their payload, checkboxes,
//! figures, signatures, stamps and handwriting.
//!
//! Everything is bounded by counts, not by time: pixels, corner patterns, decoded codes. Precision
//! over recall: unreadable codes and ambiguous boxes are dropped. Not covered: whose hand or stamp
//! it is, and other symbologies. Runs inside of a page process.

mod checkboxes;
mod figures;
mod finders;
mod handwriting;
mod ink;
mod linear;
mod qr;
mod ruling_removal;
mod stamps;

use crate::image::opencv_mat::OpenCvError;
use crate::page::PageRaster;
use docmill_core::model::{BoundingBox, PageCode, PageMark, TextLine};

use self::finders::FinderTriple;
use self::ink::PageInk;
use self::ruling_removal::UnruledInk;
use self::stamps::StampForms;

/// Marks of a picture; boxes in its pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PageMarks {
    /// Codes whose error correction holds.
    pub(crate) codes: Vec<PageCode>,
    /// Checkboxes beside words.
    pub(crate) boxes: Vec<TickBox>,
    /// Pictures on it.
    pub(crate) figures: Vec<PageMark>,
}

/// Looks for marks on a picture of which `lines` were read, boxes in its pixels.
///
/// # Errors
/// No memory.
pub(crate) fn find_marks(
    picture: &PageRaster,
    lines: &[TextLine],
) -> Result<PageMarks, OpenCvError> {
    let ink = PageInk::from_raster(picture)?;
    let finders = finders::find_finders(&ink);
    let triples = finders::group_finders(&finders);
    let mut codes = qr::read_codes(&ink, &finders, &triples)?;
    codes.extend(linear::read_codes(&ink)?);
    codes.truncate(PageCode::MAX_PER_PAGE);
    let areas = triples.iter().map(FinderTriple::area);
    let taken: Vec<BoundingBox> = areas.filter(|area| ink.is_dense(area)).collect();
    let boxes = checkboxes::find_boxes(&ink, picture.dpi, &taken, lines);
    let figures = figures::find_figures(picture, lines)?;
    Ok(PageMarks { codes, boxes, figures })
}

/// Looks for marks of a pen or a stamp on a picture of which `lines` were read and `known` was
/// found.
///
/// # Errors
/// No memory.
pub(crate) fn find_pen_marks(
    picture: &PageRaster,
    lines: &[TextLine],
    known: &PageMarks,
) -> Result<Vec<PageMark>, OpenCvError> {
    let ink = UnruledInk::from_raster(picture)?;
    let StampForms { stamps: mut found, rings } = stamps::find_stamps(&ink)?;
    let codes = known.codes.iter().map(|code| code.bounding_box);
    let boxes = known.boxes.iter().map(|square| square.area);
    let drawn = known.figures.iter().chain(&found).map(|mark| mark.bounding_box);
    let taken: Vec<BoundingBox> = codes.chain(boxes).chain(drawn).chain(rings).collect();
    found.extend(handwriting::find_handwriting(&ink, lines, &taken)?);
    Ok(found)
}

/// Whether there may be a code on the picture, and the codes that can be read there. There may be
/// one if three corner patterns lie as on a code. So may it if ink and paper alternate as densely
/// as in a code too fine for this picture.
///
/// # Errors
/// No memory.
pub(crate) fn glance_at_codes(picture: &PageRaster) -> Result<(bool, Vec<PageCode>), OpenCvError> {
    let ink = PageInk::from_raster(picture)?;
    let finders = finders::find_finders(&ink);
    let triples = finders::group_finders(&finders);
    let mut codes = qr::read_codes(&ink, &finders, &triples)?;
    codes.extend(linear::read_codes(&ink)?);
    codes.truncate(PageCode::MAX_PER_PAGE);
    Ok((!triples.is_empty() || ink.is_busy()?, codes))
}

pub(crate) use self::checkboxes::{TickBox, is_checkbox, write_boxes};

#[cfg(test)]
mod tests;
