//! Cleans up after workers that died between writing a group's result and releasing its locks. The
//! group is done, so it is never claimed again, and its locks and ledger entries would stay
//! forever.
//!
//! Not promised: locks of the layout that is not written here.

use std::collections::BTreeSet;

use super::Workspace;
use super::ledger::{GroupEntry, GroupLedger};
use crate::objects::olmocr::{LOCKS, locked_group, result_key};
use docmill_core::fault::Result;

impl Workspace {
    /// Removes leftovers of finished groups: abandoned locks, and entries of documents whose text
    /// is in the result. A lock that may be live stays.
    ///
    /// # Errors
    /// Store errors; the next call removes the rest.
    pub(super) async fn clear_finished(
        &self,
        worker: &str,
        finished: &BTreeSet<String>,
    ) -> Result<()> {
        let locks = self.engine.list_all(LOCKS).await?;
        let is_ours = |key: &String, hash: &str| self.format.lock_keys(hash).contains(key);
        let locked = locks
            .iter()
            .filter_map(|entry| locked_group(&entry.key).filter(|hash| is_ours(&entry.key, hash)));
        let left: BTreeSet<&str> = locked.filter(|hash| finished.contains(*hash)).collect();
        for hash in left {
            // Under the group's locks, like a reopening.
            let Ok(mut claim) = self.lock_group(worker, hash).await? else { continue };
            let cleared = self.clear_entries(hash).await;
            self.try_release_locks(&mut claim).await;
            cleared?;
            tracing::info!(group = hash, "removed a dead worker's leftovers of a finished group");
        }
        Ok(())
    }

    async fn clear_entries(&self, hash: &str) -> Result<()> {
        // A group that is being opened again may have a flag and no result: then its lines are in
        // the entries, and nowhere else.
        if !self.engine.exists(&result_key(hash)).await? {
            return Ok(());
        }
        let mut known = GroupLedger::load(self, hash).await?;
        known.remove(self, |entry: &GroupEntry| !entry.is_unread()).await
    }
}
