//! What became of the documents that a worker took.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::ops::bucket::Ended;

/// How often each end came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Results published.
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

impl Tally {
    pub(in crate::ops::bucket) fn counts(&self) -> BTreeMap<String, u64> {
        let Self { done, failed, dead, cancelled, given_back, lost } = *self;
        let named = [
            (Ended::Done, done),
            (Ended::Failed, failed),
            (Ended::Dead, dead),
            (Ended::Cancelled, cancelled),
            (Ended::GivenBack, given_back),
            (Ended::Lost, lost),
        ];
        named.into_iter().map(|(ended, count)| (ended.code().to_owned(), count)).collect()
    }
}

/// A tally that is being made.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Tally>);

impl Counts {
    pub(super) fn add(&self, ended: Ended) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match ended {
            Ended::Done => &mut tally.done,
            Ended::Failed => &mut tally.failed,
            Ended::Dead => &mut tally.dead,
            Ended::Cancelled => &mut tally.cancelled,
            Ended::GivenBack => &mut tally.given_back,
            Ended::Lost => &mut tally.lost,
        };
        *count += 1;
    }

    pub(super) fn now(&self) -> Tally {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
