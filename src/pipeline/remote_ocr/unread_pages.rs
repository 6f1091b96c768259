//! What one provider's turn leaves behind: pages for the next one, and pages that are final.

use crate::pipeline::step_error::StepError;
use docmill_core::model::PageText;

/// What a provider left unread, and why.
#[derive(Debug, Default)]
pub(super) struct UnreadPages {
    pub(super) numbers: Vec<u32>,
    pub(super) why: Option<StepError>,
}

/// Nothing more is to come for the page.
pub(super) fn finalize_page(page: &mut PageText) {
    if let Some(notes) = &mut page.provider {
        notes.provisional = false;
    }
}
