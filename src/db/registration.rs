//! Documents that we upload ourselves. (Those that events name: `ledger::postgres`.)

use serde_json::Value;
use sqlx::types::Json;

use super::{Context, Db};
use crate::fault::{Error, Result};
use crate::model::{DocumentId, IngestionId, Status};

/// A document whose bytes are in the store, and its ingestion.
#[derive(Debug, Clone)]
pub struct Upload {
    /// Of the content, see [`DocumentId::of_content`].
    pub document: DocumentId,
    /// To be worked on.
    pub ingestion: IngestionId,
    /// Key in the store.
    pub file_path: String,
    /// What the file was called.
    pub original_name: String,
    /// SHA-256 in hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// Kind of document, if known.
    pub kind: Option<String>,
    /// Whose it is, if anybody's.
    pub tenant: Option<String>,
    /// The producer's own labels.
    pub tags: Vec<String>,
}

/// What is in the database now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// The ingestion's status.
    pub status: Status,
    /// Whether it was made just now.
    pub new: bool,
}

/// Inserts document and ingestion unless they are there; repeating it changes nothing.
///
/// # Errors
/// No answer from Postgres.
pub async fn register_upload(db: &Db, upload: &Upload) -> Result<Registered> {
    // A row that another transaction is just inserting is in neither answer: look again.
    for _ in 0..2 {
        if let Some(found) = register_once(db, upload).await? {
            return Ok(found);
        }
    }
    Err(Error::transient("the ingestion is being registered by somebody else"))
}

async fn register_once(db: &Db, upload: &Upload) -> Result<Option<Registered>> {
    let row = sqlx::query!(
        r#"
WITH made_document AS (
    INSERT INTO document (id, file_path, original_name, sha256, size_bytes, tenant, tags)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (id) DO NOTHING
), made_ingestion AS (
    INSERT INTO ingestion (id, document_id, kind, tenant)
    VALUES ($8, $1, $9, $6)
    ON CONFLICT (id) DO NOTHING
    RETURNING status
)
SELECT status AS "status!", true AS "new!" FROM made_ingestion
UNION ALL
SELECT status, false FROM ingestion WHERE id = $8
LIMIT 1
"#,
        upload.document.0,
        upload.file_path,
        // Postgres has no NUL in texts; file names have none either.
        upload.original_name.replace('\0', ""),
        upload.sha256,
        i64::try_from(upload.size).unwrap_or(i64::MAX),
        upload.tenant,
        Json(&upload.tags) as _,
        upload.ingestion.0,
        upload.kind,
    )
    .fetch_optional(db.pool())
    .await
    .context("registering a document")?;
    row.map(|row| Ok(Registered { status: status_of(&row.status)?, new: row.new })).transpose()
}

/// The newest ingestion of a document.
///
/// # Errors
/// No answer from Postgres.
pub async fn newest_ingestion(
    db: &Db,
    document: DocumentId,
) -> Result<Option<(IngestionId, Status)>> {
    let row = sqlx::query!(
        "SELECT id, status FROM ingestion WHERE document_id = $1
         ORDER BY created_at DESC, id DESC LIMIT 1",
        document.0,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for a document")?;
    row.map(|row| Ok((IngestionId(row.id), status_of(&row.status)?))).transpose()
}

/// A status as it is stored.
pub(super) fn status_of(code: &str) -> Result<Status> {
    Status::from_code(code)
        .ok_or_else(|| Error::internal(format!("a row has the unknown status `{code}`")))
}

/// Labels as they are stored: an array of texts, whatever else a producer wrote.
pub(super) fn labels(tags: &Value) -> Vec<String> {
    let texts = tags.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(ToOwned::to_owned).collect()
}
