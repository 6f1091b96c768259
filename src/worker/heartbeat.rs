//! Renews both leases, the row's and the queue's, for everything held, from the moment of receipt.
//!
//! The row decides: a renewal that answers "no such claim" cancels the job; one that merely failed
//! is tried again at the next beat, and meanwhile the job's local deadline keeps it from starting
//! anything that costs money. A receipt that is no longer good changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::fault::{self, Fault};
use crate::ledger::{Held, Ledger};
use crate::metrics;
use crate::queue::{Queue, Receipt};
use crate::worker::registry::{Due, Registry};

/// How often and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    /// A third of the shorter of the two.
    pub every: Duration,
    /// Of the row.
    pub lease: Duration,
    /// Of the queue.
    pub visibility: Duration,
}

/// Beats until told to stop; the caller stops it last of all.
pub async fn run(
    registry: Arc<Registry>,
    ledger: Arc<dyn Ledger>,
    queue: Arc<dyn Queue>,
    beat: Beat,
    stop: CancellationToken,
) {
    // Twice as often as needed, renewing what is older than half a beat: nothing is ever older
    // than one beat, and what was just received costs nothing.
    let mut ticks = tokio::time::interval(beat.every / 2);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            planned = ticks.tick() => metrics::heartbeat_lag(planned.elapsed()),
        }
        let Some(before) = Instant::now().checked_sub(beat.every / 2) else { continue };
        let due = registry.due(before);
        if due.receipts.is_empty() && due.claims.is_empty() {
            continue;
        }
        tokio::join!(
            renew_rows(&registry, ledger.as_ref(), &due, beat),
            extend_messages(&registry, queue.as_ref(), &due, beat),
        );
    }
}

async fn renew_rows(registry: &Registry, ledger: &dyn Ledger, due: &Due, beat: Beat) {
    let claims: Vec<_> = due.claims.iter().map(|(_, id, token)| (*id, *token)).collect();
    if claims.is_empty() {
        return;
    }
    let started = Instant::now();
    match within(beat.every, ledger.renew(&claims, beat.lease)).await {
        Ok(answers) => {
            for ((key, id, _), answer) in due.claims.iter().zip(answers) {
                if answer == Held::Yes {
                    registry.renewed(*key, started + beat.lease);
                } else {
                    metrics::lease_lost();
                    tracing::warn!(ingestion.id = %id, "claim on {id} is lost");
                    registry.lost(*key);
                }
            }
        }
        Err(error) => {
            metrics::heartbeat_failure("row");
            let count = claims.len();
            tracing::warn!(error = %error, claims = count, "renewing {count} claims failed");
        }
    }
    for (id, token, stage) in &due.stages {
        // Informational: a failure is seen by the next renewal anyway.
        if let Err(error) = within(beat.every, ledger.save_stage(*id, *token, *stage)).await {
            tracing::debug!(ingestion.id = %id, error = %error, "stage of {id} not written");
            return;
        }
    }
}

async fn extend_messages(registry: &Registry, queue: &dyn Queue, due: &Due, beat: Beat) {
    if due.receipts.is_empty() {
        return;
    }
    let receipts: Vec<Receipt> = due.receipts.iter().map(|(_, r)| r.clone()).collect();
    let started = Instant::now();
    if let Some(oldest) = due.oldest {
        let hidden_for = started.saturating_duration_since(oldest);
        metrics::visibility_remaining(beat.visibility.saturating_sub(hidden_for));
    }
    let answers = queue.extend(&receipts, beat.visibility).await;
    let mut failed = 0_usize;
    for ((key, _), answer) in due.receipts.iter().zip(answers) {
        match answer {
            Ok(()) => registry.extended(*key, started),
            // Received again by somebody, or deleted: the row decides what that means.
            Err(error) if error.fault == Fault::Missing => registry.extended(*key, started),
            Err(_) => failed += 1,
        }
    }
    if failed > 0 {
        metrics::heartbeat_failure("queue");
        tracing::warn!(messages = failed, "extending {failed} messages failed");
    }
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = fault::Result<T>>,
) -> fault::Result<T> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer,
        Err(_) => Err(fault::Error::transient("no answer within one heartbeat")),
    }
}
