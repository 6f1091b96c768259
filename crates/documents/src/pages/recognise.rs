//! What reads the text of a page image; implemented by `ocr`, handed in by whoever starts the work.

use super::page::PageRaster;
use docmill_core::fault::Result;
use docmill_core::model::TextLine;

/// Reads page images, one at a time, on the thread that calls it.
///
/// It does not judge the page and does not decide what to do about a bad one. The same image and
/// languages give the same lines, whatever was read before.
pub trait PageRecogniser: Send {
    /// Languages it can read, as Tesseract names them (ISO 639-2, with a script where one language
    /// has several).
    fn languages(&self) -> &[String];

    /// Reads `page` with `languages`, of which there is at least one, the first being the main one.
    /// Lines as they were found, boxes in pixels of `page`.
    ///
    /// # Errors
    /// [`Fault::Rejected`](docmill_core::fault::Fault::Rejected): the page takes longer than it
    /// may. Anything else is not the page's fault.
    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>>;
}
