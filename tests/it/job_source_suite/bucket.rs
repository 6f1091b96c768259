//! A BlobForge bucket in a folder: jobs are documents, their work is the conversion.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use docmill_compat::bucket::{
    BlobForgeBucket, BucketSettings, BucketWorkerOptions, BucketWorkerSetup, ConversionOutput,
    ConversionResult, DocumentConverter, OriginalDocument,
};
use docmill_compat::objects::blobforge::{lock_key, out_key, raw_key, todo_key};
use docmill_compat::objects::engine::StoreClock;
use docmill_core::fault::Result;
use docmill_core::model::{Priority, digest};
use docmill_pipeline::ClaimHandle;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;
use docmill_storage::folder::FolderStore;
use tempfile::TempDir;

use super::{JobSourceSite, SiteTerms, SiteWorker, WorkPlan};

/// A folder with a bucket in it.
pub(crate) struct BucketSite {
    folder: TempDir,
    store: Arc<dyn ObjectStore>,
    plan: Arc<WorkPlan>,
    workers: AtomicU32,
}

/// The bytes of a job's document, and their name in the bucket.
fn content_of(job: &str) -> (Bytes, String) {
    let bytes = Bytes::from(format!("%PDF {job}"));
    let hash = digest::sha256_hex(&bytes);
    (bytes, hash)
}

fn hash_of(job: &str) -> String {
    content_of(job).1
}

/// Converts as planned for the document's name.
struct PlannedConverter(Arc<WorkPlan>);

#[async_trait]
impl DocumentConverter for PlannedConverter {
    async fn convert(
        &self,
        original: &OriginalDocument,
        _: &ClaimHandle,
    ) -> Result<ConversionResult> {
        self.0.perform(|job| original.name == format!("{job}.pdf")).await?;
        let output = ConversionOutput { markdown: original.name.clone(), ..Default::default() };
        Ok(ConversionResult::Whole(output))
    }
}

impl BucketSite {
    async fn has(&self, key: &str) -> bool {
        self.store.head(key).await.unwrap().is_some()
    }
}

#[async_trait(?Send)]
impl JobSourceSite for BucketSite {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn ObjectStore> = Arc::new(FolderStore::open(folder.path()).await.unwrap());
        Self { folder, store, plan: Arc::default(), workers: AtomicU32::new(0) }
    }

    fn plan(&self) -> &WorkPlan {
        &self.plan
    }

    async fn add(&self, job: &'static str) {
        let (bytes, hash) = content_of(job);
        let labels = BTreeMap::from([("original-name".to_owned(), format!("{job}.pdf"))]);
        self.store.put(&raw_key(&hash, "pdf"), bytes, &labels).await.unwrap();
        self.offer(job).await;
    }

    /// As BlobForge's ingest does, which looks for nothing else.
    async fn offer(&self, job: &'static str) {
        let marker = todo_key(Priority::Normal, &hash_of(job));
        self.store.put_if_absent(&marker, Bytes::new()).await.unwrap();
    }

    async fn start(&self, terms: SiteTerms) -> SiteWorker {
        let store = FolderStore::open(self.folder.path()).await.unwrap();
        let bucket = Arc::new(BlobForgeBucket::new(Arc::new(store), StoreClock::default()));
        if terms.quick_renewals {
            BucketSettings::set(&bucket, "heartbeat_interval", 1).await.unwrap();
        }
        let number = self.workers.fetch_add(1, Ordering::SeqCst);
        let terms = BucketWorkerOptions {
            jobs: terms.slots,
            once: false,
            each_list: Duration::from_millis(10),
            longest_pause: Duration::from_millis(50),
            largest: 1 << 20,
            name: Some(format!("worker-{number}")),
            drain: terms.drain,
            windows: docmill_compat::bucket::RunWindows::default(),
        };
        let convert = Arc::new(PlannedConverter(Arc::clone(&self.plan)));
        let worker = BucketWorkerSetup { bucket, convert, terms }.open().await.unwrap();
        let (monitor, stop) = (worker.monitor(), Shutdown::default());
        let run = worker.run(stop.clone());
        SiteWorker {
            stop,
            monitor,
            task: tokio::spawn(async move {
                run.await.unwrap();
            }),
        }
    }

    async fn take_claim(&self, job: &'static str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let theirs = serde_json::json!({"worker": "theirs", "started": now, "last_heartbeat": now});
        let lock = lock_key(&hash_of(job));
        self.store.put(&lock, theirs.to_string().into(), &BTreeMap::new()).await.unwrap();
    }

    async fn is_claimed(&self, job: &'static str) -> bool {
        self.has(&lock_key(&hash_of(job))).await
    }

    async fn is_complete(&self, job: &'static str) -> bool {
        self.has(&out_key(&hash_of(job))).await
    }
}
