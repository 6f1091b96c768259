//! The workers of a bucket, one object each below `registry/workers/`.
//!
//! A worker's name is the machine's fingerprint and a number. A number is taken by a conditional
//! write, so that two processes on one machine never share a name. It is free once its worker
//! reported its stop, certainly ended, or has not renewed for as long as a lock may last.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::worker_identity::{ProcessIdentity, WorkerIdentity, machine_fingerprint};
use super::{BlobForgeBucket, BucketSettings, format_rfc3339};
use crate::objects::blobforge::{WORKERS, worker_key};
use crate::objects::engine::{LockRecord, ObjectLock, ObservedLock};
use docmill_core::fault::{Error, Fault, Result};
use docmill_worker::runner::WorkerStats;

/// Most workers on one machine.
const SEATS: u32 = 256;

/// A worker as others see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegisteredWorker {
    /// The machine's fingerprint and the worker's number on it.
    pub worker_id: String,
    /// `idle`, `processing` or `stopped`.
    pub status: String,
    /// One of the documents it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_job: Option<String>,
    /// The last heartbeat; RFC 3339, UTC.
    pub last_heartbeat: String,
    /// When this start of it began; RFC 3339, UTC.
    pub started_at: String,
    /// This start of it.
    pub instance: String,
    /// The process of this start.
    pub(super) process: ProcessIdentity,
    /// Counts of its documents by outcome.
    pub metrics: BTreeMap<String, u64>,
    /// Fields of other programs, kept.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl LockRecord for RegisteredWorker {
    fn nonce(&self) -> &str {
        &self.instance
    }
}

/// The status of a worker that ended by itself.
const STOPPED: &str = "stopped";

/// The registration of this worker under its name.
pub struct WorkerRegistration {
    who: WorkerIdentity,
    held: ObjectLock<RegisteredWorker>,
}

impl WorkerRegistration {
    /// Takes a free number on this machine. `named` replaces the fingerprint.
    ///
    /// # Errors
    /// Store errors; unavailable if every number is taken.
    pub async fn register(
        bucket: &BlobForgeBucket,
        named: Option<&str>,
        settings: &BucketSettings,
    ) -> Result<Self> {
        let base = named.map_or_else(machine_fingerprint, ToOwned::to_owned);
        for number in 0..SEATS {
            let who = WorkerIdentity::new(format!("{base}-{number}"));
            if let Some(held) = try_register(bucket, &who, settings.stale_after()).await? {
                return Ok(Self { who, held });
            }
        }
        let text = format!("{SEATS} workers named {base} are registered and may still run");
        Err(Error::new(Fault::Unavailable, text))
    }

    /// The identity of the registered worker.
    pub fn identity(&self) -> &WorkerIdentity {
        &self.who
    }

    /// Writes that the worker is alive and what it does; `false` if another has taken the
    /// registration.
    ///
    /// # Errors
    /// Store errors.
    pub async fn renew(
        &mut self,
        bucket: &BlobForgeBucket,
        job: Option<String>,
        stats: &WorkerStats,
    ) -> Result<bool> {
        let status = if job.is_some() { "processing" } else { "idle" };
        self.write(bucket, status, job, stats).await
    }

    /// Gives up the registration.
    ///
    /// # Errors
    /// Store errors.
    pub async fn unregister(
        &mut self,
        bucket: &BlobForgeBucket,
        stats: &WorkerStats,
    ) -> Result<()> {
        self.write(bucket, STOPPED, None, stats).await.map(drop)
    }

    async fn write(
        &mut self,
        bucket: &BlobForgeBucket,
        status: &str,
        job: Option<String>,
        stats: &WorkerStats,
    ) -> Result<bool> {
        let at = format_rfc3339(bucket.engine.now().await?);
        bucket
            .engine
            .renew_lock(&mut self.held, |worker| {
                status.clone_into(&mut worker.status);
                worker.current_job.clone_from(&job);
                worker.last_heartbeat.clone_from(&at);
                worker.metrics = stats.by_code();
            })
            .await
    }
}

async fn try_register(
    bucket: &BlobForgeBucket,
    who: &WorkerIdentity,
    stale: Duration,
) -> Result<Option<ObjectLock<RegisteredWorker>>> {
    let key = worker_key(&who.id);
    let at = format_rfc3339(bucket.engine.now().await?);
    let worker = RegisteredWorker {
        worker_id: who.id.clone(),
        status: "idle".to_owned(),
        last_heartbeat: at.clone(),
        started_at: at,
        instance: who.instance.clone(),
        process: ProcessIdentity::current(),
        ..RegisteredWorker::default()
    };
    let Some(known) = bucket.engine.read_lock::<RegisteredWorker>(&key).await? else {
        return bucket.engine.acquire_lock(&key, worker).await;
    };
    let silent = bucket.age_by_store(known.modified).await? > stale;
    let ObservedLock { lease, etag, .. } = known;
    if !(silent || lease.status == STOPPED || lease.process.has_ended()) {
        return Ok(None);
    }
    bucket.engine.take_over_lock(&key, &etag, worker).await
}

/// Lists all workers ever registered, with the age of their last heartbeat.
///
/// # Errors
/// Store errors.
pub async fn list_workers(bucket: &BlobForgeBucket) -> Result<Vec<(RegisteredWorker, Duration)>> {
    let mut all = Vec::new();
    for entry in bucket.engine.list_all(WORKERS).await? {
        if let Some(seen) = bucket.engine.read::<RegisteredWorker>(&entry.key).await? {
            all.push((seen.value, bucket.age_by_store(entry.modified).await?));
        }
    }
    Ok(all)
}
