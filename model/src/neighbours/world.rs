//! The complete state: three documents with a message each, two workers, and half failures.

use std::time::Duration;

/// Documents beside each other; the last one may kill.
pub const DOCUMENTS: usize = 3;
/// Workers of the service.
pub const WORKERS: usize = 2;
/// Jobs that a worker works on at a time.
pub const SLOTS: usize = 2;
/// The duration of a tick, for the product's seconds: a heartbeat.
pub const TICK: Duration = Duration::from_secs(120);
/// Ticks until an unrenewed claim expires.
pub const LEASE: u8 = 2;
/// Ticks that a received message stays hidden.
pub const VISIBILITY: u8 = 2;
/// Deaths over a document alone that end it (`retry.crash_attempts`).
pub const CRASHES: u8 = 3;
/// Attempts that are told apart; three end a document.
pub const MAX_ATTEMPTS: u8 = 6;
/// Ticks since an accusation that are told apart, and one: a suspect has waited for long then.
const MAX_ACCUSED: u8 = 2;

/// How a document stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Outcome {
    /// In progress.
    #[default]
    Open,
    /// Completed.
    Completed,
    /// Failed: workers died on it.
    Crashed,
    /// Failed: something failed three times.
    Internal,
}

/// Whose live job has the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Holder {
    /// Not claimed.
    #[default]
    Nobody,
    /// The job of this worker.
    Worker(u8),
    /// Of a process that died.
    Dead,
}

/// Where the document's message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum QueueMessageState {
    /// Deleted.
    Gone,
    /// The next receive may hand it out.
    #[default]
    Visible,
    /// Visible after this many ticks.
    Hidden(u8),
}

impl QueueMessageState {
    /// Hidden for so long; for nothing: visible.
    pub fn hidden_for(ticks: u8) -> Self {
        if ticks == 0 { Self::Visible } else { Self::Hidden(ticks) }
    }
}

/// How the newest attempt that was made alone ended (`decide::LoneEnds` has the newest eight of an hour).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LoneEnd {
    /// There was none.
    #[default]
    None,
    /// With a word of its worker.
    Survived,
    /// Without one.
    Crashed,
}

/// One document, its row and its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DocumentState {
    /// Whether it kills every worker that works on it.
    pub kills: bool,
    /// How it stands.
    pub outcome: Outcome,
    /// Who has the claim.
    pub holder: Holder,
    /// Ticks that the claim lasts.
    pub lease: u8,
    /// Ticks until the next attempt is due.
    pub due: u8,
    /// Attempts that count.
    pub attempts: u8,
    /// Crashes that count.
    pub crashes: u8,
    /// Ticks since it was accused, and one; 0: it is no suspect.
    pub accused: u8,
    /// Whether the newest claim was made alone.
    pub is_alone: bool,
    /// How the newest attempt alone ended.
    pub lone_end: LoneEnd,
    /// Whether a product has locked its row: no end can be written.
    pub is_locked: bool,
    /// Its message.
    pub message: QueueMessageState,
    /// The worker that received it last; `None`: nobody's receipt is good.
    pub receiver: Option<u8>,
    /// Deaths of workers that worked on nothing else, in fact; of one that kills.
    pub deaths_alone: u8,
}

/// How an attempt is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptEnd {
    /// Completed.
    Complete,
    /// Failed for good.
    Refuse,
    /// Given back.
    Again {
        /// Whether it counts.
        counted: bool,
    },
}

/// The next action of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum JobPhase {
    /// There is no job.
    #[default]
    None,
    /// It asks for the claim: Postgres does not answer, or other work is to end first.
    Claim,
    /// It works on the document.
    Work,
    /// It writes how the attempt ended.
    End(AttemptEnd),
}

/// A worker's job about one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobState {
    /// The next action.
    pub phase: JobPhase,
    /// Ticks that the row's lease is known to live.
    pub known: u8,
}

/// The documents that failed in a row at one worker, as bits: the three, then two others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FailedBits(pub u8);

impl FailedBits {
    /// Documents that are told apart.
    pub const BITS: usize = DOCUMENTS + 2;
    /// Sets of them.
    pub const COUNT: usize = 1 << Self::BITS;
    const OTHERS: u8 = 0b11 << DOCUMENTS;

    /// With this document.
    #[must_use]
    pub fn with(self, document: usize) -> Self {
        Self(self.0 | 1 << document)
    }

    /// Other documents fail, or pass.
    fn meet_others(&mut self, fails: bool) {
        self.0 = if fails { self.0 | Self::OTHERS } else { 0 };
    }
}

