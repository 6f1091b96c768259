//! What a worker leaves behind that dies between the result of a group and the release of its locks: the
//! group is done, so nobody takes it any more, and its locks and the entries of what was read would stay
//! for good.
//!
//! Not promised: locks of the layout that is not written here; they are left to whoever writes it.

use std::collections::BTreeSet;

use super::Workspace;
use super::ledger::{GroupEntry, GroupLedger};
use crate::objects::olmocr::{LOCKS, locked_group, result_key};
use docmill_core::fault::Result;

impl Workspace {
    /// Removes what is left of finished groups by workers that died: abandoned locks, and entries of
    /// documents whose text is in the result. A lock that may still be somebody's stays.
    ///
    /// # Errors
    /// The store's; what is left goes the next time.
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
            // As whoever opens a group again: nobody else touches it meanwhile.
            let Ok(mut claim) = self.lock_group(worker, hash).await? else { continue };
            let cleared = self.clear_entries(hash).await;
            self.try_release_locks(&mut claim).await;
            cleared?;
            tracing::info!(group = hash, "what a dead worker left of a finished group is gone");
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
