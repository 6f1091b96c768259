//! Leases of documents that a reviewer has open. A lease keeps others from deciding, not from
//! reading; [`record_decision`](super::decisions::record_decision) enforces it.

use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::ReviewFilter;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::{Error, Fault, Result};

/// The holder of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReviewHold {
    /// Who, as the audit writes it.
    pub reviewer: String,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Until when, if it is not renewed.
    #[serde(with = "time::serde::rfc3339")]
    pub until: OffsetDateTime,
}

/// A reviewer's request for a document.
#[derive(Debug, Clone)]
pub struct LockRequest<'a> {
    /// Who, as the audit writes it.
    pub reviewer: &'a str,
    /// The open page; a page that was opened earlier gives nothing back.
    pub page: Uuid,
    /// Whether the page is opened now; else it is open and renews.
    pub opens: bool,
    /// Whether another reviewer's lease is taken over.
    pub take_over: bool,
    /// From now.
    pub lease: Duration,
}

/// Takes or renews the lease of a document that calls for review. Returns the current holder,
/// another reviewer if it was not free; `None` if it does not call for review.
///
/// # Errors
/// No answer from Postgres.
pub async fn claim_review(
    db: &Db,
    document: Uuid,
    request: &LockRequest<'_>,
) -> Result<Option<ReviewHold>> {
    // A lease that is not taken may have been given back before it is read: then it is free.
    for _ in 0..3 {
        if let Some(own) = take_lease(db, document, request).await? {
            return Ok(Some(own));
        }
        match find_hold(db, document).await? {
            FoundHold::Held(other) => return Ok(Some(other)),
            FoundHold::Free => {}
            FoundHold::NotCalling => return Ok(None),
        }
    }
    Err(Error::new(Fault::Transient, "the lease of a document changes faster than it can be read"))
}

async fn take_lease(
    db: &Db,
    document: Uuid,
    request: &LockRequest<'_>,
) -> Result<Option<ReviewHold>> {
    sqlx::query_as!(
        ReviewHold,
        r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now
)
INSERT INTO review_lease AS l (document_id, reviewer, page, taken_at, expires_at)
SELECT d.id, $2, $3, c.now, c.now + make_interval(secs => $4)
FROM document d CROSS JOIN clock c WHERE d.id = $1 AND d.needs_human_review
ON CONFLICT (document_id) DO UPDATE SET
    reviewer = EXCLUDED.reviewer,
    page = CASE WHEN $5 OR l.reviewer <> EXCLUDED.reviewer THEN EXCLUDED.page ELSE l.page END,
    taken_at = CASE WHEN l.reviewer = EXCLUDED.reviewer AND l.expires_at > EXCLUDED.taken_at
        THEN l.taken_at ELSE EXCLUDED.taken_at END,
    expires_at = EXCLUDED.expires_at
WHERE l.reviewer = EXCLUDED.reviewer OR l.expires_at <= EXCLUDED.taken_at OR $6
RETURNING reviewer, taken_at AS since, expires_at AS until
"#,
        document,
        request.reviewer,
        request.page,
        request.lease.as_secs_f64(),
        request.opens,
        request.take_over,
    )
    .fetch_optional(db.pool())
    .await
    .context("claiming a document for review")
}

enum FoundHold {
    Held(ReviewHold),
    Free,
    NotCalling,
}

async fn find_hold(db: &Db, document: Uuid) -> Result<FoundHold> {
    let found = sqlx::query!(
        r#"
SELECT l.reviewer AS "reviewer?", l.taken_at AS "since?", l.expires_at AS "until?"
FROM document d LEFT JOIN review_lease l
    ON l.document_id = d.id AND l.expires_at > (SELECT docmill_now())
WHERE d.id = $1 AND d.needs_human_review
"#,
        document,
    )
    .fetch_optional(db.pool())
    .await
    .context("asking who reviews a document")?;
    let Some(row) = found else { return Ok(FoundHold::NotCalling) };
    Ok(match (row.reviewer, row.since, row.until) {
        (Some(reviewer), Some(since), Some(until)) => {
            FoundHold::Held(ReviewHold { reviewer, since, until })
        }
        _ => FoundHold::Free,
    })
}

