//! An open document: its format, its number of pages, and the content of each.
//!
//! Not promised: that a page can be read because the document could be opened.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Instant;

use bytes::Bytes;
use hayro::kurbo::Rect;

use crate::container::{self, FoundMembers, MemberCollector};
use crate::einvoice_files::find_supporting_files;
use crate::einvoice_rules::EinvoiceRules;
use crate::envelope::open_envelopes;
use crate::image::format::{self, DocumentFormat};
use crate::image::{picture, tiff};
use crate::office_page::{draw_grid, page_from_grid};
use crate::page::{CUT_QUALITY, ColourPlanes, PageContent, PageRaster};
use crate::pdf::pdf_file::{self, SeenLayer};
use crate::pdf::render::RenderBounds;
use crate::refusal::{PageRefusal, catch_decoder};
use docmill_core::config::LimitsConfig;
use docmill_core::fault;
use docmill_core::model::{MemberFacts, OutcomeReason, PageText, PrintedPage, TextLine};
use docmill_formats::einvoice::{self, EinvoiceDefect, EinvoiceFinding, XmlRootName};
use docmill_formats::xml;
use docmill_office::{LaidPage, lay_out_document, sniff_text};

/// A document whose format and number of pages are known and within the limits.
#[derive(Debug)]
pub struct ParsedDocument {
    format: DocumentFormat,
    bytes: Bytes,
    pub(crate) limits: LimitsConfig,
    dpi: u32,
    content: DocumentContent,
    /// Documents found in it, if they were looked for.
    found: FoundMembers,
    /// Language of the first page whose words prove one, for the others.
    pub(crate) detected_language: OnceLock<String>,
}

#[derive(Debug)]
enum DocumentContent {
    Pdf(Box<pdf_file::PdfFile>),
    Picture(Bytes),
    Tiff(Bytes, Vec<tiff::TiffDirectory>),
    /// An e-invoice that is the document: its values as lines.
    Values(Vec<TextLine>),
    /// Nothing of its own: only the documents found in it.
    Container,
    /// An Office document, web page or text file on pages of a grid.
    Laid(Vec<LaidPage>),
}

/// Opens the envelopes around `bytes`, recognises them, checks the limits that can be checked before decoding, and counts pages.
/// Pages that have to be rendered will be rendered at `dpi`.
///
/// # Errors
/// `empty`, `unsupported_type`, `encrypted`, `corrupt` or `too_large`.
pub fn open_document(
    bytes: Bytes,
    limits: &LimitsConfig,
    dpi: u32,
) -> Result<ParsedDocument, PageRefusal> {
    open_locked_document(bytes, limits, dpi, &[])
}

/// The same with passwords, which are tried in their order.
///
/// # Errors
/// As [`open_document`]; `encrypted` if none of them fits.
pub fn open_locked_document(
    bytes: Bytes,
    limits: &LimitsConfig,
    dpi: u32,
    passwords: &[String],
) -> Result<ParsedDocument, PageRefusal> {
    DocumentOpening { limits, dpi, passwords, finds_members: false }.open(bytes)
}

/// The same, and finds the documents in it: those of a container, which has no pages, and those attached
/// to a PDF or within an e-invoice.
///
/// # Errors
/// As [`open_locked_document`]; those of containers.
pub fn open_with_members(
    bytes: Bytes,
    limits: &LimitsConfig,
    dpi: u32,
    passwords: &[String],
) -> Result<ParsedDocument, PageRefusal> {
    if let Some(found) = container::find_members(&bytes, limits)? {
        return Ok(ParsedDocument {
            format: DocumentFormat::Envelope,
            bytes,
            limits: limits.clone(),
            dpi,
            content: DocumentContent::Container,
            found,
            detected_language: OnceLock::new(),
        });
    }
    DocumentOpening { limits, dpi, passwords, finds_members: true }.open(bytes)
}

/// How the content of a document is opened.
struct DocumentOpening<'a> {
    limits: &'a LimitsConfig,
    dpi: u32,
    passwords: &'a [String],
    /// Whether the documents in it are found.
    finds_members: bool,
}

