//! A schedule as data: documents, workers, and a list of faults, drawn from a seed. Each fault is
//! placed independently, so that removing one moves no other.

use std::fmt;
use std::time::Duration;

use docmill_core::fault::Fault;

/// Faults happen for this long.
pub(super) const FAULT_PHASE: Duration = Duration::from_secs(10 * 60);
/// Every so many schedules one has documents that pay for their surroundings, unless a guard holds.
const NEIGHBOURS_EVERY: u64 = 4;
/// Documents of such a schedule; one kills every worker that reads it.
const NEIGHBOURS: usize = 9;
/// The same where everything fails: so many that failures of different ones are evidence.
const MANY_NEIGHBOURS: usize = 24;
/// Documents of a schedule in which a product locks some, and those that it locks: enough to fill the
/// slots of both workers and their turns at writing.
const BESIDE_LOCKED: (usize, usize) = (18, 14);
/// Workers of a schedule that is not cut down, and its documents.
const WORKERS: usize = 2;
const DOCUMENTS: usize = 6;
/// Calls of each sort that may have a fault.
const CALLS: usize = 90;

/// A call that goes over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PortCall {
    Claim,
    Renew,
    Release,
    Record,
    ReadBack,
    Receive,
    Extend,
    Delete,
    Hide,
    Send,
    Provider,
}

/// The fault of one call, or of one entry of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CallFault {
    /// Nothing is done.
    Refused,
    /// Executed, and the answer is lost; of a receive: the messages were handed out to no one.
    AnswerLost,
    /// It takes up to twelve seconds each way.
    Slow,
    /// Messages come in another order.
    Reordered,
    /// The receipt is not good any more, and the message there for everybody.
    HandleExpired,
    /// It is done; before its answer is there an operator opens the document again.
    Reopened,
    /// The provider was paid, and failed.
    Fails(Fault),
}

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WorldEvent {
    /// A worker dies, and another takes its place.
    Death { worker: usize },
    /// A worker is asked to stop, and another takes its place.
    Stop { worker: usize },
    /// All calls and answers of a worker are delayed, then delivered.
    Standstill { worker: usize, lasts: Duration },
    /// An operator withdraws a document.
    Cancel { document: usize },
    /// An operator opens one that has ended.
    Retry { document: usize },
    /// Messages are delivered twice.
    Duplicates { count: u32 },
    /// The clock of the ledger goes ahead of the workers'.
    ClockAhead { by: Duration },
    /// The clock of the ledger falls behind the workers'.
    ClockBehind { by: Duration },
    /// The ledger does not answer.
    LedgerSilent { lasts: Duration },
    /// The provider refuses our credentials.
    Refusal { lasts: Duration },
    /// The provider throttles every other call.
    Rush { lasts: Duration },
    /// A half failure of the surroundings.
    Half { failure: HalfFailure, lasts: Duration },
}

/// A half failure: it strikes some, or some of what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HalfFailure {
    /// A worker does not reach the ledger, but the queue.
    Cut { worker: usize },
    /// The ledger's connections lead to a replica.
    Replica,
    /// Everything fails in a worker.
    Sick { worker: usize },
    /// The provider declines every call.
    Declining,
    /// A product has locked the rows of the first documents.
    Locked,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PlannedFault {
    /// At call number `nth` of its sort, from 0, by any worker.
    Call { call: PortCall, nth: usize, fault: CallFault },
    /// At this time after the start.
    At { at: Duration, event: WorldEvent },
}

/// A document's effect on its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentPlan {
    Reads,
    IsRefused,
    Panics,
    Slow,
    /// It kills the worker that reads it.
    Kills,
}

/// A schedule, whole or cut down. Its remaining faults keep their numbers.
#[derive(Debug, Clone)]
pub(super) struct SchedulePlan {
    pub seed: u64,
    pub workers: usize,
    pub documents: Vec<(usize, DocumentPlan)>,
    pub faults: Vec<(usize, PlannedFault)>,
    /// One document kills, and half failures are the only faults: every end is known.
    pub is_beside: bool,
}

