//! Image files as grey pixels.
//!
//! Sizes are read from the header and held against the limit before anything is decoded. The
//! camera's orientation is honoured, transparency lies on white paper, colours become grey.

use std::io::{BufRead, BufReader, Cursor, Seek};

use bytes::Bytes;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

use super::tiff::{Directory, Window};
use super::{Format, Raster, Refusal};
use crate::config::LimitsConfig;
use crate::model::Reason;

/// Tesseract refuses longer sides.
pub(super) const LONGEST_SIDE: u32 = 30_000;

/// The longer side of A4 in inches: what a photo of unknown scale is taken to show.
const PAPER_INCHES: u32 = 12;

/// Decodes the only page of an image file.
pub(super) fn decode(
    bytes: &Bytes,
    format: Format,
    limits: &LimitsConfig,
) -> Result<Raster, Refusal> {
    let format = match format {
        Format::Png => ImageFormat::Png,
        Format::Jpeg => ImageFormat::Jpeg,
        Format::WebP => ImageFormat::WebP,
        Format::Gif => ImageFormat::Gif,
        Format::Bmp => ImageFormat::Bmp,
        Format::Tiff | Format::Pdf | Format::Xml => {
            return Err(Refusal::new(Reason::Corrupt, "not a picture of one page"));
        }
    };
    if format == ImageFormat::Jpeg && is_cut_off(bytes) {
        return Err(Refusal::new(Reason::Corrupt, "a JPEG that is cut off"));
    }
    read(Cursor::new(bytes.as_ref()), format, limits, None)
}

/// Decodes one page of a TIFF.
pub(super) fn decode_tiff(
    bytes: &Bytes,
    directory: &Directory,
    limits: &LimitsConfig,
) -> Result<Raster, Refusal> {
    let window = BufReader::new(Window::new(bytes, directory));
    let decoded = read(window, ImageFormat::Tiff, limits, directory.dpi);
    decoded.map_err(|refused| tiff_refusal(directory, refused))
}

fn read<R: BufRead + Seek>(
    reader: R,
    format: ImageFormat,
    limits: &LimitsConfig,
    dpi: Option<u32>,
) -> Result<Raster, Refusal> {
    let mut reader = ImageReader::with_format(reader, format);
    let mut strict = Limits::default();
    strict.max_alloc = Some(limits.page_pixels.saturating_mul(8));
    reader.limits(strict);
    let mut decoder = reader.into_decoder().map_err(refusal)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, limits)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(refusal)?;
    picture.apply_orientation(orientation);
    let grey = grey(picture);
    let (width, height) = grey.dimensions();
    let dpi = dpi.unwrap_or_else(|| width.max(height).div_ceil(PAPER_INCHES).clamp(70, 600));
    Ok(shrink(Raster { width, height, dpi, pixels: grey.into_raw() }, dpi))
}

/// Whether the end marker is missing after the last scan. The decoder fills in what is not there
/// with grey, which would pass for a complete page. In a scan's data every 0xFF is followed by
/// 0x00 or a restart marker (ITU-T T.81 §B.1.1.5), so the markers are not found by accident.
fn is_cut_off(bytes: &[u8]) -> bool {
    let scan = memchr::memmem::rfind(bytes, b"\xff\xda");
    let end = memchr::memmem::rfind(bytes, b"\xff\xd9");
    scan.is_some() && end < scan
}

fn check_size(width: u32, height: u32, limits: &LimitsConfig) -> Result<(), Refusal> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 {
        return Err(Refusal::new(Reason::Corrupt, "a picture without pixels"));
    }
    if pixels > limits.page_pixels {
        let limit = limits.page_pixels;
        let detail = format!("{width} x {height} pixels, the limit is {limit}");
        return Err(Refusal::new(Reason::TooLarge, detail));
    }
    Ok(())
}

