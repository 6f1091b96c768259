//! What operators change. Every statement writes who did it, why, and the state before into
//! `operator_action`, in the same transaction as the change.

use sqlx::types::Uuid;

use super::{Context, Db};
use crate::fault::Result;
use crate::model::IngestionId;

/// Who does something, and why.
#[derive(Debug, Clone)]
pub struct Operator {
    /// Name.
    pub name: String,
    /// Reason, for those who read it later; may be empty.
    pub why: String,
}

fn uuids(ids: &[IngestionId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

/// Opens terminal ingestions again: in progress, due at once, with as many attempts as a fresh one
/// (the 8 of the column's default). The history of attempts stays, as does what the document
/// carries. Returns those that were opened; send a message for each.
///
/// # Errors
/// No answer from Postgres; nothing was changed.
pub async fn reopen(db: &Db, ids: &[IngestionId], by: &Operator) -> Result<Vec<IngestionId>> {
    let opened = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), ended AS MATERIALIZED (
    SELECT * FROM ingestion
    WHERE id = ANY ($1) AND status <> 'in-progress' ORDER BY id FOR UPDATE
), noted AS (
    INSERT INTO operator_action (done_at, operator, action, target, why, before)
    SELECT c.now, $2, 'reopen', id::text, $3, jsonb_build_object(
        'status', status, 'reason', reason, 'detail', detail, 'completed_at', completed_at,
        'attempt_count', attempt_count, 'attempt_limit', attempt_limit, 'crashes', crashes,
        'needs_human_review', needs_human_review, 'review_reasons', review_reasons,
        'reader', reader, 'extraction_model', extraction_model)
    FROM ended CROSS JOIN clock c
)
UPDATE ingestion i SET
    status = 'in-progress', completed_at = NULL, reason = NULL, detail = NULL, stage = NULL,
    valid_structured_data = NULL, structured_data = NULL, duplicate_key = NULL,
    needs_human_review = false, review_reasons = '{}',
    attempt_limit = e.attempt_count + 8, crashes = 0, resends = 0,
    next_attempt_at = NULL, deferred_since = NULL, enqueued_at = c.now, updated_at = c.now
FROM ended e CROSS JOIN clock c
WHERE i.id = e.id
RETURNING i.id
"#,
        &uuids(ids),
        by.name,
        by.why,
    )
    .fetch_all(db.pool())
    .await
    .context("reopening ingestions")?;
    Ok(opened.into_iter().map(IngestionId).collect())
}

/// Makes waiting ingestions due now: what an operator means by retrying one that is put off.
/// Returns those that are in progress and not being worked on; send a message for each.
///
/// # Errors
/// No answer from Postgres; nothing was changed.
pub async fn hurry(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
    let due = sqlx::query_scalar!(
        "UPDATE ingestion SET next_attempt_at = NULL, enqueued_at = docmill_now(),
             updated_at = docmill_now()
         WHERE id = ANY ($1) AND status = 'in-progress'
           AND (lease_expires_at IS NULL OR lease_expires_at <= docmill_now())
         RETURNING id",
        &uuids(ids),
    )
    .fetch_all(db.pool())
    .await
    .context("making ingestions due")?;
    Ok(due.into_iter().map(IngestionId).collect())
}

/// Ends ingestions that are in progress as `cancelled`. A worker that holds one finds its claim
/// lost. Returns those that were cancelled.
///
/// # Errors
/// No answer from Postgres; nothing was changed.
pub async fn cancel(db: &Db, ids: &[IngestionId], by: &Operator) -> Result<Vec<IngestionId>> {
    let ended = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), open AS MATERIALIZED (
    SELECT * FROM ingestion
    WHERE id = ANY ($1) AND status = 'in-progress' ORDER BY id FOR UPDATE
), noted AS (
    INSERT INTO operator_action (done_at, operator, action, target, why, before)
    SELECT c.now, $2, 'cancel', id::text, $3, jsonb_build_object(
        'status', status, 'stage', stage, 'worker', worker,
        'lease_expires_at', lease_expires_at, 'attempt_count', attempt_count)
    FROM open CROSS JOIN clock c
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT id, claims, claim_token, worker, started_at, c.now, stage, 'cancelled', true,
        'cancelled by an operator'
    FROM open CROSS JOIN clock c WHERE claim_token IS NOT NULL
)
UPDATE ingestion i SET
    status = 'cancelled', reason = 'cancelled', completed_at = c.now, updated_at = c.now,
    detail = 'cancelled by an operator', claim_token = NULL, lease_expires_at = NULL,
    next_attempt_at = NULL, deferred_since = NULL
FROM open o CROSS JOIN clock c
WHERE i.id = o.id
RETURNING i.id
"#,
        &uuids(ids),
        by.name,
        by.why,
    )
    .fetch_all(db.pool())
    .await
    .context("cancelling ingestions")?;
    Ok(ended.into_iter().map(IngestionId).collect())
}

/// Pauses a scope (`all`, `kind`, `tenant`, `provider`); `name` is empty for `all`. `false` if it
/// was paused already.
///
/// # Errors
/// No answer from Postgres; nothing was changed.
pub async fn pause(db: &Db, scope: &str, name: &str, by: &Operator) -> Result<bool> {
    let done = sqlx::query!(
        "WITH made AS (
             INSERT INTO pause (scope, name, paused_by, why) VALUES ($1, $2, $3, $4)
             ON CONFLICT (scope, name) DO NOTHING RETURNING scope, name)
         INSERT INTO operator_action (operator, action, target, why)
         SELECT $3, 'pause', concat_ws(' ', scope, NULLIF(name, '')), $4 FROM made",
        scope,
        name,
        by.name,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("pausing")?;
    Ok(done.rows_affected() > 0)
}

/// Lifts a pause. `false` if there was none.
///
/// # Errors
/// No answer from Postgres; nothing was changed.
pub async fn resume(db: &Db, scope: &str, name: &str, by: &Operator) -> Result<bool> {
    let done = sqlx::query!(
        "WITH lifted AS (
             DELETE FROM pause WHERE scope = $1 AND name = $2 RETURNING *)
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $3, 'resume', concat_ws(' ', scope, NULLIF(name, '')), $4,
             jsonb_build_object('paused_at', paused_at, 'paused_by', paused_by, 'why', why)
         FROM lifted",
        scope,
        name,
        by.name,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("resuming")?;
    Ok(done.rows_affected() > 0)
}
