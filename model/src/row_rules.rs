//! The ledger's changes to the row: claims, renewals and ends, under its lock.
//!
//! The product's own `decide_claim` (`crates/ledger/src/decide.rs`) decides a claim. The writes
//! mirror `MemoryLedger::claim_ingestion` and `LedgerRow::{start_claim, release_claim, finish}`,
//! which a differential test compares with the SQL of `db::claims`.

use std::time::Duration;

use docmill_core::model::IngestionStatus;
use docmill_ledger::ClaimCompany;
use docmill_ledger::decide::{
    ClaimDecision, ClaimOffer, ClaimRowState, EarlierClaim, LoneEnds, decide_claim,
};
use time::OffsetDateTime;

use crate::protocol::{EarlierRules, property};
use crate::state::{CRASHES, Ending, LEASE, RowStatus, WorldState};

/// The duration of a tick, for the product's seconds; longer than `decide::SOON`.
pub const TICK: Duration = Duration::from_secs(60);
const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The claim is the asker's.
    Claimed,
    /// Claimed by another worker for this many ticks.
    Busy(u8),
    /// Due in this many ticks.
    NotDue(u8),
    /// Nothing is left to do.
    Ended,
}

fn decide(world: &WorldState) -> ClaimDecision {
    let row = &world.row;
    let status = match row.status {
        RowStatus::Open => IngestionStatus::InProgress,
        RowStatus::Completed => IngestionStatus::Completed,
        RowStatus::Failed => IngestionStatus::Failed,
        RowStatus::Cancelled => IngestionStatus::Cancelled,
    };
    let state = ClaimRowState {
        status,
        lease_expires_at: (row.token != 0).then(|| NOW + TICK * u32::from(row.lease)),
        next_attempt_at: (row.due > 0).then(|| NOW + TICK * u32::from(row.due)),
        crashes: u32::from(row.crashes),
        accused_at: row.accused.then_some(NOW),
        is_alone: row.alone,
    };
    // A worker of the model has nothing else in hand, and no other document ends.
    let (crash_limit, company) = (u32::from(CRASHES), ClaimCompany::Nobody);
    let others = LoneEnds::default();
    decide_claim(&state, NOW, ClaimOffer { crash_limit, company, others })
}

fn ticks(time: Duration) -> u8 {
    u8::try_from(time.as_secs().div_ceil(TICK.as_secs())).unwrap_or(u8::MAX)
}

/// Asks for the claim under a token.
///
/// # Errors
/// The property that the claim breaks.
pub fn claim_row(
    world: &mut WorldState,
    token: u8,
    rules: EarlierRules,
) -> Result<ClaimAnswer, &'static str> {
    if world.is_held_by(token) {
        // The answer to this very request was lost.
        world.row.lease = LEASE;
        return Ok(ClaimAnswer::Claimed);
    }
    match decide(world) {
        ClaimDecision::Terminal(_) => Ok(ClaimAnswer::Ended),
        ClaimDecision::Busy(left) => Ok(ClaimAnswer::Busy(ticks(left))),
        ClaimDecision::NotDue(left) => Ok(ClaimAnswer::NotDue(ticks(left))),
        // Only to a worker that has something else in hand, which the model's has not.
        ClaimDecision::Suspect(_) => Ok(ClaimAnswer::Busy(1)),
        ClaimDecision::GiveUp(earlier) => {
            close_after_crash(world, earlier, rules)?;
            end_row(world, RowStatus::Failed);
            Ok(ClaimAnswer::Ended)
        }
        ClaimDecision::Take(earlier) => {
            close_after_crash(world, earlier, rules)?;
            let row = &mut world.row;
            // A suspect has a turn of its own; what is none may be joined by other work.
            row.alone = row.accused;
            row.token = token;
            row.lease = LEASE;
            row.due = 0;
            row.claims += 1;
            row.attempts += u8::from(!rules.counts_late);
            row.silent = false;
            Ok(ClaimAnswer::Claimed)
        }
    }
}

fn close_after_crash(
    world: &mut WorldState,
    earlier: EarlierClaim,
    rules: EarlierRules,
) -> Result<(), &'static str> {
    if earlier != EarlierClaim::Ended {
        (0..world.workers.len()).for_each(|at| world.cut_short(at));
        let row = &mut world.row;
        row.token = 0;
        if rules.counts_late {
            // The claim is never reported.
            row.claims -= 1;
        } else {
            row.closed += 1;
            row.accused = true;
            if earlier == EarlierClaim::Crashed {
                row.crashes += 1;
            } else {
                row.attempts -= 1;
                row.returned += 1;
            }
        }
        if !row.silent {
            return Err(property::CRASH_IS_A_CRASH);
        }
    }
    Ok(())
}

fn end_row(world: &mut WorldState, status: RowStatus) {
    let row = &mut world.row;
    (row.status, row.token, row.lease, row.due, row.silent) = (status, 0, 0, 0, false);
    (row.accused, row.alone) = (false, false);
}

/// Writes the end of an attempt under its token; `false`: the claim is not that token's any more.
///
/// # Errors
/// The property that the write breaks.
pub fn write_end(
    world: &mut WorldState,
    ending: Ending,
    token: u8,
    rules: EarlierRules,
) -> Result<bool, &'static str> {
    if !world.is_held_by(token) {
        if !rules.has_no_token {
            return Ok(false);
        }
        // `UPDATE … WHERE id = $1`: the last writer wins.
        return Err(match world.is_open() {
            true => property::ONLY_THE_HOLDER_WRITES,
            false => property::ONE_END,
        });
    }
    let row = &mut world.row;
    row.closed += 1;
    match ending {
        Ending::Complete => end_row(world, RowStatus::Completed),
        Ending::Refuse => end_row(world, RowStatus::Failed),
        Ending::Again { counted } => give_back(world, counted, rules, 1),
        Ending::Interrupt => give_back(world, false, rules, 0),
    }
    for worker in &mut world.workers {
        worker.recorded |= worker.token == token;
    }
    Ok(true)
}

fn give_back(world: &mut WorldState, counted: bool, rules: EarlierRules, after: u8) {
    let row = &mut world.row;
    (row.token, row.lease, row.due, row.silent) = (0, 0, after, false);
    if rules.counts_late {
        row.attempts += u8::from(counted);
    } else if !counted {
        row.attempts -= 1;
        row.returned += 1;
    }
}

/// An operator withdraws the ingestion (`operators::cancel_ingestions`).
pub fn cancel_row(world: &mut WorldState) {
    world.row.closed += u8::from(world.row.token != 0);
    end_row(world, RowStatus::Cancelled);
}

/// The janitor fails a dead-lettered row after too many crashes
/// (`db::operators::janitor::fail_unclaimed`).
pub fn fail_unclaimed(world: &mut WorldState) {
    world.row.closed += u8::from(world.row.token != 0);
    end_row(world, RowStatus::Failed);
}

/// An operator opens the ingestion again (`operators::reopen_ingestions`).
pub fn reopen_row(world: &mut WorldState) {
    let names_artefact = world.row.names_artefact;
    world.row = crate::state::RowState { names_artefact, ..Default::default() };
    (world.paid, world.cut_short) = (0, 0);
}