/// One worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NeighbourWorker {
    /// Its job about each document.
    pub jobs: [JobState; DOCUMENTS],
    /// It does not reach Postgres.
    pub is_cut: bool,
    /// Its connections lead to a replica.
    pub is_reader: bool,
    /// Everything fails in it.
    pub is_sick: bool,
    /// The suspect that has its turn.
    pub lone: Option<u8>,
    /// Documents that failed in it, with none that passed between.
    pub failed: FailedBits,
    /// Documents whose calls a provider declined, likewise.
    pub declined: FailedBits,
}

impl NeighbourWorker {
    /// Whether it has any job.
    pub fn is_busy(&self) -> bool {
        self.jobs.iter().any(|job| job.phase != JobPhase::None)
    }

    /// It has worked on documents beside the three.
    fn meet_others(&mut self, is_declining: bool) {
        if !self.is_cut {
            self.failed.meet_others(self.is_sick);
            self.declined.meet_others(is_declining && !self.is_sick);
        }
    }

    /// How many of its jobs are in a phase like this one, beside that of a document.
    pub fn count_beside(&self, document: usize, phase: JobPhase) -> usize {
        let others = self.jobs.iter().enumerate().filter(|(at, _)| *at != document);
        others.filter(|(_, job)| job.phase == phase).count()
    }
}

/// A half failure of the surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfFault {
    /// This worker does not reach Postgres, but the queue.
    Cut(usize),
    /// All connections lead to a replica from now on, until they are made again.
    Failover,
    /// Everything fails in this worker.
    Sick(usize),
    /// A product locks this document's row.
    Locked(usize),
    /// The provider declines every call.
    Declining,
}

impl HalfFault {
    /// Each of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let workers = (0..WORKERS).flat_map(|at| [Self::Cut(at), Self::Sick(at)]);
        let documents = (0..DOCUMENTS).map(Self::Locked);
        workers.chain(documents).chain([Self::Failover, Self::Declining])
    }

    /// The label of its beginning.
    pub fn begins(self) -> &'static str {
        match self {
            Self::Cut(_) => "a worker loses Postgres alone",
            Self::Failover => "a failover leaves every connection at a replica",
            Self::Sick(_) => "everything fails in a worker",
            Self::Locked(_) => "a product locks a document's row",
            Self::Declining => "the provider declines every call",
        }
    }

    /// The label of its end.
    pub fn ends(self) -> &'static str {
        match self {
            Self::Cut(_) => "a worker reaches Postgres again",
            Self::Failover => "connections lead to the writer",
            Self::Sick(_) => "a worker is well again",
            Self::Locked(_) => "a product commits",
            Self::Declining => "the provider answers again",
        }
    }
}

/// All of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NeighbourState {
    /// The documents.
    pub documents: [DocumentState; DOCUMENTS],
    /// The workers.
    pub workers: [NeighbourWorker; WORKERS],
    /// Whether the provider declines every call.
    pub is_declining: bool,
    /// Faults that may still happen.
    pub faults: u8,
}

impl NeighbourState {
    /// So many documents and their messages; `kills`: the last of them kills.
    pub fn submitted(documents: usize, kills: bool, faults: u8) -> Self {
        let mut state = Self { faults, ..Self::default() };
        state.documents[DOCUMENTS - 1].kills = kills;
        for document in state.documents.iter_mut().rev().skip(documents) {
            (document.outcome, document.message) = (Outcome::Completed, QueueMessageState::Gone);
        }
        state
    }

    /// Whether this job has the claim.
    pub fn is_held(&self, document: usize, worker: usize) -> bool {
        self.documents[document].holder == Holder::Worker(number(worker))
    }

    /// Whether the worker's receipt of the message is good.
    pub fn has_receipt(&self, document: usize, worker: usize) -> bool {
        self.documents[document].receiver == Some(number(worker))
    }

    /// Whether it is under way.
    pub fn has_failure(&self, failure: HalfFault) -> bool {
        match failure {
            HalfFault::Cut(at) => self.workers[at].is_cut,
            HalfFault::Failover => self.workers.iter().all(|worker| worker.is_reader),
            HalfFault::Sick(at) => self.workers[at].is_sick,
            HalfFault::Locked(at) => self.documents[at].is_locked,
            HalfFault::Declining => self.is_declining,
        }
    }

