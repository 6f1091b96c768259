//! The base of both layouts: conditional changes of objects, locks made of them, and the store's
//! clock.
//!
//! It has no keys and no records: the layouts define those. It needs only the conditional writes of
//! [`ObjectStore`], so that folders and buckets behave alike. Not promised: fairness between
//! concurrent changes of one object.

mod clock;
mod lock;
mod unreadable;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use clock::{StoreClock, time_of};
pub(crate) use clock::{format_rfc3339, to_millis};
pub use lock::{LockRecord, ObjectLock, ObservedLock};
pub use unreadable::UnreadableStreak;

use docmill_core::fault::{Error, Result};
use docmill_core::retry::{Jitter, RetryBackoff};
use docmill_storage::{Etag, GetOptions, GetResult, ObjectEntry, ObjectStore, PutResult};

/// Maximum tries of a change against concurrent ones.
pub(super) const TRIES: u32 = 10;
/// The largest record that is read; bodies of SQS, which may be in one, have at most 1 MiB.
const MAX_RECORD_BYTES: u64 = 2 << 20;
/// Entries of one listing request.
pub const PAGE: usize = 1000;

/// A store, seen through its records and its clock.
pub struct RecordStore {
    store: Arc<dyn ObjectStore>,
    clock: StoreClock,
}

/// A record as it was read.
#[derive(Debug, Clone)]
pub struct VersionedRecord<T> {
    /// The parsed record.
    pub value: T,
    /// The version that was read.
    pub etag: Etag,
}

impl RecordStore {
    /// Over a store, with this machine's clock corrected by the store's.
    pub fn new(store: Arc<dyn ObjectStore>, clock: StoreClock) -> Self {
        Self { store, clock }
    }

    /// The store itself, for objects that are no records.
    pub fn store(&self) -> &dyn ObjectStore {
        self.store.as_ref()
    }

    /// A shared handle to the store.
    pub(crate) fn shared_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Milliseconds since 1970 by the store's clock.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn now(&self) -> Result<u64> {
        self.clock.now(self.store.as_ref()).await
    }

    /// Reads a record; empty or invalid JSON is the default, as other writers' empty markers mean
    /// it.
    ///
    /// # Errors
    /// Store errors; internal, with the key, if the object is larger than any record.
    pub async fn read<T: DeserializeOwned + Default>(
        &self,
        key: &str,
    ) -> Result<Option<VersionedRecord<T>>> {
        match self.store.get(key, GetOptions { at_most: MAX_RECORD_BYTES, if_match: None }).await? {
            GetResult::Found(object) => {
                let value = serde_json::from_slice(&object.bytes).unwrap_or_default();
                Ok(Some(VersionedRecord { value, etag: object.etag }))
            }
            GetResult::Missing | GetResult::Changed => Ok(None),
            GetResult::TooLarge { size } => {
                let text =
                    format!("{key} has {size} bytes, a record has at most {MAX_RECORD_BYTES}");
                Err(Error::internal(text))
            }
        }
    }

    /// Writes a record where there is none; `false` if there is one.
    ///
    /// # Errors
    /// Store errors.
    pub async fn create<T: Serialize>(&self, key: &str, value: &T) -> Result<bool> {
        Ok(self.store.put_if_absent(key, to_json_bytes(value)?).await? != PutResult::Refused)
    }

    /// Writes a record unconditionally: for records that only a lock's holder writes.
    ///
    /// # Errors
    /// Store errors.
    pub async fn write<T: Serialize>(&self, key: &str, value: &T) -> Result<()> {
        let nothing = std::collections::BTreeMap::new();
        self.store.put(key, to_json_bytes(value)?, &nothing).await.map(drop)
    }

    /// Changes an existing record, with retries after concurrent changes. `None` from `change`
    /// leaves it. Returns the current record, `None` if there is none.
    ///
    /// # Errors
    /// Store errors; transient after too many concurrent changes.
    pub async fn change<T, F>(&self, key: &str, mut change: F) -> Result<Option<T>>
    where
        T: Serialize + DeserializeOwned + Default,
        F: FnMut(&T) -> Option<T> + Send,
    {
        for turn in 0..TRIES {
            let Some(seen) = self.read::<T>(key).await? else { return Ok(None) };
            let Some(next) = change(&seen.value) else { return Ok(Some(seen.value)) };
            let put = self.store.put_if_match(key, &seen.etag, to_json_bytes(&next)?).await?;
            if let PutResult::Written(_) = put {
                return Ok(Some(next));
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }

    /// Deletes; what is not there is a success.
    ///
    /// # Errors
    /// Store errors.
    pub async fn delete(&self, key: &str) -> Result<()> {
        self.store.delete(key).await
    }

    /// Whether there is such an object. An error is an error, never "no".
    ///
    /// # Errors
    /// Store errors.
    pub async fn exists(&self, key: &str) -> Result<bool> {
        Ok(self.store.head(key).await?.is_some())
    }

    /// Every entry below a prefix, page by page.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn list_all(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        let mut all: Vec<ObjectEntry> = Vec::new();
        loop {
            let after = all.last().map(|entry| entry.key.clone());
            let page = self.store.list(prefix, after.as_deref(), PAGE).await?;
            let full = page.len() == PAGE;
            all.extend(page);
            if !full {
                return Ok(all);
            }
        }
    }
}

/// A record as it is stored.
pub(super) fn to_json_bytes<T: Serialize>(value: &T) -> Result<Bytes> {
    let text = serde_json::to_vec(value)
        .map_err(|error| Error::internal("cannot serialise a queue record").with_source(error))?;
    Ok(text.into())
}

/// The waits of those who want to change one object, never in step with others.
const CONTENDED_WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(25))
    .up_to(Duration::from_millis(3200))
    .with_jitter(Jitter::Full);

/// Waits before the next try, longer each time and never in step with others.
pub(crate) async fn back_off(turn: u32) {
    CONTENDED_WAITS.sleep(turn).await;
}

/// Too many change one object at once.
pub(crate) fn contention_error() -> Error {
    Error::transient("too many concurrent updates of a queue object")
}
