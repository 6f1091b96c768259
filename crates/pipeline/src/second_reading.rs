//! A second reading of the fields by a service, where the settings ask for one: the pages are drawn,
//! analysed one by one and paid for once. Each page's fields are stored before they are used.
//!
//! It is only a second source: a document goes on without it while the service fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::artefact::{ArtefactSlot, identity_of};
use crate::context::AttemptContext;
use crate::reopened::reopen_original;
use crate::step_error::{StepError, step_error};
use docmill_core::expense::ExpenseReading;
use docmill_core::fault::Fault;
use docmill_core::metrics;
use docmill_core::model::{PageText, PictureFit, Transcript};
use docmill_documents::ocr::textract::TextractOcr;
use docmill_documents::ocr::textract::expense::{ExpensePage, TextractExpense};
use docmill_gate::SecondReading;
use docmill_storage::keys;

/// The largest picture that is sent: Textract takes 10,000 pixels a side and 10 MB.
const FIT: PictureFit = PictureFit { longest_side: 4_000, pixels: 8_000_000, quarter_turns: 0 };
const MAX_BYTES: usize = 10_485_760;
/// Reason code where the budget has no room for a second reading.
const SPENT: &str = "over_budget";

/// The stored form: fields by page. A page that cannot be analysed has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct StoredExpense {
    pages: BTreeMap<u32, ExpenseReading>,
}

impl StoredExpense {
    fn lacks_page_of(&self, transcript: &Transcript) -> bool {
        transcript.pages.iter().any(|page| !self.pages.contains_key(&page.number))
    }
}

fn is_read_by_textract(page: &PageText) -> bool {
    page.provider.as_ref().is_some_and(|notes| notes.name == TextractOcr::NAME)
}

/// Result of a second reading; by default none was requested.
#[derive(Clone, Default)]
pub(super) struct FieldReading {
    /// The fields of all pages.
    pub(super) second: Option<SecondReading>,
    /// The reason for a missing reading: a code of [`Fault`].
    skipped: Option<&'static str>,
}

impl FieldReading {
    fn skipped(why: &'static str) -> Self {
        metrics::count_second_reading(why);
        Self { second: None, skipped: Some(why) }
    }

    /// The note for an operator; empty if there is none.
    pub(super) fn describe(&self) -> String {
        let told = |why| format!("its fields were not read a second time: {why}");
        self.skipped.map(told).unwrap_or_default()
    }
}

/// The second reading of a document: none of one with too many pages, and none while the service fails or
/// the budget is spent.
///
/// # Errors
/// Faults of the store and the ledger; a lost claim.
pub(super) async fn read_fields_again(
    attempt: AttemptContext<'_>,
    transcript: &Transcript,
) -> Result<FieldReading, StepError> {
    let Some(service) = attempt.services().expense.as_deref() else {
        return Ok(FieldReading::default());
    };
    let most = attempt.config().ocr.textract.expense_pages;
    let pages = u32::try_from(transcript.pages.len()).unwrap_or(u32::MAX);
    if pages == 0 || pages > most {
        return Ok(FieldReading::default());
    }
    let identity = identity_of(&[TextractExpense::OPERATION, &transcript.sha256]);
    let key = keys::expense_key(attempt.claim.id);
    let (store, pool) = (attempt.artefacts(), &attempt.services().pool);
    let mut slot = ArtefactSlot::<StoredExpense>::load(store, pool, key, identity).await?;
    if slot.content.as_ref().is_none_or(|stored| stored.lacks_page_of(transcript))
        && let Some(why) = analyze_pages(attempt, service, transcript, &mut slot).await?
    {
        return Ok(FieldReading::skipped(why));
    }
    let mut reading = ExpenseReading::default();
    for page in slot.content.iter().flat_map(|stored| stored.pages.values()) {
        reading.add_page(page);
    }
    let is_independent = !transcript.pages.iter().any(is_read_by_textract);
    metrics::count_second_reading("read");
    let second = Some(SecondReading { reading: Arc::new(reading), is_independent });
    Ok(FieldReading { second, skipped: None })
}

/// Analyses the remaining pages; returns the reason if some could not be: the document's budget is
/// spent, or the service fails.
async fn analyze_pages(
    attempt: AttemptContext<'_>,
    service: &TextractExpense,
    transcript: &Transcript,
    slot: &mut ArtefactSlot<StoredExpense>,
) -> Result<Option<&'static str>, StepError> {
    let opened = reopen_original(attempt, &transcript.sha256).await?;
    let mut stored = slot.content.take().unwrap_or_default();
    for page in &transcript.pages {
        if stored.pages.contains_key(&page.number) {
            continue;
        }
        let index = page.number.saturating_sub(1);
        let drawn = opened.document.draw_page(index, page.repaired, FIT).await;
        let drawn = drawn.map_err(step_error)?.filter(|image| image.bytes.len() <= MAX_BYTES);
        let Some(image) = drawn else {
            stored.pages.insert(page.number, ExpenseReading::default());
            continue;
        };
        let book = attempt.spending_book();
        if !book.may_read_page().await? {
            tracing::info!("a document's budget has no room for a second reading of its fields");
            return Ok(Some(SPENT));
        }
        attempt.claim.ensure_live().await?;
        let place = ExpensePage { number: page.number, width: page.width, height: page.height };
        let read = match service.analyze_page(&image, place).await {
            Ok((read, usage)) => {
                book.book_pages(&usage).await?;
                read
            }
            Err(error) if error.fault == Fault::Rejected => {
                tracing::info!(%error, "a page cannot be analysed a second time: {error}");
                ExpenseReading::default()
            }
            Err(error) if matches!(error.fault, Fault::ClaimLost | Fault::Interrupted) => {
                return Err(error.into());
            }
            Err(error) => {
                tracing::warn!(%error, "fields are not read a second time: {error}");
                return Ok(Some(error.fault.code()));
            }
        };
        stored.pages.insert(page.number, read);
        slot.write(attempt.artefacts(), attempt.claim, stored.clone()).await?;
    }
    slot.content = Some(stored);
    Ok(None)
}
