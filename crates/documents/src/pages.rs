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

use crate::cpu::wire::EINVOICES;
use docmill_core::config::LimitsConfig;
use docmill_core::model::{EinvoiceFindings, OutcomeReason, PageText, TextLayer, TextLine};

pub use format::DocumentFormat;
pub use image_pdf::{ImagePdf, InvalidImageError};
pub use lines::join_rows;
pub use plane::OpenCvError;
pub use read_page::{PageError, read_page};
pub use recognise::PageRecogniser;
pub use show_page::{has_text, page_from_reading, show_page};

/// Version of what this module reads from the same bytes. Raise it with every change that can
/// change a page's text.
const VERSION: u32 = 4;

/// What this module's part in a transcript depends on besides its recipe; part of the transcript's
/// identity.
pub fn reader_version() -> String {
    format!("{VERSION} with OpenCV {}", opencv::core::CV_VERSION)
}

/// Why a document is not read: it goes no further, and trying again gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason:?}: {detail}")]
pub struct PageRefusal {
    /// The code for the row.
    pub reason: OutcomeReason,
    /// Counts, limits and names of formats; never document content.
    pub detail: String,
}

impl PageRefusal {
    pub(crate) fn new(reason: OutcomeReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl From<XmlError> for PageRefusal {
    fn from(error: XmlError) -> Self {
        let reason = match error {
            XmlError::TooLarge => OutcomeReason::TooLarge,
            XmlError::Encoding | XmlError::Malformed | XmlError::Entities => OutcomeReason::Corrupt,
        };
        Self::new(reason, error.to_string())
    }
}

const _: () = assert!(xml::MOST_BYTES as u64 <= EINVOICES, "a cell could not hand it over");

/// A page as grey pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRaster {
    /// Pixels per row.
    pub width: u32,
    /// Number of pixel rows.
    pub height: u32,
    /// Dots per inch; estimated from the size of the paper where the file does not say.
    pub dpi: u32,
    /// `width * height` bytes, row by row from the top, 0 is black.
    pub pixels: Vec<u8>,
}

/// What a page consists of.
#[derive(Debug, Clone)]
pub enum PageContent {
    /// A sound text layer (or a page with nothing on it); sizes and boxes in points of 1/72 inch.
    Text {
        /// Width after rotation, in points.
        width: f32,
        /// Height after rotation, in points.
        height: f32,
        /// Lines in reading order.
        lines: Vec<TextLine>,
    },
    /// A picture that has to be read by OCR.
    Image(PageRaster),
    /// What could be decoded of a picture that is cut off or damaged; the rest is blank.
    Cut(PageRaster),
    /// A text layer that cannot be all there is, or that cannot be right, and the page's picture.
    Doubtful {
        /// The text of the layer.
        layer: TextLayer,
        /// The rendered page, upright.
        picture: PageRaster,
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
pub struct ParsedDocument {
    format: DocumentFormat,
    bytes: Bytes,
    limits: LimitsConfig,
    dpi: u32,
    content: DocumentContent,
    /// Language of the first page that said it, for the others.
    heard: OnceLock<String>,
}

#[derive(Debug)]
enum DocumentContent {
    Pdf(pdf::PdfFile),
    Picture(Bytes),
    Tiff(Bytes, Vec<tiff::TiffDirectory>),
    Xml(Vec<TextLine>),
}

/// Recognises `bytes`, checks the limits that can be checked before decoding, and counts pages.
/// Pages that have to be rendered will be rendered at `dpi`.
///
/// # Errors
/// `empty`, `unsupported_type`, `encrypted`, `corrupt` or `too_large`.
pub fn open_document(
    bytes: Bytes,
    limits: &LimitsConfig,
    dpi: u32,
) -> Result<ParsedDocument, PageRefusal> {
    if bytes.is_empty() {
        return Err(PageRefusal::new(OutcomeReason::Empty, "0 bytes"));
    }
    let Some(format) = DocumentFormat::sniff(&bytes) else {
        let what = format::describe_unsupported(&bytes);
        return Err(PageRefusal::new(OutcomeReason::UnsupportedType, what));
    };
    let all = bytes.clone();
    let content = catch_decoder(|| match format {
        DocumentFormat::Pdf => pdf::PdfFile::open(bytes, limits).map(DocumentContent::Pdf),
        DocumentFormat::Tiff => {
            let directories = tiff::list_directories(&bytes, limits.pages)?;
            Ok(DocumentContent::Tiff(bytes, directories))
        }
        DocumentFormat::Xml => {
            let xml = xml::XmlText::decode(&bytes)?;
            Ok(DocumentContent::Xml(xml::tree_lines(&xml.parse_tree()?)))
        }
        _ => Ok(DocumentContent::Picture(bytes)),
    })?;
    let heard = OnceLock::new();
    let document =
        ParsedDocument { format, bytes: all, limits: limits.clone(), dpi, content, heard };
    let (pages, limit) = (document.page_count(), limits.pages);
    if pages > limit {
        let detail = format!("{pages} pages, the limit is {limit}");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    Ok(document)
}

impl ParsedDocument {
    /// The format that the bytes were recognised as.
    pub fn format(&self) -> DocumentFormat {
        self.format
    }

    /// Number of pages, at least 1.
    pub fn page_count(&self) -> u32 {
        match &self.content {
            DocumentContent::Pdf(file) => file.page_count(),
            DocumentContent::Picture(_) | DocumentContent::Xml(_) => 1,
            DocumentContent::Tiff(_, directories) => {
                u32::try_from(directories.len()).unwrap_or(u32::MAX)
            }
        }
    }

    /// Whether a part of the file is known to be missing, so that no page speaks for the whole.
    fn is_cut(&self) -> bool {
        matches!(&self.content, DocumentContent::Pdf(file) if file.is_cut())
    }

    /// Reads page `index`, which starts at 0.
    ///
    /// # Errors
    /// `too_large`, `corrupt`, `unsupported_type` (a picture in an encoding that is not read), or
    /// `timeout` past `limits.page_time` from now.
    pub fn page_content(&self, index: u32) -> Result<PageContent, PageRefusal> {
        let deadline = Instant::now() + self.limits.page_time;
        catch_decoder(|| match &self.content {
            DocumentContent::Pdf(file) => file.read_page(
                index,
                &pdf::RenderBounds { limits: &self.limits, dpi: self.dpi, deadline },
            ),
            DocumentContent::Picture(bytes) => {
                picture::decode_picture(bytes, self.format, &self.limits)
                    .map(picture::DecodedPicture::into_page)
            }
            DocumentContent::Tiff(bytes, directories) => {
                let at = usize::try_from(index).ok().and_then(|index| directories.get(index));
                let at =
                    at.ok_or_else(|| PageRefusal::new(OutcomeReason::Corrupt, "no such page"))?;
                picture::decode_tiff(bytes, at, &self.limits)
                    .map(picture::DecodedPicture::into_page)
            }
            DocumentContent::Xml(lines) => Ok(text_page(lines.clone())),
        })
    }
}

impl ParsedDocument {
    /// Finds the e-invoices in it. Reads no picture.
    ///
    /// # Errors
    /// It has an e-invoice, but its pages cannot be read.
    pub fn find_einvoices(&self) -> Result<EinvoiceFindings, PageRefusal> {
        attachments::scan_einvoices(self)
    }

    /// What the pages print as text, page by page, without rendering or recognising anything. A
    /// page that would have to be read from its picture has no lines, and nothing is compared with
    /// it. All pages together take at most `limits.page_time`.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    fn printed_pages(&self) -> Result<Vec<PageText>, PageRefusal> {
        let deadline = Instant::now() + self.limits.page_time;
        let bounds = pdf::RenderBounds { limits: &self.limits, dpi: self.dpi, deadline };
        (0..self.page_count())
            .map(|index| {
                let page = match &self.content {
                    DocumentContent::Pdf(file) => {
                        catch_decoder(|| file.text_layer(index, &bounds))?
                    }
                    DocumentContent::Xml(lines) => Some(text_page(lines.clone())),
                    DocumentContent::Picture(_) | DocumentContent::Tiff(..) => None,
                };
                Ok(match page {
                    Some(PageContent::Text { width, height, lines }) => {
                        let quality = if self.is_cut() { read_page::CUT_QUALITY } else { 1.0 };
                        PageText::from_native(index + 1, (width, height), quality, lines)
                    }
                    // Quality 0 lets the gate see that the document is not complete.
                    Some(PageContent::Damaged { width, height }) => {
                        PageText::from_native(index + 1, (width, height), 0.0, Vec::new())
                    }
                    Some(
                        PageContent::Image(_) | PageContent::Cut(_) | PageContent::Doubtful { .. },
                    )
                    | None => PageText::from_native(index + 1, (0.0, 0.0), 1.0, Vec::new()),
                })
            })
            .collect()
    }
}

/// A page that is as large as its lines.
fn text_page(lines: Vec<TextLine>) -> PageContent {
    let boxes = lines.iter().map(TextLine::bounding_box);
    let (width, height) = boxes.fold((0.0_f32, 0.0_f32), |(width, height), area| {
        (width.max(area.right()), height.max(area.bottom()))
    });
    PageContent::Text { width, height, lines }
}

/// Runs a decoder on hostile bytes. A panic becomes `corrupt`; a [`stop_decoder`] becomes its
/// refusal.
fn catch_decoder<T>(decode: impl FnOnce() -> Result<T, PageRefusal>) -> Result<T, PageRefusal> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|payload| Err(refusal_from_panic(payload)))
}

fn refusal_from_panic(payload: Box<dyn Any + Send>) -> PageRefusal {
    match payload.downcast::<PageRefusal>() {
        Ok(refusal) => *refusal,
        Err(_panic) => {
            tracing::error!("a decoder panicked; its document is refused as corrupt");
            PageRefusal::new(OutcomeReason::Corrupt, "a decoder panicked on it")
        }
    }
}

/// Leaves a decoder from inside one of its callbacks, which offer no other way out. Unwinds to
/// [`catch_decoder`] without the panic hook, so nothing is printed.
fn stop_decoder(refusal: PageRefusal) -> ! {
    std::panic::resume_unwind(Box::new(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_that_panics_costs_its_document_only() {
        let refused = catch_decoder::<()>(|| panic!("on purpose")).unwrap_err();
        assert_eq!(refused.reason, OutcomeReason::Corrupt);
        assert!(!refused.detail.contains("on purpose"), "a panic's text may hold content");
    }

    #[test]
    fn a_callback_leaves_its_decoder_with_its_own_reason() {
        let too_large = PageRefusal::new(OutcomeReason::TooLarge, "2 > 1");
        let refused = catch_decoder::<()>(|| stop_decoder(too_large.clone())).unwrap_err();
        assert_eq!(refused, too_large);
    }
}
