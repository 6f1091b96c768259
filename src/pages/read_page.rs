//! One page, from the document to its text: the text layer where it has a sound one, else its
//! picture.

use std::time::Instant;

use super::language::Evidence;
use super::read_picture::{PictureRead, PictureReader};
use super::{Document, Layer, OpenCvError, Page, Raster, Recogniser, Refusal, doubt, rows};
use crate::fault::{self, Fault};
use crate::model::{Line, PageRead, PageText, Reason, Recipe, Repairs, Source};

/// A picture of at least this quality was read well enough to replace a garbled text layer.
const READABLE: f32 = 0.5;

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

impl From<OpenCvError> for Trouble {
    fn from(error: OpenCvError) -> Self {
        Self::Failed(fault::Error::internal("a page image cannot be looked at").because(error))
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
    let started = Instant::now();
    let number = index + 1;
    let page = match document.page(index)? {
        Page::Text { width, height, lines } => {
            document.hear(Evidence::of(&lines).language(recogniser.languages()));
            PageText { lines, ..native(number, width, height, 1.0) }
        }
        Page::Doubtful { layer, garbled, picture } => {
            let page_time = document.limits.page_time;
            let hint = Evidence::of(&layer.lines).language(recogniser.languages());
            let hint = hint.filter(|_| !garbled).map(str::to_owned);
            // The picture is drawn, not scanned: there is nothing to repair.
            let recipe = &Recipe { repairs: Repairs::NONE, ..recipe.clone() };
            let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
            let read = reader.read(&picture)?;
            doubtful(number, (layer, garbled), &picture, read)
        }
        // Quality 0 lets the gate see that the document is not complete.
        Page::Damaged { width, height } => native(number, width, height, 0.0),
        Page::Image(raster) => {
            let page_time = document.limits.page_time;
            let hint = document.heard.get().cloned();
            let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
            let read = reader.read(&raster)?;
            document.hear(read.heard.as_deref());
            return Ok(picture(number, read));
        }
    };
    Ok(PageRead { page, repaired: None })
}

/// Both readings of a page in one: the layer, and the words of the picture that it leaves out. A
/// garbled layer counts for nothing beside a picture that was read.
fn doubtful(
    number: u32,
    (layer, garbled): (Layer, bool),
    picture: &Raster,
    read: PictureRead,
) -> PageText {
    let Layer { width, height, lines } = layer;
    if garbled {
        return match read.quality >= READABLE {
            true => read_from(number, read),
            false => PageText { lines, ..native(number, width, height, 0.0) },
        };
    }
    let in_pixels = doubt::in_pixels(&lines, picture.dpi);
    let missing = doubt::missing(&in_pixels, &read.lines);
    if missing.is_empty() {
        return PageText { lines, ..native(number, width, height, 1.0) };
    }
    let words = |lines: &[Line]| lines.iter().map(|line| count(line.words.len())).sum::<f32>();
    let (sure, added) = (words(&in_pixels), words(&missing));
    let quality = (sure + added * read.quality) / (sure + added);
    let lines = rows(in_pixels.into_iter().chain(missing).collect());
    PageText { lines, quality, ..read_from(number, read) }
}

impl Document {
    /// Keeps the language of the first page that says it: the others are then read in it at once,
    /// unless their own words say otherwise.
    fn hear(&self, language: Option<&str>) {
        if let Some(language) = language {
            self.heard.get_or_init(|| language.to_owned());
        }
    }
}

fn picture(number: u32, mut read: PictureRead) -> PageRead {
    let repaired = read.repaired.take();
    let page = PageText { repaired: repaired.is_some(), ..read_from(number, read) };
    PageRead { page, repaired }
}

fn read_from(number: u32, read: PictureRead) -> PageText {
    let (width, height) = (real(read.width), real(read.height));
    PageText {
        source: Source::Ocr,
        defects: read.defects,
        languages: read.languages,
        lines: read.lines,
        ..native(number, width, height, read.quality)
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

fn count(words: usize) -> f32 {
    real(u32::try_from(words).unwrap_or(u32::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn real(pixels: u32) -> f32 {
    pixels as f32
}
