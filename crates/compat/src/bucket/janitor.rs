//! Repairs: abandoned locks, failed documents whose retry delay is over, and leftovers of an
//! earlier start of the same worker.
//!
//! Each document is checked and changed under its lock. An abandoned lock is taken over by
//! replacing exactly the version that was read, so that one of two janitors acts. No count is
//! increased: a run was counted when it began, and the largest count found is used.

mod decide;

use std::time::{Duration, SystemTime};

use serde::Serialize;

use self::decide::{DocumentFacts, SweepDecision, decide_action};
use super::change::remove_all;
use super::dead_letter_reason::DeadLetterReason;
use super::worker_identity::WorkerIdentity;
use super::{BlobForgeBucket, BucketSettings, format_rfc3339};
use crate::objects::blobforge::records::{
    EXCEEDED, FailedMarker, MarkerLock, QueueMarker, RecordedFailure, append_failure,
};
use crate::objects::blobforge::{FAILED, dead_key, failed_key, lock_key, out_key, todo_key};
use crate::objects::engine::{ObjectLock, UnreadableStreak};
use docmill_core::fault::Result;
use docmill_core::model::Priority;

/// The id that a janitor writes into a lock.
const JANITOR: &str = "janitor";

/// The result of one pass, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SweepReport {
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
    /// The repaired documents.
    pub acts: Vec<JanitorAction>,
}

/// The repair of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JanitorAction {
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
    /// Whose lock was abandoned; none: it had failed.
    pub worker: Option<String>,
    /// `finished`, `dead`, `queued`, `removed` or `forgotten`.
    pub act: &'static str,
    /// How many runs the document has had.
    pub runs: u32,
}

/// Options of a janitor's pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepOptions {
    /// Dry run.
    pub dry_run: bool,
    /// Do not wait for the pause after a failure.
    pub at_once: bool,
}

/// Checks every lock and every failed document.
///
/// # Errors
/// Store errors; completed repairs stay. A document with unreadable marks is skipped.
pub async fn sweep_bucket(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    how: SweepOptions,
) -> Result<SweepReport> {
    sweep_until(bucket, settings, how, &|| false).await
}

