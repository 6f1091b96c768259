//! Whether a picture from a page process has its declared form. It is parsed, not decoded: the
//! worker keeps documents away from decoders.
//!
//! Only what our own encoder writes passes: a grey PNG of eight bits without interlacing or a
//! baseline JPEG with one channel, of pages for people with three, of the size in its header, made
//! of the parts that such a picture needs, and nothing before, between or behind them. So no other format, comment, profile or
//! second file reaches a viewer. Not promised: that the pixels can be decoded.

use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader};

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Start and end of a JPEG (ITU-T T.81 §B.1.1.3).
const JPEG_START: &[u8] = &[0xff, 0xd8];
const JPEG_END: &[u8] = &[0xff, 0xd9];
/// Higher resolutions are invalid.
const MAX_DPI: u32 = 20_000;

/// Whether this is a picture of at most `most` pixels in its declared form.
pub(super) fn is_sound_picture(image: &EncodedImage, most: u64) -> bool {
    is_possible(image.header, most)
        && match image.header.encoding {
            ImageEncoding::Png => is_sound_png(image),
            ImageEncoding::Jpeg => is_sound_jpeg(image, 1).is_some(),
        }
}

/// The same of a picture in colour, which is always a JPEG.
pub(super) fn is_sound_colour_picture(image: &EncodedImage, most: u64) -> bool {
    is_possible(image.header, most)
        && image.header.encoding == ImageEncoding::Jpeg
        && is_sound_jpeg(image, 3).is_some()
}

fn is_possible(header: ImageHeader, most: u64) -> bool {
    let pixels = u64::from(header.width) * u64::from(header.height);
    (1..=most).contains(&pixels) && header.dpi <= MAX_DPI
}

fn is_sound_png(image: &EncodedImage) -> bool {
    let Some(mut rest) = image.bytes.strip_prefix(PNG_SIGNATURE) else { return false };
    let header = [image.header.width.to_be_bytes(), image.header.height.to_be_bytes()].concat();
    // Bit depth 8, colour type 0, compression and filter method 0, no interlacing.
    let header = [header.as_slice(), &[8, 0, 0, 0, 0]].concat();
    let mut before: &[u8; 4] = b"none";
    while let Some((kind, content, after)) = take_chunk(rest) {
        let follows = match kind {
            b"IHDR" => before == b"none" && content == header,
            b"IDAT" => before == b"IHDR" || before == b"IDAT",
            b"IEND" => before == b"IDAT" && content.is_empty() && after.is_empty(),
            _ => false,
        };
        if !follows {
            return false;
        }
        (before, rest) = (kind, after);
    }
    before == b"IEND"
}

/// Kind and content of the first chunk, and what comes after it; `None` if its sum is wrong.
fn take_chunk(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (length, summed) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (kind, behind) = summed.split_first_chunk::<4>()?;
    let (content, behind) = behind.split_at_checked(length)?;
    let (sum, after) = behind.split_first_chunk::<4>()?;
    let mut found = flate2::Crc::new();
    found.update(kind);
    found.update(content);
    (found.sum() == u32::from_be_bytes(*sum)).then_some((kind, content, after))
}

/// The segments of a baseline JPEG with so many channels and one scan.
fn is_sound_jpeg(image: &EncodedImage, channels: u8) -> Option<()> {
    let mut rest = image.bytes.strip_prefix(JPEG_START)?;
    let width = u16::try_from(image.header.width).ok()?.to_be_bytes();
    let height = u16::try_from(image.header.height).ok()?.to_be_bytes();
    // Precision, height, width, components with three bytes each.
    let frame = [&[8], height.as_slice(), &width, &[channels]].concat();
    let frame_bytes = 6 + 3 * usize::from(channels);
    let mut has_frame = false;
    loop {
        let ([0xff, marker], behind) = rest.split_first_chunk::<2>()? else { return None };
        let (length, behind) = behind.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length)).checked_sub(2)?;
        let (content, after) = behind.split_at_checked(length)?;
        match marker {
            // JFIF, quantisation, Huffman tables, restart interval.
            0xe0 | 0xdb | 0xc4 | 0xdd => {}
            0xc0 if !has_frame => {
                has_frame = content.starts_with(&frame) && content.len() == frame_bytes
            }
            0xda => return (has_frame && is_last_scan(after)).then_some(()),
            _ => return None,
        }
        rest = after;
    }
}

