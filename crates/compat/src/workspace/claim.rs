//! The right to work on a group: its locks, in both layouts, and then a second check whether it is
//! done.

use std::time::Duration;

use super::Workspace;
use crate::objects::engine::{ObjectLock, to_millis};
use crate::objects::olmocr::index::WorkGroup;
use crate::objects::olmocr::{WorkspaceLock, all_lock_keys};
use docmill_core::fault::Result;
use docmill_pipeline::failpoint::{FailureSeam, guard_call};
use docmill_storage::Etag;

/// The locks of a group, taken by us.
#[derive(Debug)]
pub struct GroupClaim {
    held: Vec<ObjectLock<WorkspaceLock>>,
}

/// How an attempt to take a group ended.
#[derive(Debug)]
pub enum GroupClaimResult {
    /// The group is claimed by us.
    Ours(GroupClaim),
    /// Another node holds it; without renewal its lock is abandoned after this time.
    Busy(Duration),
    /// The group is finished already.
    Done,
}

/// The status of a lock.
enum LockStatus {
    Free,
    Stale(Etag),
    Fresh(Duration),
}

impl Workspace {
    /// Tries to take a group.
    ///
    /// # Errors
    /// Store errors. Locks that were taken are released before.
    pub async fn claim_group(&self, worker: &str, group: &WorkGroup) -> Result<GroupClaimResult> {
        if self.is_done(&group.hash).await? {
            return Ok(GroupClaimResult::Done);
        }
        let mut claim = match self.lock_group(worker, &group.hash).await? {
            Ok(claim) => claim,
            Err(left) => return Ok(GroupClaimResult::Busy(left)),
        };
        match self.is_done(&group.hash).await {
            Ok(false) => Ok(GroupClaimResult::Ours(claim)),
            Ok(true) => {
                self.release_locks(&mut claim).await?;
                Ok(GroupClaimResult::Done)
            }
            Err(error) => {
                self.try_release_locks(&mut claim).await;
                Err(error)
            }
        }
    }

    /// Takes the locks, whatever the group's state; otherwise the remaining time of another's lock.
    pub(super) async fn lock_group(
        &self,
        worker: &str,
        hash: &str,
    ) -> Result<std::result::Result<GroupClaim, Duration>> {
        // Those of the layout we do not write count as well.
        for key in all_lock_keys(hash) {
            if let LockStatus::Fresh(left) = self.inspect_lock(&key).await? {
                return Ok(Err(left));
            }
        }
        let lock = WorkspaceLock {
            worker: worker.to_owned(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            renewed: self.engine.now().await?,
        };
        let mut claim = GroupClaim { held: Vec::new() };
        for key in self.format.lock_keys(hash) {
            match self.lock_one(&key, &lock).await {
                Ok(Some(held)) => claim.held.push(held),
                Ok(None) => {
                    self.try_release_locks(&mut claim).await;
                    return Ok(Err(self.timeout));
                }
                Err(error) => {
                    self.try_release_locks(&mut claim).await;
                    return Err(error);
                }
            }
        }
        Ok(Ok(claim))
    }

    async fn lock_one(
        &self,
        key: &str,
        lock: &WorkspaceLock,
    ) -> Result<Option<ObjectLock<WorkspaceLock>>> {
        match self.inspect_lock(key).await? {
            LockStatus::Free => {
                guard_call(FailureSeam::Claim, self.engine.acquire_lock(key, lock.clone())).await
            }
            LockStatus::Stale(etag) => {
                let taking = self.engine.take_over_lock(key, &etag, lock.clone());
                guard_call(FailureSeam::Claim, taking).await
            }
            LockStatus::Fresh(_) => Ok(None),
        }
    }

    async fn inspect_lock(&self, key: &str) -> Result<LockStatus> {
        let Some(meta) = self.engine.store().head(key).await? else { return Ok(LockStatus::Free) };
        let now = self.engine.now().await?;
        let age = Duration::from_millis(now.saturating_sub(to_millis(meta.modified)));
        // olmOCR counts a lock as taken up to the very timeout.
        Ok(match self.timeout.checked_sub(age) {
            Some(left) => LockStatus::Fresh(left),
            None => LockStatus::Stale(meta.etag),
        })
    }

    /// Renews the locks; `false` if one of them was lost.
    ///
    /// # Errors
    /// Store errors: the locks may still be held, and should be renewed soon.
    pub async fn renew_locks(&self, claim: &mut GroupClaim) -> Result<bool> {
        let now = self.engine.now().await?;
        for held in &mut claim.held {
            let renewing = self.engine.renew_lock(held, |lock| lock.renewed = now);
            if !guard_call(FailureSeam::Lease, renewing).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Releases the locks, except lost ones.
    ///
    /// # Errors
    /// Store errors: a lock may stay until it is abandoned.
    pub async fn release_locks(&self, claim: &mut GroupClaim) -> Result<()> {
        for held in &mut claim.held {
            guard_call(FailureSeam::Unlock, self.engine.release_lock(held)).await?;
        }
        Ok(())
    }

    /// Releases the locks, and only logs a failure: for callers that return another error.
    pub(super) async fn try_release_locks(&self, claim: &mut GroupClaim) {
        if let Err(error) = self.release_locks(claim).await {
            tracing::warn!(error = %error, "a lock was not released and will expire: {error}");
        }
    }

    /// How often a lock is renewed.
    pub(super) fn renewal_interval(&self) -> Duration {
        self.timeout / 3
    }

    /// How long a lock lasts without renewal.
    pub(super) fn lock_timeout(&self) -> Duration {
        self.timeout
    }
}
