//! The documents of an archive, one after the other, for a group that is read.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::source::SourceContent;
pub use crate::objects::olmocr::archive::{ArchiveLimits, is_archive};
pub(super) use crate::objects::olmocr::archive::{ArchiveStep, member_path, split_member};
use crate::objects::olmocr::archive::{MemberContent, list_members};

impl From<MemberContent> for SourceContent {
    fn from(content: MemberContent) -> Self {
        match content {
            MemberContent::Bytes(bytes) => Self::Bytes(bytes),
            MemberContent::TooLarge => Self::TooLarge,
        }
    }
}

/// Walks through an archive on a separate thread; each step is made when the one before is taken,
/// and the walk ends when the receiver is dropped.
pub(super) fn walk_archive(packed: Bytes, limits: ArchiveLimits) -> mpsc::Receiver<ArchiveStep> {
    let (steps, inbox) = mpsc::channel(1);
    #[expect(
        clippy::disallowed_methods,
        reason = "one per group in work; it mostly waits for its documents to be read, for which \
                  the threads for CPU work are too few"
    )]
    tokio::task::spawn_blocking(move || {
        if let Err(broken) = list_members(&packed, limits, |step| steps.blocking_send(step).is_ok())
        {
            // Fails if the receiver is dropped.
            drop(steps.blocking_send(broken));
        }
    });
    inbox
}
