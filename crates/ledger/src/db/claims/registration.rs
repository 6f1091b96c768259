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

use crate::db::connection::statements::StatementTransaction;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId, IngestionStatus, Priority};

const REGISTERING: &str = "registering documents";

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
    /// Read it even if another ingestion is about the same version.
    pub anew: bool,
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
    /// The tenant it belongs to; `None`: no tenant.
    pub tenant: Option<String>,
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
    /// Kind of document, as far as it is known.
    pub kind: Option<String>,
    /// Whether a worker has begun with it.
    pub begun: bool,
}

/// Registers documents, each with an ingestion, in one transaction. Existing rows stay and get only
/// the values that they lack: an event of the store may have come first, without tenant, kind,
/// labels and priority. An ingestion about the same version of the same object is not registered
/// twice, unless it is to be read anew. Returns the new ingestions.
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
    let mut transaction = db.pool().begin().await.context(REGISTERING)?;
    insert_documents(&mut transaction, &rows).await?;
    let fresh = insert_ingestions(&mut transaction, &rows).await?;
    complete_ingestions(&mut transaction, &rows).await?;
    transaction.commit().await.context(REGISTERING)?;
    Ok(fresh)
}

/// Locks every row, so that the registration of an event waits for us or we for it.
async fn insert_documents(
    connection: &mut StatementTransaction,
    rows: &[RegistrationRow<'_>],
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO document AS d
            (id, file_path, original_name, sha256, size_bytes, tenant, tags)
        SELECT DISTINCT ON (document)
            document, file_path, original_name, sha256, size, tenant, tags
        FROM jsonb_to_recordset($1::jsonb) AS g (
            document uuid, file_path text, original_name text, sha256 text, size bigint,
            tenant text, tags jsonb)
        ORDER BY document
        ON CONFLICT (id) DO UPDATE SET
            tenant = COALESCE(d.tenant, excluded.tenant),
            sha256 = COALESCE(d.sha256, excluded.sha256),
            original_name = COALESCE(d.original_name, excluded.original_name),
            size_bytes = COALESCE(d.size_bytes, excluded.size_bytes),
            tags = excluded.tags || d.tags",
        Json(rows) as _,
    )
    .execute(connection)
    .await
    .context(REGISTERING)?;
    Ok(())
}

async fn insert_ingestions(
    connection: &mut StatementTransaction,
    rows: &[RegistrationRow<'_>],
) -> Result<HashSet<IngestionId>> {
    let fresh = sqlx::query_scalar!(
        r#"WITH given AS MATERIALIZED (
            SELECT DISTINCT ON (ingestion) * FROM jsonb_to_recordset($1::jsonb) AS g (
                document uuid, ingestion uuid, size bigint, tenant text, kind text,
                priority text, object_etag text, anew boolean)
            ORDER BY ingestion
        )
        INSERT INTO ingestion (id, document_id, kind, tenant, priority, object_etag, object_size)
        SELECT ingestion, document, kind, tenant, priority, object_etag,
            CASE WHEN object_etag IS NOT NULL THEN size END
        FROM given g
        WHERE g.anew OR g.object_etag IS NULL OR NOT EXISTS (
            SELECT 1 FROM (
                SELECT i.status, i.object_etag FROM ingestion i
                WHERE i.document_id = g.document AND i.reason IS DISTINCT FROM 'superseded'
                ORDER BY i.created_at DESC, i.id DESC LIMIT 1) AS standing
            WHERE trim(BOTH '"' FROM standing.object_etag) = g.object_etag
              AND standing.status <> 'failed')
        ORDER BY ingestion
        ON CONFLICT (id) DO NOTHING
        RETURNING id"#,
        Json(rows) as _,
    )
    .fetch_all(connection)
    .await
    .context(REGISTERING)?;
    Ok(fresh.into_iter().map(IngestionId).collect())
}

