//! Ends of ingestions by hour: written once when an hour is over, read for charts.
//!
//! An hour is counted from the rows as they are then. An ingestion that is reopened later stays in the
//! hour that it ended in before, and is in that of its new end as well.

use serde_json::Value;
use time::OffsetDateTime;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Hours that are counted afterwards: charts show no more.
pub const MAX_HOURS_BACK: i32 = 30 * 24;
/// An hour is over for so many seconds before it is counted: ends of before are committed by then.
const COUNT_GRACE_SECONDS: f64 = 120.0;

/// The ends of one hour.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedHour {
    /// Its beginning.
    pub hour: OffsetDateTime,
    /// Ingestions that ended completed.
    pub completed: i64,
    /// Those of them that a person has to review.
    pub flagged: i64,
    /// Ingestions that ended failed.
    pub failed: i64,
    /// Ingestions that ended cancelled.
    pub cancelled: i64,
    /// Median of the seconds from registration, or the last reopening, to the outcome; `None`: none completed
    /// or failed.
    pub p50_s: Option<f64>,
    /// The same of 95 %.
    pub p95_s: Option<f64>,
    /// Failures by reason code.
    pub failures: Value,
    /// Cost of the attempts that ended in it, in billionths of the currency.
    pub cost_nanos: i64,
}

/// The counted hours, at most the last [`MAX_HOURS_BACK`], oldest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_ended_hours(db: &Db, hours: i32) -> Result<Vec<EndedHour>> {
    sqlx::query_as!(
        EndedHour,
        "SELECT hour, completed, flagged, failed, cancelled, p50_s, p95_s, failures, cost_nanos
         FROM ended_hour
         WHERE hour >= date_trunc('hour', (SELECT docmill_now()), 'UTC') - make_interval(hours => $1)
         ORDER BY hour",
        hours.min(MAX_HOURS_BACK),
    )
    .fetch_all(db.pool())
    .await
    .context("reading the ends by hour")
}

/// Hours that are over and not counted yet, newest first, at most `limit`; none before the first end.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_uncounted_hours(db: &Db, limit: i64) -> Result<Vec<OffsetDateTime>> {
    sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT date_trunc('hour', docmill_now() - make_interval(secs => $1), 'UTC') AS open
)
SELECT h AS "hour!" FROM clock c CROSS JOIN generate_series(
    greatest(c.open - make_interval(hours => $2), date_trunc('hour',
        (SELECT min(completed_at) FROM ingestion WHERE completed_at IS NOT NULL), 'UTC')),
    c.open - interval '1 hour', interval '1 hour') AS h
WHERE (SELECT min(completed_at) FROM ingestion WHERE completed_at IS NOT NULL) IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM ended_hour e WHERE e.hour = h)
ORDER BY h DESC LIMIT $3
"#,
        COUNT_GRACE_SECONDS,
        MAX_HOURS_BACK,
        limit,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for hours to be counted")
}

/// Counts the ends of one hour, unless they were counted before.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_hour(db: &Db, hour: OffsetDateTime) -> Result<()> {
    sqlx::query!(
        r#"
WITH ended AS MATERIALIZED (
    SELECT i.status, i.reason, i.needs_human_review,
        greatest(extract(epoch FROM i.completed_at - COALESCE(again.since, i.created_at))::float8, 0)
            AS took
    FROM ingestion i LEFT JOIN LATERAL (
        SELECT max(a.done_at) AS since FROM operator_action a
        WHERE a.target = i.id::text AND a.action = 'reopen' AND a.done_at <= i.completed_at) AS again
        ON true
    WHERE i.completed_at >= $1 AND i.completed_at < $1::timestamptz + interval '1 hour'
), failed AS (
    SELECT reason, count(*) AS failures FROM ended
    WHERE status = 'failed' AND reason IS NOT NULL GROUP BY reason
), spent AS (
    -- One look at the payments of each attempt, by their key.
    SELECT COALESCE(sum(paid.nanos), 0)::bigint AS nanos
    FROM attempt a CROSS JOIN LATERAL (
        SELECT sum(s.cost_nanos) AS nanos FROM spending s
        WHERE s.ingestion_id = a.ingestion_id AND s.claims = a.claims) AS paid
    WHERE a.ended_at >= $1 AND a.ended_at < $1::timestamptz + interval '1 hour'
)
INSERT INTO ended_hour (hour, completed, flagged, failed, cancelled, p50_s, p95_s, failures,
    cost_nanos)
SELECT $1, count(*) FILTER (WHERE status = 'completed'),
    count(*) FILTER (WHERE status = 'completed' AND needs_human_review),
    count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'cancelled'),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FILTER (WHERE status <> 'cancelled'),
    percentile_cont(0.95) WITHIN GROUP (ORDER BY took) FILTER (WHERE status <> 'cancelled'),
    (SELECT COALESCE(jsonb_object_agg(reason, failures), '{}') FROM failed),
    (SELECT nanos FROM spent)
FROM ended
ON CONFLICT (hour) DO NOTHING
"#,
        hour,
    )
    .execute(db.pool())
    .await
    .context("counting the ends of an hour")?;
    Ok(())
}