type OpenedContent = Result<(DocumentContent, FoundMembers), PageRefusal>;

impl DocumentOpening<'_> {
    /// Opens the envelopes around a document, and the document.
    fn open(&self, bytes: Bytes) -> Result<ParsedDocument, PageRefusal> {
        let limits = self.limits;
        if bytes.is_empty() {
            return Err(PageRefusal::new(OutcomeReason::Empty, "0 bytes"));
        }
        let bytes = catch_decoder(|| {
            open_envelopes(bytes, limits.document_bytes.0, DocumentFormat::is_bare_document)
        })?;
        let found = DocumentFormat::sniff_bare(&bytes)
            .or_else(|| sniff_text(&bytes).map(DocumentFormat::Office));
        let Some(format) = found else {
            let what = format::describe_unsupported(&bytes);
            return Err(PageRefusal::new(OutcomeReason::UnsupportedType, what));
        };
        let bytes = match format {
            DocumentFormat::Pdf => format::strip_leading_junk(bytes),
            _ => bytes,
        };
        let (content, found) = catch_decoder(|| self.open_content(format, bytes.clone()))?;
        let detected_language = OnceLock::new();
        let document = ParsedDocument {
            format,
            bytes,
            limits: limits.clone(),
            dpi: self.dpi,
            content,
            found,
            detected_language,
        };
        let (pages, limit) = (document.page_count(), limits.pages);
        if pages > limit {
            let detail = format!("{pages} pages, limits.pages is {limit}");
            return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
        Ok(document)
    }

    /// The content, and the documents in it.
    fn open_content(&self, format: DocumentFormat, bytes: Bytes) -> OpenedContent {
        let limits = self.limits;
        let content = match format {
            DocumentFormat::Pdf => return self.open_pdf(bytes),
            DocumentFormat::Xml => return self.open_einvoice(&bytes),
            DocumentFormat::Tiff => {
                let directories = tiff::list_directories(&bytes, limits.pages)?;
                DocumentContent::Tiff(bytes, directories)
            }
            DocumentFormat::Edifact => einvoice::edifact_lines(&bytes, self.most_words())
                .map(DocumentContent::Values)
                .map_err(|defect| PageRefusal::new(defect.outcome_reason(), defect.to_string()))?,
            DocumentFormat::Office(format) => {
                DocumentContent::Laid(lay_out_document(&bytes, format, limits)?)
            }
            _ => DocumentContent::Picture(bytes),
        };
        Ok((content, FoundMembers::default()))
    }

    fn most_words(&self) -> usize {
        usize::try_from(self.limits.page_words).unwrap_or(usize::MAX)
    }

    /// A PDF with the files attached to it, or a portfolio, which has no pages of its own.
    fn open_pdf(&self, bytes: Bytes) -> OpenedContent {
        let size = bytes.len();
        let file = Box::new(pdf_file::PdfFile::open(bytes, self.limits, self.passwords)?);
        if !self.finds_members {
            return Ok((DocumentContent::Pdf(file), FoundMembers::default()));
        }
        let is_portfolio = file.is_portfolio();
        let mut members = MemberCollector::new(self.limits, size);
        let found = match catch_decoder(|| file.add_attached_files(is_portfolio, &mut members)) {
            Ok(()) => members.finish(Bytes::new()),
            Err(refusal) if is_portfolio => return Err(refusal),
            // Its pages are a document, with or without attachments.
            Err(_) => FoundMembers::left_out(),
        };
        let is_container = is_portfolio && !found.members.is_empty();
        let content =
            if is_container { DocumentContent::Container } else { DocumentContent::Pdf(file) };
        Ok((content, found))
    }

    /// An e-invoice with the files that support it.
    fn open_einvoice(&self, bytes: &Bytes) -> OpenedContent {
        let xml = xml::XmlText::decode(bytes)?;
        let tree = xml.parse_tree()?;
        if !einvoice::has_known_root(&tree) {
            let what = XmlRootName::from_tree(&tree).describe_refusal();
            return Err(PageRefusal::new(OutcomeReason::UnsupportedType, what));
        }
        let found = match self.finds_members {
            true => find_supporting_files(&tree, MemberCollector::new(self.limits, bytes.len())),
            false => FoundMembers::default(),
        };
        Ok((DocumentContent::Values(xml::tree_lines(&tree, self.most_words())), found))
    }
}

