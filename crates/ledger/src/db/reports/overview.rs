//! The whole of a running service in a few numbers: for the dashboard. Read-only.

use serde::Serialize;
use sqlx::FromRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::HOOK_PROVIDER;

/// How many ingestions are in one state.
#[derive(Debug, Clone, PartialEq, Serialize, FromRow)]
pub struct StateCount {
    /// `queued`, `leased`, `deferred`, `parked` or `orphaned`.
    pub state: String,
    /// Number of ingestions in this state.
    pub count: i64,
    /// Whether that is an estimate, because very many are open.
    pub estimated: bool,
    /// Seconds since the oldest of them was registered.
    pub oldest_s: f64,
}

/// An ingestion that a worker has right now.
#[derive(Debug, Clone, PartialEq, Serialize, FromRow)]
pub struct ActiveIngestion {
    /// Id of the ingestion.
    pub ingestion_id: Uuid,
    /// The stage it has reached, as of the last heartbeat.
    pub stage: Option<String>,
    /// Name of the worker that holds the claim.
    pub worker: Option<String>,
    /// Kind of document, if it is known.
    pub kind: Option<String>,
    /// Attempts that count, this one included.
    pub attempt_count: i32,
    /// Seconds since this claim.
    pub age_s: f64,
}

/// How many ingestions ended within the last minutes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, FromRow)]
pub struct Throughput {
    /// Length of the time.
    pub minutes: i32,
    /// Ingestions that ended completed.
    pub completed: i64,
    /// Of these, those that a person has to review.
    pub flagged: i64,
    /// Ingestions that ended failed.
    pub failed: i64,
    /// Ingestions that ended cancelled.
    pub cancelled: i64,
}

/// How many failed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromRow)]
pub struct FailureCount {
    /// Code of the reason.
    pub reason: String,
    /// Number of failures with this reason.
    pub count: i64,
    /// When the newest of these failures ended.
    #[serde(with = "time::serde::rfc3339")]
    pub latest: OffsetDateTime,
}

/// The workers that live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, FromRow)]
pub struct WorkerTotals {
    /// Seen within the last minute.
    pub live: i64,
    /// Jobs that they may run at the same time.
    pub slots: i64,
    /// Jobs that they are running.
    pub slots_used: i64,
}

/// How the calls of all workers to one provider and model go.
#[derive(Debug, Clone, PartialEq, Serialize, FromRow)]
pub struct LaneTotals {
    /// Name of the provider, e.g. `openai`.
    pub provider: String,
    /// The model or processor.
    pub model: String,
    /// Workers that have called it.
    pub workers: i64,
    /// Calls that are under way.
    pub in_flight: i64,
    /// Calls that wait for their turn.
    pub waiting: i64,
    /// Calls a second that are let through, of those workers that know a limit.
    pub rate: Option<f64>,
    /// Workers for which it counts as down, or which only try whether it is back.
    pub down: i64,
    /// Workers that it takes no call of until a person has acted.
    pub denied: i64,
    /// Time of the last answered call.
    #[serde(with = "time::serde::rfc3339::option")]
    pub answered_at: Option<OffsetDateTime>,
    /// Latency of that call, in milliseconds.
    pub answer_ms: Option<i64>,
    /// Time of the first failed call after the last answered one; `None`: the last call was
    /// answered.
    #[serde(with = "time::serde::rfc3339::option")]
    pub failing_since: Option<OffsetDateTime>,
}

impl LaneTotals {
    /// Whether it is a hook; the model is its name.
    pub fn is_hook(&self) -> bool {
        self.provider == HOOK_PROVIDER
    }
}

/// Reported lanes, devices and local models: those with problems and those with most to do first.
const LANES: i64 = 50;

