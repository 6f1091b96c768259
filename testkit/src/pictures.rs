//! The stand-ins for OCR see only the size of a picture. Tests give each page its own size, so that
//! a page is identified by the sent picture alone.

use serde::Serialize;

/// Most that is read of a picture.
const MARKERS: usize = 64;

/// A picture as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Seen {
    /// Width of the picture in pixels.
    pub width: u32,
    /// Height of the picture in pixels.
    pub height: u32,
}

/// The pictures in a PNG, a JPEG or a PDF of pictures, in order; `None` for anything else.
pub fn seen(bytes: &[u8]) -> Option<Vec<Seen>> {
    if let Some(rest) = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n") {
        return Some(vec![Seen { width: big_endian(rest, 8)?, height: big_endian(rest, 12)? }]);
    }
    if bytes.starts_with(&[0xff, 0xd8]) {
        return jpeg(bytes).map(|seen| vec![seen]);
    }
    bytes.starts_with(b"%PDF-").then(|| pdf(bytes))
}

fn big_endian(rest: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*rest.get(at..)?.first_chunk()?))
}

/// Reads the frame header of a JPEG (ITU-T T.81 §B.2.2).
fn jpeg(bytes: &[u8]) -> Option<Seen> {
    let mut rest = bytes.get(2..)?;
    for _ in 0..MARKERS {
        let [0xff, marker, high, low] = *rest.first_chunk::<4>()? else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let [_, down, down_low, across, across_low] = *rest.get(4..)?.first_chunk::<5>()?;
            let height = u32::from(u16::from_be_bytes([down, down_low]));
            let width = u32::from(u16::from_be_bytes([across, across_low]));
            return Some(Seen { width, height });
        }
        rest = rest.get(2 + length..)?;
    }
    None
}

/// The image dictionaries of a PDF, in the order of the file.
fn pdf(bytes: &[u8]) -> Vec<Seen> {
    let text = String::from_utf8_lossy(bytes);
    let types = text.split("/Subtype").skip(1);
    types
        .filter(|object| object.trim_start().starts_with("/Image"))
        .filter_map(|image| {
            let head = image.split("stream").next()?;
            Some(Seen {
                width: number_after(head, "/Width ")?,
                height: number_after(head, "/Height ")?,
            })
        })
        .collect()
}

fn number_after(text: &str, name: &str) -> Option<u32> {
    let rest = text.split_once(name)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest.get(..end)?.parse().ok()
}
