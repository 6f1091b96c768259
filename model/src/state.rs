//! The complete state: the messages of one ingestion, its row, the workers, and requests in
//! transit.
//!
//! Time is counted in ticks of one heartbeat. Receipts and tokens are only compared, so a receipt
//! is a bit (is it of the newest receive?) and a token the smallest unused number.

/// Messages that may exist at a time for the one ingestion.
pub const MESSAGES: usize = 2;
/// Workers of the service.
pub const WORKERS: usize = 2;
/// Ticks until an unrenewed claim expires.
pub const LEASE: u8 = 3;
/// Ticks that a received message stays hidden.
pub const VISIBILITY: u8 = 2;
/// Receives after which the queue gives a message up.
pub const DEAD_AFTER: u8 = 4;
/// Receives from which a message is replaced instead of hidden (`worker::replace_limit`).
pub const REPLACE_AT: u8 = DEAD_AFTER / 2;
/// Ticks without change after which a row without a message is sent again.
pub const QUIET: u8 = 4;
/// Deaths over a document alone that end it (`retry.crash_attempts`).
pub const CRASHES: u8 = 2;
/// Attempts before a transient fault is final (`retry.transient_attempts`).
pub const ATTEMPTS: u8 = 2;

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MessagePlace {
    /// Nowhere: never sent, deleted, or past its retention.
    #[default]
    Absent,
    /// The next receive may hand it out.
    Visible,
    /// Received, put off, or sent with a delay; visible after this many ticks.
    Hidden(u8),
    /// Given up by the queue.
    Dead,
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ModelledMessage {
    /// Where it is.
    pub place: MessagePlace,
    /// How often it was received.
    pub receives: u8,
}

/// The ingestion's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowStatus {
    /// `in-progress`.
    #[default]
    Open,
    /// `completed`.
    Completed,
    /// `failed`.
    Failed,
    /// `cancelled`.
    Cancelled,
}

/// The row of the ingestion, and what is counted about it since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowState {
    /// Its status.
    pub status: RowStatus,
    /// The claim's token; 0: not claimed.
    pub token: u8,
    /// Ticks that the claim lasts.
    pub lease: u8,
    /// Ticks until the next attempt is due.
    pub due: u8,
    /// `attempt_count` since the last opening.
    pub attempts: u8,
    /// `crashes`.
    pub crashes: u8,
    /// Whether it is a suspect (`accused_at`).
    pub accused: bool,
    /// Whether the newest claim was made alone (`alone_claim`).
    pub alone: bool,
    /// Claims that were taken.
    pub claims: u8,
    /// Rows of `attempt` that were written.
    pub closed: u8,
    /// Those of them that were not counted.
    pub returned: u8,
    /// Whether it names the stored artefact.
    pub names_artefact: bool,
    /// Whether the claim's holder became silent: it died, froze, or failed to renew.
    pub silent: bool,
    /// Ticks that it has been without a message, up to [`QUIET`].
    pub quiet: u8,
}

/// How an attempt is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// Completed.
    Complete,
    /// Failed for good.
    Refuse,
    /// Given back, to be tried again in a tick.
    Again {
        /// Whether it counts.
        counted: bool,
    },
    /// Given back by a worker that stops, due at once.
    Interrupt,
}

/// The disposition of a delivery's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposal {
    /// Deleted.
    Acknowledge,
    /// Visible again after this many ticks.
    Hide(u8),
}

/// The next action of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WorkerPhase {
    /// Nothing: its slot is free.
    #[default]
    Idle,
    /// It asks for the claim.
    Claim,
    /// It fetches the document and looks for what is stored of it.
    Load,
    /// A call that is paid for is under way.
    Call,
    /// It stores what the call brought.
    Put,
    /// It names what is stored in the row.
    Save,
    /// It writes how the attempt ended.
    End(Ending),
    /// It deletes or hides its messages.
    Dispose(Disposal),
}

/// One worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WorkerState {
    /// The next action.
    pub phase: WorkerPhase,
    /// The messages it has receipts of, as bits.
    pub held: u8,
    /// Those of them whose receipt is of the newest receive.
    pub fresh: u8,
    /// Those of them that came while an answer or an end was under way: they do not share its fate.
    pub apart: u8,
    /// The token of its claim or of the claim that it asks for; 0: none.
    pub token: u8,
    /// Ticks until the claim may be over by its own clock.
    pub local: u8,
    /// Whether the result of its last write is unknown.
    pub in_doubt: bool,
    /// Whether it ever was, for this write.
    pub doubted: bool,
    /// Whether the ledger has an end of its attempt, written by itself.
    pub recorded: bool,
    /// Whether it was asked to stop.
    pub stopping: bool,
    /// Whether it is frozen (`SIGSTOP`, a suspended machine).
    pub frozen: bool,
    /// Whether its claim is to be renewed before more time passes.
    pub renewal_due: bool,
    /// Whether its messages are to be extended before more time passes.
    pub extension_due: bool,
}

/// A request without a waiting sender, which may still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LateRequest {
    /// None.
    #[default]
    None,
    /// The end of an attempt under this token.
    End(Ending, u8),
    /// The renewal of a claim under this token.
    Renewal(u8),
    /// The deletion of this message.
    Deletion(u8),
}

