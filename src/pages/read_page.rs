//! One page, from the document to its text: the text layer where it has a sound one, else its
//! picture.

use super::{Document, Page, Raster, Recogniser, Refusal, legibility, rows};
use crate::fault::{self, Fault};
use crate::model::{PageRead, PageText, Reason, Recipe, Source};

/// Why a page was not read.
#[derive(Debug)]
pub enum Trouble {
    /// Because of the document.
    Refused(Refusal),
    /// Because of something else.
    Failed(fault::Error),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<fault::Error> for Trouble {
    /// A page that the recogniser gives up on is the input's fault.
    fn from(error: fault::Error) -> Self {
        match error.fault {
            Fault::Rejected => Self::Refused(Refusal::new(Reason::Timeout, error.context)),
            _ => Self::Failed(error),
        }
    }
}

/// Reads page `index` of `document`, which starts at 0.
///
/// # Errors
/// The document is to blame, or something else is.
pub fn read_page(
    document: &Document,
    index: u32,
    recipe: &Recipe,
    recogniser: &mut dyn Recogniser,
) -> Result<PageRead, Trouble> {
    let number = index + 1;
    let page = match document.page(index)? {
        Page::Text { width, height, lines } => {
            PageText { lines, ..native(number, width, height, 1.0) }
        }
        // Quality 0 lets the gate see that the document is not complete.
        Page::Damaged { width, height } => native(number, width, height, 0.0),
        Page::Image(raster) => picture(&raster, number, recipe, recogniser)?,
    };
    Ok(PageRead { page, repaired: None })
}

fn picture(
    raster: &Raster,
    number: u32,
    recipe: &Recipe,
    recogniser: &mut dyn Recogniser,
) -> Result<PageText, Trouble> {
    let languages = match recipe.languages.as_slice() {
        [] => recogniser.languages().to_vec(),
        configured => configured.to_vec(),
    };
    let lines = recogniser.recognise(raster, &languages)?;
    let quality = legibility(raster, &lines).quality();
    let (width, height) = (pixel_count(raster.width), pixel_count(raster.height));
    Ok(PageText {
        source: Source::Ocr,
        languages,
        lines: rows(lines),
        ..native(number, width, height, quality)
    })
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

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn pixel_count(pixels: u32) -> f32 {
    pixels as f32
}
