//! Renews the claims of everything that runs, in batches.
//!
//! A renewal that answers "not yours" ends the job. One that merely failed is tried again at the
//! next heartbeat; meanwhile the claim handle's local deadline keeps the job from starting anything
//! that counts, or the claim counts as lost where no answer would say so (`lost_unrenewed`).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{Backlog, DueRenewal, LeaseTerms, RenewalResult, RunnerState};
use docmill_core::metrics;

/// Renews claims until asked to stop; the caller stops it last of all.
pub(super) async fn run<B: Backlog>(shared: Arc<RunnerState<B>>, stop: CancellationToken) {
    let mut terms = shared.backlog.lease_terms();
    let mut ticks = heartbeat_interval(terms.every);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            planned = ticks.tick() => metrics::heartbeat_lag(planned.elapsed()),
        }
        tokio::join!(renew_due(&shared, terms), shared.backlog.renew_side_leases());
        let now = shared.backlog.lease_terms();
        if now.every != terms.every {
            ticks = heartbeat_interval(now.every);
        }
        terms = now;
    }
}

/// Twice as often as needed, for what is older than half an interval: nothing is ever older than
/// one interval, and what was just claimed costs nothing.
fn heartbeat_interval(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn renew_due<B: Backlog>(shared: &RunnerState<B>, terms: LeaseTerms) {
    let asked = Instant::now();
    let Some(before) = asked.checked_sub(terms.every / 2) else { return };
    let (keys, due) = collect_due(shared, before);
    if due.is_empty() {
        return;
    }
    let answers = shared.backlog.renew(&due).await;
    if answers.contains(&RenewalResult::Failed) {
        metrics::heartbeat_failure(terms.side);
    }
    for (key, answer) in keys.into_iter().zip(answers) {
        apply_renewal(shared, key, answer, asked, terms);
    }
}

/// What was last renewed before `before`, with the keys to report the results by.
fn collect_due<B: Backlog>(
    shared: &RunnerState<B>,
    before: Instant,
) -> (Vec<u64>, Vec<DueRenewal<B::Job>>) {
    let mut running = shared.lock_running();
    let old = running.iter_mut().filter(|(_, running)| running.renewed < before);
    let due = old.map(|(key, running)| {
        let stage = running.renewer.stage();
        let new_stage = (stage != running.told_stage).then_some(stage);
        running.told_stage = stage;
        let (job, claim) = (Arc::clone(&running.job), running.claim.clone());
        (*key, DueRenewal { job, claim, new_stage })
    });
    due.unzip()
}

/// Passes the result on to the job's claim handle. The lease counts from when it was asked for: the
/// answer may have taken long to arrive.
fn apply_renewal<B: Backlog>(
    shared: &RunnerState<B>,
    key: u64,
    answer: RenewalResult,
    asked: Instant,
    terms: LeaseTerms,
) {
    let mut running = shared.lock_running();
    let Some(running) = running.get_mut(&key) else { return };
    let is_over = running.renewed.elapsed() + terms.every >= terms.lease;
    match answer {
        RenewalResult::Kept | RenewalResult::Withdrawn => {
            running.renewed = asked;
            running.renewer.note_renewed((asked + terms.lease).into_std());
            if answer == RenewalResult::Withdrawn {
                running.withdrawn.cancel();
            }
        }
        RenewalResult::Failed if !(terms.lost_unrenewed && is_over) => {}
        RenewalResult::Lost | RenewalResult::Failed => {
            metrics::lease_lost();
            let name = shared.backlog.describe(&running.job);
            tracing::warn!(ingestion.id = %running.claim.id, "claim on {name} is lost");
            running.renewer.note_lost();
        }
    }
}
