//! Counts of the review queue: for the navigation, for the place of a document in it, and for the
//! choice of a reason. Beyond [`MAX_COUNTED`] nothing is counted.

use time::OffsetDateTime;
use uuid::Uuid;

use super::ReviewFilter;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Documents that are counted, those first that wait longest.
pub const MAX_COUNTED: i64 = 1000;

/// How much waits for review, as one reviewer sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Documents with data that were not set aside.
    pub to_check: i64,
    /// Documents of which nothing was read and that were not set aside.
    pub unreadable: i64,
    /// Documents that the reviewer has set aside.
    pub later: i64,
    /// Since when the oldest of all waits.
    pub oldest: Option<OffsetDateTime>,
}

/// Counts what waits, of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_reviews(db: &Db, tenant: Option<&str>, reviewer: &str) -> Result<ReviewCounts> {
    sqlx::query_as!(
        ReviewCounts,
        r#"
SELECT count(*) FILTER (WHERE w.has_data AND NOT w.aside) AS "to_check!",
    count(*) FILTER (WHERE NOT w.has_data AND NOT w.aside) AS "unreadable!",
    count(*) FILTER (WHERE w.aside) AS "later!", min(w.updated_at) AS oldest
FROM (
    SELECT d.updated_at, COALESCE(d.structured_data, newest.structured_data) IS NOT NULL AS has_data,
        EXISTS (SELECT 1 FROM review_later a WHERE a.document_id = d.id AND a.reviewer = $2
            AND a.until > (SELECT docmill_now())) AS aside
    FROM document d
    LEFT JOIN LATERAL (
        SELECT i.tenant, i.structured_data FROM ingestion i
        WHERE i.document_id = d.id AND i.status <> 'cancelled'
        ORDER BY i.created_at DESC, i.id DESC LIMIT 1
    ) AS newest ON true
    WHERE d.needs_human_review AND ($1::text IS NULL OR COALESCE(d.tenant, newest.tenant) = $1)
    ORDER BY d.updated_at, d.id LIMIT $3
) AS w
"#,
        tenant,
        reviewer,
        MAX_COUNTED,
    )
    .fetch_one(db.pool())
    .await
    .context("counting what waits for review")
}

/// The place of a document among those that wait, by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePlace {
    /// Documents up to and including this one; 0 if it is not among those counted.
    pub place: i64,
    /// All that wait.
    pub total: i64,
}

/// Position of a document in a part of the queue.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_place(db: &Db, wanted: &ReviewFilter, document: Uuid) -> Result<QueuePlace> {
    sqlx::query_as!(
        QueuePlace,
        r#"
SELECT COALESCE(max(w.place) FILTER (WHERE w.id = $1), 0) AS "place!", count(*) AS "total!"
FROM (
    SELECT d.id, row_number() OVER (ORDER BY d.updated_at, d.id) AS place
    FROM document d
    LEFT JOIN LATERAL (
        SELECT i.kind, i.tenant, i.structured_data FROM ingestion i
        WHERE i.document_id = d.id AND i.status <> 'cancelled'
        ORDER BY i.created_at DESC, i.id DESC LIMIT 1
    ) AS newest ON true
    WHERE d.needs_human_review
      AND ($2::text IS NULL OR COALESCE(d.tenant, newest.tenant) = $2)
      AND ($3::text IS NULL OR newest.kind = $3)
      AND ($4::text IS NULL OR $4 = ANY (d.review_reasons))
      AND ($5::boolean IS NULL
        OR $5 = (COALESCE(d.structured_data, newest.structured_data) IS NOT NULL))
      AND ($6::boolean IS NULL OR $6 = EXISTS (SELECT 1 FROM review_later a
        WHERE a.document_id = d.id AND a.reviewer = $7 AND a.until > (SELECT docmill_now())))
    ORDER BY d.updated_at, d.id LIMIT $8
) AS w
"#,
        document,
        wanted.tenant,
        wanted.kind,
        wanted.reason,
        wanted.part.has_data(),
        wanted.part.is_set_aside(),
        wanted.part.reviewer(),
        MAX_COUNTED,
    )
    .fetch_one(db.pool())
    .await
    .context("looking for a document's place in the review queue")
}

/// The reasons for which documents wait, the most frequent first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_reasons(db: &Db, tenant: Option<&str>) -> Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"
SELECT reason AS "reason!" FROM (
    SELECT d.review_reasons FROM document d
    WHERE d.needs_human_review AND ($1::text IS NULL OR document_tenant(d.id) = $1)
    ORDER BY d.updated_at, d.id LIMIT $2
) AS w CROSS JOIN LATERAL unnest(w.review_reasons) AS reason
GROUP BY reason ORDER BY count(*) DESC, reason LIMIT 60
"#,
        tenant,
        MAX_COUNTED,
    )
    .fetch_all(db.pool())
    .await
    .context("listing the reasons for reviews")
}
