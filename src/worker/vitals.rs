//! The worker's pulse: obeys operators' pauses, notices when Postgres is back, says that it lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::fault;
use crate::metrics;
use crate::worker::Context;
use crate::worker::pauses::Door;

/// Pauses are obeyed within this.
const EVERY: Duration = Duration::from_secs(2);
/// The worker's row is written once in so many rounds.
const ALIVE_ROUNDS: u32 = 5;
/// One statement may take so long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Looks after the worker until told to stop.
pub async fn run(context: Arc<Context>, stop: CancellationToken) {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut round = 0_u32;
    let mut drain_began = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        let used = context.settings.slots.saturating_sub(context.slots.available_permits());
        metrics::slots(context.settings.slots, used);
        let draining = context.stop_intake.is_cancelled();
        let since = draining.then(|| *drain_began.get_or_insert_with(Instant::now));
        metrics::draining(since.map(|since| since.elapsed()).unwrap_or_default());
        match look(&context, round.is_multiple_of(ALIVE_ROUNDS)).await {
            Ok(()) => context.pauses.open(Door::Database),
            Err(error) => {
                tracing::warn!(error = %error, "the ledger does not answer: {error}");
                context.pauses.close(Door::Database);
            }
        }
        round = round.wrapping_add(1);
    }
}

async fn look(context: &Context, write_alive: bool) -> fault::Result<()> {
    let ledger = &context.ledger;
    let pauses = bounded(ledger.pauses()).await?;
    context.pauses.operators(pauses);
    if write_alive {
        bounded(ledger.worker_alive(&context.settings.terms.worker, &context.vitals())).await?;
    }
    Ok(())
}

async fn bounded<T>(call: impl Future<Output = fault::Result<T>>) -> fault::Result<T> {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(answer) => answer,
        Err(_) => Err(fault::Error::transient("no answer in time")),
    }
}
