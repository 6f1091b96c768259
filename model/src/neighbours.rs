//! Documents beside each other: may one of them pay for its surroundings?
//!
//! Two workers of two slots have three documents; one may kill every worker that works on it. The
//! protocol of one document is checked by [`crate::protocol`]. Here are half failures: a worker that
//! reaches the queue but not Postgres, a replica after a failover, a document's row that a product has
//! locked, a worker that fails everything, a provider that declines everything.
//!
//! Claims, suspects' turns, streaks of failures, the hiding of messages and the failure table are the
//! product's own functions. Each mend can be switched off ([`Mend`]); then a property is broken.
//!
//! Assumed: a worker has other documents as well. Where everything fails two others fail before the same
//! document comes again; where all is well others pass. Bounded by the product's three attempts: no
//! more than two faults. A document that kills may also end by the first failure that is not its own:
//! its deaths used up its attempts. Not in this model: lost answers, duplicates, drains, several suspects at a time.

pub mod claims;
pub mod jobs;
pub mod world;

use docmill_core::failure_streak::FailureStreak;
use docmill_core::model::IngestionId;
use tokio::time::Instant;

use crate::checker::{Protocol, ProtocolStep};
use world::{FailedBits, HalfFault, NeighbourState, Outcome, QueueMessageState, WORKERS};

/// The properties, by the names of docs/explanation/reliability.md.
pub mod property {
    /// N1.
    pub const NO_FOREIGN_FAULT: &str = "N1: no document ends for a fault not its own";
    /// N2.
    pub const CONVICTED_ALONE: &str =
        "N2: a document ends as crashed after three deaths over it alone, silences included";
    /// N3.
    pub const ENDS_ONCE: &str =
        "N3: an end is written once, under the claim, and its message goes after it";
    /// N4.
    pub const ALL_END: &str = "N4: every document ends that is not locked, while one worker is well and the provider answers";
}

/// A mend that the model can switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    /// Only a death alone counts, and suspects are claimed alone.
    LoneDeaths,
    /// Different documents that fail alike in a row are no fault of theirs.
    OutcomeBreaker,
    /// The same of calls that a provider declines.
    DeclinedStreak,
    /// A connection that refuses writes is dropped.
    WriterAsked,
    /// A suspect that was survived is none before other work begins, its end written or not.
    SurvivorSettled,
    /// A message is hidden only while its row's lease is known to live.
    LeaseFate,
    /// The end of a locked document delays no other.
    LockedSkipped,
}

impl Mend {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::LoneDeaths,
        Self::OutcomeBreaker,
        Self::DeclinedStreak,
        Self::WriterAsked,
        Self::SurvivorSettled,
        Self::LeaseFate,
        Self::LockedSkipped,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoneDeaths => "lone-deaths",
            Self::OutcomeBreaker => "outcome-breaker",
            Self::DeclinedStreak => "declined-streak",
            Self::WriterAsked => "writer-asked",
            Self::SurvivorSettled => "survivor-settled",
            Self::LeaseFate => "lease-fate",
            Self::LockedSkipped => "locked-skipped",
        }
    }

    /// The mend of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mend| mend.name() == name)
    }
}

/// The protocol within bounds.
#[derive(Debug, Clone, Copy)]
pub struct NeighbourProtocol {
    documents: usize,
    faults: u8,
    without: Option<Mend>,
    /// Whether a streak of these failures is evidence: the product's answers.
    evidence: [bool; FailedBits::COUNT],
}

impl NeighbourProtocol {
    /// So many documents and faults on one path, perhaps without a mend.
    pub fn new(documents: usize, faults: u8, without: Option<Mend>) -> Self {
        let names: [IngestionId; FailedBits::BITS] = std::array::from_fn(|_| IngestionId::random());
        let mut evidence = [false; FailedBits::COUNT];
        for (bits, is_evidence) in evidence.iter_mut().enumerate() {
            let mut streak = FailureStreak::default();
            for (at, document) in names.iter().enumerate() {
                if bits & (1 << at) != 0 {
                    streak.add_failure(*document, Instant::now());
                }
            }
            *is_evidence = streak.is_evidence();
        }
        Self { documents, faults, without, evidence }
    }

