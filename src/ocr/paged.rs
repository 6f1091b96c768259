//! A reader of pages made of an OCR: the text layer where a page has one, else its picture.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Runtime;

use super::{Ocr, PageImage};
use crate::fault::{Error, Fault, Result};
use crate::model::{PageRead, PageText, Reason, Recipe, Source};
use crate::pages::serve::{PageReader, Trouble};
use crate::pages::{self, Document, Page, Raster, Refusal};

/// Reads a page and waits for the OCR.
pub struct Paged {
    ocr: Arc<dyn Ocr>,
    runtime: Runtime,
}

impl Paged {
    /// Around an OCR that others may use at the same time.
    ///
    /// # Errors
    /// The system has no room for what waits for it.
    pub fn new(ocr: Arc<dyn Ocr>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Error::transient("cannot wait for the OCR").because(error))?;
        Ok(Self { ocr, runtime })
    }

    fn picture(&self, raster: Raster, number: u32) -> std::result::Result<PageText, Trouble> {
        let Raster { width, height, dpi, pixels } = raster;
        let pixels = Bytes::from(pixels);
        let image = PageImage { width, height, dpi, pixels: pixels.clone() };
        let reading = self.runtime.block_on(self.ocr.read(image, false)).map_err(trouble)?;
        let raster = Raster { width, height, dpi, pixels: pixels.into() };
        let quality = pages::legibility(&raster, &reading.lines).quality();
        Ok(PageText {
            source: Source::Ocr,
            quality,
            languages: reading.languages,
            lines: pages::rows(reading.lines),
            ..native(number, pixel_count(width), pixel_count(height), quality)
        })
    }
}

impl PageReader for Paged {
    fn read(
        &mut self,
        document: &Document,
        index: u32,
        _recipe: &Recipe,
    ) -> std::result::Result<PageRead, Trouble> {
        let number = index + 1;
        let page = match document.page(index)? {
            Page::Text { width, height, lines } => {
                PageText { lines, ..native(number, width, height, 1.0) }
            }
            // Quality 0 lets the gate see that the document is not complete.
            Page::Damaged { width, height } => native(number, width, height, 0.0),
            Page::Image(raster) => self.picture(raster, number)?,
        };
        Ok(PageRead { page, repaired: None })
    }
}

fn native(number: u32, width: f32, height: f32, quality: f32) -> PageText {
    PageText {
        number,
        source: Source::Native,
        width,
        height,
        quality,
        defects: Vec::new(),
        languages: Vec::new(),
        repaired: false,
        lines: Vec::new(),
    }
}

/// A page that the OCR itself gives up on is the input's fault.
fn trouble(error: Error) -> Trouble {
    match error.fault {
        Fault::Rejected => Refusal::new(Reason::Timeout, error.context).into(),
        _ => error.into(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn pixel_count(pixels: u32) -> f32 {
    pixels as f32
}
