//! One page, from the document to its text: the text layer where it has a sound one, else its
//! picture.

use std::time::Instant;

use crate::document::ParsedDocument;
use crate::image::format::DocumentFormat;
use crate::language::LanguageEvidence;
use crate::office_page::page_from_grid;
use crate::page::{PageContent, PageRaster, mark_incomplete};
use crate::page_error::PageError;
use crate::pdf::drawn_marks::box_in_points;
use crate::pdf::lines::join_rows;
use crate::pdf::text_layer_check;
use crate::reading::read_picture::{PictureRead, PictureReader};
use crate::reading::recognise::PageRecogniser;
use crate::reading::second_look;
use docmill_core::model::{
    PageMark, PageMarkKind, PageReadResult, PageSource, PageText, ReadRecipe, RepairSwitches,
    SecondLook, SecondLookResult, TextLayer, TextLine,
};

/// A picture of at least this quality was read well enough to replace a garbled text layer.
const MIN_READABLE_QUALITY: f32 = 0.5;

/// Reads page `index` of `document`, which starts at 0. A page of a truncated document is marked by
/// its quality and by a defect.
///
/// # Errors
/// The document is to blame, or something else is.
pub fn read_page(
    document: &ParsedDocument,
    index: u32,
    recipe: &ReadRecipe,
    recogniser: &mut dyn PageRecogniser,
) -> Result<PageReadResult, PageError> {
    let page = document.page_content(index)?;
    let is_cut = document.is_cut() || matches!(page, PageContent::Cut(_));
    let mut read = read_content(document, index, page, recipe, recogniser)?;
    if is_cut {
        read.page = mark_incomplete(read.page);
    }
    Ok(read)
}

/// Reads page `index`, which starts at 0, and compares its text layer with its drawing. A page that
/// has none, or whose words were compared already, is not compared.
///
/// # Errors
/// As [`read_page`].
pub(crate) fn compare_page(
    document: &ParsedDocument,
    index: u32,
    recipe: &ReadRecipe,
    recogniser: &mut dyn PageRecogniser,
) -> Result<SecondLook, PageError> {
    let started = Instant::now();
    let mut page = read_page(document, index, recipe, recogniser)?.page;
    // The picture of an Office page is drawn from its text.
    let is_laid = matches!(document.format(), DocumentFormat::Office(_));
    if is_laid || page.source != PageSource::Native {
        return Ok(SecondLook { page, result: SecondLookResult::Unread });
    }
    let hint = LanguageEvidence::from_lines(&page.lines).leading_language(recogniser.languages());
    let (hint, page_time) = (hint.map(str::to_owned), document.limits.page_time);
    let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
    let result = second_look::look_at_all(document, index, &mut page.lines, &mut reader)?;
    Ok(SecondLook { page, result })
}

/// Reads a piece of a page.
///
/// # Errors
/// Those of the recogniser.
pub(crate) fn read_crop(
    document: &ParsedDocument,
    crop: &PageRaster,
    recipe: &ReadRecipe,
    recogniser: &mut dyn PageRecogniser,
) -> Result<Vec<TextLine>, PageError> {
    let (hint, page_time) = (document.detected_language.get().cloned(), document.limits.page_time);
    let mut reader = PictureReader { recogniser, recipe, hint, started: Instant::now(), page_time };
    reader.read_crop(crop)
}

fn read_content(
    document: &ParsedDocument,
    index: u32,
    page: PageContent,
    recipe: &ReadRecipe,
    recogniser: &mut dyn PageRecogniser,
) -> Result<PageReadResult, PageError> {
    let started = Instant::now();
    let number = index + 1;
    let page = match page {
        PageContent::Text { width, height, lines, codes, marks } => {
            let language =
                LanguageEvidence::from_lines(&lines).leading_language(recogniser.languages());
            document.remember_language(language);
            let hint = language.map(str::to_owned);
            let page_time = document.limits.page_time;
            let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
            let lines = second_look::look_again(document, index, lines, &mut reader)?;
            let quality = second_look::layer_quality(&lines);
            let page = PageText::from_native(number, (width, height), quality, lines);
            PageText { codes, marks, ..page }
        }
        PageContent::Doubtful { layer, picture } => {
            let page_time = document.limits.page_time;
            let hint =
                LanguageEvidence::from_lines(&layer.lines).leading_language(recogniser.languages());
            let hint = hint.filter(|_| !layer.garbled).map(str::to_owned);
            // The picture is drawn, not scanned: there is nothing to repair.
            let recipe = &ReadRecipe { repairs: RepairSwitches::NONE, ..recipe.clone() };
            let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
            let read = reader.read(&picture)?;
            merge_suspect_layer(number, layer, picture.dpi, read)
        }
        PageContent::Laid(page) => {
            let language =
                LanguageEvidence::from_lines(&page.lines).leading_language(recogniser.languages());
            document.remember_language(language);
            page_from_grid(number, page)
        }
        // Quality 0 lets the gate see that the document is not complete.
        PageContent::Damaged { width, height } => {
            PageText::from_native(number, (width, height), 0.0, Vec::new())
        }
        PageContent::Image(raster) | PageContent::Cut(raster) => {
            let page_time = document.limits.page_time;
            let hint = document.detected_language.get().cloned();
            let mut reader = PictureReader { recogniser, recipe, hint, started, page_time };
            let read = reader.read(&raster)?;
            document.remember_language(read.detected_language.as_deref());
            return Ok(page_from_picture(number, read));
        }
    };
    Ok(PageReadResult { page, repaired: None })
}

