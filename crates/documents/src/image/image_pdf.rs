//! A PDF that consists of page images: how repaired pages are kept for a reviewer.
//!
//! Each image is passed through as it is encoded: a JPEG as `DCTDecode`, a PNG's data as
//! `FlateDecode` with PNG predictors. So a page costs its own bytes, and nothing is decoded.

use std::borrow::Cow;

use pdf_writer::types::{NumberingStyle, Predictor};
use pdf_writer::writers::PageLabel;
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref};

use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader};

const CATALOG: Ref = Ref::new(1);
const PAGE_TREE: Ref = Ref::new(2);
const FIRST_PAGE: Ref = Ref::new(3);
/// Name of the image in a page's resources.
const IMAGE: Name = Name(b"Im");
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The bytes of a page image are not of the declared form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a page image is not in its declared format")]
pub struct InvalidImageError;

/// A PDF being written.
#[derive(Debug)]
pub struct ImagePdf {
    file: Pdf,
    next: Ref,
    /// Number in the original, and the page's object.
    pages: Vec<(i32, Ref)>,
}

impl Default for ImagePdf {
    fn default() -> Self {
        Self { file: Pdf::new(), next: FIRST_PAGE, pages: Vec::new() }
    }
}

impl ImagePdf {
    /// Adds the image of page `number` of the original, starting at 1, in its size on paper.
    ///
    /// # Errors
    /// [`InvalidImageError`] for a PNG that is not 8 bits of grey without interlacing, and for a
    /// number or a size of 2^31 and above, which a PDF cannot hold; nothing is added.
    pub fn add_page(&mut self, number: u32, page: &EncodedImage) -> Result<(), InvalidImageError> {
        let ImageHeader { width, height, dpi, .. } = page.header;
        let number = to_integer(number)?;
        let prepared = PreparedImage::from_encoded(page)?;
        let (width, height) = (to_points(width, dpi), to_points(height, dpi));
        let (page, contents, image) = (self.next.bump(), self.next.bump(), self.next.bump());
        self.pages.push((number, page));
        let mut dictionary = self.file.page(page);
        dictionary.parent(PAGE_TREE).media_box(Rect::new(0.0, 0.0, width, height));
        dictionary.contents(contents).resources().x_objects().pair(IMAGE, image);
        dictionary.finish();
        let mut content = Content::new();
        content.save_state().transform([width, 0.0, 0.0, height, 0.0, 0.0]);
        content.x_object(IMAGE).restore_state();
        self.file.stream(contents, &content.finish());
        prepared.write(&mut self.file, image);
        Ok(())
    }

    /// Writes the page tree and trailer; returns the whole file.
    pub fn finish(mut self) -> Vec<u8> {
        self.pages.sort_unstable();
        let mut labels = Vec::new();
        for (number, _) in &self.pages {
            let label = self.next.bump();
            let mut dictionary: PageLabel<'_> = self.file.indirect(label).start();
            dictionary.style(NumberingStyle::Arabic).offset(*number);
            labels.push(label);
        }
        let mut tree = self.file.pages(PAGE_TREE);
        tree.count(i32::try_from(self.pages.len()).unwrap_or(i32::MAX));
        tree.kids(self.pages.iter().map(|(_, page)| *page));
        tree.finish();
        let mut catalog = self.file.catalog(CATALOG);
        catalog.pages(PAGE_TREE);
        let mut tree = catalog.page_labels();
        let mut entries = tree.nums();
        for (index, label) in (0..).zip(labels) {
            entries.insert(index, label);
        }
        entries.finish();
        tree.finish();
        catalog.finish();
        self.file.finish()
    }
}

/// A page image that a PDF takes as it is encoded.
pub(crate) struct PreparedImage<'a> {
    data: Cow<'a, [u8]>,
    width: i32,
    height: i32,
    encoding: ImageEncoding,
}

impl<'a> PreparedImage<'a> {
    /// The data of a page image.
    ///
    /// # Errors
    /// [`InvalidImageError`] as [`ImagePdf::add_page`] has it.
    pub(crate) fn from_encoded(page: &'a EncodedImage) -> Result<Self, InvalidImageError> {
        let ImageHeader { width, height, encoding, .. } = page.header;
        let (width, height) = (to_integer(width)?, to_integer(height)?);
        let data = match encoding {
            ImageEncoding::Jpeg => Cow::Borrowed(page.bytes.as_slice()),
            ImageEncoding::Png => Cow::Owned(png_data(page).ok_or(InvalidImageError)?.concat()),
        };
        Ok(Self { data, width, height, encoding })
    }

    /// Writes it as an object of the file.
    pub(crate) fn write(&self, file: &mut Pdf, image: Ref) {
        let mut stream = file.image_xobject(image, &self.data);
        stream.width(self.width).height(self.height).bits_per_component(8);
        stream.color_space().device_gray();
        match self.encoding {
            ImageEncoding::Jpeg => _ = stream.filter(Filter::DctDecode),
            ImageEncoding::Png => {
                let mut parameters = stream.filter(Filter::FlateDecode).decode_parms();
                parameters.predictor(Predictor::PngOptimum).colors(1);
                parameters.bits_per_component(8).columns(self.width);
            }
        }
    }
}

