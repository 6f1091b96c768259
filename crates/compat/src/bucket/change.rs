//! Operators' changes. Each is made under the document's lock, so that no worker claims the
//! document meanwhile; a running document is left to its worker.

use serde::Serialize;

use super::convert::artefact_id;
use super::dead_letter_reason::DeadLetterReason;
use super::manifest::BucketManifest;
use super::{BlobForgeBucket, BucketSettings};
use crate::object_ledger::erase_artefacts;
use crate::objects::blobforge::records::{
    DeadMarker, DocumentHistory, FailedMarker, MarkerLock, QueueMarker,
};
use crate::objects::blobforge::{RAW, dead_key, failed_key, lock_key, out_key, todo_key};
use crate::objects::engine::ObjectLock;
use docmill_core::fault::{Fault, Result};
use docmill_core::model::Priority;

/// The result of an operator's change to one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BucketChange {
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
    /// The action taken (or, in a dry run, to be taken).
    pub change: BucketAction,
}

/// The effect of an operator's change on a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketAction {
    /// The document waits (again).
    Queued,
    /// The document waits with another priority.
    Moved,
    /// The document was given up.
    Cancelled,
    /// Its worker was asked to stop.
    Asked,
    /// There is nothing of it any more.
    Removed,
    /// Not changed, because a worker holds the lock.
    Busy,
    /// Nothing was changed, because there was nothing to do.
    Nothing,
}

/// The operator's name in locks.
const OPERATOR: &str = "operator";

async fn lock_for_operator(
    bucket: &BlobForgeBucket,
    hash: &str,
) -> Result<Option<ObjectLock<MarkerLock>>> {
    bucket.queue.try_lock(hash, operator_lock(bucket).await?).await
}

async fn operator_lock(bucket: &BlobForgeBucket) -> Result<MarkerLock> {
    Ok(MarkerLock::new(OPERATOR, "", bucket.engine.now().await?))
}

/// Takes the lock, runs the change, and releases the lock whatever the result.
async fn run_locked<F>(bucket: &BlobForgeBucket, hash: &str, work: F) -> Result<BucketChange>
where
    F: AsyncFnOnce() -> Result<BucketAction>,
{
    let Some(mut held) = lock_for_operator(bucket, hash).await? else {
        return Ok(change_line(hash, BucketAction::Busy));
    };
    let done = work().await;
    bucket.engine.release_lock(&mut held).await?;
    Ok(change_line(hash, done?))
}

fn change_line(hash: &str, change: BucketAction) -> BucketChange {
    BucketChange { hash: hash.to_owned(), change }
}

/// Requeues a failed or dead document: at its former priority or the given one, for one more run,
/// or with its count reset (`reset`). An original without markers (its ingestion was interrupted)
/// is queued too.
///
/// # Errors
/// Store errors.
pub async fn retry_document(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    hash: &str,
    priority: Option<Priority>,
    reset: bool,
) -> Result<BucketChange> {
    run_locked(bucket, hash, async || {
        let (failed, dead) = (failed_key(hash), dead_key(hash));
        let failed = bucket.engine.read::<FailedMarker>(&failed).await?.map(|seen| seen.value);
        let dead = bucket.engine.read::<DeadMarker>(&dead).await?.map(|seen| seen.value);
        let (runs, before, marker) = match (failed, dead) {
            (_, Some(dead)) => (dead.total_retries, dead.priority.clone(), marker_from_dead(dead)),
            (Some(failed), None) => {
                (failed.run_count(), failed.priority.clone(), marker_from_failed(failed))
            }
            (None, None) => match mark_original(bucket, hash).await? {
                Some(marker) => (0, None, marker),
                None => return Ok(BucketAction::Nothing),
            },
        };
        // With nothing reset there is one run left.
        let runs = if reset { 0 } else { runs.min(settings.max_retries.saturating_sub(1)) };
        let before = before.as_deref().and_then(Priority::from_blobforge_key);
        let priority = priority.or(before).unwrap_or(Priority::Normal);
        let marker = QueueMarker { retries: runs, queued_at: bucket.engine.now().await?, ..marker };
        bucket.clear_markers(hash).await?;
        bucket.engine.write(&todo_key(priority, hash), &marker).await?;
        bucket.engine.delete(&failed_key(hash)).await?;
        bucket.engine.delete(&dead_key(hash)).await?;
        Ok(BucketAction::Queued)
    })
    .await
}

/// A marker for an original that has no mark at all; `None` if there is a mark, or no original.
async fn mark_original(bucket: &BlobForgeBucket, hash: &str) -> Result<Option<QueueMarker>> {
    if bucket.engine.exists(&out_key(hash)).await? || bucket.queue.has_marker(hash).await? {
        return Ok(None);
    }
    let Some(extension) = bucket.find_extension(hash).await? else { return Ok(None) };
    let extension = Some(extension).filter(|extension| extension != "pdf");
    let past = DocumentHistory { extension, ..DocumentHistory::default() };
    Ok(Some(QueueMarker { past, ..QueueMarker::default() }))
}

fn marker_from_dead(dead: DeadMarker) -> QueueMarker {
    let DeadMarker { error, past, .. } = dead;
    QueueMarker { last_error: Some(error), past, ..QueueMarker::default() }
}

fn marker_from_failed(failed: FailedMarker) -> QueueMarker {
    let FailedMarker { error, past, .. } = failed;
    QueueMarker { last_error: Some(error), past, ..QueueMarker::default() }
}

