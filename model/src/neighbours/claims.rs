//! Claims of the rows, and the turns of suspects, by the product's decisions.

use docmill_core::model::IngestionStatus;
use docmill_ledger::ClaimCompany;
use docmill_ledger::decide::{
    ClaimDecision, ClaimOffer, ClaimRowState, EarlierClaim, LoneEnds, decide_claim,
};
use docmill_worker::lone_turn::{LoneTurnRequest, takes_turn};
use time::OffsetDateTime;

use super::world::{
    CRASHES, DOCUMENTS, DocumentState, Holder, JobPhase, JobState, LEASE, LoneEnd, MAX_ATTEMPTS,
    NeighbourState, Outcome, QueueMessageState, TICK, number, ticks,
};
use super::{Mend, NeighbourProtocol, NeighbourSteps, property};

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

/// `worker::batch::claim_requested`, then `take_suspects`.
pub(super) fn list_claim(
    state: &NeighbourState,
    (at, worker): (usize, usize),
    rules: &NeighbourProtocol,
    fair: bool,
    list: &mut NeighbourSteps<'_>,
) {
    let asker = &state.workers[worker];
    if asker.is_cut {
        // It is asked for until Postgres answers.
        return;
    }
    let mut after = *state;
    if asker.is_reader {
        after.workers[worker].is_reader = !rules.has(Mend::WriterAsked);
        return list.add_as(
            fair,
            "a claim is refused by a replica",
            Ok(put_off(after, (at, worker), 1)),
        );
    }
    let company = match asker.lone {
        None => ClaimCompany::Others,
        Some(lone) if lone == number(at) => ClaimCompany::Nobody,
        Some(_) => {
            return list.add_as(
                fair,
                "a claim is turned away",
                Ok(put_off(after, (at, worker), 1)),
            );
        }
    };
    let others = [JobPhase::Claim, JobPhase::Work].map(|phase| asker.count_beside(at, phase));
    if company == ClaimCompany::Nobody && others != [0, 0] {
        // `LoneTurn::wait_until_empty`.
        return;
    }
    let decision = decide(state, at, company, rules);
    let answered = answer(state, (at, worker), (decision, company), rules);
    if let ClaimDecision::Suspect(accused_for) = decision {
        let request = LoneTurnRequest {
            is_lone: asker.lone.is_some(),
            is_busy: others != [0, 0],
            accused_for,
            is_idle_turn_due: true,
            is_forced_turn_due: true,
        };
        if takes_turn(request) {
            after.workers[worker].lone = Some(number(at));
            return list.add_as(fair, "a suspect has its turn", Ok(after));
        }
    }
    list.add_as(fair, "a claim is answered", answered);
}

fn decide(
    state: &NeighbourState,
    at: usize,
    company: ClaimCompany,
    rules: &NeighbourProtocol,
) -> ClaimDecision {
    let DocumentState { outcome, holder, lease, due, crashes, accused, is_alone, .. } =
        state.documents[at];
    let status = match outcome {
        Outcome::Open => IngestionStatus::InProgress,
        Outcome::Completed => IngestionStatus::Completed,
        Outcome::Crashed | Outcome::Internal => IngestionStatus::Failed,
    };
    let convicts_all = !rules.has(Mend::LoneDeaths);
    let row = ClaimRowState {
        status,
        lease_expires_at: (holder != Holder::Nobody).then(|| NOW + TICK * u32::from(lease)),
        next_attempt_at: (due > 0).then(|| NOW + TICK * u32::from(due)),
        crashes: u32::from(crashes),
        accused_at: accused.checked_sub(1).map(|ticks| NOW - TICK * u32::from(ticks)),
        is_alone: is_alone || convicts_all,
    };
    let (company, others) = match convicts_all {
        true => (ClaimCompany::Nobody, LoneEnds::default()),
        false => (company, lone_ends_beside(state, at)),
    };
    decide_claim(&row, NOW, ClaimOffer { crash_limit: u32::from(CRASHES), company, others })
}

/// Ends of the newest attempts of other documents that were worked on alone.
fn lone_ends_beside(state: &NeighbourState, at: usize) -> LoneEnds {
    let mut found = LoneEnds::default();
    for other in (0..DOCUMENTS).filter(|other| *other != at) {
        let end = state.documents[other].lone_end;
        found.ends += u32::from(end != LoneEnd::None);
        found.crashed += u32::from(end == LoneEnd::Crashed);
    }
    found
}

fn answer(
    state: &NeighbourState,
    (at, worker): (usize, usize),
    (decision, company): (ClaimDecision, ClaimCompany),
    rules: &NeighbourProtocol,
) -> Result<NeighbourState, &'static str> {
    let mut after = *state;
    match decision {
        ClaimDecision::Terminal(_) => delete_message(after, (at, worker)),
        ClaimDecision::Busy(left) | ClaimDecision::NotDue(left) => {
            Ok(put_off(after, (at, worker), ticks(left)))
        }
        ClaimDecision::Suspect(_) => Ok(put_off(after, (at, worker), 1)),
        ClaimDecision::GiveUp(earlier) => {
            let document = &mut after.documents[at];
            close_earlier(document, earlier);
            // A worker that falls silent cannot be told from one that dies.
            let silences = rules.faults - state.faults;
            if document.kills && document.deaths_alone + silences < CRASHES {
                return Err(property::CONVICTED_ALONE);
            }
            document.outcome = Outcome::Crashed;
            document.holder = Holder::Nobody;
            delete_message(after, (at, worker))
        }
        ClaimDecision::Take(earlier) => {
            let document = &mut after.documents[at];
            close_earlier(document, earlier);
            document.is_alone = company == ClaimCompany::Nobody;
            (document.holder, document.lease) = (Holder::Worker(number(worker)), LEASE);
            (document.due, document.attempts) = (0, (document.attempts + 1).min(MAX_ATTEMPTS));
            after.workers[worker].jobs[at] = JobState { phase: JobPhase::Work, known: LEASE };
            Ok(after)
        }
    }
}

fn close_earlier(document: &mut DocumentState, earlier: EarlierClaim) {
    if earlier == EarlierClaim::Ended {
        return;
    }
    document.accused = document.accused.max(1);
    if document.is_alone {
        document.lone_end = LoneEnd::Crashed;
    }
    match earlier.crashes() {
        0 => document.attempts -= 1,
        _ => document.crashes += 1,
    }
}

/// The worker deletes the message, as far as its receipt is good.
///
/// # Errors
/// The document is in progress.
pub(super) fn delete_message(
    mut state: NeighbourState,
    (at, worker): (usize, usize),
) -> Result<NeighbourState, &'static str> {
    if state.has_receipt(at, worker) {
        let document = &mut state.documents[at];
        if document.outcome == Outcome::Open {
            return Err(property::ENDS_ONCE);
        }
        (document.message, document.receiver) = (QueueMessageState::Gone, None);
    }
    state.leave(at, worker);
    Ok(state)
}

/// The message is left to others for so many ticks.
pub(super) fn put_off(
    mut state: NeighbourState,
    (at, worker): (usize, usize),
    ticks: u8,
) -> NeighbourState {
    if state.has_receipt(at, worker) {
        state.documents[at].message = QueueMessageState::hidden_for(ticks);
        state.documents[at].receiver = None;
    }
    state.leave(at, worker);
    state
}
