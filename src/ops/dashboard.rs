//! What a person wants to see of the whole service at one glance.

use serde::Serialize;

use crate::db::Db;
use crate::db::operators::{self, PauseRow};
use crate::db::overview::{self, Failures, State, Throughput, Workers, Working};
use crate::fault::Result;
use crate::model::Priority;
use crate::queue::{Depth, Queue};

/// Jobs that are listed one by one.
const JOBS: u32 = 15;

/// How much waits in one tier. Approximate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TierDepth {
    /// What is sent there.
    pub priority: Priority,
    /// Visible now.
    pub ready: u64,
    /// Received and hidden.
    pub in_flight: u64,
    /// Sent with a delay that still runs.
    pub delayed: u64,
}

/// The service as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Messages that wait; `None` if the queue does not answer.
    pub queue: Option<Depth>,
    /// The same of each tier, most urgent first; empty without tiers.
    pub tiers: Vec<TierDepth>,
    /// Why the queue does not answer.
    pub queue_problem: Option<String>,
    /// Workers that live.
    pub workers: Workers,
    /// What operators have paused.
    pub pauses: Vec<PauseRow>,
    /// Ingestions that have not ended, by state, with the age of the oldest.
    pub in_flight: Vec<State>,
    /// Seconds since the oldest open ingestion was registered.
    pub oldest_s: Option<f64>,
    /// Jobs that run, longest first, some of them.
    pub working: Vec<Working>,
    /// What ended within 1, 10 and 60 minutes.
    pub throughput: Vec<Throughput>,
    /// What failed within a day.
    pub failures: Vec<Failures>,
}

/// Looks at everything once. A queue that does not answer is told, not an error: the database is
/// what an operator needs to see then.
///
/// # Errors
/// No answer from Postgres.
pub async fn overview(db: &Db, queue: &dyn Queue) -> Result<Overview> {
    let (depth, tiers, queue_problem) = match depths(queue).await {
        Ok((depth, tiers)) => (Some(depth), tiers, None),
        Err(error) => (None, Vec::new(), Some(error.to_string())),
    };
    Ok(Overview {
        queue: depth,
        tiers,
        queue_problem,
        workers: overview::workers(db).await?,
        pauses: operators::pauses(db).await?,
        in_flight: overview::states(db).await?,
        oldest_s: overview::oldest_open(db).await?,
        working: overview::working(db, JOBS).await?,
        throughput: overview::throughput(db).await?,
        failures: overview::failures(db).await?,
    })
}

async fn depths(queue: &dyn Queue) -> Result<(Depth, Vec<TierDepth>)> {
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
