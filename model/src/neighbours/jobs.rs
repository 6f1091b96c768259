//! The steps of one worker: receipts, work, ends, and both heartbeats, which time cannot overtake.

use docmill_core::config::RetryConfig;
use docmill_core::fault::Fault;
use docmill_pipeline::failure::{RetryAttempt, RetryDecision, decide_retry};
use docmill_worker::heartbeat::hiding_time;

use super::world::{
    AttemptEnd, DOCUMENTS, Holder, JobPhase, JobState, LEASE, LoneEnd, NeighbourState, Outcome,
    QueueMessageState, SLOTS, TICK, VISIBILITY, number, ticks,
};
use super::{Mend, NeighbourProtocol, NeighbourSteps, claims, property};

/// Every step of this worker.
pub(super) fn list_steps(
    state: &NeighbourState,
    worker: usize,
    rules: &NeighbourProtocol,
    list: &mut NeighbourSteps<'_>,
) {
    for at in 0..DOCUMENTS {
        let job = (at, worker);
        list_receive(state, job, rules, list);
        match state.workers[worker].jobs[at].phase {
            JobPhase::None => {}
            JobPhase::Claim => claims::list_claim(state, job, rules, true, list),
            JobPhase::Work => list_work(state, job, rules, list),
            JobPhase::End(end) => list_end(state, job, end, rules, list),
        }
    }
}

/// `worker::intake`, while the gate is open, and the claim; a job that runs adopts its message.
fn list_receive(
    state: &NeighbourState,
    (at, worker): (usize, usize),
    rules: &NeighbourProtocol,
    list: &mut NeighbourSteps<'_>,
) {
    let receiver = &state.workers[worker];
    let under_way = |job: &&JobState| matches!(job.phase, JobPhase::Claim | JobPhase::Work);
    let slots = receiver.jobs.iter().filter(under_way).count();
    let is_on_trial = rules.is_evidence(receiver.failed, Mend::OutcomeBreaker);
    let is_open = receiver.lone.is_none() && slots < SLOTS;
    if state.documents[at].message != QueueMessageState::Visible
        || !is_open
        || (is_on_trial && receiver.is_busy())
    {
        return;
    }
    let mut after = *state;
    after.documents[at].message = QueueMessageState::Hidden(VISIBILITY);
    after.documents[at].receiver = Some(number(worker));
    let job = &mut after.workers[worker].jobs[at];
    let is_news = job.phase == JobPhase::None;
    if is_news {
        *job = JobState { phase: JobPhase::Claim, known: LEASE };
    }
    if receiver.is_cut {
        // The gate closes with the first claim that is not answered.
        list.add_unsure("a message is received without Postgres", after);
    } else if is_news {
        // No end relies on a worker that fails everything.
        let fair = !receiver.is_sick && !is_on_trial;
        claims::list_claim(&after, (at, worker), rules, fair, list);
    } else {
        list.add("a message comes to its own job", after);
    }
}

fn list_work(
    state: &NeighbourState,
    (at, worker): (usize, usize),
    rules: &NeighbourProtocol,
    list: &mut NeighbourSteps<'_>,
) {
    let runner = &state.workers[worker];
    let mut after = *state;
    if runner.is_sick {
        let failed = runner.failed.with(at);
        after.workers[worker].failed = failed;
        let end = match rules.is_evidence(failed, Mend::OutcomeBreaker) {
            // `runner::job::execute_job`.
            true => AttemptEnd::Again { counted: false },
            false => end_by_fault(state, at, Fault::Internal),
        };
        after.workers[worker].jobs[at].phase = JobPhase::End(end);
        return list.add("the work fails as everything does", after);
    }
    if state.documents[at].kills {
        after.die(worker);
        return list.add("the document kills its worker", after);
    }
    if runner.jobs[at].known == 0 {
        // `ClaimHandle::ensure_live` waits for a renewal.
        return;
    }
    let end = match state.is_declining {
        true => {
            let declined = runner.declined.with(at);
            after.workers[worker].declined = declined;
            // `GovernedCall::make`.
            let is_shared = rules.is_evidence(declined, Mend::DeclinedStreak);
            end_by_fault(state, at, if is_shared { Fault::Denied } else { Fault::Internal })
        }
        false => {
            (after.workers[worker].failed.0, after.workers[worker].declined.0) = (0, 0);
            AttemptEnd::Complete
        }
    };
    after.workers[worker].jobs[at].phase = JobPhase::End(end);
    list.add("the work is over", after);
}

