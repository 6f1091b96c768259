//! One group: its documents in order, the status of each, and the group's result.
//!
//! A failed document is retried in a later run of its group, while the texts of the others are
//! kept. After `tries` it is left out of the result, and stays in the ledger. A panic or timeout
//! fails only its document, as in a job of its own. A dependency's refusal of one document does not
//! delay the others: the group is retried for that one, uncounted.

use std::time::Duration;

use tokio::sync::Mutex;

use super::Workspace;
use super::claim::GroupClaim;
use super::group_run::{GroupProgress, GroupRun, named_delay};
use super::ledger::{DocumentStatus, GroupEntry, GroupLedger};
use super::work::WorkspaceJobSource;
use crate::objects::olmocr::index::WorkGroup;
use crate::objects::olmocr::{flag_key, result_key, sha1_hex};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{RetryBackoff, retry};
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_pipeline::{ClaimHandle, StepError};
use docmill_storage::PutResult;
use docmill_worker::runner::{JobConclusion, JobEnd, RenewalResult};

/// The tries to write the end of a run.
const BACKOFF: RetryBackoff = RetryBackoff::linear(Duration::from_secs(1)).with_retries(2);

/// A group that this worker has claimed.
pub(super) struct GroupJob {
    pub(super) group: WorkGroup,
    /// Gone once the end of the run is being written.
    claim: Mutex<Option<GroupClaim>>,
    known: Mutex<GroupLedger>,
    /// The documents of the group in their order, those within archives as they were found, once all
    /// were looked at.
    documents: Mutex<Vec<String>>,
}

impl GroupJob {
    pub(super) fn new(group: WorkGroup, claim: GroupClaim, known: GroupLedger) -> Self {
        let documents = Mutex::default();
        Self { group, claim: Mutex::new(Some(claim)), known: Mutex::new(known), documents }
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
        source: &WorkspaceJobSource,
        claim: &ClaimHandle,
    ) -> std::result::Result<GroupProgress, StepError> {
        let mut known = self.known.lock().await;
        let mut run = GroupRun::new(source, claim, &mut known);
        let progress = run.read_all(&self.group.paths).await?;
        *self.documents.lock().await = run.into_documents();
        Ok(progress)
    }

    /// Writes how the run ended, and releases the locks.
    pub(super) async fn finish_run(
        &self,
        source: &WorkspaceJobSource,
        conclusion: &JobConclusion<GroupProgress>,
    ) -> Result<JobEnd> {
        let Some(mut claim) = self.claim.lock().await.take() else { return Ok(JobEnd::Lost) };
        let mut known = self.known.lock().await;
        let end = match conclusion {
            JobConclusion::Completed(GroupProgress::Whole) => {
                self.finish_group(source, &mut claim, &mut known).await
            }
            JobConclusion::Completed(GroupProgress::Partial) => Ok(JobEnd::Failed),
            JobConclusion::Completed(GroupProgress::PutOff(_)) => Ok(JobEnd::GivenBack),
            JobConclusion::Again { counted: false, .. } | JobConclusion::Withdrawn => {
                return_documents(source, &mut known).await.map(|()| JobEnd::GivenBack)
            }
            JobConclusion::Again { .. } | JobConclusion::Ended { .. } => {
                source.pause_intake();
                Ok(JobEnd::Failed)
            }
            JobConclusion::ClaimLost => Ok(JobEnd::Lost),
        };
        source.workspace.try_release_locks(&mut claim).await;
        end
    }

    async fn finish_group(
        &self,
        source: &WorkspaceJobSource,
        claim: &mut GroupClaim,
        known: &mut GroupLedger,
    ) -> Result<JobEnd> {
        let held = Mutex::new((claim, known));
        let publish = |_| async {
            let (claim, known) = &mut *held.lock().await;
            self.publish(source, claim, known).await
        };
        retry(publish, |error: &Error, failed| {
            let wait = BACKOFF.next_wait(failed).filter(|_| error.fault == Fault::Transient)?;
            tracing::warn!(error = %error, turn = failed + 1, "cannot finish a group: {error}");
            Some(wait)
        })
        .await
    }

    /// The result first, then the flag: either shows that the group is done.
    async fn publish(
        &self,
        source: &WorkspaceJobSource,
        claim: &mut GroupClaim,
        known: &mut GroupLedger,
    ) -> Result<JobEnd> {
        let (workspace, group) = (&source.workspace, &self.group);
        let documents = self.documents.lock().await;
        if !fail_crashed(workspace, &documents, known).await?
            || !workspace.renew_locks(claim).await?
        {
            return Ok(JobEnd::Lost);
        }
        let mut lines = String::new();
        for path in documents.iter() {
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
                documents.iter().map(|path| known.entry_for(path)).collect();
            for entry in entries.iter().filter(|entry| entry.is_unread()) {
                let document = sha1_hex(entry.path.as_bytes());
                let reason = entry.reason.as_str();
                tracing::warn!(document, reason, "a document failed, see `stats`: {reason}");
            }
            source.lock_tally().add_group(entries.iter());
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

/// The delay before a released group is claimed again: none after a stop, otherwise the pause, or
/// the delay that a dependency named.
pub(super) fn put_off_wait(conclusion: &JobConclusion<GroupProgress>, pause: Duration) -> Duration {
    match conclusion {
        JobConclusion::Completed(GroupProgress::PutOff(delay)) => pause.max(*delay),
        JobConclusion::Again { after, .. } if after.is_zero() => Duration::ZERO,
        JobConclusion::Again { fault, .. } => pause.max(named_delay(*fault)),
        _ => Duration::ZERO,
    }
}

/// Uncounts the running documents: not their fault. Those that another worker died over, and that
/// this run did not reach, stay counted.
async fn return_documents(source: &WorkspaceJobSource, known: &mut GroupLedger) -> Result<()> {
    let begun: Vec<GroupEntry> = known.begun_here().cloned().collect();
    for mut entry in begun {
        (entry.standing, entry.tries) = (DocumentStatus::Waiting, entry.tries.saturating_sub(1));
        known.save(&source.workspace, entry).await?;
    }
    Ok(())
}

/// Fails documents whose workers died over them up to the maximum number of tries.
async fn fail_crashed(
    workspace: &Workspace,
    documents: &[String],
    known: &mut GroupLedger,
) -> Result<bool> {
    for path in documents {
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
