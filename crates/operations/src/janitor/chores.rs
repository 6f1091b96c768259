//! The chores of a pass, one function each.
//!
//! A row that waits, is not parked, and has no lease must have a message somewhere. After a long
//! quiet it is sent again, but only as many as the queue lacks. The order of messages proves
//! nothing: tiers, groups of tenants and the parts of one queue overtake each other.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use super::{ChoreTurn, JanitorReport, Maintenance};
use futures::StreamExt as _;

use crate::dead::{self, ReconcileTerms};
use crate::erase::{self, ErasureBackends};
use crate::sending;
use docmill_core::fault::{Error, Result};
use docmill_core::metrics;
use docmill_core::model::IngestionId;
use docmill_core::regression::{self, FixToggle};
use docmill_ledger::db::operators::janitor::{self as rows, ResendCandidate};
use docmill_ledger::db::operators::retention::ExpiredAttempt;
use docmill_ledger::db::{
    claims::parking, lanes::webhooks, operators::erasure, operators::idempotency,
    operators::retention, reports::overview,
};
use docmill_pipeline::journal;

/// Parked rows whose messages are sent together.
const WOKEN_TOGETHER: u32 = 500;
/// Dead letters that one pass checks.
const DEAD_PER_PASS: usize = 10_000;
/// Old rows deleted of one table at a time: short transactions.
const ROWS_TOGETHER: u32 = 5000;
/// Batches of old attempts that one pass deletes: however many there are, it stays short, and what
/// waits to be woken does not wait for them. A pass a minute deletes 14 million a day.
const BATCHES_PER_PASS: usize = 2;
/// Attempts whose pages are cleared and which are deleted before the next ones: a pass that is cut
/// off has got somewhere, however slow the store.
const ATTEMPTS_TOGETHER: usize = 100;
/// Ingestions whose pages are cleared at the same time.
const CLEARED_AT_ONCE: usize = 16;
/// No message can come any more for what was erased longer ago (SQS keeps 14 days).
const MESSAGE_LIFETIME: Duration = Duration::from_secs(15 * 24 * 3600);
/// A worker without a heartbeat for this long is gone.
const WORKER_SILENCE: Duration = Duration::from_secs(24 * 3600);
/// A queue's counts may be off by this part of what it holds.
const COUNT_ERROR: u64 = 50;
/// No message is hidden for longer; a row that was silent this long is sent again in any case, one
/// in a pass.
const MAX_SILENCE: Duration = Duration::from_secs(12 * 3600);

impl Maintenance {
    pub(super) async fn tell_oldest(&self) -> Result<()> {
        let oldest = overview::oldest_open_age(&self.db).await?.unwrap_or_default();
        metrics::oldest_in_progress(Duration::try_from_secs_f64(oldest).unwrap_or_default());
        Ok(())
    }