impl SchedulePlan {
    pub(super) fn draw(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        if seed % NEIGHBOURS_EVERY == NEIGHBOURS_EVERY - 1 {
            return Self::draw_beside(seed, &mut random);
        }
        let documents = (0..DOCUMENTS).map(|at| (at, draw_document(&mut random))).collect();
        let mut faults = Vec::new();
        for (call, odds) in ODDS {
            for nth in 0..CALLS {
                let struck = odds.iter().find(|(_, one_in)| random.u32(..*one_in) == 0);
                faults.extend(struck.map(|(fault, _)| PlannedFault::Call {
                    call: *call,
                    nth,
                    fault: *fault,
                }));
            }
        }
        let mut at = Duration::ZERO;
        loop {
            at += between(&mut random, 5, 60);
            if at >= FAULT_PHASE {
                break;
            }
            let event = draw_event(&mut random);
            faults.extend(event.map(|event| PlannedFault::At { at, event }));
        }
        if random.u32(..3) == 0 {
            let (at, lasts) = (between(&mut random, 0, 120), between(&mut random, 260, 330));
            faults.push(PlannedFault::At { at, event: WorldEvent::Refusal { lasts } });
            let rush = WorldEvent::Rush { lasts: Duration::from_secs(120) };
            faults.push(PlannedFault::At { at: at + lasts, event: rush });
        }
        let faults = faults.into_iter().enumerate().collect();
        Self { seed, workers: WORKERS, documents, faults, is_beside: false }
    }

    /// Good documents beside one that kills, and a half failure.
    fn draw_beside(seed: u64, random: &mut fastrand::Rng) -> Self {
        let worker = random.usize(..WORKERS);
        let failure = match seed / NEIGHBOURS_EVERY % 5 {
            0 => HalfFailure::Cut { worker },
            1 => HalfFailure::Replica,
            2 => HalfFailure::Sick { worker },
            3 => HalfFailure::Declining,
            _ => HalfFailure::Locked,
        };
        // Where everything fails it does so from the beginning: a few documents are no evidence.
        let (at, lasts) = match failure {
            HalfFailure::Cut { .. } | HalfFailure::Replica => {
                (between(random, 0, 30), between(random, 100, 590))
            }
            HalfFailure::Locked => (Duration::ZERO, FAULT_PHASE),
            HalfFailure::Sick { .. } | HalfFailure::Declining => {
                (Duration::ZERO, between(random, 30, 590))
            }
        };
        let count = match failure {
            HalfFailure::Cut { .. } | HalfFailure::Replica => NEIGHBOURS,
            HalfFailure::Sick { .. } | HalfFailure::Declining => MANY_NEIGHBOURS,
            HalfFailure::Locked => BESIDE_LOCKED.0,
        };
        let kills = random.usize(count - 4..count);
        let plan = |at| if at == kills { DocumentPlan::Kills } else { DocumentPlan::Reads };
        let documents = (0..count).map(|at| (at, plan(at))).collect();
        let event = WorldEvent::Half { failure, lasts };
        let faults = vec![(0, PlannedFault::At { at, event })];
        Self { seed, workers: WORKERS, documents, faults, is_beside: true }
    }

    /// Whether a worker loses the ledger alone, so that others are to take over.
    pub(super) fn is_cut(&self) -> bool {
        self.is_beside && (self.seed / NEIGHBOURS_EVERY).is_multiple_of(5)
    }

    /// Whether a product locks this document's row.
    pub(super) fn is_locked(&self, number: usize) -> bool {
        let locks = |fault: &(usize, PlannedFault)| {
            let locked = WorldEvent::Half { failure: HalfFailure::Locked, lasts: FAULT_PHASE };
            fault.1 == PlannedFault::At { at: Duration::ZERO, event: locked }
        };
        number < BESIDE_LOCKED.1 && self.faults.iter().any(locks)
    }

    /// As the command line has it: only what is named there.
    pub(super) fn keep_named(&mut self) {
        let named = |name| {
            let text = std::env::var(name).ok()?;
            let numbers = text.split(',').filter(|part| !part.is_empty());
            Some(numbers.map(|part| part.parse().unwrap()).collect::<Vec<usize>>())
        };
        if let Some(kept) = named("FAULTS") {
            self.faults.retain(|(number, _)| kept.contains(number));
        }
        if let Some(kept) = named("DOCUMENTS") {
            self.documents.retain(|(number, _)| kept.contains(number));
        }
        if let Some(&[workers]) = named("WORKERS").as_deref() {
            self.workers = workers;
        }
    }

