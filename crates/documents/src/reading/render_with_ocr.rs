//! A page that was read here, with the picture it was read from, sized for a remote reader that
//! never reads alone.
//!
//! Only pages that are pictures are rendered: text layers, sound or doubtful, were read with their
//! own picture here, and stay. So do pages on which nothing looks like text: a model that gets a
//! blank page may hallucinate. Runs inside of a page process.

use opencv::core::{Mat, Size};
use opencv::imgproc;
use opencv::prelude::*;

use crate::document::ParsedDocument;
use crate::image::encode::encode_page;
use crate::image::opencv_mat::{OpenCvError, raster_from_mat, turn_mat, view_raster};
use crate::page::{PageContent, PageRaster};
use crate::page_error::PageError;
use crate::quality::text_cells::TextCells;
use crate::reading::show_page::has_text;
use docmill_core::fault::Error;
use docmill_core::model::{
    EncodedImage, PagePicture, PageReadResult, PageViewResult, PictureFacts, PictureFit,
};

/// Page `index` of `document`, which starts at 0 and was read as `read`.
///
/// # Errors
/// The document is to blame, or something else is.
pub(crate) fn render_with_ocr(
    document: &ParsedDocument,
    index: u32,
    fit: PictureFit,
    mut read: PageReadResult,
) -> Result<PageViewResult, PageError> {
    let page = document.page_content(index)?;
    let cut = document.is_cut() || matches!(page, PageContent::Cut(_));
    let (PageContent::Image(raster) | PageContent::Cut(raster)) = page else {
        return Ok(PageViewResult::Text(Box::new(read.page)));
    };
    let raster = match &read.repaired {
        Some(repaired) => decode_own(repaired)?,
        None => raster,
    };
    let text = TextCells::from_raster(&raster).to_map();
    if read.page.lines.is_empty() && !has_text(&text) {
        // Without words no position refers to the repaired picture.
        read.page.repaired = false;
        return Ok(PageViewResult::Text(Box::new(read.page)));
    }
    let facts = PictureFacts {
        number: index + 1,
        repaired: read.page.repaired,
        score: read.page.quality,
        defects: read.page.defects.clone(),
        text,
        layer: None,
        cut,
        codes: Vec::new(),
    };
    let image = encode_page(&fit_raster(&raster, fit)?)?;
    let local_reading = Some(Box::new(read));
    Ok(PageViewResult::Picture(Box::new(PagePicture { facts, image, local_reading })))
}

/// A picture that this process has encoded.
fn decode_own(picture: &EncodedImage) -> Result<PageRaster, PageError> {
    let decoded = image::load_from_memory(&picture.bytes)
        .map_err(|_image| Error::internal("a repaired page cannot be decoded"))?
        .into_luma8();
    let (width, height) = decoded.dimensions();
    Ok(PageRaster { width, height, dpi: picture.header.dpi, pixels: decoded.into_raw() })
}

/// Turned and averaged down as the other reader wants it.
pub(crate) fn fit_raster(page: &PageRaster, fit: PictureFit) -> Result<PageRaster, OpenCvError> {
    let scale = fit.scale(page.width, page.height);
    let (width, height) = (scaled_side(page.width, scale), scaled_side(page.height, scale));
    let turned = turn_mat(&view_raster(page)?, fit.quarter_turns)?;
    let (width, height) = match fit.quarter_turns % 2 {
        0 => (width, height),
        _ => (height, width),
    };
    let mut sized = Mat::default();
    let size = Size::new(width, height);
    if size == turned.size()? {
        sized = turned;
    } else {
        imgproc::resize(&turned, &mut sized, size, 0.0, 0.0, imgproc::INTER_AREA)?;
    }
    let dpi = u32::try_from(scaled_side(page.dpi, scale)).unwrap_or(1);
    Ok(raster_from_mat(&sized, dpi)?)
}

#[expect(clippy::cast_possible_truncation, reason = "no more than the pixels of a side")]
fn scaled_side(pixels: u32, scale: f64) -> i32 {
    ((f64::from(pixels) * scale).floor() as i32).max(1)
}
