//! The reasons for which a document is given up, as they are stored.

use crate::objects::blobforge::records::CANCELLED;

/// Why a document was given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeadLetterReason<'a> {
    /// The code that is stored; see [`DeadMarker::reason`][reason].
    ///
    /// [reason]: crate::objects::blobforge::records::DeadMarker::reason
    pub(super) reason: &'a str,
    /// The error: codes and counts, never content.
    pub(super) detail: &'a str,
}

impl DeadLetterReason<'static> {
    /// An operator wants no further run of it.
    pub(super) const WITHDRAWN: Self =
        Self { reason: CANCELLED, detail: "cancelled by an operator" };
}

impl<'a> DeadLetterReason<'a> {
    /// For this reason, by what went wrong.
    pub(super) fn new(reason: &'a str, detail: &'a str) -> Self {
        Self { reason, detail }
    }
}