    /// The command that runs exactly this schedule.
    pub(super) fn command(&self) -> String {
        let list = |numbers: Vec<usize>| {
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let faults = list(self.faults.iter().map(|(number, _)| *number).collect());
        let documents = list(self.documents.iter().map(|(number, _)| *number).collect());
        let (seed, workers) = (self.seed, self.workers);
        format!(
            "SEED={seed} FAULTS={faults} DOCUMENTS={documents} WORKERS={workers} \
             scripts/simulate.sh"
        )
    }
}

impl fmt::Display for SchedulePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} workers, documents {:?}", self.workers, self.documents)?;
        for (number, fault) in &self.faults {
            match fault {
                PlannedFault::Call { call, nth, fault } => {
                    writeln!(f, "  {number}: {call:?} number {nth}: {fault:?}")?;
                }
                PlannedFault::At { at, event } => {
                    writeln!(f, "  {number}: after {at:.0?}: {event:?}")?;
                }
            }
        }
        Ok(())
    }
}

/// The faults that a call may have, and how seldom.
type CallOdds = &'static [(CallFault, u32)];

const BY_LEDGER: CallOdds =
    &[(CallFault::Refused, 25), (CallFault::AnswerLost, 25), (CallFault::Slow, 40)];
const BY_RECORD: CallOdds = &[
    (CallFault::Refused, 25),
    (CallFault::AnswerLost, 25),
    (CallFault::Slow, 40),
    (CallFault::Reopened, 12),
];
const BY_QUEUE: CallOdds = &[
    (CallFault::Refused, 25),
    (CallFault::AnswerLost, 25),
    (CallFault::Slow, 40),
    (CallFault::HandleExpired, 40),
];
const ODDS: &[(PortCall, CallOdds)] = &[
    (PortCall::Claim, BY_LEDGER),
    (PortCall::Renew, BY_LEDGER),
    (PortCall::Release, BY_LEDGER),
    (PortCall::Record, BY_RECORD),
    (PortCall::ReadBack, BY_LEDGER),
    (PortCall::Receive, &[(CallFault::AnswerLost, 20), (CallFault::Reordered, 8)]),
    (PortCall::Extend, BY_QUEUE),
    (PortCall::Delete, BY_QUEUE),
    (PortCall::Hide, BY_QUEUE),
    (PortCall::Send, BY_LEDGER),
    (
        PortCall::Provider,
        &[
            (CallFault::Fails(Fault::Transient), 36),
            (CallFault::Fails(Fault::Unavailable), 36),
            (CallFault::Fails(Fault::Throttled(None)), 36),
        ],
    ),
];

fn between(random: &mut fastrand::Rng, least: u64, most: u64) -> Duration {
    Duration::from_millis(random.u64(least * 1000..most * 1000))
}

fn draw_document(random: &mut fastrand::Rng) -> DocumentPlan {
    match random.u32(..8) {
        0 => DocumentPlan::IsRefused,
        1 => DocumentPlan::Panics,
        2 | 3 => DocumentPlan::Slow,
        _ => DocumentPlan::Reads,
    }
}

fn draw_event(random: &mut fastrand::Rng) -> Option<WorldEvent> {
    let (worker, document) = (random.usize(..WORKERS), random.usize(..DOCUMENTS));
    Some(match random.u32(..16) {
        0 | 1 => WorldEvent::Death { worker },
        2 | 3 => WorldEvent::Stop { worker },
        4 | 5 => WorldEvent::Standstill { worker, lasts: between(random, 5, 200) },
        6 => WorldEvent::Cancel { document },
        7..=9 => WorldEvent::Retry { document },
        10 => WorldEvent::Duplicates { count: random.u32(1..4) },
        11 => WorldEvent::ClockAhead { by: between(random, 1, 20) },
        12 => WorldEvent::ClockBehind { by: between(random, 1, 20) },
        13 => WorldEvent::LedgerSilent { lasts: between(random, 5, 200) },
        _ => return None,
    })
}
