//! Why nothing is taken right now: the doors that intake must find open.
//!
//! A door is closed for a time (a dependency is down) or until opened (an operator's pause, the
//! database). Jobs under way are not touched.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

    /// A reason of a backlog's own.
    pub const fn from_label(label: &'static str) -> Self {
        Self(label)
    }
}

/// How long a door stays closed that is closed for a while: the first time, and at most, after it
/// was closed many times in a row.
#[derive(Debug, Clone, Copy)]
struct PauseBackoff {
    first: Duration,
    longest: Duration,
}

/// The doors of one runner.
#[derive(Debug)]
pub struct IntakeGate {
    closed: Mutex<HashMap<PauseReason, GateClosure>>,
    changed: Notify,
    backoff: PauseBackoff,
}

#[derive(Debug, Clone, Copy)]
struct GateClosure {
    /// `None`: until opened.
    until: Option<Instant>,
    /// How often in a row.
    times: u32,
}

impl IntakeGate {
    /// All open. What is closed for a while is closed for `first`, twice as long each time in a
    /// row, and never for longer than `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let backoff = PauseBackoff { first, longest };
        Self { closed: Mutex::default(), changed: Notify::new(), backoff }
    }

    /// The same, one of them closed until it is opened.
    #[must_use]
    pub fn starting_closed(self, door: PauseReason) -> Self {
        self.lock_closed().insert(door, GateClosure { until: None, times: 0 });
        self
    }

    fn lock_closed(&self) -> MutexGuard<'_, HashMap<PauseReason, GateClosure>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a door until it is opened.
    pub fn close(&self, door: PauseReason) {
        let closed = GateClosure { until: None, times: 0 };
        if self.lock_closed().insert(door, closed).is_none_or(|before| before.until.is_some()) {
            metrics::set_paused(door.0, true);
            tracing::warn!(reason = door.0, "intake paused: {}", door.0);
        }
    }

    /// Closes a door for a while, which grows each time in a row; one that is closed stays as it
    /// is.
    pub fn close_with_backoff(&self, door: PauseReason) {
        let times = self.lock_closed().get(&door).map_or(0, |closed| closed.times);
        let PauseBackoff { first, longest } = self.backoff;
        self.close_for(door, first.saturating_mul(1 << times.min(6)).min(longest));
    }

    /// Closes a door for so long; one that is closed stays as it is.
    pub fn close_for(&self, door: PauseReason, pause: Duration) {
        let now = Instant::now();
        let mut closed = self.lock_closed();
        let before = closed.get(&door);
        if before.and_then(|closed| closed.until).is_some_and(|until| until > now) {
            return;
        }
        let times = before.map_or(0, |closed| closed.times).saturating_add(1);
        closed.insert(door, GateClosure { until: Some(now + pause), times });
        drop(closed);
        metrics::set_paused(door.0, true);
        let pause_s = pause.as_secs();
        tracing::warn!(reason = door.0, pause_s, "intake paused: {}", door.0);
    }

    /// Opens a door and forgets how often it was closed.
    pub fn open(&self, door: PauseReason) {
        if self.lock_closed().remove(&door).is_some() {
            metrics::set_paused(door.0, false);
            tracing::info!(reason = door.0, "intake resumed: {}", door.0);
            self.changed.notify_waiters();
        }
    }

    /// Returns when every door is open.
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

    /// `None`: all open. `Some(None)`: one is closed until opened.
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
    async fn a_door_that_is_closed_in_a_row_stays_closed_for_longer_up_to_a_limit() {
        let doors = IntakeGate::new(S(1), S(5));
        for expected in [1, 2, 4, 5, 5] {
            doors.close_with_backoff(PauseReason::DEPENDENCY);
            doors.close_with_backoff(PauseReason::DEPENDENCY);
            let began = Instant::now();
            doors.wait_until_open().await;
            assert_eq!(began.elapsed().as_secs(), expected, "another close changes nothing");
        }
        doors.open(PauseReason::DEPENDENCY);
        doors.close_with_backoff(PauseReason::DEPENDENCY);
        let began = Instant::now();
        doors.wait_until_open().await;
        assert_eq!(began.elapsed().as_secs(), 1, "once all was well it begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn intake_waits_while_any_door_is_closed() {
        let (doors, database) = (IntakeGate::new(S(1), S(60)), PauseReason::from_label("database"));
        doors.wait_until_open().await;
        doors.close(database);
        doors.close_for(PauseReason::DEPENDENCY, S(30));
        doors.open(database);
        assert!(doors.is_paused(), "the other one is still closed");
        doors.wait_until_open().await;
    }
}
