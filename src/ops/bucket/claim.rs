//! Taking a document: the lock first, then a second look at everything the listing may have been
//! wrong about, then the count.

use super::who::Who;
use super::{Bucket, Settings};
use crate::fault::Result;
use crate::queue::objects::blobforge::records::{EXCEEDED, Failed, Lock, Marker, Progress};
use crate::queue::objects::blobforge::{
    Priority, dead_key, failed_key, lock_key, out_key, todo_key,
};
use crate::queue::objects::engine::Held;

/// A marker of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it waits.
    pub priority: Priority,
    /// Which document.
    pub hash: String,
}

/// A document that is ours to convert.
#[derive(Debug)]
pub struct Claim {
    /// Which.
    pub hash: String,
    /// Where its marker was.
    pub priority: Priority,
    /// Which run this is, from 1; counted in the marker.
    pub run: u32,
    /// The extension of its original's key.
    pub extension: String,
    pub(super) marker: Marker,
    pub(super) held: Held<Lock>,
}

/// How an attempt to take a document ended.
#[derive(Debug)]
pub enum Claimed {
    /// It is ours.
    Ours(Box<Claim>),
    /// Somebody else has its lock.
    Busy,
    /// Nothing is to be done: it is done, given up, or its marker is gone.
    Settled,
}

/// What a renewal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Still ours.
    Ours,
    /// Still ours, but an operator wants the work to stop.
    Cancelled,
    /// Somebody else's, or gone: stop, and touch nothing.
    Lost,
}

/// Tries to take the document.
///
/// # Errors
/// The store's. A lock that was taken is given back before.
pub async fn claim(
    bucket: &Bucket,
    who: &Who,
    settings: &Settings,
    candidate: &Candidate,
) -> Result<Claimed> {
    let now = bucket.engine.now().await?;
    let mut lock = Lock::new(&who.id, candidate.priority.code(), now);
    lock.instance.clone_from(&who.instance);
    // A lock that was abandoned is the janitor's: it is seen in a listing, not by trying.
    let key = lock_key(&candidate.hash);
    let Some(mut held) = bucket.engine.take(&key, lock).await? else { return Ok(Claimed::Busy) };
    match begin(bucket, settings, candidate, &mut held).await {
        Ok(Some(begun)) => {
            let Begun { run, marker } = begun;
            let extension = marker.past.extension.clone().unwrap_or_else(|| "pdf".to_owned());
            let (hash, priority) = (candidate.hash.clone(), candidate.priority);
            Ok(Claimed::Ours(Box::new(Claim { hash, priority, run, extension, marker, held })))
        }
        Ok(None) => {
            bucket.engine.release(&mut held).await?;
            Ok(Claimed::Settled)
        }
        Err(error) => {
            if let Err(second) = bucket.engine.release(&mut held).await {
                tracing::warn!(error = %second, "a lock stays until it is abandoned: {second}");
            }
            Err(error)
        }
    }
}

struct Begun {
    run: u32,
    marker: Marker,
}

/// Under the lock: is there still something to do? If so, counts the run.
async fn begin(
    bucket: &Bucket,
    settings: &Settings,
    candidate: &Candidate,
    held: &mut Held<Lock>,
) -> Result<Option<Begun>> {
    let Candidate { priority, hash } = candidate;
    let key = todo_key(*priority, hash);
    let (out, dead, failed) = (out_key(hash), dead_key(hash), failed_key(hash));
    let (marker, done, dead, failed) = tokio::try_join!(
        bucket.engine.read::<Marker>(&key),
        bucket.engine.exists(&out),
        bucket.engine.exists(&dead),
        bucket.engine.read::<Failed>(&failed),
    )?;
    let Some(marker) = marker else { return Ok(None) };
    if done || dead {
        // Converted or given up while this marker lay in an old listing, or by a worker that died
        // before it could remove the marker.
        bucket.clear_markers(hash).await?;
        bucket.engine.delete(&failed_key(hash)).await?;
        if done {
            bucket.forget_artefacts(hash).await;
        }
        return Ok(None);
    }
    // BlobForge leaves the marker of a failed document as it was, so its mark may know more.
    let before = marker.value.retries.max(failed.map_or(0, |failed| failed.value.runs()));
    if before >= settings.max_retries {
        let mut marker = marker.value;
        marker.retries = before;
        bucket.bury(hash, *priority, marker, (EXCEEDED, "begun too often")).await?;
        return Ok(None);
    }
    let count = |old: &Marker| Some(Marker { retries: before.saturating_add(1), ..old.clone() });
    let Some(marker) = bucket.engine.change(&key, count).await? else { return Ok(None) };
    let run = marker.retries;
    let ours = bucket
        .engine
        .renew(held, |lock| {
            (lock.retries, lock.run) = (before, Some(run));
            lock.progress = Some(Progress { stage: "fetching".to_owned(), ..Progress::default() });
        })
        .await?;
    Ok(ours.then_some(Begun { run, marker }))
}

impl Claim {
    /// Keeps the lock for another while and says how far the work is.
    ///
    /// # Errors
    /// The store's: the lock may still be ours, and is to be renewed soon.
    pub async fn beat(&mut self, bucket: &Bucket, stage: &str) -> Result<Kept> {
        let now = bucket.engine.now().await?;
        let ours = bucket
            .engine
            .renew(&mut self.held, |lock| {
                lock.last_heartbeat = now;
                let progress = lock.progress.get_or_insert_default();
                stage.clone_into(&mut progress.stage);
                progress.elapsed_seconds = now.saturating_sub(lock.started) / 1000;
            })
            .await?;
        Ok(match ours {
            true if self.held.lease().cancel => Kept::Cancelled,
            true => Kept::Ours,
            false => Kept::Lost,
        })
    }
}
