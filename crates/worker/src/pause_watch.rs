//! Obeys operators' pauses, notices when Postgres is back, says that the worker lives.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::runner::RunnerHandle;
use crate::{DATABASE, QueueBacklog};
use docmill_core::fault;

/// Pauses are obeyed within this.
const EVERY: Duration = Duration::from_secs(2);
/// The worker's row is written once in so many rounds.
const ALIVE_ROUNDS: u32 = 5;

/// Runs until asked to stop: obeys pauses, checks Postgres and writes the worker's row.
pub async fn run_liveness(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    stop: CancellationToken,
) {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut round = 0_u32;
    loop {
        let checked = async {
            rounds.tick().await;
            check_liveness(backlog, runner, round.is_multiple_of(ALIVE_ROUNDS)).await
        };
        let Some(checked) = stop.run_until_cancelled(checked).await else { return };
        match checked {
            Ok(()) => backlog.intake_gate.open(DATABASE),
            Err(error) => {
                tracing::warn!(error = %error, "the ledger does not answer: {error}");
                backlog.intake_gate.close(DATABASE);
            }
        }
        round = round.wrapping_add(1);
    }
}

async fn check_liveness(
    backlog: &QueueBacklog,
    runner: &RunnerHandle<QueueBacklog>,
    write_alive: bool,
) -> fault::Result<()> {
    let ledger = &backlog.ledger;
    let pauses = ledger.active_pauses().await?;
    backlog.pauses.apply_pauses(pauses, &backlog.intake_gate);
    if write_alive {
        backlog.work.refresh_gauges();
        let vitals = backlog.worker_status(runner);
        ledger.save_worker_status(&backlog.terms.worker, &vitals).await?;
    }
    Ok(())
}
