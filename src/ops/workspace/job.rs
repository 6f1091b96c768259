//! One group: its documents one after the other, what became of each, and the result of all.
//!
//! A document that fails is begun again in a later run of its group, while those beside it keep
//! what was read of them; after `tries` it is left out of the result, and stays in the ledger. One
//! whose reading panics or takes too long fails alone, as a job of its own would.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::Mutex;

use super::claim::Claim;
use super::ledger::{Entry, Known, Standing};
use super::read::Reading;
use super::source::Fetched;
use super::work::WorkspaceBacklog;
use super::{Workspace, dolma};
use crate::fault::{Error, Fault, Result};
use crate::model::Reason;
use crate::pipeline::failure::{self, Attempt, Next};
use crate::pipeline::{ClaimHandle, StepError};
use crate::queue::objects::olmocr::index::Group;
use crate::queue::objects::olmocr::{flag, result, sha1};
use crate::runner::guard::{Guarded, guard};
use crate::runner::{Conclusion, JobEnd, Renewal};
use crate::store::Put;

/// How often the end of a run is tried to be written.
const TRIES: u32 = 3;

/// A group in work.
pub(super) struct GroupJob {
    pub(super) group: Group,
    /// Gone once the end of the run is being written.
    claim: Mutex<Option<Claim>>,
    known: Mutex<Known>,
}

/// How far a run of a group came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupRun {
    /// Nothing is left to be read.
    Whole,
    /// Documents of it are to be tried again.
    Partial,
}

impl GroupJob {
    pub(super) fn new(group: Group, claim: Claim, known: Known) -> Self {
        Self { group, claim: Mutex::new(Some(claim)), known: Mutex::new(known) }
    }

    /// Keeps the locks for another while.
    pub(super) async fn renew(&self, workspace: &Workspace) -> Renewal {
        // Without a claim the end is being written, which renews the locks itself.
        let mut claim = self.claim.lock().await;
        let Some(claim) = claim.as_mut() else { return Renewal::Kept };
        match workspace.renew(claim).await {
            Ok(true) => Renewal::Kept,
            Ok(false) => Renewal::Lost,
            Err(error) => {
                tracing::warn!(error = %error, "cannot renew a lock: {error}");
                Renewal::Failed
            }
        }
    }

    /// Reads what is not settled yet.
    pub(super) async fn read_documents(
        &self,
        backlog: &WorkspaceBacklog,
        claim: &ClaimHandle,
    ) -> std::result::Result<GroupRun, StepError> {
        let (workspace, most) = (&backlog.workspace, backlog.terms.tries);
        let mut known = self.known.lock().await;
        let mut run = GroupRun::Whole;
        for path in &self.group.paths {
            let mut entry = known.of(path);
            if entry.is_settled(most) {
                continue;
            }
            // Counted when it begins, so that a document that kills its workers is counted too.
            (entry.standing, entry.tries) = (Standing::Begun, entry.tries.saturating_add(1));
            if !known.save(workspace, entry.clone()).await? {
                return Err(StepError::claim_lost());
            }
            let (group, document) = (&self.group.hash, sha1(path.as_bytes()));
            tracing::debug!(group, document, run = entry.tries, "document begun");
            match guard(backlog.terms.document_time, read(backlog, path, claim)).await {
                Guarded::Ended(Ok(read)) => read.note(&mut entry),
                Guarded::Ended(Err(error)) => note_failure(backlog, &mut entry, error)?,
                Guarded::Panicked => {
                    let error = Error::internal("a panic, see the log of that time");
                    note_failure(backlog, &mut entry, error)?;
                }
                Guarded::TookTooLong => {
                    let detail = "reading it took longer than worker.job_timeout".to_owned();
                    let code = Reason::Timeout.code().to_owned();
                    DocumentRead::Refused { code, detail }.note(&mut entry);
                }
            }
            if !entry.is_settled(most) {
                run = GroupRun::Partial;
            }
            if !known.save(workspace, entry).await? {
                return Err(StepError::claim_lost());
            }
        }
        Ok(run)
    }

    /// Writes how the run ended, and gives the locks back.
    pub(super) async fn settle(
        &self,
        backlog: &WorkspaceBacklog,
        conclusion: &Conclusion<GroupRun>,
    ) -> Result<JobEnd> {
        let Some(mut claim) = self.claim.lock().await.take() else { return Ok(JobEnd::Lost) };
        let mut known = self.known.lock().await;
        let end = match conclusion {
            Conclusion::Completed(GroupRun::Whole) => {
                self.finish(backlog, &mut claim, &mut known).await
            }
            Conclusion::Completed(GroupRun::Partial) => Ok(JobEnd::Failed),
            Conclusion::Again { counted: false, .. } | Conclusion::Withdrawn => {
                give_back(backlog, &mut known).await.map(|()| JobEnd::GivenBack)
            }
            Conclusion::Again { .. } | Conclusion::Ended { .. } => {
                backlog.pause();
                Ok(JobEnd::Failed)
            }
            Conclusion::ClaimLost => Ok(JobEnd::Lost),
        };
        backlog.workspace.give_up(&mut claim).await;
        end
    }

    async fn finish(
        &self,
        backlog: &WorkspaceBacklog,
        claim: &mut Claim,
        known: &mut Known,
    ) -> Result<JobEnd> {
        for turn in 1..TRIES {
            match self.publish(backlog, claim, known).await {
                Err(error) if error.fault == Fault::Transient => {
                    tracing::warn!(error = %error, turn, "cannot finish a group: {error}");
                    tokio::time::sleep(Duration::from_secs(u64::from(turn))).await;
                }
                ended => return ended,
            }
        }
        self.publish(backlog, claim, known).await
    }

