//! The work on each job of a site, planned by the test and followed by every worker.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use docmill_core::fault::{Error, Fault, Result};
use tokio::sync::watch;

use crate::support::world::SOON;

/// The work on a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum JobDeed {
    #[default]
    Succeeds,
    Fails(Fault),
    Panics,
    /// The work goes on until something else is planned.
    Waits,
}

#[derive(Debug, Clone, Copy, Default)]
struct PlannedJob {
    deed: JobDeed,
    /// How often the work was begun.
    begun: u32,
}

#[derive(Debug, Default)]
struct PlannedWork {
    jobs: BTreeMap<&'static str, PlannedJob>,
    working: usize,
    most_working: usize,
}

/// The plan of a site, and how far it has come.
#[derive(Debug, Default)]
pub(crate) struct WorkPlan(watch::Sender<PlannedWork>);

impl WorkPlan {
    /// From now on the work on this job does so.
    pub(crate) fn set(&self, job: &'static str, deed: JobDeed) {
        self.0.send_modify(|work| work.jobs.entry(job).or_default().deed = deed);
    }

    /// Does the work of the job that `is_meant` accepts.
    pub(crate) async fn perform(&self, is_meant: impl Fn(&str) -> bool) -> Result<()> {
        let known = self.0.borrow().jobs.keys().copied().find(|job| is_meant(job));
        let job = known.unwrap();
        self.0.send_modify(|work| {
            work.jobs.entry(job).or_default().begun += 1;
            work.working += 1;
            work.most_working = work.most_working.max(work.working);
        });
        let _end = WorkEnd(self);
        let mut plan = self.0.subscribe();
        let is_told = |work: &PlannedWork| work.jobs[job].deed != JobDeed::Waits;
        let deed = plan.wait_for(is_told).await.unwrap().jobs[job].deed;
        match deed {
            JobDeed::Fails(fault) => Err(Error::new(fault, "told to fail")),
            JobDeed::Panics => panic!("told to panic"),
            JobDeed::Succeeds | JobDeed::Waits => Ok(()),
        }
    }

    /// How often the work on the job was begun.
    pub(crate) fn begun(&self, job: &str) -> u32 {
        self.0.borrow().jobs.get(job).copied().unwrap_or_default().begun
    }

    /// Whether the job's work goes on until something else is planned.
    pub(crate) fn waits(&self, job: &str) -> bool {
        self.0.borrow().jobs.get(job).is_some_and(|job| job.deed == JobDeed::Waits)
    }

    /// Waits until `count` jobs run in parallel.
    pub(crate) async fn until_working(&self, count: usize) {
        self.until(|work| work.working == count).await;
    }

    /// Waits until `count` jobs have begun, of all together.
    pub(crate) async fn until_all_begun(&self, count: u32) {
        self.until(|work| work.jobs.values().map(|job| job.begun).sum::<u32>() >= count).await;
    }

    /// Most works that went on at the same time.
    pub(crate) fn most_working(&self) -> usize {
        self.0.borrow().most_working
    }

    async fn until(&self, holds: impl FnMut(&PlannedWork) -> bool) {
        let mut plan = self.0.subscribe();
        let held = tokio::time::timeout(SOON, plan.wait_for(holds)).await;
        assert!(held.is_ok_and(|work| work.is_ok()), "the work does not come so far");
    }
}

/// Work that ends, whichever way.
struct WorkEnd<'a>(&'a WorkPlan);

impl Drop for WorkEnd<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|work| work.working -= 1);
    }
}
