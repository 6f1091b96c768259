//! What operators change. Each change is made under the document's lock, so that no worker takes
//! it up meanwhile; a document that is worked on is left to its worker.

use serde::Serialize;

use super::convert::kept_as;
use super::end::GivenUp;
use super::manifest::Manifest;
use super::{Bucket, Settings};
use crate::fault::{Fault, Result};
use crate::model::Priority;
use crate::ops::object_ledger::erase_artefacts;
use crate::queue::objects::blobforge::records::{CANCELLED, Dead, Failed, Lock, Marker};
use crate::queue::objects::blobforge::{RAW, dead_key, failed_key, lock_key, out_key, todo_key};
use crate::queue::objects::engine::Held;

/// What became of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Which.
    pub hash: String,
    /// What was done (or would be).
    pub change: Change,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It waits (again).
    Queued,
    /// It waits with another priority.
    Moved,
    /// It was given up.
    Cancelled,
    /// Its worker was told to stop.
    Asked,
    /// There is nothing of it any more.
    Removed,
    /// Somebody works on it.
    Busy,
    /// There was nothing to do.
    Nothing,
}

/// The operator's name in locks.
const OPERATOR: &str = "operator";

async fn lock_for_operator(bucket: &Bucket, hash: &str) -> Result<Option<Held<Lock>>> {
    let lock = Lock::new(OPERATOR, "", bucket.engine.now().await?);
    bucket.queue.try_lock(hash, lock).await
}

/// Does something under the lock and gives it back, whatever comes of it.
async fn under_lock<F>(bucket: &Bucket, hash: &str, work: F) -> Result<Changed>
where
    F: AsyncFnOnce() -> Result<Change>,
{
    let Some(mut held) = lock_for_operator(bucket, hash).await? else {
        return Ok(changed(hash, Change::Busy));
    };
    let done = work().await;
    bucket.engine.release(&mut held).await?;
    Ok(changed(hash, done?))
}

fn changed(hash: &str, change: Change) -> Changed {
    Changed { hash: hash.to_owned(), change }
}

/// Puts a failed or given-up document back among those that wait: with the priority it had or the
/// one that is named, and begun once more, or as if never begun (`reset`).
///
/// # Errors
/// The store's.
pub async fn retry(
    bucket: &Bucket,
    settings: &Settings,
    hash: &str,
    priority: Option<Priority>,
    reset: bool,
) -> Result<Changed> {
    under_lock(bucket, hash, async || {
        let (failed, dead) = (failed_key(hash), dead_key(hash));
        let failed = bucket.engine.read::<Failed>(&failed).await?.map(|seen| seen.value);
        let dead = bucket.engine.read::<Dead>(&dead).await?.map(|seen| seen.value);
        let (runs, before, marker) = match (failed, dead) {
            (_, Some(dead)) => (dead.total_retries, dead.priority.clone(), of_dead(dead)),
            (Some(failed), None) => (failed.runs(), failed.priority.clone(), of_failed(failed)),
            (None, None) => return Ok(Change::Nothing),
        };
        // With nothing reset there is one run left.
        let runs = if reset { 0 } else { runs.min(settings.max_retries.saturating_sub(1)) };
        let before = before.as_deref().and_then(Priority::from_blobforge_key);
        let priority = priority.or(before).unwrap_or(Priority::Normal);
        let marker = Marker { retries: runs, queued_at: bucket.engine.now().await?, ..marker };
        bucket.clear_markers(hash).await?;
        bucket.engine.write(&todo_key(priority, hash), &marker).await?;
        bucket.engine.delete(&failed_key(hash)).await?;
        bucket.engine.delete(&dead_key(hash)).await?;
        Ok(Change::Queued)
    })
    .await
}

fn of_dead(dead: Dead) -> Marker {
    let Dead { error, past, .. } = dead;
    Marker { last_error: Some(error), past, ..Marker::default() }
}

fn of_failed(failed: Failed) -> Marker {
    let Failed { error, past, .. } = failed;
    Marker { last_error: Some(error), past, ..Marker::default() }
}

