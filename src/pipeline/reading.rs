//! Bytes to transcript: every page by its text layer or by OCR, here or by a provider.
//!
//! The bytes are only opened in cells (`cpu`), never here. Pages stream: a few of them are asked for
//! at the same time, each finished page goes to a [`PageSink`] at once, and the first that fails
//! ends the document.
//! A page is read once, however bad it is: its quality says so, and the gate decides.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::StepError;
use super::elsewhere::{self, Elsewhere, Pages, Wishes};
use crate::cpu::{Cells, OpenDocument, WorkError};
use crate::model::{
    EinvoiceLook, EncodedImage, PageRead, PageText, PageUsage, Reason, Recipe, Source, Transcript,
};
use crate::ocr::Ocr;
use crate::pages;

/// Reads documents.
pub struct Reader {
    /// Where page work runs.
    pub cells: Arc<Cells>,
    /// What reads pictures there.
    pub ocr: Arc<dyn Ocr>,
    /// How pages are read there.
    pub recipe: Recipe,
    /// Who reads pictures elsewhere, if anybody does.
    pub elsewhere: Elsewhere,
}

/// A document and how much of it is read already.
pub struct Reading {
    /// The document.
    pub document: OpenDocument,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// Pages that an earlier reading of the same identity finished; they are not read again.
    pub finished: Vec<PageText>,
    /// What it asks besides.
    pub wishes: Wishes,
}

/// Takes pages as they are finished.
#[async_trait]
pub trait PageSink: Send {
    /// Keeps a page, and the image its text was read from if that is not what the file shows.
    /// An error ends the reading.
    async fn keep(
        &mut self,
        page: &PageText,
        repaired: Option<EncodedImage>,
    ) -> Result<(), StepError>;

    /// A call that costs money is about to be made. An error forbids it, and ends the reading.
    async fn before_call(&mut self) -> Result<(), StepError> {
        Ok(())
    }

    /// A call was made, and its pages were handed over: makes them safe, so that it never has to be
    /// made again. `is_whole`: the document is, so that its transcript follows at once.
    async fn after_call(&mut self, usage: &PageUsage, is_whole: bool) -> Result<(), StepError>;
}

/// Keeps nothing: the transcript is all that is wanted.
struct Unkept;

#[async_trait]
impl PageSink for Unkept {
    async fn keep(&mut self, _: &PageText, _: Option<EncodedImage>) -> Result<(), StepError> {
        Ok(())
    }

    async fn after_call(&mut self, _: &PageUsage, _: bool) -> Result<(), StepError> {
        Ok(())
    }
}

impl Reader {
    /// Everything that changes what is read from the same bytes.
    pub fn identity(&self, wishes: &Wishes) -> String {
        let (format, pages) = (Transcript::FORMAT, pages::version());
        let (recipe, ocr) = (&self.recipe, self.ocr.identity());
        let elsewhere = self.elsewhere.identity(wishes);
        format!("transcript {format}; pages {pages}; {recipe:?}; {ocr}{elsewhere}")
    }

    /// Who is asked first for what a picture says, by the name under which operators pause it.
    pub fn asked_first(&self) -> String {
        let here = || self.ocr.name().split(' ').take(1).collect();
        self.elsewhere.first().map_or_else(here, str::to_owned)
    }

    /// Opens a document: recognises it, holds it against the limits and counts its pages. `alone`:
    /// a worker died on it before, so that it shares no process with others.
    ///
    /// # Errors
    /// The input's fault (`empty`, `unsupported_type`, `encrypted`, `corrupt`, `too_large`,
    /// `timeout`); page processes that cannot be started.
    pub async fn open(&self, bytes: Bytes, alone: bool) -> Result<OpenDocument, StepError> {
        self.cells.open(bytes, alone).await.map_err(step_error)
    }

