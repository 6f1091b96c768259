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
mod doubt;
mod encode;
mod expansion;
mod format;
mod image_pdf;
mod language;
mod lines;
mod pdf;
mod picture;
mod plane;
mod probe;
pub mod quality;
mod read_page;
mod read_picture;
mod recognise;
mod render;
pub mod repair;
mod salvage;
mod score;
pub mod serve;
mod show_page;
mod surface;
mod text_cells;
mod tiff;
mod two_readings;
mod words;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Instant;

use bytes::Bytes;
use docmill_formats::xml::{self, XmlError};

use crate::config::LimitsConfig;
use crate::cpu::wire::EINVOICES;
use crate::model::{EinvoiceLook, Line, PageText, Reason, TextLayer};

pub use format::Format;
pub use image_pdf::{BadImage, ImagePdf};
pub use lines::rows;
pub use plane::OpenCvError;
pub use read_page::{Trouble, read_page};
pub use recognise::Recogniser;
pub use show_page::{has_text, page_of, show_page};

/// Version of what this module reads from the same bytes. Raise it with every change that can
/// change a page's text.
const VERSION: u32 = 4;

/// What this module's part in a transcript depends on besides its recipe; part of the transcript's
/// identity.
pub fn version() -> String {
    format!("{VERSION} with OpenCV {}", opencv::core::CV_VERSION)
}

/// Why a document is not read: it goes no further, and trying again gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason:?}: {detail}")]
pub struct Refusal {
    /// The code for the row.
    pub reason: Reason,
    /// Counts, limits and names of formats; never document content.
    pub detail: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl From<XmlError> for Refusal {
    fn from(error: XmlError) -> Self {
        let reason = match error {
            XmlError::TooLarge => Reason::TooLarge,
            XmlError::Encoding | XmlError::Malformed | XmlError::Entities => Reason::Corrupt,
        };
        Self::new(reason, error.to_string())
    }
}

const _: () = assert!(xml::MOST_BYTES as u64 <= EINVOICES, "a cell could not hand it over");

/// A page as grey pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Dots per inch; estimated from the size of the paper where the file does not say.
    pub dpi: u32,
    /// `width * height` bytes, row by row from the top, 0 is black.
    pub pixels: Vec<u8>,
}

/// What a page consists of.
#[derive(Debug, Clone)]
pub enum Page {
    /// A sound text layer (or a page with nothing on it); sizes and boxes in points of 1/72 inch.
    Text {
        /// Width after rotation.
        width: f32,
        /// Height after rotation.
        height: f32,
        /// Lines in reading order.
        lines: Vec<Line>,
    },
    /// A picture that has to be read by OCR.
    Image(Raster),
    /// What could be decoded of a picture that is cut off or damaged; the rest is blank.
    Cut(Raster),
    /// A text layer that cannot be all there is, or that cannot be right, and the page's picture.
    Doubtful {
        /// What the layer says.
        layer: TextLayer,
        /// The rendered page, upright.
        picture: Raster,
    },
    /// A page whose content was lost: the file is damaged there, or draws it by a program.
    Damaged {
        /// Width after rotation, in points.
        width: f32,
        /// Height after rotation, in points.
        height: f32,
    },
}

/// A document whose format and number of pages are known and within the limits.
#[derive(Debug)]
pub struct Document {
    format: Format,
    bytes: Bytes,
    limits: LimitsConfig,
    dpi: u32,
    content: Content,
    /// Language of the first page that said it, for the others.
    heard: OnceLock<String>,
}

#[derive(Debug)]
enum Content {
    Pdf(pdf::File),
    Picture(Bytes),
    Tiff(Bytes, Vec<tiff::Directory>),
    Xml(Vec<Line>),
}

/// Recognises `bytes`, checks the limits that can be checked before decoding, and counts pages.
/// Pages that have to be rendered will be rendered at `dpi`.
///
/// # Errors
/// `empty`, `unsupported_type`, `encrypted`, `corrupt` or `too_large`.
pub fn open(bytes: Bytes, limits: &LimitsConfig, dpi: u32) -> Result<Document, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::new(Reason::Empty, "0 bytes"));
    }
    let Some(format) = Format::sniff(&bytes) else {
        let what = format::describe_unsupported(&bytes);
        return Err(Refusal::new(Reason::UnsupportedType, what));
    };
    let all = bytes.clone();
    let content = guarded(|| match format {
        Format::Pdf => pdf::File::open(bytes, limits).map(Content::Pdf),
        Format::Tiff => {
            let directories = tiff::directories(&bytes, limits.pages)?;
            Ok(Content::Tiff(bytes, directories))
        }
        Format::Xml => {
            let xml = xml::Xml::decode(&bytes)?;
            Ok(Content::Xml(xml::lines(&xml.tree()?)))
        }
        _ => Ok(Content::Picture(bytes)),
    })?;
    let heard = OnceLock::new();
    let document = Document { format, bytes: all, limits: limits.clone(), dpi, content, heard };
    let (pages, limit) = (document.page_count(), limits.pages);
    if pages > limit {
        let detail = format!("{pages} pages, the limit is {limit}");
        return Err(Refusal::new(Reason::TooLarge, detail));
    }
    Ok(document)
}

