//! The words for why a document is given up.

/// Why a document was given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeadLetterReason<'a> {
    /// See [`DeadMarker::reason`](docmill_queue::queue::objects::blobforge::records::DeadMarker::reason).
    pub(super) reason: &'a str,
    /// What went wrong: codes and counts, never content.
    pub(super) detail: &'a str,
}

impl<'a> DeadLetterReason<'a> {
    /// For this reason, by what went wrong.
    pub(super) fn new(reason: &'a str, detail: &'a str) -> Self {
        Self { reason, detail }
    }
}
