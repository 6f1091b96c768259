//! One run over the documents of a group, including its archives' members: the open documents, the
//! status of each, and the consequence of a failure. `job` ends the run.

use std::collections::BTreeSet;
use std::time::Duration;

use time::OffsetDateTime;

use super::archive::{self, ArchiveStep, member_path, split_member};
use super::dolma;
use super::ledger::{DocumentStatus, GroupEntry, GroupLedger};
use super::markdown::write_markdown;
use super::read::ReadOutcome;
use super::source::SourceContent;
use super::work::WorkspaceJobSource;
use crate::objects::olmocr::sha1_hex;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::OutcomeReason;
use docmill_core::work_clock::WorkClock;
use docmill_pipeline::failure::{self, RetryAttempt, RetryDecision};
use docmill_pipeline::{ClaimHandle, StepError};
use docmill_worker::runner::guard::{GuardedOutcome, describe_timeout, run_guarded};

type StepResult<T> = std::result::Result<T, StepError>;

/// How far a run of a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupProgress {
    /// Nothing is left to be read.
    Whole,
    /// Documents of it are to be tried again.
    Partial,
    /// Some documents wait for a dependency that is down or refuses them, for at least this time;
    /// the others are read.
    PutOff(Duration),
}

impl GroupProgress {
    /// With one document more that ended so: the longest wait, and a failure before any wait.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Partial, _) | (_, Self::Partial) => Self::Partial,
            (Self::PutOff(one), Self::PutOff(other)) => Self::PutOff(one.max(other)),
            (Self::Whole, other) => other,
            (progress, Self::Whole) => progress,
        }
    }

    /// After one document, and how long it is to wait if that is all that happened to it.
    fn after(entry: &GroupEntry, put_off: Option<Duration>, most: u32) -> Self {
        match put_off {
            Some(wait) => Self::PutOff(wait),
            None if entry.is_settled(most) => Self::Whole,
            None => Self::Partial,
        }
    }
}

/// A run under a claim.
pub(super) struct GroupRun<'a> {
    source: &'a WorkspaceJobSource,
    claim: &'a ClaimHandle,
    known: &'a mut GroupLedger,
    /// The visited documents, in order.
    documents: Vec<String>,
}

impl<'a> GroupRun<'a> {
    pub(super) fn new(
        source: &'a WorkspaceJobSource,
        claim: &'a ClaimHandle,
        known: &'a mut GroupLedger,
    ) -> Self {
        Self { source, claim, known, documents: Vec::new() }
    }

    /// Reads what is still open of these documents and archives.
    pub(super) async fn read_all(&mut self, paths: &[String]) -> StepResult<GroupProgress> {
        let mut run = GroupProgress::Whole;
        for path in paths {
            run = run.and(match archive::is_archive(path) {
                true => self.read_archive(path).await?,
                false => self.read_one(path, None).await?,
            });
        }
        Ok(run)
    }

    /// The documents in their order, those of archives as they were found there.
    pub(super) fn into_documents(self) -> Vec<String> {
        self.documents
    }

    /// Reads one document, unless that is settled; its bytes if they are here already.
    async fn read_one(
        &mut self,
        path: &str,
        content: Option<SourceContent>,
    ) -> StepResult<GroupProgress> {
        self.documents.push(path.to_owned());
        let (source, most) = (self.source, self.source.terms.tries);
        let mut entry = self.known.entry_for(path);
        if entry.is_settled(most) {
            return Ok(GroupProgress::Whole);
        }
        // Counted when it begins, so that a document that kills its workers is counted too.
        (entry.standing, entry.tries) = (DocumentStatus::Begun, entry.tries.saturating_add(1));
        self.save(entry.clone()).await?;
        let document = sha1_hex(path.as_bytes());
        tracing::debug!(document, run = entry.tries, "document begun");
        let (clock, limit) = (WorkClock::start(), source.terms.document_time);
        let mut put_off = None;
        match run_guarded(&clock, limit, read_document(source, path, content, self.claim)).await {
            GuardedOutcome::Ended(Ok(read)) => read.apply_to(&mut entry),
            GuardedOutcome::Ended(Err(error)) => {
                put_off = note_failure(source, &mut entry, error)?;
            }
            GuardedOutcome::Panicked => {
                let error = Error::internal("panicked, see the log");
                put_off = note_failure(source, &mut entry, error)?;
            }
            GuardedOutcome::TookTooLong { has_progress } => note_timeout(&mut entry, has_progress),
        }
        let progress = GroupProgress::after(&entry, put_off, most);
        self.save(entry).await?;
        Ok(progress)
    }

