//! Documents as reviewers see them. Leases are in [`leases`], decisions in [`decisions`], what is
//! typed or set aside without a decision in [`drafts`], counts in [`counts`], duplicates in
//! [`similar`].

pub mod counts;
pub mod decisions;
pub mod drafts;
pub mod leases;
pub mod levels;
pub mod replays;
pub mod similar;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;
use leases::ReviewHold;

/// A document that a person has to look at.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReviewRow {
    /// Id of the document.
    pub document_id: Uuid,
    /// Where the original lies.
    pub file_path: String,
    /// The name the file had with its sender.
    pub original_name: Option<String>,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// Kind of the newest ingestion, if it is known.
    pub kind: Option<String>,
    /// Why: names of gate rules and reason codes.
    pub review_reasons: Vec<String>,
    /// Whether a person has decided about it before.
    pub decided_before: bool,
    /// Since when it waits; also the version that a decision names.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Status of the newest ingestion.
    pub status: Option<String>,
    /// The reviewer who has it open.
    pub held_by: Option<String>,
    /// Since when.
    #[serde(with = "time::serde::rfc3339::option")]
    pub held_since: Option<OffsetDateTime>,
    /// The amount at stake: the largest number at the top level of the document's data, or else of
    /// the ingestion's data.
    pub amount: Option<f64>,
    /// The currency beside it.
    pub currency: Option<String>,
}

/// Which documents to review come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReviewOrder {
    /// Those that wait longest.
    #[default]
    Age,
    /// Those with the largest amount of each currency, of the [`MAX_COMPARED`] that wait longest; one
    /// currency after the other, as amounts of two are not compared. There is no next page.
    Amount,
}

impl ReviewOrder {
    /// Whether amounts are compared, and how many documents are looked at for `limit` of them.
    fn compared(self, limit: u32) -> (bool, u32) {
        match self {
            Self::Age => (false, limit),
            Self::Amount => (true, limit.max(MAX_COMPARED)),
        }
    }
}

/// Documents compared by amount: more would take too long for a page.
pub const MAX_COMPARED: u32 = 10_000;
/// Decisions of a document that are shown.
pub const MAX_REVISIONS: i64 = 50;

/// Which documents to review are meant; `None` does not matter.
#[derive(Debug, Clone, Default)]
pub struct ReviewFilter {
    /// Only documents of this tenant.
    pub tenant: Option<String>,
    /// Only documents whose newest ingestion is of this kind.
    pub kind: Option<String>,
    /// Only documents with this reason.
    pub reason: Option<String>,
    /// Only these documents.
    pub documents: Option<Vec<Uuid>>,
    /// Which part of the queue.
    pub part: ReviewPart,
    /// Which come first.
    pub order: ReviewOrder,
}

/// A part of the review queue, as one reviewer has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReviewPart {
    /// Everything that calls for review.
    #[default]
    All,
    /// Documents with data, but for those that this reviewer has set aside.
    ToCheck(String),
    /// Documents of which nothing was read, but for those that this reviewer has set aside.
    Unreadable(String),
    /// Documents that this reviewer has set aside.
    Later(String),
}

impl ReviewPart {
    /// Whose part it is; empty for everything.
    fn reviewer(&self) -> &str {
        match self {
            Self::All => "",
            Self::ToCheck(who) | Self::Unreadable(who) | Self::Later(who) => who,
        }
    }

    /// Whether its documents were set aside; `None` does not matter.
    fn is_set_aside(&self) -> Option<bool> {
        match self {
            Self::All => None,
            Self::ToCheck(_) | Self::Unreadable(_) => Some(false),
            Self::Later(_) => Some(true),
        }
    }

    /// Whether its documents have data; `None` does not matter.
    fn has_data(&self) -> Option<bool> {
        match self {
            Self::All | Self::Later(_) => None,
            Self::ToCheck(_) => Some(true),
            Self::Unreadable(_) => Some(false),
        }
    }
}

