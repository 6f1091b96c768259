//! Finding documents by what people remember of them: names, paths, labels, hashes, suppliers,
//! numbers, totals. Read-only.
//!
//! Words are searched for anywhere in a value, which reads every document that is looked at: all of
//! them, or a piece of them, newest first ([`DocumentQuery::until`], [`find_piece_end`]). By hash or path
//! [`find_documents`] has indexes or ends early; [`find_by_keys`] has one for each key. Not promised:
//! ranking; the newest come first.

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// A document and its state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DocumentRow {
    /// Id of the document.
    pub id: Uuid,
    /// Where the original lies: a key, or `s3://bucket/key`.
    pub file_path: String,
    /// The name the file had with its sender.
    pub original_name: Option<String>,
    /// SHA-256 of the original, in hex.
    pub sha256: Option<String>,
    /// Size of the original in bytes.
    pub size_bytes: Option<i64>,
    /// The tenant the document belongs to; `None`: no tenant.
    pub tenant: Option<String>,
    /// Labels and their values.
    pub tags: Value,
    /// Supplier, as the data has it.
    pub supplier_name: Option<String>,
    /// Number, as the data has it.
    pub invoice_number: Option<String>,
    /// Whether a person has to review it.
    pub needs_human_review: bool,
    /// When it was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Id of its newest ingestion.
    pub ingestion_id: Option<Uuid>,
    /// Status of that ingestion.
    pub status: Option<String>,
    /// Reason code, if that ingestion failed.
    pub reason: Option<String>,
}

/// The conditions of a search; what is `None` or empty does not matter.
#[derive(Debug, Clone, Default)]
pub struct DocumentQuery {
    /// Each has to be part of the name, path, a label, the hash, the supplier or the number.
    pub words: Vec<String>,
    /// A label, with its value unless that is empty.
    pub tags: Vec<(String, String)>,
    /// SHA-256 in hex, or its beginning.
    pub sha256: Option<String>,
    /// Exactly this path or original name.
    pub path: Option<String>,
    /// Part of the supplier's name.
    pub supplier: Option<String>,
    /// Exactly this invoice number.
    pub number: Option<String>,
    /// Only documents of this tenant.
    pub tenant: Option<String>,
    /// Only documents that were registered no earlier than this one.
    pub until: Option<Uuid>,
}

/// The last document of a piece that a search looks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchedPiece {
    /// Its id.
    pub last: Uuid,
    /// When it was registered.
    pub registered: OffsetDateTime,
}

