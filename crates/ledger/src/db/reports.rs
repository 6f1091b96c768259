//! Queries about ingestions for people and programs: one, many, counts, in flight.
//!
//! Read-only but for the counts of `hours`. Status, reason and stage are given as the text of the row, so that what a newer
//! program wrote is shown as well.

pub mod audit;
pub mod costs;
pub mod families;
pub mod field_history;
pub mod hours;
pub mod inspect;
pub mod message_record;
pub mod overview;
pub mod quality;
pub mod rights;
pub mod row_security;
pub mod search;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::{IngestionId, IngestionStatus};

/// An ingestion with what one wants to know of its document.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Ingestion)]
pub struct IngestionRow {
    /// Id of the ingestion.
    pub id: Uuid,
    /// Id of its document.
    pub document_id: Uuid,
    /// Where the original lies.
    pub file_path: String,
    /// The name the file had with its sender.
    pub original_name: Option<String>,
    /// Current status, as [`docmill_core::model::IngestionStatus::code`] writes it.
    pub status: String,
    /// Why it failed, as [`docmill_core::model::OutcomeReason::code`] writes it.
    pub reason: Option<String>,
    /// Codes and counts for operators; never document content.
    pub detail: Option<String>,
    /// The stage that the newest claim reached.
    pub stage: Option<String>,
    /// Kind of document, if it is known.
    pub kind: Option<String>,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// Number of attempts that count against the limit.
    pub attempt_count: i32,
    /// Claims since the last reopening that ended without an outcome.
    pub crashes: i32,
    /// When it was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When the newest claim began.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When the ingestion ended; `None` while it has not.
    #[serde(with = "time::serde::rfc3339::option")]
    pub completed_at: Option<OffsetDateTime>,
    /// The earliest time of the next attempt, if there is one.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// End of the current claim's lease.
    #[serde(with = "time::serde::rfc3339::option")]
    pub lease_expires_at: Option<OffsetDateTime>,
    /// Name of the worker that holds the claim, or last held it.
    pub worker: Option<String>,
    /// Whether a person has to review it.
    pub needs_human_review: bool,
    /// Why a person has to review it: names of gate rules and reason codes.
    pub review_reasons: Vec<String>,
    /// Which reader produced the data.
    pub reader: Option<String>,
    /// The model, if one was called.
    pub extraction_model: Option<String>,
    /// Prompt tokens of the extraction.
    pub extraction_input_tokens: Option<i64>,
    /// Tokens that the model generated for the extraction.
    pub extraction_output_tokens: Option<i64>,
    /// Quality of the transcript, 0 to 1.
    pub transcription_quality_score: Option<f64>,
    /// Key of the transcript.
    pub transcription_file_path: Option<String>,
    /// Key of the repaired pages, if there are any.
    pub preprocessed_file_path: Option<String>,
    /// Key of the model's reply.
    pub extraction_output_file_path: Option<String>,
    /// SHA-256 of the original, in hex.
    pub sha256: Option<String>,
    /// Number of pages that were read.
    pub pages: Option<i32>,
    /// The gate's estimate that the data is right, 0 to 1.
    pub gate_score: Option<f32>,
    /// Whether the reader reports a complete reading.
    pub extraction_successful: Option<bool>,
    /// The reader's own confidence: `high`, `medium` or `low`.
    pub extraction_confidence: Option<String>,
    /// Fields that the reader says are not on the document.
    pub missing_fields: Option<Vec<String>>,
    /// The extracted data; partial if the gate refused it.
    #[schema(value_type = Value)]
    pub structured_data: Option<Value>,
}

/// One claim and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub struct AttemptRow {
    /// Number of the claim.
    pub claims: i64,
    /// Name of the worker that held the claim.
    pub worker: Option<String>,
    /// When it was claimed.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When its end was written.
    #[serde(with = "time::serde::rfc3339")]
    pub ended_at: OffsetDateTime,
    /// The stage that the attempt reached.
    pub stage: Option<String>,
    /// How the attempt ended, as [`docmill_core::model::AttemptOutcome::code`] writes it.
    pub outcome: String,
    /// Whether the ingestion ended with it.
    pub r#final: bool,
    /// Whether it counts against the limit.
    pub counted: bool,
    /// Codes and counts for operators; never document content.
    pub detail: Option<String>,
}

