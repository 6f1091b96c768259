//! A page image as bytes to store.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder, ImageError};

use crate::page::{ColourPlanes, PageRaster};
use crate::page_error::PageError;
use docmill_core::fault::Error;
use docmill_core::model::page_work::{EncodedImage, ImageEncoding, ImageHeader};

/// Pages with no more shades than this are drawings in black and white: PNG is exact and smaller.
const MAX_PNG_SHADES: usize = 16;
/// Quality of the JPEG that other pages are stored as, of 100: a third of the size of a PNG, and no
/// ringing that a second reading would see.
const JPEG_QUALITY: u8 = 90;
/// That of pages that are copied for people, half the size of the above.
const COPY_QUALITY: u8 = 80;
/// Longest side that a JPEG can have (ITU-T T.81 §B.2.2).
const MAX_JPEG_SIDE: u32 = 65_535;

/// Encodes a page.
///
/// # Errors
/// The encoder fails, which it should not.
pub(crate) fn encode_page(page: &PageRaster) -> Result<EncodedImage, PageError> {
    encode_at(page, CompressionType::Fast, JPEG_QUALITY)
}

/// Encodes a page for people who keep it: smaller, and no worse to look at.
///
/// # Errors
/// As [`encode_page`].
pub(crate) fn encode_copy(page: &PageRaster) -> Result<EncodedImage, PageError> {
    encode_at(page, CompressionType::Default, COPY_QUALITY)
}

/// Encodes a page in colour for people.
///
/// # Errors
/// As [`encode_page`], or it is longer than a JPEG can be.
pub(crate) fn encode_colours(page: &ColourPlanes) -> Result<EncodedImage, PageError> {
    let [PageRaster { width, height, dpi, .. }, ..] = &page.0;
    let pixels: Vec<u8> = page.pixels().flatten().collect();
    let mut bytes = Cursor::new(Vec::new());
    let encoder = JpegEncoder::new_with_quality(&mut bytes, COPY_QUALITY);
    let written = encoder.write_image(&pixels, *width, *height, ExtendedColorType::Rgb8);
    written.map_err(|_image| Error::internal("a page image cannot be encoded"))?;
    let (encoding, bytes) = (ImageEncoding::Jpeg, bytes.into_inner());
    let header = ImageHeader { width: *width, height: *height, dpi: *dpi, encoding };
    Ok(EncodedImage { header, bytes })
}

fn encode_at(
    page: &PageRaster,
    packing: CompressionType,
    quality: u8,
) -> Result<EncodedImage, PageError> {
    let PageRaster { width, height, dpi, .. } = *page;
    let is_long = width.max(height) > MAX_JPEG_SIDE;
    let exact = has_few_shades(page) || is_long;
    let (encoding, bytes) = match exact {
        true => (ImageEncoding::Png, encode_png(page, packing)),
        false => (ImageEncoding::Jpeg, encode_jpeg(page, quality)),
    };
    let bytes = bytes.map_err(|_image| Error::internal("a page image cannot be encoded"))?;
    Ok(EncodedImage { header: ImageHeader { width, height, dpi, encoding }, bytes })
}

fn encode_png(page: &PageRaster, packing: CompressionType) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Cursor::new(Vec::new());
    let encoder = PngEncoder::new_with_quality(&mut bytes, packing, FilterType::NoFilter);
    encoder.write_image(&page.pixels, page.width, page.height, ExtendedColorType::L8)?;
    Ok(bytes.into_inner())
}

fn encode_jpeg(page: &PageRaster, quality: u8) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Cursor::new(Vec::new());
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    encoder.write_image(&page.pixels, page.width, page.height, ExtendedColorType::L8)?;
    Ok(bytes.into_inner())
}

/// Whether the page is a drawing in black and white, which is kept exactly.
pub(crate) fn has_few_shades(page: &PageRaster) -> bool {
    count_shades(page) <= MAX_PNG_SHADES
}

fn count_shades(page: &PageRaster) -> usize {
    let mut seen = [false; 256];
    for value in &page.pixels {
        if let Some(seen) = seen.get_mut(usize::from(*value)) {
            *seen = true;
        }
    }
    seen.iter().filter(|seen| **seen).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_and_white_is_kept_exactly_and_grey_nearly() {
        let bilevel: Vec<u8> = (0..10_000).map(|at| if at % 7 == 0 { 0 } else { 255 }).collect();
        let smooth: Vec<u8> = (0..10_000_u32).map(|at| u8::try_from(at % 100).unwrap()).collect();
        for (pixels, encoding, most) in
            [(bilevel, ImageEncoding::Png, 0), (smooth, ImageEncoding::Jpeg, 12)]
        {
            let page = PageRaster { width: 100, height: 100, dpi: 300, pixels };
            let stored = encode_page(&page).unwrap();
            assert_eq!((stored.header.encoding, stored.header.dpi), (encoding, 300));
            let again = image::load_from_memory(&stored.bytes).unwrap().into_luma8();
            let off = again
                .into_raw()
                .iter()
                .zip(&page.pixels)
                .map(|(one, other)| one.abs_diff(*other))
                .max()
                .unwrap();
            assert!(off <= most, "{encoding:?}: {off}");
        }
    }
}
