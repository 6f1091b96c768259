//! One page, from the document to its text: the text layer where it has a sound one, else its
//! picture.

use std::time::Instant;

use super::language::Evidence;
use super::read_picture::{PictureRead, PictureReader};
use super::{Document, OpenCvError, Page, Recogniser, Refusal, doubt, rows};
use crate::fault::{self, Fault};
use crate::model::{
    Defect, DefectKind, Line, PageRead, PageText, Reason, Recipe, Repairs, Source, TextLayer,
};

/// A picture of at least this quality was read well enough to replace a garbled text layer.
const READABLE: f32 = 0.5;
/// Best quality of a page whose file or picture is cut off: what is missing may be what matters, so
/// a document of such pages stays below any threshold that lets it pass unseen.
pub(super) const CUT_QUALITY: f32 = 0.3;

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

/// Reads page `index` of `document`, which starts at 0. A page of a document that is cut off says so
/// by its quality and as a defect.
///
/// # Errors
/// The document is to blame, or something else is.
pub fn read_page(
    document: &Document,
    index: u32,
    recipe: &Recipe,
    recogniser: &mut dyn Recogniser,
) -> Result<PageRead, Trouble> {
    let page = document.page(index)?;
    let is_cut = document.is_cut() || matches!(page, Page::Cut(_));
    let mut read = read_content(document, index, page, recipe, recogniser)?;
    if is_cut {
        read.page = incomplete(read.page);
    }
    Ok(read)
}

/// A page of which a part may be missing. One without text is lost: nobody can say that it was
/// blank.
pub(super) fn incomplete(mut page: PageText) -> PageText {
    if page.lines.is_empty() {
        return PageText::native(page.number, (page.width, page.height), 0.0, Vec::new());
    }
    page.quality = page.quality.min(CUT_QUALITY);
    if page.defects.iter().all(|defect| defect.kind != DefectKind::DocumentCutoff) {
        page.defects.push(Defect { kind: DefectKind::DocumentCutoff, confidence: 1.0 });
    }
    page
}

fn read_content(
    document: &Document,
    index: u32,
    page: Page,
    recipe: &Recipe,
    recogniser: &mut dyn Recogniser,
) -> Result<PageRead, Trouble> {
    let started = Instant::now();
    let number = index + 1;
    let page = match page {
        Page::Text { width, height, lines } => {
            document.hear(Evidence::of(&lines).language(recogniser.languages()));
            PageText::native(number, (width, height), 1.0, lines)
        }
        Page::Doubtful { layer, picture } => {
            let page_time = document.limits.page_time;
            let hint = Evidence::of(&layer.lines).language(recogniser.languages());
            let hint = hint.filter(|_| !layer.garbled).map(str::to_owned);
            // The picture is drawn, not scanned: there is nothing to repair.
            let recipe = &Recipe { repairs: Repairs::NONE, ..recipe.clone() };
            let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
            let read = reader.read(&picture)?;
            doubtful(number, layer, picture.dpi, read)
        }
        // Quality 0 lets the gate see that the document is not complete.
        Page::Damaged { width, height } => {
            PageText::native(number, (width, height), 0.0, Vec::new())
        }
        Page::Image(raster) | Page::Cut(raster) => {
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
pub(super) fn doubtful(number: u32, layer: TextLayer, dpi: u32, read: PictureRead) -> PageText {
    let TextLayer { width, height, lines, garbled } = layer;
    let native = |quality, lines| PageText::native(number, (width, height), quality, lines);
    if garbled {
        return match read.quality >= READABLE {
            true => read_from(number, read),
            false => native(0.0, lines),
        };
    }
    let in_pixels = doubt::in_pixels(&lines, dpi);
    let missing = doubt::missing(&in_pixels, &read.lines);
    if missing.is_empty() {
        return native(1.0, lines);
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

pub(super) fn read_from(number: u32, read: PictureRead) -> PageText {
    let (width, height) = (real(read.width), real(read.height));
    PageText {
        source: Source::Ocr,
        defects: read.defects,
        languages: read.languages,
        ..PageText::native(number, (width, height), read.quality, read.lines)
    }
}

fn count(words: usize) -> f32 {
    real(u32::try_from(words).unwrap_or(u32::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn real(pixels: u32) -> f32 {
    pixels as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_cut_document_never_passes_for_a_whole_one() {
        let lines = vec![Line { words: Vec::new() }];
        let read = incomplete(PageText::native(2, (10.0, 20.0), 1.0, lines));
        assert_eq!((read.number, read.quality), (2, CUT_QUALITY));
        assert_eq!(read.defects.first().map(|it| it.kind), Some(DefectKind::DocumentCutoff));
        let poor = incomplete(PageText { quality: 0.1, ..read });
        assert_eq!((poor.quality, poor.defects.len()), (0.1, 1), "worse stays worse, said once");
        let blank = incomplete(PageText {
            source: Source::Ocr,
            ..PageText::native(1, (10.0, 20.0), 0.9, Vec::new())
        });
        assert_eq!((blank.quality, blank.source), (0.0, Source::Native), "lost, not blank");
    }
}
