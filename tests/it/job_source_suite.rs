//! The job source suite: one set of cases, run over Postgres with a queue, a BlobForge bucket and
//! an olmOCR workspace in a folder, and over the scripted job source of the runner's own tests, so
//! that these rely on the real ones' behaviour.
//!
//! A new job source is one [`JobSourceSite`] and one line at `job_sources!`. Permitted differences
//! are not tested: the order of jobs, how often a failed one is started, and when.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bucket;
mod cases;
mod plan;
mod queue;
mod scripted;
mod workspace;

use std::time::Duration;

use async_trait::async_trait;
use docmill_pipeline::shutdown::Shutdown;
use docmill_worker::runner::{RunnerMonitor, WorkerStats};
use tokio::task::JoinHandle;

pub(crate) use plan::{JobDeed, WorkPlan};

use crate::support::world::{SOON, until};

/// A place with a job source of its own, and workers on it.
#[async_trait(?Send)]
pub(crate) trait JobSourceSite: Sized {
    /// A fresh one, in which nothing waits.
    async fn open() -> Self;

    /// The work on each job.
    fn plan(&self) -> &WorkPlan;

    /// Adds a job; its name is its own.
    async fn add(&self, job: &'static str);

    /// Offers the job again, as a producer that repeats itself.
    async fn offer(&self, job: &'static str);

    /// Starts a worker.
    async fn start(&self, terms: SiteTerms) -> SiteWorker;

    /// Another worker takes the claim of a running job.
    async fn take_claim(&self, job: &'static str);

    /// Whether anybody has a claim on the job.
    async fn is_claimed(&self, job: &'static str) -> bool;

    /// Whether the job's result is written.
    async fn is_complete(&self, job: &'static str) -> bool;

    /// Lets enough time pass for everything deferred to be due.
    async fn pass(&self) {}

    /// Waits until the job's result is written.
    async fn until_complete(&self, job: &'static str) {
        until(SOON, || self.is_complete(job)).await;
    }
}

/// On what terms a worker works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteTerms {
    /// Jobs at the same time.
    pub(crate) slots: usize,
    /// How long jobs may go on after a stop.
    pub(crate) drain: Duration,
    /// Whether claims are renewed every few seconds, and short.
    pub(crate) quick_renewals: bool,
}

impl SiteTerms {
    /// A worker that gives back at a stop what it has.
    fn with_slots(slots: usize) -> Self {
        Self { slots, drain: Duration::ZERO, quick_renewals: false }
    }
}

/// A worker of this process.
pub(crate) struct SiteWorker {
    pub(crate) stop: Shutdown,
    pub(crate) monitor: RunnerMonitor,
    pub(crate) task: JoinHandle<()>,
}

impl SiteWorker {
    /// Stops it, waits for its end, and returns how its jobs ended.
    async fn end(self) -> WorkerStats {
        self.stop.request();
        self.task.await.unwrap();
        self.monitor.stats()
    }
}

/// One test per case and job source.
macro_rules! site_cases {
    ($name:ident, $site:ty, [$($case:ident),* $(,)?]) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::cases::$case::<$site>().await;
                }
            )*
        }
    };
}

macro_rules! job_sources {
    ($($name:ident => $site:ty),* $(,)?) => {
        $(site_cases!($name, $site, [
            two_workers_share_the_jobs_and_none_is_begun_twice,
            a_job_that_is_held_is_begun_by_nobody_else,
            a_job_that_has_ended_never_comes_back,
            a_job_that_is_given_back_is_done_by_another_worker,
            a_drain_gives_back_what_it_holds_and_another_goes_on_at_once,
            a_stop_lets_what_runs_end_and_begins_nothing_more,
            a_claim_that_a_renewal_finds_lost_ends_the_job_and_nothing_is_written,
            a_step_that_panics_ends_one_job_and_no_other,
            no_more_jobs_run_than_there_are_slots,
        ]);)*
    };
}

job_sources!(
    on_postgres_with_a_queue => crate::job_source_suite::queue::QueueSite,
    on_a_bucket => crate::job_source_suite::bucket::BucketSite,
    on_a_workspace => crate::job_source_suite::workspace::WorkspaceSite,
    on_a_script => crate::job_source_suite::scripted::ScriptedSite,
);
