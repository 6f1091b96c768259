//! A figure cut out of its page, kept beside the text: as the file shows it, repaired only if its
//! position refers to a repaired picture. Runs inside of a page process.

use hayro::kurbo::Rect;
use opencv::core::{Mat, Rect as PixelRect};
use opencv::prelude::*;

use crate::document::ParsedDocument;
use crate::image::encode::encode_copy;
use crate::image::opencv_mat::{OpenCvError, raster_from_mat, view_raster};
use crate::page::{PageContent, PageRaster};
use crate::page_error::PageError;
use crate::quality;
use crate::reading::render_with_ocr::fit_raster;
use crate::reading::show_page::repair_shown;
use docmill_core::model::{EncodedImage, PageCrop, PictureFit, ReadRecipe};

/// Dots per inch that are enough to look at and to print.
const FIGURE_DPI: u32 = 200;
/// Pixels of a figure: more are drawn coarser.
const MAX_PIXELS: u64 = 8_000_000;

/// Cuts a piece out of page `index`, which starts at 0. `repaired`: its position refers to a
/// repaired picture. `None`: nothing of the page can be drawn.
///
/// # Errors
/// The document is to blame, or something else is.
pub(crate) fn cut_figure(
    document: &ParsedDocument,
    index: u32,
    repaired: bool,
    crop: PageCrop,
    recipe: &ReadRecipe,
) -> Result<Option<EncodedImage>, PageError> {
    let raster = match document.page_content(index)? {
        PageContent::Image(raster) | PageContent::Cut(raster) => raster,
        PageContent::Doubtful { picture, .. } => picture,
        // Its words are all it has.
        PageContent::Laid(_) => return Ok(None),
        PageContent::Text { width, height, .. } | PageContent::Damaged { width, height } => {
            let area = place_on_page(crop, f64::from(width), f64::from(height));
            let drawn = document.draw_part(index, area, finest_dpi(area))?;
            return drawn.map(|drawn| encode_copy(&drawn)).transpose();
        }
    };
    let raster = match repaired {
        true => repair_shown(&raster, &quality::assess_page(&raster)?, recipe)?.unwrap_or(raster),
        false => raster,
    };
    let piece = cut_out(&raster, crop)?;
    let side = u64::from(piece.width.max(piece.height));
    let longest = side * u64::from(FIGURE_DPI) / u64::from(piece.dpi.max(1));
    let longest_side = u32::try_from(longest.min(side)).unwrap_or(u32::MAX).max(1);
    let fit = PictureFit { longest_side, pixels: MAX_PIXELS, quarter_turns: 0 };
    Ok(Some(encode_copy(&fit_raster(&piece, fit)?)?))
}

/// The place in points of a page of this size.
fn place_on_page(crop: PageCrop, width: f64, height: f64) -> Rect {
    let [left, top, right, bottom] = [crop.left, crop.top, crop.right, crop.bottom]
        .map(|unit| f64::from(unit.min(PageCrop::WHOLE)) / f64::from(PageCrop::WHOLE));
    Rect::new(width * left, height * top, width * right, height * bottom)
}

/// The fineness at which a place has no more pixels than a figure may have.
fn finest_dpi(area: Rect) -> u32 {
    #[expect(clippy::cast_precision_loss, reason = "a limit, not a count")]
    let most = (MAX_PIXELS as f64 / area.area().max(1.0)).sqrt() * 72.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 200")]
    let dpi = most.clamp(1.0, f64::from(FIGURE_DPI)) as u32;
    dpi
}

fn cut_out(page: &PageRaster, crop: PageCrop) -> Result<PageRaster, OpenCvError> {
    let PageCrop { left, top, right, bottom } = crop;
    let (left, right) = PageCrop::pixels_between(left, right, page.width);
    let (top, bottom) = PageCrop::pixels_between(top, bottom, page.height);
    let [left, top, width, height] = [left, top, right - left, bottom - top]
        .map(|pixels| i32::try_from(pixels).unwrap_or(i32::MAX));
    let area = PixelRect::new(left, top, width, height);
    let mut piece = Mat::default();
    view_raster(page)?.roi(area)?.copy_to(&mut piece)?;
    Ok(raster_from_mat(&piece, page.dpi)?)
}