/// Which ingestions to list; what is `None` does not matter.
#[derive(Debug, Clone, Default)]
pub struct IngestionFilter {
    /// Only ingestions with this status.
    pub status: Option<IngestionStatus>,
    /// Only ingestions with this reason code.
    pub reason: Option<String>,
    /// Only ingestions of this kind of document.
    pub kind: Option<String>,
    /// Only ingestions of this tenant.
    pub tenant: Option<String>,
    /// Only ingestions that a person has to look at, or only the others.
    pub needs_review: Option<bool>,
    /// Registered at or after.
    pub since: Option<OffsetDateTime>,
}

/// A document with its data, as it is exported.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExportedDocument {
    /// Id of its newest ingestion of the kind; the cursor of the next page.
    pub ingestion_id: Uuid,
    /// Id of the document.
    pub document_id: Uuid,
    /// Where the original lies.
    pub file_path: String,
    /// The name the file had with its sender.
    pub original_name: Option<String>,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// Kind of the ingestion, if it is known.
    pub kind: Option<String>,
    /// When that ingestion was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Whether the document calls for review.
    pub needs_human_review: bool,
    /// Why: names of gate rules and reason codes.
    pub review_reasons: Vec<String>,
    /// The document's data.
    pub data: Value,
}

/// One row of the view `ops_in_flight`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InFlightIngestion {
    /// Id of the ingestion.
    pub ingestion_id: Uuid,
    /// Where its document lies.
    pub file_path: String,
    /// `queued`, `leased`, `deferred`, `parked` or `orphaned`.
    pub state: String,
    /// The reason in words.
    pub explanation: String,
    /// The stage that its claim has reached.
    pub stage: Option<String>,
    /// Name of the worker that holds the claim.
    pub worker: Option<String>,
    /// Number of attempts that count against the limit.
    pub attempt_count: i32,
    /// When it was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The ingestions that an ID names, newest first, at most `limit`: of an ingestion id one; of a
/// document id those of the document; of a SHA-256 or the beginning of one (at least 6 digits)
/// those of the documents with such content. Nothing for a text that is none of these.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_ingestions(db: &Db, id: &str, limit: u32) -> Result<Vec<IngestionRow>> {
    let id = id.trim().to_ascii_lowercase();
    let uuid = Uuid::parse_str(&id).ok();
    let hex = id.len() >= 6 && id.len() <= 64 && id.chars().all(|c| c.is_ascii_hexdigit());
    // 32 digits are also a UUID without hyphens; both readings are tried.
    let prefix = hex.then(|| format!("{id}%"));
    let found = sqlx::query_scalar!(
        r#"SELECT i.id FROM ingestion i WHERE i.id IN (
            SELECT $1::uuid
            UNION ALL SELECT id FROM ingestion WHERE document_id = $1
            UNION ALL SELECT o.id FROM ingestion o JOIN document c ON c.id = o.document_id
                WHERE c.sha256 LIKE $2)
        ORDER BY i.created_at DESC, i.id DESC LIMIT $3"#,
        uuid,
        prefix,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for an ingestion")?;
    let ids: Vec<_> = found.into_iter().map(IngestionId).collect();
    ingestions_by_id(db, &ids).await
}

/// These ingestions, newest first; what is not there is left out.
///
/// # Errors
/// No answer from Postgres.
pub async fn ingestions_by_id(db: &Db, ids: &[IngestionId]) -> Result<Vec<IngestionRow>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query_as!(
        IngestionRow,
        r#"SELECT i.id, i.document_id, COALESCE(d.file_path, '') AS "file_path!",
            d.original_name AS "original_name?", i.status, i.reason, i.detail, i.stage, i.kind,
            i.tenant, i.attempt_count, i.crashes, i.created_at, i.started_at, i.completed_at,
            i.next_attempt_at, i.lease_expires_at, i.worker, i.needs_human_review,
            i.review_reasons, i.reader, i.extraction_model, i.extraction_input_tokens,
            i.extraction_output_tokens, i.transcription_quality_score,
            i.transcription_file_path, i.preprocessed_file_path,
            i.extraction_output_file_path, i.sha256, i.pages,
            i.gate_score, i.extraction_successful, i.extraction_confidence,
            i.missing_fields, i.structured_data
        FROM ingestion i LEFT JOIN document d ON d.id = i.document_id
        WHERE i.id = ANY ($1) ORDER BY i.created_at DESC, i.id DESC"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("reading ingestions")
}