/// The same until `is_over`, which is asked before each document.
///
/// # Errors
/// As [`sweep_bucket`].
pub(super) async fn sweep_until(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    how: SweepOptions,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<SweepReport> {
    let mut pass = SweepPass::default();
    pass.swept.dry_run = how.dry_run;
    for (hash, entry) in bucket.queue.list_locks().await? {
        if is_over() {
            return Ok(pass.swept);
        }
        if bucket.age_by_store(entry.modified).await? > settings.stale_after() {
            let stale = |_: &MarkerLock, age| age > settings.stale_after();
            let mend = LockRepair { dry_run: how.dry_run, is_abandoned: &stale, who: None };
            pass.note_document(&hash, repair_abandoned(bucket, settings, &hash, mend).await)?;
        }
    }
    // The shortest pause there is: who failed later than that is due by no count of runs.
    let shortest = settings.retry_pause(1);
    for (hash, entry) in bucket.queue.list_named(FAILED).await? {
        if is_over() {
            break;
        }
        if how.at_once || bucket.age_by_store(entry.modified).await? >= shortest {
            let repaired = repair_failed(bucket, settings, &hash, how, entry.modified).await;
            pass.note_document(&hash, repaired)?;
        }
    }
    Ok(pass.swept)
}

/// How far a pass has come.
#[derive(Default)]
struct SweepPass {
    swept: SweepReport,
    /// Documents in a row whose marks could not be read.
    streak: UnreadableStreak,
}

impl SweepPass {
    /// Records the repair of a document. One with unreadable marks does not stop the pass.
    fn note_document(&mut self, hash: &str, done: Result<Option<JanitorAction>>) -> Result<()> {
        match done {
            Ok(act) => {
                self.streak.end_streak();
                self.swept.acts.extend(act);
                Ok(())
            }
            Err(error) if self.streak.passes_over(&error) => {
                tracing::warn!(document = hash, error = %error, "cannot repair a document: {error}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Called at the start of a worker: repairs documents still locked by an earlier start of the same
/// worker, which cannot run any more, since this one holds its registration.
///
/// # Errors
/// Store errors.
pub(super) async fn sweep_own_locks(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    who: &WorkerIdentity,
) -> Result<SweepReport> {
    let mut pass = SweepPass::default();
    for hash in bucket.queue.list_locks().await?.into_keys() {
        let mine = |lock: &MarkerLock, _| lock.worker == who.id && lock.instance != who.instance;
        // In its own name: should it die over it, its successor finds the lock as it found this.
        let mend = LockRepair { dry_run: false, is_abandoned: &mine, who: Some(who) };
        pass.note_document(&hash, repair_abandoned(bucket, settings, &hash, mend).await)?;
    }
    Ok(pass.swept)
}

/// The means of repairing locks.
#[derive(Clone, Copy)]
struct LockRepair<'a> {
    dry_run: bool,
    /// Decides from the lock and its age.
    is_abandoned: &'a (dyn Fn(&MarkerLock, Duration) -> bool + Sync),
    /// The worker whose leftovers are repaired; `None`: [`JANITOR`] acts for all.
    who: Option<&'a WorkerIdentity>,
}

/// Checks one lock; if it is abandoned, takes it over and repairs its document.
async fn repair_abandoned(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    hash: &str,
    mend: LockRepair<'_>,
) -> Result<Option<JanitorAction>> {
    let Some(seen) = bucket.queue.read_lock(hash).await? else { return Ok(None) };
    if !(mend.is_abandoned)(&seen.lease, bucket.age_by_store(seen.modified).await?) {
        return Ok(None);
    }
    let worker = Some(seen.lease.worker.clone());
    let facts = collect_facts(bucket, settings, hash, Some(&seen.lease)).await?;
    let verdict = decide_action(&facts);
    let act = action_line(hash, worker, verdict);
    if mend.dry_run {
        return Ok(Some(act));
    }
    // Run and notes stay in the lock: a janitor that dies here leaves what the next one needs.
    let name = mend.who.map_or(JANITOR, |who| &who.id);
    let mut ours = MarkerLock::new(name, &seen.lease.priority, bucket.engine.now().await?);
    ours.instance = mend.who.map(|who| who.instance.clone()).unwrap_or_default();
    (ours.retries, ours.run) = (seen.lease.retries, Some(seen.lease.run_count()));
    (ours.cancel, ours.removing) = (seen.lease.cancel, seen.lease.removing);
    let Some(held) = bucket.queue.take_over(hash, &seen.etag, ours).await? else {
        return Ok(None);
    };
    apply_decision(bucket, settings, hash, held, Some(&seen.lease)).await.map(Some)
}

/// Checks one failed document; repairs it if its retry delay is over and its lock is free.
async fn repair_failed(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    hash: &str,
    how: SweepOptions,
    modified: SystemTime,
) -> Result<Option<JanitorAction>> {
    let facts = collect_facts(bucket, settings, hash, None).await?;
    if facts.locked || !(how.at_once || is_due(bucket, settings, &facts, modified).await?) {
        return Ok(None);
    }
    if how.dry_run {
        return Ok(Some(action_line(hash, None, decide_action(&facts))));
    }
    let lock = MarkerLock::new(JANITOR, "", bucket.engine.now().await?);
    let Some(held) = bucket.queue.try_lock(hash, lock).await? else { return Ok(None) };
    apply_decision(bucket, settings, hash, held, None).await.map(Some)
}

async fn is_due(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    facts: &DocumentFacts,
    modified: SystemTime,
) -> Result<bool> {
    Ok(bucket.age_by_store(modified).await?
        >= settings.retry_pause(facts.failed.unwrap_or_default()))
}

/// Decides again under the lock, since the facts may have changed, and acts.
async fn apply_decision(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    hash: &str,
    mut held: ObjectLock<MarkerLock>,
    of: Option<&MarkerLock>,
) -> Result<JanitorAction> {
    let facts = collect_facts(bucket, settings, hash, of).await?;
    let verdict = decide_action(&facts);
    let worker = of.map(|lock| lock.worker.clone());
    match verdict {
        SweepDecision::Clear => {
            bucket.clear_markers(hash).await?;
            bucket.engine.delete(&failed_key(hash)).await?;
            if facts.done {
                bucket.forget_artefacts(hash).await;
            }
        }
        SweepDecision::Bury { priority, runs } => {
            let marker = build_marker(bucket, hash, worker.as_deref(), runs).await?;
            let why = marker.last_error.clone().unwrap_or_else(|| SILENT.to_owned());
            bucket
                .dead_letter(hash, priority, marker, DeadLetterReason::new(EXCEEDED, &why))
                .await?;
        }
        SweepDecision::Withdraw { priority, runs } => {
            let marker = build_marker(bucket, hash, worker.as_deref(), runs).await?;
            bucket.dead_letter(hash, priority, marker, DeadLetterReason::WITHDRAWN).await?;
        }
        SweepDecision::Queue { priority, runs } => {
            let marker = build_marker(bucket, hash, worker.as_deref(), runs).await?;
            bucket.engine.write(&todo_key(priority, hash), &marker).await?;
            bucket.engine.delete(&failed_key(hash)).await?;
        }
        SweepDecision::Remove => {
            remove_all(bucket, hash).await?;
        }
        SweepDecision::Forget => {}
    }
    bucket.engine.release_lock(&mut held).await?;
    Ok(action_line(hash, worker, verdict))
}

/// The error recorded for a run whose worker stopped renewing its lock.
const SILENT: &str = "its worker stopped renewing its lock";

/// Builds the new marker from the most urgent one, the failure mark, and the current event.
async fn build_marker(
    bucket: &BlobForgeBucket,
    hash: &str,
    silent: Option<&str>,
    runs: u32,
) -> Result<QueueMarker> {
    let markers = bucket.find_markers(hash).await?;
    let failed =
        bucket.engine.read::<FailedMarker>(&failed_key(hash)).await?.map(|seen| seen.value);
    let unmarked = failed.is_none() && markers.is_empty();
    let mut marker = markers.into_iter().next().map(|(_, seen)| seen.value).unwrap_or_default();
    let now = bucket.engine.now().await?;
    if unmarked {
        let found = bucket.find_extension(hash).await?;
        marker.past.extension = found.filter(|extension| extension != "pdf");
    }
    if marker.queued_at == 0 {
        marker.queued_at = now;
    }
    if let Some(failed) = failed {
        let (past, before) = (&mut marker.past, failed.past);
        if past.history.len() < before.history.len() {
            past.history = before.history;
        }
        past.extension = past.extension.take().or(before.extension);
        marker.last_error = Some(failed.error);
        marker.recovered_from = Some(failed.worker);
    }
    if let Some(worker) = silent {
        let failure = RecordedFailure {
            at: format_rfc3339(now),
            worker: worker.to_owned(),
            run: runs,
            error: SILENT.to_owned(),
        };
        append_failure(&mut marker.past.history, failure);
        marker.last_error = Some(SILENT.to_owned());
        marker.recovered_from = Some(worker.to_owned());
    }
    marker.retries = runs;
    Ok(marker)
}

/// Collects a document's objects, besides the lock in question.
async fn collect_facts(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    hash: &str,
    abandoned: Option<&MarkerLock>,
) -> Result<DocumentFacts> {
    let (out, dead, failed) = (out_key(hash), dead_key(hash), failed_key(hash));
    let lock = lock_key(hash);
    let (done, dead, failed, locked, markers) = tokio::try_join!(
        bucket.engine.exists(&out),
        bucket.engine.exists(&dead),
        bucket.engine.read::<FailedMarker>(&failed),
        bucket.engine.exists(&lock),
        bucket.find_markers(hash),
    )?;
    let failed = failed.map(|seen| seen.value);
    let marked = failed.is_some() || !markers.is_empty();
    let raw = marked || bucket.find_extension(hash).await?.is_some();
    let named = failed.as_ref().and_then(|failed| failed.priority.as_deref());
    let named = named.or(abandoned.map(|lock| lock.priority.as_str()));
    let runs = markers.iter().map(|(_, seen)| seen.value.retries).max();
    Ok(DocumentFacts {
        done,
        dead,
        locked,
        raw,
        marker: markers.first().map(|(priority, _)| *priority),
        named: named.and_then(Priority::from_blobforge_key).unwrap_or(Priority::Normal),
        counted: runs.unwrap_or_default(),
        failed: failed.map(|failed| failed.run_count()),
        abandoned: abandoned.map(MarkerLock::run_count),
        withdrawn: abandoned.is_some_and(|lock| lock.cancel),
        removing: abandoned.is_some_and(|lock| lock.removing),
        max: settings.max_retries,
    })
}

fn action_line(hash: &str, worker: Option<String>, verdict: SweepDecision) -> JanitorAction {
    let (act, runs) = match verdict {
        SweepDecision::Clear => ("finished", 0),
        SweepDecision::Bury { runs, .. } | SweepDecision::Withdraw { runs, .. } => ("dead", runs),
        SweepDecision::Queue { runs, .. } => ("queued", runs),
        SweepDecision::Remove => ("removed", 0),
        SweepDecision::Forget => ("forgotten", 0),
    };
    JanitorAction { hash: hash.to_owned(), worker, act, runs }
}
