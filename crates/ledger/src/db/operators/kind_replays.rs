//! Drafts of kinds, each with its replay over decided documents.
//!
//! A replay that is asked for and its row of the audit are one statement. One worker runs it under a
//! lease; a replay whose worker is gone fails, since a second run would pay its models again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext, saturating_bigint, saturating_int};
use docmill_core::fault::Result;

/// Replays of one tenant and kind that are kept; the oldest ended ones beyond go.
const MAX_KEPT: i64 = 10;
/// Replays of one tenant that have not ended.
pub const MAX_OPEN: i64 = 3;

/// A draft whose replay is asked for.
#[derive(Debug, Clone)]
pub struct NewKindReplay {
    /// Id of the replay.
    pub id: Uuid,
    /// Whose draft and documents; empty: all tenants.
    pub tenant: String,
    /// The kind.
    pub kind: String,
    /// SHA-256 over the files, in hex.
    pub version: String,
    /// The files, by their paths within the kind's folder.
    pub files: BTreeMap<String, String>,
    /// At most so many documents.
    pub max_documents: u32,
    /// The gate: the share of documents that may get worse.
    pub max_worse: f64,
    /// In billionths of the currency.
    pub max_cost_nanos: u64,
}

/// A draft's replay.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct KindReplayRow {
    /// Its id.
    pub id: Uuid,
    /// Whose draft and documents; empty: all tenants.
    pub tenant: String,
    /// The kind.
    pub kind: String,
    /// SHA-256 over the files of the draft, in hex.
    pub version: String,
    /// `waiting`, `running`, `done` or `failed`.
    pub state: String,
    /// At most so many documents, the newest decisions first.
    pub max_documents: i32,
    /// The gate: at most this share of documents gets worse, with a certainty of 95 %.
    pub max_worse: f64,
    /// No further document is begun once so much is spent, in billionths of the currency.
    pub max_cost_nanos: i64,
    /// When it was asked for.
    #[serde(with = "time::serde::rfc3339")]
    pub asked_at: OffsetDateTime,
    /// By whom.
    pub asked_by: String,
    /// When a worker began it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
    /// Why it failed.
    pub problem: Option<String>,
    /// The share of the documents decided from now on that the draft reads too; `None`: none.
    pub shadow_share: Option<f64>,
    /// The result, of those that are done.
    #[serde(skip)]
    pub report: Option<Value>,
    /// The sum of its readings of later decisions; `None`: there are none.
    #[serde(skip)]
    pub shadow_report: Option<Value>,
}

/// One worker's batch for a shadow run: a range of decisions by people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShadowTurn {
    /// The draft's replay.
    pub id: Uuid,
    /// The share of the documents that are read, above 0 up to 1.
    pub share: f64,
    /// Lower bound of the decisions' numbers, exclusive.
    pub after: i64,
    /// Upper bound, inclusive.
    pub up_to: i64,
}

/// A worker's hold on a replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLease<'w> {
    /// The replay.
    pub id: Uuid,
    /// Name of the worker.
    pub worker: &'w str,
    /// For how long the worker is waited for, from each renewal on.
    pub length: Duration,
}

/// Which replays are meant; `None` does not matter.
#[derive(Debug, Clone, Default)]
pub struct KindReplayFilter {
    /// The one of this id.
    pub id: Option<Uuid>,
    /// Those of this tenant.
    pub tenant: Option<String>,
    /// Those of this kind.
    pub kind: Option<String>,
}

