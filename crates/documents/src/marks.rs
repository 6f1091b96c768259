//! Marks on a page's picture that are no text: QR codes with what they say, boxes to be ticked, figures,
//! signatures, stamps and writing by hand.
//!
//! Everything is bounded by counts, not by time: pixels that are looked at, corner patterns, codes that
//! are tried. A code that cannot be read is left out, and so is a box of which it is not clear what it
//! is: a page has no mark that it does not show. Not told: whose hand or stamp it is, and codes of any other
//! symbology. Belongs into a page process.

mod checkboxes;
mod figures;
mod finders;
mod handwriting;
mod ink;
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

/// What was found on a picture; boxes in its pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PageMarks {
    /// Codes whose error correction holds.
    pub(crate) codes: Vec<PageCode>,
    /// Boxes beside words.
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
    let codes = qr::read_codes(&ink, &finders, &triples)?;
    let areas = triples.iter().map(FinderTriple::area);
    let taken: Vec<BoundingBox> = areas.filter(|area| ink.is_dense(area)).collect();
    let boxes = checkboxes::find_boxes(&ink, picture.dpi, &taken, lines);
    let figures = figures::find_figures(picture, lines)?;
    Ok(PageMarks { codes, boxes, figures })
}

/// Looks for what a pen or a stamp left on a picture of which `lines` were read and `known` was found.
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
    found.extend(handwriting::find_hands(&ink, lines, &taken)?);
    Ok(found)
}

/// Whether there may be a code on the picture, and the codes that can be read there: three corner
/// patterns lie as they do on one, or ink and paper change as often as the modules of one do that is too
/// fine for this picture.
///
/// # Errors
/// No memory.
pub(crate) fn glance_at_codes(picture: &PageRaster) -> Result<(bool, Vec<PageCode>), OpenCvError> {
    let ink = PageInk::from_raster(picture)?;
    let finders = finders::find_finders(&ink);
    let triples = finders::group_finders(&finders);
    let codes = qr::read_codes(&ink, &finders, &triples)?;
    Ok((!triples.is_empty() || ink.is_busy()?, codes))
}

pub(crate) use self::checkboxes::{TickBox, write_boxes};

#[cfg(test)]
mod tests;
