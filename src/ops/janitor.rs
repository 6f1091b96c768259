//! Finds what was lost between Postgres and the queue, and keeps the tables small.
//!
//! A row that waits, with no lease and nothing that holds it back, must have a message somewhere.
//! After a long quiet it is sent again, but only if the queue is not simply behind: a row whose
//! message is still in line must not be sent a second time. Dead-lettered messages of live rows
//! are lost triggers and are sent again as well. One worker at a time does this, by a lease in
//! Postgres; `docmill janitor` does one pass by hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;

use crate::ops::erase::{self, ErasureBackends};
use crate::ops::{dead, sending};
use crate::pipeline::journal;
use crate::shutdown::Shutdown;
use docmill_core::config::JanitorConfig;
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::IngestionId;
use docmill_ledger::db::Db;
use docmill_ledger::db::{erasure, janitor as rows, overview, retention};
use docmill_queue::queue::MessageQueue;
use docmill_storage::store::ObjectStore;

/// The lease of the leader.
const LEASE: &str = "janitor";
/// How long the leader leads without renewing.
const LEADS: Duration = Duration::from_secs(180);
/// The queue has passed a row if a message sent so much later has been received already.
const OVERTAKEN_BY: Duration = Duration::from_secs(60);
/// Dead letters that one pass checks.
const DEAD_PER_PASS: usize = 1000;

/// Old rows deleted of one table in one pass: short transactions.
const ROWS_PER_PASS: u32 = 5000;
/// No message can come any more for what was erased longer ago (SQS keeps 14 days).
const MESSAGES_LIVE: Duration = Duration::from_secs(15 * 24 * 3600);
/// A worker not heard of for so long is gone.
const WORKER_SILENCE: Duration = Duration::from_secs(24 * 3600);

/// The backends and settings of the maintenance.
pub struct Maintenance {
    /// The Postgres database.
    pub db: Db,
    /// The queue of messages that name ingestions.
    pub queue: Arc<dyn MessageQueue>,
    /// The store of original documents and artefacts.
    pub store: Arc<dyn ObjectStore>,
    /// How often passes are made, and how much each may do.
    pub config: JanitorConfig,
    /// After so many attempts that no worker survived a row is failed; see `retry.crash_attempts`.
    pub crash_limit: u32,
    /// The name of this worker, for the lease.
    pub holder: String,
}

/// What one pass did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct JanitorReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Rows that waited long enough to be looked at.
    pub candidates: usize,
    /// Rows whose message was sent again.
    pub resent: Vec<IngestionId>,
    /// Whether the queue was found to be behind some of them, which were left alone.
    pub queue_is_behind: bool,
    /// Dead letters of live rows that were sent again.
    pub revived: usize,
    /// Dead letters that stand for nothing any more and were deleted.
    pub cleared: usize,
    /// Dead-lettered rows that no worker survived, failed as `crashed`.
    pub given_up: usize,
    /// Old rows that were deleted.
    pub deleted_rows: u64,
    /// Things the queue's backend put right.
    pub queue_repairs: u64,
    /// Documents erased because their tenant's retention is over.
    pub expired: usize,
}

impl Maintenance {
    /// Makes passes at the configured interval, whenever this worker leads, until asked to stop.
    pub async fn run(self, stop: Shutdown) {
        if !self.config.enabled {
            return;
        }
        loop {
            // A random part, so that workers started together do not ask together.
            let pause = self.config.interval.mul_f64(0.75 + fastrand::f64() / 2.0);
            tokio::select! {
                () = stop.wait_until_requested() => return self.release_lead().await,
                () = tokio::time::sleep(pause) => {}
            }
            match self.run_if_leader().await {
                Ok(Some(pass)) => log_report(&pass),
                Ok(None) => {}
                Err(error) => tracing::warn!(error = %error, "maintenance failed: {error}"),
            }
        }
    }

    /// The next leader need not wait for the lease to run out.
    async fn release_lead(&self) {
        if let Err(error) = rows::release_lead(&self.db, LEASE, &self.holder).await {
            tracing::debug!(error = %error, "the lead was not given up: {error}");
        }
    }

    async fn run_if_leader(&self) -> fault::Result<Option<JanitorReport>> {
        if !rows::try_acquire_lead(&self.db, LEASE, &self.holder, LEADS).await? {
            metrics::oldest_in_progress(Duration::ZERO);
            return Ok(None);
        }
        let oldest = overview::oldest_open_age(&self.db).await?.unwrap_or_default();
        metrics::oldest_in_progress(Duration::try_from_secs_f64(oldest).unwrap_or_default());
        self.run_pass(false).await.map(Some)
    }

    /// One pass over everything.
    ///
    /// # Errors
    /// Postgres or the queue does not answer; what was done until then stays done.
    pub async fn run_pass(&self, dry_run: bool) -> fault::Result<JanitorReport> {
        let mut pass = JanitorReport { dry_run, ..JanitorReport::default() };
        self.resend(&mut pass).await?;
        let (queue, crash_limit) = (self.queue.as_ref(), self.crash_limit);
        let letters =
            dead::reconcile_letters(&self.db, queue, DEAD_PER_PASS, crash_limit, dry_run).await?;
        (pass.revived, pass.cleared) = (letters.revived, letters.cleared);
        pass.given_up = letters.given_up;
        if !dry_run {
            pass.deleted_rows = self.delete_old_rows().await?;
            pass.queue_repairs = self.queue.run_maintenance().await?;
            let (store, queue) = (self.store.as_ref(), self.queue.as_ref());
            pass.expired =
                erase::erase_expired(ErasureBackends { db: &self.db, store, queue }).await?;
        }
        Ok(pass)
    }

