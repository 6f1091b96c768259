//! One group: its documents one after the other, what became of each, and the result of all.
//!
//! A document that fails is begun again in a later run of its group, while those beside it keep
//! what was read of them; after `tries` it is left out of the result, and stays in the ledger. One
//! whose reading panics or takes too long fails alone, as a job of its own would. What is refused to
//! one document holds up none beside it: the group comes back for that one, with no try counted.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::Mutex;

use super::claim::GroupClaim;
use super::ledger::{DocumentStatus, GroupEntry, GroupLedger};
use super::markdown::write_markdown;
use super::read::ReadOutcome;
use super::source::SourceContent;
use super::work::WorkspaceBacklog;
use super::{Workspace, dolma};
use crate::failpoint::{FailureSeam, guard_call};
use crate::pipeline::failure::{self, RetryAttempt, RetryDecision};
use crate::pipeline::{ClaimHandle, StepError};
use crate::runner::guard::{GuardedOutcome, describe_timeout, run_guarded};
use crate::runner::{JobConclusion, JobEnd, RenewalResult};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{RetryBackoff, retry};
use docmill_core::work_clock::WorkClock;
use docmill_queue::queue::objects::olmocr::index::WorkGroup;
use docmill_queue::queue::objects::olmocr::{flag_key, result_key, sha1_hex};
use docmill_storage::store::PutResult;

/// The tries to write the end of a run.
const BACKOFF: RetryBackoff = RetryBackoff::linear(Duration::from_secs(1)).with_retries(2);

/// A group that this worker has claimed.
pub(super) struct GroupJob {
    pub(super) group: WorkGroup,
    /// Gone once the end of the run is being written.
    claim: Mutex<Option<GroupClaim>>,
    known: Mutex<GroupLedger>,
}

/// How far a run of a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupProgress {
    /// Nothing is left to be read.
    Whole,
    /// Documents of it are to be tried again.
    Partial,
    /// Documents of it wait for what is refused to them or away, for at least so long if that is
    /// known; the others are read.
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
}

impl GroupJob {
    pub(super) fn new(group: WorkGroup, claim: GroupClaim, known: GroupLedger) -> Self {
        Self { group, claim: Mutex::new(Some(claim)), known: Mutex::new(known) }
    }

    /// Renews the locks of the group.
    pub(super) async fn renew(&self, workspace: &Workspace) -> RenewalResult {
        // Without a claim the end is being written, which renews the locks itself.
        let mut claim = self.claim.lock().await;
        let Some(claim) = claim.as_mut() else { return RenewalResult::Kept };
        match workspace.renew_locks(claim).await {
            Ok(true) => RenewalResult::Kept,
            Ok(false) => RenewalResult::Lost,
            Err(error) => {
                tracing::warn!(error = %error, "cannot renew a lock: {error}");
                RenewalResult::Failed
            }
        }
    }

    /// Reads the documents that are still open.
    pub(super) async fn read_documents(
        &self,
        backlog: &WorkspaceBacklog,
        claim: &ClaimHandle,
    ) -> std::result::Result<GroupProgress, StepError> {
        let (workspace, most) = (&backlog.workspace, backlog.terms.tries);
        let mut known = self.known.lock().await;
        let mut run = GroupProgress::Whole;
        for path in &self.group.paths {
            let mut entry = known.entry_for(path);
            if entry.is_settled(most) {
                continue;
            }
            // Counted when it begins, so that a document that kills its workers is counted too.
            (entry.standing, entry.tries) = (DocumentStatus::Begun, entry.tries.saturating_add(1));
            if !known.save(workspace, entry.clone()).await? {
                return Err(StepError::claim_lost());
            }
            let (group, document) = (&self.group.hash, sha1_hex(path.as_bytes()));
            tracing::debug!(group, document, run = entry.tries, "document begun");
            let (clock, limit) = (WorkClock::start(), backlog.terms.document_time);
            let mut put_off = None;
            match run_guarded(&clock, limit, read_document(backlog, path, claim)).await {
                GuardedOutcome::Ended(Ok(read)) => read.apply_to(&mut entry),
                GuardedOutcome::Ended(Err(error)) => {
                    put_off = note_failure(backlog, &mut entry, error)?;
                }
                GuardedOutcome::Panicked => {
                    let error = Error::internal("a panic, see the log of that time");
                    put_off = note_failure(backlog, &mut entry, error)?;
                }
                GuardedOutcome::TookTooLong { has_progress } => {
                    note_timeout(&mut entry, has_progress);
                }
            }
            run = run.and(match put_off {
                Some(wait) => GroupProgress::PutOff(wait),
                None if entry.is_settled(most) => GroupProgress::Whole,
                None => GroupProgress::Partial,
            });
            if !known.save(workspace, entry).await? {
                return Err(StepError::claim_lost());
            }
        }
        Ok(run)
    }

