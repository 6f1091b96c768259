//! Validates the pictures of a request as strictly as vendors do: declared type, actual type, and
//! size. Only the header is decoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Most pixels of a side that any vendor takes.
const MAX_SIDE: u32 = 8000;
/// Most pictures that every vendor takes in one request.
const MAX_PICTURES: usize = 20;

/// A picture that a model was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPicture {
    /// The encoded picture.
    pub bytes: Vec<u8>,
    /// Pixels per row, by the header.
    pub width: u32,
    /// Rows, by the header.
    pub height: u32,
}

impl SentPicture {
    /// Tokens that it counts for: pieces of 28 by 28 pixels.
    pub(crate) fn tokens(&self) -> usize {
        (self.width.div_ceil(28) as usize) * (self.height.div_ceil(28) as usize)
    }
}

/// The pictures of a request in whichever vendor's form, in their order.
///
/// # Errors
/// It breaks the contract.
pub(crate) fn sent_pictures(body: &Value) -> Result<Vec<SentPicture>, String> {
    let messages = body.get("messages").or_else(|| body.get("contents")).and_then(Value::as_array);
    let contents = messages
        .into_iter()
        .flatten()
        .filter_map(|message| message.get("content").or_else(|| message.get("parts")));
    let parts: Vec<&Value> = contents.filter_map(Value::as_array).flatten().collect();
    let mut found = Vec::new();
    for part in parts {
        found.extend(picture_of(part)?);
    }
    if found.len() > MAX_PICTURES {
        return Err(format!("more than {MAX_PICTURES} pictures"));
    }
    Ok(found)
}

fn picture_of(part: &Value) -> Result<Option<SentPicture>, String> {
    if let Some(url) = text_at(part, "/image_url/url") {
        if !matches!(text_at(part, "/image_url/detail"), Some("low" | "high" | "auto" | "original"))
        {
            return Err("image_url.detail is not said".to_owned());
        }
        let data = url.strip_prefix("data:").ok_or("an address would be fetched")?;
        let (kind, data) = data.split_once(";base64,").ok_or("no base64 in the data URL")?;
        return look_at(kind, data).map(Some);
    }
    if text_at(part, "/type") == Some("image") {
        if text_at(part, "/source/type") != Some("base64") {
            return Err("image.source: only base64".to_owned());
        }
        let (kind, data) = (text_at(part, "/source/media_type"), text_at(part, "/source/data"));
        return look_at(kind.ok_or("media_type")?, data.ok_or("data")?).map(Some);
    }
    if let Some(data) = text_at(part, "/inlineData/data") {
        return look_at(text_at(part, "/inlineData/mimeType").ok_or("mimeType")?, data).map(Some);
    }
    if let Some(data) = text_at(part, "/image/source/bytes") {
        let format = text_at(part, "/image/format").ok_or("image.format is missing")?;
        return look_at(&format!("image/{format}"), data).map(Some);
    }
    if part.get("document").is_some() || text_at(part, "/type") == Some("file") {
        return Err("a document was sent".to_owned());
    }
    Ok(None)
}

fn text_at<'a>(part: &'a Value, pointer: &str) -> Option<&'a str> {
    part.pointer(pointer).and_then(Value::as_str)
}

fn look_at(kind: &str, data: &str) -> Result<SentPicture, String> {
    let bytes = STANDARD.decode(data).map_err(|_| "invalid base64".to_owned())?;
    if data.len() > 5 << 20 {
        return Err("a picture has at most 5 MB of base64".to_owned());
    }
    let size = match kind {
        "image/png" => png_size(&bytes),
        "image/jpeg" => jpeg_size(&bytes),
        _ => return Err(format!("{kind} is no picture that is taken")),
    };
    let (width, height) = size.ok_or("the bytes are not what they are said to be")?;
    if width.max(height) > MAX_SIDE || width == 0 || height == 0 {
        return Err("image_dimensions_too_large".to_owned());
    }
    Ok(SentPicture { bytes, width, height })
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let number = |at: usize| Some(u32::from_be_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    Some((number(8)?, number(12)?))
}

/// The size in the first frame header.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(&[0xff, 0xd8])?;
    loop {
        let (&[0xff, marker, high, low], _) = rest.split_first_chunk::<4>()? else { return None };
        let number =
            |at: usize| Some(u32::from(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?)));
        if (0xc0..=0xc2).contains(&marker) {
            return Some((number(7)?, number(5)?));
        }
        rest = rest.get(2 + usize::from(u16::from_be_bytes([high, low]))..)?;
    }
}
