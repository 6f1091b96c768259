//! A BlobForge bucket without a database: ingest, process, inspect and repair documents.
//!
//! A document is named by the SHA-256 of its bytes. Objects show its state: a marker below
//! `queue/todo/`, a lock while a worker has it, a mark in `queue/failed/` or `queue/dead/`, a
//! result below `store/out/`. The layout is BlobForge's, so its tools work too. Changing a
//! document's state requires its lock, for workers and operators alike. Every change of the lock
//! names the last written version: a worker presumed dead can neither renew a lock it lost nor end
//! another worker's run.
//!
//! A run is counted in the marker when it begins, so that a document that kills its workers is
//! counted too, and none is counted twice. Not promised: that two workers never convert at the same
//! time (a frozen one may for a while; only one result is kept), nor features that need Postgres:
//! attempts with their reasons, claims, review (see `docs/guides/buckets.md`).

mod change;
mod claim;
mod convert;
mod dead_letter_reason;
mod ingest;
mod janitor;
mod manifest;
mod output;
mod registry;
mod report;
mod run_windows;
mod settings;
mod todo_scanner;
mod work;
mod worker_identity;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

pub use change::{
    BucketAction, BucketChange, cancel_document, remove_document, reprioritize_document,
    retry_document,
};
pub use claim::{BucketClaim, BucketClaimResult, LockRenewal, MarkerCandidate, claim_document};
pub use convert::{
    ConversionOutput, ConversionResult, DocumentConverter, OriginalDocument, PipelineConverter,
};
pub use ingest::{
    IngestOptions, IngestReport, IngestSource, IngestStatus, IngestedFile, ingest_all,
};
pub use janitor::{JanitorAction, SweepOptions, SweepReport, sweep_bucket};
pub use manifest::{BucketManifest, ManifestEntry, RebuildOptions, RebuildReport};
pub use registry::{RegisteredWorker, WorkerRegistration, list_workers};
pub use report::{
    BucketCounts, BucketDashboard, DocumentDetails, ListedDocument, RunningDocument, count_states,
    find_document, list_documents, load_dashboard, search_manifest,
};
pub use run_windows::RunWindows;
pub use settings::BucketSettings;
pub use todo_scanner::TodoScanner;
pub use work::{BucketWorker, BucketWorkerOptions, BucketWorkerSetup};
pub use worker_identity::WorkerIdentity;

use self::dead_letter_reason::DeadLetterReason;
use crate::object_ledger::remove_artefacts;
use crate::objects::blobforge::records::{DeadMarker, QueueMarker};
use crate::objects::blobforge::{SETTINGS, dead_key, failed_key, lock_key, out_key, raw_key};
use crate::objects::engine::{RecordStore, StoreClock, VersionedRecord, format_rfc3339};
use crate::objects::marker_queue::MarkerQueue;
use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_storage::ObjectStore;
use docmill_worker::runner::{ServiceHealth, probe_dependency};

/// A bucket in BlobForge's layout.
pub struct BlobForgeBucket {
    engine: Arc<RecordStore>,
    queue: MarkerQueue,
}

/// The state of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketState {
    /// A marker below `queue/todo/` waits for a worker.
    Todo,
    /// A worker or an operator has locked it.
    Processing,
    /// It failed and is to be tried again.
    Failed,
    /// Dead: no worker claims it.
    Dead,
    /// Its result is in the bucket.
    Done,
}

impl BucketState {
    /// Every state, in the order of a document's way.
    pub const ALL: [Self; 5] = [Self::Todo, Self::Processing, Self::Failed, Self::Dead, Self::Done];

    /// The name of the state.
    pub fn code(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Processing => "processing",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Done => "done",
        }
    }
}

impl BlobForgeBucket {
    /// Over a store whose keys begin where the bucket's layout begins.
    pub fn new(store: Arc<dyn ObjectStore>, clock: StoreClock) -> Self {
        let engine = Arc::new(RecordStore::new(store, clock));
        Self { queue: MarkerQueue::new(Arc::clone(&engine)), engine }
    }