/// Why these wait, if they are not terminal.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_waiting(db: &Db, ids: &[IngestionId]) -> Result<Vec<InFlightIngestion>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query_as!(
        InFlightIngestion,
        r#"SELECT ingestion_id AS "ingestion_id!", COALESCE(file_path, '') AS "file_path!",
            state AS "state!", explanation AS "explanation!", stage, worker,
            attempt_count AS "attempt_count!", created_at AS "created_at!"
        FROM ops_in_flight WHERE ingestion_id = ANY ($1)"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("reading why ingestions wait")
}

/// The attempts of an ingestion, oldest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_attempts(db: &Db, id: IngestionId) -> Result<Vec<AttemptRow>> {
    sqlx::query_as!(
        AttemptRow,
        r#"SELECT claims, worker, started_at, ended_at, stage, outcome, final, counted, detail
        FROM attempt WHERE ingestion_id = $1 ORDER BY claims"#,
        id.0,
    )
    .fetch_all(db.pool())
    .await
    .context("reading attempts")
}

/// Where on the pages values of an ingestion's data were found, if its gate came to a verdict.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_grounding(db: &Db, id: IngestionId) -> Result<Option<Value>> {
    let found = sqlx::query_scalar!("SELECT grounded FROM ingestion WHERE id = $1", id.0)
        .fetch_optional(db.pool())
        .await
        .context("reading where values stand")?;
    Ok(found.flatten())
}

/// Facts of an ingestion's e-invoice beside its data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EinvoiceFacts {
    /// The verdict of official rules, if it was checked by any.
    pub rules: Option<Value>,
    /// The parts that an answer to its sender names, if it has them.
    pub reference: Option<Value>,
}

/// The facts of an ingestion's e-invoice.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_einvoice_facts(db: &Db, id: IngestionId) -> Result<EinvoiceFacts> {
    let found = sqlx::query_as!(
        EinvoiceFacts,
        "SELECT einvoice_rules AS rules, einvoice_reference AS reference
        FROM ingestion WHERE id = $1",
        id.0,
    )
    .fetch_optional(db.pool())
    .await
    .context("reading facts of an e-invoice")?;
    Ok(found.unwrap_or_default())
}

/// Match of an ingestion with the tenant's master data.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_master_match(db: &Db, id: IngestionId) -> Result<Option<Value>> {
    let found = sqlx::query_scalar!("SELECT master_match FROM ingestion WHERE id = $1", id.0)
        .fetch_optional(db.pool())
        .await
        .context("reading a match of master data")?;
    Ok(found.flatten())
}

/// Fields that hooks added to an ingestion, by their names.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_hook_fields(db: &Db, id: IngestionId) -> Result<Option<Value>> {
    let found = sqlx::query_scalar!("SELECT hooks FROM ingestion WHERE id = $1", id.0)
        .fetch_optional(db.pool())
        .await
        .context("reading fields of hooks")?;
    Ok(found.flatten())
}

/// Ingestions that pass the filter, newest first, at most `limit`, after the given one.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_ingestions(
    db: &Db,
    filter: &IngestionFilter,
    limit: u32,
    after: Option<IngestionId>,
) -> Result<Vec<IngestionRow>> {
    ingestions_by_id(db, &list_ingestion_ids(db, filter, limit, after).await?).await
}

