//! Registering documents and ingestions from our own command line (`submit`), many at a time.
//! Events of the store are registered by the ledger.
//!
//! Insert, commit, then send: a message must never be ahead of its row. One statement per batch
//! and not COPY: rows that are there already must be passed over, which COPY can do only by way of
//! a temporary table, and one for each batch would fill the catalogue with dead rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId, IngestionStatus, Priority};

/// A document to be registered.
#[derive(Debug, Clone, Serialize)]
pub struct NewDocument {
    /// Id of the document.
    #[serde(rename = "document")]
    pub id: DocumentId,
    /// Where the original lies: a key, or `s3://bucket/key`.
    pub file_path: String,
    /// The name the file had with the person who sent it.
    pub original_name: Option<String>,
    /// SHA-256 of the original, in hex.
    pub sha256: Option<String>,
    /// Size of the original in bytes, if it is known.
    pub size: Option<u64>,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// The producer's own labels.
    pub tags: BTreeMap<String, String>,
}

/// An ingestion to be registered.
#[derive(Debug, Clone, Serialize)]
pub struct NewIngestion {
    /// Its id: the body of the message that is sent afterwards.
    #[serde(rename = "ingestion")]
    pub id: IngestionId,
    /// Kind of document, if it is known.
    pub kind: Option<String>,
    /// How urgent the ingestion is.
    pub priority: Priority,
    /// The version of the object that is meant, where it lies in a bucket of the producer's.
    pub object_etag: Option<String>,
}

/// Both in the form the statement reads.
#[derive(Serialize)]
struct RegistrationRow<'a> {
    #[serde(flatten)]
    document: &'a NewDocument,
    #[serde(flatten)]
    ingestion: &'a NewIngestion,
}

/// A document that is there already, and its newest ingestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDocument {
    /// Id of the document.
    pub document: DocumentId,
    /// Where the original lies: a key, or `s3://bucket/key`.
    pub file_path: String,
    /// Its newest ingestion, if it has one.
    pub newest: Option<NewestIngestion>,
}

/// The newest ingestion of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestIngestion {
    /// Id of the ingestion.
    pub ingestion: IngestionId,
    /// Current status of the ingestion.
    pub status: IngestionStatus,
    /// The version of the object that it is about, if it was registered for an object.
    pub object_etag: Option<String>,
}

/// Registers documents, each with an ingestion, in one transaction; what is there already stays as
/// it is. Returns the ingestions that are new.
///
/// # Errors
/// No answer from Postgres, or a value that its CHECKs refuse: nothing is registered then.
pub async fn register_documents(
    db: &Db,
    all: &[(NewDocument, NewIngestion)],
) -> Result<HashSet<IngestionId>> {
    if all.is_empty() {
        return Ok(HashSet::new());
    }
    let rows: Vec<_> =
        all.iter().map(|(document, ingestion)| RegistrationRow { document, ingestion }).collect();
    let fresh = sqlx::query_scalar!(
        "WITH given AS MATERIALIZED (
            SELECT * FROM jsonb_to_recordset($1::jsonb) AS g (
                document uuid, ingestion uuid, file_path text, original_name text, sha256 text,
                size bigint, tenant text, tags jsonb, kind text, priority text, object_etag text)
        ), documents AS (
            INSERT INTO document (id, file_path, original_name, sha256, size_bytes, tenant, tags)
            SELECT DISTINCT ON (document)
                document, file_path, original_name, sha256, size, tenant, tags
            FROM given ORDER BY document
            ON CONFLICT (id) DO NOTHING
        )
        INSERT INTO ingestion (id, document_id, kind, tenant, priority, object_etag, object_size)
        SELECT DISTINCT ON (ingestion) ingestion, document, kind, tenant, priority, object_etag,
            CASE WHEN object_etag IS NOT NULL THEN size END
        FROM given ORDER BY ingestion
        ON CONFLICT (id) DO NOTHING
        RETURNING id",
        Json(rows) as _,
    )
    .fetch_all(db.pool())
    .await
    .context("registering documents")?;
    Ok(fresh.into_iter().map(IngestionId).collect())
}

/// The newest document of the tenant for each of these contents (SHA-256 in hex) that is known, so
/// that submitting a file twice makes one document.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_by_sha256(
    db: &Db,
    sha256: &[String],
    tenant: Option<&str>,
) -> Result<HashMap<String, KnownDocument>> {
    if sha256.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query!(
        r#"SELECT DISTINCT ON (d.sha256) d.sha256 AS "sha256!", d.id, d.file_path,
            i.id AS "ingestion?", i.status AS "status?", i.object_etag
        FROM document d
        LEFT JOIN LATERAL (
            SELECT id, status, object_etag FROM ingestion WHERE document_id = d.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i ON true
        WHERE d.sha256 = ANY ($1) AND d.tenant IS NOT DISTINCT FROM $2
        ORDER BY d.sha256, d.created_at DESC, d.id DESC"#,
        sha256,
        tenant,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for known content")?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let newest = newest_ingestion(row.ingestion, row.status, row.object_etag);
            let document = DocumentId(row.id);
            (row.sha256, KnownDocument { document, file_path: row.file_path, newest })
        })
        .collect())
}

/// Those of these documents that are registered.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_by_document(
    db: &Db,
    documents: &[DocumentId],
) -> Result<HashMap<DocumentId, KnownDocument>> {
    if documents.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = documents.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"SELECT d.id, d.file_path, i.id AS "ingestion?", i.status AS "status?", i.object_etag
        FROM document d
        LEFT JOIN LATERAL (
            SELECT id, status, object_etag FROM ingestion WHERE document_id = d.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i ON true
        WHERE d.id = ANY ($1)"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for known objects")?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let newest = newest_ingestion(row.ingestion, row.status, row.object_etag);
            let document = DocumentId(row.id);
            (document, KnownDocument { document, file_path: row.file_path, newest })
        })
        .collect())
}

fn newest_ingestion(
    id: Option<Uuid>,
    status: Option<String>,
    object_etag: Option<String>,
) -> Option<NewestIngestion> {
    let status = status.as_deref().and_then(IngestionStatus::from_code)?;
    Some(NewestIngestion { ingestion: IngestionId(id?), status, object_etag })
}