    /// A few words for people: which bucket, without credentials.
    pub fn describe(&self) -> String {
        self.engine.store().describe()
    }

    /// The store of the bucket.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        self.engine.shared_store()
    }

    /// Asks whether the store answers.
    ///
    /// # Errors
    /// Store errors.
    pub async fn probe(&self) -> Result<()> {
        self.engine.exists(SETTINGS).await.map(drop)
    }

    /// The state of the document; `None` if unknown.
    ///
    /// # Errors
    /// Store errors: an unanswered request never counts as "no".
    pub async fn state(&self, hash: &str) -> Result<Option<BucketState>> {
        let (lock, out) = (lock_key(hash), out_key(hash));
        let (dead, failed) = (dead_key(hash), failed_key(hash));
        let (processing, done, dead, failed, markers) = tokio::try_join!(
            self.engine.exists(&lock),
            self.engine.exists(&out),
            self.engine.exists(&dead),
            self.engine.exists(&failed),
            self.find_markers(hash),
        )?;
        Ok(match (processing, done, dead, markers.is_empty(), failed) {
            (true, ..) => Some(BucketState::Processing),
            (_, true, ..) => Some(BucketState::Done),
            (_, _, true, ..) => Some(BucketState::Dead),
            (_, _, _, false, _) => Some(BucketState::Todo),
            (.., true) => Some(BucketState::Failed),
            _ => None,
        })
    }

    /// The document's markers, most urgent first. There may be several, after a change of priority
    /// or by BlobForge's janitor.
    async fn find_markers(
        &self,
        hash: &str,
    ) -> Result<Vec<(Priority, VersionedRecord<QueueMarker>)>> {
        self.queue.read_markers(hash).await
    }

    /// The extension of the document's original; `None` if it is not in the bucket.
    async fn find_extension(&self, hash: &str) -> Result<Option<String>> {
        let prefix = raw_key(hash, "");
        let found = self.engine.store().list(&prefix, None, 1).await?;
        let extension = found.first().and_then(|entry| entry.key.strip_prefix(&prefix));
        Ok(extension.map(ToOwned::to_owned))
    }

    /// Removes the document's markers; only for the owner of its lock.
    async fn clear_markers(&self, hash: &str) -> Result<()> {
        self.queue.remove_markers(hash, &Priority::ALL).await
    }

    /// Writes the dead mark, then removes the other objects; only for the owner of the lock.
    async fn dead_letter(
        &self,
        hash: &str,
        priority: Priority,
        marker: QueueMarker,
        why: DeadLetterReason<'_>,
    ) -> Result<()> {
        let mark = |moved_to_dead_at| DeadMarker {
            error: why.detail.to_owned(),
            moved_to_dead_at,
            total_retries: marker.retries,
            reason: why.reason.to_owned(),
            priority: Some(priority.blobforge_key().to_owned()),
            past: marker.past,
            rest: serde_json::Map::new(),
        };
        self.queue.dead_letter(hash, &Priority::ALL, mark).await?;
        self.engine.delete(&failed_key(hash)).await
    }

    /// Deletes the artefacts of a document with a result; only for the owner of its lock. Leftovers
    /// are deleted by age.
    async fn forget_artefacts(&self, hash: &str) {
        let removed = remove_artefacts(self.engine.store(), convert::artefact_id(hash)).await;
        if let Err(error) = removed {
            tracing::warn!(document = hash, error = %error, "artefacts were not deleted: {error}");
        }
    }

    /// How long ago something was written, by the store's clock.
    async fn age_by_store(&self, modified: std::time::SystemTime) -> Result<Duration> {
        let written = crate::objects::engine::to_millis(modified);
        Ok(Duration::from_millis(self.engine.now().await?.saturating_sub(written)))
    }
}

/// User metadata of an original as it is stored: names of fields and their values.
type ObjectLabels = BTreeMap<String, String>;

#[async_trait]
impl ServiceHealth for BlobForgeBucket {
    async fn check_all(&self) -> Vec<(&'static str, bool)> {
        vec![("store", probe_dependency(self.probe()).await.is_some())]
    }
}