/// All of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WorldState {
    /// The messages.
    pub messages: [ModelledMessage; MESSAGES],
    /// The row.
    pub row: RowState,
    /// The workers.
    pub workers: [WorkerState; WORKERS],
    /// Requests that may still arrive.
    pub late: LateRequest,
    /// Whether the artefact is stored.
    pub stored: bool,
    /// Whether the document kills every worker that reads it.
    pub kills: bool,
    /// Paid calls since the opening.
    pub paid: u8,
    /// Times that a paid call, or the keeping of what it brought, was cut short.
    pub cut_short: u8,
    /// An operator has reopened the row and not yet sent its message.
    pub owes_message: bool,
    /// A message went by the queue's doing, or was never sent: the janitor's business.
    pub lost_message: bool,
    /// Faults that may still happen.
    pub faults: u8,
    /// Things that operators may still do.
    pub orders: u8,
}

impl WorldState {
    /// A row and its message, with this many faults and operators' orders to come.
    pub fn submitted(kills: bool, faults: u8, orders: u8) -> Self {
        let mut world = Self { kills, faults, orders, ..Self::default() };
        world.messages[0].place = MessagePlace::Visible;
        world
    }

    /// Whether the row is in progress.
    pub fn is_open(&self) -> bool {
        self.row.status == RowStatus::Open
    }

    /// Whether this token holds the row's claim.
    pub fn is_held_by(&self, token: u8) -> bool {
        self.is_open() && token != 0 && self.row.token == token
    }

    /// Whether messages of this kind exist.
    pub fn has_message(&self, is_meant: impl Fn(MessagePlace) -> bool) -> bool {
        self.messages.iter().any(|message| is_meant(message.place))
    }

    /// A place for one more message.
    pub fn free_place(&self) -> Option<usize> {
        self.messages.iter().position(|message| message.place == MessagePlace::Absent)
    }

    /// An unused token.
    pub fn fresh_token(&self) -> u8 {
        let late = match self.late {
            LateRequest::End(_, token) | LateRequest::Renewal(token) => token,
            LateRequest::None | LateRequest::Deletion(_) => 0,
        };
        let is_known = |token: &u8| {
            *token == self.row.token
                || *token == late
                || self.workers.iter().any(|worker| worker.token == *token)
        };
        (1..u8::MAX).find(|token| !is_known(token)).unwrap_or(u8::MAX)
    }

    /// The same with one fault fewer to come, if there is one.
    pub fn with_fault(&self) -> Option<Self> {
        Some(Self { faults: self.faults.checked_sub(1)?, ..*self })
    }

    /// Deletes a message: no receipt of it is worth anything any more.
    pub fn delete_message(&mut self, at: usize) {
        self.messages[at] = ModelledMessage::default();
        for worker in &mut self.workers {
            worker.held &= !(1 << at);
            worker.fresh &= !(1 << at);
            worker.apart &= !(1 << at);
        }
        if self.late == LateRequest::Deletion(u8::try_from(at).unwrap_or_default()) {
            self.late = LateRequest::None;
        }
    }

    /// The claim's holder is interrupted: during a paid call, or before its result was stored, the
    /// call may have to be repeated.
    pub fn cut_short(&mut self, at: usize) {
        let worker = &self.workers[at];
        if self.is_held_by(worker.token)
            && matches!(worker.phase, WorkerPhase::Call | WorkerPhase::Put)
        {
            self.cut_short += 1;
        }
    }

    /// The worker falls silent.
    pub fn fall_silent(&mut self, at: usize) {
        if self.is_held_by(self.workers[at].token) {
            self.row.silent = true;
        }
    }

    /// The canonical form of equivalent states, which differ only in the order of workers, the
    /// numbers of tokens, or settled accounts.
    #[must_use]
    pub fn normalised(mut self) -> Self {
        self.rename_tokens();
        self.workers.sort_unstable();
        self.rename_tokens();
        if self
            .has_message(|place| matches!(place, MessagePlace::Visible | MessagePlace::Hidden(_)))
        {
            self.row.quiet = 0;
        }
        while self.paid > 0 && self.cut_short > 0 {
            (self.paid, self.cut_short) = (self.paid - 1, self.cut_short - 1);
        }
        let row = &mut self.row;
        while row.returned > 0 && row.closed > 0 && row.claims > 0 {
            (row.returned, row.closed, row.claims) =
                (row.returned - 1, row.closed - 1, row.claims - 1);
        }
        let is_accounted = row.claims == row.closed && row.attempts + row.returned == row.claims;
        if row.status != RowStatus::Open && is_accounted && self.paid <= 1 {
            let RowState { status, names_artefact, .. } = *row;
            *row = RowState { status, names_artefact, ..RowState::default() };
            (self.paid, self.cut_short, self.lost_message) = (0, 0, false);
        }
        self
    }

    fn rename_tokens(&mut self) {
        let (mut known, mut count) = ([0; 2 + WORKERS], 0);
        let mut rename = |token: &mut u8| {
            if *token == 0 {
                return;
            }
            let at = known.iter().position(|old| old == token).unwrap_or_else(|| {
                known[count] = *token;
                count += 1;
                count - 1
            });
            *token = u8::try_from(at + 1).unwrap_or(u8::MAX);
        };
        rename(&mut self.row.token);
        for worker in &mut self.workers {
            rename(&mut worker.token);
        }
        if let LateRequest::End(_, token) | LateRequest::Renewal(token) = &mut self.late {
            rename(token);
        }
    }
}