/// A document as a reviewer sees it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReviewCase {
    /// Id of the document.
    pub document_id: Uuid,
    /// Where the original lies.
    pub file_path: String,
    /// The name the file had with its sender.
    pub original_name: Option<String>,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// Whether it calls for review.
    pub needs_human_review: bool,
    /// Why: names of gate rules and reason codes.
    pub review_reasons: Vec<String>,
    /// The document's data.
    #[schema(value_type = Value)]
    pub document_data: Option<Value>,
    /// The state that a decision is about: it holds only while this is so.
    #[serde(with = "time::serde::rfc3339")]
    pub version: OffsetDateTime,
    /// Id of the newest ingestion that was not cancelled.
    pub ingestion_id: Option<Uuid>,
    /// Its status.
    pub status: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// Its kind, if it is known.
    pub kind: Option<String>,
    /// The ingestion's data, whole or in part.
    #[schema(value_type = Value)]
    pub ingestion_data: Option<Value>,
    /// Where its transcript lies.
    pub transcription_file_path: Option<String>,
    /// The reviewer who has it open.
    pub held: Option<ReviewHold>,
    /// A first person's decision that waits for a second person's.
    pub pending: Option<PendingDecision>,
    /// The newest [`MAX_REVISIONS`] decisions, oldest first, without their data.
    pub revisions: Vec<DocumentRevision>,
}

/// A decision that holds only once a second person has said the same.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PendingDecision {
    /// Number of its row in `document_revision`.
    #[serde(skip)]
    pub id: i64,
    /// The first person.
    pub reviewer: String,
    /// `accepted` or `corrected`.
    pub decision: String,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub decided_at: OffsetDateTime,
    /// The document's new data.
    pub data: Value,
}

/// One decision about a document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Revision)]
pub struct DocumentRevision {
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub decided_at: OffsetDateTime,
    /// Who.
    pub reviewer: String,
    /// `accepted`, `corrected` or `rejected`; `undone`: the one before does not hold.
    pub decision: String,
    /// The reviewer's words; may be empty.
    pub why: String,
    /// It holds only once a second person has said the same.
    pub awaits_second: bool,
    /// Of a decision by a second person: who was the first.
    pub first_by: Option<String>,
    /// Fields whose values the decision changed; of a list, its name.
    pub changed_fields: Vec<String>,
}

/// A document that a person decided about.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedDocument {
    /// Id of the document.
    pub document_id: Uuid,
    /// Where the original lies.
    pub file_path: String,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// Kind of the newest ingestion, if it is known.
    pub kind: Option<String>,
    /// The data of the newest decision; `None`: it was rejected.
    pub data: Option<Value>,
    /// Where the transcript of the newest ingestion lies.
    pub transcription_file_path: Option<String>,
}

/// A reviewer's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    /// The data is right as it is.
    Accepted,
    /// Other data is right.
    Corrected,
    /// It is no document to be recorded.
    Rejected,
    /// The decision before does not hold.
    Undone,
}

impl ReviewDecision {
    /// The text in the row.
    pub fn code(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Corrected => "corrected",
            Self::Rejected => "rejected",
            Self::Undone => "undone",
        }
    }
}

