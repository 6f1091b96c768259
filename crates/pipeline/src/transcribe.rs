//! The transcribe step: reuses a stored transcript of the same identity; otherwise reads the
//! document, stores finished pages in the journal, and stores the transcript before it is used. The
//! caller writes the row's reference before any paid call.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::artefact::{ArtefactSlot, identity_of, parse_artefact};
use crate::context::AttemptContext;
use crate::cost::BilledPageSink;
use crate::earlier_transcript;
use crate::fetch::FetchedDocument;
use crate::journal::{self, PageJournal};
use crate::local_pages::overflow_error;
use crate::page_sink::PageSink;
use crate::preprocessed::{self, PreprocessedFile};
use crate::reading::ReadRequest;
use crate::remote_ocr::{ReadOptions, StoredOriginal};
use crate::searchable::{SearchableCopy, store_searchable};
use crate::step_error::StepError;
use crate::text_budget::TextBudget;
use crate::text_work::run_on_text;
use docmill_core::config::{LimitsConfig, OcrProvider};
use docmill_core::model::{
    EncodedImage, IngestionId, PageRange, PageSource, PageText, PageUsage, TextMeter, Transcript,
};
use docmill_core::{fault, metrics};
use docmill_documents::DocumentFormat;
use docmill_documents::sandbox::OpenDocument;
use docmill_ledger::StoredTranscript;
use docmill_storage::keys;

/// A document's text, stored.
#[derive(Debug)]
pub(super) struct TranscribedDocument {
    /// The text of every page.
    pub transcript: Arc<Transcript>,
    /// The identity of the transcript: what it was made from.
    pub identity: String,
    /// The identity of its reader.
    reader: String,
    /// Where its repaired pages lie.
    preprocessed: Option<PreprocessedFile>,
    /// Room for its text, given back with it.
    _text_budget: TextBudget,
}

/// The stored form: the transcript, and beside it where its repaired pages and its searchable copy lie.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TranscriptFile {
    #[serde(flatten)]
    transcript: Transcript,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preprocessed: Option<PreprocessedFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    searchable: Option<SearchableCopy>,
}

/// Reads the document, or loads the transcript of an earlier attempt. `order`: the kind's own order
/// of providers. Also returns the reference for the row.
///
/// # Errors
/// Rejected with the reader's reasons; faults of store, ledger and OCR; a lost claim.
pub(super) async fn load_or_transcribe(
    attempt: AttemptContext<'_>,
    order: Option<Vec<OcrProvider>>,
    fetched: FetchedDocument,
    document: OpenDocument,
) -> Result<(TranscribedDocument, StoredTranscript), StepError> {
    let AttemptContext { claimed, claim, .. } = attempt;
    let (services, store) = (attempt.services(), attempt.artefacts());
    let sha256 = fetched.sha256.clone();
    let options = ReadOptions { order, original: provider_original(attempt, &fetched) };
    let reader = services.reader.reader_identity(&options);
    let identity = transcript_identity(&sha256, &reader, claimed.document.pages);
    let key = keys::transcription_key(claim.id);
    let mut slot =
        ArtefactSlot::<TranscriptFile>::load(store, &services.pool, key, identity.clone()).await?;
    let mut journal = None;
    let mut text_budget = TextBudget::new(&services.budget);
    let earlier = match slot.content {
        Some(_) => None,
        None => earlier_transcript::load_earlier_transcript(attempt, &sha256).await?,
    };
    if slot.content.is_some() {
        metrics::count_reuse("transcript");
    } else if let Some(transcript) = earlier {
        metrics::count_reuse("transcript");
        let file = TranscriptFile { transcript, preprocessed: None, searchable: None };
        slot.write(store, claim, file).await?;
    } else {
        claim.ensure_live().await?;
        let (budget, claims) = (&services.budget, claimed.claims);
        let (kept, mut finished) =
            PageJournal::open(store, budget, claim, claims, identity.clone()).await?;
        finished.extend(pages_outside(claimed.document.pages, document.page_count()));
        let kept = journal.insert(kept);
        let reading = ReadRequest { document, sha256: sha256.clone(), finished, options };
        let request = BudgetedRequest { reading, text_budget: &mut text_budget };
        let stored = Box::pin(read_and_store(attempt, kept, fetched, request)).await?;
        let repaired = stored.preprocessed.as_ref().map(|made| made.file.path.as_str());
        earlier_transcript::write_as_earlier(attempt, &stored.transcript, repaired).await?;
        slot.write(store, claim, stored).await?;
    }
    let Some(TranscriptFile { mut transcript, preprocessed, .. }) = slot.content.take() else {
        return Err(fault::Error::internal("a written transcript is missing").into());
    };
    transcript.shrink_to_fit();
    // One that was stored under other limits is no smaller for that.
    text_budget.resize(measure_text(&transcript, &services.config.limits)?)?;
    let saved = StoredTranscript {
        artefact: slot.to_ref(),
        quality: transcript.quality,
        sha256,
        pages: u32::try_from(transcript.pages.len()).unwrap_or(u32::MAX),
        preprocessed: preprocessed.as_ref().map(|made| made.file.clone()),
    };
    remove_finished_pages(attempt, journal).await;
    Ok((
        TranscribedDocument {
            transcript: Arc::new(transcript),
            identity,
            reader,
            preprocessed,
            _text_budget: text_budget,
        },
        saved,
    ))
}

