//! The intake gate: the reasons why no work is taken.
//!
//! A reason closes the gate for a time (a dependency is down) or until it is lifted (an operator's
//! pause, the database). The gate is open while no reason closes it. After the time of a reason with
//! a trial one job at a time is let through until the reason is lifted. Running jobs are not affected.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use docmill_core::metrics;
use docmill_core::retry::{Jitter, RetryBackoff};

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
    /// The permit of the one job that tries.
    trial: Arc<Semaphore>,
    backoff: PauseBackoff,
}

#[derive(Debug, Clone, Copy)]
struct GateClosure {
    /// When the reason lapses by itself; `None`: it stays until [`IntakeGate::open`].
    until: Option<Instant>,
    /// How many times in a row this reason has closed the gate.
    times: u32,
    /// Whether one job at a time is let through after that time.
    has_trial: bool,
}

impl GateClosure {
    /// Until it is lifted.
    const UNLIMITED: Self = Self { until: None, times: 0, has_trial: false };

    fn is_closed_at(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

impl IntakeGate {
    /// An open gate. [`IntakeGate::close_with_backoff`] closes it for `first`, twice as long each
    /// time in a row, and never for longer than `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let backoff = PauseBackoff { first, longest };
        let trial = Arc::new(Semaphore::new(1));
        Self { closed: Mutex::default(), changed: Notify::new(), trial, backoff }
    }

    /// The same gate, closed for one reason until that is lifted.
    #[must_use]
    pub fn starting_closed(self, reason: PauseReason) -> Self {
        self.lock_closed().insert(reason, GateClosure::UNLIMITED);
        self
    }

    fn lock_closed(&self) -> MutexGuard<'_, HashMap<PauseReason, GateClosure>> {
        self.closed.lock()
    }

    /// Closes the gate for this reason until it is lifted by [`IntakeGate::open`].
    pub fn close(&self, reason: PauseReason) {
        let before = self.lock_closed().insert(reason, GateClosure::UNLIMITED);
        if before.is_none_or(|before| before.until.is_some()) {
            metrics::set_paused(reason.0, true);
            tracing::warn!(reason = reason.0, "intake paused: {}", reason.0);
        }
    }

    /// Closes the gate for this reason for a while, which grows each time in a row. A reason that
    /// closes it already stays as it is. Returns whether this closed it.
    pub fn close_with_backoff(&self, reason: PauseReason) -> bool {
        self.close_until_lapsed(reason, self.next_pause(reason), false)
    }

    /// The same; after that time one job at a time is let through until the reason is lifted.
    pub fn close_for_trial(&self, reason: PauseReason) -> bool {
        self.close_until_lapsed(reason, self.next_pause(reason), true)
    }

    /// Closes the gate for this reason for `pause`; a reason that closes it already stays as it is.
    /// Returns whether this closed it.
    pub fn close_for(&self, reason: PauseReason, pause: Duration) -> bool {
        self.close_until_lapsed(reason, pause, false)
    }

    /// The pause of this reason by how often it closed the gate in a row, up to a quarter shorter, so
    /// that workers do not go on in step after an outage.
    fn next_pause(&self, reason: PauseReason) -> Duration {
        let times = self.lock_closed().get(&reason).map_or(0, |closed| closed.times);
        let PauseBackoff { first, longest } = self.backoff;
        let backoff = RetryBackoff::doubling(first).up_to(longest);
        backoff.with_jitter(Jitter::Quarter).wait_after(times.min(6))
    }

    fn close_until_lapsed(&self, reason: PauseReason, pause: Duration, has_trial: bool) -> bool {
        let now = Instant::now();
        let mut closed = self.lock_closed();
        let before = closed.get(&reason);
        if before.and_then(|closed| closed.until).is_some_and(|until| until > now) {
            return false;
        }
        let times = before.map_or(0, |closed| closed.times).saturating_add(1);
        closed.insert(reason, GateClosure { until: Some(now + pause), times, has_trial });
        drop(closed);
        self.changed.notify_waiters();
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

    /// Sets the gauge of each reason. Needed because no event marks a closing that times out; while
    /// one job at a time tries, intake counts as paused.
    pub fn publish_metrics(&self) {
        let now = Instant::now();
        for (reason, closed) in self.lock_closed().iter() {
            metrics::set_paused(reason.0, closed.has_trial || closed.is_closed_at(now));
        }
    }

    /// Whether a reason lets one job at a time through.
    pub fn is_on_trial(&self) -> bool {
        self.lock_closed().values().any(|closed| closed.has_trial)
    }

    /// Whether another reason than this one closes the gate.
    pub fn is_paused_beside(&self, reason: PauseReason) -> bool {
        let now = Instant::now();
        let closed = self.lock_closed();
        closed.iter().any(|(other, closed)| *other != reason && closed.is_closed_at(now))
    }

    /// Returns when no reason closes the gate; on trial, when no other job tries, with the permit of
    /// the one that does.
    pub async fn wait_for_turn(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            self.wait_until_open().await;
            if !self.is_on_trial() {
                return None;
            }
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            tokio::select! {
                // Lifted, or closed again.
                () = changed => {}
                Ok(permit) = Arc::clone(&self.trial).acquire_owned() => {
                    if !self.is_paused() {
                        return self.is_on_trial().then_some(permit);
                    }
                }
            }
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
        let closed = closed.values().filter(|closed| closed.is_closed_at(now));
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
        for expected in [1, 2, 4, 5, 5_u32] {
            intake_gate.close_with_backoff(PauseReason::DEPENDENCY);
            intake_gate.close_with_backoff(PauseReason::DEPENDENCY);
            let began = Instant::now();
            intake_gate.wait_until_open().await;
            let waited = began.elapsed().as_secs_f64() / f64::from(expected);
            assert!((0.75..=1.01).contains(&waited), "{waited}: another close changes nothing");
        }
        intake_gate.open(PauseReason::DEPENDENCY);
        intake_gate.close_with_backoff(PauseReason::DEPENDENCY);
        let began = Instant::now();
        intake_gate.wait_until_open().await;
        assert!(began.elapsed() <= S(1), "once all was well it begins anew");
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
    async fn after_its_time_a_reason_with_a_trial_lets_one_job_at_a_time_through_until_it_is_lifted()
     {
        let intake_gate = IntakeGate::new(S(1), S(60));
        assert!(intake_gate.wait_for_turn().await.is_none(), "an open gate asks for no turn");
        assert!(intake_gate.close_for_trial(PauseReason::SOURCE));
        let began = Instant::now();
        let first = intake_gate.wait_for_turn().await;
        assert!(first.is_some() && began.elapsed() >= S(1) * 3 / 4);
        let second = intake_gate.wait_for_turn();
        tokio::pin!(second);
        assert!(tokio::time::timeout(S(3600), &mut second).await.is_err(), "one is under way");
        intake_gate.close_for_trial(PauseReason::SOURCE);
        drop(first);
        let began = Instant::now();
        let second = second.await;
        assert!(second.is_some() && began.elapsed() > S(1), "the failed one closed it for longer");
        intake_gate.open(PauseReason::SOURCE);
        assert!(intake_gate.wait_for_turn().await.is_none(), "all go on beside the second");
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
