//! The steps of one worker, and the possible faults of each.

use std::time::Duration;

use docmill_core::config::RetryConfig;
use docmill_core::fault::Fault;
use docmill_pipeline::failure::{RetryAttempt, RetryDecision, decide_retry};

use crate::protocol::{EarlierRules, StepList, hide_for, property};
use crate::queue_steps;
use crate::row_rules::{ClaimAnswer, claim_row, write_end};
use crate::state::{
    ATTEMPTS, CRASHES, Disposal, Ending, LEASE, LateRequest, MessagePlace, VISIBILITY, WorkerPhase,
    WorkerState, WorldState,
};

/// Every step of this worker.
pub fn list_steps(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    let worker = &state.workers[at];
    if worker.frozen {
        return;
    }
    list_heartbeats(state, at, rules, list);
    list_trouble(state, at, list);
    match worker.phase {
        WorkerPhase::Idle => {
            if worker.stopping {
                // Another process takes its place.
                let mut after = *state;
                after.workers[at] = WorkerState::default();
                list.add("a stopped worker is replaced", after);
            }
        }
        WorkerPhase::Claim => list_claims(state, at, rules, list),
        WorkerPhase::Load => list_load(state, at, list),
        WorkerPhase::Call => list_call(state, at, list),
        WorkerPhase::Put => list_put(state, at, rules, list),
        WorkerPhase::Save => list_save(state, at, rules, list),
        WorkerPhase::End(ending) => list_end(state, at, ending, rules, list),
        WorkerPhase::Dispose(disposal) => list_disposal(state, at, disposal, rules, list),
    }
    let works = matches!(
        worker.phase,
        WorkerPhase::Load | WorkerPhase::Call | WorkerPhase::Put | WorkerPhase::Save
    );
    if worker.stopping && works {
        // `runner::job::run_to_outcome`: cancelled at its next await once the drain is over.
        let mut after = *state;
        after.cut_short(at);
        list.add("a job is interrupted", ending(after, at, Ending::Interrupt, rules));
    }
}

/// A worker dies, freezes, or is stopped.
fn list_trouble(state: &WorldState, at: usize, list: &mut StepList<'_>) {
    let Some(mut after) = state.with_fault() else { return };
    if state.workers[at].phase != WorkerPhase::Idle {
        let mut dead = after;
        die(&mut dead, at);
        list.add_unsure("a worker dies", Ok(dead));
        let mut frozen = after;
        frozen.fall_silent(at);
        frozen.workers[at].frozen = true;
        list.add_unsure("a worker stands still", Ok(frozen));
    }
    if !state.workers[at].stopping {
        after.workers[at].stopping = true;
        list.add_unsure("a worker is asked to stop", Ok(after));
    }
}

fn die(state: &mut WorldState, at: usize) {
    state.cut_short(at);
    state.fall_silent(at);
    state.workers[at] = WorkerState::default();
}

/// Both leases, each by itself (`runner::heartbeat`, `worker::heartbeat`).
fn list_heartbeats(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    let worker = &state.workers[at];
    if worker.renewal_due && worker.phase != WorkerPhase::Claim {
        let mut asked = *state;
        asked.workers[at].renewal_due = false;
        list.add("a claim is renewed", renew(&asked, at, rules));
        if let Some(mut failed) = asked.with_fault() {
            failed.fall_silent(at);
            list.add_unsure("a renewal fails", Ok(failed));
            let mut arrived = failed;
            queue_steps::renew(&mut arrived, worker.token);
            list.add_unsure("the answer to a renewal is lost", Ok(arrived));
            failed.late = LateRequest::Renewal(worker.token);
            list.add_unsure("a renewal is late", Ok(failed));
        }
    }
    if worker.extension_due {
        let mut asked = *state;
        asked.workers[at].extension_due = false;
        let mut extended = asked;
        for (bit, message) in extended.messages.iter_mut().enumerate() {
            // A receipt that is no longer good changes nothing.
            if worker.fresh & (1 << bit) != 0 && matches!(message.place, MessagePlace::Hidden(_)) {
                message.place = MessagePlace::Hidden(VISIBILITY);
            }
        }
        list.add("messages are extended", extended);
        if let Some(failed) = asked.with_fault() {
            list.add_unsure("an extension fails", Ok(failed));
        }
    }
}

