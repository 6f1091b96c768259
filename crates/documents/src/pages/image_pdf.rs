//! A PDF that consists of page images: how repaired pages are kept for a reviewer.
//!
//! Written front to back into one buffer, each image passed through as it is encoded (a JPEG as
//! `DCTDecode`, a PNG's data as `FlateDecode` with PNG predictors), so that a page costs its own
//! bytes and nothing is decoded. Pages may be added in any order; they are shown by number, and
//! their labels are the numbers that they have in the original. Not promised: that an image that
//! lies about its size is shown as it should.

use crate::model::{EncodedImage, ImageEncoding, ImageHeader};

/// Every image's page, content and image object: three objects after the two of the frame.
const FIRST_OBJECT: usize = 3;
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The bytes of a page image are not what they are said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a page image is not in the form it is said to be in")]
pub struct InvalidImageError;

/// A PDF being written.
#[derive(Debug)]
pub struct ImagePdf {
    file: Vec<u8>,
    /// Where object `FIRST_OBJECT + n` begins.
    offsets: Vec<usize>,
    /// Number in the original, and the page's object.
    pages: Vec<(u32, usize)>,
}

impl Default for ImagePdf {
    fn default() -> Self {
        // Four bytes above 127 tell transfer programs that the file is binary (ISO 32000-1, 7.5.2).
        Self {
            file: b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n".to_vec(),
            offsets: Vec::new(),
            pages: Vec::new(),
        }
    }
}

impl ImagePdf {
    /// Adds the image of page `number` of the original, starting at 1, in its size on paper.
    ///
    /// # Errors
    /// [`InvalidImageError`] for a PNG that is not 8 bits of grey without interlacing; nothing is added.
    pub fn add_page(&mut self, number: u32, page: &EncodedImage) -> Result<(), InvalidImageError> {
        let ImageHeader { width: across, height: down, dpi, encoding } = page.header;
        let (filter, data) = match encoding {
            ImageEncoding::Jpeg => ("/Filter/DCTDecode".to_owned(), vec![page.bytes.as_slice()]),
            ImageEncoding::Png => {
                let predictor = format!(
                    "/Filter/FlateDecode/DecodeParms<</Predictor 15/Colors 1\
                     /BitsPerComponent 8/Columns {}>>",
                    across
                );
                (predictor, png_data(page).ok_or(InvalidImageError)?)
            }
        };
        let (width, height) = (to_points(across, dpi), to_points(down, dpi));
        let first = FIRST_OBJECT + self.offsets.len();
        let (contents, image) = (first + 1, first + 2);
        self.pages.push((number, first));
        self.write_object(&format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 {width:.2} {height:.2}]/Contents {contents} 0 R\
             /Resources<</XObject<</Im {image} 0 R>>>>>>"
        ));
        let content = format!("q {width:.2} 0 0 {height:.2} 0 0 cm /Im Do Q");
        self.write_stream("", &[content.as_bytes()]);
        let dictionary = format!(
            "/Type/XObject/Subtype/Image/Width {across}/Height {down}/ColorSpace/DeviceGray\
             /BitsPerComponent 8{filter}"
        );
        self.write_stream(&dictionary, &data);
        Ok(())
    }

    /// The numbers of the pages so far, in order.
    pub fn page_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.pages.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Ends the file.
    pub fn finish(mut self) -> Vec<u8> {
        self.pages.sort_unstable();
        let kids: Vec<String> =
            self.pages.iter().map(|(_, object)| format!("{object} 0 R")).collect();
        let labels: Vec<String> = (0..)
            .zip(&self.pages)
            .map(|(at, (number, _)): (usize, _)| format!("{at}<</S/D/St {number}>>"))
            .collect();
        let catalog = self.file.len();
        let labels = labels.concat();
        self.write_raw(1, &format!("<</Type/Catalog/Pages 2 0 R/PageLabels<</Nums[{labels}]>>>>"));
        let tree = self.file.len();
        let (count, kids) = (kids.len(), kids.join(" "));
        self.write_raw(2, &format!("<</Type/Pages/Count {count}/Kids[{kids}]>>"));
        let table = self.file.len();
        let size = FIRST_OBJECT + self.offsets.len();
        let mut end = format!("xref\n0 {size}\n0000000000 65535 f \n");
        for offset in [catalog, tree].iter().chain(&self.offsets) {
            end.push_str(&format!("{offset:010} 00000 n \n"));
        }
        end.push_str(&format!("trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n"));
        self.file.extend_from_slice(end.as_bytes());
        self.file
    }

    /// The next object.
    fn write_object(&mut self, body: &str) {
        self.offsets.push(self.file.len());
        self.write_raw(FIRST_OBJECT + self.offsets.len() - 1, body);
    }

    fn write_stream(&mut self, dictionary: &str, data: &[&[u8]]) {
        let length: usize = data.iter().map(|part| part.len()).sum();
        self.offsets.push(self.file.len());
        let number = FIRST_OBJECT + self.offsets.len() - 1;
        let head = format!("{number} 0 obj\n<<{dictionary}/Length {length}>>\nstream\n");
        self.file.extend_from_slice(head.as_bytes());
        for part in data {
            self.file.extend_from_slice(part);
        }
        self.file.extend_from_slice(b"\nendstream\nendobj\n");
    }

    fn write_raw(&mut self, number: usize, body: &str) {
        self.file.extend_from_slice(format!("{number} 0 obj\n{body}\nendobj\n").as_bytes());
    }
}

/// Pixels on paper, in points of 1/72 inch.
fn to_points(pixels: u32, dpi: u32) -> f64 {
    f64::from(pixels) * 72.0 / f64::from(dpi.max(1))
}

/// The data of a PNG's `IDAT` chunks, which together are one zlib stream (PNG, 10.2), if it is of
/// the one form that a PDF takes as it is: 8 bits of grey, not interlaced, of the size it is said
/// to have.
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
    use crate::config::LimitsConfig;
    use crate::pages::{PageContent, open_document};

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

    #[test]
    fn pages_of_either_encoding_are_shown_by_number_and_labelled_with_it() {
        let mut pdf = ImagePdf::default();
        pdf.add_page(7, &image(ImageEncoding::Png, 200)).unwrap();
        pdf.add_page(3, &image(ImageEncoding::Jpeg, 30)).unwrap();
        assert_eq!(pdf.page_numbers(), [3, 7]);
        let file = pdf.finish();
        let again = lopdf::Document::load_mem(&file).unwrap();
        assert_eq!(again.get_pages().len(), 2);
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("/Nums[0<</S/D/St 3>>1<</S/D/St 7>>]"));
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
    fn an_image_in_another_form_than_it_says_is_not_taken() {
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
            assert!(pdf.page_numbers().is_empty());
        }
    }
}
