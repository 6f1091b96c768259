//! A figure cut out of its page, for people and programs that keep it beside the text: as the file shows
//! it, nothing repaired but what its place was told on. Belongs into a page process.

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

/// Cuts a piece out of page `index`, which starts at 0. `repaired`: its place was told on a repaired
/// picture. `None`: nothing of the page can be drawn.
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
    let share = |unit: u16| f64::from(unit.min(PageCrop::WHOLE)) / f64::from(PageCrop::WHOLE);
    let (left, right) = (width * share(crop.left), width * share(crop.right));
    Rect::new(left, height * share(crop.top), right, height * share(crop.bottom))
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
    let side = |pixels: u32| i32::try_from(pixels).unwrap_or(i32::MAX);
    let area = PixelRect::new(side(left), side(top), side(right - left), side(bottom - top));
    let mut piece = Mat::default();
    view_raster(page)?.roi(area)?.copy_to(&mut piece)?;
    Ok(raster_from_mat(&piece, page.dpi)?)
}
