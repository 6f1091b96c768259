//! Finds what was lost between Postgres and the queue, wakes what was parked, keeps the tables
//! small.
//!
//! One worker at a time leads, by a lease in Postgres that is renewed before every chore; `docmill
//! janitor` makes one pass by hand, as the leader too. Chores do not depend on each other: one that
//! fails is counted and the next begins. Each has a limit of time below that of the lead, and what
//! a chore leaves undone when it is cut off is what a crash would leave: the next pass goes on.
//!
//! Not promised: that a lost message is noticed before its row has been silent for `janitor.quiet`, and
//! then within minutes while many other rows have been so too: it takes hours at most.

mod chores;

pub use chores::lost_messages;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::batches::BatchCollector;
use crate::erase::RetentionSweep;
use crate::silent_errors;
use docmill_core::config::{
    AcknowledgeMode, Config, JanitorConfig, SilentErrorsConfig, WebhooksConfig,
};
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::IngestionId;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::janitor::{self as rows, SendPosition};
use docmill_ledger::db::operators::retention::ExpiredAttempt;
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::MessageQueue;
use docmill_storage::ObjectStore;

/// The lease of the leader.
const LEASE: &str = "janitor";
/// How long the leader leads without renewing: longer than any chore.
const LEAD_LEASE: Duration = Duration::from_secs(180);
/// A chore that takes longer is cut off.
const MAX_CHORE: Duration = Duration::from_secs(60);
/// A chore that works in batches begins no other after this time.
const CHORE_TURN: Duration = Duration::from_secs(30);
/// Time for a running chore to end at the stop.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Dependencies of maintenance.
pub struct MaintenanceBackends {
    /// The Postgres database.
    pub db: Db,
    /// The queue of messages that name ingestions.
    pub queue: Arc<dyn MessageQueue>,
    /// The store of original documents and artefacts.
    pub store: Arc<dyn ObjectStore>,
}

/// Maintenance of one service.
pub struct Maintenance {
    db: Db,
    queue: Arc<dyn MessageQueue>,
    store: Arc<dyn ObjectStore>,
    config: JanitorConfig,
    webhooks: WebhooksConfig,
    silent_errors: SilentErrorsConfig,
    crash_limit: u32,
    /// Messages are deleted before the work: a claimed row needs none.
    early: bool,
    /// The name of this worker, for the lease.
    holder: String,
    progress: Mutex<SweepProgress>,
    retention: RetentionSweep,
    /// Runs beside the passes, under a lead of its own.
    batches: Option<BatchCollector>,
}

/// Where sweeps of several passes continue.
#[derive(Debug, Default)]
struct SweepProgress {
    resend: Option<SendPosition>,
    /// The last attempt examined.
    attempts: Option<ExpiredAttempt>,
    horizon: HorizonWatch,
}

/// Since when vacuum has been held back by the same transaction id.
#[derive(Debug, Default)]
struct HorizonWatch {
    seen: Option<(String, Instant)>,
}

impl HorizonWatch {
    /// How long the oldest id that is still needed has been the same; zero: none is, or a new one.
    fn note(&mut self, xid: Option<&str>) -> Duration {
        let Some(xid) = xid else {
            self.seen = None;
            return Duration::ZERO;
        };
        match &self.seen {
            Some((seen, since)) if seen == xid => since.elapsed(),
            _ => {
                self.seen = Some((xid.to_owned(), Instant::now()));
                Duration::ZERO
            }
        }
    }
}

/// One thing that maintenance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MaintenanceChore {
    /// Tells how old the oldest open ingestion is.
    OldestOpen,
    /// Sends what was parked and is due, or whose pause is gone.
    WakeParked,
    /// Sends again what lost its message.
    ResendLost,
    /// Reads the dead-letter queue against the rows.
    DeadLetters,
    /// Deletes rows that are old enough.
    OldRows,
    /// Periodic maintenance of the queue's backend.
    QueueRepairs,
    /// Erases what is past its tenant's retention.
    Retention,
    /// Judges what was decided about documents drawn for the bound on silent errors.
    SilentErrors,
    /// Counts the ends of the hours that are over, for charts.
    HourlyCounts,
}

impl MaintenanceChore {
    /// In the order in which a pass does them.
    pub const ALL: [Self; 9] = [
        Self::OldestOpen,
        Self::WakeParked,
        Self::ResendLost,
        Self::DeadLetters,
        Self::OldRows,
        Self::QueueRepairs,
        Self::Retention,
        Self::SilentErrors,
        Self::HourlyCounts,
    ];

    /// Its name in metrics, logs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OldestOpen => "oldest_open",
            Self::WakeParked => "wake_parked",
            Self::ResendLost => "resend_lost",
            Self::DeadLetters => "dead_letters",
            Self::OldRows => "old_rows",
            Self::QueueRepairs => "queue_repairs",
            Self::Retention => "retention",
            Self::SilentErrors => "silent_errors",
            Self::HourlyCounts => "hourly_counts",
        }
    }

    /// Whether it has a dry run.
    fn has_preview(self) -> bool {
        matches!(self, Self::ResendLost | Self::DeadLetters)
    }
}