fn renew(state: &WorldState, at: usize, rules: EarlierRules) -> WorldState {
    let mut after = *state;
    if rules.renews_message_only {
        after.workers[at].local = LEASE;
        return after;
    }
    let token = after.workers[at].token;
    if queue_steps::renew(&mut after, token) {
        // Counted from when it was asked for; no time passes within a step.
        after.workers[at].local = LEASE;
    } else if !matches!(after.workers[at].phase, WorkerPhase::End(_)) {
        // `apply_renewal`: lost; the job ends, and the new holder disposes of the message.
        leave(&mut after, at);
    }
    after
}

/// The job is over for this worker, whatever its messages do.
fn leave(state: &mut WorldState, at: usize) {
    let stopping = state.workers[at].stopping;
    state.workers[at] = WorkerState { stopping, ..WorkerState::default() };
}

/// `worker::batch::claim_until_answered`.
fn list_claims(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    let worker = &state.workers[at];
    if worker.stopping {
        let mut after = *state;
        after.workers[at].phase = match worker.in_doubt {
            // A claim in doubt is released (`give_up_claims`).
            true => WorkerPhase::End(Ending::Interrupt),
            false => WorkerPhase::Dispose(Disposal::Hide(0)),
        };
        list.add("a stopping worker does not claim", after);
        if !worker.in_doubt {
            return;
        }
    }
    let mut asked = *state;
    let claimed = claim_row(&mut asked, worker.token, rules);
    let answered = claimed.map(|answer| take_answer(asked, at, answer, rules));
    list.add_checked("a claim is asked for", answered);
    let Some(mut failed) = state.with_fault() else { return };
    if claimed.is_ok() {
        let mut lost = WorldState { faults: failed.faults, ..asked };
        let token = match rules.asks_under_new_token {
            true => lost.fresh_token(),
            false => worker.token,
        };
        (lost.workers[at].in_doubt, lost.workers[at].token) = (true, token);
        // Asked again before a heartbeat is over (`CLAIM_WAITS`).
        lost.workers[at].renewal_due = true;
        list.add_unsure("the answer to a claim is lost", Ok(lost));
    }
    if worker.renewal_due {
        let mut unanswered = failed;
        unanswered.fall_silent(at);
        unanswered.workers[at].renewal_due = false;
        list.add_unsure("a claim is not answered for a while", Ok(unanswered));
    }
    if !worker.in_doubt {
        failed.workers[at].phase = WorkerPhase::Dispose(Disposal::Hide(1));
        list.add_unsure("a claim is refused", Ok(failed));
    }
}

fn take_answer(
    mut state: WorldState,
    at: usize,
    answer: ClaimAnswer,
    rules: EarlierRules,
) -> WorldState {
    let worker = &mut state.workers[at];
    (worker.in_doubt, worker.renewal_due) = (false, false);
    worker.phase = match answer {
        ClaimAnswer::Claimed => {
            (worker.local, worker.apart) = (LEASE, 0);
            WorkerPhase::Load
        }
        ClaimAnswer::Ended => WorkerPhase::Dispose(Disposal::Acknowledge),
        ClaimAnswer::Busy(_) | ClaimAnswer::NotDue(_) if rules.deletes_on_no_rows => {
            WorkerPhase::Dispose(Disposal::Acknowledge)
        }
        ClaimAnswer::Busy(left) | ClaimAnswer::NotDue(left) => {
            WorkerPhase::Dispose(Disposal::Hide(left))
        }
    };
    if worker.phase != WorkerPhase::Load {
        worker.token = 0;
    }
    state
}

/// `pipeline::artefact::ArtefactSlot::load`: what an earlier attempt has stored is used.
fn list_load(state: &WorldState, at: usize, list: &mut StepList<'_>) {
    let mut after = *state;
    if state.stored {
        after.workers[at].phase = WorkerPhase::Save;
        return list.add("what is stored is used", after);
    }
    if state.kills {
        die(&mut after, at);
        return list.add("the document kills its worker", after);
    }
    // `ClaimHandle::ensure_live` waits for a renewal.
    if state.workers[at].local > 0 {
        after.workers[at].phase = WorkerPhase::Call;
        after.paid += 1;
        list.add("a call is paid for", after);
    }
}

fn list_call(state: &WorldState, at: usize, list: &mut StepList<'_>) {
    let mut after = *state;
    after.workers[at].phase = WorkerPhase::Put;
    list.add("the call is answered", after);
    let Some(mut failed) = state.with_fault() else { return };
    failed.cut_short(at);
    for fault in [Fault::Transient, Fault::Throttled(None), Fault::Rejected] {
        list.add_unsure("the call fails", Ok(fail(failed, at, fault)));
    }
}

