//! Renews the claims of all running jobs, in batches.
//!
//! A lost claim ends its job. A failed renewal is retried soon. Meanwhile the claim handle's local
//! deadline keeps the job from starting side effects. Where no answer would report a loss, the
//! claim counts as lost at the deadline (`lost_unrenewed`).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{DueRenewal, JobSource, LeaseTerms, RenewalResult, RunnerState};
use docmill_core::metrics;
use docmill_core::model::IngestionStage;

/// Retry delay after a failed renewal, at most a quarter of a heartbeat: jobs may be waiting for
/// the answer.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Renews claims until asked to stop; the caller stops it last of all.
pub(super) async fn renew_claims<S: JobSource>(
    shared: Arc<RunnerState<S>>,
    stop: CancellationToken,
) {
    let mut terms = shared.source.lease_terms();
    let mut ticks = heartbeat_interval(terms.every);
    let mut has_failed = false;
    loop {
        let beat = async {
            if has_failed {
                tokio::time::sleep(RETRY_PAUSE.min(terms.every / 4)).await;
            } else {
                metrics::heartbeat_lag(ticks.tick().await.elapsed());
            }
            renew_due(&shared, terms).await
        };
        let Some(failed) = stop.run_until_cancelled(beat).await else { return };
        has_failed = failed;
        let now = shared.source.lease_terms();
        if now.every != terms.every {
            ticks = heartbeat_interval(now.every);
        }
        terms = now;
    }
}

/// Renews the leases of no job, in the same rhythm, until asked to stop.
pub(super) async fn renew_side_leases<S: JobSource>(
    shared: Arc<RunnerState<S>>,
    stop: CancellationToken,
) {
    let mut every = shared.source.lease_terms().every;
    let mut ticks = heartbeat_interval(every);
    loop {
        let beat = async {
            ticks.tick().await;
            shared.source.renew_side_leases().await;
        };
        if stop.run_until_cancelled(beat).await.is_none() {
            return;
        }
        let now = shared.source.lease_terms().every;
        if now != every {
            (every, ticks) = (now, heartbeat_interval(now));
        }
    }
}

/// Runs twice as often as needed and renews claims older than half an interval: none gets older
/// than one interval, and fresh claims cost nothing.
fn heartbeat_interval(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// One round of renewals: when it was asked for, and on which terms.
#[derive(Clone, Copy)]
struct HeartbeatRound {
    asked: Instant,
    terms: LeaseTerms,
}

/// Renews due claims; returns whether any renewal failed.
async fn renew_due<S: JobSource>(shared: &RunnerState<S>, terms: LeaseTerms) -> bool {
    let asked = Instant::now();
    let Some(before) = asked.checked_sub(terms.every / 2) else { return false };
    let (keys, due) = collect_due(shared, before);
    if due.is_empty() {
        return false;
    }
    let answers = shared.source.renew(&due).await;
    let has_failed = answers.contains(&RenewalResult::Failed);
    if has_failed {
        metrics::heartbeat_failure(terms.side);
    }
    let round = HeartbeatRound { asked, terms };
    for ((key, due), answer) in keys.into_iter().zip(&due).zip(answers) {
        apply_renewal(shared, key, due.new_stage, answer, round);
    }
    has_failed
}

/// Claims last renewed before `before`, with the keys to report the results by.
fn collect_due<S: JobSource>(
    shared: &RunnerState<S>,
    before: Instant,
) -> (Vec<u64>, Vec<DueRenewal<S::Job>>) {
    let running = shared.lock_running();
    let old = running.iter().filter(|(_, running)| running.renewed < before);
    let due = old.map(|(key, running)| {
        let stage = running.renewer.stage();
        let new_stage = (stage != running.told_stage).then_some(stage);
        let (job, claim) = (Arc::clone(&running.job), running.claim.clone());
        let has_progress = running.clock.has_progress();
        let is_over = running.is_ending;
        (*key, DueRenewal { job, claim, new_stage, has_progress, is_over })
    });
    due.unzip()
}

/// Passes the result on to the job's claim handle. The lease counts from when it was asked for: the
/// answer may have taken long to arrive.
fn apply_renewal<S: JobSource>(
    shared: &RunnerState<S>,
    key: u64,
    new_stage: Option<IngestionStage>,
    answer: RenewalResult,
    round: HeartbeatRound,
) {
    let HeartbeatRound { asked, terms } = round;
    let mut running = shared.lock_running();
    let Some(running) = running.get_mut(&key) else { return };
    let is_over = running.renewed.elapsed() + terms.every >= terms.lease;
    match answer {
        RenewalResult::Kept | RenewalResult::Withdrawn => {
            running.renewed = asked;
            running.told_stage = new_stage.unwrap_or(running.told_stage);
            running.renewer.note_renewed((asked + terms.lease).into_std());
            if answer == RenewalResult::Withdrawn {
                running.withdrawn.cancel();
            }
        }
        RenewalResult::Failed if !(terms.lost_unrenewed && is_over) => {}
        // Its end is already written, or the writer will see the loss.
        RenewalResult::Lost | RenewalResult::Failed if running.is_ending => {}
        RenewalResult::Lost | RenewalResult::Failed => {
            metrics::lease_lost();
            let name = shared.source.describe(&running.job);
            tracing::warn!(ingestion.id = %running.claim.id, "claim on {name} is lost");
            running.renewer.note_lost();
        }
    }
}
