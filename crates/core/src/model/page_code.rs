//! Codes for machines that were read from a page's picture.
//!
//! A payload is content of the document: it never goes into logs, metrics or error messages. It is
//! not interpreted here, and it does not prove that the page's issuer drew the code.

use serde::{Deserialize, Serialize};

use super::BoundingBox;

/// How a code is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeSymbology {
    /// QR code (ISO/IEC 18004).
    Qr,
    /// Code 128 (ISO/IEC 15417).
    #[serde(rename = "code_128")]
    Code128,
    /// Code 39 (ISO/IEC 16388).
    #[serde(rename = "code_39")]
    Code39,
    /// Patch code of separator sheets (Kodak A-61599); the payload is `T` or `2`.
    Patch,
}

/// A code on a page whose error correction holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageCode {
    /// How it is drawn.
    pub symbology: CodeSymbology,
    /// The payload. At most [`PageCode::MAX_BYTES`].
    pub payload: String,
    /// The bytes are not UTF-8: each is kept in the payload as the character of that number (ISO
    /// 8859-1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bytes: bool,
    /// The smallest box around it, in the unit of the page's boxes.
    #[serde(rename = "box")]
    pub bounding_box: BoundingBox,
}

impl PageCode {
    /// Codes of one page that are kept. A page that has so many may have had more.
    pub const MAX_PER_PAGE: usize = 32;
    /// Bytes of one payload: the digits of the largest QR code.
    pub const MAX_BYTES: usize = 7_089;

    /// A code that says these bytes; none if they are more than any code holds.
    pub fn from_bytes(
        symbology: CodeSymbology,
        said: Vec<u8>,
        bounding_box: BoundingBox,
    ) -> Option<Self> {
        let (payload, bytes) = match String::from_utf8(said) {
            Ok(text) => (text, false),
            Err(other) => (other.into_bytes().into_iter().map(char::from).collect(), true),
        };
        let fits = payload.len() <= Self::MAX_BYTES;
        fits.then_some(Self { symbology, payload, bytes, bounding_box })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_marked_and_none_is_lost() {
        let code = |said: &[u8]| {
            PageCode::from_bytes(CodeSymbology::Qr, said.to_vec(), BoundingBox::default())
        };
        let text = code("für 5 €".as_bytes()).unwrap();
        assert_eq!((text.payload.as_str(), text.bytes), ("für 5 €", false));
        let latin = code(b"f\xfcr").unwrap();
        assert_eq!((latin.payload.as_str(), latin.bytes), ("für", true));
        assert!(code(&vec![b'1'; PageCode::MAX_BYTES]).is_some());
        assert_eq!(code(&vec![b'1'; PageCode::MAX_BYTES + 1]), None);
    }
}
