//! A page for a reader elsewhere: its text where the file has it, else its picture and what is
//! known of it; and afterwards the page that comes of what was read.
//!
//! Showing belongs into a page process, because it opens the document. Making a page of a reading
//! meets no bytes of the document and belongs to whoever asked the reader. Both follow the rules of
//! [`super::read_page()`]: a sound text layer stays, a hidden one is not believed, what a doubtful one
//! leaves out is added.

use super::encode::encoded;
use super::quality::{self, Assessment};
use super::read_page::{doubtful, incomplete, read_from};
use super::read_picture::PictureRead;
use super::repair::repair;
use super::score::legibility;
use super::text_cells::TextCells;
use super::{Document, Page, Raster, Trouble, rows};
use crate::model::{
    EncodedImage, Encoding, ImageHeader, PagePicture, PageReading, PageShown, PageText,
    PictureFacts, ProviderNotes, Recipe, TextMap, View,
};

/// Shows page `index` of `document`, which starts at 0.
///
/// # Errors
/// The document is to blame, or something else is.
pub fn show_page(
    document: &Document,
    index: u32,
    view: View,
    recipe: &Recipe,
) -> Result<PageShown, Trouble> {
    let page = document.page(index)?;
    let cut = document.is_cut() || matches!(page, Page::Cut(_));
    let number = index + 1;
    let known = |page| Ok(PageShown::Text(Box::new(if cut { incomplete(page) } else { page })));
    let (raster, layer) = match page {
        Page::Text { width, height, lines } => {
            return known(PageText::native(number, (width, height), 1.0, lines));
        }
        Page::Damaged { width, height } => {
            return known(PageText::native(number, (width, height), 0.0, Vec::new()));
        }
        Page::Image(raster) | Page::Cut(raster) => (raster, None),
        Page::Doubtful { layer, picture } => (picture, Some(layer)),
    };
    let found = quality::assess(&raster)?;
    let shown = match view {
        View::Facts | View::AsItIs => Some(raster),
        // A page with a layer is drawn, not scanned: there is nothing to repair.
        View::Repaired if layer.is_some() => None,
        View::Repaired => repaired(&raster, &found, recipe)?,
    };
    let Some(raster) = shown else { return Ok(PageShown::Unaltered) };
    let is_repaired = view == View::Repaired;
    let facts = PictureFacts {
        number,
        repaired: is_repaired,
        // What a repair has mended does not count any more.
        score: if is_repaired { 1.0 } else { found.score },
        defects: found.defects,
        text: TextCells::of(&raster).map(),
        layer,
        cut,
    };
    let image = if view == View::Facts { without_bytes(&raster) } else { encoded(&raster)? };
    Ok(PageShown::Picture(Box::new(PagePicture { facts, image })))
}

/// The repair that the defects call for; where none does, that for what is suspected, because the
/// page was read badly.
fn repaired(page: &Raster, found: &Assessment, recipe: &Recipe) -> Result<Option<Raster>, Trouble> {
    let done = match repair(page, found, recipe.repairs)? {
        Some(done) => Some(done),
        None => repair(page, &found.suspicious(), recipe.repairs)?,
    };
    Ok(done.map(|done| done.raster))
}

fn without_bytes(page: &Raster) -> EncodedImage {
    let Raster { width, height, dpi, .. } = *page;
    let encoding = Encoding::Png;
    EncodedImage { header: ImageHeader { width, height, dpi, encoding }, bytes: Vec::new() }
}

/// Whether anything on the picture looks like text.
pub fn has_text(map: &TextMap) -> bool {
    TextCells::of_map(map).coverage(&[]) < 1.0
}

/// The page that comes of what `provider` read from a picture, of which only size and resolution
/// matter.
///
/// Its quality is the provider's own score of the picture if it gives one; otherwise it is what a
/// page read here would have: the words' confidence, the share of text that was found, and how good
/// the picture is.
pub fn page_of(
    provider: &str,
    facts: &PictureFacts,
    image: &ImageHeader,
    reading: PageReading,
) -> PageText {
    let PageReading { lines, score, defects, languages, transform, version } = reading;
    let seen = || legibility(&TextCells::of_map(&facts.text), &lines).combined(facts.score);
    let quality = score.unwrap_or_else(seen).clamp(0.0, 1.0);
    let defects = if score.is_some() { defects } else { facts.defects.clone() };
    let read = PictureRead {
        lines: rows(lines),
        width: image.width,
        height: image.height,
        quality,
        defects,
        languages,
        heard: None,
        repaired: None,
    };
    let page = match facts.layer.clone() {
        None => PageText { repaired: facts.repaired, ..read_from(facts.number, read) },
        Some(layer) => doubtful(facts.number, layer, image.dpi, read),
    };
    let notes =
        ProviderNotes { name: provider.to_owned(), version, score, transform, provisional: false };
    let page = if facts.cut { incomplete(page) } else { page };
    // Its name stays even where its words turned out not to be needed: it was paid.
    PageText { provider: Some(Box::new(notes)), ..page }
}

#[cfg(test)]
mod tests;
