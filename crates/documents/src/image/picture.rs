//! Image files as grey or coloured pixels.
//!
//! Sizes are read from the header and checked against the limit before anything is decoded. The
//! camera's orientation is honoured, transparency lies on white paper, colours become grey.

use std::io::{BufRead, BufReader, Cursor, Seek};

use bytes::Bytes;
use image::metadata::Orientation;
use image::{
    DynamicImage, ImageBuffer, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits,
};

use crate::image::fax::{FaxCoding, FaxPage};
use crate::image::format::DocumentFormat;
use crate::image::heif::decode_heif;
use crate::image::jpeg_xl::decode_jpeg_xl;
use crate::image::luminance::{blend_pixel, grey_of_rgb};
use crate::image::refusal::{check_size, undecodable, unread_encoding};
use crate::image::tiff::{TiffDirectory, TiffWindow};
use crate::page::{ColourPlanes, PageContent, PageRaster};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Tesseract refuses longer sides.
pub(crate) const MAX_SIDE: u32 = 30_000;

/// The TIFF field of the page's orientation, with the codes of EXIF.
const ORIENTATION: u16 = 274;

/// The longer side of A4 in inches, assumed of photos of unknown scale.
const PAPER_INCHES: u32 = 12;

/// A picture as its file holds it.
struct LoadedPicture {
    /// The pixels, upright; white where there are none.
    picture: DynamicImage,
    dpi: u32,
    is_cut: bool,
}

impl LoadedPicture {
    /// Upright. Without `dpi` it is taken to show a sheet of paper.
    fn new(
        mut picture: DynamicImage,
        orientation: Orientation,
        dpi: Option<u32>,
        is_cut: bool,
    ) -> Self {
        picture.apply_orientation(orientation);
        let longest = picture.width().max(picture.height());
        let dpi = dpi.unwrap_or_else(|| longest.div_ceil(PAPER_INCHES).clamp(70, 600));
        Self { picture, dpi, is_cut }
    }

    fn into_grey(self) -> DecodedPicture {
        let (grey, dpi) = (to_grey(self.picture), self.dpi);
        let (width, height) = grey.dimensions();
        let raster = PageRaster { width, height, dpi, pixels: grey.into_raw() };
        DecodedPicture { raster: shrink_raster(raster, dpi), is_cut: self.is_cut }
    }

    /// `None`: it has no colours.
    fn into_colours(self) -> Option<ColourPlanes> {
        let Self { picture, dpi, .. } = self;
        if !picture.color().has_color() {
            return None;
        }
        let of = PageRaster {
            width: picture.width(),
            height: picture.height(),
            dpi,
            pixels: Vec::new(),
        };
        let planes = if picture.color().has_alpha() {
            let pixels = picture.into_rgba8().into_raw();
            let pixels = pixels.as_chunks::<4>().0.iter();
            let on_white = pixels.map(|[red, green, blue, alpha]| {
                [*red, *green, *blue].map(|value| blend_pixel(value, *alpha))
            });
            ColourPlanes::split(on_white, of)
        } else {
            let pixels = picture.into_rgb8().into_raw();
            ColourPlanes::split(pixels.as_chunks::<3>().0.iter().copied(), of)
        };
        Some(ColourPlanes(planes.0.map(|plane| shrink_raster(plane, dpi))))
    }
}

/// A picture, or as much of it as its file holds.
#[derive(Debug)]
pub(crate) struct DecodedPicture {
    /// The pixels; white where there are none.
    pub raster: PageRaster,
    /// Whether a part is missing.
    pub is_cut: bool,
}

impl DecodedPicture {
    /// The page that it is.
    pub(crate) fn into_page(self) -> PageContent {
        if self.is_cut { PageContent::Cut(self.raster) } else { PageContent::Image(self.raster) }
    }
}

/// Decodes the only page of an image file.
pub(crate) fn decode_picture(
    bytes: &Bytes,
    format: DocumentFormat,
    limits: &LimitsConfig,
) -> Result<DecodedPicture, PageRefusal> {
    let mut decoded = load_picture(bytes, format, limits)?.into_grey();
    if format == DocumentFormat::Jpeg && is_cut_off(bytes) {
        decoded.is_cut = true;
        blank_filling(&mut decoded.raster);
    }
    Ok(decoded)
}

