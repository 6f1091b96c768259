//! A page read: its text layer where it has a sound one, else its picture by an OCR engine.

mod colour_page;
mod cut_figure;
mod legibility;
mod merge_ocr;
mod orientation_probe;
mod page_copy;
pub(crate) mod read_page;
mod read_picture;
pub(crate) mod recognise;
mod render_with_ocr;
mod second_look;
mod seen_page;
pub mod serve;
pub(crate) mod show_page;

/// Version of page reading. Raise it with every change that can change a page's text.
const VERSION: u32 = 15;

/// Version of page reading and of `OpenCV`; part of each transcript's identity.
pub fn reader_version() -> String {
    format!("{VERSION} with OpenCV {}", opencv::core::CV_VERSION)
}
