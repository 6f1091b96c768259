//! Documents drawn for the bound on silent errors, and the levels of certainty that follow from the
//! decisions about them. A level is one tenant's, of one kind and reader.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Draws that a judgement reads, the newest ones.
pub const MAX_DRAWS: i64 = 20_000;

/// Whose level it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
pub struct LevelScope {
    /// The tenant; empty: nobody in particular.
    pub tenant: String,
    /// The kind.
    pub kind: String,
    /// The reader: `einvoice`, `rules`, or `llm:` and the model.
    pub reader: String,
}

/// A level as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLevel {
    /// Whose it is.
    pub scope: LevelScope,
    /// The bound it was judged for: at most 1 in so many.
    pub one_in: u32,
    /// `unproven`, `shown` or `broken`.
    pub state: String,
    /// Documents below this certainty, 0..1, are flagged; 1: all are.
    pub level: f32,
    /// Draws up to this number count no more.
    pub evidence_after: i64,
    /// Since when state and level are as they are.
    pub since: OffsetDateTime,
    /// How often the bound was found broken.
    pub alarms: u32,
}

struct LevelRow {
    tenant: String,
    kind: String,
    reader: String,
    one_in: i32,
    state: String,
    level: f32,
    evidence_after: i64,
    since: OffsetDateTime,
    alarms: i32,
}

impl From<LevelRow> for StoredLevel {
    fn from(row: LevelRow) -> Self {
        Self {
            scope: LevelScope { tenant: row.tenant, kind: row.kind, reader: row.reader },
            one_in: row.one_in.unsigned_abs(),
            state: row.state,
            level: row.level,
            evidence_after: row.evidence_after,
            since: row.since,
            alarms: row.alarms.unsigned_abs(),
        }
    }
}

/// A document that was drawn, and what was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawRow {
    /// Order of the draws.
    pub number: i64,
    /// How certain its data was, 0..1.
    pub certainty: f32,
    /// How long ago it was drawn, in seconds.
    pub age_s: f64,
    /// Fields that a decision changed; `None`: there is no decision that can no longer be undone.
    pub changed: Option<Vec<String>>,
    /// Whether it was rejected.
    pub rejected: bool,
}

/// A level's new state.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelUpdate {
    /// The bound it was judged for.
    pub one_in: u32,
    /// `unproven`, `shown` or `broken`.
    pub state: &'static str,
    /// The level.
    pub level: f32,
    /// Draws up to this number count no more.
    pub evidence_after: i64,
    /// Whether an alarm was given.
    pub alarm: bool,
}