/// The last of the next `length` documents, newest first, that come after `after`; `None` if there are
/// fewer.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_piece_end(
    db: &Db,
    tenant: Option<&str>,
    after: Option<Uuid>,
    length: u32,
) -> Result<Option<SearchedPiece>> {
    sqlx::query_as!(
        SearchedPiece,
        r#"SELECT d.id AS last, d.created_at AS registered FROM document d
        WHERE ($1::text IS NULL OR d.tenant = $1)
          AND ($2::uuid IS NULL OR (d.created_at, d.id) <
              (SELECT a.created_at, a.id FROM document a WHERE a.id = $2))
        ORDER BY d.created_at DESC, d.id DESC OFFSET $3 LIMIT 1"#,
        tenant,
        after,
        i64::from(length.saturating_sub(1)),
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for the end of a piece of the documents")
}

/// Up to `limit` documents, newest first, that come after `after`.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_documents(
    db: &Db,
    wanted: &DocumentQuery,
    limit: u32,
    after: Option<Uuid>,
) -> Result<Vec<DocumentRow>> {
    let words: Vec<String> = wanted.words.iter().map(|word| contains_pattern(word)).collect();
    let (labels, values): (Vec<String>, Vec<String>) = wanted.tags.iter().cloned().unzip();
    sqlx::query_as!(
        DocumentRow,
        r#"SELECT d.id, d.file_path, d.original_name, d.sha256, d.size_bytes, d.tenant, d.tags,
            d.structured_data ->> 'supplier_name' AS supplier_name,
            d.structured_data ->> 'invoice_number' AS invoice_number,
            d.needs_human_review, d.created_at,
            i.id AS "ingestion_id?", i.status AS "status?", i.reason AS "reason?"
        FROM (SELECT * FROM document d
            WHERE (cardinality($1::text[]) = 0 OR concat_ws(E'\n', d.original_name, d.file_path,
                d.tags::text, d.sha256, d.structured_data ->> 'supplier_name',
                d.structured_data ->> 'invoice_number') ILIKE ALL ($1))
              AND (cardinality($2::text[]) = 0 OR NOT EXISTS (
                SELECT 1 FROM unnest($2::text[], $3::text[]) AS tag (label, wanted)
                WHERE NOT d.tags ? label OR (wanted <> '' AND d.tags ->> label <> wanted)))
              AND ($4::text IS NULL OR d.sha256 LIKE $4)
              AND ($5::text IS NULL OR d.file_path = $5 OR d.original_name = $5)
              AND ($6::text IS NULL OR d.structured_data ->> 'supplier_name' ILIKE $6)
              AND ($7::text IS NULL OR d.structured_data ->> 'invoice_number' = $7)
              AND ($8::text IS NULL OR d.tenant = $8)
              AND ($9::uuid IS NULL OR (d.created_at, d.id) <
                  (SELECT a.created_at, a.id FROM document a WHERE a.id = $9))
              AND ($11::uuid IS NULL OR (d.created_at, d.id) >=
                  (SELECT u.created_at, u.id FROM document u WHERE u.id = $11))
            ORDER BY d.created_at DESC, d.id DESC LIMIT $10) AS d
        LEFT JOIN LATERAL (
            SELECT id, status, reason FROM ingestion WHERE document_id = d.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i ON true
        ORDER BY d.created_at DESC, d.id DESC"#,
        &words,
        &labels,
        &values,
        wanted.sha256.as_deref().map(|sha256| prefix_pattern(&sha256.to_ascii_lowercase())),
        wanted.path,
        wanted.supplier.as_deref().map(contains_pattern),
        wanted.number,
        wanted.tenant,
        after,
        i64::from(limit),
        wanted.until,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for documents")
}

/// Documents with one of these keys that are examined.
const MAX_KEYED_DOCUMENTS: i64 = 200;

/// Keys of a document, each found by an index.
#[derive(Debug, Clone, Default)]
pub struct DocumentKeys {
    /// Its number, in any case, or exactly its path.
    pub text: String,
    /// The beginning of its supplier's name, in any case; `None` does not matter.
    pub supplier: Option<String>,
    /// Its total, as a plain decimal number; `None` does not matter.
    pub total: Option<String>,
    /// Only documents of this tenant.
    pub tenant: Option<String>,
}

/// The newest ingestions of the newest documents with one of these keys, at most `limit`, of at most two
/// hundred documents by each key.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_by_keys(db: &Db, wanted: &DocumentKeys, limit: u32) -> Result<Vec<IngestionId>> {
    let found = sqlx::query_scalar!(
        r#"WITH hit AS MATERIALIZED (
            (SELECT d.id FROM document d
             WHERE lower(left(d.structured_data ->> 'invoice_number', 100)) = lower(left($1, 100))
               AND ($4::text IS NULL OR d.tenant = $4) LIMIT $5)
            UNION
            (SELECT d.id FROM document d
             WHERE lower(left(d.structured_data ->> 'supplier_name', 100)) LIKE lower($2)
               AND ($4::text IS NULL OR d.tenant = $4)
             ORDER BY lower(left(d.structured_data ->> 'supplier_name', 100)) USING ~<~ LIMIT $5)
            UNION
            (SELECT d.id FROM document d
             WHERE CASE WHEN jsonb_typeof(d.structured_data -> 'total') = 'number'
                 AND length(d.structured_data ->> 'total') <= 30
                 THEN (d.structured_data ->> 'total')::numeric END = $3::text::numeric
               AND ($4::text IS NULL OR d.tenant = $4) LIMIT $5)
            UNION
            (SELECT d.id FROM document d
             WHERE d.file_path = $1 AND ($4::text IS NULL OR d.tenant = $4) LIMIT $5))
        SELECT i.id AS "id!" FROM hit h CROSS JOIN LATERAL (
            SELECT id, created_at FROM ingestion WHERE document_id = h.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS i
        ORDER BY i.created_at DESC, i.id DESC LIMIT $6"#,
        wanted.text,
        wanted.supplier.as_deref().map(prefix_pattern),
        wanted.total,
        wanted.tenant,
        MAX_KEYED_DOCUMENTS,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("looking for documents by key")?;
    Ok(found.into_iter().map(IngestionId).collect())
}

/// The pattern of texts that hold `text`, in which no sign means anything else.
fn contains_pattern(text: &str) -> String {
    format!("%{}%", escape_like(text))
}

fn prefix_pattern(text: &str) -> String {
    format!("{}%", escape_like(text))
}

fn escape_like(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for sign in text.chars() {
        if matches!(sign, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(sign);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_patterns_in_a_word_mean_themselves() {
        assert_eq!(contains_pattern("100%_a\\b"), "%100\\%\\_a\\\\b%");
        assert_eq!(prefix_pattern("A_"), "A\\_%");
    }
}