impl ParsedDocument {
    /// Name and size of each document found in it.
    pub(crate) fn list_members(&self) -> Vec<MemberFacts> {
        let members = self.found.members.iter();
        members.map(|it| MemberFacts { name: it.name.clone(), bytes: it.size }).collect()
    }

    /// Whether documents are attached to it that were not taken: too many, or too large.
    pub(crate) fn leaves_members_out(&self) -> bool {
        self.found.are_left_out
    }

    /// The bytes of the document found in it at this place.
    ///
    /// # Errors
    /// `corrupt`.
    pub(crate) fn member_content(&self, index: u32) -> Result<Vec<u8>, PageRefusal> {
        self.found.content(index)
    }

    /// Format of the document, within its envelopes.
    pub fn format(&self) -> DocumentFormat {
        self.format
    }

    /// Number of pages, at least 1; 0 of a container.
    pub fn page_count(&self) -> u32 {
        match &self.content {
            DocumentContent::Container => 0,
            DocumentContent::Pdf(file) => file.page_count(),
            DocumentContent::Picture(_) | DocumentContent::Values(_) => 1,
            DocumentContent::Tiff(_, directories) => {
                u32::try_from(directories.len()).unwrap_or(u32::MAX)
            }
            DocumentContent::Laid(pages) => u32::try_from(pages.len()).unwrap_or(u32::MAX),
        }
    }

