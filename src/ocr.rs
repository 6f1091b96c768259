//! Text from page images, behind one small trait.
//!
//! An implementation reads one page image at a time and answers in the provider-neutral form of
//! `model::transcript`. It does not judge the page and does not decide what to do about a bad one.

mod paged;
pub mod tesseract;

use async_trait::async_trait;
use bytes::Bytes;

use crate::fault::Result;
use crate::model::Line;

pub use paged::Paged;

/// One page as grey pixels.
#[derive(Debug, Clone)]
pub struct PageImage {
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Dots per inch the pixels were taken at, as far as known.
    pub dpi: u32,
    /// `width * height` bytes, row by row from the top, 0 is black. Shared with whoever judges the
    /// reading afterwards.
    pub pixels: Bytes,
}

/// What was read from one page image.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Lines in reading order; boxes in pixels of the image.
    pub lines: Vec<Line>,
    /// Languages it was read with.
    pub languages: Vec<String>,
}

/// A reader of page images.
#[async_trait]
pub trait Ocr: Send + Sync {
    /// Name and version, e.g. `tesseract 5.3.0`; stored in the transcript.
    fn name(&self) -> String;

    /// Everything that changes what is read (version, languages, options): part of the
    /// transcript's identity.
    fn identity(&self) -> String;

    /// Reads one page. Dropping the future stops the work. `alone`: the document is a suspect
    /// (a worker died on it) and shares no process with others.
    async fn read(&self, page: PageImage, alone: bool) -> Result<Reading>;
}