/// `pipeline::artefact::replace_version`: while the claim is live, and only if nothing is there.
fn list_put(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    let is_holder = state.is_held_by(state.workers[at].token);
    let mut after = *state;
    if rules.puts_blindly {
        (after.stored, after.workers[at].phase) = (true, WorkerPhase::Save);
        let replaces = state.row.names_artefact && !is_holder;
        let put = if replaces { Err(property::ONLY_THE_HOLDER_WRITES) } else { Ok(after) };
        return list.add_checked("an artefact is put", put);
    }
    if state.workers[at].local == 0 {
        return;
    }
    if state.stored {
        after.cut_short(at);
        return list.add("an artefact is there already", fail(after, at, Fault::Transient));
    }
    // Also for a claim just withdrawn by an operator: until the next renewal the worker does not
    // notice, and nothing is replaced.
    (after.stored, after.workers[at].phase) = (true, WorkerPhase::Save);
    list.add("an artefact is put", after);
    if let Some(mut failed) = state.with_fault() {
        failed.cut_short(at);
        let mut arrived = failed;
        arrived.stored = true;
        list.add_unsure("a put fails", Ok(fail(failed, at, Fault::Transient)));
        list.add_unsure("the answer to a put is lost", Ok(fail(arrived, at, Fault::Transient)));
    }
}

/// `AttemptLedger::save_transcription`.
fn list_save(state: &WorldState, at: usize, rules: EarlierRules, list: &mut StepList<'_>) {
    let is_held = state.is_held_by(state.workers[at].token);
    let mut saved = *state;
    if is_held && !state.row.names_artefact {
        // Progress clears.
        (saved.row.accused, saved.row.crashes) = (false, 0);
    }
    saved.row.names_artefact |= is_held || rules.has_no_token;
    let mut after = saved;
    if is_held || rules.has_no_token {
        after = ending(after, at, Ending::Complete, rules);
    } else {
        leave(&mut after, at);
    }
    list.add("the row names the artefact", after);
    if let Some(failed) = state.with_fault() {
        let arrived = WorldState { faults: failed.faults, ..saved };
        list.add_unsure("a save fails", Ok(fail(failed, at, Fault::Transient)));
        list.add_unsure("the answer to a save is lost", Ok(fail(arrived, at, Fault::Transient)));
    }
}

/// The product's own failure table decides.
fn fail(mut state: WorldState, at: usize, fault: Fault) -> WorldState {
    let number = u32::from(state.row.attempts);
    let config = RetryConfig {
        transient_attempts: u32::from(ATTEMPTS),
        crash_attempts: u32::from(CRASHES),
        ..RetryConfig::default()
    };
    let attempt = RetryAttempt { number, deferred_for: None, jitter: 1.0 };
    let ending = match decide_retry(fault, attempt, &config) {
        RetryDecision::End(_) => Ending::Refuse,
        RetryDecision::Again { after: Duration::ZERO, .. } => Ending::Interrupt,
        RetryDecision::Again { counted, .. } => Ending::Again { counted },
        RetryDecision::LeaveToOwner => {
            leave(&mut state, at);
            return state;
        }
    };
    state.workers[at].phase = WorkerPhase::End(ending);
    state
}

fn ending(mut state: WorldState, at: usize, ending: Ending, rules: EarlierRules) -> WorldState {
    state.workers[at].phase = match rules.deletes_first && ending == Ending::Complete {
        true => WorkerPhase::Dispose(Disposal::Acknowledge),
        false => WorkerPhase::End(ending),
    };
    state
}

