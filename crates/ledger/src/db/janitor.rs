//! What maintenance asks of Postgres: who leads, which rows lost their message, what became of a
//! dead letter's row, and what may be deleted.
//!
//! Nothing here sends a message, and nothing decides whether the queue is behind: that is the
//! janitor's, which knows the queue.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext, saturating_int};
use crate::ledger::decide::FRESH_ATTEMPTS;
use docmill_core::fault::Result;
use docmill_core::model::{IngestionId, IngestionStatus, OutcomeReason};

/// A waiting row whose message must be gone, if the queue is not behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResendCandidate {
    /// Id of the waiting ingestion.
    pub id: IngestionId,
    /// When a message for it was last sent.
    pub enqueued_at: OffsetDateTime,
    /// How often it was sent again.
    pub resends: u32,
}

/// What there is to know of the row behind a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRow {
    /// Id of the ingestion that the dead letter names.
    pub id: IngestionId,
    /// Current status of the ingestion.
    pub status: IngestionStatus,
    /// Why it ended other than completed.
    pub reason: Option<String>,
    /// Whether a worker holds a live lease.
    pub leased: bool,
    /// Claims since the last reopening that ended without an outcome, an expired lease included.
    pub crashes: u32,
    /// Attempts since the last reopening.
    pub attempts: u32,
    /// Time since it was registered.
    pub age: Duration,
}

/// How far the queue has come, by the send times of messages that live workers lately received
/// for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// The worker that is furthest behind received a message sent then.
    pub oldest: OffsetDateTime,
    /// The worker that is furthest ahead received a message sent then.
    pub newest: OffsetDateTime,
}

/// Most doublings of the quiet time: 2^6 of 30 min are 32 h.
const MOST_DOUBLINGS: i32 = 6;

/// Rows that wait although no message can be on its way to them any more: in progress, no live
/// lease, due, not paused, and quiet for `quiet · 2^resends` since the message was sent, since
/// the row became due, and since a claim on it ran out. Longest quiet first.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_resend_candidates(
    db: &Db,
    quiet: Duration,
    limit: u32,
) -> Result<Vec<ResendCandidate>> {
    let rows = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
SELECT i.id, i.enqueued_at, i.resends
FROM ingestion i CROSS JOIN clock c
WHERE i.status = 'in-progress'
  AND i.enqueued_at < c.now - make_interval(secs => $1)
  AND greatest(i.enqueued_at, i.next_attempt_at, i.lease_expires_at)
    < c.now - make_interval(secs => $1 * 2 ^ least(i.resends, $2))
  AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'all'
    OR (p.scope = 'kind' AND p.name = i.kind) OR (p.scope = 'tenant' AND p.name = i.tenant))
ORDER BY i.enqueued_at LIMIT $3
"#,
        quiet.as_secs_f64(),
        MOST_DOUBLINGS,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for rows without a message")?;
    Ok(rows
        .into_iter()
        .map(|row| ResendCandidate {
            id: IngestionId(row.id),
            enqueued_at: row.enqueued_at,
            resends: u32::try_from(row.resends).unwrap_or(0),
        })
        .collect())
}

/// Notes that a message was just sent again for each of these rows. Returns how many still wait.
///
/// # Errors
/// No answer from Postgres.
pub async fn mark_enqueued(db: &Db, ids: &[IngestionId]) -> Result<u64> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let done = sqlx::query!(
        "WITH held AS MATERIALIZED (
             SELECT id FROM ingestion WHERE id = ANY ($1) AND status = 'in-progress'
             ORDER BY id FOR UPDATE)
         UPDATE ingestion i SET enqueued_at = docmill_now(), resends = i.resends + 1
         FROM held h WHERE i.id = h.id",
        &ids,
    )
    .execute(db.pool())
    .await
    .context("noting what was sent again")?;
    Ok(done.rows_affected())
}

/// How many waiting rows were sent within the quiet time: each may have a message in the queue.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_recently_sent(db: &Db, quiet: Duration) -> Result<u64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM ingestion
        WHERE status = 'in-progress' AND enqueued_at >= docmill_now() - make_interval(secs => $1)"#,
        quiet.as_secs_f64(),
    )
    .fetch_one(db.pool())
    .await
    .context("counting the rows sent lately")?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// The rows behind these ids; an id without a row is left out.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_dead_letter_rows(db: &Db, ids: &[IngestionId]) -> Result<Vec<DeadLetterRow>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
