//! Registering documents and ingestions from our own command line (`submit`). Events of the store
//! are registered by the ledger.
//!
//! Insert, commit, then send: a message must never be ahead of its row.

use std::collections::BTreeMap;

use sqlx::types::Json;

use crate::db::{Context, Db};
use crate::fault::Result;
use crate::model::{DocumentId, IngestionId, Priority, Status};

/// A document to be registered.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// Its id.
    pub id: DocumentId,
    /// Where the original lies: a key, or `s3://bucket/key`.
    pub file_path: String,
    /// The name the file had with the person who sent it.
    pub original_name: Option<String>,
    /// SHA-256 of the original, in hex.
    pub sha256: Option<String>,
    /// Bytes.
    pub size: Option<u64>,
    /// On whose behalf.
    pub tenant: Option<String>,
    /// The producer's own labels.
    pub tags: BTreeMap<String, String>,
}

/// An ingestion to be registered.
#[derive(Debug, Clone)]
pub struct NewIngestion {
    /// Its id: the body of the message that is sent afterwards.
    pub id: IngestionId,
    /// The document; it must be registered.
    pub document: DocumentId,
    /// Kind of document, if it is known.
    pub kind: Option<String>,
    /// On whose behalf.
    pub tenant: Option<String>,
    /// How urgent.
    pub priority: Priority,
}

/// A document that holds given content already, and its newest ingestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The document.
    pub document: DocumentId,
    /// Where it lies.
    pub file_path: String,
    /// Its newest ingestion, if it has one.
    pub ingestion: Option<(IngestionId, Status)>,
}

/// Registers a document; one with this id that is there already stays as it is.
///
/// # Errors
/// No answer from Postgres, or a value that its CHECKs refuse.
pub async fn register_document(db: &Db, document: &NewDocument) -> Result<()> {
    sqlx::query!(
        "INSERT INTO document (id, file_path, original_name, sha256, size_bytes, tenant, tags)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
        document.id.0,
        document.file_path,
        document.original_name,
        document.sha256,
        document.size.map(|size| i64::try_from(size).unwrap_or(i64::MAX)),
        document.tenant,
        Json(&document.tags) as _,
    )
    .execute(db.pool())
    .await
    .context("registering a document")?;
    Ok(())
}

/// Registers an ingestion; one with this id that is there already stays as it is (`false`).
///
/// # Errors
/// No answer from Postgres, or an unknown document.
pub async fn register_ingestion(db: &Db, ingestion: &NewIngestion) -> Result<bool> {
    let done = sqlx::query!(
        "INSERT INTO ingestion (id, document_id, kind, tenant, priority)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
        ingestion.id.0,
        ingestion.document.0,
        ingestion.kind,
        ingestion.tenant,
        ingestion.priority.code(),
    )
    .execute(db.pool())
    .await
    .context("registering an ingestion")?;
    Ok(done.rows_affected() > 0)
}

/// The newest document of the same tenant that holds this content, so that submitting a file
/// twice makes one document.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_by_sha256(db: &Db, sha256: &str, tenant: Option<&str>) -> Result<Option<Known>> {
    let row = sqlx::query!(
        r#"SELECT d.id, d.file_path, i.id AS "ingestion?", i.status AS "status?"
        FROM document d
        LEFT JOIN LATERAL (
            SELECT id, status FROM ingestion WHERE document_id = d.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i ON true
        WHERE d.sha256 = $1 AND d.tenant IS NOT DISTINCT FROM $2
        ORDER BY d.created_at DESC, d.id DESC LIMIT 1"#,
        sha256,
        tenant,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for known content")?;
    Ok(row.map(|row| Known {
        document: DocumentId(row.id),
        file_path: row.file_path,
        ingestion: row
            .ingestion
            .zip(row.status.as_deref().and_then(Status::from_code))
            .map(|(id, status)| (IngestionId(id), status)),
    }))
}