    /// Writes how the run ended, and releases the locks.
    pub(super) async fn finish_run(
        &self,
        backlog: &WorkspaceBacklog,
        conclusion: &JobConclusion<GroupProgress>,
    ) -> Result<JobEnd> {
        let Some(mut claim) = self.claim.lock().await.take() else { return Ok(JobEnd::Lost) };
        let mut known = self.known.lock().await;
        let end = match conclusion {
            JobConclusion::Completed(GroupProgress::Whole) => {
                self.finish_group(backlog, &mut claim, &mut known).await
            }
            JobConclusion::Completed(GroupProgress::Partial) => Ok(JobEnd::Failed),
            JobConclusion::Completed(GroupProgress::PutOff(_)) => Ok(JobEnd::GivenBack),
            JobConclusion::Again { counted: false, .. } | JobConclusion::Withdrawn => {
                return_documents(backlog, &mut known).await.map(|()| JobEnd::GivenBack)
            }
            JobConclusion::Again { .. } | JobConclusion::Ended { .. } => {
                backlog.pause_intake();
                Ok(JobEnd::Failed)
            }
            JobConclusion::ClaimLost => Ok(JobEnd::Lost),
        };
        backlog.workspace.try_release_locks(&mut claim).await;
        end
    }

    async fn finish_group(
        &self,
        backlog: &WorkspaceBacklog,
        claim: &mut GroupClaim,
        known: &mut GroupLedger,
    ) -> Result<JobEnd> {
        let held = Mutex::new((claim, known));
        let publish = |_| async {
            let (claim, known) = &mut *held.lock().await;
            self.publish(backlog, claim, known).await
        };
        let wait_after = |error: &Error, failed| {
            let wait = BACKOFF.next_wait(failed).filter(|_| error.fault == Fault::Transient)?;
            tracing::warn!(error = %error, turn = failed + 1, "cannot finish a group: {error}");
            Some(wait)
        };
        retry(publish, wait_after).await
    }

    /// The result first, then the flag: whoever sees either knows that the group is done.
    async fn publish(
        &self,
        backlog: &WorkspaceBacklog,
        claim: &mut GroupClaim,
        known: &mut GroupLedger,
    ) -> Result<JobEnd> {
        let (workspace, group) = (&backlog.workspace, &self.group);
        if !fail_crashed(workspace, group, known).await? || !workspace.renew_locks(claim).await? {
            return Ok(JobEnd::Lost);
        }
        let mut lines = String::new();
        for path in &group.paths {
            if let Some(line) = known.entry_for(path).line {
                lines.push_str(&line);
                lines.push('\n');
            }
        }
        let store = workspace.engine.store();
        let result = result_key(&group.hash);
        let putting = store.put_if_absent(&result, lines.into());
        let written = guard_call(FailureSeam::ResultWrite, putting).await?;
        if workspace.format.has_flags() {
            store.put_if_absent(&flag_key(&group.hash), bytes::Bytes::new()).await?;
        }
        if written != PutResult::Refused {
            let entries: Vec<GroupEntry> =
                group.paths.iter().map(|path| known.entry_for(path)).collect();
            for entry in entries.iter().filter(|entry| entry.is_unread()) {
                let document = sha1_hex(entry.path.as_bytes());
                let reason = entry.reason.as_str();
                tracing::warn!(
                    document,
                    reason,
                    "a document was not read, `stats` names it: {reason}"
                );
            }
            backlog.lock_tally().add_group(entries.iter());
        }
        let forgetting = known.remove(workspace, |entry| !entry.is_unread());
        guard_call(FailureSeam::Delete, forgetting).await?;
        Ok(JobEnd::Done)
    }
}

/// The word of metrics and logs for a run that left something.
pub(super) fn outcome_label(conclusion: &JobConclusion<GroupProgress>) -> &'static str {
    match conclusion {
        JobConclusion::Completed(GroupProgress::Whole) => "completed",
        JobConclusion::Completed(GroupProgress::Partial) => "partial",
        JobConclusion::Completed(GroupProgress::PutOff(_)) => "put_off",
        JobConclusion::Ended { reason, .. } => reason.code(),
        JobConclusion::Again { fault, .. } => fault.code(),
        JobConclusion::Withdrawn => "cancelled",
        JobConclusion::ClaimLost => "claim_lost",
    }
}