/// Asks for a replay; `false`: as many of the tenant as may have not ended.
///
/// # Errors
/// No answer from Postgres, or values that it refuses.
pub async fn add_replay(db: &Db, new: &NewKindReplay, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH new AS (
             INSERT INTO kind_replay (id, tenant, kind, version, files, max_documents, max_worse,
                 max_cost_nanos, asked_by)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
             WHERE (SELECT count(*) FROM kind_replay
                 WHERE state IN ('waiting', 'running') AND tenant = $2) < $11
             RETURNING id
         ), gone AS (
             DELETE FROM kind_replay WHERE id IN (
                 SELECT id FROM kind_replay
                 WHERE tenant = $2 AND kind = $3 AND ended_at IS NOT NULL
                   AND shadow_share IS NULL
                 ORDER BY asked_at DESC OFFSET $12)
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $9, 'replay_kind', 'kind:' || $3, $10, jsonb_build_object('set',
             jsonb_build_object('replay', id, 'tenant', $2::text, 'version', $4::text)) FROM new",
        new.id,
        new.tenant,
        new.kind,
        new.version,
        Json(&new.files) as _,
        saturating_int(new.max_documents),
        new.max_worse,
        saturating_bigint(new.max_cost_nanos),
        by.operator,
        by.why,
        MAX_OPEN,
        MAX_KEPT - 1,
    )
    .execute(db.pool())
    .await
    .context("asking for a kind's replay")?;
    Ok(done.rows_affected() > 0)
}

/// Up to `limit` replays, the newest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_replays(
    db: &Db,
    wanted: &KindReplayFilter,
    limit: u32,
) -> Result<Vec<KindReplayRow>> {
    sqlx::query_as!(
        KindReplayRow,
        "SELECT id, tenant, kind, version, state, max_documents, max_worse, max_cost_nanos, asked_at,
             asked_by, started_at, ended_at, problem, shadow_share, report, shadow_report
         FROM kind_replay
         WHERE ($1::uuid IS NULL OR id = $1) AND ($2::text IS NULL OR tenant = $2)
           AND ($3::text IS NULL OR kind = $3)
         ORDER BY asked_at DESC, id LIMIT $4",
        wanted.id,
        wanted.tenant,
        wanted.kind,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing replays of kinds")
}

/// The files of a draft; `None`: it is gone.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_files(db: &Db, id: Uuid) -> Result<Option<BTreeMap<String, String>>> {
    let found = sqlx::query_scalar!(
        r#"SELECT files AS "files: Json<BTreeMap<String, String>>" FROM kind_replay WHERE id = $1"#,
        id,
    )
    .fetch_optional(db.pool())
    .await
    .context("reading a draft")?;
    Ok(found.map(|files| files.0))
}

/// Takes the replay that waits longest; none while another one runs. Those whose worker is gone fail.
///
/// # Errors
/// No answer from Postgres.
pub async fn claim_replay(db: &Db, worker: &str, lease: Duration) -> Result<Option<Uuid>> {
    sqlx::query!(
        "UPDATE kind_replay SET state = 'failed', ended_at = docmill_now(), lease_until = NULL,
             problem = 'The worker that ran it is gone. Ask for it again.'
         WHERE state = 'running' AND lease_until < (SELECT docmill_now())",
    )
    .execute(db.pool())
    .await
    .context("ending replays of kinds whose worker is gone")?;
    let taken = sqlx::query_scalar!(
        "UPDATE kind_replay SET state = 'running', worker = $1, started_at = docmill_now(),
             lease_until = docmill_now() + make_interval(secs => $2)
         WHERE id = (SELECT id FROM kind_replay WHERE state = 'waiting'
                 ORDER BY asked_at LIMIT 1 FOR UPDATE SKIP LOCKED)
           AND NOT EXISTS (SELECT 1 FROM kind_replay WHERE state = 'running')
         RETURNING id",
        worker,
        lease.as_secs_f64(),
    )
    .fetch_optional(db.pool())
    .await;
    match taken {
        // Another worker has taken one at the same time: an index allows no second one.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(None),
        taken => taken.context("taking a kind's replay"),
    }
}