/// Gives a document back, if it is this reviewer's, and for `page` if it is named. `false`: it was
/// not.
///
/// # Errors
/// No answer from Postgres.
pub async fn release_review(
    db: &Db,
    document: Uuid,
    reviewer: &str,
    page: Option<Uuid>,
) -> Result<bool> {
    let done = sqlx::query!(
        "DELETE FROM review_lease
         WHERE document_id = $1 AND reviewer = $2 AND ($3::uuid IS NULL OR page = $3)",
        document,
        reviewer,
        page,
    )
    .execute(db.pool())
    .await
    .context("giving a document back")?;
    Ok(done.rows_affected() > 0)
}

/// The first document in the wanted order of those that are free and that this reviewer may decide
/// about, but for `passed`; `None`: there is none.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_free_review(
    db: &Db,
    wanted: &ReviewFilter,
    reviewer: &str,
    passed: &[Uuid],
) -> Result<Option<Uuid>> {
    let (by_amount, looked_at) = wanted.order.compared(1);
    sqlx::query_scalar!(
        r#"
WITH free AS MATERIALIZED (
SELECT d.id, d.updated_at,
    COALESCE(d.structured_data, newest.structured_data) AS data
FROM document d
LEFT JOIN LATERAL (
    SELECT i.kind, i.tenant, i.structured_data FROM ingestion i
    WHERE i.document_id = d.id AND i.status <> 'cancelled'
    ORDER BY i.created_at DESC, i.id DESC LIMIT 1
) AS newest ON true
WHERE d.needs_human_review
  AND ($1::text IS NULL OR COALESCE(d.tenant, newest.tenant) = $1)
  AND ($2::text IS NULL OR newest.kind = $2)
  AND ($3::text IS NULL OR $3 = ANY (d.review_reasons))
  AND NOT EXISTS (SELECT 1 FROM review_lease l WHERE l.document_id = d.id
    AND l.reviewer <> $4 AND l.expires_at > (SELECT docmill_now()))
  -- What waits for a second person is not for the first.
  AND NOT ('second_person' = ANY (d.review_reasons) AND $4 = (
    SELECT r.reviewer FROM document_revision r WHERE r.document_id = d.id AND r.awaits_second
    ORDER BY r.id DESC LIMIT 1))
  AND d.id <> ALL ($5::uuid[])
  AND ($6::boolean IS NULL
    OR $6 = (COALESCE(d.structured_data, newest.structured_data) IS NOT NULL))
  AND ($7::boolean IS NULL OR $7 = EXISTS (SELECT 1 FROM review_later a
    WHERE a.document_id = d.id AND a.reviewer = $4 AND a.until > (SELECT docmill_now())))
ORDER BY d.updated_at, d.id
LIMIT $8
)
SELECT f.id AS "id!"
FROM free f
CROSS JOIN LATERAL (
    SELECT max(n::numeric) AS amount
    FROM jsonb_path_query(CASE WHEN $9 AND jsonb_typeof(f.data) = 'object' THEN f.data ELSE '{}' END,
        'strict $.* ? (@.type() == "number")') AS n
) AS stake
ORDER BY CASE WHEN $9 AND jsonb_typeof(f.data) = 'object' THEN f.data ->> 'currency' END NULLS LAST,
    stake.amount DESC NULLS LAST, f.updated_at, f.id
LIMIT 1
"#,
        wanted.tenant,
        wanted.kind,
        wanted.reason,
        reviewer,
        passed,
        wanted.part.has_data(),
        wanted.part.is_set_aside(),
        i64::from(looked_at),
        by_amount,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for the next document to be reviewed")
}
