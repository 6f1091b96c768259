//! A page as its file shows it, for archived copies: faint ink stays, nothing is repaired. Runs
//! inside of a page process.

use crate::document::ParsedDocument;
use crate::image::encode::{encode_copy, has_few_shades};
use crate::page::PageContent;
use crate::page_error::PageError;
use crate::reading::render_with_ocr::fit_raster;
use docmill_core::model::{EncodedImage, PictureFit};

/// Resolution that is enough for screens and print. Black and white pages keep all of theirs: it
/// costs little, and they are illegible without.
const COPY_DPI: u32 = 200;

/// Draws page `index` of `document`, which starts at 0. `None`: nothing of it can be drawn.
///
/// # Errors
/// The document is to blame, or something else is.
pub(crate) fn copy_page(
    document: &ParsedDocument,
    index: u32,
) -> Result<Option<EncodedImage>, PageError> {
    let raster = match document.page_content(index)? {
        PageContent::Image(raster) | PageContent::Cut(raster) => raster,
        PageContent::Doubtful { picture, .. } => picture,
        PageContent::Text { .. } | PageContent::Laid(_) | PageContent::Damaged { .. } => {
            match document.draw_page(index)? {
                Some(drawn) => drawn,
                None => return Ok(None),
            }
        }
    };
    if has_few_shades(&raster) || raster.dpi <= COPY_DPI {
        return Ok(Some(encode_copy(&raster)?));
    }
    let longest = u64::from(raster.width.max(raster.height));
    let longest_side = longest * u64::from(COPY_DPI) / u64::from(raster.dpi.max(1));
    let longest_side = u32::try_from(longest_side).unwrap_or(u32::MAX).max(1);
    let fit = PictureFit { longest_side, pixels: u64::MAX, quarter_turns: 0 };
    Ok(Some(encode_copy(&fit_raster(&raster, fit)?)?))
}