/// The only page of an image file in colour; `None`: it has none.
pub(crate) fn decode_colours(
    bytes: &Bytes,
    format: DocumentFormat,
    limits: &LimitsConfig,
) -> Result<Option<ColourPlanes>, PageRefusal> {
    let mut colours = load_picture(bytes, format, limits)?.into_colours();
    if format == DocumentFormat::Jpeg && is_cut_off(bytes) {
        let planes = colours.iter_mut().flat_map(|colours| &mut colours.0);
        planes.for_each(blank_filling);
    }
    Ok(colours)
}

fn load_picture(
    bytes: &Bytes,
    format: DocumentFormat,
    limits: &LimitsConfig,
) -> Result<LoadedPicture, PageRefusal> {
    let format = match format {
        DocumentFormat::Heic | DocumentFormat::Avif | DocumentFormat::JpegXl => {
            let picture = match format {
                DocumentFormat::JpegXl => decode_jpeg_xl(bytes, limits)?,
                _ => decode_heif(bytes, limits)?,
            };
            return Ok(LoadedPicture::new(picture, Orientation::NoTransforms, None, false));
        }
        DocumentFormat::Png => ImageFormat::Png,
        DocumentFormat::Jpeg => ImageFormat::Jpeg,
        DocumentFormat::WebP => ImageFormat::WebP,
        DocumentFormat::Gif => ImageFormat::Gif,
        DocumentFormat::Bmp => ImageFormat::Bmp,
        DocumentFormat::Tiff
        | DocumentFormat::Pdf
        | DocumentFormat::Xml
        | DocumentFormat::Edifact
        | DocumentFormat::Office(_)
        | DocumentFormat::Envelope => {
            return Err(PageRefusal::new(OutcomeReason::Corrupt, "not a picture of one page"));
        }
    };
    load_image(&|| Cursor::new(bytes.as_ref()), format, limits, None)
}

/// Decodes one page of a TIFF.
pub(crate) fn decode_tiff(
    bytes: &Bytes,
    directory: &TiffDirectory,
    limits: &LimitsConfig,
) -> Result<DecodedPicture, PageRefusal> {
    load_tiff(bytes, directory, limits).map(LoadedPicture::into_grey)
}

/// One page of a TIFF in colour; `None`: it has none.
pub(crate) fn decode_tiff_colours(
    bytes: &Bytes,
    directory: &TiffDirectory,
    limits: &LimitsConfig,
) -> Result<Option<ColourPlanes>, PageRefusal> {
    load_tiff(bytes, directory, limits).map(LoadedPicture::into_colours)
}

fn load_tiff(
    bytes: &Bytes,
    directory: &TiffDirectory,
    limits: &LimitsConfig,
) -> Result<LoadedPicture, PageRefusal> {
    if let Some(fax) = FaxCoding::from_directory(bytes, directory)? {
        let (width, height) = fax.size();
        check_size(width, height, limits)?;
        let FaxPage { width, height, pixels, is_cut } = fax.decode(bytes, directory)?;
        let picture = image::GrayImage::from_raw(width, height, pixels).unwrap_or_default();
        let dpi = directory.dots_per_inch().map(|(across, down)| across.max(down));
        let turned = directory.numbers(bytes, ORIENTATION).first().copied();
        let turned = turned.and_then(|code| Orientation::from_exif(u8::try_from(code).ok()?));
        return Ok(LoadedPicture::new(
            DynamicImage::ImageLuma8(picture),
            turned.unwrap_or(Orientation::NoTransforms),
            dpi.or(directory.dpi),
            is_cut,
        ));
    }
    let loaded = load_image(
        &|| BufReader::new(TiffWindow::new(bytes, directory)),
        ImageFormat::Tiff,
        limits,
        directory.dpi,
    );
    loaded.map_err(|refused| tiff_refusal(directory, refused))
}

fn load_image<R: BufRead + Seek>(
    bytes: &impl Fn() -> R,
    format: ImageFormat,
    limits: &LimitsConfig,
    dpi: Option<u32>,
) -> Result<LoadedPicture, PageRefusal> {
    let mut decoder = make_decoder(bytes(), format, limits)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let (picture, is_cut) = match DynamicImage::from_decoder(decoder).map_err(refusal_from_error) {
        Ok(picture) => (picture, false),
        Err(refused) if refused.reason == OutcomeReason::Corrupt => {
            // Once more, into pixels of our own that stay when the decoder gives up.
            let again = make_decoder(bytes(), format, limits)?;
            (decode_partial(again).ok_or(refused)?, true)
        }
        Err(refused) => return Err(refused),
    };
    Ok(LoadedPicture::new(picture, orientation, dpi, is_cut))
}

