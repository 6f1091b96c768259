//! The protocol as a whole: what may happen in a state, and what must always hold.

use crate::checker::{Protocol, ProtocolStep};
use crate::state::{
    ATTEMPTS, CRASHES, LateRequest, MessagePlace, QUIET, RowStatus, WorkerPhase, WorkerState,
    WorldState,
};
use crate::{queue_steps, row_rules, worker_steps};

/// The properties, by the names of docs/explanation/reliability.md.
pub mod property {
    /// S1.
    pub const NOTHING_IS_LOST: &str = "S1: an open row has a message, unless the queue lost it or an operator is about to send it";
    /// S2.
    pub const ONE_END: &str = "S2: what has ended is not written again";
    /// S3.
    pub const ONLY_THE_HOLDER_WRITES: &str =
        "S3: only the holder of the claim writes to row and store";
    /// S4.
    pub const DELETED_AFTER_THE_END: &str =
        "S4: a message is deleted only after the end is committed or its successor accepted";
    /// S5, first part.
    pub const EVERY_CLAIM_IS_ACCOUNTED: &str =
        "S5: every claim is closed once, and counted unless given back";
    /// S5, second part.
    pub const CRASH_IS_A_CRASH: &str =
        "S5: a claim is closed as crashed only if its worker fell silent";
    /// S8.
    pub const PAID_ONCE: &str =
        "S8: paid calls are at most one, and one for each that was cut short";
    /// S9.
    pub const NOTHING_IS_LEFT_HELD: &str = "S9: a worker that is done with a job leaves no claim";
    /// S11.
    pub const LOCAL_CLOCK_IS_SAFE: &str =
        "S11: a worker believes in its claim no longer than the row does";
    /// L1.
    pub const ENDS: &str = "L1: every ingestion ends and its messages go";
    /// L2.
    pub const IS_TAKEN_OVER: &str = "L2: what a silent worker held is taken over";
}

/// The rules of the earlier design, and guards taken out: each with a counterexample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EarlierRules {
    /// A claim that finds the row taken deletes the message.
    pub deletes_on_no_rows: bool,
    /// Ends are written without a token.
    pub has_no_token: bool,
    /// Attempts are counted when they end, crashes never.
    pub counts_late: bool,
    /// The heartbeat renews the message alone, not the row's lease.
    pub renews_message_only: bool,
    /// The message is deleted first.
    pub deletes_first: bool,
    /// A claim whose answer was lost is asked for under another token.
    pub asks_under_new_token: bool,
    /// A message that comes while an end is written shares the fate of the one that it ends.
    pub adopts_always: bool,
    /// Artefacts are written unconditionally.
    pub puts_blindly: bool,
}

/// The protocol within bounds.
#[derive(Debug, Clone, Copy)]
pub struct ClaimProtocol {
    /// Faults that may happen on one path, in any combination.
    pub faults: u8,
    /// Orders of operators on one path.
    pub orders: u8,
    /// Rules that differ from the product's.
    pub rules: EarlierRules,
}

/// The steps of one state.
pub struct StepList<'a> {
    /// Where they are collected.
    pub steps: &'a mut Vec<ProtocolStep<WorldState>>,
}

impl StepList<'_> {
    /// A step of a world in which nothing fails.
    pub fn add(&mut self, label: &'static str, state: WorldState) {
        self.push(label, Ok(state), true);
    }

    /// The same, or the property that it breaks.
    pub fn add_checked(&mut self, label: &'static str, state: Result<WorldState, &'static str>) {
        self.push(label, state, true);
    }

    /// Adds a possible step without fairness: no liveness may rely on it.
    pub fn add_unsure(&mut self, label: &'static str, state: Result<WorldState, &'static str>) {
        self.push(label, state, false);
    }

    fn push(&mut self, label: &'static str, state: Result<WorldState, &'static str>, fair: bool) {
        let broken = state.err();
        let state = state.unwrap_or_default().normalised();
        self.steps.push(ProtocolStep { label, state, fair, ticks: false, broken });
    }
}

impl Protocol for ClaimProtocol {
    type State = WorldState;

    fn initial_states(&self) -> Vec<WorldState> {
        [false, true].map(|kills| WorldState::submitted(kills, self.faults, self.orders)).to_vec()
    }

    fn list_steps(&self, state: &WorldState, steps: &mut Vec<ProtocolStep<WorldState>>) {
        let mut list = StepList { steps };
        for at in 0..state.workers.len() {
            worker_steps::list_steps(state, at, self.rules, &mut list);
        }
        queue_steps::list_queue_steps(state, self.rules, &mut list);
        queue_steps::list_operator_steps(state, &mut list);
        list_arrivals(state, self.rules, &mut list);
        let may_thaw = state.workers.iter().all(|worker| worker.frozen);
        for at in 0..state.workers.len() {
            if state.workers[at].frozen {
                let mut after = *state;
                after.workers[at].frozen = false;
                // While one worker is awake the other may stay frozen forever.
                match may_thaw {
                    true => list.add("a worker goes on", after),
                    false => list.add_unsure("a worker goes on", Ok(after)),
                }
            }
        }
        if let Some(after) = pass_tick(state) {
            // Slow work is possible at any time; it is relied on only when nothing else is to do.
            let fair = !list.steps.iter().any(|step| step.fair);
            let (label, state) = ("a tick", after);
            list.steps.push(ProtocolStep { label, state, fair, ticks: true, broken: None });
        }
    }

