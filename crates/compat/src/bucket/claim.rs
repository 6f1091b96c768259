//! Claims a document, renews its lock, and ends its run.
//!
//! Claiming takes the lock, checks again everything that the listing may have had wrong, and counts
//! the run. Each end renews the lock first, so that a worker that lost it changes nothing. Then it
//! writes the new objects before it removes the old: after a crash in between the next check ends
//! the document the same way.

use super::dead_letter_reason::DeadLetterReason;
use super::worker_identity::WorkerIdentity;
use super::{BlobForgeBucket, BucketSettings, format_rfc3339};
use crate::objects::blobforge::records::{
    EXCEEDED, FailedMarker, LockProgress, MarkerLock, QueueMarker, RecordedFailure, append_failure,
};
use crate::objects::blobforge::{dead_key, failed_key, out_key, todo_key};
use crate::objects::engine::ObjectLock;
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_storage::PutResult;
use docmill_worker::runner::JobEnd;

/// A marker that a listing has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerCandidate {
    /// The priority under which the marker lies.
    pub priority: Priority,
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
}

/// A claimed document.
#[derive(Debug)]
pub struct BucketClaim {
    /// SHA-256 of the document's bytes, in hex.
    pub hash: String,
    /// The priority that its marker had.
    pub priority: Priority,
    /// Which run this is, from 1; counted in the marker.
    pub run: u32,
    /// The extension of its original's key.
    pub extension: String,
    pub(super) marker: QueueMarker,
    pub(super) held: ObjectLock<MarkerLock>,
}

/// How an attempt to take a document ended.
#[derive(Debug)]
pub enum BucketClaimResult {
    /// The document is claimed by us.
    Ours(Box<BucketClaim>),
    /// Another worker holds the document's lock.
    Busy,
    /// Nothing to do: finished, dead, or without a marker.
    Settled,
}

/// The result of renewing a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockRenewal {
    /// The lock was renewed.
    Ours,
    /// Still held, but an operator has cancelled the document.
    Cancelled,
    /// Another worker's, or gone: stop, and touch nothing.
    Lost,
}

/// Tries to take the document.
///
/// # Errors
/// Store errors. A lock that was taken is released before.
pub async fn claim_document(
    bucket: &BlobForgeBucket,
    who: &WorkerIdentity,
    settings: &BucketSettings,
    candidate: &MarkerCandidate,
) -> Result<BucketClaimResult> {
    let now = bucket.engine.now().await?;
    let mut lock = MarkerLock::new(&who.id, candidate.priority.blobforge_key(), now);
    lock.instance.clone_from(&who.instance);
    // A lock that was abandoned is the janitor's: it is seen in a listing, not by trying.
    let locking = bucket.queue.try_lock(&candidate.hash, lock);
    let Some(mut held) = guard_call(FailureSeam::Claim, locking).await? else {
        return Ok(BucketClaimResult::Busy);
    };
    let begun = begin_run(bucket, settings, candidate, &mut held).await;
    let Some((held, BegunRun { run, marker })) = bucket.queue.keep_or_release(held, begun).await?
    else {
        return Ok(BucketClaimResult::Settled);
    };
    let extension = marker.past.extension.clone().unwrap_or_else(|| "pdf".to_owned());
    let (hash, priority) = (candidate.hash.clone(), candidate.priority);
    Ok(BucketClaimResult::Ours(Box::new(BucketClaim {
        hash,
        priority,
        run,
        extension,
        marker,
        held,
    })))
}

struct BegunRun {
    run: u32,
    marker: QueueMarker,
}