    /// Looks for e-invoices in a document.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub async fn einvoices(&self, document: &OpenDocument) -> Result<EinvoiceLook, StepError> {
        document.einvoices().await.map_err(step_error)
    }

    /// Opens a document whose bytes have the given SHA-256 and reads it whole.
    ///
    /// # Errors
    /// As [`Reader::read_on`].
    pub async fn read(
        &self,
        bytes: Bytes,
        sha256: &str,
        alone: bool,
    ) -> Result<Transcript, StepError> {
        self.read_whole(self.open(bytes, alone).await?, sha256).await
    }

    /// Reads a whole document whose bytes have the given SHA-256.
    ///
    /// # Errors
    /// As [`Reader::read_on`].
    pub async fn read_whole(
        &self,
        document: OpenDocument,
        sha256: &str,
    ) -> Result<Transcript, StepError> {
        let (sha256, wishes) = (sha256.to_owned(), Wishes::default());
        let reading = Reading { document, sha256, finished: Vec::new(), wishes };
        self.read_on(reading, &mut Unkept).await
    }

    /// Reads the pages that are not finished yet and hands each to `sink` as soon as it is read,
    /// in any order. Never more than [`Reader::at_once`] pages are between the document and the
    /// sink, and while the sink is busy no further page is begun: whatever a document's length,
    /// only texts pile up.
    ///
    /// Dropping the future ends the document's own cell, or gives its pages in the shared one a
    /// moment to end.
    ///
    /// # Errors
    /// The input's fault (`empty`, `unsupported_type`, `encrypted`, `corrupt`, `too_large`,
    /// `timeout`, `no_text`), the fault of the OCR, or what the sink says.
    pub async fn read_on(
        &self,
        reading: Reading,
        sink: &mut dyn PageSink,
    ) -> Result<Transcript, StepError> {
        let Reading { document, sha256, finished, wishes } = reading;
        let mut pages: Pages = finished.into_iter().map(|page| (page.number, page)).collect();
        if self.elsewhere.is_here(&wishes) {
            let unread = |number: &u32| !pages.contains_key(number);
            let open: Vec<u32> = (1..=document.page_count()).filter(unread).collect();
            self.read_here(&document, &open, &mut pages, sink).await?;
        } else {
            elsewhere::read(self, &document, &wishes, &mut pages, sink).await?;
        }
        let pages: Vec<PageText> = pages.into_values().collect();
        let transcript = Transcript {
            format: Transcript::FORMAT,
            sha256,
            provider: elsewhere::names(&pages, &self.ocr.name()),
            quality: mean_quality(&pages),
            pages,
        };
        if transcript.is_empty() { Err(nothing_read(&transcript)) } else { Ok(transcript) }
    }

    /// Reads the pages of these numbers in page processes.
    pub(super) async fn read_here(
        &self,
        document: &OpenDocument,
        numbers: &[u32],
        pages: &mut Pages,
        sink: &mut dyn PageSink,
    ) -> Result<(), StepError> {
        let mut reads = futures::stream::iter(numbers.to_vec())
            .map(|number| document.read(number.saturating_sub(1)))
            .buffer_unordered(self.at_once());
        while let Some(read) = reads.try_next().await.map_err(step_error)? {
            let PageRead { page, repaired } = read;
            sink.keep(&page, repaired).await?;
            pages.insert(page.number, page);
        }
        Ok(())
    }

    /// Most pages of one document that are worked on at the same time: one for every core, and one
    /// that is ready when a core becomes free.
    pub fn at_once(&self) -> usize {
        self.cells.threads() + 1
    }
}

/// Nothing on the pages, or nothing left of them.
fn nothing_read(transcript: &Transcript) -> StepError {
    let pages = transcript.pages.len();
    let is_damaged = |page: &&PageText| page.source == Source::Native && page.quality <= 0.0;
    match transcript.pages.iter().filter(is_damaged).count() {
        0 => StepError::rejected(
            Reason::NoText,
            format!("{pages} pages were read, no text is on them"),
        ),
        damaged => StepError::rejected(
            Reason::Corrupt,
            format!("the content of {damaged} of {pages} pages is lost, no text is on the others"),
        ),
    }
}

/// What a page process says, as a step says it.
pub(super) fn step_error(error: WorkError) -> StepError {
    match error {
        WorkError::Refused { reason, detail } => StepError::rejected(reason, detail),
        WorkError::Fault(error) => StepError::Fault(error),
    }
}

/// A page is a page, however little stands on it.
pub(super) fn mean_quality(pages: &[PageText]) -> f32 {
    let count = u16::try_from(pages.len()).unwrap_or(u16::MAX).max(1);
    pages.iter().map(|page| page.quality).sum::<f32>() / f32::from(count)
}
