//! Applies the faults of a plan: struck calls, frozen workers, outages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use docmill_core::fault::{Error, Fault, Result};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::plan::{CallFault, FAULT_PHASE, HalfFailure, PlannedFault, PortCall, SchedulePlan};

/// Timeout of an unanswered statement.
const SILENCE: Duration = Duration::from_secs(15);

pub(super) fn lost() -> Error {
    Error::new(Fault::Unavailable, "no answer")
}

/// The outside of a schedule, until it is calm.
pub(super) struct PlannedTrouble {
    seed: u64,
    calm_from: Instant,
    /// The number of each fault in its plan, by the call that it strikes.
    faults: BTreeMap<(PortCall, usize), (usize, CallFault)>,
    state: Mutex<TroubleState>,
}

struct TroubleState {
    calls: BTreeMap<PortCall, usize>,
    /// Numbers of the faults that have struck.
    met: BTreeSet<usize>,
    ledger_silent_until: Instant,
    refused_until: Instant,
    rush_until: Instant,
    replica_until: Instant,
    declining_until: Instant,
    locked_until: Instant,
}

/// The fate of one call, or of one entry of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFate {
    pub call: PortCall,
    pub nth: usize,
    pub fault: Option<CallFault>,
}

impl PlannedTrouble {
    pub(super) fn new(plan: &SchedulePlan) -> Self {
        let now = Instant::now();
        let of_calls = plan.faults.iter().filter_map(|(number, fault)| match fault {
            PlannedFault::Call { call, nth, fault } => Some(((*call, *nth), (*number, *fault))),
            PlannedFault::At { .. } => None,
        });
        let state = TroubleState {
            calls: BTreeMap::new(),
            met: BTreeSet::new(),
            ledger_silent_until: now,
            refused_until: now,
            rush_until: now,
            replica_until: now,
            declining_until: now,
            locked_until: now,
        };
        Self {
            seed: plan.seed,
            calm_from: now + FAULT_PHASE,
            faults: of_calls.collect(),
            state: Mutex::new(state),
        }
    }

    /// The next call of its sort.
    pub(super) fn next(&self, call: PortCall) -> CallFate {
        let mut state = self.state.lock().unwrap();
        let count = state.calls.entry(call).or_default();
        let nth = *count;
        *count += 1;
        let struck = self.faults.get(&(call, nth)).filter(|_| Instant::now() < self.calm_from);
        state.met.extend(struck.map(|(number, _)| *number));
        CallFate { call, nth, fault: struck.map(|(_, fault)| *fault) }
    }

    pub(super) fn note_met(&self, number: usize) {
        self.state.lock().unwrap().met.insert(number);
    }

    /// Numbers of the faults that have struck.
    pub(super) fn met(&self) -> BTreeSet<usize> {
        self.state.lock().unwrap().met.clone()
    }

    /// Something between nothing and `most`, the same for the same place in the schedule.
    pub(super) fn spread(&self, place: &[u64], most: Duration) -> Duration {
        let mixed = place.iter().fold(self.seed, |mixed, part| {
            fastrand::Rng::with_seed(mixed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..)
        });
        most.mul_f64(fastrand::Rng::with_seed(mixed).f64())
    }

    /// A call is on its way there (leg 0) or back (leg 1).
    pub(super) async fn travel(&self, fate: CallFate, leg: u64) {
        let is_slow = fate.fault == Some(CallFault::Slow);
        let most = Duration::from_millis(if is_slow { 12_000 } else { 40 });
        sleep(self.spread(&[fate.call as u64, fate.nth as u64, leg], most)).await;
    }

    pub(super) fn silence_ledger(&self, lasts: Duration) {
        self.state.lock().unwrap().ledger_silent_until = Instant::now() + lasts;
    }

    /// A half failure that strikes all workers begins.
    pub(super) fn begin_half(&self, failure: HalfFailure, lasts: Duration) {
        let mut state = self.state.lock().unwrap();
        let until = match failure {
            HalfFailure::Replica => &mut state.replica_until,
            HalfFailure::Declining => &mut state.declining_until,
            HalfFailure::Locked => &mut state.locked_until,
            HalfFailure::Cut { .. } | HalfFailure::Sick { .. } => return,
        };
        *until = Instant::now() + lasts;
    }

    /// # Errors
    /// The ledger's connection leads to a replica.
    pub(super) fn require_writer(&self) -> Result<()> {
        match Instant::now() < self.state.lock().unwrap().replica_until {
            true => Err(Error::new(Fault::Unavailable, "read-only transaction")),
            false => Ok(()),
        }
    }

    /// Whether a product holds its locks.
    pub(super) fn is_locking(&self) -> bool {
        Instant::now() < self.state.lock().unwrap().locked_until
    }

    /// # Errors
    /// No answer.
    pub(super) async fn reach_ledger(&self, gate: &WorkerGate) -> Result<()> {
        let silent_until = self.state.lock().unwrap().ledger_silent_until;
        let silent_until = silent_until.max(gate.cut_until());
        if Instant::now() >= silent_until {
            return Ok(());
        }
        sleep_until(silent_until.min(Instant::now() + SILENCE)).await;
        Err(lost())
    }

    pub(super) fn refuse_credentials(&self, lasts: Duration) {
        self.state.lock().unwrap().refused_until = Instant::now() + lasts;
    }

    pub(super) fn begin_rush(&self, lasts: Duration) {
        self.state.lock().unwrap().rush_until = Instant::now() + lasts;
    }

    /// Whether the provider lets the so-manieth call of all in.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn enter_provider(&self, fate: CallFate) -> Result<()> {
        let state = self.state.lock().unwrap();
        let now = Instant::now();
        if now < state.refused_until {
            return Err(Error::new(Fault::Denied, "the provider does not know us"));
        }
        if now < state.declining_until {
            return Err(Error::internal("the provider declines the form of the call"));
        }
        if now < state.rush_until && fate.nth.is_multiple_of(2) {
            return Err(Error::new(Fault::Throttled(None), "the provider has too much to do"));
        }
        Ok(())
    }
}

/// All calls and answers of a worker pass this gate, unless it is frozen. Its own timers go on.
pub(super) struct WorkerGate {
    closed_until: Mutex<Instant>,
    /// It does not reach the ledger.
    cut_until: Mutex<Instant>,
    /// Everything fails in it.
    sick_until: Mutex<Instant>,
    /// A document kills it.
    killed: Notify,
}

impl WorkerGate {
    pub(super) fn new() -> Self {
        let now = || Mutex::new(Instant::now());
        let killed = Notify::new();
        Self { closed_until: now(), cut_until: now(), sick_until: now(), killed }
    }

    pub(super) fn close_for(&self, lasts: Duration) {
        *self.closed_until.lock().unwrap() = Instant::now() + lasts;
    }

    pub(super) fn cut_for(&self, lasts: Duration) {
        *self.cut_until.lock().unwrap() = Instant::now() + lasts;
    }

    pub(super) fn sicken_for(&self, lasts: Duration) {
        *self.sick_until.lock().unwrap() = Instant::now() + lasts;
    }

    fn cut_until(&self) -> Instant {
        *self.cut_until.lock().unwrap()
    }

    pub(super) fn is_sick(&self) -> bool {
        Instant::now() < *self.sick_until.lock().unwrap()
    }

    pub(super) fn kill(&self) {
        self.killed.notify_one();
    }

    pub(super) async fn wait_until_killed(&self) {
        self.killed.notified().await;
    }

    pub(super) async fn pass(&self) {
        loop {
            let until = *self.closed_until.lock().unwrap();
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}