    fn find_broken(&self, state: &WorldState) -> Option<&'static str> {
        let WorldState { row, .. } = state;
        let has_message = state.has_message(|place| place != MessagePlace::Absent);
        if state.is_open() && !has_message && !state.owes_message && !state.lost_message {
            return Some(property::NOTHING_IS_LOST);
        }
        if row.claims != row.closed + u8::from(row.token != 0) {
            return Some(property::EVERY_CLAIM_IS_ACCOUNTED);
        }
        let most = ATTEMPTS + CRASHES;
        if !self.rules.counts_late
            && (row.attempts + row.returned != row.claims || row.attempts > most)
        {
            return Some(property::EVERY_CLAIM_IS_ACCOUNTED);
        }
        if state.paid > 1 + state.cut_short {
            return Some(property::PAID_ONCE);
        }
        let believes_too_long =
            |worker: &WorkerState| state.is_held_by(worker.token) && worker.local > row.lease;
        if !self.rules.renews_message_only && state.workers.iter().any(believes_too_long) {
            return Some(property::LOCAL_CLOCK_IS_SAFE);
        }
        None
    }
}

/// Whether all is done: the goal of L1.
pub fn has_ended(state: &WorldState) -> bool {
    !state.is_open()
        && !state.has_message(|place: MessagePlace| match place {
            MessagePlace::Absent => false,
            // The letter of a document that failed stays for a person (`dead::decide_action`).
            MessagePlace::Dead => state.row.status != RowStatus::Failed,
            MessagePlace::Visible | MessagePlace::Hidden(_) => true,
        })
}

/// Whether no message or row waits for a silent worker: the goal of L2. Lost and dead messages are
/// the janitor's task, which has its own pace.
pub fn has_no_orphan(state: &WorldState) -> bool {
    let has_message =
        state.has_message(|place| matches!(place, MessagePlace::Visible | MessagePlace::Hidden(_)));
    !state.is_open()
        || state.row.token == 0
        || state
            .workers
            .iter()
            .any(|worker: &WorkerState| !worker.frozen && state.is_held_by(worker.token))
        || !has_message
}

/// A request that its sender gave up arrives after all.
fn list_arrivals(state: &WorldState, rules: EarlierRules, list: &mut StepList<'_>) {
    let mut after = WorldState { late: LateRequest::None, ..*state };
    match state.late {
        LateRequest::None => {}
        LateRequest::End(ending, token) => {
            let written = row_rules::write_end(&mut after, ending, token, rules);
            list.add_unsure("a late end arrives", written.map(|_| after));
        }
        LateRequest::Renewal(token) => {
            if after.is_held_by(token) {
                after.row.lease = crate::state::LEASE;
            }
            list.add_unsure("a late renewal arrives", Ok(after));
        }
        LateRequest::Deletion(at) => {
            let deleted = queue_steps::delete(&after, usize::from(at), false);
            list.add_unsure("a late deletion arrives", deleted);
        }
    }
}

/// Time passes, unless a heartbeat is due.
fn pass_tick(state: &WorldState) -> Option<WorldState> {
    let is_due =
        |worker: &WorkerState| !worker.frozen && (worker.renewal_due || worker.extension_due);
    if state.workers.iter().any(is_due) {
        return None;
    }
    let mut after = *state;
    for message in &mut after.messages {
        message.place = match message.place {
            MessagePlace::Hidden(0 | 1) => MessagePlace::Visible,
            MessagePlace::Hidden(left) => MessagePlace::Hidden(left - 1),
            place => place,
        };
    }
    let row = &mut after.row;
    row.lease = row.lease.saturating_sub(1);
    row.due = row.due.saturating_sub(1);
    row.quiet = if row.status == RowStatus::Open { (row.quiet + 1).min(QUIET) } else { 0 };
    for worker in &mut after.workers {
        worker.local = worker.local.saturating_sub(1);
        worker.extension_due = worker.held != 0;
        worker.renewal_due = matches!(
            worker.phase,
            WorkerPhase::Load
                | WorkerPhase::Call
                | WorkerPhase::Put
                | WorkerPhase::Save
                | WorkerPhase::End(_)
        ) || worker.in_doubt;
    }
    let after = after.normalised();
    (after != *state).then_some(after)
}

/// Hides for nothing are releases.
pub fn hide_for(ticks: u8) -> MessagePlace {
    if ticks == 0 { MessagePlace::Visible } else { MessagePlace::Hidden(ticks) }
}