/// Keeps the lease of a replay, or with a result (`Err`: why it failed) ends it. `false`: it is no
/// longer this worker's.
///
/// # Errors
/// No answer from Postgres.
pub async fn save_replay(
    db: &Db,
    lease: &ReplayLease<'_>,
    result: Option<std::result::Result<Value, String>>,
) -> Result<bool> {
    let (state, report, problem) = match result {
        None => ("running", None, None),
        Some(Ok(report)) => ("done", Some(report), None),
        Some(Err(problem)) => ("failed", None, Some(problem)),
    };
    let done = sqlx::query!(
        "UPDATE kind_replay SET state = $3::text, report = $4, problem = left($5::text, 10000),
             ended_at = CASE $3::text WHEN 'running' THEN NULL ELSE docmill_now() END,
             lease_until = CASE $3::text WHEN 'running'
                 THEN docmill_now() + make_interval(secs => $6) END
         WHERE id = $1 AND worker = $2 AND state = 'running'",
        lease.id,
        lease.worker,
        state,
        report,
        problem,
        lease.length.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("keeping a kind's replay")?;
    Ok(done.rows_affected() > 0)
}

/// Starts a shadow run over this share of the documents decided from now on, in place of another
/// one of the tenant and kind; `None` ends it. `false`: the replay is gone or did not pass its
/// gate.
///
/// # Errors
/// No answer from Postgres, or a share that it refuses.
pub async fn set_shadow(db: &Db, id: Uuid, share: Option<f64>, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH changed AS (
             UPDATE kind_replay SET shadow_share = $2, shadow_at = to_timestamp(0),
                 shadow_after = (SELECT COALESCE(max(id), 0) FROM document_revision),
                 shadow_report = CASE WHEN $2::float8 IS NULL THEN shadow_report END
             WHERE id = $1 AND state = 'done'
               AND ($2::float8 IS NULL OR report -> 'taken' = 'true')
             RETURNING tenant, kind
         ), ended AS (
             UPDATE kind_replay k SET shadow_share = NULL FROM changed c
             WHERE k.tenant = c.tenant AND k.kind = c.kind AND k.id <> $1
               AND k.shadow_share IS NOT NULL
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $3, 'replay_kind', 'kind:' || kind, $4, jsonb_build_object('set',
             jsonb_build_object('replay', $1::uuid, 'tenant', tenant, 'shadow_share', $2::float8))
         FROM changed",
        id,
        share,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("changing the shadow of a kind's draft")?;
    Ok(done.rows_affected() > 0)
}

/// Takes the shadow run that was evaluated longest ago, and not within `interval`, with up to
/// `max_decisions` later decisions. They are never taken again: a failed batch is not paid twice.
///
/// # Errors
/// No answer from Postgres.
pub async fn claim_shadow(
    db: &Db,
    interval: Duration,
    max_decisions: u32,
) -> Result<Option<ShadowTurn>> {
    sqlx::query_as!(
        ShadowTurn,
        r#"WITH due AS (
             SELECT k.id, k.shadow_after, (SELECT max(n.id) FROM (SELECT r.id FROM document_revision r
                 WHERE r.id > k.shadow_after ORDER BY r.id LIMIT $2) AS n) AS newest
             FROM kind_replay k WHERE k.shadow_share IS NOT NULL
               AND k.shadow_at < (SELECT docmill_now() - make_interval(secs => $1))
             ORDER BY k.shadow_at LIMIT 1 FOR UPDATE OF k SKIP LOCKED
         )
         UPDATE kind_replay k SET shadow_at = docmill_now(),
             shadow_after = COALESCE(due.newest, due.shadow_after)
         FROM due WHERE k.id = due.id
         RETURNING k.id, k.shadow_share AS "share!", due.shadow_after AS "after!",
             k.shadow_after AS "up_to!""#,
        interval.as_secs_f64(),
        i64::from(max_decisions),
    )
    .fetch_optional(db.pool())
    .await
    .context("taking a draft in the shadow")
}

/// Keeps the sum of a shadow's readings, and ends it if `is_last`.
///
/// # Errors
/// No answer from Postgres.
pub async fn save_shadow(db: &Db, id: Uuid, report: Value, is_last: bool) -> Result<()> {
    sqlx::query!(
        "UPDATE kind_replay SET shadow_report = $2,
             shadow_share = CASE WHEN NOT $3 THEN shadow_share END
         WHERE id = $1 AND shadow_share IS NOT NULL",
        id,
        report,
        is_last,
    )
    .execute(db.pool())
    .await
    .context("keeping the readings of a draft in the shadow")?;
    Ok(())
}
