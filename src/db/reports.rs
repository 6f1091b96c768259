//! Read-only answers for operators: one ingestion, or many by filter.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use super::registration::{labels, status_of};
use super::{Context, Db};
use crate::fault::Result;
use crate::model::{DocumentId, IngestionId, Status};

/// One ingestion as operators see it.
#[derive(Debug, Clone, Serialize)]
pub struct IngestionView {
    /// Its id.
    pub ingestion_id: IngestionId,
    /// Its document.
    pub document_id: DocumentId,
    /// What the file was called, else the last part of its path.
    pub name: String,
    /// Where the original lies.
    pub file_path: Option<String>,
    /// SHA-256 of the original in hex, once known.
    pub sha256: Option<String>,
    /// The producer's labels.
    pub tags: Vec<String>,
    /// Where it stands.
    pub status: Status,
    /// While in progress: queued, leased, deferred, parked or orphaned.
    pub state: Option<String>,
    /// While in progress: what it waits for.
    pub explanation: Option<String>,
    /// Why not completed.
    pub reason: Option<String>,
    /// Counts and limits for people.
    pub detail: Option<String>,
    /// How far the newest claim came.
    pub stage: Option<String>,
    /// Who holds it, or held it last.
    pub worker: Option<String>,
    /// Kind of document.
    pub kind: Option<String>,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Which reader produced the data.
    pub reader: Option<String>,
    /// Model, if one was asked.
    pub model: Option<String>,
    /// Whether a person has to look.
    pub needs_human_review: bool,
    /// Why.
    pub review_reasons: Vec<String>,
    /// Pages read.
    pub pages: Option<i32>,
    /// Quality of the transcript, 0 to 1.
    pub quality: Option<f64>,
    /// Tokens into the model.
    pub input_tokens: Option<i64>,
    /// Tokens out of it.
    pub output_tokens: Option<i64>,
    /// Attempts, those of before a reopening included.
    pub attempts: i32,
    /// Claims that ended without a word.
    pub crashes: i32,
    /// When it was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub completed_at: Option<OffsetDateTime>,
    /// Not before this it is tried again.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// The data, whole or partial.
    pub structured_data: Option<Value>,
}

/// One attempt of an ingestion.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptView {
    /// Number of the claim.
    pub claim: i64,
    /// How it ended.
    pub outcome: String,
    /// Whether the ingestion ended with it.
    pub last: bool,
    /// Whether it counted against the limit.
    pub counted: bool,
    /// How far it came.
    pub stage: Option<String>,
    /// Who made it.
    pub worker: Option<String>,
    /// When it began.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339")]
    pub ended_at: OffsetDateTime,
    /// Counts and limits for people.
    pub detail: Option<String>,
}

/// Which ingestions; what is `None` or empty is not asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// These and no others.
    pub ids: Option<Vec<IngestionId>>,
    /// Of this status.
    pub status: Option<Status>,
    /// In progress, and there: queued, leased, deferred, parked or orphaned.
    pub state: Option<String>,
    /// Ended for this reason.
    pub reason: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Only those that a person has to look at.
    pub review: bool,
    /// Registered within this time.
    pub since: Option<Duration>,
    /// At most so many.
    pub limit: u32,
}