    /// The result first, then the flag: whoever sees either knows that the group is done.
    async fn publish(
        &self,
        backlog: &WorkspaceBacklog,
        claim: &mut Claim,
        known: &mut Known,
    ) -> Result<JobEnd> {
        let (workspace, group) = (&backlog.workspace, &self.group);
        if !bury_crashed(workspace, group, known).await? || !workspace.renew(claim).await? {
            return Ok(JobEnd::Lost);
        }
        let mut lines = String::new();
        for path in &group.paths {
            if let Some(line) = known.of(path).line {
                lines.push_str(&line);
                lines.push('\n');
            }
        }
        let store = workspace.engine.store();
        let written = store.put_if_absent(&result(&group.hash), lines.into()).await?;
        if workspace.format.has_flags() {
            store.put_if_absent(&flag(&group.hash), bytes::Bytes::new()).await?;
        }
        if written != Put::Refused {
            let entries: Vec<Entry> = group.paths.iter().map(|path| known.of(path)).collect();
            backlog.tally().add_group(entries.iter());
        }
        known.remove(workspace, |entry| !entry.is_unread()).await?;
        Ok(JobEnd::Done)
    }
}

/// The word of metrics and logs for a run that left something.
pub(super) fn outcome(conclusion: &Conclusion<GroupRun>) -> &'static str {
    match conclusion {
        Conclusion::Completed(GroupRun::Whole) => "completed",
        Conclusion::Completed(GroupRun::Partial) => "partial",
        Conclusion::Ended { reason, .. } => reason.code(),
        Conclusion::Again { fault, .. } => fault.code(),
        Conclusion::Withdrawn => "cancelled",
        Conclusion::ClaimLost => "claim_lost",
    }
}

/// What follows for one document, by the failure table.
///
/// # Errors
/// The error itself, if every other document would fare the same: the group is given back.
fn note_failure(
    backlog: &WorkspaceBacklog,
    entry: &mut Entry,
    error: Error,
) -> std::result::Result<(), StepError> {
    let attempt = Attempt { number: entry.tries, deferred_for: None, jitter: fastrand::f64() };
    entry.standing = match failure::next(error.fault, attempt, &backlog.retry) {
        Next::Again { counted: false, .. } | Next::LeaveToOwner => return Err(error.into()),
        Next::End(reason) if !reason.is_technical() => Standing::Refused,
        Next::Again { .. } | Next::End(_) => Standing::Failed,
    };
    error.fault.code().clone_into(&mut entry.reason);
    entry.detail = error.context.into_owned();
    Ok(())
}

/// The documents in work are as if they had not been begun: not their fault.
async fn give_back(backlog: &WorkspaceBacklog, known: &mut Known) -> Result<()> {
    let is_begun = |entry: &&Entry| entry.standing == Standing::Begun;
    let begun: Vec<Entry> = known.entries().filter(is_begun).cloned().collect();
    for mut entry in begun {
        (entry.standing, entry.tries) = (Standing::Waiting, entry.tries.saturating_sub(1));
        known.save(&backlog.workspace, entry).await?;
    }
    Ok(())
}

/// Documents whose worker died over them as often as they may be begun.
async fn bury_crashed(workspace: &Workspace, group: &Group, known: &mut Known) -> Result<bool> {
    for path in &group.paths {
        let mut entry = known.of(path);
        if entry.standing == Standing::Begun {
            (entry.standing, entry.reason) = (Standing::Failed, "crashed".to_owned());
            if !known.save(workspace, entry).await? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// What reading a document came to.
enum DocumentRead {
    Line(String),
    Empty,
    Refused { code: String, detail: String },
}

impl DocumentRead {
    fn note(self, entry: &mut Entry) {
        (entry.reason, entry.detail) = (String::new(), String::new());
        match self {
            Self::Line(line) => (entry.standing, entry.line) = (Standing::Read, Some(line)),
            Self::Empty => entry.standing = Standing::Empty,
            Self::Refused { code, detail } => {
                entry.standing = Standing::Refused;
                (entry.reason, entry.detail) = (code, detail);
            }
        }
    }
}

async fn read(backlog: &WorkspaceBacklog, path: &str, claim: &ClaimHandle) -> Result<DocumentRead> {
    let refused =
        |code: &str, detail: String| Ok(DocumentRead::Refused { code: code.to_owned(), detail });
    let bytes = match backlog.sources.fetch(path).await? {
        Fetched::Bytes(bytes) => bytes,
        Fetched::TooLarge => {
            let limit = backlog.sources.largest;
            return refused("too_large", format!("limits.document_bytes is {limit}"));
        }
    };
    let text = match backlog.reader.read(path, bytes, claim).await? {
        Reading::Whole(text) => text,
        Reading::Empty => return Ok(DocumentRead::Empty),
        Reading::Refused { code, detail } => return Ok(DocumentRead::Refused { code, detail }),
    };
    if is_beyond(text.lost, text.pages.len(), backlog.terms.page_error_rate) {
        let detail = format!("{} of {} pages were lost", text.lost, text.pages.len());
        return refused("page_errors", detail);
    }
    let today = OffsetDateTime::now_utc().date().to_string();
    Ok(dolma::line(path, &text, &today).map_or(DocumentRead::Empty, DocumentRead::Line))
}

/// Whether more pages were lost than a document may lose; the rate is lost pages per page.
fn is_beyond(lost: usize, pages: usize, rate: f64) -> bool {
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
            assert_eq!(is_beyond(lost, pages, rate), expected, "{lost} of {pages} at {rate}");
        }
    }
}
