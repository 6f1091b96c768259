//! Deleting rows that are old enough, in batches, so that no statement runs long and no lock is
//! held for long. Documents, ingestions and what operators did are never deleted here.

use std::time::Duration;

use crate::db::{Context, Db};
use crate::fault::Result;

/// Deletes up to `batch` attempts of terminal ingestions that ended longer ago than `age`. Returns
/// how many: less than `batch` means done.
///
/// # Errors
/// No answer from Postgres.
pub async fn delete_attempts(db: &Db, age: Duration, batch: u32) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM attempt WHERE (ingestion_id, claims) IN (
             SELECT a.ingestion_id, a.claims
             FROM attempt a JOIN ingestion i ON i.id = a.ingestion_id
             WHERE a.ended_at < docmill_now() - make_interval(secs => $1)
               AND i.status <> 'in-progress'
             LIMIT $2)",
        age.as_secs_f64(),
        i64::from(batch),
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
             WHERE quarantined_at < docmill_now() - make_interval(secs => $1) LIMIT $2)",
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
        "DELETE FROM worker WHERE seen_at < docmill_now() - make_interval(secs => $1)",
        silence.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("deleting rows of silent workers")?;
    Ok(done.rows_affected())
}
