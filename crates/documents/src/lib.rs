//! From bytes to pages and their text. Interpreting the text is the business of other crates.
//!
//! The way of a document: `container` finds the documents in a file that holds some. `envelope` opens what is
//! around one, `document` recognises its format and
//! opens it (`pdf` or `image`).
//! `reading` takes each page's text layer or reads its picture with an engine of `ocr`. Before that
//! `quality` assesses the picture, `repair` repairs it, and `marks` finds its codes and boxes. All
//! of that runs inside of page processes, which `sandbox` starts and confines.
//!
//! Only memory-safe decoders parse untrusted bytes. A decoder that panics costs its document, not
//! the worker. Not promised: surviving an abort (a failed allocation, an overflowing stack), nor
//! that a page that draws nothing ends by its deadline. Everything but `sandbox` and `ocr` is
//! synchronous CPU work for the pool.
//!
//! Text that does not show on the page is never read: a hidden layer under a scan may contain
//! anything, so the picture wins. XML shows nothing at all: its values become one page of lines, so
//! that a person can read them. Office documents, web pages and text have words on a grid
//! (`docmill-office`).

mod container;
mod document;
mod einvoice_files;
mod einvoice_rules;
mod envelope;
mod image;
mod language;
mod marks;
pub mod ocr;
mod office_page;
mod page;
mod page_error;
pub mod pdf;
pub mod quality;
pub mod reading;
mod refusal;
pub mod repair;
mod runtime_telemetry;
pub mod sandbox;

pub use container::may_be_container;
pub use document::{ParsedDocument, open_document, open_locked_document, open_with_members};
pub use einvoice_rules::EinvoiceRules;
pub use image::format::DocumentFormat;
pub use image::image_pdf::{ImagePdf, InvalidImageError};
pub use image::opencv_mat::OpenCvError;
pub use page::{PageContent, PageRaster};
pub use page_error::PageError;
pub use pdf::lines::join_rows;
pub use pdf::searchable_pdf::SearchablePdf;
pub use reading::read_page::read_page;
pub use reading::recognise::{PageRecogniser, TurnedPage, TurnedReading};
pub use reading::show_page::{has_text, page_from_reading, show_page, uncovered_cells};
pub use refusal::PageRefusal;
