//! Counts of how the jobs of one run ended.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;

/// How a job ended, in terms that every job source shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// Its result was written.
    Done,
    /// It is to be tried again, this attempt counted.
    Failed,
    /// It was given up for good.
    Dead,
    /// An operator cancelled it.
    Cancelled,
    /// It was released; the attempt does not count.
    GivenBack,
    /// The claim was lost, or could not be verified; nothing was written.
    Lost,
}

impl JobEnd {
    /// The name of this end in logs and counts.
    pub fn code(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::GivenBack => "given_back",
            Self::Lost => "lost",
        }
    }
}

/// How many jobs ended in each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WorkerStats {
    /// Jobs whose result was written.
    pub done: u64,
    /// Failed attempts that are to be tried again.
    pub failed: u64,
    /// Jobs given up for good.
    pub dead: u64,
    /// Jobs that an operator cancelled.
    pub cancelled: u64,
    /// Jobs released without counting the attempt.
    pub given_back: u64,
    /// Jobs whose claim was lost to another worker while they ran.
    pub lost: u64,
}

impl WorkerStats {
    /// The counts by [`JobEnd::code`].
    pub fn by_code(&self) -> BTreeMap<String, u64> {
        let Self { done, failed, dead, cancelled, given_back, lost } = *self;
        let named = [
            (JobEnd::Done, done),
            (JobEnd::Failed, failed),
            (JobEnd::Dead, dead),
            (JobEnd::Cancelled, cancelled),
            (JobEnd::GivenBack, given_back),
            (JobEnd::Lost, lost),
        ];
        named.into_iter().map(|(end, count)| (end.code().to_owned(), count)).collect()
    }

    fn add(&mut self, end: JobEnd) {
        let count = match end {
            JobEnd::Done => &mut self.done,
            JobEnd::Failed => &mut self.failed,
            JobEnd::Dead => &mut self.dead,
            JobEnd::Cancelled => &mut self.cancelled,
            JobEnd::GivenBack => &mut self.given_back,
            JobEnd::Lost => &mut self.lost,
        };
        *count += 1;
    }
}

/// The stats of a runner as they grow.
#[derive(Debug, Default)]
pub(super) struct StatsCounter(Mutex<WorkerStats>);

impl StatsCounter {
    pub(super) fn add(&self, end: JobEnd) {
        self.0.lock().add(end);
    }

    pub(super) fn snapshot(&self) -> WorkerStats {
        *self.0.lock()
    }
}