/// A TIFF in a compression that is not read is another matter than one whose fields make no sense.
fn tiff_refusal(directory: &Directory, refused: Refusal) -> Refusal {
    if refused.reason == Reason::UnsupportedType && !directory.is_unread_compression() {
        return Refusal::new(Reason::Corrupt, "a TIFF whose fields contradict each other");
    }
    refused
}

/// Messages of decoders may quote the file, so only the sort of failure is passed on.
fn refusal(error: ImageError) -> Refusal {
    match error {
        ImageError::Unsupported(_) => {
            Refusal::new(Reason::UnsupportedType, "a picture in an encoding that is not read")
        }
        ImageError::Limits(_) => Refusal::new(Reason::TooLarge, "a picture over the memory limit"),
        _ => Refusal::new(Reason::Corrupt, "a picture that cannot be decoded"),
    }
}

fn grey(picture: DynamicImage) -> image::GrayImage {
    if !picture.color().has_alpha() {
        return picture.into_luma8();
    }
    let mut pixels = picture.into_luma_alpha8();
    for pixel in pixels.pixels_mut() {
        let [value, alpha] = pixel.0;
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        pixel.0[0] = u8::try_from((value * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX);
    }
    let (width, height) = pixels.dimensions();
    let opaque = pixels.into_raw().into_iter().step_by(2).collect();
    image::GrayImage::from_raw(width, height, opaque).unwrap_or_default()
}

/// Luma after ITU-R BT.601, in integers.
pub(super) fn grey_of_rgb([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    u8::try_from(sum / 1000).unwrap_or(u8::MAX)
}

/// A quarter turn and mirrors, in this order: rows become columns, left becomes right, top becomes
/// bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Rows become columns.
    pub transpose: bool,
    /// Left becomes right.
    pub mirror: bool,
    /// Top becomes bottom.
    pub flip: bool,
}

impl Turn {
    /// Turns the pixels.
    pub(super) fn apply(self, raster: Raster) -> Raster {
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
        Raster { width, height, pixels, ..raster }
    }
}

/// Averages blocks of pixels where an image has far more of them than `dpi` asks for, or more in a
/// row than Tesseract takes.
pub(super) fn shrink(raster: Raster, dpi: u32) -> Raster {
    let by_dpi = (raster.dpi * 2 / 3).checked_div(dpi).unwrap_or(1);
    let by_side = raster.width.max(raster.height).div_ceil(LONGEST_SIDE);
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
    Raster { width, height, dpi: raster.dpi / factor, pixels }
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
        let page = decode(&png(2, 2, [0, 0, 0, 0]), Format::Png, &limits(100)).unwrap();
        assert_eq!(page.pixels, [255; 4]);
        let page = decode(&png(2, 2, [0, 0, 0, 255]), Format::Png, &limits(100)).unwrap();
        assert_eq!(page.pixels, [0; 4]);
    }

    #[test]
    fn a_picture_over_the_limit_is_refused_by_its_header() {
        let refused = decode(&png(11, 10, [0; 4]), Format::Png, &limits(100)).unwrap_err();
        assert_eq!(refused.reason, Reason::TooLarge);
        assert_eq!(refused.detail, "11 x 10 pixels, the limit is 100");
        assert!(decode(&png(10, 10, [0; 4]), Format::Png, &limits(100)).is_ok());
    }

    #[test]
    fn a_picture_that_is_cut_off_is_corrupt() {
        let whole = png(40, 40, [9, 9, 9, 255]);
        let refused = decode(&whole.slice(..40), Format::Png, &limits(10_000)).unwrap_err();
        assert_eq!(refused.reason, Reason::Corrupt);
    }

    #[test]
    fn far_too_fine_pictures_are_averaged_down() {
        let raster = Raster { width: 4, height: 2, dpi: 900, pixels: vec![0, 2, 4, 6, 2, 4, 6, 8] };
        let small = shrink(raster.clone(), 300);
        assert_eq!((small.width, small.height, small.dpi), (2, 1, 450));
        assert_eq!(small.pixels, [2, 6]);
        assert_eq!(shrink(raster.clone(), 450), raster);
    }
}
