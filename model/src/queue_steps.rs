//! The steps of queue, janitor and operators.
//!
//! The queue follows SQS: at-least-once, any order, receipts valid until the next receive, dead
//! after a number of receives, deleted after its retention (`testkit::sqs`, verified against the
//! service by a probe).

use crate::protocol::{EarlierRules, StepList, property};
use crate::row_rules;
use crate::state::{
    CRASHES, DEAD_AFTER, LEASE, MessagePlace, ModelledMessage, QUIET, REPLACE_AT, RowStatus,
    VISIBILITY, WorkerPhase, WorldState,
};

/// The steps of the queue itself and of maintenance.
pub fn list_queue_steps(state: &WorldState, rules: EarlierRules, list: &mut StepList<'_>) {
    for at in 0..state.messages.len() {
        match state.messages[at].place {
            MessagePlace::Absent => {}
            MessagePlace::Visible => list_deliveries(state, at, rules, list),
            MessagePlace::Hidden(_) => list_duplicates(state, at, rules, list),
            MessagePlace::Dead => list_letter_steps(state, at, list),
        }
        if state.messages[at].place != MessagePlace::Absent
            && let Some(mut after) = state.with_fault()
        {
            after.delete_message(at);
            after.lost_message = true;
            list.add_unsure("a message is past its retention", Ok(after));
        }
    }
    list_resend(state, list);
}

fn list_deliveries(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    if state.messages[at].receives >= DEAD_AFTER {
        let mut after = *state;
        // It lies in another queue then: no receipt is good there.
        after.delete_message(at);
        after.messages[at] = ModelledMessage { place: MessagePlace::Dead, receives: DEAD_AFTER };
        return list.add("a message is given up", after);
    }
    for worker in 0..state.workers.len() {
        if may_receive(state, worker) {
            list.add("a message is received", receive(state, at, worker, rules));
        }
    }
    if let Some(mut after) = state.with_fault() {
        // The answer to a poll is lost, or its sender dropped the poll.
        take_out(&mut after, at);
        list.add_unsure("a message is handed out to nobody", Ok(after));
    }
}

fn list_duplicates(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    let was_received = state.messages[at].receives > 0;
    for worker in 0..state.workers.len() {
        if let Some(after) = state.with_fault()
            && was_received
            && may_receive(&after, worker)
        {
            let after = receive(&after, at, worker, rules);
            list.add_unsure("a hidden message is delivered again", Ok(after));
        }
    }
}

/// A worker with a job has other slots free and polls all the same.
fn may_receive(state: &WorldState, worker: usize) -> bool {
    let worker = &state.workers[worker];
    !worker.frozen && !worker.stopping
}

fn take_out(state: &mut WorldState, at: usize) {
    let message = &mut state.messages[at];
    message.place = MessagePlace::Hidden(VISIBILITY);
    message.receives = message.receives.saturating_add(1).min(DEAD_AFTER);
    for worker in &mut state.workers {
        worker.fresh &= !(1 << at);
    }
}

/// `worker::batch::handle_batch`: registers the message first. A job in progress adopts the receipt
/// (`InFlightMessage::reserve`). It is kept apart if it belongs to another message that arrives
/// while an answer or an end is under way (`InFlightMessage::seal`).
fn receive(state: &WorldState, at: usize, worker: usize, rules: EarlierRules) -> WorldState {
    let mut after = *state;
    take_out(&mut after, at);
    let token = after.fresh_token();
    let worker = &mut after.workers[worker];
    let is_sealed =
        matches!(worker.phase, WorkerPhase::Claim | WorkerPhase::End(_) | WorkerPhase::Dispose(_));
    if is_sealed && worker.held & (1 << at) == 0 && !rules.adopts_always {
        worker.apart |= 1 << at;
    }
    worker.held |= 1 << at;
    worker.fresh |= 1 << at;
    if worker.phase == WorkerPhase::Idle {
        (worker.phase, worker.token) = (WorkerPhase::Claim, token);
    }
    after
}

