//! `searchable.pdf`: a PDF/A with a text layer of a document that was read by OCR, if configured
//! (`ocr.searchable_pdf`).
//!
//! Made if at least one page was read by OCR; otherwise the original has its text and is the better
//! copy. A page read from a repaired picture shows that picture, because the text positions are the
//! picture's. All others are drawn again by a page process. The size is bounded by
//! `limits.document_bytes`. If a page fails, the whole copy is left out, with a log line and a note
//! in the transcript: an incomplete copy would pass for the document. Stored before the transcript
//! that refers to it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::artefact::replace_version;
use crate::context::AttemptContext;
use crate::journal::PageJournal;
use crate::reopened::reopen_original;
use crate::step_error::{StepError, step_error};
use crate::text_budget::TextBudget;
use crate::text_work::run_on_text;
use docmill_core::fault::Error;
use docmill_core::model::{
    EncodedImage, FileRef, OutcomeReason, PageSource, PageText, Transcript, digest,
};
use docmill_core::work_clock::note_progress;
use docmill_documents::{InvalidImageError, SearchablePdf};
use docmill_storage::keys;

/// The transcript's entry about the configured copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SearchableCopy {
    /// Where it lies.
    Stored(FileRef),
    /// There is none.
    LeftOut {
        /// The code of the reason.
        left_out: String,
    },
}

/// Makes and stores the copy of a document that was just read; `None` if it is not configured or
/// not needed. The caller must have released the document's bytes.
///
/// # Errors
/// Faults of store and page processes; no room for it now; a lost claim.
pub(super) async fn store_searchable(
    attempt: AttemptContext<'_>,
    journal: &PageJournal<'_>,
    transcript: &Transcript,
) -> Result<Option<SearchableCopy>, StepError> {
    if !attempt.config().ocr.searchable_pdf
        || !transcript.pages.iter().any(|page: &PageText| page.source == PageSource::Ocr)
    {
        return Ok(None);
    }
    let mut text_budget = TextBudget::new(&attempt.services().budget);
    let bytes = match make_copy(attempt, journal, transcript, &mut text_budget).await {
        Ok(bytes) => bytes,
        Err(StepError::Rejected { reason, detail }) => {
            tracing::warn!(reason = reason.code(), "no searchable copy is made: {detail}");
            return Ok(Some(SearchableCopy::LeftOut { left_out: reason.code().to_owned() }));
        }
        Err(fault) => return Err(fault),
    };
    let key = keys::searchable_key(attempt.claim.id);
    let sha256 = digest::sha256_hex(&bytes);
    let (store, claim) = (attempt.artefacts(), attempt.claim);
    let found = store.head(&key).await?.map(|meta| meta.etag);
    replace_version(store, claim, &key, found.as_ref(), bytes).await?;
    note_progress();
    Ok(Some(SearchableCopy::Stored(FileRef { path: key, sha256 })))
}

/// The copy's bytes, for which `text_budget` grows.
async fn make_copy(
    attempt: AttemptContext<'_>,
    journal: &PageJournal<'_>,
    transcript: &Transcript,
    text_budget: &mut TextBudget,
) -> Result<Bytes, StepError> {
    let most = attempt.config().limits.document_bytes.0;
    let mut repaired = take_repaired(journal, transcript, most, text_budget).await?;
    let held: u64 = repaired.values().map(|image| count_bytes(&image.bytes)).sum();
    let mut original = None;
    let mut pdf = SearchablePdf::default();
    for page in &transcript.pages {
        let picture = match repaired.remove(&page.number) {
            Some(picture) => Some(picture),
            None => {
                let original = match original.as_ref() {
                    Some(original) => original,
                    None => &*original.insert(reopen_original(attempt, &transcript.sha256).await?),
                };
                let drawn = original.document.copy_page(page.number.saturating_sub(1)).await;
                drawn.map_err(step_error)?
            }
        };
        let page = page.clone();
        // As long as its text is: beside the threads that keep leases.
        pdf = run_on_text(attempt.services(), move || {
            pdf.add_page(&page, picture.as_ref()).map(|()| pdf)
        })
        .await?
        .map_err(wrong_picture)?;
        let size = u64::try_from(pdf.size()).unwrap_or(u64::MAX);
        text_budget.resize(held.saturating_add(within(size, most)?))?;
        note_progress();
    }
    let identity = transcript.sha256.clone();
    let bytes = run_on_text(attempt.services(), move || Bytes::from(pdf.finish(&identity))).await?;
    within(count_bytes(&bytes), most)?;
    Ok(bytes)
}

/// The pictures of the pages that were read from repaired ones.
async fn take_repaired(
    journal: &PageJournal<'_>,
    transcript: &Transcript,
    most: u64,
    text_budget: &mut TextBudget,
) -> Result<BTreeMap<u32, EncodedImage>, StepError> {
    let pages = transcript.pages.iter().filter(|page| page.repaired);
    let wanted: BTreeSet<u32> = pages.map(|page| page.number).collect();
    let sizes = journal.image_sizes();
    let bytes = wanted
        .iter()
        .map(|number: &u32| sizes.get(number).copied().unwrap_or(0))
        .fold(0, usize::saturating_add);
    text_budget.resize(within(u64::try_from(bytes).unwrap_or(u64::MAX), most)?)?;
    let mut taken = BTreeMap::new();
    journal
        .visit_images(wanted.clone(), |number: u32, image| {
            taken.insert(number, image);
            Ok(())
        })
        .await?;
    match wanted.iter().all(|number| taken.contains_key(number)) {
        true => Ok(taken),
        false => Err(Error::internal("a page's picture is missing").into()),
    }
}

/// `bytes`, if within the limit of a copy.
fn within(bytes: u64, most: u64) -> Result<u64, StepError> {
    if bytes <= most {
        return Ok(bytes);
    }
    let detail = format!("it would have {bytes} bytes or more, limits.document_bytes is {most}");
    Err(StepError::rejected(OutcomeReason::TooLarge, detail))
}

fn count_bytes(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Pictures from page processes are validated before use.
fn wrong_picture(wrong: InvalidImageError) -> StepError {
    Error::internal("cannot store a page's picture").with_source(wrong).into()
}