    /// Whether this mend is in force.
    pub fn has(&self, mend: Mend) -> bool {
        self.without != Some(mend)
    }

    /// Whether a worker takes these failures for everybody's.
    pub fn is_evidence(&self, failed: FailedBits, mend: Mend) -> bool {
        self.has(mend) && self.evidence[usize::from(failed.0)]
    }
}

/// The steps of one state.
pub struct NeighbourSteps<'a>(&'a mut Vec<ProtocolStep<NeighbourState>>);

impl NeighbourSteps<'_> {
    /// A step of a world in which nothing fails.
    pub fn add(&mut self, label: &'static str, state: NeighbourState) {
        self.push(label, Ok(state), true);
    }

    /// The same, or the property that it breaks; `fair`: of a world in which nothing fails.
    pub fn add_as(
        &mut self,
        fair: bool,
        label: &'static str,
        state: Result<NeighbourState, &'static str>,
    ) {
        self.push(label, state, fair);
    }

    /// The same, or the property that it breaks.
    pub fn add_checked(
        &mut self,
        label: &'static str,
        state: Result<NeighbourState, &'static str>,
    ) {
        self.push(label, state, true);
    }

    /// A step that no liveness relies on.
    pub fn add_unsure(&mut self, label: &'static str, state: NeighbourState) {
        self.push(label, Ok(state), false);
    }

    fn push(
        &mut self,
        label: &'static str,
        state: Result<NeighbourState, &'static str>,
        fair: bool,
    ) {
        let broken = state.err();
        let state = state.unwrap_or_default().normalised();
        self.0.push(ProtocolStep { label, state, fair, ticks: false, broken });
    }
}

impl Protocol for NeighbourProtocol {
    type State = NeighbourState;

    fn initial_states(&self) -> Vec<NeighbourState> {
        [false, true]
            .map(|kills| NeighbourState::submitted(self.documents, kills, self.faults))
            .to_vec()
    }

    fn list_steps(&self, state: &NeighbourState, steps: &mut Vec<ProtocolStep<NeighbourState>>) {
        let mut list = NeighbourSteps(steps);
        for worker in 0..WORKERS {
            jobs::list_steps(state, worker, self, &mut list);
        }
        list_faults(state, &mut list);
        let mut after = *state;
        after.pass_time();
        (0..WORKERS).for_each(|worker| jobs::beat(&mut after, worker, self));
        let after = after.normalised();
        if after != *state {
            // Slow work is possible at any time; it is relied on only when nothing else is to do.
            let fair = !list.0.iter().any(|step| step.fair);
            list.0.push(ProtocolStep {
                label: "a tick",
                state: after,
                fair,
                ticks: true,
                broken: None,
            });
        }
    }

    fn find_broken(&self, state: &NeighbourState) -> Option<&'static str> {
        let pays = state.documents.iter().any(|document| {
            !document.kills && matches!(document.outcome, Outcome::Crashed | Outcome::Internal)
        });
        pays.then_some(property::NO_FOREIGN_FAULT)
    }
}

/// Whether every document has ended that can: the goal of N4.
pub fn has_ended(state: &NeighbourState) -> bool {
    let is_well = state.workers.iter().any(|worker| !worker.is_cut && !worker.is_sick);
    let has_ended = state.documents.iter().all(|document| {
        document.is_locked
            || (document.outcome != Outcome::Open && document.message == QueueMessageState::Gone)
    });
    state.is_declining || !is_well || has_ended
}

fn list_faults(state: &NeighbourState, list: &mut NeighbourSteps<'_>) {
    if let Some(faults) = state.faults.checked_sub(1) {
        let after = NeighbourState { faults, ..*state };
        for worker in 0..WORKERS {
            if state.workers[worker].is_busy() {
                let mut dead = after;
                dead.die(worker);
                list.add_unsure("a worker dies", dead);
            }
        }
        for failure in HalfFault::all() {
            if !state.has_failure(failure) {
                list.add_unsure(failure.begins(), after.with_failure(failure, true));
            }
        }
    }
    for failure in HalfFault::all() {
        if state.has_failure(failure) && failure != HalfFault::Failover {
            list.add_unsure(failure.ends(), state.with_failure(failure, false));
        }
    }
}
