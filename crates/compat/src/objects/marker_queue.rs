//! Markers, locks and marks of a BlobForge bucket: shared by the message queue (`ObjectQueue`) and
//! the workers of a bucket of documents (`bucket`).
//!
//! An entry waits while it has a marker, is in work while it has a lock, and is dead once it has a
//! dead mark. The content of marker and mark besides BlobForge's fields is the caller's. The steps
//! that keep two workers apart are here: take the lock, read the marker again and count under the
//! lock, write new objects before removing old ones. All recorded times are the store's.
//!
//! Not promised: when a lock ends. Messages have a deadline in their lock; documents go by the time
//! of its last renewal.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::blobforge::records::MarkerLock;
use super::blobforge::{
    DEAD, LOCKS, TODO, dead_key, hash_in, lock_key, marker_in, tier_prefix, todo_key,
};
use super::engine::{
    self, ObjectLock, PAGE, RecordStore, TRIES, VersionedRecord, back_off, format_rfc3339,
    to_json_bytes,
};
use docmill_core::fault::{Error, Result};
use docmill_core::model::Priority;
use docmill_storage::{Etag, ObjectEntry, PutResult};

/// The markers of a bucket, with their locks and marks.
pub struct MarkerQueue {
    engine: Arc<RecordStore>,
}

/// One listing request's worth of markers.
#[derive(Debug, Default)]
pub struct MarkerPage {
    /// The markers, in the order of their keys.
    pub markers: Vec<ObjectEntry>,
    /// How many keys the store listed, those of others included.
    pub listed: usize,
    /// The last of these keys: where the next page continues.
    pub last_key: Option<String>,
}

impl MarkerPage {
    fn from_entries(mut page: Vec<ObjectEntry>) -> Self {
        let (listed, last_key) = (page.len(), page.last().map(|entry| entry.key.clone()));
        page.retain(|entry| marker_in(&entry.key).is_some());
        Self { markers: page, listed, last_key }
    }

    /// Whether more may follow.
    pub fn is_full(&self) -> bool {
        self.listed >= PAGE
    }

    /// The priority of the first marker.
    pub(crate) fn first_priority(&self) -> Option<Priority> {
        self.markers.first().and_then(priority_of)
    }

    /// The priority of the last marker.
    pub(crate) fn last_priority(&self) -> Option<Priority> {
        self.markers.last().and_then(priority_of)
    }

    /// The markers, most urgent first, in random order within a priority: workers with the same
    /// page rarely collide.
    pub(crate) fn into_shuffled(mut self) -> Vec<ObjectEntry> {
        fastrand::shuffle(&mut self.markers);
        self.markers.sort_by_key(priority_of);
        self.markers
    }
}

fn priority_of(entry: &ObjectEntry) -> Option<Priority> {
    marker_in(&entry.key).map(|(priority, _)| priority)
}

impl MarkerQueue {
    /// Over the objects of a bucket.
    pub fn new(engine: Arc<RecordStore>) -> Self {
        Self { engine }
    }

    /// The records of the store that the queue works on.
    pub fn engine(&self) -> &RecordStore {
        &self.engine
    }

