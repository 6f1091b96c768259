//! The words for how a run ends, and for why a document is given up.

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The result is there.
    Done,
    /// It is to be tried again.
    Failed,
    /// It was given up.
    Dead,
    /// An operator withdrew it.
    Cancelled,
    /// Given back, the run not counted.
    GivenBack,
    /// The lock was somebody else's by then; nothing was changed.
    Lost,
}

/// Why a document was given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenUp<'a> {
    /// See [`Dead::reason`](crate::queue::objects::blobforge::records::Dead::reason).
    pub(super) reason: &'a str,
    /// What went wrong: codes and counts, never content.
    pub(super) detail: &'a str,
}

impl<'a> GivenUp<'a> {
    /// For this reason, by what went wrong.
    pub(super) fn new(reason: &'a str, detail: &'a str) -> Self {
        Self { reason, detail }
    }
}