fn to_integer(value: u32) -> Result<i32, InvalidImageError> {
    i32::try_from(value).map_err(|_| InvalidImageError)
}

/// Pixels on paper, in points of 1/72 inch.
pub(crate) fn to_points(pixels: u32, dpi: u32) -> f32 {
    pixels as f32 * 72.0 / dpi.max(1) as f32
}

/// Data of a PNG's `IDAT` chunks, which together are one zlib stream (PNG, 10.2). Only of the one
/// form that a PDF takes as it is: 8 bits of grey, not interlaced, of the declared size.
fn png_data(page: &EncodedImage) -> Option<Vec<&[u8]>> {
    let mut rest = page.bytes.strip_prefix(PNG_SIGNATURE)?;
    let mut data = Vec::new();
    let mut header = None;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (kind, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (content, after) = after.split_at_checked(length)?;
        let (_checksum, after) = after.split_first_chunk::<4>()?;
        match kind {
            b"IHDR" => header = Some(content),
            b"IDAT" => data.push(content),
            b"IEND" => break,
            _ => {}
        }
        rest = after;
    }
    let mut expected = [page.header.width.to_be_bytes(), page.header.height.to_be_bytes()].concat();
    // Bit depth 8, colour type 0, compression and filter method 0, no interlacing.
    expected.extend([8, 0, 0, 0, 0]);
    (header == Some(expected.as_slice()) && !data.is_empty()).then_some(data)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{GrayImage, ImageFormat, Luma};

    use super::*;
    use crate::document::open_document;
    use crate::page::PageContent;
    use docmill_core::config::LimitsConfig;

    /// A white page with a dark bar whose left edge is at `x`.
    fn image(encoding: ImageEncoding, x: u32) -> EncodedImage {
        let picture = GrayImage::from_fn(310, 440, |at, row| {
            Luma([if (x..x + 40).contains(&at) && (20..400).contains(&row) { 10 } else { 250 }])
        });
        let format = match encoding {
            ImageEncoding::Png => ImageFormat::Png,
            ImageEncoding::Jpeg => ImageFormat::Jpeg,
        };
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        let header = ImageHeader { width: 310, height: 440, dpi: 100, encoding };
        EncodedImage { header, bytes: bytes.into_inner() }
    }

    /// The page labels as another library reads them: the index and the number shown, and one for
    /// every page.
    fn labels(file: &[u8]) -> Vec<(i64, i64)> {
        let document = lopdf::Document::load_mem(file).unwrap();
        let tree = document.catalog().unwrap().get(b"PageLabels").unwrap().as_dict().unwrap();
        let entries = tree.get(b"Nums").unwrap().as_array().unwrap();
        let label = |entry: &[lopdf::Object]| {
            let label = document.dereference(&entry[1]).unwrap().1.as_dict().unwrap();
            assert_eq!(label.get(b"S").unwrap().as_name().unwrap(), b"D");
            (entry[0].as_i64().unwrap(), label.get(b"St").unwrap().as_i64().unwrap())
        };
        let labels: Vec<_> = entries.chunks(2).map(label).collect();
        assert_eq!(document.get_pages().len(), labels.len());
        labels
    }

    #[test]
    fn pages_of_either_encoding_are_shown_by_number_and_labelled_with_it() {
        let mut pdf = ImagePdf::default();
        pdf.add_page(7, &image(ImageEncoding::Png, 200)).unwrap();
        pdf.add_page(3, &image(ImageEncoding::Jpeg, 30)).unwrap();
        let file = pdf.finish();
        assert_eq!(labels(&file), [(0, 3), (1, 7)]);
        let document = open_document(file.into(), &LimitsConfig::default(), 100).unwrap();
        for (index, dark, light) in [(0, 50, 220), (1, 220, 50)] {
            let PageContent::Image(shown) = document.page_content(index).unwrap() else {
                panic!("not an image")
            };
            assert_eq!((shown.width, shown.height), (310, 440));
            let at = |x: usize| shown.pixels.get(200 * 310 + x).copied().unwrap();
            assert!(at(dark) < 40 && at(light) > 200, "page {index}: {} {}", at(dark), at(light));
        }
    }

    #[test]
    fn an_image_in_another_form_than_declared_is_refused() {
        let mut colour = Cursor::new(Vec::new());
        image::RgbImage::new(310, 440).write_to(&mut colour, ImageFormat::Png).unwrap();
        let good = image(ImageEncoding::Png, 30);
        let mut cut = good.clone();
        cut.bytes.truncate(100);
        let table = [
            EncodedImage { bytes: colour.into_inner(), ..good.clone() },
            EncodedImage { header: ImageHeader { width: 311, ..good.header }, ..good.clone() },
            EncodedImage { bytes: b"GIF89a".to_vec(), ..good },
            cut,
        ];
        for bad in table {
            let mut pdf = ImagePdf::default();
            assert_eq!(pdf.add_page(1, &bad), Err(InvalidImageError));
            assert!(labels(&pdf.finish()).is_empty());
        }
    }
}
