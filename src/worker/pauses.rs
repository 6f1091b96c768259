//! Why nothing is received right now: the doors that intake must find open before it polls.
//!
//! A door is closed for a time (a dependency is down) or until opened (an operator's pause, the
//! database). Jobs under way are not touched.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::ledger::Pause;
use crate::metrics;
use crate::model::Claimed;

/// Longest a door stays closed by itself.
const LONGEST: Duration = Duration::from_secs(60);

/// Why intake may be paused; the label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// Postgres does not answer.
    Database,
    /// The queue does not answer.
    Queue,
    /// Something that jobs need is down.
    Dependency,
    /// Most messages name ingestions that are not in the database.
    Unknown,
    /// An operator paused everything.
    Operator,
}

impl Door {
    fn label(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Queue => "queue",
            Self::Dependency => "dependency",
            Self::Unknown => "unknown_ingestions",
            Self::Operator => "operator",
        }
    }
}

/// The doors, and what operators have paused in part.
#[derive(Debug, Default)]
pub struct Pauses {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    closed: HashMap<Door, Closed>,
    partial: Vec<Pause>,
    /// Claims asked for and not known, of late.
    recent: (u32, u32),
}

#[derive(Debug, Clone, Copy)]
struct Closed {
    /// `None`: until opened.
    until: Option<Instant>,
    /// How often in a row.
    times: u32,
}

impl Pauses {
    /// Closed until Postgres has answered once: what operators have paused is not known before, and
    /// a job taken until then would not obey it.
    pub fn at_start() -> Self {
        let pauses = Self::default();
        pauses.state().closed.insert(Door::Database, Closed { until: None, times: 0 });
        pauses
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a door until it is opened.
    pub fn close(&self, door: Door) {
        let closed = Closed { until: None, times: 0 };
        if self.state().closed.insert(door, closed).is_none_or(|before| before.until.is_some()) {
            metrics::paused(door.label(), true);
            tracing::warn!(reason = door.label(), "intake paused: {}", door.label());
        }
    }

    /// Closes a door for a while: one second, doubled each time in a row, at most a minute.
    pub fn close_for_a_while(&self, door: Door) {
        let mut state = self.state();
        let times = state.closed.get(&door).map_or(0, |closed| closed.times);
        let running = state.closed.get(&door).and_then(|closed| closed.until);
        if running.is_some_and(|until| until > Instant::now()) {
            return;
        }
        let pause = Duration::from_secs(1 << times.min(6)).min(LONGEST);
        let until = Some(Instant::now() + pause);
        state.closed.insert(door, Closed { until, times: times.saturating_add(1) });
        drop(state);
        metrics::paused(door.label(), true);
        let pause_s = pause.as_secs();
        tracing::warn!(reason = door.label(), pause_s, "intake paused: {}", door.label());
    }

    /// Opens a door and forgets how often it was closed.
    pub fn open(&self, door: Door) {
        if self.state().closed.remove(&door).is_some() {
            metrics::paused(door.label(), false);
            tracing::info!(reason = door.label(), "intake resumed: {}", door.label());
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
                        () = tokio::time::sleep_until(until.into()) => {}
                    }
                }
            }
        }
    }

    /// `None`: all open. `Some(None)`: one is closed until opened.
    fn closed_until(&self) -> Option<Option<Instant>> {
        let now = Instant::now();
        let state = self.state();
        let closed = state.closed.values().filter(|closed| closed.until.is_none_or(|u| u > now));
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

    /// What operators have paused now.
    pub fn operators(&self, pauses: Vec<Pause>) {
        let all = pauses.contains(&Pause::All);
        self.state().partial = pauses;
        if all { self.close(Door::Operator) } else { self.open(Door::Operator) }
    }

    /// Whether an operator has paused this job's kind, tenant or provider.
    pub fn holds_back(&self, claimed: &Claimed, default_kind: &str, providers: &[String]) -> bool {
        let kind = claimed.kind.as_deref().unwrap_or(default_kind);
        self.state().partial.iter().any(|pause| match pause {
            Pause::All => false,
            Pause::Kind(name) => name == kind,
            Pause::Tenant(name) => claimed.tenant.as_deref() == Some(name),
            Pause::Provider(name) => providers.contains(name),
        })
    }

    /// Counts claims; when most of the last twenty or more were unknown, intake waits: the
    /// database is probably the wrong one, or restored from a backup.
    pub fn count_unknown(&self, asked: u32, unknown: u32) {
        let mut state = self.state();
        let (total, missing) = (state.recent.0 + asked, state.recent.1 + unknown);
        if total < 20 {
            state.recent = (total, missing);
            return;
        }
        state.recent = (0, 0);
        drop(state);
        if missing * 2 > total {
            tracing::error!(
                unknown = missing,
                asked = total,
                "{missing} of the last {total} messages name ingestions that are not in the \
                 database: is it the right one?"
            );
            self.close_for_a_while(Door::Unknown);
        } else {
            self.open(Door::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn intake_waits_while_any_door_is_closed() {
        let pauses = Pauses::default();
        pauses.until_open().await;
        pauses.close(Door::Database);
        pauses.operators(vec![Pause::All]);
        pauses.open(Door::Database);
        assert!(pauses.is_paused(), "the operator's pause still holds");
        pauses.operators(vec![]);
        pauses.until_open().await;
    }

    #[test]
    fn mostly_unknown_messages_pause_intake_and_a_few_do_not() {
        let pauses = Pauses::default();
        pauses.count_unknown(30, 10);
        assert!(!pauses.is_paused());
        pauses.count_unknown(10, 10);
        assert!(!pauses.is_paused(), "ten are too few to judge by");
        pauses.count_unknown(10, 10);
        assert!(pauses.is_paused());
    }
}