/// Adds the levels of draws that have none yet.
///
/// # Errors
/// No answer from Postgres.
pub async fn add_levels(db: &Db, kind: &str, one_in: u32) -> Result<()> {
    // From one tenant and reader to the next by the index: draws are many, these are few.
    sqlx::query!(
        r#"
WITH RECURSIVE known AS (
    (SELECT tenant, reader FROM drawn_document WHERE kind = $1 ORDER BY tenant, reader LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.reader FROM known k CROSS JOIN LATERAL (
        SELECT d.tenant, d.reader FROM drawn_document d
        WHERE d.kind = $1 AND (d.tenant, d.reader) > (k.tenant, k.reader)
        ORDER BY d.tenant, d.reader LIMIT 1) AS n
)
INSERT INTO certainty_level (tenant, kind, reader, one_in)
SELECT tenant, $1, reader, $2 FROM known ON CONFLICT DO NOTHING
"#,
        kind,
        i32::try_from(one_in).unwrap_or(i32::MAX),
    )
    .execute(db.pool())
    .await
    .context("adding levels of certainty")?;
    Ok(())
}

/// Takes up to `limit` levels that are to be judged: a decision came, or the last judgement is an hour
/// old (a draw may wait for too long by now).
///
/// # Errors
/// No answer from Postgres.
pub async fn take_due_levels(db: &Db, limit: i64) -> Result<Vec<StoredLevel>> {
    let rows = sqlx::query_as!(
        LevelRow,
        r#"
WITH due AS (
    SELECT tenant, kind, reader FROM certainty_level
    WHERE due OR judged_at < (SELECT docmill_now()) - interval '1 hour'
    ORDER BY judged_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE certainty_level l SET due = false, judged_at = docmill_now()
FROM due d WHERE l.tenant = d.tenant AND l.kind = d.kind AND l.reader = d.reader
RETURNING l.tenant, l.kind, l.reader, l.one_in, l.state, l.level, l.evidence_after, l.since, l.alarms
"#,
        limit,
    )
    .fetch_all(db.pool())
    .await
    .context("taking levels of certainty to judge")?;
    Ok(rows.into_iter().map(StoredLevel::from).collect())
}

/// Up to `limit` levels, of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_levels(db: &Db, tenant: Option<&str>, limit: i64) -> Result<Vec<StoredLevel>> {
    let rows = sqlx::query_as!(
        LevelRow,
        r#"
SELECT tenant, kind, reader, one_in, state, level, evidence_after, since, alarms
FROM certainty_level WHERE $1::text IS NULL OR tenant = $1
ORDER BY tenant, kind, reader LIMIT $2
"#,
        tenant,
        limit,
    )
    .fetch_all(db.pool())
    .await
    .context("listing levels of certainty")?;
    Ok(rows.into_iter().map(StoredLevel::from).collect())
}

/// The newest draws of a level that count, in their order, at most [`MAX_DRAWS`].
///
/// # Errors
/// No answer from Postgres.
pub async fn list_draws(db: &Db, level: &StoredLevel) -> Result<Vec<DrawRow>> {
    let mut rows = sqlx::query_as!(
        DrawRow,
        r#"
SELECT d.number, d.certainty, extract(epoch FROM c.now - d.drawn_at)::float8 AS "age_s!",
    CASE WHEN d.decided_at <= c.now THEN d.changed END AS changed,
    COALESCE(d.rejected, false) AS "rejected!"
FROM drawn_document d CROSS JOIN (SELECT docmill_now() AS now) AS c
WHERE d.tenant = $1 AND d.kind = $2 AND d.reader = $3 AND d.number > $4
ORDER BY d.number DESC LIMIT $5
"#,
        level.scope.tenant,
        level.scope.kind,
        level.scope.reader,
        level.evidence_after,
        MAX_DRAWS,
    )
    .fetch_all(db.pool())
    .await
    .context("reading drawn documents")?;
    rows.reverse();
    Ok(rows)
}

/// Writes a judgement down, unless another one was in the meantime.
///
/// # Errors
/// No answer from Postgres.
pub async fn save_level(db: &Db, before: &StoredLevel, after: &LevelUpdate) -> Result<()> {
    sqlx::query!(
        r#"
UPDATE certainty_level SET one_in = $4, state = $5, level = $6, evidence_after = $7,
    alarms = alarms + CASE WHEN $8 THEN 1 ELSE 0 END,
    since = CASE WHEN state = $5 AND level = $6 AND NOT $8 THEN since ELSE docmill_now() END
WHERE tenant = $1 AND kind = $2 AND reader = $3 AND evidence_after = $9 AND state = $10
  AND level = $11
"#,
        before.scope.tenant,
        before.scope.kind,
        before.scope.reader,
        i32::try_from(after.one_in).unwrap_or(i32::MAX),
        after.state,
        after.level,
        after.evidence_after,
        after.alarm,
        before.evidence_after,
        before.state,
        before.level,
    )
    .execute(db.pool())
    .await
    .context("writing a level of certainty down")?;
    Ok(())
}

/// How many levels are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelCount {
    /// `unproven`, `shown` or `broken`.
    pub state: String,
    /// How many.
    pub count: i64,
}

/// Counts the levels by state.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_levels(db: &Db) -> Result<Vec<LevelCount>> {
    sqlx::query_as!(
        LevelCount,
        r#"SELECT state, count(*) AS "count!" FROM certainty_level GROUP BY state"#
    )
    .fetch_all(db.pool())
    .await
    .context("counting levels of certainty")
}