    /// The same with it, or without it.
    #[must_use]
    pub fn with_failure(mut self, failure: HalfFault, is_there: bool) -> Self {
        match failure {
            HalfFault::Cut(at) => self.workers[at].is_cut = is_there,
            HalfFault::Failover => {
                self.workers.iter_mut().for_each(|worker| worker.is_reader = is_there);
            }
            HalfFault::Sick(at) => self.workers[at].is_sick = is_there,
            HalfFault::Locked(at) => self.documents[at].is_locked = is_there,
            HalfFault::Declining => self.is_declining = is_there,
        }
        self
    }

    /// The worker dies with all that it has in hand; another process takes its place.
    pub fn die(&mut self, worker: usize) {
        let dead = self.workers[worker];
        for at in 0..DOCUMENTS {
            let is_held = self.is_held(at, worker);
            let has_receipt = self.has_receipt(at, worker);
            let is_alone = dead.count_beside(at, JobPhase::Work) == 0;
            let document = &mut self.documents[at];
            if is_held {
                document.holder = Holder::Dead;
                let counts = document.kills && is_alone && dead.jobs[at].phase == JobPhase::Work;
                document.deaths_alone = (document.deaths_alone + u8::from(counts)).min(CRASHES);
            }
            if has_receipt {
                document.receiver = None;
            }
        }
        let NeighbourWorker { is_cut, is_sick, .. } = dead;
        let next = &mut self.workers[worker];
        *next = NeighbourWorker { is_cut, is_sick, ..NeighbourWorker::default() };
        next.meet_others(self.is_declining);
    }

    /// The job is over for its worker.
    pub fn leave(&mut self, document: usize, worker: usize) {
        let worker = &mut self.workers[worker];
        worker.jobs[document] = JobState::default();
        if worker.lone == Some(number(document)) {
            worker.lone = None;
        }
    }

    /// Time passes; heartbeats are to follow.
    pub fn pass_time(&mut self) {
        for document in &mut self.documents {
            if let QueueMessageState::Hidden(left) = document.message {
                document.message = QueueMessageState::hidden_for(left.saturating_sub(1));
            }
            document.lease = document.lease.saturating_sub(1);
            document.due = document.due.saturating_sub(1);
            if document.accused > 0 {
                document.accused = (document.accused + 1).min(MAX_ACCUSED);
            }
        }
        let is_declining = self.is_declining;
        for worker in &mut self.workers {
            for job in &mut worker.jobs {
                job.known = job.known.saturating_sub(1);
            }
            worker.meet_others(is_declining);
        }
    }

    /// The canonical form of equivalent states: settled accounts, the order of workers and of good
    /// documents.
    #[must_use]
    pub fn normalised(mut self) -> Self {
        for document in &mut self.documents {
            let DocumentState { kills, outcome, is_locked, message, receiver, lone_end, .. } =
                *document;
            let receiver = receiver.filter(|_| message != QueueMessageState::Gone);
            document.receiver = receiver;
            if outcome != Outcome::Open {
                // Ends are looked at for an hour: a crash before the end is forgotten some time.
                let lone_end = if lone_end == LoneEnd::Crashed { LoneEnd::None } else { lone_end };
                let base = DocumentState { kills, outcome, is_locked, ..DocumentState::default() };
                *document = DocumentState { message, receiver, lone_end, ..base };
            } else if document.holder == Holder::Nobody {
                (document.lease, document.is_alone) = (0, false);
            }
        }
        let swapped = self.with_swapped_workers();
        let same = [self, swapped, self.with_swapped_documents(), swapped.with_swapped_documents()];
        same.into_iter().min().unwrap_or(self)
    }

    fn with_swapped_workers(mut self) -> Self {
        self.workers.swap(0, 1);
        for document in &mut self.documents {
            if let Holder::Worker(at) = &mut document.holder {
                *at = 1 - *at;
            }
            document.receiver = document.receiver.map(|at| 1 - at);
        }
        self
    }

    fn with_swapped_documents(mut self) -> Self {
        self.documents.swap(0, 1);
        for worker in &mut self.workers {
            worker.jobs.swap(0, 1);
            worker.lone = worker.lone.map(|at| if at < 2 { 1 - at } else { at });
            for bits in [&mut worker.failed, &mut worker.declined] {
                bits.0 = bits.0 & !0b11 | (bits.0 & 1) << 1 | (bits.0 >> 1) & 1;
            }
        }
        self
    }
}

/// So many ticks at least.
pub fn ticks(time: Duration) -> u8 {
    u8::try_from(time.as_secs().div_ceil(TICK.as_secs())).unwrap_or(u8::MAX)
}

/// The number of a worker or a document.
pub fn number(at: usize) -> u8 {
    u8::try_from(at).unwrap_or(u8::MAX)
}
