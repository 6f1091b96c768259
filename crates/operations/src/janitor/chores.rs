//! The chores of a pass, one function each.
//!
//! A row that waits, is not parked, and has no lease must have a message somewhere. After a long
//! quiet it is sent again: as many as the queue lacks, and in any case so many in a pass that all are
//! within [`RESEND_SWEEP`]. A second message is harmless. The order of messages proves nothing: tiers,
//! groups of tenants and the parts of one queue overtake each other.

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
use docmill_ledger::db::operators::janitor::{self as rows, ResendCandidate, ResendPage};
use docmill_ledger::db::operators::retention::ExpiredAttempt;
use docmill_ledger::db::{
    claims::parking, lanes::webhooks, operators::erasure, operators::idempotency,
    operators::retention, reports::hours, reports::overview,
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
/// Within this time after `janitor.quiet` a row is sent again whatever else the queue holds, as long
/// as `janitor.resends_per_pass` allows it.
const RESEND_SWEEP: Duration = Duration::from_secs(6 * 3600);
/// From then on the log names what holds vacuum back.
const HELD_BACK_WARNING: Duration = Duration::from_secs(3600);
/// A pass sends so many again whatever else the queue holds.
const MIN_RESENDS: u64 = 20;
/// Hours whose ends one pass counts: a first start is through with a month after half an hour.
const HOURS_PER_PASS: i64 = 24;
/// Pages of rows that one pass looks through for a candidate: many may wait for good reasons.
const PAGES_PER_PASS: usize = 10;

impl Maintenance {
    pub(super) async fn tell_oldest(&self) -> Result<()> {
        let oldest = overview::oldest_open_age(&self.db).await?.unwrap_or_default();
        metrics::oldest_in_progress(Duration::try_from_secs_f64(oldest).unwrap_or_default());
        let reviews = overview::measure_reviews(&self.db).await?;
        let waited = Duration::try_from_secs_f64(reviews.oldest_s).unwrap_or_default();
        metrics::set_reviews(reviews.waiting, waited);
        self.tell_vacuum_horizon().await
    }

    /// Tells for how long the same transaction, slot or session has kept vacuum from removing old rows.
    async fn tell_vacuum_horizon(&self) -> Result<()> {
        let horizon = overview::find_vacuum_horizon(&self.db).await?;
        let held = self.lock_progress().horizon.note(horizon.as_ref().map(|it| it.xid.as_str()));
        metrics::vacuum_held_back(held);
        if let Some(horizon) = horizon.filter(|_| held >= HELD_BACK_WARNING) {
            let (held_s, holder) = (held.as_secs(), horizon.holder);
            tracing::warn!(
                held_s,
                holder,
                "vacuum is held back for {held_s} s by {holder}: tables grow"
            );
        }
        Ok(())
    }

    /// Counts the ends of hours that are over, the newest first.
    pub(super) async fn count_hours(&self, turn: ChoreTurn<'_>) -> Result<()> {
        for hour in hours::find_uncounted_hours(&self.db, HOURS_PER_PASS).await? {
            if turn.is_over() {
                break;
            }
            hours::count_hour(&self.db, hour).await?;
        }
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
        let page = self.find_candidates().await?;
        pass.candidates = page.candidates.len();
        let mut chosen = page.candidates;
        let (lost, budget) = self.plan_resends(pass.candidates).await?;
        chosen.truncate(lost.max(budget));
        pass.queue_is_behind = chosen.len() < pass.candidates;
        pass.resent = chosen.iter().map(|row| row.id).collect();
        if pass.dry_run {
            return Ok(());
        }
        if !chosen.is_empty() {
            let sent = self.send_again(chosen, pass).await;
            metrics::count_resent(u64::try_from(pass.resent.len().min(lost)).unwrap_or(u64::MAX));
            sent?;
        }
        if !pass.queue_is_behind {
            self.lock_progress().resend = page.next;
        }
        Ok(())
    }

    /// The next rows that may have lost their message.
    async fn find_candidates(&self) -> Result<ResendPage> {
        let mut page = ResendPage { next: self.lock_progress().resend, ..ResendPage::default() };
        for _ in 0..PAGES_PER_PASS {
            let (quiet, limit) = (self.config.quiet, self.config.resends_per_pass);
            page = rows::find_resend_candidates(&self.db, quiet, page.next, limit).await?;
            if !page.candidates.is_empty() || page.next.is_none() {
                break;
            }
        }
        Ok(page)
    }

    /// How many messages are gone by the counts of rows and messages, and how many candidates are sent
    /// again in any case. Rows are counted only as long as that makes a difference.
    async fn plan_resends(&self, candidates: usize) -> Result<(usize, usize)> {
        if candidates == 0 {
            return Ok((0, 0));
        }
        let depth = self.queue.depth().await?;
        let messages = depth.ready + depth.delayed + depth.in_flight;
        let most = u64::from(self.config.resends_per_pass);
        let budget = resend_budget(messages, self.config.interval).min(most);
        let lost = if budget < most {
            let counted = messages + messages / COUNT_ERROR + most + 1;
            lost_messages(messages, rows::count_sendable(&self.db, self.early, counted).await?)
        } else {
            0
        };
        let [lost, budget] =
            [lost, budget].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok((lost, budget))
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

/// How many messages are gone, if the queue holds `messages` of `rows` that should have one. A few too
/// few are an error of counting.
pub fn lost_messages(messages: u64, rows: u64) -> u64 {
    if regression::is_off(FixToggle::ResendCount) {
        // A row quiet for this long was taken for lost, once a later message had come.
        return rows;
    }
    let missing = rows.saturating_sub(messages);
    if missing > messages / COUNT_ERROR { missing } else { 0 }
}

/// How many rows a pass sends again in any case, so that a sweep over as many as the queue holds
/// ends in time.
fn resend_budget(messages: u64, interval: Duration) -> u64 {
    let passes = RESEND_SWEEP.as_secs() / interval.as_secs().max(1);
    messages.div_ceil(passes.max(1)).max(MIN_RESENDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_sent_again_as_the_queue_holds_too_few() {
        #[rustfmt::skip]
        let table = [
            ("an empty queue: all are lost",                        0,     500,   500),
            ("a full one in whatever order: none",                  5_000, 5_000, 0),
            ("more messages than rows, as after duplicates: none",  6_000, 5_000, 0),
            ("a counting error of a hundredth: none",               9_900, 9_999, 0),
            ("half of them are gone",                               500,   1_000, 500),
            ("one of a few",                                        10,    11,    1),
        ];
        for (name, messages, rows, lost) in table {
            assert_eq!(lost_messages(messages, rows), lost, "{name}");
        }
    }

    #[test]
    fn whatever_the_queue_holds_as_many_are_sent_again_within_six_hours() {
        let minute = Duration::from_secs(60);
        for (messages, interval, budget) in [
            (0, minute, 20),
            (7_200, minute, 20),
            (36_000, minute, 100),
            (36_000, minute * 10, 1_000),
            (36_000, Duration::from_millis(100), 20),
            (36_000, minute * 6_000, 36_000),
        ] {
            assert_eq!(resend_budget(messages, interval), budget, "{messages} every {interval:?}");
        }
    }
}
