//! Ingestions that wait without a message: parked by a pause, or until they are due.
//!
//! A parked row is written once and then left alone: no claim, no attempt, no message that is
//! hidden again and again. The caller deletes the message afterwards; maintenance sends a new one
//! when the pause is lifted or the row is due. Rows locked by another statement are skipped; their
//! message, or the next pass, returns to them.

use std::time::Duration;

use uuid::Uuid;

use crate::PauseTerms;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// Parks those that a pause holds back, or that are not due for longer than `long`; returns all that
/// are parked now. Held ones are left to their holders, lapsed claims to the next claim.
pub(super) async fn park(
    db: &Db,
    ids: &[IngestionId],
    terms: &PauseTerms,
    long: Duration,
) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let kinds: Vec<String> = terms.providers.iter().map(|first| first.kind.clone()).collect();
    let names: Vec<String> = terms.providers.iter().map(|first| first.provider.clone()).collect();
    let parked = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, i.kind, i.tenant, i.next_attempt_at
    FROM ingestion i
    WHERE i.id = ANY ($1) AND i.status = 'in-progress' AND i.lease_expires_at IS NULL
    ORDER BY i.id FOR NO KEY UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT h.id, CASE WHEN h.next_attempt_at > c.now + make_interval(secs => $5)
            THEN h.next_attempt_at END AS due,
        (SELECT min(p.scope || ':' || p.name) FROM pause p
         WHERE (p.scope = 'kind' AND p.name = COALESCE(h.kind, $2))
            OR (p.scope = 'tenant' AND p.name = h.tenant)
            OR (p.scope = 'provider' AND EXISTS (
                SELECT 1 FROM unnest($3::text[], $4::text[]) AS f (kind, provider)
                WHERE f.kind = COALESCE(h.kind, '') AND f.provider = p.name))) AS pause
    FROM held h CROSS JOIN clock c
), parked AS (
    UPDATE ingestion i SET
        parked_by = j.pause, updated_at = c.now,
        parked_until = CASE WHEN j.pause IS NULL THEN j.due END,
        -- However long a pause takes, it is no part of a streak of deferrals.
        deferred_since = CASE WHEN j.pause IS NULL THEN i.deferred_since END
    FROM judged j CROSS JOIN clock c
    WHERE i.id = j.id AND (j.pause IS NOT NULL OR j.due IS NOT NULL)
      AND (i.parked_by IS DISTINCT FROM j.pause
        OR i.parked_until IS DISTINCT FROM CASE WHEN j.pause IS NULL THEN j.due END)
)
SELECT id FROM judged WHERE pause IS NOT NULL OR due IS NOT NULL
"#,
        &ids,
        terms.default_kind,
        &kinds,
        &names,
        long.as_secs_f64(),
    )
    .fetch_all(db.pool())
    .await
    .context("parking ingestions")?;
    Ok(parked.into_iter().map(IngestionId).collect())
}

/// Takes up to `limit` rows out of their parking: those that are due and those whose pause is gone.
/// Returns them; each is to be sent now.
///
/// # Errors
/// No answer from Postgres.
pub async fn unpark(db: &Db, limit: u32) -> Result<Vec<IngestionId>> {
    let lifted = find_lifted(db).await?;
    let woken = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), due AS MATERIALIZED (
    (SELECT id FROM ingestion
     WHERE status = 'in-progress' AND parked_until <= (SELECT now FROM clock)
     ORDER BY parked_until LIMIT $1)
    UNION ALL
    (SELECT id FROM ingestion
     WHERE status = 'in-progress' AND parked_by = ANY ($2) LIMIT $1)
), held AS MATERIALIZED (
    SELECT i.id FROM ingestion i
    WHERE i.id = ANY (ARRAY(SELECT id FROM due LIMIT $1)) AND i.status = 'in-progress'
      AND (i.parked_until IS NOT NULL OR i.parked_by IS NOT NULL)
    ORDER BY i.id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE ingestion i SET
    parked_by = NULL, parked_until = NULL, enqueued_at = c.now, resends = 0, updated_at = c.now
FROM held h, clock c WHERE i.id = h.id
RETURNING i.id
"#,
        i64::from(limit),
        &lifted,
    )
    .fetch_all(db.pool())
    .await
    .context("waking parked ingestions")?;
    Ok(woken.into_iter().map(IngestionId).collect())
}

/// The pauses that rows are parked by and that are no more. One step per pause in an index, however
/// many rows each holds.
async fn find_lifted(db: &Db) -> Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"
WITH RECURSIVE known AS (
    (SELECT parked_by FROM ingestion
     WHERE status = 'in-progress' AND parked_by IS NOT NULL ORDER BY parked_by LIMIT 1)
    UNION ALL
    SELECT (SELECT i.parked_by FROM ingestion i
            WHERE i.status = 'in-progress' AND i.parked_by > k.parked_by
            ORDER BY i.parked_by LIMIT 1)
    FROM known k WHERE k.parked_by IS NOT NULL
)
SELECT k.parked_by AS "parked_by!" FROM known k
WHERE k.parked_by IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope || ':' || p.name = k.parked_by)
"#,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for pauses that are gone")
}

/// Parks rows again whose message could not be sent: they are due at once.
///
/// # Errors
/// No answer from Postgres.
pub async fn park_unsent(db: &Db, ids: &[IngestionId]) -> Result<()> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query!(
        "WITH held AS MATERIALIZED (
             SELECT id FROM ingestion
             WHERE id = ANY ($1) AND status = 'in-progress' AND lease_expires_at IS NULL
             ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
         UPDATE ingestion i SET parked_until = docmill_now() FROM held h WHERE i.id = h.id",
        &ids,
    )
    .execute(db.pool())
    .await
    .context("parking ingestions whose messages could not be sent")?;
    Ok(())
}
