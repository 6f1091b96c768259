//! The right to work on a group: its locks, in both layouts, and then a second look at whether it
//! is done.

use std::time::Duration;

use super::Workspace;
use crate::fault::Result;
use crate::queue::objects::engine::{Held, millis};
use crate::queue::objects::olmocr::index::Group;
use crate::queue::objects::olmocr::{Lock, locks};
use crate::store::Etag;

/// The locks of a group, held by us.
#[derive(Debug)]
pub struct Claim {
    held: Vec<Held<Lock>>,
}

/// How an attempt to take a group ended.
#[derive(Debug)]
pub enum Claimed {
    /// It is ours.
    Ours(Claim),
    /// Somebody else has it; its lock is abandoned after so long if it is not renewed.
    Busy(Duration),
    /// It is done.
    Done,
}

/// What a look at a lock found.
enum Seen {
    Free,
    Stale(Etag),
    Fresh(Duration),
}

impl Workspace {
    /// Tries to take a group.
    ///
    /// # Errors
    /// The store's. Locks that were taken are given back before.
    pub async fn claim(&self, worker: &str, group: &Group) -> Result<Claimed> {
        if self.is_done(&group.hash).await? {
            return Ok(Claimed::Done);
        }
        let mut claim = match self.lock(worker, &group.hash).await? {
            Ok(claim) => claim,
            Err(left) => return Ok(Claimed::Busy(left)),
        };
        match self.is_done(&group.hash).await {
            Ok(false) => Ok(Claimed::Ours(claim)),
            Ok(true) => {
                self.release(&mut claim).await?;
                Ok(Claimed::Done)
            }
            Err(error) => {
                self.give_up(&mut claim).await;
                Err(error)
            }
        }
    }

    /// Takes the locks, whatever the group's state; else how long somebody else's lock lasts.
    pub(super) async fn lock(
        &self,
        worker: &str,
        hash: &str,
    ) -> Result<std::result::Result<Claim, Duration>> {
        // Those of the layout we do not write count as well.
        for key in locks(hash) {
            if let Seen::Fresh(left) = self.look(&key).await? {
                return Ok(Err(left));
            }
        }
        let lock = Lock {
            worker: worker.to_owned(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            renewed: self.engine.now().await?,
        };
        let mut claim = Claim { held: Vec::new() };
        for key in self.format.locks(hash) {
            match self.lock_one(&key, &lock).await {
                Ok(Some(held)) => claim.held.push(held),
                Ok(None) => {
                    self.give_up(&mut claim).await;
                    return Ok(Err(self.timeout));
                }
                Err(error) => {
                    self.give_up(&mut claim).await;
                    return Err(error);
                }
            }
        }
        Ok(Ok(claim))
    }

    async fn lock_one(&self, key: &str, lock: &Lock) -> Result<Option<Held<Lock>>> {
        match self.look(key).await? {
            Seen::Free => self.engine.take(key, lock.clone()).await,
            Seen::Stale(etag) => self.engine.take_over(key, &etag, lock.clone()).await,
            Seen::Fresh(_) => Ok(None),
        }
    }

    async fn look(&self, key: &str) -> Result<Seen> {
        let Some(meta) = self.engine.store().head(key).await? else { return Ok(Seen::Free) };
        let now = self.engine.now().await?;
        let age = Duration::from_millis(now.saturating_sub(millis(meta.modified)));
        // olmOCR counts a lock as taken up to the very timeout.
        Ok(match self.timeout.checked_sub(age) {
            Some(left) => Seen::Fresh(left),
            None => Seen::Stale(meta.etag),
        })
    }

    /// Keeps the locks for another while; `false` if one of them is not ours any more.
    ///
    /// # Errors
    /// The store's: the locks may still be ours, and are to be renewed soon.
    pub async fn renew(&self, claim: &mut Claim) -> Result<bool> {
        let now = self.engine.now().await?;
        for held in &mut claim.held {
            if !self.engine.renew(held, |lock| lock.renewed = now).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the locks back; those that are not ours any more are left alone.
    ///
    /// # Errors
    /// The store's: a lock may stay until it is abandoned.
    pub async fn release(&self, claim: &mut Claim) -> Result<()> {
        for held in &mut claim.held {
            self.engine.release(held).await?;
        }
        Ok(())
    }

    /// The same where there is another error to tell.
    pub(super) async fn give_up(&self, claim: &mut Claim) {
        if let Err(error) = self.release(claim).await {
            tracing::warn!(error = %error, "a lock stays until it is abandoned: {error}");
        }
    }

    /// How often a lock is renewed.
    pub(super) fn beat(&self) -> Duration {
        self.timeout / 3
    }

    /// How long a lock lasts without renewal.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}
