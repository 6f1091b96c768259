//! Operators' actions on ingestions, and the record of who did it, why, and the state before.
//!
//! Each change and its row in `operator_action` are one statement. Sending messages is not done
//! here: a reopened row is sent by the caller after this has committed.

pub mod companies;
pub mod erasure;
pub mod idempotency;
pub mod janitor;
pub mod kind_replays;
pub mod master_data;
pub mod people;
pub mod retention;
pub mod routes;
pub mod saved_views;

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext, saturating_int};
use crate::decide::FRESH_ATTEMPTS;
use docmill_core::fault::Result;
use docmill_core::model::{IngestionId, IngestionStatus};

/// Which operator acts, and why.
#[derive(Debug, Clone)]
pub struct AuditNote {
    /// A person or program, as the audit shows it.
    pub operator: String,
    /// Their words; may be empty.
    pub why: String,
}

/// The scope of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseScope {
    /// All work of all workers.
    All,
    /// The documents of one kind.
    Kind,
    /// The documents of one tenant.
    Tenant,
    /// The calls of one provider of OCR or models.
    Provider,
}

impl PauseScope {
    /// The text in the row.
    pub fn code(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Kind => "kind",
            Self::Tenant => "tenant",
            Self::Provider => "provider",
        }
    }
}

/// A pause as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PauseRow {
    /// The scope, as [`PauseScope::code`] writes it.
    pub scope: String,
    /// Name of the kind, tenant or provider; empty for everything.
    pub name: String,
    /// When the pause began.
    #[serde(with = "time::serde::rfc3339")]
    pub paused_at: OffsetDateTime,
    /// The operator who paused.
    pub paused_by: String,
    /// The reason the operator gave; may be empty.
    pub why: String,
}

/// Opens terminal ingestions again: their attempts start from one, the history stays. The
/// transcript is used again, the model's replies are not: the same reply would end the same way.
/// Returns those that were terminal; each is to be sent. Those of a document that is being erased stay
/// as they are.
///
/// # Errors
/// No answer from Postgres.
pub async fn reopen_ingestions(
    db: &Db,
    ids: &[IngestionId],
    by: &AuditNote,
) -> Result<Vec<IngestionId>> {
    use IngestionStatus::{Cancelled, Completed, Failed};
    reopen_in(db, ids, &[Completed, Failed, Cancelled], by).await
}

/// The same for those alone that failed: what was completed or cancelled meanwhile stays so.
///
/// # Errors
/// No answer from Postgres.
pub async fn reopen_failed(
    db: &Db,
    ids: &[IngestionId],
    by: &AuditNote,
) -> Result<Vec<IngestionId>> {
    reopen_in(db, ids, &[IngestionStatus::Failed], by).await
}

async fn reopen_in(
    db: &Db,
    ids: &[IngestionId],
    ended: &[IngestionStatus],
    by: &AuditNote,
) -> Result<Vec<IngestionId>> {
    let ended: Vec<String> = ended.iter().map(|status| status.code().to_owned()).collect();
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let reopened = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, jsonb_build_object('status', i.status, 'reason', i.reason, 'detail', i.detail,
        'attempt_count', i.attempt_count, 'attempt_limit', i.attempt_limit,
        'crashes', i.crashes, 'completed_at', i.completed_at,
        'review_reasons', i.review_reasons) AS before
    FROM ingestion i
    WHERE i.id = ANY ($1) AND i.status = ANY ($5)
      AND NOT EXISTS (SELECT 1 FROM doomed_document x WHERE x.document_id = i.document_id)
    ORDER BY i.id FOR NO KEY UPDATE
), audited AS (
    INSERT INTO operator_action (done_at, operator, action, target, why, before)
    SELECT c.now, $2, 'reopen', h.id::text, $3, h.before FROM held h CROSS JOIN clock c
)
UPDATE ingestion i SET
    status = 'in-progress', reason = NULL, detail = NULL, completed_at = NULL, stage = NULL,
    attempt_limit = i.attempt_count + $4, crashes = 0, accused_at = NULL, next_attempt_at = NULL,
    deferred_since = NULL, enqueued_at = c.now, resends = 0, updated_at = c.now,
    parked_by = NULL, parked_until = NULL, denials = 0,
    valid_structured_data = NULL, needs_human_review = false, review_reasons = '{}',
    duplicate_key = NULL, near_amount = NULL, near_number = NULL, master_match = NULL,
    hooks = NULL,
    extraction_output_file_path = NULL, extraction_identity = NULL
