//! Bytes to transcript: every page by its text layer or by OCR.
//!
//! The bytes are only opened in cells (`cpu`), never here. Pages stream: a few of them are asked for
//! at the same time, each finished page goes to a [`PageSink`] at once, and the first that fails
//! ends the document.
//! A page is read once, however bad it is: its quality says so, and the gate decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::StepError;
use crate::cpu::{Cells, WorkError};
use crate::model::{PageRead, PageText, Reason, Recipe, RepairedPage, Source, Transcript};
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
}

/// A document and how much of it is read already.
#[derive(Debug)]
pub struct Reading {
    /// The document.
    pub bytes: Bytes,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// A worker died on it before, so its pages share no process with others.
    pub alone: bool,
    /// Pages that an earlier reading of the same identity finished; they are not read again.
    pub finished: Vec<PageText>,
}

/// Takes pages as they are finished.
#[async_trait]
pub trait PageSink: Send {
    /// Keeps a page, and the image its text was read from if that is not what the file shows.
    /// An error ends the reading.
    async fn keep(
        &mut self,
        page: &PageText,
        repaired: Option<RepairedPage>,
    ) -> Result<(), StepError>;
}

/// Keeps nothing: the transcript is all that is wanted.
struct Unkept;

#[async_trait]
impl PageSink for Unkept {
    async fn keep(&mut self, _: &PageText, _: Option<RepairedPage>) -> Result<(), StepError> {
        Ok(())
    }
}

impl Reader {
    /// Everything that changes what is read from the same bytes.
    pub fn identity(&self) -> String {
        let (format, pages) = (Transcript::FORMAT, pages::version());
        let (recipe, ocr) = (&self.recipe, self.ocr.identity());
        format!("transcript {format}; pages {pages}; {recipe:?}; {ocr}")
    }

    /// Reads a whole document whose bytes have the given SHA-256. `alone`: a worker died on it
    /// before, so its pages share no process with others.
    ///
    /// # Errors
    /// As [`Reader::read_on`].
    pub async fn read(
        &self,
        bytes: Bytes,
        sha256: &str,
        alone: bool,
    ) -> Result<Transcript, StepError> {
        let reading = Reading { bytes, sha256: sha256.to_owned(), alone, finished: Vec::new() };
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
        let Reading { bytes, sha256, alone, finished } = reading;
        let document = self.cells.open(bytes, alone).await.map_err(step_error)?;
        let mut pages: BTreeMap<u32, PageText> =
            finished.into_iter().map(|page| (page.number, page)).collect();
        let open: Vec<u32> =
            (0..document.page_count()).filter(|index| !pages.contains_key(&(index + 1))).collect();
        let mut reads = futures::stream::iter(open)
            .map(|index| document.read(index))
            .buffer_unordered(self.at_once());
        while let Some(read) = reads.try_next().await.map_err(step_error)? {
            let PageRead { page, repaired } = read;
            sink.keep(&page, repaired).await?;
            pages.insert(page.number, page);
        }
        drop(reads);
        let pages: Vec<PageText> = pages.into_values().collect();
        let transcript = Transcript {
            format: Transcript::FORMAT,
            sha256,
            provider: self.ocr.name(),
            quality: mean_quality(&pages),
            pages,
        };
        if transcript.is_empty() { Err(nothing_read(&transcript)) } else { Ok(transcript) }
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

fn step_error(error: WorkError) -> StepError {
    match error {
        WorkError::Refused { reason, detail } => StepError::rejected(reason, detail),
        WorkError::Fault(error) => StepError::Fault(error),
    }
}

fn mean_quality(pages: &[PageText]) -> f32 {
    let count = u16::try_from(pages.len()).unwrap_or(u16::MAX).max(1);
    pages.iter().map(|page| page.quality).sum::<f32>() / f32::from(count)
}
