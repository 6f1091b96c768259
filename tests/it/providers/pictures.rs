//! Scans whose pages differ in size, so that every page is told by what was sent of it.

use std::io::Cursor;

use docmill_core::model::{
    EncodedImage, ImageEncoding, ImageHeader, PagePicture, PictureFacts, TextMap,
};
use docmill_documents::ImagePdf;
use image::{GrayImage, ImageFormat, Luma};

/// Rows of a page.
pub(crate) const HEIGHT: u32 = 320;
/// Pixels per row of page 0.
const WIDTH: u32 = 240;
/// Resolution at which tests read; the pictures have it too.
const DPI: u32 = 100;

/// Pixels per row of a page.
pub(crate) fn width(page: u32) -> u32 {
    WIDTH + page
}

/// Rows of marks like letters, on paper of this shade of grey.
pub(crate) fn picture(page: u32, paper: u8) -> EncodedImage {
    let (width, height) = (width(page), HEIGHT);
    let image = GrayImage::from_fn(width, height, |x, y| {
        let is_letter = y % 40 < 14 && x % 18 < 12 && (x % 18 % 6 < 2 || y % 40 % 6 < 2);
        let in_margin = !(30..210).contains(&x) || !(30..290).contains(&y);
        Luma([if is_letter && !in_margin { paper / 4 } else { paper }])
    });
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let encoding = ImageEncoding::Png;
    EncodedImage {
        header: ImageHeader { width, height, dpi: DPI, encoding },
        bytes: bytes.into_inner(),
    }
}

/// By how much the large page is wider than page 0.
pub(crate) const LARGE: u32 = 1000;

/// A PDF of one page of A4 at 150 dpi, full of marks.
pub(crate) fn large() -> Vec<u8> {
    let (width, height) = (width(LARGE), 1754);
    let image = GrayImage::from_fn(width, height, |x, y| {
        let is_letter = y % 40 < 14 && x % 18 < 12 && (x % 18 % 6 < 2 || y % 40 % 6 < 2);
        Luma([if is_letter { 50 } else { 230 }])
    });
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let header = ImageHeader { width, height, dpi: DPI, encoding: ImageEncoding::Png };
    let mut file = ImagePdf::default();
    file.add_page(1, &EncodedImage { header, bytes: bytes.into_inner() }).unwrap();
    file.finish()
}

/// A page without marks.
pub(crate) fn blank(page: u32) -> EncodedImage {
    let (width, height) = (width(page), HEIGHT);
    let mut bytes = Cursor::new(Vec::new());
    let paper = GrayImage::from_pixel(width, height, Luma([230]));
    paper.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let header = ImageHeader { width, height, dpi: DPI, encoding: ImageEncoding::Png };
    EncodedImage { header, bytes: bytes.into_inner() }
}

/// A PDF of so many scans on good paper.
pub(crate) fn scans(pages: u32) -> Vec<u8> {
    scans_on(230, pages)
}

/// The same on paper of this shade.
pub(crate) fn scans_on(paper: u8, pages: u32) -> Vec<u8> {
    let mut file = ImagePdf::default();
    for page in 1..=pages {
        file.add_page(page, &picture(page, paper)).unwrap();
    }
    file.finish()
}

/// A page as it is sent to a provider, on good paper.
pub(crate) fn sent(page: u32) -> PagePicture {
    let facts = PictureFacts {
        number: page,
        repaired: false,
        score: 1.0,
        defects: Vec::new(),
        text: TextMap::default(),
        layer: None,
        cut: false,
        codes: Vec::new(),
    };
    PagePicture { facts, image: picture(page, 230), local_reading: None }
}

/// The line that the stand-ins read from each page.
pub(crate) fn text(page: u32) -> String {
    format!("Größe {} x {HEIGHT}", width(page))
}

/// Whether a text is that of a page, as the stand-ins read it.
pub(crate) fn says(read: &str, page: u32) -> bool {
    read.contains(&text(page))
}
