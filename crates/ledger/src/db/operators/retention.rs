//! Deleting rows that are old enough, in batches, so that no statement runs long and no lock is
//! held for long. Documents, ingestions and what operators did are never deleted here.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// An attempt that is old enough to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredAttempt {
    /// Id of the ingestion it belongs to.
    pub ingestion: IngestionId,
    /// Number of its claim.
    pub claims: i64,
    /// When it ended.
    pub ended_at: OffsetDateTime,
    /// Finished pages may be left in the store: the ingestion ended other than completed, or this
    /// attempt lost its claim and may have written one after its successor was done.
    pub left_pages: bool,
}

/// Up to `batch` attempts of terminal ingestions that ended longer ago than `age`, those behind `after`, oldest
/// first: fewer than `batch` means that these are all.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_expired_attempts(
    db: &Db,
    age: Duration,
    after: Option<&ExpiredAttempt>,
    batch: u32,
) -> Result<Vec<ExpiredAttempt>> {
    let rows = sqlx::query!(
        r#"SELECT a.ingestion_id, a.claims, a.ended_at AS "ended_at!",
             i.status <> 'completed' OR a.outcome = 'crashed' AS "left_pages!"
         FROM attempt a JOIN ingestion i ON i.id = a.ingestion_id
         WHERE a.ended_at < (SELECT docmill_now()) - make_interval(secs => $1)
           AND a.ended_at >= COALESCE($3, '-infinity'::timestamptz)
           AND ($3 IS NULL OR (a.ended_at, a.ingestion_id, a.claims) > ($3, $4, $5))
           AND i.status <> 'in-progress'
         ORDER BY a.ended_at, a.ingestion_id, a.claims LIMIT $2"#,
        age.as_secs_f64(),
        i64::from(batch),
        after.map(|last| last.ended_at),
        after.map(|last| last.ingestion.0),
        after.map(|last| last.claims),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for old attempts")?;
    Ok(rows
        .into_iter()
        .map(|row| ExpiredAttempt {
            ingestion: IngestionId(row.ingestion_id),
            claims: row.claims,
            ended_at: row.ended_at,
            left_pages: row.left_pages,
        })
        .collect())
}

/// Deletes these attempts. Returns how many were still there.
///
/// # Errors
/// No answer from Postgres.
pub async fn delete_attempts(db: &Db, old: &[ExpiredAttempt]) -> Result<u64> {
    let ids: Vec<Uuid> = old.iter().map(|attempt| attempt.ingestion.0).collect();
    let claims: Vec<i64> = old.iter().map(|attempt| attempt.claims).collect();
    let done = sqlx::query!(
        "DELETE FROM attempt WHERE (ingestion_id, claims) IN (
             SELECT * FROM unnest($1::uuid[], $2::bigint[]))",
        &ids,
        &claims,
    )
    .execute(db.pool())
    .await
    .context("deleting old attempts")?;
    Ok(done.rows_affected())
}

/// Deletes up to `batch` quarantined messages that are older than `age`.
///
/// # Errors
/// No answer from Postgres.
pub async fn delete_quarantined(db: &Db, age: Duration, batch: u32) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM quarantined_message WHERE message_id IN (
             SELECT message_id FROM quarantined_message
             WHERE quarantined_at < (SELECT docmill_now()) - make_interval(secs => $1) LIMIT $2)",
        age.as_secs_f64(),
        i64::from(batch),
    )
    .execute(db.pool())
    .await
    .context("deleting old quarantined messages")?;
    Ok(done.rows_affected())
}

/// Deletes the rows of workers that were not seen for `silence`.
///
/// # Errors
/// No answer from Postgres.
pub async fn delete_workers(db: &Db, silence: Duration) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM worker WHERE seen_at < (SELECT docmill_now()) - make_interval(secs => $1)",
        silence.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("deleting rows of silent workers")?;
    Ok(done.rows_affected())
}
