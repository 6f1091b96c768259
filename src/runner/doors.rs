//! Why nothing is taken right now: the doors that intake must find open.
//!
//! A door is closed for a time (a dependency is down) or until opened (an operator's pause, the
//! database). Jobs under way are not touched.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics;

/// A reason why intake may be paused; the label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Door(&'static str);

impl Door {
    /// Something that jobs need is down.
    pub const DEPENDENCY: Self = Self("dependency");
    /// Where work comes from does not answer.
    pub const SOURCE: Self = Self("source");

    /// A reason of a backlog's own.
    pub const fn named(label: &'static str) -> Self {
        Self(label)
    }
}

/// How long a door stays closed that is closed for a while: the first time, and at most, after it
/// was closed many times in a row.
#[derive(Debug, Clone, Copy)]
struct Backoff {
    first: Duration,
    longest: Duration,
}

/// The doors of one runner.
#[derive(Debug)]
pub struct Doors {
    closed: Mutex<HashMap<Door, Closed>>,
    changed: Notify,
    backoff: Backoff,
}

#[derive(Debug, Clone, Copy)]
struct Closed {
    /// `None`: until opened.
    until: Option<Instant>,
    /// How often in a row.
    times: u32,
}

impl Doors {
    /// All open. What is closed for a while is closed for `first`, twice as long each time in a
    /// row, and never for longer than `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let backoff = Backoff { first, longest };
        Self { closed: Mutex::default(), changed: Notify::new(), backoff }
    }

    /// The same, one of them closed until it is opened.
    #[must_use]
    pub fn with_closed(self, door: Door) -> Self {
        self.closed().insert(door, Closed { until: None, times: 0 });
        self
    }

    fn closed(&self) -> MutexGuard<'_, HashMap<Door, Closed>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a door until it is opened.
    pub fn close(&self, door: Door) {
        let closed = Closed { until: None, times: 0 };
        if self.closed().insert(door, closed).is_none_or(|before| before.until.is_some()) {
            metrics::paused(door.0, true);
            tracing::warn!(reason = door.0, "intake paused: {}", door.0);
        }
    }

    /// Closes a door for a while, which grows each time in a row; one that is closed stays as it
    /// is.
    pub fn close_for_a_while(&self, door: Door) {
        let times = self.closed().get(&door).map_or(0, |closed| closed.times);
        let Backoff { first, longest } = self.backoff;
        self.close_for(door, first.saturating_mul(1 << times.min(6)).min(longest));
    }

    /// Closes a door for so long; one that is closed stays as it is.
    pub fn close_for(&self, door: Door, pause: Duration) {
        let now = Instant::now();
        let mut closed = self.closed();
        let before = closed.get(&door);
        if before.and_then(|closed| closed.until).is_some_and(|until| until > now) {
            return;
        }
        let times = before.map_or(0, |closed| closed.times).saturating_add(1);
        closed.insert(door, Closed { until: Some(now + pause), times });
        drop(closed);
        metrics::paused(door.0, true);
        let pause_s = pause.as_secs();
        tracing::warn!(reason = door.0, pause_s, "intake paused: {}", door.0);
    }

    /// Opens a door and forgets how often it was closed.
    pub fn open(&self, door: Door) {
        if self.closed().remove(&door).is_some() {
            metrics::paused(door.0, false);
            tracing::info!(reason = door.0, "intake resumed: {}", door.0);
            self.changed.notify_waiters();
        }
    }

    /// Returns when every door is open.
    pub async fn until_open(&self) {
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
        let closed = self.closed();
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
        let doors = Doors::new(S(1), S(5));
        for expected in [1, 2, 4, 5, 5] {
            doors.close_for_a_while(Door::DEPENDENCY);
            doors.close_for_a_while(Door::DEPENDENCY);
            let began = Instant::now();
            doors.until_open().await;
            assert_eq!(began.elapsed().as_secs(), expected, "another close changes nothing");
        }
        doors.open(Door::DEPENDENCY);
        doors.close_for_a_while(Door::DEPENDENCY);
        let began = Instant::now();
        doors.until_open().await;
        assert_eq!(began.elapsed().as_secs(), 1, "once all was well it begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn intake_waits_while_any_door_is_closed() {
        let (doors, database) = (Doors::new(S(1), S(60)), Door::named("database"));
        doors.until_open().await;
        doors.close(database);
        doors.close_for(Door::DEPENDENCY, S(30));
        doors.open(database);
        assert!(doors.is_paused(), "the other one is still closed");
        doors.until_open().await;
    }
}