/// Up to `limit` documents that call for review, in the order that is asked for, after `after` in the
/// order of age.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_reviews(
    db: &Db,
    wanted: &ReviewFilter,
    limit: u32,
    after: Option<Uuid>,
) -> Result<Vec<ReviewRow>> {
    let (by_amount, looked_at) = wanted.order.compared(limit);
    let found = sqlx::query_as!(
        ReviewRow,
        r#"
WITH waiting AS MATERIALIZED (
SELECT d.id AS document_id, d.file_path, d.original_name,
    COALESCE(d.tenant, newest.tenant) AS tenant, newest.kind,
    d.review_reasons, d.corrected_at IS NOT NULL AS decided_before, d.updated_at AS since,
    newest.status, l.reviewer AS held_by, l.taken_at AS held_since,
    COALESCE(d.structured_data, newest.structured_data) AS data
FROM document d
LEFT JOIN review_lease l ON l.document_id = d.id AND l.expires_at > (SELECT docmill_now())
LEFT JOIN LATERAL (
    SELECT i.status, i.kind, i.tenant, i.structured_data FROM ingestion i
    WHERE i.document_id = d.id AND i.status <> 'cancelled'
    ORDER BY i.created_at DESC, i.id DESC LIMIT 1
) AS newest ON true
WHERE d.needs_human_review
  AND ($1::text IS NULL OR COALESCE(d.tenant, newest.tenant) = $1)
  AND ($2::text IS NULL OR newest.kind = $2)
  AND ($3::text IS NULL OR $3 = ANY (d.review_reasons))
  AND ($4::uuid IS NULL
    OR (d.updated_at, d.id) > ((SELECT p.updated_at FROM document p WHERE p.id = $4), $4))
  AND ($8::boolean IS NULL
    OR $8 = (COALESCE(d.structured_data, newest.structured_data) IS NOT NULL))
  AND ($9::boolean IS NULL OR $9 = EXISTS (SELECT 1 FROM review_later a
    WHERE a.document_id = d.id AND a.reviewer = $10 AND a.until > (SELECT docmill_now())))
  AND ($11::uuid[] IS NULL OR d.id = ANY ($11))
ORDER BY d.updated_at, d.id LIMIT $5
)
SELECT w.document_id AS "document_id!", w.file_path AS "file_path!",
    w.original_name AS "original_name?", w.tenant AS "tenant?", w.kind AS "kind?",
    w.review_reasons AS "review_reasons!", w.decided_before AS "decided_before!",
    w.since AS "since!", w.status AS "status?", w.held_by AS "held_by?",
    w.held_since AS "held_since?", stake.amount AS "amount?",
    CASE WHEN jsonb_typeof(w.data) = 'object' THEN w.data ->> 'currency' END AS "currency?"
FROM waiting w
CROSS JOIN LATERAL (
    SELECT max(n::numeric)::float8 AS amount
    FROM jsonb_path_query(CASE WHEN jsonb_typeof(w.data) = 'object' THEN w.data ELSE '{}' END,
        'strict $.* ? (@.type() == "number")') AS n
) AS stake
ORDER BY CASE WHEN $6 AND jsonb_typeof(w.data) = 'object' THEN w.data ->> 'currency' END NULLS LAST,
    CASE WHEN $6 THEN stake.amount END DESC NULLS LAST, w.since, w.document_id LIMIT $7
"#,
        wanted.tenant,
        wanted.kind,
        wanted.reason,
        after,
        i64::from(looked_at),
        by_amount,
        i64::from(limit),
        wanted.part.has_data(),
        wanted.part.is_set_aside(),
        wanted.part.reviewer(),
        wanted.documents.as_deref(),
    );
    found.fetch_all(db.pool()).await.context("listing documents to review")
}

