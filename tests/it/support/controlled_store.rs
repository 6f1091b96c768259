//! The memory store with controls for tests: counts listings and contents still held, yields to
//! other tasks, ages objects, and can ignore conditions or fall silent as some services do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use docmill_core::fault::{Error, Result};
use docmill_storage::{
    Etag, FetchedObject, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult,
    memory,
};
use futures::FutureExt as _;

type Labels = BTreeMap<String, String>;

/// The store in memory, whose failings a test controls.
#[derive(Default)]
pub(crate) struct ControlledStore {
    inner: memory::MemoryStore,
    /// Listing requests so far.
    pub(crate) lists: AtomicU64,
    /// How long each read takes.
    read_time: Mutex<Duration>,
    /// Conditions are accepted and ignored.
    pub(crate) lenient: AtomicBool,
    /// Additional reported age of objects.
    aged: Mutex<BTreeMap<String, Duration>>,
    /// An object, and another that is there as soon as it is written.
    follows: Mutex<Option<(String, String)>>,
    /// Writes that still arrive; `None`: all.
    writes_left: Mutex<Option<u32>>,
    /// Writes below a place that are refused: how many get through before, and how many are refused.
    outage: Mutex<Option<WriteOutage>>,
    /// Listings that are answered, and what becomes of later ones; `None`: all are.
    listing: Mutex<Option<(u64, ListingFault)>>,
    /// Contents that were read and are still held.
    pub(crate) held: Arc<HeldContents>,
    /// Reading these is never answered.
    silent: Mutex<BTreeSet<String>>,
    /// Reading these is answered with a failure of the store, for ever.
    failing: Mutex<BTreeSet<String>>,
    /// Reads so far.
    pub(crate) reads: AtomicU64,
}

/// The number of contents held now, and its maximum.
#[derive(Default)]
pub(crate) struct HeldContents {
    pub(crate) now: AtomicU64,
    pub(crate) most: AtomicU64,
}

/// A content that is counted while anybody has it.
struct HeldContent {
    bytes: Bytes,
    held: Arc<HeldContents>,
}

impl HeldContent {
    fn count(bytes: Bytes, held: &Arc<HeldContents>) -> Bytes {
        let now = held.now.fetch_add(1, Ordering::SeqCst) + 1;
        held.most.fetch_max(now, Ordering::SeqCst);
        Bytes::from_owner(Self { bytes, held: Arc::clone(held) })
    }
}

impl AsRef<[u8]> for HeldContent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldContent {
    fn drop(&mut self) {
        self.held.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Writes that a store refuses for a while.
struct WriteOutage {
    prefix: String,
    arriving: u32,
    refused: u32,
}

/// The fate of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListingFault {
    /// It is refused.
    Refused,
    /// It is never answered.
    Silent,
}

/// When simulated time began.
const BEGINNING: SystemTime = SystemTime::UNIX_EPOCH;

/// Tokio's time, which may be paused, since it was first asked for.
fn simulated_time() -> Duration {
    static START: OnceLock<tokio::time::Instant> = OnceLock::new();
    START.get_or_init(tokio::time::Instant::now).elapsed()
}

/// A machine's clock that goes with tokio's; it is not the store's.
pub(crate) fn simulated_clock() -> SystemTime {
    BEGINNING + Duration::from_secs(5_000_000) + simulated_time()
}

fn simulated_store_clock() -> SystemTime {
    BEGINNING + Duration::from_secs(1_000_000) + simulated_time()
}

impl ControlledStore {
    /// Its clock goes with tokio's, which may be paused.
    pub(crate) fn simulated() -> Self {
        let inner = memory::MemoryStore::with_clock(simulated_store_clock);
        Self { inner, ..Self::default() }
    }

    /// Lets `writes` more writes through; later ones are never answered, as if their writer had
    /// been killed.
    pub(crate) fn dies_after(&self, writes: Option<u32>) {
        *self.writes_left.lock().unwrap() = writes;
    }

    /// Lets `arriving` more writes below `prefix` through and refuses the `refused` next ones.
    pub(crate) fn refuse_writes(&self, prefix: &str, arriving: u32, refused: u32) {
        let outage = WriteOutage { prefix: prefix.to_owned(), arriving, refused };
        *self.outage.lock().unwrap() = Some(outage);
    }

    /// A concurrent writer creates `next` as soon as `key` is written.
    pub(crate) fn follow(&self, key: &str, next: &str) {
        *self.follows.lock().unwrap() = Some((key.to_owned(), next.to_owned()));
    }

    /// The duration of every read.
    pub(crate) fn reads_take(&self, time: Duration) {
        *self.read_time.lock().unwrap() = time;
    }

    /// How long ago an object was written, in simulated time.
    pub(crate) fn age_of(&self, key: &str) -> Duration {
        let written = self.inner.head(key).now_or_never().unwrap().unwrap().unwrap().modified;
        simulated_store_clock().duration_since(written).unwrap()
    }

    async fn read(&self) {
        let time = *self.read_time.lock().unwrap();
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        tokio::task::yield_now().await;
    }

    /// Answers `answered` listings in all.
    pub(crate) fn lists_until(&self, answered: u64, then: ListingFault) {
        *self.listing.lock().unwrap() = Some((answered, then));
    }

