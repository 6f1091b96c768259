//! A page in the colours of its file, for people who look at it beside what was read: stamps, marks
//! in red and logos as they are. Lies as the read picture lies; its light is not repaired, and faint
//! ink stays. Readers and models get grey. Runs inside of a page process.

use crate::document::ParsedDocument;
use crate::image::encode::encode_colours;
use crate::page::{ColourPlanes, PageContent};
use crate::page_error::PageError;
use crate::quality;
use crate::reading::render_with_ocr::fit_raster;
use crate::repair::{calls_for_repair, move_colours};
use docmill_core::model::{EncodedImage, PictureFit, ReadRecipe};

/// Dots per inch that are enough for a screen.
const SCREEN_DPI: u32 = 180;
/// A pixel is coloured if its channels differ by more than this: JPEG and scanners tint grey.
const MIN_SPREAD: u8 = 32;
/// One coloured pixel of so many makes a page coloured: a stamp or a small logo.
const PIXELS_PER_COLOURED: usize = 5_000;

/// Paints page `index`, which starts at 0, in colour. `repaired`: its text was read from a repaired
/// picture, to which positions on it refer. `None`: the page has no colours.
///
/// # Errors
/// The document is to blame, or something else is.
pub(crate) fn paint_page(
    document: &ParsedDocument,
    index: u32,
    repaired: bool,
    fit: PictureFit,
    recipe: &ReadRecipe,
) -> Result<Option<EncodedImage>, PageError> {
    // Repairs measure moves in pixels of the picture that was read.
    let dpi = if repaired { recipe.dpi } else { SCREEN_DPI };
    let Some(colours) = document.page_colours(index, dpi)?.filter(is_coloured) else {
        return Ok(None);
    };
    let colours = if repaired { follow_repair(document, index, colours, recipe)? } else { colours };
    let mut fitted = colours;
    for plane in &mut fitted.0 {
        *plane = fit_raster(plane, fit)?;
    }
    Ok(Some(encode_colours(&fitted)?))
}

fn is_coloured(page: &ColourPlanes) -> bool {
    let spread = |[red, green, blue]: [u8; 3]| {
        red.max(green).max(blue) - red.min(green).min(blue) > MIN_SPREAD
    };
    let [plane, ..] = &page.0;
    let coloured = page.pixels().filter(|pixel| spread(*pixel)).count();
    coloured * PIXELS_PER_COLOURED > plane.pixels.len()
}

/// The colours where the repaired picture shows them.
fn follow_repair(
    document: &ParsedDocument,
    index: u32,
    colours: ColourPlanes,
    recipe: &ReadRecipe,
) -> Result<ColourPlanes, PageError> {
    let (PageContent::Image(page)
    | PageContent::Cut(page)
    | PageContent::Doubtful { picture: page, .. }) = document.page_content(index)?
    else {
        return Ok(colours);
    };
    let found = quality::assess_page(&page)?;
    let found = match calls_for_repair(&found, recipe.repairs) {
        true => found,
        false => found.with_suspicions(),
    };
    Ok(move_colours(&page, &found, recipe.repairs, colours)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageRaster;

    #[test]
    fn a_stamp_makes_a_page_coloured_and_the_tint_of_a_scanner_does_not() {
        let of = |side: u32| PageRaster { width: side, height: side, dpi: 72, pixels: Vec::new() };
        let page = |coloured: usize, ink: [u8; 3]| {
            let pixels =
                (0..10_000).map(move |at| if at < coloured { ink } else { [250, 248, 244] });
            ColourPlanes::split(pixels, of(100))
        };
        #[rustfmt::skip]
        let table = [
            ("black print",     5_000, [20, 20, 20],   false),
            ("a scanner's tint", 5_000, [120, 110, 95], false),
            ("a speck",         2,     [200, 20, 20],  false),
            ("a stamp",         40,    [200, 20, 20],  true),
        ];
        for (name, count, ink, is_colour) in table {
            assert_eq!(is_coloured(&page(count, ink)), is_colour, "{name}");
        }
    }
}