/// `worker::finalize::write_until_answered`: after a doubt the row is read back by the token first.
fn list_end(
    state: &WorldState,
    at: usize,
    ending: Ending,
    rules: EarlierRules,
    list: &mut StepList<'_>,
) {
    let worker = &state.workers[at];
    if worker.in_doubt {
        let mut after = *state;
        if worker.recorded {
            dispose(&mut after, at, ending);
        } else if state.is_held_by(worker.token) {
            after.workers[at].in_doubt = false;
        } else {
            leave(&mut after, at);
        }
        return list.add("an end is read back", after);
    }
    let mut written = *state;
    let token = worker.token;
    let answer = write_end(&mut written, ending, token, rules);
    let answered = answer.map(|held| {
        let mut after = written;
        match held {
            true => dispose(&mut after, at, ending),
            false if worker.doubted => after.workers[at].in_doubt = true,
            false => leave(&mut after, at),
        }
        after
    });
    list.add_checked("an end is written", answered);
    let Some(mut failed) = state.with_fault() else { return };
    let mut arrived = WorldState { faults: failed.faults, ..written };
    (failed.workers[at].in_doubt, failed.workers[at].doubted) = (true, true);
    (arrived.workers[at].in_doubt, arrived.workers[at].doubted) = (true, true);
    list.add_unsure("the write of an end fails", Ok(failed));
    list.add_unsure("the answer to an end is lost", answer.map(|_| arrived));
    failed.late = LateRequest::End(ending, token);
    list.add_unsure("the write of an end is late", Ok(failed));
}

fn dispose(state: &mut WorldState, at: usize, ending: Ending) {
    let worker = &mut state.workers[at];
    let disposal = match ending {
        Ending::Complete | Ending::Refuse => Disposal::Acknowledge,
        Ending::Again { .. } => Disposal::Hide(1),
        Ending::Interrupt => Disposal::Hide(0),
    };
    worker.phase = WorkerPhase::Dispose(disposal);
    (worker.token, worker.local, worker.renewal_due) = (0, 0, false);
    (worker.in_doubt, worker.doubted, worker.recorded) = (false, false, false);
}

/// `QueueJobSource::dispose_receipts` and `hide`: every receipt, those adopted meanwhile included.
fn list_disposal(
    state: &WorldState,
    at: usize,
    disposal: Disposal,
    rules: EarlierRules,
    list: &mut StepList<'_>,
) {
    let worker = state.workers[at];
    let mut done = Ok(*state);
    for bit in 0..state.messages.len() {
        let disposal = match worker.apart & (1 << bit) != 0 {
            true => Disposal::Hide(0),
            false => disposal,
        };
        if worker.fresh & (1 << bit) != 0 {
            done = done.and_then(|state| dispose_one(&state, bit, disposal));
        }
    }
    let finished = done.and_then(|mut state| {
        finish(&mut state, at, rules)?;
        Ok(state)
    });
    list.add_checked("messages are disposed of", finished);
    // A receipt that is not the newest may still do to delete the message.
    let stale = worker.held & !worker.fresh & !worker.apart;
    if disposal == Disposal::Acknowledge && stale != 0 {
        let bit = usize::from(stale & 1 == 0);
        let deleted = queue_steps::delete(state, bit, false);
        list.add_unsure("an old receipt deletes its message", deleted);
    }
    if let Some(mut left) = state.with_fault() {
        let meant = worker.fresh & !worker.apart;
        let first = usize::from(meant & 1 == 0);
        if meant != 0 && disposal == Disposal::Acknowledge {
            let mut late = left;
            let first = u8::try_from(first).unwrap_or_default();
            late.late = LateRequest::Deletion(first);
            let finished = finish(&mut late, at, rules).map(|()| late);
            list.add_unsure("a deletion is late", finished);
        }
        let finished = finish(&mut left, at, rules).map(|()| left);
        list.add_unsure("messages are left as they are", finished);
    }
}

fn dispose_one(
    state: &WorldState,
    bit: usize,
    disposal: Disposal,
) -> Result<WorldState, &'static str> {
    match disposal {
        Disposal::Acknowledge => queue_steps::delete(state, bit, false),
        Disposal::Hide(after) if queue_steps::is_worn(state, bit) => {
            let sent = queue_steps::send(state, hide_for(after)).unwrap_or(*state);
            queue_steps::delete(&sent, bit, true)
        }
        Disposal::Hide(after) => {
            let mut hidden = *state;
            if matches!(hidden.messages[bit].place, MessagePlace::Hidden(_)) || after > 0 {
                hidden.messages[bit].place = hide_for(after);
            }
            Ok(hidden)
        }
    }
}

/// The slot is free and the heartbeat of the messages over.
fn finish(state: &mut WorldState, at: usize, rules: EarlierRules) -> Result<(), &'static str> {
    let token = state.workers[at].token;
    if state.is_held_by(token) && !rules.deletes_first {
        return Err(property::NOTHING_IS_LEFT_HELD);
    }
    leave(state, at);
    Ok(())
}