/// How calls to providers go in the workers that were seen within the last minute.
///
/// # Errors
/// No answer from Postgres.
pub async fn sum_lanes(db: &Db) -> Result<Vec<LaneTotals>> {
    sqlx::query_as(
        "SELECT l.provider, l.model, count(*) AS workers, sum(l.in_flight)::int8 AS in_flight,
             sum(l.waiting)::int8 AS waiting, sum(l.rate) AS rate,
             count(*) FILTER (WHERE l.breaker <> 'closed') AS down,
             count(*) FILTER (WHERE l.denied) AS denied, max(l.answered_at) AS answered_at,
             (array_agg(l.answer_ms ORDER BY l.answered_at DESC NULLS LAST))[1] AS answer_ms,
             min(l.failing_at) FILTER (WHERE l.failing_at >= COALESCE(l.newest, '-infinity'))
                 AS failing_since
         FROM (
             SELECT r.*, w.seen_at - r.answered_s * interval '1 second' AS answered_at,
                 w.seen_at - r.failing_s * interval '1 second' AS failing_at,
                 max(w.seen_at - r.answered_s * interval '1 second')
                     OVER (PARTITION BY r.provider, r.model) AS newest
             FROM worker w CROSS JOIN LATERAL jsonb_to_recordset(w.lanes) AS r (provider text,
                 model text, in_flight int8, waiting int8, rate float8, breaker text,
                 denied boolean, answered_s float8, answer_ms int8, failing_s float8)
             WHERE w.seen_at > (SELECT docmill_now()) - interval '1 minute') AS l
         GROUP BY l.provider, l.model
         ORDER BY down DESC, waiting DESC, in_flight DESC, l.provider, l.model
         LIMIT $1",
    )
    .bind(LANES)
    .fetch_all(db.pool())
    .await
    .context("adding up how calls go")
}

/// A memory that local models are loaded into, as the worker saw it that read it last.
#[derive(Debug, Clone, PartialEq, Serialize, FromRow)]
pub struct LocalDeviceTotals {
    /// One of the workers on its machine.
    pub worker: String,
    /// Workers of that machine.
    pub workers: i64,
    /// Name of the device.
    pub device: String,
    /// All of its memory.
    pub total_mib: i64,
    /// Free memory when it was measured.
    pub free_mib: i64,
    /// Memory held by models, of all workers of the machine.
    pub held_mib: i64,
    /// Seconds since it was read; devices are not read while no call waits or runs.
    pub read_s: f64,
}

/// How the calls of all workers to one local model go.
#[derive(Debug, Clone, PartialEq, Serialize, FromRow)]
pub struct LocalModelTotals {
    /// Name of the model.
    pub model: String,
    /// The memory it needs; `None`: not known, it runs alone.
    pub needs_mib: Option<i64>,
    /// Workers that may call it.
    pub workers: i64,
    /// Workers with which it has its turn and answers.
    pub loaded: i64,
    /// Workers with which it has its turn and has not answered yet.
    pub loading: i64,
    /// Workers with which it has no turn and is probably still loaded.
    pub idle: i64,
    /// Calls that are under way.
    pub running: i64,
    /// Calls that wait for its turn.
    pub waiting: i64,
    /// Seconds that the oldest of these has waited.
    pub oldest_s: Option<f64>,
}

/// The memory that local models share on the machines of workers seen within the last minute.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_local_devices(db: &Db) -> Result<Vec<LocalDeviceTotals>> {
    sqlx::query_as(
        "SELECT DISTINCT ON (s.machine, d.name) s.id AS worker,
             count(*) OVER (PARTITION BY s.machine, d.name) AS workers, d.name AS device,
             d.total_mib, d.free_mib, d.held_mib, s.read_s
         FROM (
             SELECT w.id, COALESCE(w.local_models->>'machine', w.id) AS machine, w.local_models,
                 (w.local_models->>'read_s')::float8
                     + extract(epoch FROM c.now - w.seen_at)::float8 AS read_s
             FROM worker w CROSS JOIN (SELECT docmill_now() AS now OFFSET 0) AS c
             WHERE w.seen_at > c.now - interval '1 minute' AND w.local_models IS NOT NULL) AS s
         CROSS JOIN LATERAL jsonb_to_recordset(s.local_models->'devices') AS d (name text,
             total_mib int8, free_mib int8, held_mib int8)
         ORDER BY s.machine, d.name, s.read_s, s.id
         LIMIT $1",
    )
    .bind(LANES)
    .fetch_all(db.pool())
    .await
    .context("listing the memory of local models")
}

/// How calls to local models go in the workers that were seen within the last minute.
///
/// # Errors
/// No answer from Postgres.
pub async fn sum_local_models(db: &Db) -> Result<Vec<LocalModelTotals>> {
    sqlx::query_as(
        "SELECT m.model, max(m.needs_mib) AS needs_mib, count(*) AS workers,
             count(*) FILTER (WHERE m.state = 'loaded') AS loaded,
             count(*) FILTER (WHERE m.state = 'loading') AS loading,
             count(*) FILTER (WHERE m.state = 'idle') AS idle,
             sum(m.running)::int8 AS running, sum(m.waiting)::int8 AS waiting,
             max(m.oldest_s) AS oldest_s
         FROM worker w CROSS JOIN LATERAL jsonb_to_recordset(w.local_models->'models') AS m (
             model text, needs_mib int8, state text, running int8, waiting int8, oldest_s float8)
         WHERE w.seen_at > (SELECT docmill_now()) - interval '1 minute'
             AND w.local_models IS NOT NULL
         GROUP BY m.model
         ORDER BY oldest_s DESC NULLS LAST, waiting DESC, running DESC, m.model
         LIMIT $1",
    )
    .bind(LANES)
    .fetch_all(db.pool())
    .await
    .context("adding up how calls to local models go")
}

