//! Bytes to transcript: every page by its text layer or by OCR, local or by a provider.
//!
//! Documents are only opened in page processes (`sandbox`). Pages stream: a few are requested in
//! parallel, each finished page goes to a [`PageSink`] at once, and the first failure ends the
//! document. A page is read once, however bad: its quality is recorded, and the gate decides.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use crate::local_pages::{LocalPages, PagesByNumber};
use crate::page_sink::PageSink;
use crate::remote_ocr::{self, ReadOptions, RemoteOcr};
use crate::second_looks::SecondLooks;
use crate::step_error::{StepError, step_error};
use crate::text_budget::TextBudget;
use docmill_core::config::OcrProvider;
use docmill_core::model::{
    OutcomeReason, PageSource, PageText, PrintedPage, ReadRecipe, Transcript,
};
use docmill_documents::ocr::OcrEngine;
use docmill_documents::reading::reader_version;
use docmill_documents::sandbox::{DocumentOpening, OpenDocument, ProcessPool};

/// Opens documents and reads their pages into texts.
pub struct DocumentReader {
    /// The page processes that open documents and read pages.
    pub processes: Arc<ProcessPool>,
    /// The OCR engine of this machine.
    pub ocr: Arc<dyn OcrEngine>,
    /// The settings by which pages are read there.
    pub recipe: ReadRecipe,
    /// The remote providers that read page images, if any are configured.
    pub remote_ocr: RemoteOcr,
    /// Which pages with a text layer are compared with their drawing.
    pub second_looks: SecondLooks,
}

/// A document and how much of it is read already.
pub struct ReadRequest {
    /// The document, opened in a page process.
    pub document: OpenDocument,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// Pages that an earlier reading of the same identity finished; they are not read again.
    pub finished: Vec<PageText>,
    /// The document's options for remote providers.
    pub options: ReadOptions,
}

/// The text layers of a document's pages.
pub struct PrintedPages {
    /// Their texts, in order.
    pub pages: Vec<PageText>,
    /// Whether one of them shows more than that.
    pub show_more: bool,
}

impl DocumentReader {
    /// The identity of the reader: everything that affects the transcript of the same bytes. It is
    /// stored with every transcript, so it consists of texts and numbers, never of names in this
    /// program.
    pub fn reader_identity(&self, options: &ReadOptions) -> String {
        let (format, pages) = (Transcript::FORMAT, reader_version());
        let (recipe, ocr) = (self.recipe.identity(), self.ocr.identity());
        let remote_ocr = self.remote_ocr.identity(options);
        format!("transcript {format}; pages {pages}; {recipe}; {ocr}{remote_ocr}")
    }

    /// The first provider for page images, by its name in operators' pauses; `order`: the kind's
    /// own.
    pub(crate) fn first_provider(&self, order: Option<&[OcrProvider]>) -> String {
        self.remote_ocr
            .first_remote(order)
            .map_or_else(|| self.ocr.name().split(' ').take(1).collect(), str::to_owned)
    }

    /// Opens a document of no tenant, see [`DocumentReader::open_tenant_document`].
    ///
    /// # Errors
    /// As [`DocumentReader::open_tenant_document`].
    pub async fn open_document(
        &self,
        bytes: Bytes,
        alone: bool,
    ) -> Result<OpenDocument, StepError> {
        self.open_tenant_document(bytes, DocumentOpening { alone, ..DocumentOpening::default() })
            .await
    }

    /// Opens a document: recognises it, checks it against the limits and counts its pages.
    ///
    /// # Errors
    /// The input's fault (`empty`, `unsupported_type`, `encrypted`, `corrupt`, `too_large`,
    /// `timeout`); page processes that cannot be started.
    pub async fn open_tenant_document(
        &self,
        bytes: Bytes,
        how: DocumentOpening<'_>,
    ) -> Result<OpenDocument, StepError> {
        let opened = self.processes.open_tenant_document(bytes, how).await;
        opened.map_err(step_error)
    }

    /// The bytes of a document found in another at this place, counted from 0.
    ///
    /// # Errors
    /// As [`DocumentReader::open_tenant_document`].
    pub async fn member_content(
        &self,
        document: &OpenDocument,
        index: u32,
    ) -> Result<Vec<u8>, StepError> {
        document.member_content(index).await.map_err(step_error)
    }

