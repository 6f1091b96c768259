//! A store in memory for tests: counts its listings, and can ignore conditions as some services do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use docmill::fault::Result;
use docmill::store::{Entry, Etag, Fetch, Get, Meta, Object, Put, Store};

struct Kept {
    bytes: Bytes,
    etag: Etag,
    modified: SystemTime,
    metadata: BTreeMap<String, String>,
}

/// Objects in memory.
#[derive(Default)]
pub(crate) struct MemoryStore {
    objects: Mutex<BTreeMap<String, Kept>>,
    versions: AtomicU64,
    /// Listing requests so far.
    pub(crate) lists: AtomicU64,
    /// Conditions are accepted and ignored.
    pub(crate) lenient: AtomicBool,
    clock: Mutex<Option<tokio::time::Instant>>,
    /// An object, and another that is there as soon as it is written.
    follows: Mutex<Option<(String, String)>>,
    /// Writes that still arrive; `None`: all.
    writes_left: Mutex<Option<u32>>,
}

/// When simulated time began.
const BEGINNING: SystemTime = SystemTime::UNIX_EPOCH;

/// A machine's clock that goes with tokio's, which may be paused; it is not the store's.
pub(crate) fn simulated_clock() -> SystemTime {
    static START: OnceLock<tokio::time::Instant> = OnceLock::new();
    let start = START.get_or_init(tokio::time::Instant::now);
    BEGINNING + Duration::from_secs(5_000_000) + start.elapsed()
}

impl MemoryStore {
    /// Its clock goes with tokio's, which may be paused.
    pub(crate) fn simulated() -> Self {
        let clock = Mutex::new(Some(tokio::time::Instant::now()));
        Self { clock, ..Self::default() }
    }

    fn now(&self) -> SystemTime {
        match *self.clock.lock().unwrap() {
            Some(start) => BEGINNING + Duration::from_secs(1_000_000) + start.elapsed(),
            None => SystemTime::now(),
        }
    }

    /// Lets so many more writes through; every later one is never answered, as if whoever makes it
    /// had been killed.
    pub(crate) fn dies_after(&self, writes: Option<u32>) {
        *self.writes_left.lock().unwrap() = writes;
    }

    /// Somebody else is so fast that `next` is there as soon as `key` is written.
    pub(crate) fn follow(&self, key: &str, next: &str) {
        *self.follows.lock().unwrap() = Some((key.to_owned(), next.to_owned()));
    }

    /// Waits for ever once no more writes arrive.
    async fn arrive(&self) {
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
    }

    /// Makes an object older.
    pub(crate) fn age(&self, key: &str, by: Duration) {
        self.objects.lock().unwrap().get_mut(key).unwrap().modified -= by;
    }

    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let objects = self.objects.lock().unwrap();
        objects.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    pub(crate) fn json(&self, key: &str) -> serde_json::Value {
        let objects = self.objects.lock().unwrap();
        serde_json::from_slice(&objects.get(key).unwrap_or_else(|| panic!("no {key}")).bytes)
            .unwrap()
    }

    /// Writes if the object is the version that `only` names (`None` in it: if there is none).
    fn write(&self, key: &str, new: (Bytes, Labels), only: Option<Option<&Etag>>) -> Option<Etag> {
        let mut objects = self.objects.lock().unwrap();
        if !self.holds(&objects, key, only) {
            return None;
        }
        let etag = Etag(format!("v{}", self.versions.fetch_add(1, Ordering::SeqCst)));
        let (modified, kept) = (self.now(), etag.clone());
        let (bytes, metadata) = new;
        if let Some((_, next)) = self.follows.lock().unwrap().take_if(|pair| pair.0 == key) {
            let (bytes, etag, metadata) = (Bytes::new(), Etag("theirs".to_owned()), Labels::new());
            objects.insert(next, Kept { bytes, etag, modified, metadata });
        }
        objects.insert(key.to_owned(), Kept { bytes, etag, modified, metadata });
        Some(kept)
    }

    fn holds(
        &self,
        objects: &BTreeMap<String, Kept>,
        key: &str,
        only: Option<Option<&Etag>>,
    ) -> bool {
        let found = objects.get(key).map(|object| &object.etag);
        self.lenient.load(Ordering::SeqCst) || only.is_none_or(|only| only == found)
    }
}

type Labels = BTreeMap<String, String>;

fn put(written: Option<Etag>) -> Put {
    written.map_or(Put::Refused, Put::Written)
}

#[async_trait]
impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>> {
        tokio::task::yield_now().await;
        let objects = self.objects.lock().unwrap();
        Ok(objects.get(key).map(|object| Meta {
            size: object.bytes.len() as u64,
            etag: object.etag.clone(),
            modified: object.modified,
            metadata: object.metadata.clone(),
        }))
    }

    async fn get(&self, key: &str, what: Get) -> Result<Fetch> {
        tokio::task::yield_now().await;
        let objects = self.objects.lock().unwrap();
        let Some(object) = objects.get(key) else { return Ok(Fetch::Missing) };
        if what.if_match.is_some_and(|etag| etag != object.etag) {
            return Ok(Fetch::Changed);
        }
        let size = object.bytes.len() as u64;
        if size > what.at_most {
            return Ok(Fetch::TooLarge { size });
        }
        let (bytes, etag) = (object.bytes.clone(), object.etag.clone());
        Ok(Fetch::Found(Object { bytes, etag }))
    }

    async fn put(&self, key: &str, bytes: Bytes, metadata: &Labels) -> Result<Etag> {
        self.arrive().await;
        Ok(self.write(key, (bytes, metadata.clone()), None).unwrap())
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<Put> {
        self.arrive().await;
        Ok(put(self.write(key, (bytes, Labels::new()), Some(None))))
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<Put> {
        self.arrive().await;
        Ok(put(self.write(key, (bytes, Labels::new()), Some(Some(etag)))))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.arrive().await;
        self.objects.lock().unwrap().remove(key);
        Ok(())
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        self.arrive().await;
        let mut objects = self.objects.lock().unwrap();
        let may = self.holds(&objects, key, Some(Some(etag)));
        Ok(may && objects.remove(key).is_some())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<Vec<Entry>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        let objects = self.objects.lock().unwrap();
        let from = after.filter(|after| *after > prefix).unwrap_or(prefix);
        let found = objects
            .range(from.to_owned()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter(|(key, _)| after.is_none_or(|after| key.as_str() > after))
            .take(max)
            .map(|(key, object)| Entry {
                key: key.clone(),
                size: object.bytes.len() as u64,
                modified: object.modified,
            });
        Ok(found.collect())
    }
}
