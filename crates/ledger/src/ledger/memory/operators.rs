//! What operators do to the ledger in memory; in Postgres these are statements of `db::operators`.

use super::{MemoryLedger, Row};
use crate::ledger::Pause;
use crate::model::{AttemptOutcome, IngestionId, Reason};

impl MemoryLedger {
    /// Sets what is paused.
    pub fn set_pauses(&self, pauses: Vec<Pause>) {
        self.state().pauses = pauses;
    }

    /// Blocks content.
    pub fn block(&self, sha256: &str) {
        self.state().blocked.insert(sha256.to_owned());
    }

    /// What an operator's `cancel` does; `false` if the row is terminal or unknown.
    pub fn cancel(&self, id: IngestionId) -> bool {
        let mut state = self.state();
        let now = state.now;
        let Some(row) = state.rows.get_mut(&id).filter(|row| !row.status.is_terminal()) else {
            return false;
        };
        let detail = "cancelled by an operator";
        let ended = row.attempt(now, AttemptOutcome::Ended(Reason::Cancelled), detail);
        row.finish(Some(Reason::Cancelled), detail, now);
        state.close(id, ended, true);
        true
    }

    /// What an operator's `retry` does; `false` if the row is not terminal or unknown.
    pub fn reopen(&self, id: IngestionId) -> bool {
        let mut state = self.state();
        let terminal = state.rows.get_mut(&id).filter(|row| row.status.is_terminal());
        terminal.map(Row::reopen).is_some()
    }
}