FROM held h, clock c WHERE i.id = h.id
RETURNING i.id
"#,
        &ids,
        by.operator,
        by.why,
        saturating_int(FRESH_ATTEMPTS),
        &ended,
    )
    .fetch_all(db.pool())
    .await
    .context("reopening ingestions")?;
    Ok(reopened.into_iter().map(IngestionId).collect())
}

/// Those whose document is past its tenant's retention and being erased: they are not opened again.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_doomed(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let doomed = sqlx::query_scalar!(
        "SELECT i.id FROM ingestion i JOIN doomed_document x ON x.document_id = i.document_id
         WHERE i.id = ANY ($1) AND i.status <> 'in-progress'",
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for documents that are being erased")?;
    Ok(doomed.into_iter().map(IngestionId).collect())
}

/// Makes waiting ingestions due now, and ends their streaks of deferrals: what an operator means by
/// retrying one that is put off.
/// Returns those that no worker holds; each is to be sent. No change of state, so no audit.
///
/// # Errors
/// No answer from Postgres.
pub async fn make_due_now(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let due = sqlx::query_scalar!(
        "WITH held AS MATERIALIZED (
             SELECT id FROM ingestion
             WHERE id = ANY ($1) AND status = 'in-progress'
               AND (lease_expires_at IS NULL OR lease_expires_at <= (SELECT docmill_now()))
             ORDER BY id FOR NO KEY UPDATE)
         UPDATE ingestion i SET
             next_attempt_at = NULL, deferred_since = NULL, denials = 0,
             parked_by = NULL, parked_until = NULL,
             enqueued_at = docmill_now(), updated_at = docmill_now()
         FROM held h WHERE i.id = h.id
         RETURNING i.id",
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("making ingestions due")?;
    Ok(due.into_iter().map(IngestionId).collect())
}

/// Cancels what is not terminal. A worker that holds one finds its claim lost at its next write;
/// its attempt ends here. Returns those that were cancelled.
///
/// # Errors
/// No answer from Postgres.
pub async fn cancel_ingestions(
    db: &Db,
    ids: &[IngestionId],
    by: &AuditNote,
) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let cancelled = sqlx::query_scalar!(
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
), held AS MATERIALIZED (
    SELECT i.id, i.claims, i.claim_token, i.worker, i.started_at, i.stage,
        jsonb_build_object('status', i.status, 'worker', i.worker, 'stage', i.stage,
            'lease_expires_at', i.lease_expires_at, 'next_attempt_at', i.next_attempt_at,
            'attempt_count', i.attempt_count) AS before
    FROM ingestion i
    WHERE i.id = ANY ($1) AND i.status = 'in-progress' ORDER BY i.id FOR NO KEY UPDATE
), closed AS (
    INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage,
        outcome, final, detail)
    SELECT h.id, h.claims, h.claim_token, h.worker, h.started_at, c.now, h.stage,
        'cancelled', true, 'cancelled by an operator'
    FROM held h CROSS JOIN clock c WHERE h.claim_token IS NOT NULL
), audited AS (
    INSERT INTO operator_action (done_at, operator, action, target, why, before)
    SELECT c.now, $2, 'cancel', h.id::text, $3, h.before FROM held h CROSS JOIN clock c
)
UPDATE ingestion i SET
    status = 'cancelled', reason = 'cancelled', completed_at = c.now, updated_at = c.now,
    claim_token = NULL, lease_expires_at = NULL, next_attempt_at = NULL, deferred_since = NULL,
    parked_by = NULL, parked_until = NULL, detail = 'cancelled by an operator'
FROM held h, clock c WHERE i.id = h.id
RETURNING i.id
"#,
        &ids,
        by.operator,
        by.why,
    )
    .fetch_all(db.pool())
    .await
    .context("cancelling ingestions")?;
    Ok(cancelled.into_iter().map(IngestionId).collect())
}

