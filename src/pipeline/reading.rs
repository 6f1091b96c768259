//! Bytes to transcript: every page by its text layer or by OCR.
//!
//! Pages stream: a few of them are looked at on the CPU pool or read by OCR at the same time, their
//! pictures are dropped as soon as they are read, each finished page goes to a [`PageSink`] at once,
//! and the first that fails ends the document.
//! A page is read once, however bad it is: its quality says so, and the gate decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::StepError;
use crate::config::{LimitsConfig, OcrConfig};
use crate::cpu::Pool;
use crate::fault::Fault;
use crate::model::{PageRead, PageText, Reason, RepairedPage, Source, Transcript};
use crate::ocr::{Ocr, PageImage};
use crate::pages::{self, Document, Page, Raster, Refusal};

/// Beyond `limits.page_time` a page is left behind; decoders that notice the time themselves get
/// this long to say so.
const GRACE: Duration = Duration::from_secs(2);

/// Reads documents.
pub struct Reader {
    /// Where page work runs.
    pub pool: Arc<Pool>,
    /// What reads pictures.
    pub ocr: Arc<dyn Ocr>,
    /// Caps.
    pub limits: LimitsConfig,
    /// How pictures are made for it.
    pub ocr_config: OcrConfig,
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
        let (format, pages) = (Transcript::FORMAT, pages::VERSION);
        let (dpi, ocr) = (self.ocr_config.dpi, self.ocr.identity());
        format!("transcript {format}; pages {pages}; {dpi} dpi; {ocr}")
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
    /// Dropping the future stops the OCR; page work that has started ends by itself.
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
        let (limits, dpi) = (self.limits.clone(), self.ocr_config.dpi);
        let opened = self.within_limit(move || pages::open(bytes, &limits, dpi)).await?;
        let document = Arc::new(opened);
        let mut pages: BTreeMap<u32, PageText> =
            finished.into_iter().map(|page| (page.number, page)).collect();
        let open: Vec<u32> =
            (0..document.page_count()).filter(|index| !pages.contains_key(&(index + 1))).collect();
        let mut reads = futures::stream::iter(open)
            .map(|index| self.page(Arc::clone(&document), index, alone))
            .buffer_unordered(self.at_once());
        while let Some(read) = reads.try_next().await? {
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
        self.pool.threads() + 1
    }

    async fn page(
        &self,
        document: Arc<Document>,
        index: u32,
        alone: bool,
    ) -> Result<PageRead, StepError> {
        let number = index + 1;
        let page = match self.within_limit(move || document.page(index)).await? {
            Page::Text { width, height, lines } => {
                PageText { lines, ..native_page(number, width, height, 1.0) }
            }
            // Quality 0 lets the gate see that the document is not complete.
            Page::Damaged { width, height } => native_page(number, width, height, 0.0),
            Page::Image(raster) => self.picture(raster, number, alone).await?,
        };
        Ok(PageRead { page, repaired: None })
    }

    /// Reads a picture and judges what was read.
    async fn picture(
        &self,
        raster: Raster,
        number: u32,
        alone: bool,
    ) -> Result<PageText, StepError> {
        let Raster { width, height, dpi, pixels } = raster;
        let pixels = Bytes::from(pixels);
        let image = PageImage { width, height, dpi, pixels: pixels.clone() };
        let reading = self.ocr.read(image, alone).await.map_err(fault_of_page)?;
        let languages = reading.languages;
        let judge = move || {
            let raster = Raster { width, height, dpi, pixels: pixels.into() };
            let quality = pages::legibility(&raster, &reading.lines).quality();
            Ok((pages::rows(reading.lines), quality))
        };
        let (lines, quality) = self.within_limit(judge).await?;
        Ok(PageText {
            number,
            source: Source::Ocr,
            width: pixel_count(width),
            height: pixel_count(height),
            quality,
            defects: Vec::new(),
            languages,
            repaired: false,
            lines,
        })
    }

    /// Runs page work on the pool, for at most `limits.page_time`.
    async fn within_limit<T, F>(&self, work: F) -> Result<T, StepError>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, Refusal> + Send + 'static,
    {
        let limit = self.limits.page_time;
        match self.pool.run_within(limit + GRACE, work).await? {
            Some(Ok(done)) => Ok(done),
            Some(Err(refusal)) => Err(StepError::rejected(refusal.reason, refusal.detail)),
            None => Err(over_time(limit)),
        }
    }
}

fn native_page(number: u32, width: f32, height: f32, quality: f32) -> PageText {
    PageText {
        number,
        source: Source::Native,
        width,
        height,
        quality,
        defects: Vec::new(),
        languages: Vec::new(),
        repaired: false,
        lines: Vec::new(),
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

fn over_time(limit: Duration) -> StepError {
    let limit = humantime::format_duration(limit);
    StepError::rejected(Reason::Timeout, format!("a page took longer than {limit}"))
}

/// A page that the OCR itself gives up on is the input's fault.
fn fault_of_page(error: crate::fault::Error) -> StepError {
    match error.fault {
        Fault::Rejected => StepError::rejected(Reason::Timeout, error.context),
        _ => StepError::Fault(error),
    }
}

fn mean_quality(pages: &[PageText]) -> f32 {
    let count = u16::try_from(pages.len()).unwrap_or(u16::MAX).max(1);
    pages.iter().map(|page| page.quality).sum::<f32>() / f32::from(count)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn pixel_count(pixels: u32) -> f32 {
    pixels as f32
}
