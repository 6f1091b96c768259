//! The intake gate: the reasons why no work is taken.
//!
//! A reason closes the gate for a time (a dependency is down) or until it is lifted (an operator's
//! pause, the database). The gate is open while no reason closes it. Running jobs are not affected.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use docmill_core::metrics;

/// A reason why intake may be paused; the label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PauseReason(&'static str);

impl PauseReason {
    /// Something that jobs need is down.
    pub const DEPENDENCY: Self = Self("dependency");
    /// Where work comes from does not answer.
    pub const SOURCE: Self = Self("source");

    /// A reason that only one job source has; `label` is its value in the metric.
    pub const fn from_label(label: &'static str) -> Self {
        Self(label)
    }
}

/// How long a reason closes the gate when no time is given: the first time, and at most, after many
/// times in a row.
#[derive(Debug, Clone, Copy)]
struct PauseBackoff {
    first: Duration,
    longest: Duration,
}

/// The intake gate of one runner: open while no [`PauseReason`] closes it.
#[derive(Debug)]
pub struct IntakeGate {
    closed: Mutex<HashMap<PauseReason, GateClosure>>,
    changed: Notify,
    backoff: PauseBackoff,
}

#[derive(Debug, Clone, Copy)]
struct GateClosure {
    /// When the reason lapses by itself; `None`: it stays until [`IntakeGate::open`].
    until: Option<Instant>,
    /// How many times in a row this reason has closed the gate.
    times: u32,
}

impl IntakeGate {
    /// An open gate. [`IntakeGate::close_with_backoff`] closes it for `first`, twice as long each
    /// time in a row, and never for longer than `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let backoff = PauseBackoff { first, longest };
        Self { closed: Mutex::default(), changed: Notify::new(), backoff }
    }

    /// The same gate, closed for one reason until that is lifted.
    #[must_use]
    pub fn starting_closed(self, reason: PauseReason) -> Self {
        self.lock_closed().insert(reason, GateClosure { until: None, times: 0 });
        self
    }

    fn lock_closed(&self) -> MutexGuard<'_, HashMap<PauseReason, GateClosure>> {
        self.closed.lock()
    }

    /// Closes the gate for this reason until it is lifted by [`IntakeGate::open`].
    pub fn close(&self, reason: PauseReason) {
        let closed = GateClosure { until: None, times: 0 };
        if self.lock_closed().insert(reason, closed).is_none_or(|before| before.until.is_some()) {
            metrics::set_paused(reason.0, true);
            tracing::warn!(reason = reason.0, "intake paused: {}", reason.0);
        }
    }

    /// Closes the gate for this reason for a while, which grows each time in a row. A reason that
    /// closes it already stays as it is. Returns whether this closed it.
    pub fn close_with_backoff(&self, reason: PauseReason) -> bool {
        let times = self.lock_closed().get(&reason).map_or(0, |closed| closed.times);
        let PauseBackoff { first, longest } = self.backoff;
        self.close_for(reason, first.saturating_mul(1 << times.min(6)).min(longest))
    }

    /// Closes the gate for this reason for `pause`; a reason that closes it already stays as it is.
    /// Returns whether this closed it.
    pub fn close_for(&self, reason: PauseReason, pause: Duration) -> bool {
        let now = Instant::now();
        let mut closed = self.lock_closed();
        let before = closed.get(&reason);
        if before.and_then(|closed| closed.until).is_some_and(|until| until > now) {
            return false;
        }
        let times = before.map_or(0, |closed| closed.times).saturating_add(1);
        closed.insert(reason, GateClosure { until: Some(now + pause), times });
        drop(closed);
        metrics::set_paused(reason.0, true);
        let pause_s = pause.as_secs();
        tracing::warn!(reason = reason.0, pause_s, "intake paused: {}", reason.0);
        true
    }

    /// Whether this reason has closed the gate, if only for a time that is over, and was not lifted
    /// since.
    pub fn is_unlifted(&self, reason: PauseReason) -> bool {
        self.lock_closed().contains_key(&reason)
    }

    /// Lifts this reason and resets its count of closings.
    pub fn open(&self, reason: PauseReason) {
        if self.lock_closed().remove(&reason).is_some() {
            metrics::set_paused(reason.0, false);
            tracing::info!(reason = reason.0, "intake resumed: {}", reason.0);
            self.changed.notify_waiters();
        }
    }

    /// Sets the gauge of each reason. Needed because no event marks a closing that times out.
    pub fn publish_metrics(&self) {
        let now = Instant::now();
        for (reason, closed) in self.lock_closed().iter() {
            metrics::set_paused(reason.0, closed.until.is_none_or(|until| until > now));
        }
    }

    /// Returns when no reason closes the gate.
    pub async fn wait_until_open(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.closed_until() {
                None => return,
                Some(None) => changed.await,
                Some(Some(until)) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(until) => {}
                    }
                }
            }
        }
    }

    /// `None`: the gate is open. `Some(None)`: a reason closes it until that is lifted.
    fn closed_until(&self) -> Option<Option<Instant>> {
        let now = Instant::now();
        let closed = self.lock_closed();
        let closed = closed.values().filter(|closed| closed.until.is_none_or(|u| u > now));
        let untils: Vec<Option<Instant>> = closed.map(|closed| closed.until).collect();
        if untils.is_empty() {
            return None;
        }
        Some(if untils.contains(&None) { None } else { untils.into_iter().flatten().max() })
    }

    /// Whether intake is paused.
    pub fn is_paused(&self) -> bool {
        self.closed_until().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[tokio::test(start_paused = true)]
    async fn a_gate_that_is_closed_in_a_row_stays_closed_for_longer_up_to_a_limit() {
        let intake_gate = IntakeGate::new(S(1), S(5));
        for expected in [1, 2, 4, 5, 5] {
            intake_gate.close_with_backoff(PauseReason::DEPENDENCY);
            intake_gate.close_with_backoff(PauseReason::DEPENDENCY);
            let began = Instant::now();
            intake_gate.wait_until_open().await;
            assert_eq!(began.elapsed().as_secs(), expected, "another close changes nothing");
        }
        intake_gate.open(PauseReason::DEPENDENCY);
        intake_gate.close_with_backoff(PauseReason::DEPENDENCY);
        let began = Instant::now();
        intake_gate.wait_until_open().await;
        assert_eq!(began.elapsed().as_secs(), 1, "once all was well it begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn intake_waits_while_any_reason_closes_the_gate() {
        let (intake_gate, database) =
            (IntakeGate::new(S(1), S(60)), PauseReason::from_label("database"));
        intake_gate.wait_until_open().await;
        intake_gate.close(database);
        intake_gate.close_for(PauseReason::DEPENDENCY, S(30));
        intake_gate.open(database);
        assert!(intake_gate.is_paused(), "the other one is still closed");
        intake_gate.wait_until_open().await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_gauge_of_a_reason_that_lapsed_by_itself_falls_back_without_a_job() {
        let page = metrics::install_metrics().unwrap();
        let gauge = |value: u8| {
            let line = format!("docmill_intake_paused{{reason=\"source\"}} {value}");
            page.render().lines().any(|found| found == line)
        };
        let intake_gate = IntakeGate::new(S(1), S(60));
        intake_gate.close_with_backoff(PauseReason::SOURCE);
        intake_gate.publish_metrics();
        assert!(gauge(1));
        tokio::time::advance(S(2)).await;
        intake_gate.publish_metrics();
        assert!(gauge(0));
        assert!(intake_gate.is_unlifted(PauseReason::SOURCE), "it still counts how often in a row");
    }
}