    /// Ingestions whose message could not be sent are parked again, due at once.
    pub(super) async fn wake_parked(
        &self,
        pass: &mut JanitorReport,
        turn: ChoreTurn<'_>,
    ) -> Result<()> {
        while !turn.is_over() {
            let woken = parking::unpark(&self.db, WOKEN_TOGETHER).await?;
            if woken.is_empty() {
                return Ok(());
            }
            let (unsent, failed) = self.send_each(&woken).await;
            pass.woken += woken.len() - unsent.len();
            if let Some(error) = failed {
                let unsent: Vec<IngestionId> = unsent.into_iter().collect();
                parking::park_unsent(&self.db, &unsent).await?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sends a message for each; returns those that were not sent, and why.
    async fn send_each(&self, ids: &[IngestionId]) -> (HashSet<IngestionId>, Option<Error>) {
        let answers = match sending::send_messages(&self.db, self.queue.as_ref(), ids).await {
            Ok(answers) => answers,
            Err(error) => return (ids.iter().copied().collect(), Some(error)),
        };
        let mut unsent = HashSet::new();
        let mut failed = None;
        for (id, answer) in ids.iter().zip(answers) {
            if let Err(error) = answer {
                unsent.insert(*id);
                failed = Some(error);
            }
        }
        (unsent, failed)
    }

    pub(super) async fn resend_lost(&self, pass: &mut JanitorReport) -> Result<()> {
        let (quiet, limit) = (self.config.quiet, self.config.resends_per_pass);
        let after = self.lock_progress().resend;
        let page = rows::find_resend_candidates(&self.db, quiet, after, limit).await?;
        pass.candidates = page.candidates.len();
        let lost = self.count_lost(&page.candidates).await?;
        let mut chosen = page.candidates;
        chosen.truncate(lost);
        pass.queue_is_behind = chosen.len() < pass.candidates;
        pass.resent = chosen.iter().map(|row| row.id).collect();
        if pass.dry_run {
            return Ok(());
        }
        if !chosen.is_empty() {
            self.send_again(chosen, pass).await?;
        }
        if !pass.queue_is_behind {
            self.lock_progress().resend = page.next;
        }
        Ok(())
    }

    /// How many of the candidates have lost their message, estimated by counts.
    async fn count_lost(&self, candidates: &[ResendCandidate]) -> Result<usize> {
        let Some(silence) = candidates.iter().map(|row| row.silent_for).max() else {
            return Ok(0);
        };
        let depth = self.queue.depth().await?;
        let messages = depth.ready + depth.delayed + depth.in_flight;
        let most = messages + messages / COUNT_ERROR + u64::from(self.config.resends_per_pass) + 1;
        let rows = rows::count_sendable(&self.db, self.early, most).await?;
        Ok(usize::try_from(lost_messages(messages, rows, silence)).unwrap_or(usize::MAX))
    }

    /// Noted first, then sent: a crash in between costs one longer quiet, never a flood. Unsent
    /// rows stay as before.
    async fn send_again(
        &self,
        mut chosen: Vec<ResendCandidate>,
        pass: &mut JanitorReport,
    ) -> Result<()> {
        let ids: Vec<IngestionId> = chosen.iter().map(|row| row.id).collect();
        let noted = rows::mark_enqueued(&self.db, &ids).await?;
        let (unsent, failed) = self.send_each(&noted).await;
        pass.resent = noted.into_iter().filter(|id| !unsent.contains(id)).collect();
        metrics::count_resent(u64::try_from(pass.resent.len()).unwrap_or(u64::MAX));
        let Some(error) = failed else { return Ok(()) };
        chosen.retain(|row| unsent.contains(&row.id));
        rows::unmark_enqueued(&self.db, &chosen).await?;
        Err(error)
    }

    pub(super) async fn reconcile_letters(
        &self,
        pass: &mut JanitorReport,
        turn: ChoreTurn<'_>,
    ) -> Result<()> {
        let terms = ReconcileTerms {
            most: DEAD_PER_PASS,
            crash_limit: self.crash_limit,
            dry_run: pass.dry_run,
        };
        let letters =
            dead::reconcile_letters(&self.db, self.queue.as_ref(), terms, Some(turn)).await?;
        (pass.revived, pass.cleared) = (letters.revived, letters.cleared);
        pass.given_up = letters.given_up;
        Ok(())
    }

    pub(super) async fn delete_old_rows(
        &self,
        pass: &mut JanitorReport,
        turn: ChoreTurn<'_>,
    ) -> Result<()> {
        let age = self.config.row_retention;
        pass.deleted_rows += retention::delete_workers(&self.db, WORKER_SILENCE).await?;
        pass.deleted_rows += retention::delete_quarantined(&self.db, age, ROWS_TOGETHER).await?;
        pass.deleted_rows += erasure::forget_erased(&self.db, age.max(MESSAGE_LIFETIME)).await?;
        pass.deleted_rows += idempotency::delete_answers(&self.db, ROWS_TOGETHER).await?;
        self.tidy_webhooks(pass, turn).await?;
        let mut failed = None;
        for _ in 0..BATCHES_PER_PASS {
            let after = self.lock_progress().attempts;
            let old =
                retention::find_expired_attempts(&self.db, age, after.as_ref(), ROWS_TOGETHER)
                    .await?;
            for together in old.chunks(ATTEMPTS_TOGETHER) {
                if turn.is_over() {
                    return failed.map_or(Ok(()), Err);
                }
                let (deleted, error) = self.delete_attempts(together).await?;
                pass.deleted_rows += deleted;
                failed = error.or(failed);
                // Behind those whose pages stay as well: they would keep all others for ever.
                self.lock_progress().attempts = together.last().copied();
            }
            if u32::try_from(old.len()).unwrap_or(u32::MAX) < ROWS_TOGETHER {
                self.lock_progress().attempts = None;
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Gives up deliveries that no process sends any more, and deletes those that ended long ago.
    async fn tidy_webhooks(&self, pass: &mut JanitorReport, turn: ChoreTurn<'_>) -> Result<()> {
        let (patience, age) = (self.webhooks.give_up_after, self.webhooks.retention);
        for id in webhooks::find_stale(&self.db, patience, ROWS_TOGETHER).await? {
            if turn.is_over() {
                return Ok(());
            }
            webhooks::give_up_delivery(&self.db, id).await?;
        }
        pass.deleted_rows += webhooks::forget_targets(&self.db, patience).await?;
        for _ in 0..BATCHES_PER_PASS {
            let deleted = webhooks::delete_ended(&self.db, age, ROWS_TOGETHER).await?;
            pass.deleted_rows += deleted;
            if deleted < u64::from(ROWS_TOGETHER) || turn.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Finished pages that were left in the store go before the attempts, which are what leads to
    /// them. Attempts whose pages cannot be removed stay, the others go: how many, and why one
    /// stays.
    async fn delete_attempts(&self, old: &[ExpiredAttempt]) -> Result<(u64, Option<Error>)> {
        let left_over: BTreeSet<IngestionId> =
            old.iter().filter(|attempt| attempt.left_pages).map(|old| old.ingestion).collect();
        let clear = left_over
            .into_iter()
            .map(|id| async move { (id, journal::clear_journal(self.store.as_ref(), id).await) });
        let cleared: Vec<_> =
            futures::stream::iter(clear).buffer_unordered(CLEARED_AT_ONCE).collect().await;
        let (mut kept, mut failed) = (BTreeSet::new(), None);
        for (id, outcome) in cleared {
            if let Err(error) = outcome {
                kept.insert(id);
                failed = Some(error);
            }
        }
        let gone: Vec<ExpiredAttempt> =
            old.iter().filter(|attempt| !kept.contains(&attempt.ingestion)).copied().collect();
        Ok((retention::delete_attempts(&self.db, &gone).await?, failed))
    }

    pub(super) async fn erase_expired(
        &self,
        pass: &mut JanitorReport,
        turn: ChoreTurn<'_>,
    ) -> Result<()> {
        let (store, queue) = (self.store.as_ref(), self.queue.as_ref());
        let places = ErasureBackends { db: &self.db, store, queue };
        let done = erase::erase_expired(places, &self.retention, Some(turn)).await?;
        pass.expired = done.erased;
        match done.failed {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

/// How many messages are gone, if the queue holds `messages` of `rows` that should have one and the
/// longest silent row has been so for `silence`. A few too few are an error of counting.
pub fn lost_messages(messages: u64, rows: u64, silence: Duration) -> u64 {
    if regression::is_off(FixToggle::ResendCount) {
        // A row quiet for this long was taken for lost, once a later message had come.
        return rows;
    }
    let missing = rows.saturating_sub(messages);
    if missing > messages / COUNT_ERROR {
        return missing;
    }
    u64::from(silence >= MAX_SILENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_sent_again_as_the_queue_holds_too_few() {
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
        #[rustfmt::skip]
        let table = [
            ("an empty queue: all are lost",                        0,     500,   hour, 500),
            ("a full one in whatever order: none",                  5_000, 5_000, hour, 0),
            ("more messages than rows, as after duplicates: none",  6_000, 5_000, hour, 0),
            ("a counting error of a hundredth: none",               9_900, 9_999, hour, 0),
            ("half of them are gone",                               500,   1_000, hour, 500),
            ("one of a few",                                        10,    11,    hour, 1),
            ("none missing, but silent for longer than any hiding", 5_000, 5_000, day,  1),
        ];
        for (name, messages, rows, silence, lost) in table {
            assert_eq!(lost_messages(messages, rows, silence), lost, "{name}");
        }
    }
}