fn make_decoder<'a, R: BufRead + Seek + 'a>(
    bytes: R,
    format: ImageFormat,
    limits: &LimitsConfig,
) -> Result<impl ImageDecoder + use<'a, R>, PageRefusal> {
    let mut reader = ImageReader::with_format(bytes, format);
    let mut strict = Limits::default();
    strict.max_alloc = Some(limits.page_pixels.saturating_mul(8));
    reader.limits(strict);
    let decoder = reader.into_decoder().map_err(refusal_from_error)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, limits)?;
    Ok(decoder)
}

/// The part that a failing decoder has decoded, on white. `None` if that is nothing, or if it has
/// more than 8 bits: the order of their bytes is not known before the end. Takes no more memory
/// than a whole picture, since its size was checked.
fn decode_partial(decoder: impl ImageDecoder) -> Option<DynamicImage> {
    const UNTOUCHED: u8 = u8::MAX;
    let ((width, height), color) = (decoder.dimensions(), decoder.color_type());
    if color.bytes_per_pixel() != color.channel_count() {
        return None;
    }
    let mut pixels = vec![UNTOUCHED; usize::try_from(decoder.total_bytes()).ok()?];
    // The damage is why we are here: the first reading has reported it.
    let _damage = decoder.read_image(&mut pixels);
    if pixels.iter().all(|value| *value == UNTOUCHED) {
        return None;
    }
    Some(match color.channel_count() {
        1 => DynamicImage::ImageLuma8(ImageBuffer::from_raw(width, height, pixels)?),
        2 => DynamicImage::ImageLumaA8(ImageBuffer::from_raw(width, height, pixels)?),
        3 => DynamicImage::ImageRgb8(ImageBuffer::from_raw(width, height, pixels)?),
        _ => DynamicImage::ImageRgba8(ImageBuffer::from_raw(width, height, pixels)?),
    })
}

/// Whitens the rows at the end that are all of one grey: the decoder fills missing rows so, and
/// they would be read as a shadow.
fn blank_filling(raster: &mut PageRaster) {
    let Some(filling) = raster.pixels.last().copied() else { return };
    let from_end = raster.pixels.iter().rev().take_while(|value| **value == filling).count();
    raster.pixels.iter_mut().rev().take(from_end).for_each(|value| *value = u8::MAX);
}

/// Whether the end marker is missing after the last scan. The decoder silently fills in the missing
/// part, so the page would pass for complete. In a scan's data every 0xFF is followed by 0x00 or a
/// restart marker (ITU-T T.81 §B.1.1.5), so markers are not found by accident.
fn is_cut_off(bytes: &[u8]) -> bool {
    let scan = memchr::memmem::rfind(bytes, b"\xff\xda");
    let end = memchr::memmem::rfind(bytes, b"\xff\xd9");
    scan.is_some() && end < scan
}

/// A TIFF in a compression that is not read is another matter than one whose fields make no sense.
fn tiff_refusal(directory: &TiffDirectory, refused: PageRefusal) -> PageRefusal {
    if refused.reason == OutcomeReason::UnsupportedType && !directory.is_unread_compression() {
        return PageRefusal::new(
            OutcomeReason::Corrupt,
            "a TIFF whose fields contradict each other",
        );
    }
    refused
}

/// Messages of decoders may quote the file, so only the sort of failure is passed on.
fn refusal_from_error(error: ImageError) -> PageRefusal {
    match error {
        ImageError::Unsupported(_) => unread_encoding(),
        ImageError::Limits(_) => {
            PageRefusal::new(OutcomeReason::TooLarge, "a picture over the memory limit")
        }
        _ => undecodable(),
    }
}

