//! The batch lane as an attempt uses it: entering questions, reading and using answers.

use std::time::Duration;

use crate::db::lanes::batches::leave_to_direct;
use crate::db::{Db, SqlErrorContext, saturating_bigint};
use crate::{BatchEntry, BatchRequestState, BatchStanding, WriteResult, stored};
use docmill_core::fault::Result;
use docmill_core::model::{ClaimToken, IngestionId, Priority};

/// See [`crate::AttemptLedger::find_batch_standing`].
pub(super) async fn find_batch_standing(
    db: &Db,
    id: IngestionId,
    request: &str,
) -> Result<Option<BatchStanding>> {
    let row = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), seen AS (
    UPDATE batch_request r SET seen_at = c.now FROM clock c
    WHERE r.ingestion_id = $1 AND r.state IN ('answered', 'direct') AND r.seen_at IS NULL
)
SELECT i.priority, r.state AS "state?",
    extract(epoch FROM c.now - (
        SELECT min(o.asked_at) FROM batch_request o WHERE o.ingestion_id = $1))::float8 AS asked_ago,
    extract(epoch FROM r.deadline_at - c.now)::float8 AS time_left
FROM ingestion i CROSS JOIN clock c
LEFT JOIN batch_request r ON r.ingestion_id = i.id AND r.request = $2
WHERE i.id = $1
"#,
        id.0,
        request,
    )
    .fetch_optional(db.pool())
    .await
    .context("asking the batch lane")?;
    Ok(row.map(|row| BatchStanding {
        priority: Priority::from_code(&row.priority).unwrap_or_default(),
        asked_ago: row.asked_ago.map(from_seconds),
        state: row.state.as_deref().map(|state| match state {
            "queued" | "sent" => BatchRequestState::Waiting,
            "answered" => BatchRequestState::Answered,
            _used_or_direct => BatchRequestState::Direct,
        }),
        time_left: row.time_left.map(from_seconds).unwrap_or_default(),
        overdue: row.time_left.map(|left| from_seconds(-left)).unwrap_or_default(),
    }))
}

/// A time from seconds; negative ones are zero.
fn from_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// See [`crate::AttemptLedger::enter_batch_lane`].
pub(super) async fn enter_batch_lane(
    db: &Db,
    token: ClaimToken,
    entry: &BatchEntry,
) -> Result<WriteResult> {
    let held = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, i.document_id, i.tenant, i.claims, c.now,
        (c.now AT TIME ZONE 'UTC')::date AS day,
        COALESCE((SELECT min(o.asked_at) FROM batch_request o WHERE o.ingestion_id = $1), c.now)
            + make_interval(secs => $8) AS deadline_at
    FROM ingestion i CROSS JOIN clock c
    WHERE i.id = $1 AND i.claim_token = $2 FOR NO KEY UPDATE OF i
), asked AS (
    INSERT INTO batch_request (ingestion_id, request, claims, provider, model, place, bytes,
        asked_at, deadline_at, day, reserved_nanos)
    SELECT h.id, $3, h.claims, $4, $5, $6, $7, h.now, h.deadline_at, h.day, $9 FROM held h
    ON CONFLICT (ingestion_id, request) DO NOTHING
    RETURNING ingestion_id
), booked AS (
    INSERT INTO spending AS s (ingestion_id, claims, day, provider, model, document_id, tenant,
        cost_nanos)
    SELECT h.id, h.claims, h.day, $4, $5, h.document_id, h.tenant, $9
    FROM held h JOIN asked a ON a.ingestion_id = h.id
    ON CONFLICT (ingestion_id, claims, day, provider, model) DO UPDATE SET
        cost_nanos = s.cost_nanos + excluded.cost_nanos
)
SELECT count(*) AS "count!" FROM held
"#,
        entry.id.0,
        token.0,
        entry.request,
        &stored::strip_nul(&entry.provider),
        &stored::strip_nul(&entry.model),
        &stored::strip_nul(&entry.place),
        saturating_bigint(entry.bytes),
        entry.deadline.as_secs_f64(),
        saturating_bigint(entry.reserved_nanos),
    )
    .fetch_one(db.pool())
    .await
    .context("entering the batch lane")?;
    Ok(if held > 0 { WriteResult::Applied } else { WriteResult::ClaimLost })
}

/// See [`crate::AttemptLedger::leave_batch_lane`].
pub(super) async fn leave_batch_lane(db: &Db, id: IngestionId, request: &str) -> Result<bool> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM batch_request WHERE ingestion_id = $1 AND request = $2",
        id.0,
        request,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a question in the batch lane")?;
    Ok(leave_to_direct(db, &ids, "the deadline passed").await? > 0)
}

/// See [`crate::AttemptLedger::use_batch_answers`].
pub(super) async fn use_batch_answers(db: &Db, id: IngestionId, requests: &[String]) -> Result<()> {
    sqlx::query!(
        "UPDATE batch_request SET state = 'used'
         WHERE ingestion_id = $1 AND request = ANY ($2) AND state = 'answered'",
        id.0,
        requests,
    )
    .execute(db.pool())
    .await
    .context("writing down that an answer of a batch is kept")?;
    Ok(())
}
