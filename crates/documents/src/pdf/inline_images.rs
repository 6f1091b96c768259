//! Data size of inline images.

use hayro::hayro_interpret::hayro_syntax::object::{Object, Stream};

use crate::pdf::expansion::stream_bytes;
use crate::refusal::{PageRefusal, stop_decoder};
use docmill_core::model::OutcomeReason;

/// Most bytes of a pixel: four components of 16 bits.
const PIXEL_BYTES: u64 = 8;
/// Unused bytes that may follow the pixels of an image.
const SPARE_BYTES: u64 = 1 << 20;

/// Rejects a page with an inline image whose data expands far beyond its pixels. Image objects were
/// counted when the file was opened.
pub(super) fn check_image_data(stream: &Stream<'_>, pixels: u64) {
    let most = pixels.saturating_mul(PIXEL_BYTES).saturating_add(SPARE_BYTES);
    if stream_bytes(stream, most) >= most {
        let detail = format!("the data of an image of {pixels} pixels has more than {most} bytes");
        stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
}

/// Whether an unfiltered image has less data than its pixels need. The interpreter searches for its
/// `EI`; viewers that count bytes find another end, and draw the content between.
pub(super) fn is_cut_short(stream: &Stream<'_>, width: u32, height: u32) -> bool {
    if !stream.filters().is_empty() {
        return false;
    }
    let entries = stream.dict();
    let bits = entries.get::<u32>(b"BPC").or_else(|| entries.get::<u32>(b"BitsPerComponent"));
    let space = entries.get::<Object<'_>>(b"CS").or_else(|| entries.get(b"ColorSpace"));
    let parts: u64 = match space {
        Some(Object::Name(name)) if matches!(name.as_ref(), b"RGB" | b"DeviceRGB") => 3,
        Some(Object::Name(name)) if matches!(name.as_ref(), b"CMYK" | b"DeviceCMYK") => 4,
        _ => 1,
    };
    let row = (u64::from(width) * u64::from(bits.unwrap_or(1)) * parts).div_ceil(8);
    (stream.raw_data().len() as u64) < row * u64::from(height)
}
