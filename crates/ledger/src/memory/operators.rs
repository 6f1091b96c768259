//! Operators' actions on the ledger in memory; in Postgres these are statements of `db::operators`.

use super::{LedgerRow, MemoryLedger};
use docmill_core::model::{AttemptOutcome, IngestionId, OutcomeReason};

impl MemoryLedger {
    /// Blocks documents with this SHA-256, as an operator does.
    pub fn block_content(&self, sha256: &str) {
        self.lock_state().blocked.insert(sha256.to_owned());
    }

    /// An operator's `cancel`; `false` if the row is terminal or unknown.
    pub fn cancel(&self, id: IngestionId) -> bool {
        let mut state = self.lock_state();
        let now = state.now;
        let Some(row) = state.rows.get_mut(&id).filter(|row| !row.status.is_terminal()) else {
            return false;
        };
        let detail = "cancelled by an operator";
        let ended = row.ended_attempt(now, AttemptOutcome::Ended(OutcomeReason::Cancelled), detail);
        row.finish(Some(OutcomeReason::Cancelled), detail, now);
        state.close_attempt(id, ended, true);
        true
    }

    /// An operator's `retry`; `false` if the row is not terminal or unknown.
    pub fn reopen(&self, id: IngestionId) -> bool {
        let mut state = self.lock_state();
        let terminal = state.rows.get_mut(&id).filter(|row| row.status.is_terminal());
        terminal.map(LedgerRow::reopen).is_some()
    }
}