/// A transcript out of its stored form.
///
/// # Errors
/// Rejected if it takes too long or is too large; `Internal` if it is not readable; no room for it.
pub(super) async fn parse_stored(
    attempt: AttemptContext<'_>,
    stored: Bytes,
) -> Result<TranscribedDocument, StepError> {
    let services = attempt.services();
    let parsed = run_on_text(services, move || parse_artefact::<TranscriptFile>(&stored)).await?;
    let Some((identity, TranscriptFile { mut transcript, .. })) = parsed else {
        return Err(fault::Error::internal("the stored transcript is not readable").into());
    };
    transcript.shrink_to_fit();
    let mut text_budget = TextBudget::new(&services.budget);
    text_budget.resize(measure_text(&transcript, &services.config.limits)?)?;
    let transcript = Arc::new(transcript);
    Ok(TranscribedDocument {
        transcript,
        identity,
        reader: String::new(),
        preprocessed: None,
        _text_budget: text_budget,
    })
}

/// The identity of a transcript: the original's bytes, the reader, and the pages of a part of a file.
fn transcript_identity(sha256: &str, reader: &str, pages: Option<PageRange>) -> String {
    let format = Transcript::FORMAT.to_string();
    match pages {
        None => identity_of(&[&format, sha256, reader]),
        Some(PageRange { first, last }) => {
            identity_of(&[&format, sha256, reader, &format!("pages {first} to {last}")])
        }
    }
}

/// Stores the transcript of a part of this document where the part's own ingestion looks for it, so that
/// no page is read twice. Its pages keep their numbers.
///
/// # Errors
/// A lost claim; store errors.
pub(super) async fn store_part(
    attempt: AttemptContext<'_>,
    whole: &TranscribedDocument,
    part: IngestionId,
    pages: PageRange,
) -> Result<(), StepError> {
    let (store, pool) = (attempt.artefacts(), &attempt.services().pool);
    let identity = transcript_identity(&whole.transcript.sha256, &whole.reader, Some(pages));
    let key = keys::transcription_key(part);
    let mut slot = ArtefactSlot::<TranscriptFile>::load(store, pool, key, identity).await?;
    if slot.content.is_none() {
        let mut transcript = Transcript::clone(&whole.transcript);
        keep_pages(&mut transcript, pages);
        let preprocessed = whole.preprocessed.clone();
        let file = TranscriptFile { transcript, preprocessed, searchable: None };
        slot.write(store, attempt.claim, file).await?;
    }
    Ok(())
}

/// Stand-ins for the pages that a part of a file does not have: they are not read.
fn pages_outside(part: Option<PageRange>, count: u32) -> impl Iterator<Item = PageText> {
    let outside = (1..=count)
        .filter(move |page| part.is_some_and(|part| !(part.first..=part.last).contains(page)));
    outside.map(|page| PageText::from_native(page, (1.0, 1.0), 1.0, Vec::new()))
}

/// Leaves the pages of a part.
fn keep_pages(transcript: &mut Transcript, pages: PageRange) {
    transcript.pages.retain(|page| (pages.first..=pages.last).contains(&page.number));
    let qualities = transcript.pages.iter().map(|page| page.quality);
    #[expect(clippy::cast_precision_loss, reason = "a number of pages")]
    let count = transcript.pages.len().max(1) as f32;
    transcript.quality = qualities.sum::<f32>() / count;
}

