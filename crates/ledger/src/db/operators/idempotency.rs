//! Answers to requests that programs have named, so that a request that is repeated is answered the
//! same. Kept for a day.

use std::time::Duration;

use serde_json::Value;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// How long an answer is kept.
const ANSWER_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A stored answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotentAnswer {
    /// SHA-256 of what was asked for, its content included.
    pub fingerprint: String,
    /// The answer.
    pub answer: Value,
}

/// The answer to the request of this name, if it was given within a day.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_answer(db: &Db, visitor: &str, key: &str) -> Result<Option<IdempotentAnswer>> {
    sqlx::query_as!(
        IdempotentAnswer,
        "SELECT fingerprint, answer FROM idempotency_key
         WHERE visitor = $1 AND key = $2
           AND kept_at > (SELECT docmill_now()) - make_interval(secs => $3)",
        visitor,
        key,
        ANSWER_LIFETIME.as_secs_f64(),
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for the answer of a request")
}

/// Keeps an answer; one of two at once stays, and one that is too old gives way.
///
/// # Errors
/// No answer from Postgres.
pub async fn keep_answer(
    db: &Db,
    visitor: &str,
    key: &str,
    answer: &IdempotentAnswer,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO idempotency_key AS k (visitor, key, fingerprint, answer) VALUES ($1, $2, $3, $4)
         ON CONFLICT (visitor, key) DO UPDATE SET fingerprint = excluded.fingerprint,
             answer = excluded.answer, kept_at = (SELECT docmill_now())
         WHERE k.kept_at <= (SELECT docmill_now()) - make_interval(secs => $5)",
        visitor,
        key,
        answer.fingerprint,
        answer.answer,
        ANSWER_LIFETIME.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("keeping the answer of a request")?;
    Ok(())
}

/// Deletes up to `batch` answers that are too old.
///
/// # Errors
/// No answer from Postgres.
pub async fn delete_answers(db: &Db, batch: u32) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM idempotency_key WHERE (visitor, key) IN (
             SELECT visitor, key FROM idempotency_key
             WHERE kept_at < (SELECT docmill_now()) - make_interval(secs => $1)
             ORDER BY kept_at LIMIT $2)",
        ANSWER_LIFETIME.as_secs_f64(),
        i64::from(batch),
    )
    .execute(db.pool())
    .await
    .context("deleting old answers of requests")?;
    Ok(done.rows_affected())
}
