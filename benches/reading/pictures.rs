//! Pages as pictures, drawn from the documents of the tests.

use std::io::Cursor;

use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader};
use docmill_documents::ImagePdf;

use super::support::documents;

/// A full page of text: an invoice with two columns of lines below it.
pub(crate) fn dense(number: &str) -> Vec<u8> {
    let mut lines = vec![(60.0, 60.0, format!("Northwind Paper Ltd, invoice number {number}"))];
    for row in 0_u8..44 {
        let y = 100.0 + f32::from(row) * 16.0;
        let text = format!("{row:02} Copy paper A4, box of five, white, 80 g/m2, delivered");
        lines.push((60.0, y, text));
        lines.push((430.0, y, format!("{row} x 25.00 EUR")));
    }
    let lines: Vec<(f32, f32, &str)> = lines.iter().map(|(x, y, t)| (*x, *y, t.as_str())).collect();
    documents::pdf(&lines)
}

/// The same as an encoded picture.
pub(crate) fn picture(pdf: Vec<u8>, dpi: u16) -> EncodedImage {
    let bytes = documents::scan(pdf, f32::from(dpi));
    let reader = image::ImageReader::with_format(Cursor::new(&bytes), image::ImageFormat::Png);
    let (width, height) = reader.into_dimensions().unwrap();
    EncodedImage {
        header: ImageHeader { width, height, dpi: dpi.into(), encoding: ImageEncoding::Png },
        bytes,
    }
}

/// The same as a JPEG.
pub(crate) fn jpeg(pdf: Vec<u8>, dpi: u16) -> Vec<u8> {
    let png = documents::scan(pdf, f32::from(dpi));
    let decoded = image::load_from_memory(&png).unwrap().into_luma8();
    let mut bytes = Cursor::new(Vec::new());
    decoded.write_to(&mut bytes, image::ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

/// A PDF of `pages` scans.
pub(crate) fn scans(pages: u32, dpi: u16) -> Vec<u8> {
    let mut file = ImagePdf::default();
    for number in 1..=pages {
        file.add_page(number, &picture(documents::invoice(&format!("L-{number}")), dpi)).unwrap();
    }
    file.finish()
}