    /// The first page of all waiting entries, of any priority.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn list_first(&self) -> Result<MarkerPage> {
        Ok(MarkerPage::from_entries(self.engine.store().list(TODO, None, PAGE).await?))
    }

    /// A page of what waits with this priority, from behind the key `after` on.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn list_tier(
        &self,
        priority: Priority,
        after: Option<&str>,
    ) -> Result<MarkerPage> {
        let page = self.engine.store().list(&tier_prefix(priority), after, PAGE).await?;
        Ok(MarkerPage::from_entries(page))
    }

    /// Every marker, page by page.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn list_markers(&self) -> Result<Vec<ObjectEntry>> {
        let mut all = self.engine.list_all(TODO).await?;
        all.retain(|entry| marker_in(&entry.key).is_some());
        Ok(all)
    }

    /// Every object below `prefix` that is named by a hash, by that.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn list_named(&self, prefix: &str) -> Result<BTreeMap<String, ObjectEntry>> {
        let all = self.engine.list_all(prefix).await?.into_iter();
        let named = all.filter_map(|e| Some((hash_in(&e.key, prefix)?.to_owned(), e)));
        Ok(named.collect())
    }

    /// Every lock, by name.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn list_locks(&self) -> Result<BTreeMap<String, ObjectEntry>> {
        self.list_named(LOCKS).await
    }

    /// How many were given up.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn count_dead(&self) -> Result<u64> {
        Ok(self.list_named(DEAD).await?.len().try_into().unwrap_or(u64::MAX))
    }

    /// The markers of this name, most urgent first. There may be several, after a change of
    /// priority or by BlobForge's janitor.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn read_markers<M>(
        &self,
        name: &str,
    ) -> Result<Vec<(Priority, VersionedRecord<M>)>>
    where
        M: DeserializeOwned + Default,
    {
        let all = futures::future::try_join_all(Priority::ALL.map(|priority| async move {
            let seen = self.engine.read::<M>(&todo_key(priority, name)).await?;
            Ok::<_, Error>(seen.map(|seen| (priority, seen)))
        }))
        .await?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Whether anything of this name waits.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn has_marker(&self, name: &str) -> Result<bool> {
        for priority in Priority::ALL {
            if self.engine.exists(&todo_key(priority, name)).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the markers of these priorities; for the holder of the lock only.
    ///
    /// # Errors
    /// Store errors; some may be removed.
    pub(crate) async fn remove_markers(&self, name: &str, priorities: &[Priority]) -> Result<()> {
        futures::future::try_join_all(priorities.iter().map(|priority: &Priority| {
            let key = todo_key(*priority, name);
            async move { self.engine.delete(&key).await }
        }))
        .await
        .map(drop)
    }

    /// Takes the lock of this name if it is free.
    ///
    /// # Errors
    /// Store errors.
    pub async fn try_lock(
        &self,
        name: &str,
        lock: MarkerLock,
    ) -> Result<Option<ObjectLock<MarkerLock>>> {
        self.engine.acquire_lock(&lock_key(name), lock).await
    }

    /// The lock of this name as anybody sees it; `None` if there is none.
    ///
    /// # Errors
    /// Store errors; transient if it changes faster than it can be read.
    pub(crate) async fn read_lock(
        &self,
        name: &str,
    ) -> Result<Option<engine::ObservedLock<MarkerLock>>> {
        self.engine.read_lock(&lock_key(name)).await
    }

    /// Takes over exactly the version of the lock that was judged ended; `None` if it was renewed,
    /// taken over or released meanwhile.
    ///
    /// # Errors
    /// Store errors.
    pub async fn take_over(
        &self,
        name: &str,
        seen: &Etag,
        lock: MarkerLock,
    ) -> Result<Option<ObjectLock<MarkerLock>>> {
        self.engine.take_over_lock(&lock_key(name), seen, lock).await
    }

    /// Finds a lock taken earlier, by its nonce; `None` if it is another's or gone.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn find_held(
        &self,
        name: &str,
        nonce: &str,
    ) -> Result<Option<ObjectLock<MarkerLock>>> {
        self.engine.find_held_lock(&lock_key(name), nonce).await
    }

    /// Keeps a lock whose second read was successful, and releases any other. If read and release
    /// both fail, the read's error is returned; the lock then stays until it expires.
    ///
    /// # Errors
    /// That of the read, or else that of the store.
    pub(crate) async fn keep_or_release<T>(
        &self,
        mut lock: ObjectLock<MarkerLock>,
        found: Result<Option<T>>,
    ) -> Result<Option<(ObjectLock<MarkerLock>, T)>> {
        match found {
            Ok(Some(found)) => Ok(Some((lock, found))),
            Ok(None) => {
                self.engine.release_lock(&mut lock).await?;
                Ok(None)
            }
            Err(error) => {
                if let Err(second) = self.engine.release_lock(&mut lock).await {
                    tracing::warn!(error = %second, "a lock was not released and will expire: {second}");
                }
                Err(error)
            }
        }
    }

    /// Reads the marker again under the lock, and counts in it by `count`, whose result is
    /// returned. `None`: the marker is gone, `count` declined, or too many concurrent changes; the
    /// next listing shows which.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn count_under_lock<M, F>(
        &self,
        name: &str,
        priority: Priority,
        mut count: F,
    ) -> Result<Option<M>>
    where
        M: Serialize + DeserializeOwned + Default,
        F: FnMut(M) -> Option<M> + Send,
    {
        let key = todo_key(priority, name);
        for turn in 0..TRIES {
            let Some(seen) = self.engine.read::<M>(&key).await? else { return Ok(None) };
            let Some(counted) = count(seen.value) else { return Ok(None) };
            let bytes = to_json_bytes(&counted)?;
            let put = self.engine.store().put_if_match(&key, &seen.etag, bytes).await?;
            if let PutResult::Written(_) = put {
                return Ok(Some(counted));
            }
            back_off(turn).await;
        }
        Ok(None)
    }

    /// Moves an entry with a held lock to the dead letters: first the mark, then the markers of
    /// `priorities` are removed, so that after a crash in between the next scan repeats it. `mark`
    /// makes the record, given the time (RFC 3339, by the store's clock).
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn dead_letter<D: Serialize>(
        &self,
        name: &str,
        priorities: &[Priority],
        mark: impl FnOnce(String) -> D + Send,
    ) -> Result<()> {
        let mark = mark(format_rfc3339(self.engine.now().await?));
        self.engine.write(&dead_key(name), &mark).await?;
        self.remove_markers(name, priorities).await
    }
}
