//! The result of one provider's pass: unread pages for the next one, and final pages.

use std::collections::BTreeMap;

use crate::step_error::StepError;
use docmill_core::model::{PageSource, PageText, ProviderNotes, ReadingRefusal};

/// The pages that a provider left unread, and why.
#[derive(Debug, Default)]
pub(super) struct UnreadPages {
    pub(super) numbers: Vec<u32>,
    pub(super) why: Option<StepError>,
    /// Local readings of some of them.
    pub(super) local_reads: BTreeMap<u32, PageText>,
}

/// The record of a page whose paid reading is unusable, so that no later attempt pays for it again.
pub(super) fn refused_page(page: &PageText, provider: &str, why: ReadingRefusal) -> PageText {
    let notes = ProviderNotes {
        name: provider.to_owned(),
        provisional: true,
        refused: Some(why),
        ..ProviderNotes::default()
    };
    let blank = PageText::from_native(page.number, (page.width, page.height), 0.0, Vec::new());
    PageText { source: PageSource::Ocr, provider: Some(Box::new(notes)), ..blank }
}

/// The provider that was paid for a reading of the page which is of no use.
pub(super) fn refused_provider(page: &PageText) -> Option<&str> {
    let notes = page.provider.as_ref().filter(|notes| notes.refused.is_some())?;
    Some(&notes.name)
}

/// Nothing more is to come for the page.
pub(super) fn finalize_page(page: &mut PageText) {
    if let Some(notes) = &mut page.provider {
        notes.provisional = false;
    }
}
