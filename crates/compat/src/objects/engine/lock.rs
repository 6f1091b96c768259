//! Locks: objects that exactly one holder can change.
//!
//! A lock is created conditionally, or taken over by replacing exactly the version judged
//! abandoned. Renewal and release name the version written last. If the version differs, the lock
//! is read. Its nonce shows whether it is still the holder's (a lost reply, an operator's note) or
//! another's, which the holder then never touches.

use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{RecordStore, TRIES, VersionedRecord, back_off, contention_error, to_json_bytes};
use docmill_core::fault::Result;
use docmill_storage::{Etag, PutResult};

/// The layout's content of a lock.
pub trait LockRecord: Serialize + DeserializeOwned + Default + Clone + Send + Sync {
    /// Different for every taking of a lock.
    fn nonce(&self) -> &str;
}

/// A lock that was taken by us.
#[derive(Debug)]
pub struct ObjectLock<L> {
    key: String,
    etag: Etag,
    lease: L,
}

impl<L> ObjectLock<L> {
    /// The content when last written or read.
    pub fn lease(&self) -> &L {
        &self.lease
    }
}

/// A lock as anybody sees it.
#[derive(Debug, Clone)]
pub struct ObservedLock<L> {
    /// The parsed lock record.
    pub lease: L,
    /// The version that was read.
    pub etag: Etag,
    /// When that version was written, by the store's clock.
    pub modified: SystemTime,
}

impl RecordStore {
    /// Takes a free lock; `None` if it is held.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn acquire_lock<L: LockRecord>(
        &self,
        key: &str,
        lease: L,
    ) -> Result<Option<ObjectLock<L>>> {
        let put = self.store.put_if_absent(key, to_json_bytes(&lease)?).await?;
        Ok(acquired_lock(key, put, lease))
    }

    /// Takes over exactly the version that was judged abandoned; `None` if it was renewed, taken
    /// over or released meanwhile.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn take_over_lock<L: LockRecord>(
        &self,
        key: &str,
        seen: &Etag,
        lease: L,
    ) -> Result<Option<ObjectLock<L>>> {
        let put = self.store.put_if_match(key, seen, to_json_bytes(&lease)?).await?;
        Ok(acquired_lock(key, put, lease))
    }

    /// Renews the lock with the content from `change`; `false` if another holds it. Notes written
    /// into it meanwhile are in the lease afterwards.
    ///
    /// # Errors
    /// Store errors; the lock may or may not have been written, and still has to be renewed.
    pub(crate) async fn renew_lock<L: LockRecord>(
        &self,
        held: &mut ObjectLock<L>,
        change: impl Fn(&mut L) + Send,
    ) -> Result<bool> {
        for turn in 0..TRIES {
            let mut next = held.lease.clone();
            change(&mut next);
            let put = self.store.put_if_match(&held.key, &held.etag, to_json_bytes(&next)?).await?;
            if let PutResult::Written(etag) = put {
                (held.etag, held.lease) = (etag, next);
                return Ok(true);
            }
            if !self.refresh_if_held(held).await? {
                return Ok(false);
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }

    /// Removes the lock; `false` if it was lost, and then it was not touched.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn release_lock<L: LockRecord>(
        &self,
        held: &mut ObjectLock<L>,
    ) -> Result<bool> {
        for turn in 0..TRIES {
            if self.store.delete_if_match(&held.key, &held.etag).await? {
                return Ok(true);
            }
            if !self.refresh_if_held(held).await? {
                return Ok(false);
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }

    /// Finds a lock taken earlier, by its nonce; `None` if it is another's or gone.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn find_held_lock<L: LockRecord>(
        &self,
        key: &str,
        nonce: &str,
    ) -> Result<Option<ObjectLock<L>>> {
        let seen: Option<VersionedRecord<L>> = self.read(key).await?;
        Ok(seen.filter(|seen| seen.value.nonce() == nonce).map(|seen| ObjectLock {
            key: key.to_owned(),
            etag: seen.etag,
            lease: seen.value,
        }))
    }

    /// Reads a lock without changing it; `None` if there is none.
    ///
    /// # Errors
    /// Store errors; transient if it changes faster than it can be read.
    pub(crate) async fn read_lock<L: LockRecord>(
        &self,
        key: &str,
    ) -> Result<Option<ObservedLock<L>>> {
        for turn in 0..TRIES {
            let Some(meta) = self.store.head(key).await? else { return Ok(None) };
            let Some(seen) = self.read::<L>(key).await? else { return Ok(None) };
            // The time belongs to the version that was read, or to none.
            if seen.etag == meta.etag {
                let VersionedRecord { value: lease, etag } = seen;
                return Ok(Some(ObservedLock { lease, etag, modified: meta.modified }));
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }

    /// Adopts the newest version if its nonce matches.
    async fn refresh_if_held<L: LockRecord>(&self, held: &mut ObjectLock<L>) -> Result<bool> {
        match self.read::<L>(&held.key).await? {
            Some(seen) if seen.value.nonce() == held.lease.nonce() => {
                (held.etag, held.lease) = (seen.etag, seen.value);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

fn acquired_lock<L>(key: &str, put: PutResult, lease: L) -> Option<ObjectLock<L>> {
    match put {
        PutResult::Written(etag) => Some(ObjectLock { key: key.to_owned(), etag, lease }),
        PutResult::Refused => None,
    }
}
