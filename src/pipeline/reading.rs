//! Bytes to transcript: every page by its text layer or by OCR.
//!
//! Pages stream: a few of them are looked at on the CPU pool or read by OCR at the same time, their
//! pictures are dropped as soon as they are read, and the first that fails ends the document.
//! A page is read once, however bad it is: its quality says so, and the gate decides.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::StepError;
use crate::config::{LimitsConfig, OcrConfig};
use crate::cpu::Pool;
use crate::fault::Fault;
use crate::model::{PageText, Reason, Source, Transcript};
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

impl Reader {
    /// Everything that changes what is read from the same bytes.
    pub fn identity(&self) -> String {
        let (format, pages) = (Transcript::FORMAT, pages::VERSION);
        let (dpi, ocr) = (self.ocr_config.dpi, self.ocr.identity());
        format!("transcript {format}; pages {pages}; {dpi} dpi; {ocr}")
    }

    /// Reads a document whose bytes have the given SHA-256. `alone`: a worker died on it before, so
    /// its pages share no process with others.
    ///
    /// Dropping the future stops the OCR; page work that has started ends by itself.
    ///
    /// # Errors
    /// The input's fault (`empty`, `unsupported_type`, `encrypted`, `corrupt`, `too_large`,
    /// `timeout`, `no_text`), or the fault of the OCR.
    pub async fn read(
        &self,
        bytes: Bytes,
        sha256: &str,
        alone: bool,
    ) -> Result<Transcript, StepError> {
        let (limits, dpi) = (self.limits.clone(), self.ocr_config.dpi);
        let opened = self.within_limit(move || pages::open(bytes, &limits, dpi)).await?;
        let document = Arc::new(opened);
        let at_once = self.pool.threads() + 1;
        let pages: Vec<PageText> = futures::stream::iter(0..document.page_count())
            .map(|index| self.page(Arc::clone(&document), index, alone))
            .buffered(at_once)
            .try_collect()
            .await?;
        let transcript = Transcript {
            format: Transcript::FORMAT,
            sha256: sha256.to_owned(),
            provider: self.ocr.name(),
            quality: mean_quality(&pages),
            pages,
        };
        if transcript.is_empty() { Err(nothing_read(&transcript)) } else { Ok(transcript) }
    }

    async fn page(
        &self,
        document: Arc<Document>,
        index: u32,
        alone: bool,
    ) -> Result<PageText, StepError> {
        let number = index + 1;
        match self.within_limit(move || document.page(index)).await? {
            Page::Text { width, height, lines } => {
                Ok(PageText { lines, ..native_page(number, width, height, 1.0) })
            }
            // Quality 0 lets the gate see that the document is not complete.
            Page::Damaged { width, height } => Ok(native_page(number, width, height, 0.0)),
            Page::Image(raster) => self.picture(raster, number, alone).await,
        }
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
            lines,
        })
    }

    /// Runs page work on the pool, for at most `limits.page_time`.
    pub(super) async fn within_limit<T, F>(&self, work: F) -> Result<T, StepError>
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

/// A page is a page, however little stands on it.
pub(super) fn mean_quality(pages: &[PageText]) -> f32 {
    let count = u16::try_from(pages.len()).unwrap_or(u16::MAX).max(1);
    pages.iter().map(|page| page.quality).sum::<f32>() / f32::from(count)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn pixel_count(pixels: u32) -> f32 {
    pixels as f32
}
