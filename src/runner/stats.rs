//! What became of the jobs of one run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// How a job ended, as far as every backlog tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// Its result is there.
    Done,
    /// It is to be tried again, this attempt counted.
    Failed,
    /// It was given up.
    Dead,
    /// An operator withdrew it.
    Cancelled,
    /// Put back, the attempt not counted.
    GivenBack,
    /// It was somebody else's by then, or nobody could tell; nothing was written.
    Lost,
}

impl JobEnd {
    /// The word for it in logs and counts.
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

/// How often each end came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WorkerStats {
    /// Results written.
    pub done: u64,
    /// To be tried again.
    pub failed: u64,
    /// Given up.
    pub dead: u64,
    /// Withdrawn by an operator.
    pub cancelled: u64,
    /// Put back, not counted.
    pub given_back: u64,
    /// Lost to another worker while in work.
    pub lost: u64,
}

impl WorkerStats {
    /// The counts by the words for the ends.
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

/// Stats that are being made.
#[derive(Debug, Default)]
pub(super) struct StatsCounter(Mutex<WorkerStats>);

impl StatsCounter {
    pub(super) fn add(&self, end: JobEnd) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(end);
    }

    pub(super) fn snapshot(&self) -> WorkerStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
