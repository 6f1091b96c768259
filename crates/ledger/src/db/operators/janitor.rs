//! Maintenance in SQL: the leader, rows that lost their message, the row behind a dead letter, and
//! deletions.
//!
//! Nothing here sends a message or decides whether the queue is behind: the janitor does, which has
//! the queue.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext, saturating_int};
use crate::decide::FRESH_ATTEMPTS;
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
    /// Time since that sending.
    pub silent_for: Duration,
}

impl ResendCandidate {
    fn position(&self) -> SendPosition {
        SendPosition { enqueued_at: self.enqueued_at, id: self.id }
    }
}

/// A place in the order in which messages were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendPosition {
    /// When the message was sent.
    pub enqueued_at: OffsetDateTime,
    /// For which ingestion.
    pub id: IngestionId,
}

/// The result of one search for lost messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResendPage {
    /// Rows whose message must be gone, if the queue is not behind them.
    pub candidates: Vec<ResendCandidate>,
    /// Where the next pass continues; `None`: from the beginning.
    pub next: Option<SendPosition>,
}

/// The row behind a dead letter.
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
    /// Claims that ended without a word of a worker that had nothing else in hand, as written so far.
    pub crashes: u32,
    /// Attempts since the last reopening.
    pub attempts: u32,
    /// Time since it was registered.
    pub age: Duration,
}

impl ResendPage {
    /// More were lost than the caller takes: the rest comes first next time.
    fn limited_to(mut self, limit: u32) -> Self {
        if self.candidates.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            self.next = self.candidates.last().map(ResendCandidate::position);
        }
        self
    }
}

/// Most doublings of the quiet time: 2^6 of 30 min are 32 h.
const MAX_DOUBLINGS: i32 = 6;

/// Rows that one call of [`find_resend_candidates`] looks at: many may wait for good reasons.
const MAX_SCANNED_ROWS: i64 = 20_000;

/// Rows that wait although no message can be on its way to them any more: in progress, not parked, no
/// live lease, due, not paused, and quiet for `quiet · 2^resends` since the message was sent, since
/// the row became due, and since a claim on it ran out. Longest quiet first, from `after` on; a call
/// that did not come to the end says where the next one goes on.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_resend_candidates(
    db: &Db,
    quiet: Duration,
    after: Option<SendPosition>,
    limit: u32,
) -> Result<ResendPage> {
    let rows = sqlx::query!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), looked AS MATERIALIZED (
    SELECT i.id, i.enqueued_at, i.next_attempt_at, i.lease_expires_at, i.resends, i.kind, i.tenant
    FROM ingestion i
    WHERE i.status = 'in-progress' AND i.parked_by IS NULL AND i.parked_until IS NULL
      AND i.enqueued_at < (SELECT now FROM clock) - make_interval(secs => $1)
      AND (i.enqueued_at, i.id) > ($4::timestamptz, $5::uuid)
    ORDER BY i.enqueued_at, i.id LIMIT $6
), lost AS (
    SELECT l.id, l.enqueued_at, l.resends
    FROM looked l CROSS JOIN clock c
    WHERE greatest(l.enqueued_at, l.next_attempt_at, l.lease_expires_at)
        < c.now - make_interval(secs => $1 * 2 ^ least(l.resends, $2))
      AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'all'
        OR (p.scope = 'kind' AND p.name = l.kind) OR (p.scope = 'tenant' AND p.name = l.tenant))
    ORDER BY l.enqueued_at, l.id LIMIT $3
), last AS (
    SELECT l.id, l.enqueued_at FROM looked l
    WHERE (SELECT count(*) FROM looked) = $6
    ORDER BY l.enqueued_at DESC, l.id DESC LIMIT 1
)
SELECT l.id AS "id!", l.enqueued_at AS "enqueued_at!", l.resends AS "resends!",
    extract(epoch FROM c.now - l.enqueued_at)::float8 AS "silent!", true AS "is_lost!"
FROM lost l CROSS JOIN clock c
UNION ALL
SELECT l.id, l.enqueued_at, 0, 0, false FROM last l
ORDER BY 5 DESC, 2, 1
"#,
        quiet.as_secs_f64(),
        MAX_DOUBLINGS,
        i64::from(limit),
        after.map_or(OffsetDateTime::UNIX_EPOCH, |after| after.enqueued_at),
        after.map_or(Uuid::nil(), |after| after.id.0),
        MAX_SCANNED_ROWS,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for rows without a message")?;
    let mut page = ResendPage::default();
    for row in rows {
        let (id, enqueued_at) = (IngestionId(row.id), row.enqueued_at);
        if !row.is_lost {
            page.next = Some(SendPosition { enqueued_at, id });
            continue;
        }
        page.candidates.push(ResendCandidate {
            id,
            enqueued_at,
            resends: u32::try_from(row.resends).unwrap_or(0),
            silent_for: Duration::try_from_secs_f64(row.silent).unwrap_or_default(),
        });
    }
    Ok(page.limited_to(limit))
}