/// The ids alone of what [`list_ingestions`] lists.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_ingestion_ids(
    db: &Db,
    filter: &IngestionFilter,
    limit: u32,
    after: Option<IngestionId>,
) -> Result<Vec<IngestionId>> {
    let found = sqlx::query_scalar!(
        r#"SELECT i.id FROM ingestion i
        WHERE ($1::text IS NULL OR i.status = $1)
          AND ($2::text IS NULL OR i.reason = $2)
          AND ($3::text IS NULL OR i.kind = $3)
          AND ($4::text IS NULL OR i.tenant = $4)
          AND ($5::boolean IS NULL OR i.needs_human_review = $5)
          AND ($6::timestamptz IS NULL OR i.created_at >= $6)
          AND ($7::uuid IS NULL OR (i.created_at, i.id) <
              (SELECT a.created_at, a.id FROM ingestion a WHERE a.id = $7))
        ORDER BY i.created_at DESC, i.id DESC LIMIT $8"#,
        filter.status.map(|status| status.code()),
        filter.reason,
        filter.kind,
        filter.tenant,
        filter.needs_review,
        filter.since,
        after.map(|id| id.0),
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("choosing ingestions")?;
    Ok(found.into_iter().map(IngestionId).collect())
}

/// Documents that carry data, each once by its newest ingestion of the filter's kind, newest first, at
/// most `limit`, after the given ingestion. Of the filter kind, tenant and time count.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_exported_documents(
    db: &Db,
    filter: &IngestionFilter,
    limit: u32,
    after: Option<IngestionId>,
) -> Result<Vec<ExportedDocument>> {
    sqlx::query_as!(
        ExportedDocument,
        r#"SELECT i.id AS ingestion_id, i.document_id, d.file_path, d.original_name, d.tenant,
            i.kind, i.created_at, d.needs_human_review, d.review_reasons,
            d.structured_data AS "data!"
        FROM ingestion i JOIN document d ON d.id = i.document_id
        WHERE i.kind IS NOT DISTINCT FROM $1
          AND ($2::text IS NULL OR i.tenant = $2)
          AND ($3::timestamptz IS NULL OR i.created_at >= $3)
          AND ($4::uuid IS NULL OR (i.created_at, i.id) <
              (SELECT a.created_at, a.id FROM ingestion a WHERE a.id = $4))
          AND d.structured_data IS NOT NULL
          AND NOT EXISTS (SELECT FROM ingestion n WHERE n.document_id = i.document_id
              AND n.kind IS NOT DISTINCT FROM $1
              AND (n.created_at, n.id) > (i.created_at, i.id))
        ORDER BY i.created_at DESC, i.id DESC LIMIT $5"#,
        filter.kind,
        filter.tenant,
        filter.since,
        after.map(|id| id.0),
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing documents to export")
}

/// Those of these ingestions that carry data, newest first, with the data as a person decided it or
/// else as it was read.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_exported_documents(
    db: &Db,
    ids: &[IngestionId],
) -> Result<Vec<ExportedDocument>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query_as!(
        ExportedDocument,
        r#"SELECT i.id AS ingestion_id, i.document_id, d.file_path, d.original_name, i.tenant,
            i.kind, i.created_at, d.needs_human_review, d.review_reasons, carried.data AS "data!"
        FROM ingestion i JOIN document d ON d.id = i.document_id
        CROSS JOIN LATERAL (SELECT CASE
            WHEN d.corrected_at IS NOT NULL AND NOT EXISTS (SELECT FROM ingestion n
                WHERE n.document_id = i.document_id AND n.status <> 'cancelled'
                  AND (n.created_at, n.id) > (i.created_at, i.id))
            THEN d.structured_data ELSE i.structured_data END AS data) AS carried
        WHERE i.id = ANY ($1) AND jsonb_typeof(carried.data) = 'object'
        ORDER BY i.created_at DESC, i.id DESC"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("reading documents to export")
}

/// The newest ingestion of each of these documents that was not cancelled.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_newest_ingestions(db: &Db, documents: &[Uuid]) -> Result<Vec<IngestionId>> {
    let found = sqlx::query_scalar!(
        r#"SELECT newest.id AS "id!" FROM unnest($1::uuid[]) AS wanted (document)
        CROSS JOIN LATERAL (SELECT i.id, i.created_at FROM ingestion i
            WHERE i.document_id = wanted.document AND i.status <> 'cancelled'
            ORDER BY i.created_at DESC, i.id DESC LIMIT 1) AS newest
        ORDER BY newest.created_at DESC, newest.id DESC"#,
        documents,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for the newest ingestions of documents")?;
    Ok(found.into_iter().map(IngestionId).collect())
}
