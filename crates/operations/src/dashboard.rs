//! The state of the whole service on one page.

use serde::Serialize;

use docmill_core::fault::Result;
use docmill_core::model::Priority;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::{self, PauseRow};
use docmill_ledger::db::reports::overview::{
    self, ActiveIngestion, FailureCount, StateCount, Throughput, WorkerTotals,
};
use docmill_queue::{MessageQueue, QueueDepth};

pub use docmill_ledger::db::reports::hours::{EndedHour, list_ended_hours};
pub use docmill_ledger::db::reports::overview::{
    LaneTotals, LocalDeviceTotals, LocalModelTotals, sum_lanes,
};

/// Jobs that are listed one by one.
const MAX_JOBS: u32 = 15;

/// How much waits in one tier. Approximate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TierDepth {
    /// The priority that the tier is for.
    pub priority: Priority,
    /// Messages that can be received now.
    pub ready: u64,
    /// Messages that are received and hidden.
    pub in_flight: u64,
    /// Sent with a delay that still runs.
    pub delayed: u64,
}

/// The state of the service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceOverview {
    /// Messages that wait; `None` if the queue does not answer.
    pub queue: Option<QueueDepth>,
    /// The same of each tier, most urgent first; empty without tiers.
    pub tiers: Vec<TierDepth>,
    /// Why the queue does not answer.
    pub queue_problem: Option<String>,
    /// The workers that are alive.
    pub workers: WorkerTotals,
    /// How calls to providers go, those with trouble first.
    pub lanes: Vec<LaneTotals>,
    /// The memory that local models share, by machine.
    pub local_devices: Vec<LocalDeviceTotals>,
    /// How calls to local models go, the longest wait first.
    pub local_models: Vec<LocalModelTotals>,
    /// The pauses that operators have set.
    pub pauses: Vec<PauseRow>,
    /// Ingestions that have not ended, by state, with the age of the oldest.
    pub in_flight: Vec<StateCount>,
    /// Seconds since the oldest open ingestion was registered.
    pub oldest_s: Option<f64>,
    /// Jobs that run, longest first, some of them.
    pub working: Vec<ActiveIngestion>,
    /// Ingestions that ended within 1, 10 and 60 minutes.
    pub throughput: Vec<Throughput>,
    /// Failures within the last day, by reason.
    pub failures: Vec<FailureCount>,
}

/// Loads everything once. A queue that does not answer is part of the result, not an error: the
/// database is what an operator needs to see then.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_overview(db: &Db, queue: &dyn MessageQueue) -> Result<ServiceOverview> {
    let (depth, tiers, queue_problem) = match load_depths(queue).await {
        Ok((depth, tiers)) => (Some(depth), tiers, None),
        Err(error) => (None, Vec::new(), Some(error.to_string())),
    };
    Ok(ServiceOverview {
        queue: depth,
        tiers,
        queue_problem,
        workers: overview::count_workers(db).await?,
        lanes: sum_lanes(db).await?,
        local_devices: overview::list_local_devices(db).await?,
        local_models: overview::sum_local_models(db).await?,
        pauses: operators::list_pauses(db).await?,
        in_flight: overview::count_states(db).await?,
        oldest_s: overview::oldest_open_age(db).await?,
        working: overview::list_active(db, MAX_JOBS).await?,
        throughput: overview::load_throughput(db).await?,
        failures: overview::count_failures(db).await?,
    })
}

async fn load_depths(queue: &dyn MessageQueue) -> Result<(QueueDepth, Vec<TierDepth>)> {
    let depth = queue.depth().await?;
    let of_tiers = queue.tier_depths().await?;
    let tiers = queue.tiers().into_iter().zip(of_tiers).map(|(tier, depth)| TierDepth {
        priority: tier.priority,
        ready: depth.ready,
        in_flight: depth.in_flight,
        delayed: depth.delayed,
    });
    Ok((depth, tiers.collect()))
}

/// Where a local model is with the workers that may call it, in words: `loaded in 2, loading in 1
/// of 3`.
pub fn describe_turns(model: &LocalModelTotals) -> String {
    let counts = [(model.loaded, "loaded"), (model.loading, "loading"), (model.idle, "idle")];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, word)| format!("{word} in {count}")).collect();
    match told.is_empty() {
        true => format!("not loaded in any of {}", model.workers),
        false => format!("{} of {}", told.join(", "), model.workers),
    }
}