/// Finished pages are of no use once the transcript is stored.
async fn remove_finished_pages(attempt: AttemptContext<'_>, journal: Option<PageJournal<'_>>) {
    match journal {
        Some(mut journal) => journal.remove().await,
        // A claim that died between storing the transcript and this left its pages behind.
        None if attempt.claimed.claims > 1 => {
            let (store, id) = (attempt.artefacts(), attempt.claim.id);
            if let Err(error) = journal::clear_journal(store, id).await {
                tracing::debug!(%error, "finished pages are left to the janitor: {error}");
            }
        }
        None => {}
    }
}

/// Bytes in memory of a transcript's text.
///
/// # Errors
/// `too_large`.
pub(super) fn measure_text(
    transcript: &Transcript,
    limits: &LimitsConfig,
) -> Result<u64, StepError> {
    let mut meter = TextMeter::new(limits.text());
    let mut bytes = 0;
    for page in &transcript.pages {
        bytes = meter.add_page(page).map_err(overflow_error)?;
    }
    Ok(bytes)
}

/// A reading, and the room that grows with what is read.
struct BudgetedRequest<'a> {
    reading: ReadRequest,
    text_budget: &'a mut TextBudget,
}

/// Reserves memory for the text of each page before it passes it on.
struct BudgetedPageSink<'a> {
    inner: BilledPageSink<'a>,
    text_budget: &'a mut TextBudget,
}

#[async_trait]
impl PageSink for BudgetedPageSink<'_> {
    async fn store_page(
        &mut self,
        page: &PageText,
        repaired: Option<EncodedImage>,
    ) -> Result<(), StepError> {
        self.text_budget.grow(page.memory_bytes())?;
        self.inner.store_page(page, repaired).await
    }

    async fn before_call(&mut self) -> Result<(), StepError> {
        self.inner.before_call().await
    }

    async fn after_call(&mut self, usage: &PageUsage, is_whole: bool) -> Result<(), StepError> {
        self.inner.after_call(usage, is_whole).await
    }
}

/// Reads the unfinished pages and stores repaired images. The reservation grows with the text.
async fn read_and_store(
    attempt: AttemptContext<'_>,
    journal: &mut PageJournal<'_>,
    fetched: FetchedDocument,
    request: BudgetedRequest<'_>,
) -> Result<TranscriptFile, StepError> {
    let BudgetedRequest { reading, text_budget } = request;
    let format = DocumentFormat::sniff(&fetched.bytes);
    text_budget.grow(reading.finished.iter().map(PageText::memory_bytes).sum())?;
    let inner = BilledPageSink::new(attempt.spending_book(), journal);
    let mut budgeted = BudgetedPageSink { inner, text_budget };
    let read = attempt.services().reader.read_remaining(reading, &mut budgeted).await;
    // Releases its part of the budget: what follows may have to wait for some.
    drop(fetched);
    let mut transcript = match read {
        Ok(transcript) => transcript,
        Err(error) => {
            journal.handle_error(&error).await;
            return Err(error);
        }
    };
    count_pages(&transcript);
    let pages = transcript.pages.len();
    if let Some(part) = attempt.claimed.document.pages {
        keep_pages(&mut transcript, part);
    }
    let most = attempt.config().limits.document_bytes.0;
    let preprocessed = preprocessed::store_preprocessed(journal, format, pages, most).await?;
    let searchable = match store_searchable(attempt, journal, &transcript).await {
        Ok(searchable) => searchable,
        Err(error) => {
            journal.handle_error(&error).await;
            return Err(error);
        }
    };
    Ok(TranscriptFile { transcript, preprocessed, searchable })
}

/// Where the document lies, if a provider may be able to fetch it there: those that do take PDFs.
fn provider_original(
    attempt: AttemptContext<'_>,
    fetched: &FetchedDocument,
) -> Option<StoredOriginal> {
    let is_pdf = DocumentFormat::sniff(&fetched.bytes) == Some(DocumentFormat::Pdf);
    let documents = Arc::clone(&attempt.context.documents);
    let name = attempt.claimed.document.file_path.clone();
    is_pdf.then(|| StoredOriginal::new(documents, name, fetched.etag.clone(), attempt.claim.id))
}

fn count_pages(transcript: &Transcript) {
    for (source, label) in [(PageSource::Native, "native"), (PageSource::Ocr, "ocr")] {
        let pages = transcript.pages.iter().filter(|page| page.source == source).count();
        metrics::count_pages(label, u64::try_from(pages).unwrap_or(u64::MAX));
    }
}
