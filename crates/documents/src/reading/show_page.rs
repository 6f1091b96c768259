//! A page for a remote reader: its text where the file has it, else its picture and its assessment;
//! and afterwards the page made from the reading.
//!
//! Showing runs inside of a page process, because it opens the document. Making a page from a
//! reading parses no bytes of the document and runs in the worker. Both follow the rules of
//! [`crate::reading::read_page::read_page()`]: a sound text layer stays, a hidden one is not
//! trusted, and text that a doubtful one lacks is added.

use crate::document::ParsedDocument;
use crate::image::encode::encode_page;
use crate::marks::glance_at_codes;
use crate::office_page::page_from_grid;
use crate::page::{PageContent, PageRaster, mark_incomplete};
use crate::page_error::PageError;
use crate::pdf::lines::join_rows;
use crate::quality::text_cells::TextCells;
use crate::quality::{self, PageAssessment};
use crate::reading::legibility::score_legibility;
use crate::reading::read_page::{merge_suspect_layer, read_from};
use crate::reading::read_picture::PictureRead;
use crate::repair::repair_page;
use docmill_core::model::{
    EncodedImage, ImageEncoding, ImageHeader, PagePicture, PageText, PageViewMode, PageViewResult,
    PictureFacts, ProviderNotes, ProviderReading, ReadRecipe, TextLayer, TextLine, TextMap,
};

/// Shows page `index` of `document`, which starts at 0.
///
/// # Errors
/// The document is to blame, or something else is.
pub fn show_page(
    document: &ParsedDocument,
    index: u32,
    view: PageViewMode,
    recipe: &ReadRecipe,
) -> Result<PageViewResult, PageError> {
    let page = document.page_content(index)?;
    let cut = document.is_cut() || matches!(page, PageContent::Cut(_));
    let number = index + 1;
    let (raster, layer) = match with_picture(document, index, page)? {
        PageContent::Text { width, height, lines, codes, marks } => {
            let page = PageText::from_native(number, (width, height), 1.0, lines);
            return Ok(text_result(PageText { codes, marks, ..page }, cut));
        }
        PageContent::Laid(page) => return Ok(text_result(page_from_grid(number, page), cut)),
        PageContent::Damaged { width, height } => {
            let page = PageText::from_native(number, (width, height), 0.0, Vec::new());
            return Ok(text_result(page, cut));
        }
        PageContent::Image(raster) | PageContent::Cut(raster) => (raster, None),
        PageContent::Doubtful { layer, picture } => (picture, Some(layer)),
    };
    let found = quality::assess_page(&raster)?;
    let shown = match view {
        PageViewMode::Facts | PageViewMode::AsItIs => Some(raster),
        // A page with a layer is drawn, not scanned: there is nothing to repair.
        PageViewMode::Repaired if layer.is_some() => None,
        PageViewMode::Repaired => repair_shown(&raster, &found, recipe)?,
    };
    let Some(raster) = shown else { return Ok(PageViewResult::Unaltered) };
    let is_repaired = view == PageViewMode::Repaired;
    let (_, codes) = glance_at_codes(&raster)?;
    let facts = PictureFacts {
        number,
        repaired: is_repaired,
        // Repaired defects do not count any more.
        score: if is_repaired { 1.0 } else { found.score },
        defects: found.defects,
        text: TextCells::from_raster(&raster).to_map(),
        layer,
        cut,
        codes,
    };
    let image =
        if view == PageViewMode::Facts { without_bytes(&raster) } else { encode_page(&raster)? };
    Ok(PageViewResult::Picture(Box::new(PagePicture { facts, image, local_reading: None })))
}

/// A text layer of which the drawing does not show some words, with the page's picture.
fn with_picture(
    document: &ParsedDocument,
    index: u32,
    page: PageContent,
) -> Result<PageContent, PageError> {
    let PageContent::Text { width, height, lines, codes, marks } = page else { return Ok(page) };
    let mut words = lines.iter().flat_map(|line| &line.words);
    if words.any(|word| word.unwitnessed)
        && let Some(picture) = document.draw_page(index)?
    {
        let layer = TextLayer { width, height, lines, garbled: false, marks };
        return Ok(PageContent::Doubtful { layer, picture });
    }
    Ok(PageContent::Text { width, height, lines, codes, marks })
}

fn text_result(page: PageText, cut: bool) -> PageViewResult {
    PageViewResult::Text(Box::new(if cut { mark_incomplete(page) } else { page }))
}

/// The repair that the defects call for; without such defects the one for suspected ones, because
/// the page was read badly.
pub(crate) fn repair_shown(
    page: &PageRaster,
    found: &PageAssessment,
    recipe: &ReadRecipe,
) -> Result<Option<PageRaster>, PageError> {
    let done = match repair_page(page, found, recipe.repairs)? {
        Some(done) => Some(done),
        None => repair_page(page, &found.with_suspicions(), recipe.repairs)?,
    };
    Ok(done.map(|done| done.raster))
}

fn without_bytes(page: &PageRaster) -> EncodedImage {
    let PageRaster { width, height, dpi, .. } = *page;
    let encoding = ImageEncoding::Png;
    EncodedImage { header: ImageHeader { width, height, dpi, encoding }, bytes: Vec::new() }
}

/// Whether anything on the picture looks like text.
pub fn has_text(map: &TextMap) -> bool {
    TextCells::from_map(map).coverage(&[]) < 1.0
}

/// How many cells look like text and lie under none of the words of these lines.
pub fn uncovered_cells(map: &TextMap, lines: &[TextLine]) -> usize {
    TextCells::from_map(map).uncovered(lines)
}

/// The page made from `provider`'s reading of a picture, of which only size and resolution matter.
///
/// Its quality is the provider's own score of the picture if it gives one. Otherwise it is that of
/// a page read here: the words' confidence, the share of text that was found, and the picture's
/// score.
pub fn page_from_reading(
    provider: &str,
    facts: &PictureFacts,
    image: &ImageHeader,
    reading: ProviderReading,
) -> PageText {
    let ProviderReading { lines, score, defects, languages, transform, version, marks, .. } =
        reading;
    let quality = score.unwrap_or_else(|| {
        score_legibility(&TextCells::from_map(&facts.text), &lines).combine_with_image(facts.score)
    });
    let quality = quality.clamp(0.0, 1.0);
    let defects = if score.is_some() { defects } else { facts.defects.clone() };
    let read = PictureRead {
        lines: join_rows(lines),
        width: image.width,
        height: image.height,
        quality,
        defects,
        languages,
        detected_language: None,
        repaired: None,
        codes: facts.codes.clone(),
        marks,
    };
    let page = match facts.layer.clone() {
        None => PageText { repaired: facts.repaired, ..read_from(facts.number, read) },
        Some(layer) => merge_suspect_layer(facts.number, layer, image.dpi, read),
    };
    let name = provider.to_owned();
    let notes = ProviderNotes { name, version, score, transform, ..ProviderNotes::default() };
    let page = if facts.cut { mark_incomplete(page) } else { page };
    // Its name stays even where its words turned out not to be needed: it was paid.
    PageText { provider: Some(Box::new(notes)), ..page }
}

#[cfg(test)]
mod tests;