/// The document of an ingestion as a reviewer sees it; `None` if it is gone.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_review_case(db: &Db, ingestion: IngestionId) -> Result<Option<ReviewCase>> {
    let found = sqlx::query!(
        r#"
SELECT d.id AS document_id, d.file_path, d.original_name,
    COALESCE(d.tenant, newest.tenant) AS tenant, d.needs_human_review, d.review_reasons,
    d.structured_data AS document_data, d.updated_at AS version, newest.id AS "ingestion_id?",
    newest.status AS "status?", newest.reason, newest.kind,
    newest.structured_data AS ingestion_data, newest.transcription_file_path,
    l.reviewer AS "held_by?", l.taken_at AS "held_since?", l.expires_at AS "held_until?"
FROM ingestion named
JOIN document d ON d.id = named.document_id
LEFT JOIN review_lease l ON l.document_id = d.id AND l.expires_at > (SELECT docmill_now())
LEFT JOIN LATERAL (
    SELECT i.* FROM ingestion i
    WHERE i.document_id = d.id AND i.status <> 'cancelled'
    ORDER BY i.created_at DESC, i.id DESC LIMIT 1
) AS newest ON true
WHERE named.id = $1
"#,
        ingestion.0,
    )
    .fetch_optional(db.pool())
    .await
    .context("reading a document to be reviewed")?;
    let Some(row) = found else { return Ok(None) };
    let revisions = list_revisions(db, row.document_id).await?;
    let held = match (row.held_by, row.held_since, row.held_until) {
        (Some(reviewer), Some(since), Some(until)) => Some(ReviewHold { reviewer, since, until }),
        _ => None,
    };
    let pending = decisions::find_pending(db.pool(), row.document_id).await?;
    Ok(Some(ReviewCase {
        held,
        pending,
        document_id: row.document_id,
        file_path: row.file_path,
        original_name: row.original_name,
        tenant: row.tenant,
        needs_human_review: row.needs_human_review,
        review_reasons: row.review_reasons,
        document_data: row.document_data,
        version: row.version,
        ingestion_id: row.ingestion_id,
        status: row.status,
        reason: row.reason,
        kind: row.kind,
        ingestion_data: row.ingestion_data,
        transcription_file_path: row.transcription_file_path,
        revisions,
    }))
}

async fn list_revisions(db: &Db, document: Uuid) -> Result<Vec<DocumentRevision>> {
    sqlx::query_as!(
        DocumentRevision,
        r#"WITH newest AS (
            SELECT * FROM document_revision WHERE document_id = $1 ORDER BY id DESC LIMIT $2)
        SELECT r.decided_at, r.reviewer, r.decision, r.why, r.awaits_second, r.first_by,
            ARRAY(SELECT COALESCE(b.key, a.key) COLLATE "C"
                FROM jsonb_each(CASE jsonb_typeof(r.data_before)
                    WHEN 'object' THEN r.data_before ELSE '{}' END) AS b
                FULL JOIN jsonb_each(CASE jsonb_typeof(r.data_after)
                    WHEN 'object' THEN r.data_after ELSE '{}' END) AS a ON a.key = b.key
                WHERE a.value IS DISTINCT FROM b.value ORDER BY 1) AS "changed_fields!"
        FROM newest r ORDER BY r.id"#,
        document,
        MAX_REVISIONS,
    )
    .fetch_all(db.pool())
    .await
    .context("reading earlier decisions")
}

/// Up to `limit` documents about which a decision of people holds, in the order of their ids, after `after`.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_decided(db: &Db, after: Uuid, limit: u32) -> Result<Vec<DecidedDocument>> {
    sqlx::query_as!(
        DecidedDocument,
        r#"
WITH decided AS MATERIALIZED (
    SELECT DISTINCT r.document_id FROM document_revision r
    WHERE r.document_id > $1 AND NOT r.awaits_second AND r.undoes IS NULL
      AND NOT EXISTS (SELECT 1 FROM document_revision u
        WHERE u.document_id = r.document_id AND u.undoes = r.id)
    ORDER BY r.document_id LIMIT $2
)
SELECT d.id AS document_id, d.file_path, COALESCE(d.tenant, newest.tenant) AS tenant,
    newest.kind AS "kind?", last.data_after AS "data?",
    newest.transcription_file_path AS "transcription_file_path?"
FROM decided x JOIN document d ON d.id = x.document_id
JOIN LATERAL (
    SELECT r.data_after FROM document_revision r
    WHERE r.document_id = d.id AND NOT r.awaits_second AND r.undoes IS NULL
      AND NOT EXISTS (SELECT 1 FROM document_revision u
        WHERE u.document_id = r.document_id AND u.undoes = r.id)
    ORDER BY r.id DESC LIMIT 1
) AS last ON true
LEFT JOIN LATERAL (
    SELECT i.kind, i.tenant, i.transcription_file_path FROM ingestion i
    WHERE i.document_id = d.id AND i.status <> 'cancelled'
    ORDER BY i.created_at DESC, i.id DESC LIMIT 1
) AS newest ON true
ORDER BY d.id
"#,
        after,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing decided documents")
}