/// Moves a document that waits.
///
/// # Errors
/// The store's.
pub async fn reprioritize(bucket: &Bucket, hash: &str, to: Priority) -> Result<Changed> {
    under_lock(bucket, hash, async || {
        let markers = bucket.markers(hash).await?;
        let Some((from, seen)) = markers.first() else { return Ok(Change::Nothing) };
        if *from == to && markers.len() == 1 {
            return Ok(Change::Nothing);
        }
        bucket.engine.write(&todo_key(to, hash), &seen.value).await?;
        for (priority, _) in markers.iter().filter(|(priority, _)| *priority != to) {
            bucket.engine.delete(&todo_key(*priority, hash)).await?;
        }
        Ok(Change::Moved)
    })
    .await
}

/// Gives up a document that waits or failed; the worker of one in work is told by a note in its
/// lock, which it sees at its next heartbeat. BlobForge's workers do not know such notes.
///
/// # Errors
/// The store's.
pub async fn cancel(bucket: &Bucket, hash: &str) -> Result<Changed> {
    let done = under_lock(bucket, hash, async || withdraw(bucket, hash).await).await?;
    if done.change != Change::Busy {
        return Ok(done);
    }
    let note = |lock: &Lock| (!lock.cancel).then(|| Lock { cancel: true, ..lock.clone() });
    let noted = bucket.engine.change(&lock_key(hash), note).await?;
    Ok(changed(hash, if noted.is_some() { Change::Asked } else { Change::Busy }))
}

/// Under the operator's own lock.
async fn withdraw(bucket: &Bucket, hash: &str) -> Result<Change> {
    let ended = bucket.engine.exists(&out_key(hash)).await?
        || bucket.engine.exists(&dead_key(hash)).await?;
    let markers = bucket.markers(hash).await?;
    let failed = bucket.engine.read::<Failed>(&failed_key(hash)).await?;
    let marker = markers.into_iter().next().map(|(priority, seen)| (priority, seen.value));
    let marker = marker.or(failed.map(|failed| {
        let runs = failed.value.runs();
        (Priority::Normal, Marker { retries: runs, ..of_failed(failed.value) })
    }));
    let Some((priority, marker)) = marker.filter(|_| !ended) else { return Ok(Change::Nothing) };
    let why = GivenUp::new(CANCELLED, "withdrawn by an operator");
    bucket.bury(hash, priority, marker, why).await?;
    Ok(Change::Cancelled)
}

/// Removes everything there is of a document: original, result, marks, what was kept of earlier
/// runs, its place in the manifest.
/// One that is worked on is left alone unless `force`: then its worker loses it.
///
/// # Errors
/// The store's.
pub async fn remove(bucket: &Bucket, hash: &str, force: bool) -> Result<Changed> {
    let held = match lock_for_operator(bucket, hash).await? {
        None if force => seize(bucket, hash).await?,
        held => held,
    };
    let Some(mut held) = held else { return Ok(changed(hash, Change::Busy)) };
    let done = remove_all(bucket, hash).await;
    bucket.engine.release(&mut held).await?;
    done.map(|change| changed(hash, change))
}

async fn seize(bucket: &Bucket, hash: &str) -> Result<Option<Held<Lock>>> {
    let Some(seen) = bucket.queue.read_lock(hash).await? else {
        return lock_for_operator(bucket, hash).await;
    };
    let lock = Lock::new(OPERATOR, "", bucket.engine.now().await?);
    bucket.queue.take_over(hash, &seen.etag, lock).await
}

async fn remove_all(bucket: &Bucket, hash: &str) -> Result<Change> {
    let originals = bucket.engine.list_all(&format!("{RAW}{hash}.")).await?;
    let done = bucket.engine.exists(&out_key(hash)).await?;
    let dead = bucket.engine.exists(&dead_key(hash)).await?;
    let marked =
        !bucket.markers(hash).await?.is_empty() || bucket.engine.exists(&failed_key(hash)).await?;
    let known = match Manifest::load(bucket).await {
        Ok(manifest) => manifest.entries.contains_key(hash),
        // What is no manifest names nothing; a rebuild will not find the original any more.
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
    erase_artefacts(bucket.engine.store(), kept_as(hash)).await?;
    if known {
        Manifest::forget(bucket, hash).await?;
    }
    let any = done || dead || marked || known || !originals.is_empty();
    Ok(if any { Change::Removed } else { Change::Nothing })
}