/// Deletes a message; `replaced`: its successor was accepted.
///
/// # Errors
/// The property that this breaks.
pub fn delete(state: &WorldState, at: usize, replaced: bool) -> Result<WorldState, &'static str> {
    let mut after = *state;
    after.delete_message(at);
    let others = after.has_message(|place| place != MessagePlace::Absent);
    if state.is_open() && !replaced && !others && !state.owes_message && !state.lost_message {
        return Err(property::DELETED_AFTER_THE_END);
    }
    Ok(after)
}

/// Whether the message is to be replaced instead of hidden, and can be.
pub fn is_worn(state: &WorldState, at: usize) -> bool {
    state.messages[at].receives >= REPLACE_AT && state.free_place().is_some()
}

/// Sends a message.
pub fn send(state: &WorldState, place: MessagePlace) -> Option<WorldState> {
    let free = state.free_place()?;
    let mut after = *state;
    after.messages[free] = ModelledMessage { place, receives: 0 };
    Some(after)
}

/// `operations::janitor::chores::resend_lost`: noted first, then sent; only while the queue holds fewer
/// messages than there are rows.
fn list_resend(state: &WorldState, list: &mut StepList<'_>) {
    let in_queue =
        state.has_message(|place| matches!(place, MessagePlace::Visible | MessagePlace::Hidden(_)));
    let waits = state.is_open() && state.row.lease == 0 && state.row.due == 0;
    if !waits || in_queue || state.row.quiet < QUIET {
        return;
    }
    if let Some(mut after) = send(state, MessagePlace::Visible) {
        (after.row.quiet, after.lost_message) = (0, false);
        list.add("the janitor sends a message again", after);
    }
    if let Some(mut after) = state.with_fault() {
        (after.row.quiet, after.lost_message) = (0, true);
        list.add_unsure("the janitor notes that it sends, and dies", Ok(after));
    }
}

/// `operations::dead::decide_action`.
fn list_letter_steps(state: &WorldState, at: usize, list: &mut StepList<'_>) {
    let mut after = *state;
    match state.row.status {
        RowStatus::Failed => {}
        RowStatus::Completed | RowStatus::Cancelled => {
            after.delete_message(at);
            list.add("the letter of what is done is cleared", after);
        }
        RowStatus::Open if state.row.lease > 0 => {}
        RowStatus::Open if state.row.crashes >= CRASHES => {
            row_rules::fail_unclaimed(&mut after);
            list.add("a dead-lettered row is given up", after);
        }
        RowStatus::Open => {
            after.messages[at] = ModelledMessage { place: MessagePlace::Visible, receives: 0 };
            after.row.quiet = 0;
            list.add("a dead letter is sent again", after);
        }
    }
}

/// `operations::retry` and `ops::dead::redrive_letters`.
pub fn list_operator_steps(state: &WorldState, list: &mut StepList<'_>) {
    if state.owes_message {
        if let Some(mut after) = send(state, MessagePlace::Visible) {
            after.owes_message = false;
            list.add("the operator's message is sent", after);
        }
        if let Some(mut after) = state.with_fault() {
            (after.owes_message, after.lost_message) = (false, true);
            list.add_unsure("the operator's message is not sent", Ok(after));
        }
    }
    let Some(orders) = state.orders.checked_sub(1) else { return };
    let mut after = WorldState { orders, ..*state };
    if state.is_open() {
        row_rules::cancel_row(&mut after);
        list.add_unsure("an operator cancels", Ok(after));
        return;
    }
    row_rules::reopen_row(&mut after);
    let has_letter = state.has_message(|place| place == MessagePlace::Dead);
    // A redrive opens the row and moves its letter; the janitor would find that as well.
    after.owes_message = !has_letter && state.free_place().is_some();
    after.lost_message = !has_letter && state.free_place().is_none();
    list.add_unsure("an operator opens it again", Ok(after));
}

/// The lease of a claim that is renewed now.
pub fn renew(state: &mut WorldState, token: u8) -> bool {
    let is_held = state.is_held_by(token);
    if is_held {
        state.row.lease = LEASE;
    }
    is_held
}