/// A chore that did not succeed, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FailedChore {
    /// Which one.
    pub chore: MaintenanceChore,
    /// The error.
    pub error: String,
}

/// Counts of one pass, or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct JanitorReport {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Parked rows whose message was sent.
    pub woken: usize,
    /// Rows that waited long enough to be examined.
    pub candidates: usize,
    /// Rows whose message was sent again.
    pub resent: Vec<IngestionId>,
    /// Whether the queue was found to be behind some of them, which were left alone.
    pub queue_is_behind: bool,
    /// Dead letters that were sent again: lost triggers of live rows, events, groups.
    pub revived: usize,
    /// Obsolete dead letters that were deleted.
    pub cleared: usize,
    /// Dead-lettered rows that no worker survived, failed as `crashed`.
    pub given_up: usize,
    /// Old rows that were deleted.
    pub deleted_rows: u64,
    /// Things the queue's backend put right.
    pub queue_repairs: u64,
    /// Documents erased because their tenant's retention is over.
    pub expired: usize,
    /// Chores that failed; the others were done all the same.
    pub failed: Vec<FailedChore>,
    /// Whether it ended before its last chore: at the stop, or because it was no longer the leader.
    pub cut_short: bool,
}

/// Time limit of a chore that works in batches.
#[derive(Debug, Clone, Copy)]
pub struct ChoreTurn<'a> {
    until: Instant,
    stop: Option<&'a Shutdown>,
}

impl<'a> ChoreTurn<'a> {
    fn begin(stop: Option<&'a Shutdown>) -> Self {
        Self { until: Instant::now() + CHORE_TURN, stop }
    }

    /// Whether no other batch is to be begun.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.stop.is_some_and(Shutdown::is_requested)
    }
}

impl Maintenance {
    /// With the settings of the service; `holder` is the name under which it leads.
    pub fn new(backends: MaintenanceBackends, config: &Config, holder: String) -> Self {
        let MaintenanceBackends { db, queue, store } = backends;
        Self {
            db,
            queue,
            store,
            config: config.janitor.clone(),
            webhooks: config.webhooks.clone(),
            silent_errors: config.silent_errors.clone(),
            crash_limit: config.retry_terms().crash_attempts,
            early: config.queue.acknowledge == AcknowledgeMode::Early,
            holder,
            progress: Mutex::default(),
            retention: RetentionSweep::default(),
            batches: None,
        }
    }

    /// With the batch lane, if there is one.
    #[must_use]
    pub fn with_batches(self, batches: Option<BatchCollector>) -> Self {
        Self { batches, ..self }
    }

    /// Makes passes at the configured interval, whenever this worker leads, until asked to stop.
    pub async fn run(mut self, stop: Shutdown) {
        let batches = self.batches.take();
        let collecting = async {
            if let Some(batches) = batches {
                batches.run(stop.clone()).await;
            }
        };
        futures::future::join(collecting, self.run_passes(&stop)).await;
    }

