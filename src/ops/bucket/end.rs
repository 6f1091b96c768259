//! How a run ends. Each end renews the lock first, so that a worker that lost it changes nothing,
//! then writes what is new before it removes what is old: a crash in between leaves a document
//! that the next look ends the same way.

use super::claim::{Claim, Kept};
use super::{Bucket, stamp};
use crate::fault::Result;
use crate::queue::objects::blobforge::records::{
    CANCELLED, Dead, EXCEEDED, Failed, Failure, Marker, remember,
};
use crate::queue::objects::blobforge::{Priority, dead_key, failed_key, out_key, todo_key};
use crate::runner::JobEnd;
use crate::store::Put;

impl Claim {
    /// Publishes the result, unless there is one already.
    ///
    /// # Errors
    /// The store's; the end may be tried again.
    pub async fn publish(&mut self, bucket: &Bucket, archive: bytes::Bytes) -> Result<JobEnd> {
        if self.beat(bucket, "publishing").await? == Kept::Lost {
            return Ok(JobEnd::Lost);
        }
        let put = bucket.engine.store().put_if_absent(&out_key(&self.hash), archive).await?;
        if put == Put::Refused {
            tracing::info!(document = self.hash, "there was a result already; it stays");
        }
        bucket.clear_markers(&self.hash).await?;
        bucket.engine.delete(&failed_key(&self.hash)).await?;
        bucket.engine.release(&mut self.held).await?;
        Ok(JobEnd::Done)
    }

    /// Notes a failure: tried again later, or given up after the last run.
    ///
    /// # Errors
    /// As [`Claim::publish`].
    pub async fn fail(&mut self, bucket: &Bucket, error: &str, max: u32) -> Result<JobEnd> {
        if self.beat(bucket, "failing").await? == Kept::Lost {
            return Ok(JobEnd::Lost);
        }
        let now = bucket.engine.now().await?;
        let marker = self.with_failure(now, error);
        if self.run >= max {
            bucket.bury(&self.hash, self.priority, marker, (EXCEEDED, error)).await?;
            bucket.engine.release(&mut self.held).await?;
            return Ok(JobEnd::Dead);
        }
        // An operator may have moved the marker meanwhile.
        let markers = bucket.markers(&self.hash).await?;
        let priority = markers.first().map_or(self.priority, |(priority, _)| *priority);
        let failed = Failed {
            error: error.to_owned(),
            worker: self.held.lease().worker.clone(),
            failed_at: stamp(now),
            timestamp: now,
            retries: self.run.saturating_sub(1),
            priority: Some(priority.code().to_owned()),
            past: marker.past,
            rest: serde_json::Map::new(),
        };
        bucket.engine.write(&failed_key(&self.hash), &failed).await?;
        bucket.clear_markers(&self.hash).await?;
        bucket.engine.release(&mut self.held).await?;
        Ok(JobEnd::Failed)
    }

    /// Gives the document up: it is itself at fault, and another run would end the same way.
    ///
    /// # Errors
    /// As [`Claim::publish`].
    pub async fn refuse(&mut self, bucket: &Bucket, code: &str, detail: &str) -> Result<JobEnd> {
        self.give_up(bucket, code, detail)
            .await
            .map(|ours| if ours { JobEnd::Dead } else { JobEnd::Lost })
    }

    /// Gives the document up because an operator asked for it.
    ///
    /// # Errors
    /// As [`Claim::publish`].
    pub async fn withdraw(&mut self, bucket: &Bucket) -> Result<JobEnd> {
        let ours = self.give_up(bucket, CANCELLED, "withdrawn by an operator").await?;
        Ok(if ours { JobEnd::Cancelled } else { JobEnd::Lost })
    }

    /// Puts the document back as if it had not been begun.
    ///
    /// # Errors
    /// As [`Claim::publish`].
    pub async fn give_back(&mut self, bucket: &Bucket, why: &str) -> Result<JobEnd> {
        if self.beat(bucket, "giving back").await? == Kept::Lost {
            return Ok(JobEnd::Lost);
        }
        let before = self.run.saturating_sub(1);
        for (priority, _) in bucket.markers(&self.hash).await? {
            let uncounted = |marker: &Marker| {
                let mut marker = marker.clone();
                marker.retries = marker.retries.min(before);
                marker.recovered_from = Some(why.to_owned());
                Some(marker)
            };
            bucket.engine.change(&todo_key(priority, &self.hash), uncounted).await?;
        }
        bucket.engine.release(&mut self.held).await?;
        Ok(JobEnd::GivenBack)
    }

    async fn give_up(&mut self, bucket: &Bucket, reason: &str, detail: &str) -> Result<bool> {
        if self.beat(bucket, "giving up").await? == Kept::Lost {
            return Ok(false);
        }
        let now = bucket.engine.now().await?;
        let marker = self.with_failure(now, detail);
        bucket.bury(&self.hash, self.priority, marker, (reason, detail)).await?;
        bucket.engine.release(&mut self.held).await?;
        Ok(true)
    }

    fn with_failure(&self, now: u64, error: &str) -> Marker {
        let worker = self.held.lease().worker.clone();
        let failure = Failure { at: stamp(now), worker, run: self.run, error: error.to_owned() };
        let mut marker = self.marker.clone();
        remember(&mut marker.past.history, failure);
        marker
    }
}

impl Bucket {
    /// Writes the mark of what is given up, then removes what else there is of it; for the holder
    /// of the lock only. `why` is the reason and what went wrong.
    pub(super) async fn bury(
        &self,
        hash: &str,
        priority: Priority,
        marker: Marker,
        why: (&str, &str),
    ) -> Result<()> {
        let dead = Dead {
            error: why.1.to_owned(),
            moved_to_dead_at: stamp(self.engine.now().await?),
            total_retries: marker.retries,
            reason: why.0.to_owned(),
            priority: Some(priority.code().to_owned()),
            past: marker.past,
            rest: serde_json::Map::new(),
        };
        self.engine.write(&dead_key(hash), &dead).await?;
        self.clear_markers(hash).await?;
        self.engine.delete(&failed_key(hash)).await
    }
}