    /// Whether a part of the file is known to be missing, so that no page speaks for the whole.
    pub(crate) fn is_cut(&self) -> bool {
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
            DocumentContent::Pdf(file) => file
                .read_page(index, &RenderBounds { limits: &self.limits, dpi: self.dpi, deadline }),
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
            DocumentContent::Values(lines) => Ok(text_page(lines.clone())),
            DocumentContent::Container => Err(no_pages()),
            DocumentContent::Laid(pages) => match laid_page(pages, index)? {
                LaidPage::Text(page) => Ok(PageContent::Laid(page.clone())),
                LaidPage::Picture(bytes) => self.embedded_picture(bytes),
            },
        })
    }

    /// A picture that an Office document holds as a page. One that is damaged costs its page.
    fn embedded_picture(&self, bytes: &[u8]) -> Result<PageContent, PageRefusal> {
        let bytes = &Bytes::copy_from_slice(bytes);
        let limits = &self.limits;
        let decoded = match DocumentFormat::sniff_bare(bytes) {
            Some(DocumentFormat::Tiff) => {
                tiff::list_directories(bytes, limits.pages).and_then(|all| {
                    let first = all.first().ok_or_else(|| {
                        PageRefusal::new(OutcomeReason::Corrupt, "a TIFF without a picture")
                    })?;
                    picture::decode_tiff(bytes, first, limits)
                })
            }
            Some(format) => picture::decode_picture(bytes, format, limits),
            None => Err(PageRefusal::new(OutcomeReason::UnsupportedType, "no picture")),
        };
        match decoded {
            Ok(picture) => Ok(picture.into_page()),
            Err(refusal) if refusal.reason == OutcomeReason::TooLarge => Err(refusal),
            Err(_damaged) => Ok(PageContent::Damaged { width: A4.0, height: A4.1 }),
        }
    }

    /// Draws page `index`, which starts at 0, of a format whose pages are drawn.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    pub(crate) fn draw_page(&self, index: u32) -> Result<Option<PageRaster>, PageRefusal> {
        self.draw_page_at(index, self.dpi)
    }

    /// The same, no finer than `dpi`.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    pub(crate) fn draw_page_at(
        &self,
        index: u32,
        dpi: u32,
    ) -> Result<Option<PageRaster>, PageRefusal> {
        let drawn;
        let (file, index) = match &self.content {
            DocumentContent::Pdf(file) => (file.as_ref(), index),
            DocumentContent::Laid(pages) => {
                let LaidPage::Text(page) = laid_page(pages, index)? else { return Ok(None) };
                let Some(bytes) = draw_grid(page) else { return Ok(None) };
                drawn = catch_decoder(|| pdf_file::PdfFile::open(bytes.into(), &self.limits, &[]))?;
                (&drawn, 0)
            }
            _ => return Ok(None),
        };
        let deadline = Instant::now() + self.limits.page_time;
        let bounds = RenderBounds { limits: &self.limits, dpi: self.dpi.min(dpi), deadline };
        catch_decoder(|| file.draw_page(index, &bounds)).map(Some)
    }

    /// The rows of page `index`, which starts at 0, between two heights in points from its top, no finer
    /// than `dpi`; and how many pixels of the page are above them. `None`: the file is no PDF.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    pub(crate) fn draw_rows_at(
        &self,
        index: u32,
        rows: Range<f64>,
        dpi: u32,
    ) -> Result<Option<(PageRaster, u32)>, PageRefusal> {
        let DocumentContent::Pdf(file) = &self.content else { return Ok(None) };
        let deadline = Instant::now() + self.limits.page_time;
        let bounds = RenderBounds { limits: &self.limits, dpi: self.dpi.min(dpi), deadline };
        catch_decoder(|| file.draw_rows(index, rows, &bounds)).map(Some)
    }

    /// Page `index`, which starts at 0, in the colours of its file, no finer than `dpi`. `None`: the
    /// format has none.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    pub(crate) fn page_colours(
        &self,
        index: u32,
        dpi: u32,
    ) -> Result<Option<ColourPlanes>, PageRefusal> {
        let (limits, dpi) = (&self.limits, self.dpi.min(dpi));
        let deadline = Instant::now() + limits.page_time;
        catch_decoder(|| match &self.content {
            DocumentContent::Pdf(file) => {
                file.page_colours(index, &RenderBounds { limits, dpi, deadline }).map(Some)
            }
            DocumentContent::Picture(bytes) => picture::decode_colours(bytes, self.format, limits),
            DocumentContent::Tiff(bytes, directories) => {
                let at = usize::try_from(index).ok().and_then(|index| directories.get(index));
                let at =
                    at.ok_or_else(|| PageRefusal::new(OutcomeReason::Corrupt, "no such page"))?;
                picture::decode_tiff_colours(bytes, at, limits)
            }
            DocumentContent::Values(_) | DocumentContent::Container | DocumentContent::Laid(_) => {
                Ok(None)
            }
        })
    }

    /// Draws a part of page `index`, which starts at 0, in points from its top left corner, of a
    /// format whose pages are drawn.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    pub(crate) fn draw_part(
        &self,
        index: u32,
        area: Rect,
        dpi: u32,
    ) -> Result<Option<PageRaster>, PageRefusal> {
        let DocumentContent::Pdf(file) = &self.content else { return Ok(None) };
        catch_decoder(|| file.draw_part(index, area, dpi)).map(Some)
    }

    /// Looks for e-invoices in it, reads them, and checks the one that is used by the rules. Reads no
    /// picture.
    ///
    /// # Errors
    /// The rules cannot be used.
    pub fn find_einvoice(&self, rules: &EinvoiceRules) -> fault::Result<EinvoiceFinding> {
        let is_document = matches!(self.content, DocumentContent::Values(_));
        let files = match &self.content {
            DocumentContent::Values(_) => Ok(vec![self.bytes.to_vec()]),
            DocumentContent::Pdf(file) => catch_decoder(|| file.list_einvoices()),
            DocumentContent::Picture(_)
            | DocumentContent::Tiff(..)
            | DocumentContent::Laid(_)
            | DocumentContent::Container => Ok(Vec::new()),
        };
        match files {
            Ok(files) => {
                let mut failed = Ok(());
                let found = EinvoiceFinding::from_checked_files(&files, is_document, |file| {
                    rules.check_invoice(file).unwrap_or_else(|error| {
                        failed = Err(error);
                        None
                    })
                });
                failed.map(|()| found)
            }
            Err(refusal) => {
                tracing::debug!(reason = refusal.reason.code(), "an e-invoice cannot be taken out");
                Ok(EinvoiceFinding::unusable(EinvoiceDefect::Attachment, is_document))
            }
        }
    }

    /// Whether it is a form that people type into.
    pub fn has_text_fields(&self) -> bool {
        let DocumentContent::Pdf(file) = &self.content else { return false };
        catch_decoder(|| Ok(file.has_text_fields())).unwrap_or(false)
    }

    /// Keeps the language of the first page whose words prove one. The others are then read in it
    /// at once, unless their own words prove another.
    pub(crate) fn remember_language(&self, language: Option<&str>) {
        if let Some(language) = language {
            self.detected_language.get_or_init(|| language.to_owned());
        }
    }

    /// Printed text of page `index`, which starts at 0, without OCR. A page that would have to be
    /// read from its picture has no lines.
    ///
    /// # Errors
    /// As [`ParsedDocument::page_content`].
    pub fn printed_page(&self, index: u32) -> Result<PrintedPage, PageRefusal> {
        let deadline = Instant::now() + self.limits.page_time;
        let bounds = RenderBounds { limits: &self.limits, dpi: self.dpi, deadline };
        let SeenLayer { content, shows_more } = match &self.content {
            DocumentContent::Pdf(file) => catch_decoder(|| file.text_layer(index, &bounds))?,
            DocumentContent::Values(lines) => {
                SeenLayer { content: Some(text_page(lines.clone())), shows_more: false }
            }
            DocumentContent::Container => return Err(no_pages()),
            DocumentContent::Picture(_) | DocumentContent::Tiff(..) => {
                SeenLayer { content: None, shows_more: true }
            }
            DocumentContent::Laid(pages) => match laid_page(pages, index)? {
                LaidPage::Text(page) => {
                    let text = page_from_grid(index + 1, page.clone());
                    return Ok(PrintedPage { text, shows_more: false });
                }
                LaidPage::Picture(_) => SeenLayer { content: None, shows_more: true },
            },
        };
        let text = match content {
            Some(PageContent::Text { width, height, lines, .. }) => {
                let quality = if self.is_cut() { CUT_QUALITY } else { 1.0 };
                PageText::from_native(index + 1, (width, height), quality, lines)
            }
            // Quality 0 lets the gate see that the document is not complete.
            Some(PageContent::Damaged { width, height }) => {
                PageText::from_native(index + 1, (width, height), 0.0, Vec::new())
            }
            Some(
                PageContent::Image(_)
                | PageContent::Cut(_)
                | PageContent::Laid(_)
                | PageContent::Doubtful { .. },
            )
            | None => PageText::from_native(index + 1, (0.0, 0.0), 1.0, Vec::new()),
        };
        Ok(PrintedPage { text, shows_more })
    }
}

fn no_pages() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "a container has no pages")
}

/// A4 in points: the size of a page whose picture is damaged.
const A4: (f32, f32) = (595.0, 842.0);

fn laid_page(pages: &[LaidPage], index: u32) -> Result<&LaidPage, PageRefusal> {
    let page = usize::try_from(index).ok().and_then(|index| pages.get(index));
    page.ok_or_else(|| PageRefusal::new(OutcomeReason::Corrupt, "no such page"))
}

/// A page that is as large as its lines.
fn text_page(lines: Vec<TextLine>) -> PageContent {
    let boxes = lines.iter().map(TextLine::bounding_box);
    let (width, height) = boxes.fold((0.0_f32, 0.0_f32), |(width, height), area| {
        (width.max(area.right()), height.max(area.bottom()))
    });
    PageContent::Text { width, height, lines, codes: Vec::new(), marks: Vec::new() }
}