    async fn run_passes(&self, stop: &Shutdown) {
        metrics::start_maintenance_counters(MaintenanceChore::ALL.iter().map(|chore| chore.name()));
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
            match self.run_pass_as_leader(stop).await {
                Ok(Some(pass)) => log_report(&pass),
                Ok(None) => {
                    metrics::oldest_in_progress(Duration::ZERO);
                    metrics::set_reviews(0, Duration::ZERO);
                    metrics::vacuum_held_back(Duration::ZERO);
                }
                Err(error) => tracing::warn!(error = %error, "maintenance failed: {error}"),
            }
        }
    }

    /// One pass; `None` if another process leads.
    ///
    /// # Errors
    /// Postgres does not answer who leads.
    pub async fn run_pass_as_leader(
        &self,
        stop: &Shutdown,
    ) -> fault::Result<Option<JanitorReport>> {
        if !self.take_lead().await? {
            return Ok(None);
        }
        Ok(Some(self.run_chores(false, Some(stop)).await))
    }

    /// One pass over everything, without the lead.
    pub async fn run_pass(&self, dry_run: bool) -> JanitorReport {
        self.run_chores(dry_run, None).await
    }

    /// The leader, if there is one.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub async fn find_leader(&self) -> fault::Result<Option<String>> {
        rows::find_leader(&self.db, LEASE).await
    }

    /// The next leader need not wait for the lease to run out.
    pub async fn release_lead(&self) {
        if let Err(error) = rows::release_lead(&self.db, LEASE, &self.holder).await {
            tracing::debug!(error = %error, "the lead was not given up: {error}");
        }
    }

    async fn take_lead(&self) -> fault::Result<bool> {
        rows::try_acquire_lead(&self.db, LEASE, &self.holder, LEAD_LEASE).await
    }

    /// Renews the lead before a chore; `false` if it is lost or Postgres does not answer.
    async fn keep_lead(&self, before: MaintenanceChore, pass: &mut JanitorReport) -> bool {
        match self.take_lead().await {
            Ok(true) => return true,
            Ok(false) => {
                let next = before.name();
                tracing::warn!(
                    next,
                    "maintenance lost its lead before {next}: another worker continues"
                );
            }
            Err(error) => {
                report_failure(before, &error);
                pass.failed.push(FailedChore { chore: before, error: error.to_string() });
            }
        }
        false
    }

    /// `led`: as the leader, until the stop; the lead is renewed before every chore.
    async fn run_chores(&self, dry_run: bool, led: Option<&Shutdown>) -> JanitorReport {
        let mut pass = JanitorReport { dry_run, ..JanitorReport::default() };
        for chore in MaintenanceChore::ALL {
            if dry_run && !chore.has_preview() {
                continue;
            }
            if let Some(stop) = led
                && (stop.is_requested() || !self.keep_lead(chore, &mut pass).await)
            {
                pass.cut_short = true;
                return pass;
            }
            let work = tokio::time::timeout(MAX_CHORE, self.run_chore(chore, &mut pass, led));
            let ended = tokio::select! {
                ended = work => ended,
                () = wait_for_stop(led) => {
                    pass.cut_short = true;
                    return pass;
                }
            };
            let ended = ended.unwrap_or_else(|_| {
                Err(fault::Error::transient("it took too long and was cut off"))
            });
            if let Err(error) = ended {
                report_failure(chore, &error);
                pass.failed.push(FailedChore { chore, error: error.to_string() });
            }
        }
        if !dry_run {
            metrics::count_maintenance_pass();
        }
        pass
    }

    async fn run_chore(
        &self,
        chore: MaintenanceChore,
        pass: &mut JanitorReport,
        led: Option<&Shutdown>,
    ) -> fault::Result<()> {
        let turn = ChoreTurn::begin(led);
        match chore {
            MaintenanceChore::OldestOpen => self.tell_oldest().await,
            MaintenanceChore::WakeParked => self.wake_parked(pass, turn).await,
            MaintenanceChore::ResendLost => self.resend_lost(pass).await,
            MaintenanceChore::DeadLetters => self.reconcile_letters(pass, turn).await,
            MaintenanceChore::OldRows => self.delete_old_rows(pass, turn).await,
            MaintenanceChore::QueueRepairs => {
                pass.queue_repairs = self.queue.run_maintenance().await?;
                Ok(())
            }
            MaintenanceChore::Retention => self.erase_expired(pass, turn).await,
            MaintenanceChore::SilentErrors => {
                silent_errors::judge_levels(&self.db, &self.silent_errors).await
            }
            MaintenanceChore::HourlyCounts => self.count_hours(turn).await,
        }
    }

    fn lock_progress(&self) -> MutexGuard<'_, SweepProgress> {
        self.progress.lock()
    }
}

/// Resolves when a running chore has had its time to end; never without a stop signal.
async fn wait_for_stop(led: Option<&Shutdown>) {
    match led {
        Some(stop) => {
            stop.wait_until_requested().await;
            tokio::time::sleep(STOP_GRACE).await;
        }
        None => std::future::pending().await,
    }
}

fn report_failure(chore: MaintenanceChore, error: &fault::Error) {
    let name = chore.name();
    metrics::count_maintenance_failure(name);
    tracing::warn!(chore = name, error = %error, "maintenance: {name} failed: {error}");
}

fn log_report(pass: &JanitorReport) {
    let JanitorReport { woken, resent, revived, cleared, deleted_rows, queue_repairs, .. } = pass;
    let (resent, expired) = (resent.len(), pass.expired);
    if woken + resent + revived + cleared + expired > 0 || *deleted_rows + *queue_repairs > 0 {
        tracing::info!(
            woken,
            resent,
            revived,
            cleared,
            deleted_rows,
            queue_repairs,
            expired,
            "maintenance: {woken} parked ingestions sent, {resent} sent again, {revived} dead \
             letters revived"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn vacuum_is_held_back_for_as_long_as_the_oldest_transaction_stays_the_same() {
        let mut watch = HorizonWatch::default();
        let minute = Duration::from_secs(60);
        let passes = [Some("7"), Some("7"), Some("7"), Some("9"), Some("9"), None, Some("9")];
        for (xid, minutes) in passes.into_iter().zip([0, 1, 2, 0, 1, 0, 0]) {
            assert_eq!(watch.note(xid), minute * minutes, "{xid:?}");
            tokio::time::advance(minute).await;
        }
    }
}
