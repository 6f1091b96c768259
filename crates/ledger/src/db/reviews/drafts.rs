//! Typed values without a decision, and documents set aside for later; both of one reviewer.
//!
//! The next decision about a document ends them, and so does its erasure. A draft of another version
//! of the document is kept, and is for its caller to show beside the form.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::connection::statements::StatementTransaction;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Bytes of a draft, which the schema enforces too.
pub const MAX_DRAFT_BYTES: usize = 512 << 10;

/// A form as it was typed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewDraft {
    /// The version of the document that the form was made for.
    pub version: OffsetDateTime,
    /// Names and values, as a browser sends a form.
    pub form: String,
    /// When it was saved.
    pub saved_at: OffsetDateTime,
}

/// Saves what a reviewer has typed about a document that calls for review; a larger form than
/// [`MAX_DRAFT_BYTES`] is not saved. `false`: nothing was saved.
///
/// # Errors
/// No answer from Postgres.
pub async fn save_draft(
    db: &Db,
    document: Uuid,
    reviewer: &str,
    version: OffsetDateTime,
    form: &str,
) -> Result<bool> {
    if form.len() > MAX_DRAFT_BYTES {
        return Ok(false);
    }
    let done = sqlx::query!(
        "INSERT INTO review_draft AS r (document_id, reviewer, version, form, saved_at)
         SELECT d.id, $2, $3, $4, docmill_now() FROM document d
         WHERE d.id = $1 AND d.needs_human_review
         ON CONFLICT (document_id, reviewer) DO UPDATE SET
             version = EXCLUDED.version, form = EXCLUDED.form, saved_at = EXCLUDED.saved_at",
        document,
        reviewer,
        version,
        form,
    )
    .execute(db.pool())
    .await
    .context("saving a review's draft")?;
    Ok(done.rows_affected() > 0)
}

/// The draft of a reviewer about a document.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_draft(db: &Db, document: Uuid, reviewer: &str) -> Result<Option<ReviewDraft>> {
    sqlx::query_as!(
        ReviewDraft,
        "SELECT version, form, saved_at FROM review_draft
         WHERE document_id = $1 AND reviewer = $2",
        document,
        reviewer,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for a review's draft")
}

/// Deletes the draft of a reviewer about a document.
///
/// # Errors
/// No answer from Postgres.
pub async fn discard_draft(db: &Db, document: Uuid, reviewer: &str) -> Result<()> {
    sqlx::query!(
        "DELETE FROM review_draft WHERE document_id = $1 AND reviewer = $2",
        document,
        reviewer,
    )
    .execute(db.pool())
    .await
    .context("deleting a review's draft")?;
    Ok(())
}

/// Sets a document aside, so that this reviewer is not led to it for so long.
///
/// # Errors
/// No answer from Postgres.
pub async fn set_aside(db: &Db, document: Uuid, reviewer: &str, length: Duration) -> Result<()> {
    sqlx::query!(
        "WITH over AS (
             DELETE FROM review_later WHERE reviewer = $2 AND until <= (SELECT docmill_now())
                 AND document_id <> $1)
         INSERT INTO review_later (document_id, reviewer, until)
         SELECT d.id, $2, docmill_now() + make_interval(secs => $3) FROM document d
         WHERE d.id = $1 AND d.needs_human_review
         ON CONFLICT (document_id, reviewer) DO UPDATE SET until = EXCLUDED.until",
        document,
        reviewer,
        length.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("setting a document aside")?;
    Ok(())
}

/// Ends everything that reviewers had begun about a document, with the decision about it.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn end_unfinished(
    transaction: &mut StatementTransaction,
    document: Uuid,
) -> Result<()> {
    sqlx::query!("DELETE FROM review_lease WHERE document_id = $1", document)
        .execute(&mut *transaction)
        .await
        .context("ending a lease")?;
    sqlx::query!("DELETE FROM review_draft WHERE document_id = $1", document)
        .execute(&mut *transaction)
        .await
        .context("deleting the drafts of a document")?;
    sqlx::query!("DELETE FROM review_later WHERE document_id = $1", document)
        .execute(&mut *transaction)
        .await
        .context("ending what was set aside")?;
    Ok(())
}