/// Coded pixels up to the end of the picture, which is the end of the bytes. Between them are
/// restart markers, and a zero after each byte that would look like a marker.
fn is_last_scan(bytes: &[u8]) -> bool {
    let Some(coded) = bytes.strip_suffix(JPEG_END) else { return false };
    memchr::memchr_iter(0xff, coded).all(|at| matches!(coded.get(at + 1), Some(0x00 | 0xd0..=0xd7)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ExtendedColorType, ImageEncoder};

    use super::*;

    fn picture(encoding: ImageEncoding) -> EncodedImage {
        let (width, height) = (31, 17);
        let pixels: Vec<u8> =
            (0..width * height).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut bytes = Cursor::new(Vec::new());
        let (w, h, grey) = (width, height, ExtendedColorType::L8);
        match encoding {
            ImageEncoding::Png => image::codecs::png::PngEncoder::new(&mut bytes)
                .write_image(&pixels, w, h, grey)
                .unwrap(),
            ImageEncoding::Jpeg => image::codecs::jpeg::JpegEncoder::new(&mut bytes)
                .write_image(&pixels, w, h, grey)
                .unwrap(),
        }
        let header = ImageHeader { width, height, dpi: 300, encoding };
        EncodedImage { header, bytes: bytes.into_inner() }
    }

    #[test]
    fn a_picture_that_is_not_what_it_says_is_none() {
        for encoding in [ImageEncoding::Png, ImageEncoding::Jpeg] {
            let good = picture(encoding);
            assert!(is_sound_picture(&good, 31 * 17), "{encoding:?}");
            assert!(!is_sound_picture(&good, 31 * 17 - 1), "over the cap");
            let header = |header| EncodedImage { header, ..good.clone() };
            let bytes = |bytes: Vec<u8>| EncodedImage { bytes, ..good.clone() };
            let swapped = match encoding {
                ImageEncoding::Png => ImageEncoding::Jpeg,
                ImageEncoding::Jpeg => ImageEncoding::Png,
            };
            let script = b"<script>alert(1)</script>";
            let mut commented = good.bytes.clone();
            let comment = [&[0xff, 0xfe, 0, 27], script.as_slice()].concat();
            commented.splice(2..2, comment);
            let mut text = good.bytes.clone();
            let mut sum = flate2::Crc::new();
            sum.update(b"tEXt");
            sum.update(script);
            let chunk =
                [&25_u32.to_be_bytes(), b"tEXt".as_slice(), script, &sum.sum().to_be_bytes()];
            text.splice(33..33, chunk.concat());
            let mut damaged = good.bytes.clone();
            damaged[20] ^= 1;
            for (name, wrong) in [
                ("another width", header(ImageHeader { width: 32, ..good.header })),
                ("another height", header(ImageHeader { height: 18, ..good.header })),
                ("no size", header(ImageHeader { width: 0, ..good.header })),
                ("another form", header(ImageHeader { encoding: swapped, ..good.header })),
                ("no resolution", header(ImageHeader { dpi: u32::MAX, ..good.header })),
                ("no bytes", bytes(Vec::new())),
                ("a page of HTML", bytes(script.to_vec())),
                ("something behind it", bytes([good.bytes.as_slice(), script].concat())),
                ("a second picture", bytes([good.bytes.clone(), good.bytes.clone()].concat())),
                ("a cut picture", bytes(good.bytes[..good.bytes.len() - 3].to_vec())),
                ("a comment or profile", bytes(commented)),
                ("a text chunk", bytes(text)),
                ("a head that is damaged", bytes(damaged)),
            ] {
                let jpeg_keeps_tables = encoding == ImageEncoding::Jpeg && name.contains("damaged");
                assert!(
                    jpeg_keeps_tables || !is_sound_picture(&wrong, 10_000),
                    "{encoding:?}: {name}"
                );
            }
        }
    }

    #[test]
    fn a_picture_in_colour_passes_for_pages_that_people_look_at_alone() {
        let header = ImageHeader { width: 2, height: 2, dpi: 300, encoding: ImageEncoding::Jpeg };
        let pixels = [0_u8; 12];
        let mut bytes = Cursor::new(Vec::new());
        image::codecs::jpeg::JpegEncoder::new(&mut bytes)
            .write_image(&pixels, 2, 2, ExtendedColorType::Rgb8)
            .unwrap();
        let coloured = EncodedImage { header, bytes: bytes.into_inner() };
        assert!(!is_sound_picture(&coloured, 4), "readers and models get grey");
        assert!(is_sound_colour_picture(&coloured, 4) && !is_sound_colour_picture(&coloured, 3));
        assert!(!is_sound_colour_picture(&picture(ImageEncoding::Jpeg), 10_000), "this is grey");
        assert!(!is_sound_colour_picture(&picture(ImageEncoding::Png), 10_000));
        let longer = EncodedImage { bytes: [coloured.bytes.as_slice(), b"x"].concat(), ..coloured };
        assert!(!is_sound_colour_picture(&longer, 4), "something behind it");
    }
}
