//! The document that another one is taken for a duplicate of, exact or near.

use serde_json::Value;

use crate::db::{Db, SqlErrorContext};
use crate::duplicate_key::{DuplicateKeys, MAX_COMPARED, NearKeys};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId};

/// The other document of an invoice.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarDocument {
    /// Its ingestion.
    pub ingestion: IngestionId,
    /// The name it had with its sender.
    pub name: Option<String>,
    /// Its data, as far as decided.
    pub data: Value,
}

/// The keys that another document is searched by.
#[derive(Debug, Clone, Default)]
pub struct SimilarityKeys {
    /// Of supplier and number.
    pub exact: Option<DuplicateKeys>,
    /// Of what a near duplicate shares.
    pub near: Option<NearKeys>,
}

/// The newest completed result of another document of the tenant that shares one of these keys, among
/// `MAX_COMPARED` of each; an exact one before a near one.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_similar(
    db: &Db,
    document: DocumentId,
    tenant: Option<&str>,
    keys: &SimilarityKeys,
) -> Result<Option<SimilarDocument>> {
    let exact = keys.exact.iter().flat_map(|keys| [keys.current.clone(), keys.earlier.clone()]);
    let exact: Vec<String> = exact.collect();
    let near = keys.near.unwrap_or_default();
    let found = sqlx::query!(
        r#"
WITH found AS (
    (SELECT s.id, 0 AS place FROM (
        SELECT i.id, i.completed_at FROM ingestion i
        WHERE i.duplicate_key = ANY ($3) AND i.document_id <> $1 AND i.status = 'completed'
          AND COALESCE(i.tenant, '') = COALESCE($2, '') LIMIT $6) AS s
     ORDER BY s.completed_at DESC, s.id DESC LIMIT 1)
    UNION ALL
    (SELECT s.id, 1 FROM (
        SELECT i.id, i.completed_at FROM ingestion i
        WHERE i.near_amount = $4 AND i.document_id <> $1 AND i.status = 'completed'
          AND COALESCE(i.tenant, '') = COALESCE($2, '') LIMIT $6) AS s
     ORDER BY s.completed_at DESC, s.id DESC LIMIT 1)
    UNION ALL
    (SELECT s.id, 2 FROM (
        SELECT i.id, i.completed_at FROM ingestion i
        WHERE i.near_number = $5 AND i.document_id <> $1 AND i.status = 'completed'
          AND COALESCE(i.tenant, '') = COALESCE($2, '') LIMIT $6) AS s
     ORDER BY s.completed_at DESC, s.id DESC LIMIT 1)
)
SELECT i.id, d.original_name AS "name?",
    COALESCE(d.structured_data, i.structured_data, '{}') AS "data!"
FROM found f JOIN ingestion i ON i.id = f.id LEFT JOIN document d ON d.id = i.document_id
ORDER BY f.place LIMIT 1
"#,
        document.0,
        tenant,
        &exact,
        near.amount,
        near.number,
        MAX_COMPARED,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for a similar document")?;
    Ok(found.map(|row| SimilarDocument {
        ingestion: IngestionId(row.id),
        name: row.name,
        data: row.data,
    }))
}