/// Kind and priority are set only on ingestions that no worker has claimed yet; the tenant on all.
async fn complete_ingestions(
    connection: &mut StatementTransaction,
    rows: &[RegistrationRow<'_>],
) -> Result<()> {
    sqlx::query!(
        "WITH given AS MATERIALIZED (
            SELECT DISTINCT ON (document) * FROM jsonb_to_recordset($1::jsonb) AS g (
                document uuid, tenant text, kind text, priority text)
            ORDER BY document
        ), lacking AS MATERIALIZED (
            SELECT i.id, i.claims = 0 AND i.status = 'in-progress' AS untouched,
                g.tenant, g.kind, g.priority
            FROM ingestion i JOIN given g ON g.document = i.document_id
            WHERE (i.tenant IS NULL AND g.tenant IS NOT NULL)
               OR (i.claims = 0 AND i.status = 'in-progress'
                 AND ((i.kind IS NULL AND g.kind IS NOT NULL)
                   OR (i.priority = 'normal' AND g.priority <> 'normal')))
            ORDER BY i.id FOR NO KEY UPDATE OF i
        )
        UPDATE ingestion i SET
            tenant = COALESCE(i.tenant, l.tenant),
            kind = CASE WHEN l.untouched THEN COALESCE(i.kind, l.kind) ELSE i.kind END,
            priority = CASE WHEN l.untouched AND i.priority = 'normal'
                THEN l.priority ELSE i.priority END
        FROM lacking l WHERE i.id = l.id",
        Json(rows) as _,
    )
    .execute(connection)
    .await
    .context(REGISTERING)?;
    Ok(())
}

/// The newest document of the tenant for each of these contents (SHA-256 in hex) that is known, so
/// that submitting a file twice makes one document. Documents found in others do not count.
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
    let rows = sqlx::query_as!(
        KnownRow,
        r#"SELECT DISTINCT ON (d.sha256) d.sha256, d.id, d.file_path,
            i.id AS "ingestion?", i.status AS "status?", i.object_etag, i.kind,
            i.claims > 0 AS begun, d.tenant
        FROM document d
        LEFT JOIN LATERAL (
            SELECT id, status, object_etag, kind, claims FROM ingestion WHERE document_id = d.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i ON true
        WHERE d.sha256 = ANY ($1) AND d.tenant IS NOT DISTINCT FROM $2 AND d.parent_id IS NULL
        ORDER BY d.sha256, d.created_at DESC, d.id DESC"#,
        sha256,
        tenant,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for known content")?;
    let known = rows.into_iter().filter_map(|row| Some((row.sha256.clone()?, row.into_known())));
    Ok(known.collect())
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
    let rows = sqlx::query_as!(
        KnownRow,
        r#"SELECT d.sha256, d.id, d.file_path, i.id AS "ingestion?", i.status AS "status?",
            i.object_etag, i.kind, i.claims > 0 AS begun, d.tenant
        FROM document d
        LEFT JOIN LATERAL (
            SELECT id, status, object_etag, kind, claims FROM ingestion WHERE document_id = d.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i ON true
        WHERE d.id = ANY ($1)"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for known objects")?;
    let known = rows.into_iter().map(KnownRow::into_known);
    Ok(known.map(|known| (known.document, known)).collect())
}

/// A document and its newest ingestion as the queries return them.
struct KnownRow {
    sha256: Option<String>,
    id: Uuid,
    file_path: String,
    tenant: Option<String>,
    ingestion: Option<Uuid>,
    status: Option<String>,
    object_etag: Option<String>,
    kind: Option<String>,
    begun: Option<bool>,
}

impl KnownRow {
    fn into_known(self) -> KnownDocument {
        let status = self.status.as_deref().and_then(IngestionStatus::from_code);
        let newest = self.ingestion.zip(status).map(|(id, status)| NewestIngestion {
            ingestion: IngestionId(id),
            status,
            object_etag: self.object_etag,
            kind: self.kind,
            begun: self.begun.unwrap_or_default(),
        });
        let (document, file_path, tenant) = (DocumentId(self.id), self.file_path, self.tenant);
        KnownDocument { document, file_path, tenant, newest }
    }
}
