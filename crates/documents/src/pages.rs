//! From bytes to pages: what the bytes are, whether they keep within the limits, and per page
//! either its text layer or its picture.
//!
//! Only memory-safe decoders meet the bytes here. A decoder that panics costs its document, not
//! the worker; what this module cannot promise is to survive an abort (a failed allocation, an
//! overflowing stack), and a task that never draws anything can outlive its deadline.
//! Everything here is synchronous CPU work: call it on the pool.
//!
//! Text that does not show on the page is never read: a hidden layer under a scan may say
//! anything, so the picture wins. XML shows nothing at all: its values are one page of lines, so
//! that a person can see what it says.

pub mod attachments;
mod contrast;
mod cut_figure;
mod digit_shapes;
mod document;
mod doubt;
mod drawn_figures;
mod drawn_marks;
mod encode;
mod expansion;
mod fax;
mod form_fields;
mod format;
mod glyphless_font;
mod image_pdf;
mod language;
mod lines;
mod luminance;
mod marks;
mod page;
mod page_copy;
mod page_error;
mod page_glyph;
mod paint_record;
mod pdf;
mod picture;
pub(crate) mod plane;
mod probe;
pub mod quality;
mod read_page;
mod read_picture;
mod recognise;
mod refusal;
mod render;
pub mod repair;
mod salvage;
mod score;
mod searchable_pdf;
mod seen_page;
pub mod serve;
mod show_page;
mod show_witnessed;
mod srgb_profile;
mod surface;
mod text_cells;
mod tiff;
mod two_readings;
mod words;

pub use document::{ParsedDocument, open_document, open_locked_document};
pub use format::DocumentFormat;
pub use image_pdf::{ImagePdf, InvalidImageError};
pub(crate) use language::LanguageEvidence;
pub use lines::join_rows;
pub use page::{PageContent, PageRaster};
pub use page_error::PageError;
pub use plane::OpenCvError;
pub use read_page::read_page;
pub use recognise::{PageRecogniser, TurnedPage, TurnedReading};
pub use refusal::PageRefusal;
pub use searchable_pdf::SearchablePdf;
pub use show_page::{has_text, page_from_reading, show_page, uncovered_cells};

/// Version of what this module reads from the same bytes. Raise it with every change that can
/// change a page's text.
const VERSION: u32 = 13;

/// What this module's part in a transcript depends on besides its recipe; part of the transcript's
/// identity.
pub fn reader_version() -> String {
    format!("{VERSION} with OpenCV {}", opencv::core::CV_VERSION)
}