/// Open ingestions that are counted one by one; of more, a sample is.
const MAX_COUNTED: i64 = 100_000;
/// Pages of the table that a sample consists of: some 20,000 open rows.
const SAMPLED_PAGES: f64 = 2_000.0;

/// How many open ingestions are in each state. Of more than 100,000 the counts are estimates out of a
/// sample, and the ages those of its oldest.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_states(db: &Db) -> Result<Vec<StateCount>> {
    if is_many_open(db).await? {
        return sample_states(db).await;
    }
    sqlx::query_as(
        "SELECT state, count(*) AS count, false AS estimated,
             extract(epoch FROM (SELECT docmill_now()) - min(created_at))::float8 AS oldest_s
         FROM ops_in_flight GROUP BY state ORDER BY state",
    )
    .fetch_all(db.pool())
    .await
    .context("counting ingestions in flight")
}

async fn is_many_open(db: &Db) -> Result<bool> {
    let found: Option<i32> = sqlx::query_scalar(
        "SELECT 1 FROM ingestion WHERE status = 'in-progress'
         ORDER BY created_at, id OFFSET $1 LIMIT 1",
    )
    .bind(MAX_COUNTED)
    .fetch_optional(db.pool())
    .await
    .context("counting open ingestions")?;
    Ok(found.is_some())
}

/// The states of the open rows on some pages of the table, times the share of pages.
async fn sample_states(db: &Db) -> Result<Vec<StateCount>> {
    let percent: f64 = sqlx::query_scalar(
        "SELECT least(100, 100 * $1 * current_setting('block_size')::float8
             / greatest(pg_relation_size('ingestion'), 1))",
    )
    .bind(SAMPLED_PAGES)
    .fetch_one(db.pool())
    .await
    .context("asking how large the ingestions are")?;
    sqlx::query_as(
        "SELECT state, round(count(*) * 100 / $1)::bigint AS count, true AS estimated,
             extract(epoch FROM (SELECT docmill_now()) - min(created_at))::float8 AS oldest_s
         FROM ops_in_flight
         WHERE ingestion_id = ANY (ARRAY(
             SELECT id FROM ingestion TABLESAMPLE SYSTEM ($1::real) WHERE status = 'in-progress'))
         GROUP BY state ORDER BY state",
    )
    .bind(percent)
    .fetch_all(db.pool())
    .await
    .context("estimating ingestions in flight")
}

/// The ingestions that workers hold, longest claimed first, at most `limit`, of the 100,000 whose
/// messages were sent first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_active(db: &Db, limit: u32) -> Result<Vec<ActiveIngestion>> {
    sqlx::query_as(
        // Parked rows have no lease, and are left out of the index.
        "SELECT id AS ingestion_id, stage, worker, kind, attempt_count,
             extract(epoch FROM (SELECT docmill_now()) - started_at)::float8 AS age_s
         FROM (SELECT * FROM ingestion
             WHERE status = 'in-progress' AND parked_by IS NULL AND parked_until IS NULL
             ORDER BY enqueued_at, id LIMIT $2) AS first
         WHERE lease_expires_at > (SELECT docmill_now())
         ORDER BY started_at, id LIMIT $1",
    )
    .bind(i64::from(limit))
    .bind(MAX_COUNTED)
    .fetch_all(db.pool())
    .await
    .context("listing active ingestions")
}