/// What follows for one document, by the failure table; a time if what it needs is refused to it or
/// away, which counts no try: how long that lasts at least.
///
/// # Errors
/// The error itself, if every other document would fare the same: the group is released.
fn note_failure(
    backlog: &WorkspaceBacklog,
    entry: &mut GroupEntry,
    error: Error,
) -> std::result::Result<Option<Duration>, StepError> {
    let attempt = RetryAttempt { number: entry.tries, deferred_for: None, jitter: fastrand::f64() };
    let mut put_off = None;
    entry.standing = match failure::decide_retry(error.fault, attempt, &backlog.retry) {
        RetryDecision::LeaveToOwner => return Err(error.into()),
        RetryDecision::Again { counted: false, .. } => {
            if error.fault == Fault::Interrupted || backlog.reader.find_outage().is_some() {
                return Err(error.into());
            }
            put_off = Some(told_wait(error.fault));
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

/// How long what was refused stays so, if whoever refused it has said so.
fn told_wait(fault: Fault) -> Duration {
    match fault {
        Fault::Throttled(Some(told)) | Fault::OverBudget(told) => told,
        _ => Duration::ZERO,
    }
}

/// When a group that was given back is taken again: at once after a stop, else after the pause, or
/// when it was told.
pub(super) fn put_off_wait(conclusion: &JobConclusion<GroupProgress>, pause: Duration) -> Duration {
    match conclusion {
        JobConclusion::Completed(GroupProgress::PutOff(told)) => pause.max(*told),
        JobConclusion::Again { after, .. } if after.is_zero() => Duration::ZERO,
        JobConclusion::Again { fault, .. } => pause.max(told_wait(*fault)),
        _ => Duration::ZERO,
    }
}

/// What follows for one document that was read for as long as it may be.
fn note_timeout(entry: &mut GroupEntry, has_progress: bool) {
    let detail = describe_timeout(has_progress).to_owned();
    match failure::decide_timeout(has_progress) {
        RetryDecision::End(reason) => {
            DocumentRead::Refused { code: reason.code().to_owned(), detail }.apply_to(entry);
        }
        RetryDecision::Again { .. } | RetryDecision::LeaveToOwner => {
            (entry.standing, entry.tries) =
                (DocumentStatus::Waiting, entry.tries.saturating_sub(1));
            entry.detail = detail;
        }
    }
}

/// The documents in work are as if they had not been begun: not their fault.
async fn return_documents(backlog: &WorkspaceBacklog, known: &mut GroupLedger) -> Result<()> {
    let is_begun = |entry: &&GroupEntry| entry.standing == DocumentStatus::Begun;
    let begun: Vec<GroupEntry> = known.entries().filter(is_begun).cloned().collect();
    for mut entry in begun {
        (entry.standing, entry.tries) = (DocumentStatus::Waiting, entry.tries.saturating_sub(1));
        known.save(&backlog.workspace, entry).await?;
    }
    Ok(())
}

/// Documents whose worker died over them as often as they may be begun.
async fn fail_crashed(
    workspace: &Workspace,
    group: &WorkGroup,
    known: &mut GroupLedger,
) -> Result<bool> {
    for path in &group.paths {
        let mut entry = known.entry_for(path);
        if entry.standing == DocumentStatus::Begun {
            (entry.standing, entry.reason) = (DocumentStatus::Failed, "crashed".to_owned());
            if !known.save(workspace, entry).await? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// What follows from reading a document.
enum DocumentRead {
    Line(String),
    Empty,
    Refused { code: String, detail: String },
}

impl DocumentRead {
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

async fn read_document(
    backlog: &WorkspaceBacklog,
    path: &str,
    claim: &ClaimHandle,
) -> Result<DocumentRead> {
    let refused =
        |code: &str, detail: String| Ok(DocumentRead::Refused { code: code.to_owned(), detail });
    let bytes = match backlog.sources.fetch(path).await? {
        SourceContent::Bytes(bytes) => bytes,
        SourceContent::TooLarge => {
            let limit = backlog.sources.largest;
            return refused("too_large", format!("limits.document_bytes is {limit}"));
        }
    };
    let mut text = match backlog.reader.read_document(path, bytes, claim).await? {
        ReadOutcome::Whole(text) => text,
        ReadOutcome::Empty => return Ok(DocumentRead::Empty),
        ReadOutcome::Refused { code, detail } => return Ok(DocumentRead::Refused { code, detail }),
    };
    if exceeds_rate(text.lost, text.pages.len(), backlog.terms.page_error_rate) {
        let detail = format!("{} of {} pages were lost", text.lost, text.pages.len());
        return refused("page_errors", detail);
    }
    if let Some(markdown) = text.markdown.take() {
        write_markdown(&backlog.workspace, path, markdown).await?;
    }
    let today = OffsetDateTime::now_utc().date().to_string();
    Ok(dolma::dolma_line(path, &text, &today).map_or(DocumentRead::Empty, DocumentRead::Line))
}

/// Whether more pages were lost than a document may lose; the rate is lost pages per page.
fn exceeds_rate(lost: usize, pages: usize, rate: f64) -> bool {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    count(lost) > rate * count(pages)
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