/// Pauses; `name` is empty for everything. Pausing again changes only who and why.
///
/// # Errors
/// No answer from Postgres, or a name where none belongs.
pub async fn add_pause(db: &Db, scope: PauseScope, name: &str, by: &AuditNote) -> Result<()> {
    sqlx::query!(
        "WITH audited AS (
             INSERT INTO operator_action (operator, action, target, why, before)
             SELECT $3, 'pause', $1 || ':' || $2, $4, COALESCE((SELECT to_jsonb(p) FROM pause p
                 WHERE p.scope = $1 AND p.name = $2), '{}'))
         INSERT INTO pause (scope, name, paused_by, why) VALUES ($1, $2, $3, $4)
         ON CONFLICT (scope, name) DO UPDATE SET
             paused_by = excluded.paused_by, why = excluded.why",
        scope.code(),
        name,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("pausing")?;
    Ok(())
}

/// Ends a pause; `false` if there was none.
///
/// # Errors
/// No answer from Postgres.
pub async fn remove_pause(db: &Db, scope: PauseScope, name: &str, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH gone AS (
             DELETE FROM pause p WHERE p.scope = $1 AND p.name = $2 RETURNING p.*)
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $3, 'resume', $1 || ':' || $2, $4, to_jsonb(gone) FROM gone",
        scope.code(),
        name,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("resuming")?;
    Ok(done.rows_affected() > 0)
}

/// The active pauses.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_pauses(db: &Db) -> Result<Vec<PauseRow>> {
    sqlx::query_as!(
        PauseRow,
        "SELECT scope, name, paused_at, paused_by, why FROM pause ORDER BY scope, name"
    )
    .fetch_all(db.pool())
    .await
    .context("reading the pauses")
}

/// Blocks content by its SHA-256 (64 digits of hex): from now on such a document ends `blocked`
/// as soon as it is read. `false` if it was blocked already.
///
/// # Errors
/// No answer from Postgres, or no SHA-256.
pub async fn block_content(db: &Db, sha256: &str, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH new AS (
             INSERT INTO blocked_content (sha256, blocked_by, why) VALUES ($1, $2, $3)
             ON CONFLICT (sha256) DO NOTHING RETURNING sha256)
         INSERT INTO operator_action (operator, action, target, why)
         SELECT $2, 'block', sha256, $3 FROM new",
        sha256,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("blocking content")?;
    Ok(done.rows_affected() > 0)
}

/// Ends a block; `false` if there was none.
///
/// # Errors
/// No answer from Postgres.
pub async fn unblock_content(db: &Db, sha256: &str, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH gone AS (DELETE FROM blocked_content b WHERE b.sha256 = $1 RETURNING b.*)
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $2, 'unblock', $1, $3, to_jsonb(gone) FROM gone",
        sha256,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("unblocking content")?;
    Ok(done.rows_affected() > 0)
}

/// Records that the original of an ingestion's document was handed out.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_download(db: &Db, ingestion: IngestionId, by: &AuditNote) -> Result<()> {
    sqlx::query!(
        "INSERT INTO operator_action (operator, action, target, why)
         VALUES ($1, 'download', $2, $3)",
        by.operator,
        ingestion.0.to_string(),
        by.why,
    )
    .execute(db.pool())
    .await
    .context("recording a download")?;
    Ok(())
}

/// Records that the data of these ingestions was handed out in one file of a form.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_export(
    db: &Db,
    ingestions: &[IngestionId],
    form: &str,
    by: &AuditNote,
) -> Result<()> {
    let ids: Vec<Uuid> = ingestions.iter().map(|id| id.0).collect();
    sqlx::query!(
        "INSERT INTO operator_action (operator, action, target, why, before)
         VALUES ($1, 'export', 'export:' || $2, $3,
             jsonb_build_object('ingestions', to_jsonb($4::uuid[])))",
        by.operator,
        form,
        by.why,
        &ids,
    )
    .execute(db.pool())
    .await
    .context("recording an export")?;
    Ok(())
}

/// Gives a password that may open the document of an ingestion; workers alone can read it.
///
/// # Errors
/// No answer from Postgres, or a password of another length than the schema allows.
pub async fn give_password(
    db: &Db,
    ingestion: IngestionId,
    password: &str,
    by: &AuditNote,
) -> Result<()> {
    sqlx::query!(
        "WITH given AS (
             INSERT INTO document_password (document_id, password)
             SELECT i.document_id, $2 FROM ingestion i WHERE i.id = $1
             ON CONFLICT DO NOTHING)
         INSERT INTO operator_action (operator, action, target, why)
         VALUES ($3, 'password', $1::uuid::text, $4)",
        ingestion.0,
        password,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("giving a password")?;
    Ok(())
}