/// Moves a document that waits.
///
/// # Errors
/// Store errors.
pub async fn reprioritize_document(
    bucket: &BlobForgeBucket,
    hash: &str,
    to: Priority,
) -> Result<BucketChange> {
    run_locked(bucket, hash, async || {
        let markers = bucket.find_markers(hash).await?;
        let Some((from, seen)) = markers.first() else { return Ok(BucketAction::Nothing) };
        if *from == to && markers.len() == 1 {
            return Ok(BucketAction::Nothing);
        }
        bucket.engine.write(&todo_key(to, hash), &seen.value).await?;
        for (priority, _) in markers.iter().filter(|(priority, _)| *priority != to) {
            bucket.engine.delete(&todo_key(*priority, hash)).await?;
        }
        Ok(BucketAction::Moved)
    })
    .await
}

/// Cancels a waiting or failed document. A running document's worker finds the note in its lock at
/// the next heartbeat, or when its run fails; if it has died, the janitor finds it. BlobForge's
/// workers ignore such notes.
///
/// # Errors
/// Store errors.
pub async fn cancel_document(bucket: &BlobForgeBucket, hash: &str) -> Result<BucketChange> {
    let done = run_locked(bucket, hash, async || withdraw_locked(bucket, hash).await).await?;
    if done.change != BucketAction::Busy {
        return Ok(done);
    }
    let note =
        |lock: &MarkerLock| (!lock.cancel).then(|| MarkerLock { cancel: true, ..lock.clone() });
    let noted = bucket.engine.change(&lock_key(hash), note).await?;
    Ok(change_line(hash, if noted.is_some() { BucketAction::Asked } else { BucketAction::Busy }))
}

/// Under the operator's own lock.
async fn withdraw_locked(bucket: &BlobForgeBucket, hash: &str) -> Result<BucketAction> {
    let ended = bucket.engine.exists(&out_key(hash)).await?
        || bucket.engine.exists(&dead_key(hash)).await?;
    let markers = bucket.find_markers(hash).await?;
    let failed = bucket.engine.read::<FailedMarker>(&failed_key(hash)).await?;
    let marker = markers.into_iter().next().map(|(priority, seen)| (priority, seen.value));
    let marker = marker.or(failed.map(|failed| {
        let runs = failed.value.run_count();
        (Priority::Normal, QueueMarker { retries: runs, ..marker_from_failed(failed.value) })
    }));
    let Some((priority, marker)) = marker.filter(|_| !ended) else {
        return Ok(BucketAction::Nothing);
    };
    bucket.dead_letter(hash, priority, marker, DeadLetterReason::WITHDRAWN).await?;
    Ok(BucketAction::Cancelled)
}

/// Removes a document completely: original, result, markers, artefacts, manifest entry. A running
/// one is refused unless `force`: then its worker loses it. The lock records the removal, so that
/// the janitor completes an interrupted one.
///
/// # Errors
/// Store errors.
pub async fn remove_document(
    bucket: &BlobForgeBucket,
    hash: &str,
    force: bool,
) -> Result<BucketChange> {
    let lock = MarkerLock { removing: true, ..operator_lock(bucket).await? };
    let held = match bucket.queue.try_lock(hash, lock.clone()).await? {
        None if force => seize_lock(bucket, hash, lock).await?,
        held => held,
    };
    let Some(mut held) = held else { return Ok(change_line(hash, BucketAction::Busy)) };
    let done = remove_all(bucket, hash).await;
    bucket.engine.release_lock(&mut held).await?;
    done.map(|change| change_line(hash, change))
}

async fn seize_lock(
    bucket: &BlobForgeBucket,
    hash: &str,
    lock: MarkerLock,
) -> Result<Option<ObjectLock<MarkerLock>>> {
    let Some(seen) = bucket.queue.read_lock(hash).await? else {
        return bucket.queue.try_lock(hash, lock).await;
    };
    bucket.queue.take_over(hash, &seen.etag, lock).await
}

/// Removes all objects of a document under a held lock; repeatable.
pub(super) async fn remove_all(bucket: &BlobForgeBucket, hash: &str) -> Result<BucketAction> {
    let originals = bucket.engine.list_all(&format!("{RAW}{hash}.")).await?;
    let done = bucket.engine.exists(&out_key(hash)).await?;
    let dead = bucket.engine.exists(&dead_key(hash)).await?;
    let marked = !bucket.find_markers(hash).await?.is_empty()
        || bucket.engine.exists(&failed_key(hash)).await?;
    let known = match BucketManifest::load(bucket).await {
        Ok(manifest) => manifest.entries.contains_key(hash),
        // An invalid manifest has no entry, and a rebuild will not find the original.
        Err(error) if error.fault == Fault::Rejected => false,
        Err(error) => return Err(error),
    };
    bucket.clear_markers(hash).await?;
    for key in [failed_key(hash), dead_key(hash), out_key(hash)] {
        bucket.engine.delete(&key).await?;
    }
    for original in &originals {
        bucket.engine.delete(&original.key).await?;
    }
    erase_artefacts(bucket.engine.store(), artefact_id(hash)).await?;
    if known {
        BucketManifest::remove_entry(bucket, hash).await?;
    }
    let any = done || dead || marked || known || !originals.is_empty();
    Ok(if any { BucketAction::Removed } else { BucketAction::Nothing })
}
