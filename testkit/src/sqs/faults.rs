//! Misbehaviour on request, and the count of requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::action::Action;
use super::clock::Millis;

/// How a request goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// `RequestThrottled`; nothing is done.
    Throttle,
    /// A 500 answer; nothing is done.
    ServerError,
    /// A 503 answer; nothing is done.
    Unavailable,
    /// `AccessDenied`; nothing is done.
    AccessDenied,
    /// No answer ever; nothing is done.
    Hang,
    /// The work is done, then the connection is closed without an answer.
    LoseReply,
    /// The work is done, then no answer ever.
    Silence,
}

#[derive(Debug, Default)]
struct Script {
    failures: BTreeMap<Action, (u32, Option<Failure>)>,
    entries: BTreeMap<Action, u32>,
    latency: BTreeMap<Action, Duration>,
    outage: Option<Failure>,
    empty_receives: u32,
    duplicate: f64,
    reorder: bool,
    delay: Duration,
    ignore_stale_deletes: bool,
    requests: BTreeMap<Action, u64>,
    answered: BTreeMap<Action, u64>,
}

/// The faults that a server is to show. All switches may be turned while it runs.
#[derive(Debug, Default)]
pub struct Faults {
    script: Mutex<Script>,
}

impl Faults {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next `times` requests of this action fail this way.
    pub fn fail(&self, action: Action, times: u32, failure: Failure) {
        self.script().failures.insert(action, (times, Some(failure)));
    }

    /// The next `times` entries of batches of this action fail with `InternalError`, whichever
    /// requests they are in.
    pub fn fail_entries(&self, action: Action, times: u32) {
        self.script().entries.insert(action, times);
    }

    /// Every request fails this way until it is `None` again.
    pub fn outage(&self, failure: Option<Failure>) {
        self.script().outage = failure;
    }

    /// Delays the answers of this action by `latency`.
    pub fn latency(&self, action: Action, latency: Duration) {
        self.script().latency.insert(action, latency);
    }

    /// The next `times` receives return at once without messages.
    pub fn empty_receives(&self, times: u32) {
        self.script().empty_receives = times;
    }

    /// The share of received messages that are handed out a second time, 0 to 1. The copy has
    /// the same id and handles of its own, and outlives the deletion of the other.
    pub fn duplicate(&self, share: f64) {
        self.script().duplicate = share;
    }

    /// Messages are handed out in random order.
    pub fn reorder(&self, on: bool) {
        self.script().reorder = on;
    }

    /// Delays the visibility of every message sent from now on, counted as ready or not.
    pub fn delay(&self, by: Duration) {
        self.script().delay = by;
    }

    /// Deleting with the handle of an earlier receive succeeds and deletes nothing (which the
    /// service's documentation allows) instead of being refused.
    pub fn ignore_stale_deletes(&self, on: bool) {
        self.script().ignore_stale_deletes = on;
    }

    /// Behaves again. Counts are kept.
    pub fn clear(&self) {
        let mut script = self.script();
        let requests = std::mem::take(&mut script.requests);
        let answered = std::mem::take(&mut script.answered);
        *script = Script { requests, answered, ..Script::default() };
    }

    pub(super) fn counts(&self) -> Counts {
        let script = self.script();
        Counts { requests: script.requests.clone(), answered: script.answered.clone() }
    }

    /// Counts a request, and returns its delay and fault.
    pub(super) fn begin(&self, action: Action) -> (Duration, Option<Failure>) {
        let mut script = self.script();
        *script.requests.entry(action).or_default() += 1;
        let latency = script.latency.get(&action).copied().unwrap_or_default();
        let scripted = script.failures.get_mut(&action).and_then(|(left, failure)| {
            *left = left.checked_sub(1)?;
            *failure
        });
        (latency, scripted.or(script.outage))
    }

    pub(super) fn end(&self, action: Action) {
        *self.script().answered.entry(action).or_default() += 1;
    }

    /// Whether this entry of a batch fails.
    pub(super) fn entry_fails(&self, action: Action) -> bool {
        let mut script = self.script();
        let Some(left) = script.entries.get_mut(&action) else { return false };
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }

    /// Whether this receive finds nothing.
    pub(super) fn finds_nothing(&self) -> bool {
        let mut script = self.script();
        let nothing = script.empty_receives > 0;
        script.empty_receives = script.empty_receives.saturating_sub(1);
        nothing
    }

    /// The switches that concern messages, read once per request.
    pub(super) fn mischief(&self) -> Mischief {
        let script = self.script();
        Mischief {
            duplicate: script.duplicate,
            reorder: script.reorder,
            delay: super::clock::millis(script.delay),
            ignore_stale_deletes: script.ignore_stale_deletes,
        }
    }
}

/// The switches that concern messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mischief {
    duplicate: f64,
    reorder: bool,
    pub(super) delay: Millis,
    pub(super) ignore_stale_deletes: bool,
}

impl Mischief {
    /// The place in the order of delivery of a message that becomes visible at `at`.
    pub(super) fn order(&self, at: Millis) -> u64 {
        if self.reorder { fastrand::u64(..) } else { at }
    }

    pub(super) fn duplicates(&self) -> bool {
        self.duplicate > 0.0 && fastrand::f64() < self.duplicate
    }

    /// Never zero, which means "not received yet".
    pub(super) fn nonce(&self) -> u64 {
        fastrand::u64(1..)
    }
}

/// How many requests came in and were answered, by action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    requests: BTreeMap<Action, u64>,
    answered: BTreeMap<Action, u64>,
}

impl Counts {
    /// Requests of this action, those that failed included.
    pub fn of(&self, action: Action) -> u64 {
        self.requests.get(&action).copied().unwrap_or_default()
    }

    /// Requests of this action that are still at work: long polls, also of callers that are gone.
    pub fn open(&self, action: Action) -> u64 {
        self.of(action) - self.answered.get(&action).copied().unwrap_or_default()
    }

    /// The number of all requests.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// By the actions' names, for printing.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.requests.iter().map(|(action, count)| (action.name(), *count))
    }
}
