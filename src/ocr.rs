//! Text from page images, behind one small trait.
//!
//! An implementation makes recognisers, which read one page image at a time in the provider-neutral
//! form of `model::transcript`. It does not judge the page and does not decide what to do about a bad
//! one.

pub mod tesseract;

use crate::fault::Result;
use crate::pages::Recogniser;

/// Something that reads page images in this process.
pub trait Ocr: Send + Sync {
    /// Name and version, e.g. `tesseract 5.3.0`; stored in the transcript.
    fn name(&self) -> String;

    /// Everything that changes what is read from the same image (version, languages that are there,
    /// options): part of the transcript's identity.
    fn identity(&self) -> String;

    /// One more reader of pages, for one thread.
    ///
    /// # Errors
    /// What it needs is not there.
    fn recogniser(&self) -> Result<Box<dyn Recogniser>>;
}