    fn is_refused(&self, key: &str) -> bool {
        let mut outage = self.outage.lock().unwrap();
        match outage.as_mut().filter(|outage| key.starts_with(&outage.prefix)) {
            Some(outage) if outage.arriving > 0 => outage.arriving -= 1,
            Some(outage) if outage.refused > 0 => {
                outage.refused -= 1;
                return true;
            }
            _ => {}
        }
        false
    }

    /// Never answers reads of this key.
    pub(crate) fn silence(&self, key: &str) {
        self.silent.lock().unwrap().insert(key.to_owned());
    }

    /// Answers reads of this key with a transient fault, always.
    pub(crate) fn fail_reads_of(&self, key: &str) {
        self.failing.lock().unwrap().insert(key.to_owned());
    }

    /// Waits for ever once no more writes arrive; an error while they are refused.
    async fn arrive(&self, key: &str) -> Result<()> {
        let arrives = match &mut *self.writes_left.lock().unwrap() {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        };
        if !arrives {
            std::future::pending::<()>().await;
        }
        tokio::task::yield_now().await;
        match self.is_refused(key) {
            true => Err(Error::transient("the store refuses to write")),
            false => Ok(()),
        }
    }

    /// Makes an object older.
    pub(crate) fn age(&self, key: &str, by: Duration) {
        assert!(self.keys(key).iter().any(|found| found == key), "no {key}");
        *self.aged.lock().unwrap().entry(key.to_owned()).or_default() += by;
    }

    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let listed = self.inner.list(prefix, None, usize::MAX).now_or_never().unwrap();
        listed.unwrap().into_iter().map(|entry| entry.key).collect()
    }

    pub(crate) fn json(&self, key: &str) -> serde_json::Value {
        let what = GetOptions { at_most: u64::MAX, if_match: None };
        match self.inner.get(key, what).now_or_never().unwrap().unwrap() {
            GetResult::Found(object) => serde_json::from_slice(&object.bytes).unwrap(),
            _ => panic!("no {key}"),
        }
    }

    fn is_lenient(&self) -> bool {
        self.lenient.load(Ordering::SeqCst)
    }

    /// The hook after a successful write.
    async fn written(&self, key: &str) {
        self.aged.lock().unwrap().remove(key);
        let follows = self.follows.lock().unwrap().take_if(|pair| pair.0 == key);
        if let Some((_, next)) = follows {
            self.inner.put(&next, Bytes::new(), &Labels::new()).await.unwrap();
        }
    }

    fn modified(&self, key: &str, modified: SystemTime) -> SystemTime {
        modified - self.aged.lock().unwrap().get(key).copied().unwrap_or_default()
    }
}

#[async_trait]
impl ObjectStore for ControlledStore {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        self.read().await;
        let meta = self.inner.head(key).await?;
        Ok(meta.map(|meta| ObjectMeta { modified: self.modified(key, meta.modified), ..meta }))
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        self.read().await;
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.silent.lock().unwrap().contains(key) {
            std::future::pending::<()>().await;
        }
        if self.failing.lock().unwrap().contains(key) {
            return Err(Error::transient("InternalError"));
        }
        let found = self.inner.get(key, what).await?;
        let GetResult::Found(FetchedObject { bytes, etag }) = found else { return Ok(found) };
        Ok(GetResult::Found(FetchedObject { bytes: HeldContent::count(bytes, &self.held), etag }))
    }

    async fn put(&self, key: &str, bytes: Bytes, metadata: &Labels) -> Result<Etag> {
        self.arrive(key).await?;
        let etag = self.inner.put(key, bytes, metadata).await?;
        self.written(key).await;
        Ok(etag)
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        if self.is_lenient() {
            return self.put(key, bytes, &Labels::new()).await.map(PutResult::Written);
        }
        self.arrive(key).await?;
        let put = self.inner.put_if_absent(key, bytes).await?;
        if put != PutResult::Refused {
            self.written(key).await;
        }
        Ok(put)
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        if self.is_lenient() {
            return self.put(key, bytes, &Labels::new()).await.map(PutResult::Written);
        }
        self.arrive(key).await?;
        let put = self.inner.put_if_match(key, etag, bytes).await?;
        if put != PutResult::Refused {
            self.written(key).await;
        }
        Ok(put)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.arrive(key).await?;
        self.aged.lock().unwrap().remove(key);
        self.inner.delete(key).await
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.arrive(key).await?;
        let is_there = self.inner.head(key).await?.is_some();
        let removed = match self.is_lenient() {
            true => self.inner.delete(key).await.map(|()| is_there)?,
            false => self.inner.delete_if_match(key, etag).await?,
        };
        if removed {
            self.aged.lock().unwrap().remove(key);
        }
        Ok(removed)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let before = self.lists.fetch_add(1, Ordering::SeqCst);
        let fault = *self.listing.lock().unwrap();
        match fault.filter(|(answered, _)| before >= *answered) {
            Some((_, ListingFault::Refused)) => return Err(Error::transient("no listing")),
            Some((_, ListingFault::Silent)) => std::future::pending::<()>().await,
            None => {}
        }
        let listed = self.inner.list(prefix, after, max).await?;
        let entry = |entry: ObjectEntry| ObjectEntry {
            modified: self.modified(&entry.key, entry.modified),
            ..entry
        };
        Ok(listed.into_iter().map(entry).collect())
    }
}