    /// Reads the documents of an archive in order. Errors of the archive itself are recorded in the
    /// ledger under its own path.
    async fn read_archive(&mut self, path: &str) -> StepResult<GroupProgress> {
        let (source, most) = (self.source, self.source.terms.tries);
        let mut own = self.known.entry_for(path);
        if own.standing == DocumentStatus::Failed && own.is_settled(most) {
            self.list_known_members(path);
            return Ok(GroupProgress::Whole);
        }
        let packed = match source.sources.fetch_archive(path).await {
            Ok(SourceContent::Bytes(packed)) => packed,
            Ok(SourceContent::TooLarge) => {
                let limit = source.sources.archives.bytes;
                let detail = format!("limits.archive_bytes is {limit}");
                DocumentRead::refused("too_large", detail).apply_to(&mut own);
                self.list_known_members(path);
                return self.save(own).await.map(|()| GroupProgress::Whole);
            }
            Err(error) => {
                own.tries = own.tries.saturating_add(1);
                let put_off = note_failure(source, &mut own, error)?;
                let progress = GroupProgress::after(&own, put_off, most);
                self.list_known_members(path);
                return self.save(own).await.map(|()| progress);
            }
        };
        let mut steps = archive::walk_archive(packed, source.sources.archives);
        let (mut progress, mut seen) = (GroupProgress::Whole, BTreeSet::new());
        let mut walked = DocumentRead::Empty;
        while let Some(step) = steps.recv().await {
            match step {
                // Of several of one name the first is read.
                ArchiveStep::Document { member, content } => {
                    let document = member_path(path, &member);
                    if seen.insert(member) {
                        let content = Some(content.into());
                        progress = progress.and(self.read_one(&document, content).await?);
                    }
                }
                ArchiveStep::Broken { code, detail } => {
                    walked = DocumentRead::refused(code, detail)
                }
            }
        }
        if seen.is_empty() || matches!(walked, DocumentRead::Refused { .. }) {
            walked.apply_to(&mut own);
            self.documents.push(path.to_owned());
            self.save(own).await?;
        } else {
            // Another file of this name may have been there before.
            self.known.remove(&source.workspace, |entry| entry.path == path).await?;
        }
        Ok(progress)
    }

    /// Lists an archive that can no longer be fetched, and the members read before.
    fn list_known_members(&mut self, archive: &str) {
        let known = self
            .known
            .entries()
            .filter(|entry: &&GroupEntry| {
                split_member(&entry.path).is_some_and(|(whose, _)| whose == archive)
            })
            .map(|entry| entry.path.clone());
        self.documents.extend(known);
        self.documents.push(archive.to_owned());
    }

    /// Keeps what is known of a document.
    async fn save(&mut self, entry: GroupEntry) -> StepResult<()> {
        match self.known.save(&self.source.workspace, entry).await? {
            true => Ok(()),
            false => Err(StepError::claim_lost()),
        }
    }
}

async fn read_document(
    source: &WorkspaceJobSource,
    path: &str,
    content: Option<SourceContent>,
    claim: &ClaimHandle,
) -> Result<DocumentRead> {
    let content = match content {
        Some(content) => content,
        None => source.sources.fetch(path).await?,
    };
    let bytes = match content {
        SourceContent::Bytes(bytes) => bytes,
        SourceContent::TooLarge => {
            let limit = source.sources.largest;
            let detail = format!("limits.document_bytes is {limit}");
            return Ok(DocumentRead::refused("too_large", detail));
        }
    };
    let mut text = match source.reader.read_document(path, bytes, claim).await? {
        ReadOutcome::Whole(text) => text,
        ReadOutcome::Empty => return Ok(DocumentRead::Empty),
        ReadOutcome::Refused { code, detail } => return Ok(DocumentRead::Refused { code, detail }),
    };
    if exceeds_rate(text.lost, text.pages.len(), source.terms.page_error_rate) {
        let detail = format!("{} of {} pages were lost", text.lost, text.pages.len());
        return Ok(DocumentRead::refused("page_errors", detail));
    }
    if let Some(markdown) = text.markdown.take() {
        write_markdown(&source.workspace, path, markdown).await?;
    }
    let today = OffsetDateTime::now_utc().date().to_string();
    Ok(dolma::dolma_line(path, &text, &today).map_or(DocumentRead::Empty, DocumentRead::Line))
}