/// Under the lock: is there still something to do? If so, counts the run.
async fn begin_run(
    bucket: &BlobForgeBucket,
    settings: &BucketSettings,
    candidate: &MarkerCandidate,
    held: &mut ObjectLock<MarkerLock>,
) -> Result<Option<BegunRun>> {
    let MarkerCandidate { priority, hash } = candidate;
    let key = todo_key(*priority, hash);
    let (out, dead, failed) = (out_key(hash), dead_key(hash), failed_key(hash));
    let (marker, done, dead, failed) = tokio::try_join!(
        bucket.engine.read::<QueueMarker>(&key),
        bucket.engine.exists(&out),
        bucket.engine.exists(&dead),
        bucket.engine.read::<FailedMarker>(&failed),
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
    // BlobForge does not update the marker of a failed document, so its failure mark may count
    // more.
    let before = marker.value.retries.max(failed.map_or(0, |failed| failed.value.run_count()));
    if before >= settings.max_retries {
        let mut marker = marker.value;
        marker.retries = before;
        bucket
            .dead_letter(
                hash,
                *priority,
                marker,
                DeadLetterReason::new(EXCEEDED, "begun too often"),
            )
            .await?;
        return Ok(None);
    }
    let counted = bucket
        .queue
        .count_under_lock(hash, *priority, |old: QueueMarker| {
            Some(QueueMarker { retries: before.saturating_add(1), ..old })
        })
        .await?;
    let Some(marker) = counted else { return Ok(None) };
    let run = marker.retries;
    let renewing = bucket.engine.renew_lock(held, |lock| {
        (lock.retries, lock.run) = (before, Some(run));
        lock.progress =
            Some(LockProgress { stage: "fetching".to_owned(), ..LockProgress::default() });
    });
    match renewing.await {
        Ok(ours) => Ok(ours.then_some(BegunRun { run, marker })),
        Err(error) => {
            // An outage of the store is to cost no document one of its runs.
            if let Err(second) = uncount_run(bucket, hash, before, "could not be begun").await {
                tracing::warn!(error = %second, "an unstarted run remains counted: {second}");
            }
            Err(error)
        }
    }
}

/// Takes back what was counted of a run, under the lock: `before` are those before it.
async fn uncount_run(bucket: &BlobForgeBucket, hash: &str, before: u32, why: &str) -> Result<()> {
    for (priority, _) in bucket.find_markers(hash).await? {
        bucket
            .engine
            .change(&todo_key(priority, hash), |marker: &QueueMarker| {
                let mut marker = marker.clone();
                marker.retries = marker.retries.min(before);
                marker.recovered_from = Some(why.to_owned());
                Some(marker)
            })
            .await?;
    }
    Ok(())
}

impl BucketClaim {
    /// Renews the lock and writes into it how far the work is.
    ///
    /// # Errors
    /// Store errors: the lock may still be held, and should be renewed soon.
    pub async fn renew(&mut self, bucket: &BlobForgeBucket, stage: &str) -> Result<LockRenewal> {
        let now = bucket.engine.now().await?;
        let renewing = bucket.engine.renew_lock(&mut self.held, |lock| {
            lock.last_heartbeat = now;
            let progress = lock.progress.get_or_insert_default();
            stage.clone_into(&mut progress.stage);
            progress.elapsed_seconds = now.saturating_sub(lock.started) / 1000;
        });
        let ours = guard_call(FailureSeam::Lease, renewing).await?;
        Ok(match ours {
            true if self.held.lease().cancel => LockRenewal::Cancelled,
            true => LockRenewal::Ours,
            false => LockRenewal::Lost,
        })
    }

    /// Publishes the result, unless there is one already.
    ///
    /// # Errors
    /// Store errors; the end may be tried again.
    pub async fn publish(
        &mut self,
        bucket: &BlobForgeBucket,
        archive: bytes::Bytes,
    ) -> Result<JobEnd> {
        if self.renew(bucket, "publishing").await? == LockRenewal::Lost {
            return Ok(JobEnd::Lost);
        }
        let out = out_key(&self.hash);
        let putting = bucket.engine.store().put_if_absent(&out, archive);
        let put = guard_call(FailureSeam::ResultWrite, putting).await?;
        if put == PutResult::Refused {
            tracing::info!(document = self.hash, "a result existed already and was kept");
        }
        guard_call(FailureSeam::Delete, bucket.clear_markers(&self.hash)).await?;
        bucket.engine.delete(&failed_key(&self.hash)).await?;
        bucket.forget_artefacts(&self.hash).await;
        guard_call(FailureSeam::Unlock, bucket.engine.release_lock(&mut self.held)).await?;
        Ok(JobEnd::Done)
    }

    /// Notes a failure: tried again later, or given up after the last run.
    ///
    /// # Errors
    /// As [`BucketClaim::publish`].
    pub async fn fail(
        &mut self,
        bucket: &BlobForgeBucket,
        error: &str,
        max: u32,
    ) -> Result<JobEnd> {
        if let Some(end) = self.renew_for_another_run(bucket, "failing").await? {
            return Ok(end);
        }
        let now = bucket.engine.now().await?;
        let marker = self.with_failure(now, error);
        if self.run >= max {
            bucket
                .dead_letter(
                    &self.hash,
                    self.priority,
                    marker,
                    DeadLetterReason::new(EXCEEDED, error),
                )
                .await?;
            bucket.engine.release_lock(&mut self.held).await?;
            return Ok(JobEnd::Dead);
        }
        // An operator may have moved the marker meanwhile.
        let markers = bucket.find_markers(&self.hash).await?;
        let priority = markers.first().map_or(self.priority, |(priority, _)| *priority);
        let failed = FailedMarker {
            error: error.to_owned(),
            worker: self.held.lease().worker.clone(),
            failed_at: format_rfc3339(now),
            timestamp: now,
            retries: self.run.saturating_sub(1),
            priority: Some(priority.blobforge_key().to_owned()),
            past: marker.past,
            rest: serde_json::Map::new(),
        };
        bucket.engine.write(&failed_key(&self.hash), &failed).await?;
        bucket.clear_markers(&self.hash).await?;
        bucket.engine.release_lock(&mut self.held).await?;
        Ok(JobEnd::Failed)
    }

    /// Gives the document up: it is itself at fault, and another run would end the same way.
    ///
    /// # Errors
    /// As [`BucketClaim::publish`].
    pub async fn refuse(
        &mut self,
        bucket: &BlobForgeBucket,
        code: &str,
        detail: &str,
    ) -> Result<JobEnd> {
        self.dead_letter(bucket, code, detail)
            .await
            .map(|ours| if ours { JobEnd::Dead } else { JobEnd::Lost })
    }

    /// Gives the document up because an operator asked for it.
    ///
    /// # Errors
    /// As [`BucketClaim::publish`].
    pub async fn withdraw(&mut self, bucket: &BlobForgeBucket) -> Result<JobEnd> {
        let DeadLetterReason { reason, detail } = DeadLetterReason::WITHDRAWN;
        let ours = self.dead_letter(bucket, reason, detail).await?;
        Ok(if ours { JobEnd::Cancelled } else { JobEnd::Lost })
    }

    /// Renews the lock for an end that allows another run. If an operator has cancelled the
    /// document meanwhile, it becomes dead instead.
    async fn renew_for_another_run(
        &mut self,
        bucket: &BlobForgeBucket,
        stage: &str,
    ) -> Result<Option<JobEnd>> {
        Ok(match self.renew(bucket, stage).await? {
            LockRenewal::Ours => None,
            LockRenewal::Cancelled => Some(self.withdraw(bucket).await?),
            LockRenewal::Lost => Some(JobEnd::Lost),
        })
    }

    /// Releases the document as if it had not been begun.
    ///
    /// # Errors
    /// As [`BucketClaim::publish`].
    pub async fn return_document(&mut self, bucket: &BlobForgeBucket, why: &str) -> Result<JobEnd> {
        if let Some(end) = self.renew_for_another_run(bucket, "giving back").await? {
            return Ok(end);
        }
        uncount_run(bucket, &self.hash, self.run.saturating_sub(1), why).await?;
        bucket.engine.release_lock(&mut self.held).await?;
        Ok(JobEnd::GivenBack)
    }

    async fn dead_letter(
        &mut self,
        bucket: &BlobForgeBucket,
        reason: &str,
        detail: &str,
    ) -> Result<bool> {
        if self.renew(bucket, "giving up").await? == LockRenewal::Lost {
            return Ok(false);
        }
        let now = bucket.engine.now().await?;
        let marker = self.with_failure(now, detail);
        let why = DeadLetterReason::new(reason, detail);
        bucket.dead_letter(&self.hash, self.priority, marker, why).await?;
        bucket.engine.release_lock(&mut self.held).await?;
        Ok(true)
    }

    fn with_failure(&self, now: u64, error: &str) -> QueueMarker {
        let worker = self.held.lease().worker.clone();
        let failure = RecordedFailure {
            at: format_rfc3339(now),
            worker,
            run: self.run,
            error: error.to_owned(),
        };
        let mut marker = self.marker.clone();
        append_failure(&mut marker.past.history, failure);
        marker
    }
}