/// Both readings of a page in one: the layer, and the words of the picture that it leaves out. A
/// garbled layer counts for nothing beside a picture that was read.
pub(crate) fn merge_suspect_layer(
    number: u32,
    layer: TextLayer,
    dpi: u32,
    read: PictureRead,
) -> PageText {
    let TextLayer { width, height, lines, garbled, marks } = layer;
    let mut codes = read.codes.clone();
    for code in &mut codes {
        code.bounding_box = box_in_points(code.bounding_box, dpi);
    }
    // The page if its layer is kept; else the marks that it gets besides those of the picture.
    let native = PageText {
        codes,
        marks: marks.clone(),
        ..PageText::from_native(number, (width, height), 1.0, Vec::new())
    };
    let marks = scale_marks(&marks, dpi);
    if garbled {
        return match read.quality >= MIN_READABLE_QUALITY {
            true => with_drawn_marks(read_from(number, read), marks),
            false => PageText { lines, quality: 0.0, ..native },
        };
    }
    let in_pixels = text_layer_check::scale_to_pixels(&lines, dpi);
    let in_pixels = second_look::compare_words(in_pixels, &read.lines);
    let lines = second_look::take_words(lines, &in_pixels);
    let missing = text_layer_check::missing_words(&in_pixels, &read.lines);
    let sure_quality = second_look::layer_quality(&lines);
    if missing.is_empty() {
        return PageText { lines, quality: sure_quality, ..native };
    }
    let (sure, added) = (count_words(&in_pixels), count_words(&missing));
    let quality = (sure * sure_quality + added * read.quality) / (sure + added);
    let lines = join_rows(in_pixels.into_iter().chain(missing).collect());
    PageText { lines, quality, ..with_drawn_marks(read_from(number, read), marks) }
}

/// Handwriting is seen on the picture only; figures are known better from the file.
fn with_drawn_marks(mut page: PageText, drawn: Vec<PageMark>) -> PageText {
    page.marks.retain(|mark| mark.kind != PageMarkKind::Figure);
    let marks = drawn.into_iter().chain(page.marks);
    PageText { marks: marks.take(PageMark::MAX_PER_PAGE).collect(), ..page }
}

/// Marks in points in pixels of the page drawn at `dpi`.
fn scale_marks(marks: &[PageMark], dpi: u32) -> Vec<PageMark> {
    let scale = pixels_to_f32(dpi) / 72.0;
    let mut marks = marks.to_vec();
    for mark in &mut marks {
        mark.bounding_box = mark.bounding_box.scaled(scale, scale);
    }
    marks
}

fn page_from_picture(number: u32, mut read: PictureRead) -> PageReadResult {
    let repaired = read.repaired.take();
    let page = PageText { repaired: repaired.is_some(), ..read_from(number, read) };
    PageReadResult { page, repaired }
}

pub(crate) fn read_from(number: u32, read: PictureRead) -> PageText {
    let (width, height) = (pixels_to_f32(read.width), pixels_to_f32(read.height));
    PageText {
        source: PageSource::Ocr,
        defects: read.defects,
        languages: read.languages,
        codes: read.codes,
        marks: read.marks,
        ..PageText::from_native(number, (width, height), read.quality, read.lines)
    }
}

fn count_words(lines: &[TextLine]) -> f32 {
    let words = lines.iter().map(|line| line.words.len()).sum::<usize>();
    pixels_to_f32(u32::try_from(words).unwrap_or(u32::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn pixels_to_f32(pixels: u32) -> f32 {
    pixels as f32
}