/// Integer arithmetic for the formats of most pictures. The decoders' crate converts in fractions
/// and for any colour space, which takes a third of the time of reading the page.
fn to_grey(picture: DynamicImage) -> image::GrayImage {
    let (width, height) = (picture.width(), picture.height());
    let pixels: Vec<u8> = match picture {
        DynamicImage::ImageRgb8(picture) => {
            picture.as_raw().as_chunks::<3>().0.iter().map(|pixel| grey_of_rgb(*pixel)).collect()
        }
        DynamicImage::ImageRgba8(picture) => {
            let pixels = picture.as_raw().as_chunks::<4>().0.iter();
            pixels.map(|[r, g, b, alpha]| blend_pixel(grey_of_rgb([*r, *g, *b]), *alpha)).collect()
        }
        other if other.color().has_alpha() => {
            let pixels = other.into_luma_alpha8().into_raw();
            pixels
                .as_chunks::<2>()
                .0
                .iter()
                .map(|[value, alpha]| blend_pixel(*value, *alpha))
                .collect()
        }
        other => return other.into_luma8(),
    };
    image::GrayImage::from_raw(width, height, pixels).unwrap_or_default()
}

/// A quarter turn and mirrors, in this order: rows become columns, left becomes right, top becomes
/// bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelTransform {
    /// Whether rows become columns.
    pub transpose: bool,
    /// Whether left becomes right.
    pub mirror: bool,
    /// Whether top becomes bottom.
    pub flip: bool,
}

impl PixelTransform {
    /// Moves the pixels: transposes first, then mirrors, then flips.
    pub(crate) fn apply(self, raster: PageRaster) -> PageRaster {
        if self == (Self { transpose: false, mirror: false, flip: false }) {
            return raster;
        }
        let (across, down) = (raster.width as usize, raster.height as usize);
        let (width, height) = if self.transpose { (down, across) } else { (across, down) };
        let mut pixels = Vec::with_capacity(raster.pixels.len());
        for row in 0..height {
            let y = if self.flip { height - 1 - row } else { row };
            for column in 0..width {
                let x = if self.mirror { width - 1 - column } else { column };
                let at = if self.transpose { x * across + y } else { y * across + x };
                pixels.push(raster.pixels.get(at).copied().unwrap_or(u8::MAX));
            }
        }
        let (width, height) = if self.transpose {
            (raster.height, raster.width)
        } else {
            (raster.width, raster.height)
        };
        PageRaster { width, height, pixels, ..raster }
    }
}

