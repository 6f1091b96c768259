//! Content of a page before OCR.

use docmill_core::model::{
    PageCode, PageDefect, PageDefectKind, PageMark, PageText, TextLayer, TextLine,
};
use docmill_office::GridPage;

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

/// A page in colour: red, green and blue, each as a page of grey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColourPlanes(pub(crate) [PageRaster; 3]);

impl ColourPlanes {
    /// The planes of these pixels; `of` has their size and no pixels.
    pub(crate) fn split(pixels: impl Iterator<Item = [u8; 3]>, of: PageRaster) -> Self {
        let count = pixels.size_hint().0;
        let mut planes = [(); 3].map(|()| Vec::with_capacity(count));
        for pixel in pixels {
            for (plane, value) in planes.iter_mut().zip(pixel) {
                plane.push(value);
            }
        }
        Self(planes.map(|pixels| PageRaster { pixels, ..of }))
    }

    /// The pixels, row by row from the top.
    pub(crate) fn pixels(&self) -> impl Iterator<Item = [u8; 3]> {
        let [red, green, blue] = &self.0;
        let rest = green.pixels.iter().zip(&blue.pixels);
        red.pixels.iter().zip(rest).map(|(red, (green, blue))| [*red, *green, *blue])
    }
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
    /// A page of an Office document, web page or text file: nothing but its words.
    Laid(GridPage),
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

/// Marks a page of which a part may be missing. One without text is lost: it need not have been
/// blank.
pub(crate) fn mark_incomplete(mut page: PageText) -> PageText {
    if page.lines.is_empty() {
        return PageText::from_native(page.number, (page.width, page.height), 0.0, Vec::new());
    }
    page.quality = page.quality.min(CUT_QUALITY);
    if page.defects.iter().all(|defect| defect.kind != PageDefectKind::DocumentCutoff) {
        page.defects.push(PageDefect { kind: PageDefectKind::DocumentCutoff, confidence: 1.0 });
    }
    page
}

#[cfg(test)]
mod tests {
    use docmill_core::model::PageSource;

    use super::*;

    #[test]
    fn a_page_of_a_cut_document_never_passes_for_a_whole_one() {
        let lines = vec![TextLine { words: Vec::new() }];
        let read = mark_incomplete(PageText::from_native(2, (10.0, 20.0), 1.0, lines));
        assert_eq!((read.number, read.quality), (2, CUT_QUALITY));
        assert_eq!(read.defects.first().map(|it| it.kind), Some(PageDefectKind::DocumentCutoff));
        let poor = mark_incomplete(PageText { quality: 0.1, ..read });
        assert_eq!((poor.quality, poor.defects.len()), (0.1, 1), "worse stays worse, said once");
        let blank = mark_incomplete(PageText {
            source: PageSource::Ocr,
            ..PageText::from_native(1, (10.0, 20.0), 0.9, Vec::new())
        });
        assert_eq!((blank.quality, blank.source), (0.0, PageSource::Native), "lost, not blank");
    }
}