SELECT i.id, i.status, i.reason, COALESCE(i.lease_expires_at > c.now, false) AS "leased!",
    i.crashes + COALESCE(i.lease_expires_at <= c.now, false)::int AS "crashes!",
    i.attempt_count - (i.attempt_limit - $2) AS "attempts!",
    extract(epoch FROM c.now - i.created_at)::float8 AS "age!"
FROM ingestion i CROSS JOIN clock c WHERE i.id = ANY ($1) ORDER BY i.id
"#,
        &ids,
        saturating_int(FRESH_ATTEMPTS),
    )
    .fetch_all(db.pool())
    .await
    .context("reading the rows of dead letters")?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            Some(DeadLetterRow {
                id: IngestionId(row.id),
                status: IngestionStatus::from_code(&row.status)?,
                reason: row.reason,
                leased: row.leased,
                crashes: u32::try_from(row.crashes).unwrap_or(0),
                attempts: u32::try_from(row.attempts).unwrap_or(0),
                age: Duration::try_from_secs_f64(row.age).unwrap_or_default(),
            })
        })
        .collect())
}

/// Fails a row that no worker holds (a dead letter that is exhausted or too old); `false` if it is
/// held, terminal or unknown. A claim that ran out is closed as `crashed` on the way.
///
/// # Errors
/// No answer from Postgres, or a reason that is not of a failure.
pub async fn fail_unclaimed(
    db: &Db,
    id: IngestionId,
    reason: OutcomeReason,
    detail: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, i.claims, i.claim_token, i.worker, i.started_at, i.stage, c.now
    FROM ingestion i CROSS JOIN clock c
    WHERE i.id = $1 AND i.status = 'in-progress'
      AND (i.lease_expires_at IS NULL OR i.lease_expires_at <= c.now)
    FOR UPDATE OF i
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage, 'crashed', true,
        'the lease ended without a word of the worker'
    FROM held WHERE claim_token IS NOT NULL
)
UPDATE ingestion i SET
    status = 'failed', reason = $2, detail = $3, completed_at = h.now, updated_at = h.now,
    crashes = i.crashes + (i.claim_token IS NOT NULL)::int,
    claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL, deferred_since = NULL,
    valid_structured_data = false, needs_human_review = true, review_reasons = ARRAY[$2]
FROM held h WHERE i.id = h.id
"#,
        id.0,
        reason.code(),
        detail,
    )
    .execute(db.pool())
    .await
    .context("giving an ingestion up")?;
    Ok(done.rows_affected() > 0)
}

/// How far the queue has come, from workers seen within `lately` that noted a first receipt within
/// `lately`; `None` if there is no such worker.
///
/// # Errors
/// No answer from Postgres.
pub async fn queue_position(db: &Db, lately: Duration) -> Result<Option<QueuePosition>> {
    let row = sqlx::query!(
        "WITH clock AS MATERIALIZED (
             SELECT docmill_now() - make_interval(secs => $1) AS since)
         SELECT min(w.receipt_sent_at) AS oldest, max(w.receipt_sent_at) AS newest
         FROM worker w CROSS JOIN clock c
         WHERE w.seen_at >= c.since AND w.receipt_noted_at >= c.since",
        lately.as_secs_f64(),
    )
    .fetch_one(db.pool())
    .await
    .context("reading how far the queue has come")?;
    Ok(row.oldest.zip(row.newest).map(|(oldest, newest)| QueuePosition { oldest, newest }))
}

/// Takes or keeps the lead in `name` for `ttl`; `false` if another holder has it.
///
/// # Errors
/// No answer from Postgres.
pub async fn try_acquire_lead(db: &Db, name: &str, holder: &str, ttl: Duration) -> Result<bool> {
    let done = sqlx::query!(
        "WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
         INSERT INTO maintenance_lease AS l (name, holder, expires_at)
         SELECT $1, $2, c.now + make_interval(secs => $3) FROM clock c
         ON CONFLICT (name) DO UPDATE SET
             holder = excluded.holder, expires_at = excluded.expires_at
         WHERE l.holder = excluded.holder OR l.expires_at <= docmill_now()",
        name,
        holder,
        ttl.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("electing the maintenance leader")?;
    Ok(done.rows_affected() > 0)
}

/// Gives the lead up, so that another need not wait; nothing if the holder does not have it.
///
/// # Errors
/// No answer from Postgres.
pub async fn release_lead(db: &Db, name: &str, holder: &str) -> Result<()> {
    sqlx::query!("DELETE FROM maintenance_lease WHERE name = $1 AND holder = $2", name, holder)
        .execute(db.pool())
        .await
        .context("giving the lead up")?;
    Ok(())
}
