//! Objects in memory, for documents that are worked on without any store.
//!
//! Keeps every promise of the port, conditions included, and passes its suite. Not promised:
//! persistence beyond the life of the value, and a bound on its size: callers bound their objects.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    Etag, FetchedObject, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult,
};
use docmill_core::fault::Result;
use parking_lot::{Mutex, MutexGuard};

/// An object store in memory, for documents that are worked on without any store.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<MemoryStoreState>,
    clock: fn() -> SystemTime,
}

#[derive(Debug, Default)]
struct MemoryStoreState {
    objects: BTreeMap<String, StoredObject>,
    /// Writes so far: the version of the newest.
    writes: u64,
}

#[derive(Debug, Clone)]
struct StoredObject {
    bytes: Bytes,
    etag: Etag,
    modified: SystemTime,
    metadata: BTreeMap<String, String>,
}

/// Under which condition an object is written.
#[derive(Clone, Copy)]
enum MemoryCondition<'a> {
    Always,
    Absent,
    Is(&'a Etag),
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_clock(SystemTime::now)
    }
}

impl MemoryStore {
    /// An empty store by this clock.
    pub fn with_clock(clock: fn() -> SystemTime) -> Self {
        Self { state: Mutex::default(), clock }
    }

    fn state(&self) -> MutexGuard<'_, MemoryStoreState> {
        // Sound if a holder panicked: every change is one call on the map.
        self.state.lock()
    }

    fn write_if(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: BTreeMap<String, String>,
        condition: MemoryCondition<'_>,
    ) -> PutResult {
        let mut state = self.state();
        let found = state.objects.get(key).map(|object| &object.etag);
        let holds = match condition {
            MemoryCondition::Always => true,
            MemoryCondition::Absent => found.is_none(),
            MemoryCondition::Is(etag) => found == Some(etag),
        };
        if !holds {
            return PutResult::Refused;
        }
        state.writes += 1;
        let etag = Etag(format!("\"{}\"", state.writes));
        let modified = (self.clock)();
        let object = StoredObject { bytes, etag: etag.clone(), modified, metadata };
        state.objects.insert(key.to_owned(), object);
        PutResult::Written(etag)
    }
}

impl StoredObject {
    fn size(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }
}

#[async_trait]
impl ObjectStore for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        let object = self.state().objects.get(key).cloned();
        Ok(object.map(|object| ObjectMeta {
            size: object.size(),
            etag: object.etag,
            modified: object.modified,
            metadata: object.metadata,
        }))
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        let Some(object) = self.state().objects.get(key).cloned() else {
            return Ok(GetResult::Missing);
        };
        if what.if_match.is_some_and(|etag| etag != object.etag) {
            return Ok(GetResult::Changed);
        }
        let size = object.size();
        if size > what.at_most {
            return Ok(GetResult::TooLarge { size });
        }
        Ok(GetResult::Found(FetchedObject { bytes: object.bytes, etag: object.etag }))
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag> {
        match self.write_if(key, bytes, metadata.clone(), MemoryCondition::Always) {
            PutResult::Written(etag) => Ok(etag),
            PutResult::Refused => {
                Err(docmill_core::fault::Error::internal("a write without condition was refused"))
            }
        }
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        Ok(self.write_if(key, bytes, BTreeMap::new(), MemoryCondition::Absent))
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        Ok(self.write_if(key, bytes, BTreeMap::new(), MemoryCondition::Is(etag)))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.state().objects.remove(key);
        Ok(())
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        let mut state = self.state();
        let is_it = state.objects.get(key).is_some_and(|object| object.etag == *etag);
        if is_it {
            state.objects.remove(key);
        }
        Ok(is_it)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let state = self.state();
        let found = state.objects.range::<str, _>((from, Bound::Unbounded));
        let below = found.take_while(|(key, _)| key.starts_with(prefix)).take(max);
        Ok(below
            .map(|(key, object): (&String, &StoredObject)| ObjectEntry {
                key: key.clone(),
                size: object.size(),
                modified: object.modified,
            })
            .collect())
    }
}