    async fn resend(&self, pass: &mut JanitorReport) -> fault::Result<()> {
        let limit = self.config.resends_per_pass;
        let waiting = rows::find_resend_candidates(&self.db, self.config.quiet, limit).await?;
        pass.candidates = waiting.len();
        if waiting.is_empty() {
            return Ok(());
        }
        let line = self.queue_progress().await?;
        pass.resent =
            waiting.iter().filter(|row| line.has_lost(row.enqueued_at)).map(|row| row.id).collect();
        pass.queue_is_behind = pass.resent.len() < waiting.len();
        if !pass.dry_run && !pass.resent.is_empty() {
            self.send_again(&pass.resent).await?;
        }
        Ok(())
    }

    /// Marked first, then sent: a crash in between costs one longer quiet, never a flood.
    async fn send_again(&self, ids: &[IngestionId]) -> fault::Result<()> {
        rows::mark_enqueued(&self.db, ids).await?;
        let answers = sending::send_messages(&self.db, self.queue.as_ref(), ids).await?;
        let sent = answers.iter().filter(|answer| answer.is_ok()).count();
        metrics::count_resent(u64::try_from(sent).unwrap_or(u64::MAX));
        match answers.into_iter().find_map(Result::err) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    async fn delete_old_rows(&self) -> fault::Result<u64> {
        let age = self.config.row_retention;
        let attempts = self.delete_old_attempts(age).await?;
        let messages = retention::delete_quarantined(&self.db, age, ROWS_PER_PASS).await?;
        let workers = retention::delete_workers(&self.db, WORKER_SILENCE).await?;
        let erased = erasure::forget_erased(&self.db, age.max(MESSAGES_LIVE)).await?;
        Ok(attempts + messages + workers + erased)
    }

    /// Finished pages that were left in the store go before the attempts, which are what leads to
    /// them.
    async fn delete_old_attempts(&self, age: Duration) -> fault::Result<u64> {
        let old = retention::find_expired_attempts(&self.db, age, ROWS_PER_PASS).await?;
        let left_over: BTreeSet<IngestionId> =
            old.iter().filter(|attempt| attempt.left_pages).map(|old| old.ingestion).collect();
        for id in left_over {
            journal::clear_journal(self.store.as_ref(), id).await?;
        }
        retention::delete_attempts(&self.db, &old).await
    }

    /// How far the queue has come, as far as it is known.
    async fn queue_progress(&self) -> fault::Result<QueueProgress> {
        let depth = self.queue.depth().await?;
        let position = rows::queue_position(&self.db, self.config.quiet).await?;
        Ok(QueueProgress {
            messages: depth.ready + depth.delayed,
            explained: rows::count_recently_sent(&self.db, self.config.quiet).await?,
            position: position.map(|position| position.newest),
        })
    }
}

/// The line of messages, as far as it can be known.
#[derive(Debug, Clone, Copy)]
struct QueueProgress {
    /// Messages that wait in it.
    messages: u64,
    /// Rows that were sent within the quiet time and may have such a message.
    explained: u64,
    /// When the newest message was sent that a worker has received lately.
    position: Option<OffsetDateTime>,
}

impl QueueProgress {
    /// Whether the message of a row sent at this time cannot be in the line any more: either later
    /// ones have been received, or no message is left that could be it.
    fn has_lost(&self, enqueued_at: OffsetDateTime) -> bool {
        let overtaken = self.position.is_some_and(|at| at > enqueued_at + OVERTAKEN_BY);
        overtaken || self.messages <= self.explained
    }
}

fn log_report(pass: &JanitorReport) {
    let JanitorReport { resent, revived, cleared, deleted_rows, queue_repairs, .. } = pass;
    let resent = resent.len();
    if resent + revived + cleared > 0 || *deleted_rows + *queue_repairs > 0 {
        tracing::info!(
            resent,
            revived,
            cleared,
            deleted_rows,
            queue_repairs,
            "maintenance: {resent} ingestions sent again, {revived} dead letters revived"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_lost_only_if_the_line_has_passed_it_or_holds_no_message_that_could_be_its() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let sent = now - Duration::from_secs(3600);
        let line = |messages, explained, position| QueueProgress { messages, explained, position };
        #[rustfmt::skip]
        let table = [
            ("a full line nobody has looked at: behind",  line(5000, 0, None),                             false),
            ("an empty line: lost",                       line(0, 0, None),                                true),
            ("only messages sent lately: lost",           line(500, 500, None),                            true),
            ("later messages were received: lost",        line(5000, 0, Some(now)),                        true),
            ("workers are at older ones: behind",         line(5000, 0, Some(sent - OVERTAKEN_BY)),        false),
            ("workers are just there: behind",            line(5000, 0, Some(sent + OVERTAKEN_BY)),        false),
        ];
        for (name, line, lost) in table {
            assert_eq!(line.has_lost(sent), lost, "{name}");
        }
    }
}