/// Averages blocks of pixels where an image has far more of them than `dpi` needs, or more in a row
/// than Tesseract takes.
pub(crate) fn shrink_raster(raster: PageRaster, dpi: u32) -> PageRaster {
    let by_dpi = (raster.dpi * 2 / 3).checked_div(dpi).unwrap_or(1);
    let by_side = raster.width.max(raster.height).div_ceil(MAX_SIDE);
    let factor = by_dpi.max(by_side).max(1);
    if factor == 1 {
        return raster;
    }
    let (width, height) = ((raster.width / factor).max(1), (raster.height / factor).max(1));
    let stride = raster.width as usize;
    let block = factor as usize;
    let mut pixels = Vec::with_capacity(width as usize * height as usize);
    for row in 0..height as usize {
        for column in 0..width as usize {
            let rows = (row * block..(row + 1) * block).filter_map(|y| {
                let start = y * stride + column * block;
                raster.pixels.get(start..start + block)
            });
            let (mut sum, mut count) = (0_u32, 0_u32);
            for value in rows.flatten() {
                sum += u32::from(*value);
                count += 1;
            }
            pixels.push(u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX));
        }
    }
    PageRaster { width, height, dpi: raster.dpi / factor, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, value: [u8; 4]) -> Bytes {
        let picture = image::RgbaImage::from_pixel(width, height, image::Rgba(value));
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner().into()
    }

    fn limits(page_pixels: u64) -> LimitsConfig {
        LimitsConfig { page_pixels, ..LimitsConfig::default() }
    }

    #[test]
    fn transparent_paper_is_white() {
        let page =
            decode_picture(&png(2, 2, [0, 0, 0, 0]), DocumentFormat::Png, &limits(100)).unwrap();
        assert_eq!(page.raster.pixels, [255; 4]);
        let page =
            decode_picture(&png(2, 2, [0, 0, 0, 255]), DocumentFormat::Png, &limits(100)).unwrap();
        assert_eq!(page.raster.pixels, [0; 4]);
    }

    #[test]
    fn a_picture_over_the_limit_is_refused_by_its_header() {
        let refused =
            decode_picture(&png(11, 10, [0; 4]), DocumentFormat::Png, &limits(100)).unwrap_err();
        assert_eq!(refused.reason, OutcomeReason::TooLarge);
        assert_eq!(refused.detail, "11 x 10 pixels, the limit is 100");
        assert!(decode_picture(&png(10, 10, [0; 4]), DocumentFormat::Png, &limits(100)).is_ok());
    }

    /// Dark stripes and speckles down the whole picture, so that every part of the file counts.
    fn striped(format: ImageFormat) -> Bytes {
        let picture = image::GrayImage::from_fn(200, 200, |x, y| {
            let dark = u8::try_from((x * 7 + y * 13) % 60).unwrap();
            image::Luma([if y / 8 % 2 == 0 { dark } else { 230 }])
        });
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner().into()
    }

    #[test]
    fn a_truncated_picture_shows_its_first_part_on_white_and_counts_as_cut() {
        #[rustfmt::skip]
        let table = [
            (DocumentFormat::Png,  striped(ImageFormat::Png)),
            (DocumentFormat::Jpeg, striped(ImageFormat::Jpeg)),
            (DocumentFormat::Bmp,  striped(ImageFormat::Bmp)),
        ];
        for (format, whole) in table {
            let complete = decode_picture(&whole, format, &limits(100_000)).unwrap();
            assert!(!complete.is_cut, "{format:?} is whole");
            let cut =
                decode_picture(&whole.slice(..whole.len() * 6 / 10), format, &limits(100_000));
            let cut = cut.unwrap();
            assert!(
                cut.is_cut && matches!(cut.into_page(), PageContent::Cut(_)),
                "{format:?} is cut"
            );
            let part =
                decode_picture(&whole.slice(..whole.len() * 6 / 10), format, &limits(100_000));
            let part = part.unwrap().raster.pixels;
            // A bitmap begins at its bottom.
            let (kept, lost) = match format {
                DocumentFormat::Bmp => (160 * 200..200 * 200, 0..20 * 200),
                _ => (0..40 * 200, 180 * 200..200 * 200),
            };
            assert_eq!(part[kept.clone()], complete.raster.pixels[kept], "{format:?}");
            assert!(part[lost].iter().all(|value| *value == 255), "{format:?} is white at its end");
        }
    }

    #[test]
    fn a_picture_without_decodable_data_is_corrupt() {
        let refused = decode_picture(
            &striped(ImageFormat::Png).slice(..40),
            DocumentFormat::Png,
            &limits(100_000),
        );
        assert_eq!(refused.unwrap_err().reason, OutcomeReason::Corrupt);
    }

    #[test]
    fn colours_become_the_grey_that_drawn_pages_have_and_transparency_lies_on_white() {
        let (orange, blue) = ([250, 120, 10], [20, 60, 200]);
        let rgb = image::RgbImage::from_raw(2, 1, [orange, blue].concat()).unwrap();
        let expected = [grey_of_rgb(orange), grey_of_rgb(blue)];
        assert_eq!(to_grey(DynamicImage::ImageRgb8(rgb.clone())).into_raw(), expected);
        let with_alpha = |alpha: u8| {
            let mut rgba = DynamicImage::ImageRgb8(rgb.clone()).into_rgba8();
            rgba.pixels_mut().for_each(|pixel| pixel.0[3] = alpha);
            to_grey(DynamicImage::ImageRgba8(rgba)).into_raw()
        };
        assert_eq!(with_alpha(255), expected);
        assert_eq!(with_alpha(0), [255, 255]);
        assert_eq!(with_alpha(128), expected.map(|grey| blend_pixel(grey, 128)));
    }

    #[test]
    fn far_too_fine_pictures_are_averaged_down() {
        let raster =
            PageRaster { width: 4, height: 2, dpi: 900, pixels: vec![0, 2, 4, 6, 2, 4, 6, 8] };
        let small = shrink_raster(raster.clone(), 300);
        assert_eq!((small.width, small.height, small.dpi), (2, 1, 450));
        assert_eq!(small.pixels, [2, 6]);
        assert_eq!(shrink_raster(raster.clone(), 450), raster);
    }
}