/// The product's own failure table decides.
fn end_by_fault(state: &NeighbourState, at: usize, fault: Fault) -> AttemptEnd {
    let number = u32::from(state.documents[at].attempts);
    let attempt = RetryAttempt { number, deferred_for: None, jitter: 1.0 };
    match decide_retry(fault, attempt, &RetryConfig::default()) {
        RetryDecision::Again { counted, .. } => AttemptEnd::Again { counted },
        RetryDecision::End(_) | RetryDecision::LeaveToOwner => AttemptEnd::Refuse,
    }
}

/// `worker::finalize`: one statement for the ends of a worker; locked documents are left out of it.
fn list_end(
    state: &NeighbourState,
    (at, worker): (usize, usize),
    end: AttemptEnd,
    rules: &NeighbourProtocol,
    list: &mut NeighbourSteps<'_>,
) {
    let writer = &state.workers[worker];
    let mut after = *state;
    let is_locked =
        |at: usize, end| state.documents[at].is_locked && !matches!(end, AttemptEnd::Again { .. });
    if writer.lone == Some(number(at)) && !writer.is_cut && !writer.is_reader {
        let mut over = *state;
        over.workers[worker].lone = None;
        if rules.has(Mend::SurvivorSettled) && state.is_held(at, worker) {
            // `settle_survivors`.
            let document = &mut over.documents[at];
            (document.accused, document.crashes, document.is_alone) = (0, 0, false);
        }
        let fair = is_locked(at, end);
        list.add_as(fair, "a turn is over before its end is written", Ok(over));
    }
    let waits_for_other = (0..DOCUMENTS).any(|other| match writer.jobs[other].phase {
        JobPhase::End(end) => is_locked(other, end) && !rules.has(Mend::LockedSkipped),
        _ => false,
    });
    if writer.is_cut || is_locked(at, end) || waits_for_other {
        return;
    }
    if writer.is_reader {
        if rules.has(Mend::WriterAsked) {
            after.workers[worker].is_reader = false;
            list.add("an end is refused by a replica", after);
        }
        return;
    }
    if !state.is_held(at, worker) {
        after.leave(at, worker);
        return list.add("an end finds another holder", after);
    }
    list.add_checked("an end is written", write_end(after, (at, worker), end));
}

fn write_end(
    mut after: NeighbourState,
    (at, worker): (usize, usize),
    end: AttemptEnd,
) -> Result<NeighbourState, &'static str> {
    let document = &mut after.documents[at];
    if document.outcome != Outcome::Open {
        return Err(property::ENDS_ONCE);
    }
    if document.is_alone {
        document.lone_end = LoneEnd::Survived;
    }
    document.holder = Holder::Nobody;
    match end {
        AttemptEnd::Complete => document.outcome = Outcome::Completed,
        AttemptEnd::Refuse if document.deaths_alone == 0 => return Err(property::NO_FOREIGN_FAULT),
        AttemptEnd::Refuse => document.outcome = Outcome::Internal,
        AttemptEnd::Again { counted } => {
            document.due = 1;
            document.attempts -= u8::from(!counted);
            return Ok(claims::put_off(after, (at, worker), 1));
        }
    }
    claims::delete_message(after, (at, worker))
}

/// Both heartbeats, each by itself: `worker::heartbeat::renew_rows` and `extend_messages`.
pub(super) fn beat(after: &mut NeighbourState, worker: usize, rules: &NeighbourProtocol) {
    renew(after, worker, rules);
    for at in 0..DOCUMENTS {
        let job = after.workers[worker].jobs[at];
        let is_hidden = matches!(after.documents[at].message, QueueMessageState::Hidden(_));
        if job.phase == JobPhase::None || !is_hidden || !after.has_receipt(at, worker) {
            continue;
        }
        let known = TICK * u32::from(job.known);
        let lease_left = rules.has(Mend::LeaseFate).then_some(known);
        if let Some(time) = hiding_time(lease_left, TICK * u32::from(VISIBILITY)) {
            after.documents[at].message = QueueMessageState::hidden_for(ticks(time));
        }
    }
}

fn renew(after: &mut NeighbourState, worker: usize, rules: &NeighbourProtocol) {
    let asker = after.workers[worker];
    if asker.is_cut {
        return;
    }
    if asker.is_reader {
        after.workers[worker].is_reader = !rules.has(Mend::WriterAsked);
        return;
    }
    for at in 0..DOCUMENTS {
        let phase = asker.jobs[at].phase;
        if !matches!(phase, JobPhase::Work | JobPhase::End(_)) {
            continue;
        }
        if after.is_held(at, worker) {
            after.documents[at].lease = LEASE;
            after.workers[worker].jobs[at].known = LEASE;
        } else if phase == JobPhase::Work {
            after.leave(at, worker);
        }
    }
}