/// Applies the failure table to one document; returns a delay if a dependency is down or refuses
/// the document, which is not counted.
///
/// # Errors
/// The error itself, if it would affect every document: the group is released.
fn note_failure(
    source: &WorkspaceJobSource,
    entry: &mut GroupEntry,
    error: Error,
) -> StepResult<Option<Duration>> {
    let attempt = RetryAttempt { number: entry.tries, deferred_for: None, jitter: fastrand::f64() };
    let mut put_off = None;
    entry.standing = match failure::decide_retry(error.fault, attempt, &source.retry) {
        RetryDecision::LeaveToOwner => return Err(error.into()),
        RetryDecision::Again { counted: false, .. } => {
            if error.fault == Fault::Interrupted || source.reader.find_outage().is_some() {
                return Err(error.into());
            }
            put_off = Some(named_delay(error.fault));
            source.warn_put_off(&error);
            entry.tries = entry.tries.saturating_sub(1);
            DocumentStatus::Waiting
        }
        RetryDecision::End(reason) if !reason.is_technical() => DocumentStatus::Refused,
        RetryDecision::Again { .. } | RetryDecision::End(_) => DocumentStatus::Failed,
    };
    error.fault.code().clone_into(&mut entry.reason);
    entry.detail = error.context.into_owned();
    Ok(put_off)
}

/// The delay that the refusing dependency named, if any.
pub(super) fn named_delay(fault: Fault) -> Duration {
    match fault {
        Fault::Throttled(Some(delay)) | Fault::InLine(delay) | Fault::OverBudget(delay) => delay,
        _ => Duration::ZERO,
    }
}

/// Applies the failure table to a document that timed out.
fn note_timeout(entry: &mut GroupEntry, has_progress: bool) {
    let detail = describe_timeout(has_progress).to_owned();
    match failure::decide_timeout(has_progress) {
        RetryDecision::End(reason) => DocumentRead::refused(reason.code(), detail).apply_to(entry),
        RetryDecision::Again { .. } | RetryDecision::LeaveToOwner => {
            (entry.standing, entry.tries) =
                (DocumentStatus::Waiting, entry.tries.saturating_sub(1));
            (entry.reason, entry.detail) = (OutcomeReason::Timeout.code().to_owned(), detail);
        }
    }
}

/// The result of reading a document.
enum DocumentRead {
    Line(String),
    Empty,
    Refused { code: String, detail: String },
}

impl DocumentRead {
    fn refused(code: &str, detail: String) -> Self {
        Self::Refused { code: code.to_owned(), detail }
    }

    fn apply_to(self, entry: &mut GroupEntry) {
        (entry.reason, entry.detail) = (String::new(), String::new());
        match self {
            Self::Line(line) => (entry.standing, entry.line) = (DocumentStatus::Read, Some(line)),
            Self::Empty => entry.standing = DocumentStatus::Empty,
            Self::Refused { code, detail } => {
                entry.standing = DocumentStatus::Refused;
                (entry.reason, entry.detail) = (code, detail);
            }
        }
    }
}

/// Whether more pages were lost than a document may lose; the rate is lost pages per page.
fn exceeds_rate(lost: usize, pages: usize, rate: f64) -> bool {
    as_float(lost) > rate * as_float(pages)
}

fn as_float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_discarded_only_above_the_rate() {
        for (lost, pages, rate, expected) in [
            (0, 0, 0.004, false),
            (0, 10, 0.0, false),
            (1, 250, 0.004, false),
            (1, 249, 0.004, true),
            (1, 10, 0.1, false),
            (10, 10, 1.0, false),
        ] {
            assert_eq!(exceeds_rate(lost, pages, rate), expected, "{lost} of {pages} at {rate}");
        }
    }
}
