//! A BlobForge bucket without a database: the faults measured in BlobForge itself do not occur,
//! despite dead or frozen workers, late listings and wrong clocks.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod deaths;
mod faults;
mod handing_in;
mod listing;
mod on_s3;
mod operators;
mod program;
mod running;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_compat::bucket::{
    BlobForgeBucket, BucketClaim, BucketClaimResult, BucketSettings, BucketWorkerOptions,
    BucketWorkerSetup, ConversionOutput, ConversionResult, DocumentConverter, MarkerCandidate,
    OriginalDocument, WorkerIdentity, claim_document,
};
use docmill_compat::objects::blobforge::{raw_key, todo_key};
use docmill_compat::objects::engine::StoreClock;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::Priority;
use docmill_pipeline::ClaimHandle;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;
use docmill_worker::runner::WorkerStats;
use sha2::{Digest, Sha256};

use crate::support::controlled_store::{ControlledStore, simulated_clock};

/// Longer than a lock lasts without renewal.
const ABANDONED: Duration = Duration::from_secs(16 * 60);

fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A bucket in memory.
struct Place {
    store: Arc<ControlledStore>,
    bucket: Arc<BlobForgeBucket>,
}

impl Place {
    fn new() -> Self {
        Self::over(ControlledStore::default(), StoreClock::default())
    }

    /// In tokio's time, which may be paused.
    fn simulated() -> Self {
        Self::over(ControlledStore::simulated(), StoreClock::with_local(simulated_clock))
    }

    fn over(store: ControlledStore, clock: StoreClock) -> Self {
        let store = Arc::new(store);
        let bucket = Arc::new(BlobForgeBucket::new(store.clone(), clock));
        Self { store, bucket }
    }

    /// A document that waits, as BlobForge's ingest leaves it: an original and an empty marker.
    async fn add(&self, text: &str, priority: Priority) -> String {
        let bytes = Bytes::from(format!("%PDF {text}"));
        let hash = hash_of(&bytes);
        let labels = BTreeMap::from([("original-name".to_owned(), format!("{text}.pdf"))]);
        self.store.put(&raw_key(&hash, "pdf"), bytes, &labels).await.unwrap();
        let marker = todo_key(priority, &hash);
        self.store.put(&marker, Bytes::new(), &BTreeMap::new()).await.unwrap();
        hash
    }

    async fn try_claim(&self, worker: &str, hash: &str, priority: Priority) -> BucketClaimResult {
        let (who, settings) = (WorkerIdentity::new(worker), BucketSettings::default());
        let candidate = MarkerCandidate { priority, hash: hash.to_owned() };
        claim_document(&self.bucket, &who, &settings, &candidate).await.unwrap()
    }

    async fn claim(&self, worker: &str, hash: &str) -> BucketClaim {
        match self.try_claim(worker, hash, Priority::Normal).await {
            BucketClaimResult::Ours(claim) => *claim,
            other => panic!("{other:?}"),
        }
    }

    fn work(&self, convert: Arc<dyn DocumentConverter>, once: bool) -> BucketWorkerSetup {
        BucketWorkerSetup { bucket: self.bucket.clone(), convert, terms: terms(once) }
    }

    async fn work_once(&self, convert: &Arc<Fake>) -> WorkerStats {
        self.work(convert.clone(), true).run(Shutdown::default()).await.unwrap()
    }

    /// Every object that shows a document's state.
    fn marks(&self) -> Vec<String> {
        self.store.keys("queue/")
    }
}

fn terms(once: bool) -> BucketWorkerOptions {
    BucketWorkerOptions {
        jobs: 4,
        once,
        each_list: Duration::from_millis(10),
        longest_pause: Duration::from_millis(50),
        largest: 1 << 20,
        name: None,
        drain: Duration::ZERO,
        windows: docmill_compat::bucket::RunWindows::default(),
    }
}

/// The fake converter's behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Well,
    Fails(Fault),
    Refuses,
    Hangs,
    /// The conversion takes this long.
    Takes(Duration),
}

/// A converter that counts.
struct Fake {
    manner: Mutex<Manner>,
    calls: Mutex<BTreeMap<String, u32>>,
    count: AtomicU64,
    /// Documents that fail, independent of the plan.
    refused: Mutex<BTreeMap<String, Fault>>,
    /// The dependency that it reports as down.
    outage: Mutex<Option<String>>,
}

impl Fake {
    fn new(manner: Manner) -> Arc<Self> {
        let (calls, count) = (Mutex::default(), AtomicU64::new(0));
        let (refused, outage) = (Mutex::default(), Mutex::default());
        Arc::new(Self { manner: Mutex::new(manner), calls, count, refused, outage })
    }

    fn refuses(&self, hash: &str, fault: Fault) {
        self.refused.lock().unwrap().insert(hash.to_owned(), fault);
    }

    fn calls(&self, hash: &str) -> u32 {
        self.calls.lock().unwrap().get(hash).copied().unwrap_or_default()
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn does(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }
}

#[async_trait]
impl DocumentConverter for Fake {
    async fn convert(
        &self,
        original: &OriginalDocument,
        _: &ClaimHandle,
    ) -> Result<ConversionResult> {
        *self.calls.lock().unwrap().entry(original.hash.clone()).or_default() += 1;
        self.count.fetch_add(1, Ordering::SeqCst);
        let refused = self.refused.lock().unwrap().get(&original.hash).copied();
        let manner = refused.map_or(*self.manner.lock().unwrap(), Manner::Fails);
        match manner {
            Manner::Well => {}
            Manner::Fails(fault) => return Err(Error::new(fault, "told to fail")),
            Manner::Refuses => {
                let (code, detail) = ("encrypted".to_owned(), "told to refuse".to_owned());
                return Ok(ConversionResult::Refused { code, detail });
            }
            Manner::Hangs => std::future::pending().await,
            Manner::Takes(time) => tokio::time::sleep(time).await,
        }
        Ok(ConversionResult::Whole(ConversionOutput {
            markdown: original.name.clone(),
            ..ConversionOutput::default()
        }))
    }

    fn find_outage(&self) -> Option<String> {
        self.outage.lock().unwrap().clone()
    }
}

/// Waits until it holds; a minute is for machines that are short of breath.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within a minute");
}