/// The ingestions that the filter lets through, newest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list(db: &Db, filter: &Filter) -> Result<Vec<IngestionView>> {
    let ids: Option<Vec<Uuid>> = filter.ids.as_ref().map(|ids| ids.iter().map(|id| id.0).collect());
    let rows = sqlx::query!(
        r#"
SELECT i.id, i.document_id, i.status, i.reason, i.detail, i.stage, i.worker, i.kind, i.tenant,
    i.reader, i.extraction_model AS model, i.needs_human_review, i.review_reasons, i.pages,
    i.transcription_quality_score AS quality, i.extraction_input_tokens AS input_tokens,
    i.extraction_output_tokens AS output_tokens, i.attempt_count, i.crashes, i.created_at,
    i.completed_at, i.next_attempt_at, i.structured_data,
    d.file_path AS "file_path?", d.original_name, d.tags AS "tags?",
    COALESCE(i.sha256, d.sha256) AS sha256,
    f.state AS "state?", f.explanation AS "explanation?"
FROM ingestion i
LEFT JOIN document d ON d.id = i.document_id
LEFT JOIN ops_in_flight f ON f.ingestion_id = i.id
WHERE ($1::uuid[] IS NULL OR i.id = ANY ($1))
  AND ($2::text IS NULL OR i.status = $2)
  AND ($3::text IS NULL OR f.state = $3)
  AND ($4::text IS NULL OR i.reason = $4)
  AND ($5::text IS NULL OR i.kind = $5)
  AND ($6::text IS NULL OR i.tenant = $6)
  AND (NOT $7 OR i.needs_human_review)
  AND ($8::float8 IS NULL OR i.created_at > docmill_now() - make_interval(secs => $8))
ORDER BY i.created_at DESC, i.id DESC
LIMIT $9
"#,
        ids.as_deref() as _,
        filter.status.map(Status::code),
        filter.state,
        filter.reason,
        filter.kind,
        filter.tenant,
        filter.review,
        filter.since.map(|since| since.as_secs_f64()),
        i64::from(filter.limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing ingestions")?;
    rows.into_iter()
        .map(|row| {
            Ok(IngestionView {
                ingestion_id: IngestionId(row.id),
                document_id: DocumentId(row.document_id),
                name: name_of(row.original_name, row.file_path.as_deref()),
                file_path: row.file_path,
                sha256: row.sha256,
                tags: row.tags.as_ref().map(labels).unwrap_or_default(),
                status: status_of(&row.status)?,
                state: row.state,
                explanation: row.explanation,
                reason: row.reason,
                detail: row.detail,
                stage: row.stage,
                worker: row.worker,
                kind: row.kind,
                tenant: row.tenant,
                reader: row.reader,
                model: row.model,
                needs_human_review: row.needs_human_review,
                review_reasons: row.review_reasons,
                pages: row.pages,
                quality: row.quality,
                input_tokens: row.input_tokens,
                output_tokens: row.output_tokens,
                attempts: row.attempt_count,
                crashes: row.crashes,
                created_at: row.created_at,
                completed_at: row.completed_at,
                next_attempt_at: row.next_attempt_at,
                structured_data: row.structured_data,
            })
        })
        .collect()
}

fn name_of(original: Option<String>, path: Option<&str>) -> String {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    original.filter(|name| !name.is_empty()).or_else(|| path.map(last)).unwrap_or_default()
}

/// Every attempt of an ingestion, oldest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn attempts(db: &Db, id: IngestionId) -> Result<Vec<AttemptView>> {
    sqlx::query_as!(
        AttemptView,
        r#"SELECT claims AS claim, outcome, final AS "last", counted, stage, worker, started_at,
            ended_at, detail
        FROM attempt WHERE ingestion_id = $1 ORDER BY claims"#,
        id.0,
    )
    .fetch_all(db.pool())
    .await
    .context("listing attempts")
}

/// The ingestions that an operator may mean: the one with this id, else those of the document with
/// this id, newest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_by_id(db: &Db, id: Uuid) -> Result<Vec<IngestionId>> {
    let found = sqlx::query_scalar!(
        "SELECT id FROM ingestion WHERE id = $1 OR document_id = $1
         ORDER BY (id = $1) DESC, created_at DESC, id DESC LIMIT 100",
        id,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for an id")?;
    let exact = found.first() == Some(&id);
    Ok(found.into_iter().map(IngestionId).take(if exact { 1 } else { 100 }).collect())
}

/// The ingestions of documents whose SHA-256 begins with `prefix` (hex in lower case), newest
/// first.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_by_sha256(db: &Db, prefix: &str) -> Result<Vec<IngestionId>> {
    let found = sqlx::query_scalar!(
        "SELECT i.id FROM ingestion i JOIN document d ON d.id = i.document_id
         WHERE d.sha256 LIKE $1 || '%' ORDER BY i.created_at DESC, i.id DESC LIMIT 100",
        prefix,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a SHA-256")?;
    Ok(found.into_iter().map(IngestionId).collect())
}
