//! Applies operators' pauses, detects when Postgres is back and takes writes, records that the worker is
//! alive.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::runner::RunnerHandle;
use crate::{DATABASE, QueueJobSource};
use docmill_core::fault;

/// Pauses are obeyed within this.
const EVERY: Duration = Duration::from_secs(2);
/// Rounds between two writes of the worker's row.
const ALIVE_ROUNDS: u32 = 5;

/// Runs until asked to stop: obeys pauses, checks Postgres and writes the worker's row.
pub async fn run_liveness(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    stop: CancellationToken,
) {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut round = 0_u32;
    loop {
        let checked = async {
            rounds.tick().await;
            check_liveness(source, runner, round.is_multiple_of(ALIVE_ROUNDS)).await
        };
        let Some(checked) = stop.run_until_cancelled(checked).await else { return };
        match checked {
            Ok(()) => source.intake_gate.open(DATABASE),
            Err(error) => {
                tracing::warn!(error = %error, "the ledger does not answer: {error}");
                source.intake_gate.close(DATABASE);
            }
        }
        round = round.wrapping_add(1);
    }
}

async fn check_liveness(
    source: &QueueJobSource,
    runner: &RunnerHandle<QueueJobSource>,
    write_alive: bool,
) -> fault::Result<()> {
    let ledger = &source.ledger;
    ledger.require_writer().await?;
    let pauses = ledger.active_pauses().await?;
    source.pauses.apply_pauses(pauses, &source.intake_gate);
    if write_alive {
        source.work.refresh_gauges();
        let vitals = source.worker_status(runner);
        ledger.save_worker_status(&source.terms.worker, &vitals).await?;
    }
    Ok(())
}
