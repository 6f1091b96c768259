//! A stored part of finished pages: a line of JSON, then the encoded images it lists, in order.
//!
//! An unreadable part, or one of another identity, is ignored: its pages are read again.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use docmill_core::model::{EncodedImage, ImageHeader, PageText};

/// Finished pages that are in memory only.
#[derive(Debug, Default)]
pub(super) struct JournalPart {
    /// The texts of the pages.
    pub pages: Vec<PageText>,
    /// Images that texts were read from, by page number.
    pub images: Vec<(u32, EncodedImage)>,
}

#[derive(Serialize, Deserialize)]
struct JournalPartHeader {
    made_from: String,
    pages: Vec<PageText>,
    images: Vec<StoredImage>,
}

/// An image without its bytes, which are the next `length` of those after the head.
#[derive(Serialize, Deserialize)]
struct StoredImage {
    page: u32,
    #[serde(flatten)]
    header: ImageHeader,
    length: usize,
}

impl JournalPart {
    /// Page numbers of the images, and the bytes of each.
    pub(super) fn image_sizes(&self) -> impl Iterator<Item = (u32, usize)> {
        self.images.iter().map(|(page, image)| (*page, image.bytes.len()))
    }

    /// Bytes of all images: what weighs.
    pub(super) fn image_bytes(&self) -> usize {
        self.image_sizes().map(|(_, bytes)| bytes).sum()
    }

    /// Encodes the part as it is stored: a line of JSON, then the images.
    pub(super) fn encode(&self, identity: &str) -> serde_json::Result<Bytes> {
        let images = self.images.iter().map(|(page, image)| StoredImage {
            page: *page,
            header: image.header,
            length: image.bytes.len(),
        });
        let head = JournalPartHeader {
            made_from: identity.to_owned(),
            pages: self.pages.clone(),
            images: images.collect(),
        };
        let mut bytes = serde_json::to_vec(&head)?;
        bytes.reserve_exact(1 + self.image_bytes());
        bytes.push(b'\n');
        for (_, image) in &self.images {
            bytes.extend_from_slice(&image.bytes);
        }
        Ok(bytes.into())
    }

    /// Reads the stored form, if it is whole and of this identity.
    pub(super) fn decode(bytes: &[u8], identity: &str) -> Option<Self> {
        let end = memchr::memchr(b'\n', bytes)?;
        let (head, rest) = bytes.split_at_checked(end)?;
        let head: JournalPartHeader = serde_json::from_slice(head).ok()?;
        if head.made_from != identity {
            return None;
        }
        let (_line_feed, mut rest) = rest.split_first()?;
        let mut images = Vec::with_capacity(head.images.len());
        for StoredImage { page, header, length } in head.images {
            let (bytes, after) = rest.split_at_checked(length)?;
            let bytes = bytes.to_vec();
            images.push((page, EncodedImage { header, bytes }));
            rest = after;
        }
        rest.is_empty().then_some(Self { pages: head.pages, images })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{ImageEncoding, PageSource};

    fn part() -> JournalPart {
        let page = |number| PageText {
            number,
            source: PageSource::Ocr,
            width: 10.0,
            height: 20.0,
            quality: 0.5,
            defects: Vec::new(),
            languages: vec!["eng".to_owned()],
            repaired: number == 2,
            provider: None,
            codes: Vec::new(),
            marks: Vec::new(),
            notes: Vec::new(),
            lines: Vec::new(),
        };
        let header = ImageHeader { width: 1, height: 2, dpi: 300, encoding: ImageEncoding::Png };
        let image = |bytes: &[u8]| EncodedImage { header, bytes: bytes.to_vec() };
        // Image bytes may hold anything, line feeds too.
        let images = vec![(2, image(b"\n{}\n")), (3, image(b"")), (5, image(b"\0\xff"))];
        JournalPart { pages: vec![page(2), page(1)], images }
    }

    #[test]
    fn a_part_comes_back_as_it_was_written_and_only_for_its_own_identity() {
        let written = part();
        let bytes = written.encode("made so").unwrap();
        let read = JournalPart::decode(&bytes, "made so").unwrap();
        assert_eq!((&read.pages, &read.images), (&written.pages, &written.images));
        assert_eq!(read.image_bytes(), 6);
        assert!(JournalPart::decode(&bytes, "made otherwise").is_none());
    }

    #[test]
    fn images_are_described_in_the_words_of_the_parts_that_are_stored_already() {
        let bytes = JournalPart { pages: Vec::new(), images: part().images }.encode("id").unwrap();
        let head = bytes.split(|byte| *byte == b'\n').next().unwrap();
        let stored = concat!(
            r#"{"made_from":"id","pages":[],"images":["#,
            r#"{"page":2,"width":1,"height":2,"dpi":300,"encoding":"png","length":4},"#,
            r#"{"page":3,"width":1,"height":2,"dpi":300,"encoding":"png","length":0},"#,
            r#"{"page":5,"width":1,"height":2,"dpi":300,"encoding":"png","length":2}]}"#,
        );
        assert_eq!(String::from_utf8_lossy(head), stored);
    }

    #[test]
    fn a_truncated_or_overlong_part_is_ignored() {
        let bytes = part().encode("id").unwrap();
        for cut in 0..bytes.len() {
            assert!(JournalPart::decode(bytes.get(..cut).unwrap(), "id").is_none(), "cut at {cut}");
        }
        assert!(JournalPart::decode(&[bytes.as_ref(), b"x"].concat(), "id").is_none());
    }
}
