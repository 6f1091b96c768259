//! Submission of a batch, as Postgres records it: one try at a time, each identified by its time.
//!
//! A worker that stood still may go on with a try long after another has led. Every write of a try is
//! therefore made under the condition that no later one has begun, and the last of them comes right
//! before the request by which the vendor makes the batch.

use std::time::Duration;

use time::OffsetDateTime;

use super::OpenBatch;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// A try to hand a batch in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchTry {
    /// The batch.
    pub name: String,
    /// The time of the try, or of its last renewal; identifies it among the tries of a batch.
    pub at: OffsetDateTime,
}

/// Records that a batch is about to be handed in; `None`: another process has begun in the
/// meantime.
///
/// # Errors
/// No answer from Postgres; then it must not be handed in.
pub async fn note_try(db: &Db, batch: &OpenBatch) -> Result<Option<BatchTry>> {
    let at = sqlx::query_scalar!(
        r#"UPDATE batch SET tried_at = docmill_now(), input = NULL
        WHERE name = $1 AND state = 'intended' AND tried_at IS NOT DISTINCT FROM $2
        RETURNING tried_at AS "at!""#,
        batch.name,
        batch.tried_at,
    )
    .fetch_optional(db.pool())
    .await
    .context("writing down that a batch is handed in")?;
    Ok(at.map(|at| BatchTry { name: batch.name.clone(), at }))
}

/// Continues a try, whose file of questions is at the vendor's by now, if there is one; `None`:
/// another process has begun one, or the batch was handed in or given up.
///
/// # Errors
/// No answer from Postgres; then it must not be handed in.
pub async fn renew_try(db: &Db, tried: &BatchTry, input: Option<&str>) -> Result<Option<BatchTry>> {
    let at = sqlx::query_scalar!(
        r#"UPDATE batch SET tried_at = docmill_now(), input = $3
        WHERE name = $1 AND state = 'intended' AND tried_at = $2 RETURNING tried_at AS "at!""#,
        tried.name,
        tried.at,
        input,
    )
    .fetch_optional(db.pool())
    .await
    .context("writing down that a batch is about to be made")?;
    Ok(at.map(|at| BatchTry { name: tried.name.clone(), at }))
}

/// Writes down that the file of the last try is gone from the vendor's, which counts as a try: what of
/// it was on its way is waited for once more.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_input_removed(db: &Db, batch: &OpenBatch) -> Result<()> {
    sqlx::query!(
        "UPDATE batch SET tried_at = docmill_now(), input = NULL
         WHERE name = $1 AND state = 'intended' AND tried_at = $2",
        batch.name,
        batch.tried_at,
    )
    .execute(db.pool())
    .await
    .context("writing down that the questions of a batch were removed")?;
    Ok(())
}

/// Writes down the vendor's name of a batch; `false`: it has another one, or was given up.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_handle(db: &Db, name: &str, handle: &str, next: Duration) -> Result<bool> {
    const DOING: &str = "writing down the name of a batch";
    sqlx::query!(
        "WITH clock AS MATERIALIZED (SELECT docmill_now() AS now)
         UPDATE batch SET state = 'submitted', handle = $2, submitted_at = c.now, detail = NULL,
             polls = 0, due_at = c.now + make_interval(secs => $3)
         FROM clock c WHERE name = $1 AND state = 'intended'",
        name,
        handle,
        next.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context(DOING)?;
    let known = sqlx::query_scalar!("SELECT handle FROM batch WHERE name = $1", name)
        .fetch_optional(db.pool())
        .await
        .context(DOING)?;
    Ok(known.flatten().as_deref() == Some(handle))
}
