//! The queues that make up one [`super::SqsQueue`]: a single one, or one per tier.

use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::{BoxFuture, join_all};

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::Priority;

/// One queue and, if it has one, its dead-letter queue.
#[derive(Debug)]
pub(super) struct SqsTier {
    pub(super) priority: Priority,
    pub(super) weight: u32,
    pub(super) url: String,
    pub(super) dead_letter_url: Option<String>,
    /// Of the redrive policy, zero without one; renewed whenever the depth is asked for.
    pub(super) max_receives: AtomicU32,
}

/// The queues, most urgent first; never empty.
#[derive(Debug)]
pub(super) struct SqsTiers(Vec<SqsTier>);

impl SqsTiers {
    /// # Errors
    /// Rejected if there are none.
    pub(super) fn new(lines: Vec<SqsTier>) -> Result<Self> {
        if lines.is_empty() {
            return Err(Error::new(Fault::Rejected, "queue.url is missing: no SQS queue is named"));
        }
        Ok(Self(lines))
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, SqsTier> {
        self.0.iter()
    }

    /// Whether there is more than one.
    pub(super) fn are_tiers(&self) -> bool {
        self.0.len() > 1
    }

    pub(super) fn get(&self, at: usize) -> Result<&SqsTier> {
        self.0.get(at).ok_or_else(|| Error::internal("there is no such tier"))
    }

    /// Where a message of this priority goes.
    pub(super) fn position_for(&self, priority: Priority) -> usize {
        let offered: Vec<Priority> = self.0.iter().map(|line| line.priority).collect();
        priority.nearest_among(&offered).unwrap_or(0)
    }

    /// The tiers with a dead-letter queue of their own, one of those that share one.
    pub(super) fn with_dead_letters(&self) -> impl Iterator<Item = (usize, &str)> {
        let earlier = |at: usize, url: &str| {
            let mut before = self.0.iter().take(at);
            before.any(|line| line.dead_letter_url.as_deref() == Some(url))
        };
        let urls = self.0.iter().enumerate();
        urls.filter_map(|(at, line)| Some((at, line.dead_letter_url.as_deref()?)))
            .filter(move |(at, url)| !earlier(*at, url))
    }

    /// The least that any redrive policy allows; `None` if none does.
    pub(super) fn least_receives(&self) -> Option<u32> {
        let counts = self.0.iter().map(|line| line.max_receives.load(Ordering::Relaxed));
        counts.filter(|count| *count > 0).min()
    }

    /// Runs `work` once for each tier that has entries, side by side; results in the entries'
    /// order.
    pub(super) async fn run_by_tier<'a, T>(
        &'a self,
        entries: Vec<(usize, T)>,
        work: impl Fn(&'a SqsTier, Vec<T>) -> BoxFuture<'a, Vec<Result<()>>>,
    ) -> Vec<Result<()>> {
        let mut results: Vec<Result<()>> = std::iter::repeat_with(|| {
            Err(Error::new(Fault::Missing, "a receipt of another queue"))
        })
        .take(entries.len())
        .collect();
        let mut groups: Vec<(Vec<usize>, Vec<T>)> =
            self.0.iter().map(|_| (Vec::new(), Vec::new())).collect();
        for (at, (line, entry)) in entries.into_iter().enumerate() {
            if let Some((places, group)) = groups.get_mut(line) {
                places.push(at);
                group.push(entry);
            }
        }
        let busy = self.0.iter().zip(groups).filter(|(_, (places, _))| !places.is_empty());
        let calls = busy.map(|(line, (places, group))| {
            let done = work(line, group);
            async move { (places, done.await) }
        });
        for (places, done) in join_all(calls).await {
            for (at, result) in places.into_iter().zip(done) {
                if let Some(slot) = results.get_mut(at) {
                    *slot = result;
                }
            }
        }
        results
    }
}
