//! Content of a page before OCR.

use docmill_core::model::{PageCode, PageMark, TextLayer, TextLine};

/// Cap on the quality of a page whose file or picture is cut off. The missing part may matter, so a
/// document of such pages stays below any threshold that would pass it unseen.
pub(crate) const CUT_QUALITY: f32 = 0.3;

/// A page as grey pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRaster {
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Dots per inch; estimated from the paper size where the file states none.
    pub dpi: u32,
    /// `width * height` bytes, row by row from the top, 0 is black.
    pub pixels: Vec<u8>,
}

/// Content of a page.
#[derive(Debug, Clone)]
pub enum PageContent {
    /// A sound text layer (or a page with nothing on it); sizes and boxes in points of 1/72 inch.
    Text {
        /// Width after rotation.
        width: f32,
        /// Height after rotation.
        height: f32,
        /// Lines in reading order.
        lines: Vec<TextLine>,
        /// Codes that are drawn on it.
        codes: Vec<PageCode>,
        /// Drawn marks besides text.
        marks: Vec<PageMark>,
    },
    /// A picture that has to be read by OCR.
    Image(PageRaster),
    /// The decoded part of a picture that is cut off or damaged; the rest is blank.
    Cut(PageRaster),
    /// A text layer that cannot be all there is, or that cannot be right, and the page's picture.
    Doubtful {
        /// The text layer.
        layer: TextLayer,
        /// The rendered page, upright.
        picture: PageRaster,
    },
    /// A page whose content was lost: the file is damaged there, or draws it by a program.
    Damaged {
        /// Width after rotation, in points.
        width: f32,
        /// Height after rotation, in points.
        height: f32,
    },
}