    /// Whether a document is a form that people type into.
    ///
    /// # Errors
    /// As [`DocumentReader::open_document`].
    pub async fn has_text_fields(&self, document: &OpenDocument) -> Result<bool, StepError> {
        document.has_text_fields().await.map_err(step_error)
    }

    /// The text layer of one page, counted from 0, without OCR.
    ///
    /// # Errors
    /// As [`DocumentReader::open_document`].
    pub async fn printed_page(
        &self,
        document: &OpenDocument,
        index: u32,
    ) -> Result<PrintedPage, StepError> {
        document.printed_page(index).await.map_err(step_error)
    }

    /// The text layers of all pages, without OCR, and whether one of them shows more than its text;
    /// `text_budget` grows with it.
    ///
    /// # Errors
    /// As [`DocumentReader::open_document`]; no room for the text.
    pub(crate) async fn printed_pages(
        &self,
        document: &OpenDocument,
        text_budget: &mut TextBudget,
    ) -> Result<PrintedPages, StepError> {
        let mut pages = PagesByNumber::new(document.text_limits());
        let mut show_more = false;
        let mut printed = futures::stream::iter(0..document.page_count())
            .map(|index| document.printed_page(index))
            .buffer_unordered(self.max_parallel_pages());
        while let Some(page) = printed.try_next().await.map_err(step_error)? {
            text_budget.grow(page.text.memory_bytes())?;
            show_more |= page.shows_more;
            pages.insert(page.text)?;
        }
        Ok(PrintedPages { pages: pages.into_pages(), show_more })
    }

    /// Reads the unfinished pages and passes each to `sink` as soon as it is read, in any order. At
    /// most [`DocumentReader::max_parallel_pages`] pages are in progress, and no further page
    /// begins while the sink is busy: only texts accumulate, whatever the document's length.
    ///
    /// Dropping the future ends the document's own process, or gives its pages in a shared one a
    /// short grace.
    ///
    /// # Errors
    /// The input's fault (`empty`, `unsupported_type`, `encrypted`, `corrupt`, `too_large`,
    /// `timeout`, `no_text`), the fault of the OCR, or errors of the sink.
    pub async fn read_remaining(
        &self,
        reading: ReadRequest,
        sink: &mut dyn PageSink,
    ) -> Result<Transcript, StepError> {
        let ReadRequest { document, sha256, finished, options } = reading;
        let mut pages = PagesByNumber::new(document.text_limits());
        finished.into_iter().try_for_each(|page| pages.insert(page))?;
        let local = LocalPages {
            document: &document,
            recipe: &self.recipe,
            at_once: self.max_parallel_pages(),
            second_looks: &self.second_looks,
            sha256: &sha256,
        };
        if self.remote_ocr.is_local_first(&options) {
            let open: Vec<u32> = (1..=document.page_count())
                .filter(|number: &u32| !pages.contains_key(number))
                .collect();
            local.read_pages(&open, &mut pages, sink).await?;
        } else {
            remote_ocr::read_pages(&self.remote_ocr, &local, &options, &mut pages, sink).await?;
        }
        let pages = pages.into_pages();
        let transcript = Transcript {
            format: Transcript::FORMAT,
            sha256,
            provider: remote_ocr::provider_names(&pages, &self.ocr.name()),
            quality: mean_quality(&pages),
            pages,
        };
        if transcript.is_empty() { Err(no_text_error(&transcript)) } else { Ok(transcript) }
    }

    /// Maximum pages of one document in progress: one per core, and one ready for the next free
    /// core.
    pub fn max_parallel_pages(&self) -> usize {
        self.processes.thread_count() + 1
    }
}

/// Nothing on the pages, or nothing left of them.
fn no_text_error(transcript: &Transcript) -> StepError {
    let pages = transcript.pages.len();
    match transcript
        .pages
        .iter()
        .filter(|page: &&PageText| page.source == PageSource::Native && page.quality <= 0.0)
        .count()
    {
        0 => StepError::rejected(
            OutcomeReason::NoText,
            format!("{pages} pages were read, no text is on them"),
        ),
        damaged => StepError::rejected(
            OutcomeReason::Corrupt,
            format!("the content of {damaged} of {pages} pages is lost, no text is on the others"),
        ),
    }
}

/// The mean over pages, each of equal weight.
pub(super) fn mean_quality(pages: &[PageText]) -> f32 {
    let count = u16::try_from(pages.len()).unwrap_or(u16::MAX).max(1);
    pages.iter().map(|page| page.quality).sum::<f32>() / f32::from(count)
}