/// Records a resent message for each of these rows; locked rows are skipped. Returns the recorded
/// ones.
///
/// # Errors
/// No answer from Postgres.
pub async fn mark_enqueued(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let noted = sqlx::query_scalar!(
        "WITH held AS MATERIALIZED (
             SELECT id FROM ingestion WHERE id = ANY ($1) AND status = 'in-progress'
             ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
         UPDATE ingestion i SET
             enqueued_at = docmill_now(), resends = i.resends + 1,
             parked_by = NULL, parked_until = NULL
         FROM held h WHERE i.id = h.id
         RETURNING i.id",
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("recording the resent messages")?;
    Ok(noted.into_iter().map(IngestionId).collect())
}

/// Takes back what [`mark_enqueued`] noted of rows whose message could not be sent: they are
/// candidates again at once, and wait no longer next time. Returns how many those are.
///
/// # Errors
/// No answer from Postgres.
pub async fn unmark_enqueued(db: &Db, unsent: &[ResendCandidate]) -> Result<u64> {
    let ids: Vec<Uuid> = unsent.iter().map(|row| row.id.0).collect();
    let times: Vec<OffsetDateTime> = unsent.iter().map(|row| row.enqueued_at).collect();
    let done = sqlx::query!(
        "WITH asked AS MATERIALIZED (
             SELECT * FROM unnest($1::uuid[], $2::timestamptz[]) AS a (id, enqueued_at)
         ), held AS MATERIALIZED (
             SELECT i.id FROM ingestion i
             WHERE i.id = ANY ($1) AND i.status = 'in-progress' AND i.resends > 0
             ORDER BY i.id FOR NO KEY UPDATE SKIP LOCKED)
         UPDATE ingestion i SET enqueued_at = a.enqueued_at, resends = i.resends - 1
         FROM held h JOIN asked a ON a.id = h.id WHERE i.id = h.id",
        &ids,
        &times,
    )
    .execute(db.pool())
    .await
    .context("recording the messages that could not be resent")?;
    Ok(done.rows_affected())
}

/// How many rows should have a message: in progress and not parked, counted no further than `most`,
/// out of the index alone. `unclaimed` leaves those out that a worker holds, and reads the rows.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_sendable(db: &Db, unclaimed: bool, most: u64) -> Result<u64> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let counted = if unclaimed {
        sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!" FROM (
                SELECT 1 FROM ingestion
                WHERE status = 'in-progress' AND parked_by IS NULL AND parked_until IS NULL
                  AND (lease_expires_at IS NULL OR lease_expires_at <= (SELECT docmill_now()))
                ORDER BY enqueued_at, id LIMIT $1) AS counted"#,
            most,
        )
        .fetch_one(db.pool())
        .await
    } else {
        sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!" FROM (
                SELECT 1 FROM ingestion
                WHERE status = 'in-progress' AND parked_by IS NULL AND parked_until IS NULL
                ORDER BY enqueued_at, id LIMIT $1) AS counted"#,
            most,
        )
        .fetch_one(db.pool())
        .await
    };
    let count = counted.context("counting the rows that should have a message")?;
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
    CASE WHEN i.accused_at IS NULL THEN 0 ELSE i.crashes END AS "crashes!",
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
    FOR NO KEY UPDATE OF i
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, now, stage, 'crashed', true,
        'the lease ended without a word of the worker'
    FROM held WHERE claim_token IS NOT NULL
)
UPDATE ingestion i SET
    status = 'failed', reason = $2, detail = $3, completed_at = h.now, updated_at = h.now,
    claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL, deferred_since = NULL,
    parked_by = NULL, parked_until = NULL,
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

/// The current leader in `name`; `None`: there is none.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_leader(db: &Db, name: &str) -> Result<Option<String>> {
    sqlx::query_scalar!(
        "SELECT holder FROM maintenance_lease
         WHERE name = $1 AND expires_at > (SELECT docmill_now())",
        name,
    )
    .fetch_optional(db.pool())
    .await
    .context("asking who leads maintenance")
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