impl Document {
    /// What the bytes are.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of pages, at least 1.
    pub fn page_count(&self) -> u32 {
        match &self.content {
            Content::Pdf(file) => file.page_count(),
            Content::Picture(_) | Content::Xml(_) => 1,
            Content::Tiff(_, directories) => u32::try_from(directories.len()).unwrap_or(u32::MAX),
        }
    }

    /// Whether a part of the file is known to be missing, so that no page speaks for the whole.
    fn is_cut(&self) -> bool {
        matches!(&self.content, Content::Pdf(file) if file.is_cut())
    }

    /// Reads page `index`, which starts at 0.
    ///
    /// # Errors
    /// `too_large`, `corrupt`, `unsupported_type` (a picture in an encoding that is not read), or
    /// `timeout` past `limits.page_time` from now.
    pub fn page(&self, index: u32) -> Result<Page, Refusal> {
        let deadline = Instant::now() + self.limits.page_time;
        guarded(|| match &self.content {
            Content::Pdf(file) => {
                file.page(index, &pdf::Bounds { limits: &self.limits, dpi: self.dpi, deadline })
            }
            Content::Picture(bytes) => {
                picture::decode(bytes, self.format, &self.limits).map(picture::Decoded::page)
            }
            Content::Tiff(bytes, directories) => {
                let at = usize::try_from(index).ok().and_then(|index| directories.get(index));
                let at = at.ok_or_else(|| Refusal::new(Reason::Corrupt, "no such page"))?;
                picture::decode_tiff(bytes, at, &self.limits).map(picture::Decoded::page)
            }
            Content::Xml(lines) => Ok(text_page(lines.clone())),
        })
    }
}

impl Document {
    /// Looks for e-invoices in it. Reads no picture.
    ///
    /// # Errors
    /// It has an e-invoice, but its pages cannot be read.
    pub fn einvoices(&self) -> Result<EinvoiceLook, Refusal> {
        attachments::look(self)
    }

    /// What the pages print as text, page by page, without rendering or recognising anything. A
    /// page that would have to be read from its picture has no lines, and nothing is held against
    /// it. All pages together take at most `limits.page_time`.
    ///
    /// # Errors
    /// As [`Document::page`].
    fn printed(&self) -> Result<Vec<PageText>, Refusal> {
        let deadline = Instant::now() + self.limits.page_time;
        let bounds = pdf::Bounds { limits: &self.limits, dpi: self.dpi, deadline };
        (0..self.page_count())
            .map(|index| {
                let page = match &self.content {
                    Content::Pdf(file) => guarded(|| file.text_layer(index, &bounds))?,
                    Content::Xml(lines) => Some(text_page(lines.clone())),
                    Content::Picture(_) | Content::Tiff(..) => None,
                };
                Ok(match page {
                    Some(Page::Text { width, height, lines }) => {
                        let quality = if self.is_cut() { read_page::CUT_QUALITY } else { 1.0 };
                        PageText::native(index + 1, (width, height), quality, lines)
                    }
                    // Quality 0 lets the gate see that the document is not complete.
                    Some(Page::Damaged { width, height }) => {
                        PageText::native(index + 1, (width, height), 0.0, Vec::new())
                    }
                    Some(Page::Image(_) | Page::Cut(_) | Page::Doubtful { .. }) | None => {
                        PageText::native(index + 1, (0.0, 0.0), 1.0, Vec::new())
                    }
                })
            })
            .collect()
    }
}

/// A page that is as large as its lines.
fn text_page(lines: Vec<Line>) -> Page {
    let boxes = lines.iter().map(Line::bounding_box);
    let (width, height) = boxes.fold((0.0_f32, 0.0_f32), |(width, height), area| {
        (width.max(area.right()), height.max(area.bottom()))
    });
    Page::Text { width, height, lines }
}

/// Runs a decoder on hostile bytes. A panic becomes `corrupt`; a [`stop`] becomes its refusal.
fn guarded<T>(decode: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|payload| Err(refusal_of(payload)))
}

fn refusal_of(payload: Box<dyn Any + Send>) -> Refusal {
    match payload.downcast::<Refusal>() {
        Ok(refusal) => *refusal,
        Err(_panic) => {
            tracing::error!("a decoder panicked; its document is refused as corrupt");
            Refusal::new(Reason::Corrupt, "a decoder panicked on it")
        }
    }
}

/// Leaves a decoder from inside one of its callbacks, which offer no other way out. Unwinds to
/// [`guarded`] without the panic hook, so nothing is printed.
fn stop(refusal: Refusal) -> ! {
    std::panic::resume_unwind(Box::new(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_that_panics_costs_its_document_only() {
        let refused = guarded::<()>(|| panic!("on purpose")).unwrap_err();
        assert_eq!(refused.reason, Reason::Corrupt);
        assert!(!refused.detail.contains("on purpose"), "a panic's text may hold content");
    }

    #[test]
    fn a_callback_leaves_its_decoder_with_its_own_reason() {
        let too_large = Refusal::new(Reason::TooLarge, "2 > 1");
        let refused = guarded::<()>(|| stop(too_large.clone())).unwrap_err();
        assert_eq!(refused, too_large);
    }
}