/// The ends within the last 1, 10 and 60 minutes.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_throughput(db: &Db) -> Result<Vec<Throughput>> {
    sqlx::query_as(
        "WITH ended AS MATERIALIZED (
             SELECT status, needs_human_review,
                 extract(epoch FROM (SELECT docmill_now()) - completed_at) / 60 AS age
             FROM ingestion
             WHERE completed_at > (SELECT docmill_now()) - interval '60 minutes')
         SELECT w.minutes,
             count(e.status) FILTER (WHERE e.status = 'completed') AS completed,
             count(e.status) FILTER (WHERE e.status = 'completed' AND e.needs_human_review)
                 AS flagged,
             count(e.status) FILTER (WHERE e.status = 'failed') AS failed,
             count(e.status) FILTER (WHERE e.status = 'cancelled') AS cancelled
         FROM (VALUES (1), (10), (60)) AS w(minutes) LEFT JOIN ended e ON e.age < w.minutes
         GROUP BY w.minutes ORDER BY w.minutes",
    )
    .fetch_all(db.pool())
    .await
    .context("counting ended ingestions")
}

/// The failures of the last day by reason, most frequent first.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_failures(db: &Db) -> Result<Vec<FailureCount>> {
    sqlx::query_as(
        "SELECT reason, count(*) AS count, max(completed_at) AS latest
         FROM ops_failures WHERE completed_at > (SELECT docmill_now()) - interval '1 day'
         GROUP BY reason ORDER BY count(*) DESC, reason",
    )
    .fetch_all(db.pool())
    .await
    .context("counting failures")
}

/// The workers that were seen within the last minute.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_workers(db: &Db) -> Result<WorkerTotals> {
    sqlx::query_as(
        "SELECT count(*) AS live, COALESCE(sum(slots), 0)::int8 AS slots,
             COALESCE(sum(slots_used), 0)::int8 AS slots_used
         FROM worker WHERE seen_at > (SELECT docmill_now()) - interval '1 minute'",
    )
    .fetch_one(db.pool())
    .await
    .context("counting workers")
}

/// Seconds since the oldest ingestion was registered that has not ended; `None`: all have ended.
///
/// # Errors
/// No answer from Postgres.
pub async fn oldest_open_age(db: &Db) -> Result<Option<f64>> {
    sqlx::query_scalar(
        "SELECT extract(epoch FROM (SELECT docmill_now()) - created_at)::float8
         FROM ingestion WHERE status = 'in-progress' ORDER BY created_at, id LIMIT 1",
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for the oldest open ingestion")
}

/// The review queue in two numbers.
#[derive(Debug, Clone, Copy, PartialEq, FromRow)]
pub struct ReviewBacklog {
    /// Documents that wait, counted up to 10,001.
    pub waiting: i64,
    /// Seconds that the oldest has waited; 0: none waits.
    pub oldest_s: f64,
}

/// How many documents wait for review, and for how long.
///
/// # Errors
/// No answer from Postgres.
pub async fn measure_reviews(db: &Db) -> Result<ReviewBacklog> {
    sqlx::query_as(
        "SELECT count(*) AS waiting, COALESCE(greatest(extract(
             epoch FROM (SELECT docmill_now()) - min(w.updated_at)), 0), 0)::float8 AS oldest_s
         FROM (SELECT updated_at FROM document WHERE needs_human_review
             ORDER BY updated_at LIMIT 10001) AS w",
    )
    .fetch_one(db.pool())
    .await
    .context("measuring the review queue")
}

/// The oldest transaction id still in use, and by which connection: vacuum removes nothing newer.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct VacuumHorizon {
    /// The transaction id.
    pub xid: String,
    /// The session by its process id, the prepared transaction, or the replication slot.
    pub holder: String,
}

/// The transaction that holds vacuum back most: a session of this database, a standby, a prepared transaction, or a
/// replication slot. Readable with any role. `None`: nothing does at the moment.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_vacuum_horizon(db: &Db) -> Result<Option<VacuumHorizon>> {
    sqlx::query_as(
        "SELECT held.xid::text AS xid, held.holder FROM (
             SELECT x.xid, format('process %s', a.pid) AS holder
             FROM pg_stat_activity a
             CROSS JOIN LATERAL (VALUES (a.backend_xid), (a.backend_xmin)) AS x(xid)
             -- Others of Postgres's own processes, vacuum among them, have no user.
             WHERE a.usesysid IS NOT NULL AND a.pid <> pg_backend_pid()
               AND COALESCE(a.datname = current_database(), true)
             UNION ALL
             SELECT transaction, 'prepared transaction ' || gid FROM pg_prepared_xacts
             WHERE database = current_database()
             UNION ALL
             SELECT xmin, 'replication slot ' || slot_name FROM pg_replication_slots
         ) AS held
         WHERE held.xid IS NOT NULL ORDER BY age(held.xid) DESC LIMIT 1",
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for what holds vacuum back")
}
