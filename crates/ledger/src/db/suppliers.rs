//! The memory of suppliers (`supplier_memory`): learned with a decision or a completion, looked up by
//! keys of one tenant, forgotten by operators.
//!
//! A row counts only while the decision that taught it stands: after an undo, a rejection or another
//! correction it teaches nothing, whoever made that.

use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::connection::statements::StatementTransaction;
use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use crate::supplier::{LessonSource, MAX_DOCUMENTS, RememberedDocument, SupplierLesson};
use docmill_core::fault::Result;

/// Bytes of a document's data as JSON; of larger data lists and objects are left out.
const MAX_DATA_BYTES: i32 = 32 << 10;
/// Suppliers that one document's keys may lead to.
const MAX_SUPPLIERS: i64 = 20;

/// Facts that a person's decision confirms.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecidedLesson<'a> {
    /// The document decided about.
    pub(super) document: Uuid,
    /// Its ingestion.
    pub(super) ingestion: Uuid,
    /// The remembered facts.
    pub(super) lesson: &'a SupplierLesson,
    /// The decision.
    pub(super) source: LessonSource,
    /// When it was made.
    pub(super) decided_at: OffsetDateTime,
}

/// Remembers a document by a person's decision, in the decision's own transaction.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn learn_decision(
    connection: &mut StatementTransaction,
    decided: &DecidedLesson<'_>,
) -> Result<()> {
    let DecidedLesson { document, ingestion, lesson, source, decided_at } = *decided;
    sqlx::query!(
        "INSERT INTO supplier_memory AS m (document_id, ingestion_id, tenant, supplier, keys, kind,
             source, corrected_fields, decided_at, learned_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, ARRAY(
                 SELECT COALESCE(a.key, b.key)
                 FROM jsonb_each((SELECT CASE jsonb_typeof(i.structured_data)
                     WHEN 'object' THEN i.structured_data ELSE '{}' END
                     FROM ingestion i WHERE i.id = $2)) AS b
                 FULL JOIN jsonb_each((SELECT CASE jsonb_typeof(d.structured_data)
                     WHEN 'object' THEN d.structured_data ELSE '{}' END
                     FROM document d WHERE d.id = $1)) AS a ON a.key = b.key
                 WHERE $7 = 'corrected' AND a.value IS DISTINCT FROM b.value),
             $8, $8
         ON CONFLICT (document_id) DO UPDATE SET
             ingestion_id = excluded.ingestion_id, tenant = excluded.tenant,
             supplier = excluded.supplier, keys = excluded.keys, kind = excluded.kind,
             source = excluded.source, corrected_fields = excluded.corrected_fields,
             decided_at = excluded.decided_at, learned_at = excluded.learned_at",
        document,
        ingestion,
        lesson.tenant,
        lesson.supplier,
        &lesson.keys,
        lesson.kind,
        source.code(),
        decided_at,
    )
    .execute(&mut *connection)
    .await
    .context("remembering a supplier")?;
    // Rows locked by another connection are left for the next lesson.
    sqlx::query!(
        "WITH worn AS MATERIALIZED (
             SELECT m.document_id FROM supplier_memory m JOIN (
                 SELECT x.document_id FROM supplier_memory x
                 WHERE x.tenant = $1 AND x.supplier = $2
                 ORDER BY x.learned_at DESC, x.document_id OFFSET $3) AS old USING (document_id)
             FOR UPDATE OF m SKIP LOCKED)
         DELETE FROM supplier_memory m USING worn w WHERE m.document_id = w.document_id",
        lesson.tenant,
        lesson.supplier,
        MAX_DOCUMENTS,
    )
    .execute(connection)
    .await
    .context("forgetting the oldest documents of a supplier")?;
    Ok(())
}

/// A document's keys, by which the memory of its tenant is searched.
#[derive(Debug, Serialize)]
pub(super) struct MemoryQuery {
    tenant: String,
    keys: Vec<String>,
}

impl MemoryQuery {
    /// Bytes of data that its answer may hold.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "eight million")]
    pub(super) const MAX_ANSWER_BYTES: usize =
        (MAX_DATA_BYTES as i64 * MAX_SUPPLIERS * MAX_DOCUMENTS) as usize;

    pub(super) fn new(tenant: Option<&str>, keys: &[String]) -> Self {
        Self { tenant: tenant.unwrap_or_default().to_owned(), keys: keys.to_vec() }
    }
}

/// The newest remembered documents of every supplier of the tenant that has one of these keys.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_remembered(
    db: &Db,
    tenant: Option<&str>,
    keys: &[String],
) -> Result<Vec<RememberedDocument>> {
    let found = find_remembered_of_all(db, &[MemoryQuery::new(tenant, keys)]).await?;
    Ok(found.into_iter().flatten().collect())
}

/// The same for many queries at once: an answer for each, in their order.
pub(super) async fn find_remembered_of_all(
    db: &Db,
    queries: &[MemoryQuery],
) -> Result<Vec<Vec<RememberedDocument>>> {
    let rows = sqlx::query!(
        r#"
WITH asked AS MATERIALIZED (
    SELECT q.place AS query, q.tenant, s.supplier
    FROM ROWS FROM (
        jsonb_to_recordset($1::jsonb) AS (tenant text, keys text[])
    ) WITH ORDINALITY AS q (tenant, keys, place)
    CROSS JOIN LATERAL (
        SELECT DISTINCT m.supplier FROM supplier_memory m
        -- Found by the keys: by the index of tenants, all rows of a large one would be read.
        WHERE m.keys && q.keys AND m.tenant || '' = q.tenant LIMIT $2) AS s
    -- All there are: read as one row by the planner (see `claims.rs`).
    WHERE q.place BETWEEN 1 AND 1000000
), numbered AS (
    SELECT a.query, m.*, d.structured_data AS data, row_number() OVER (
        PARTITION BY a.query, m.supplier ORDER BY m.learned_at DESC, m.document_id) AS place
    FROM asked a
    JOIN supplier_memory m ON m.tenant = a.tenant AND m.supplier = a.supplier
    JOIN document d ON d.id = m.document_id
    WHERE jsonb_typeof(d.structured_data) = 'object' AND CASE m.source
        WHEN 'exact' THEN d.corrected_at IS NULL AND d.completed_ingestion_id = m.ingestion_id
            AND d.needs_human_review IS NOT TRUE
        ELSE d.corrected_at = m.decided_at END
)
SELECT n.query AS "query!", n.document_id AS "document_id!", n.keys AS "keys!", n.kind AS "kind!",
    n.source AS "source!", n.learned_at AS "learned_at!",
    CASE WHEN octet_length(n.data::text) <= $4 THEN n.data ELSE (
        SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(n.data)
        WHERE jsonb_typeof(value) NOT IN ('array', 'object')) END AS "data!",
    i.transcription_file_path AS "transcript?"
FROM numbered n LEFT JOIN ingestion i ON i.id = n.ingestion_id
WHERE n.place <= $3
ORDER BY n.query, n.learned_at DESC, n.document_id
"#,
        sqlx::types::Json(queries) as _,
        MAX_SUPPLIERS,
        MAX_DOCUMENTS,
        MAX_DATA_BYTES,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a known supplier")?;
    let mut found: Vec<Vec<RememberedDocument>> = queries.iter().map(|_| Vec::new()).collect();
    for row in rows {
        // Queries are counted from one.
        let place = usize::try_from(row.query - 1).unwrap_or(usize::MAX);
        let Some(of_query) = found.get_mut(place) else { continue };
        of_query.push(RememberedDocument {
            document_id: row.document_id,
            keys: row.keys,
            kind: row.kind,
            source: LessonSource::from_code(&row.source),
            learned_at: row.learned_at,
            data: into_object(row.data),
            transcript: row.transcript,
        });
    }
    Ok(found)
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Suppliers of a tenant that operators have removed from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgottenPart<'a> {
    /// Every supplier.
    All,
    /// Every document with one of these keys.
    Keys(&'a [String]),
}

/// Forgets suppliers of a tenant, and writes down who did it. Returns how many documents are no longer
/// remembered; the documents stay.
///
/// # Errors
/// No answer from Postgres.
pub async fn forget_suppliers(
    db: &Db,
    tenant: Option<&str>,
    part: ForgottenPart<'_>,
    by: &AuditNote,
) -> Result<u64> {
    let keys = match part {
        ForgottenPart::All => None,
        ForgottenPart::Keys(keys) => Some(keys),
    };
    let gone = sqlx::query_scalar!(
        r#"
WITH meant AS MATERIALIZED (
    SELECT document_id FROM supplier_memory
    WHERE tenant = $1 AND ($2::text[] IS NULL OR keys && $2)
    ORDER BY document_id FOR UPDATE
), gone AS (
    DELETE FROM supplier_memory m USING meant x WHERE m.document_id = x.document_id
    RETURNING m.document_id
), noted AS (
    INSERT INTO operator_action (operator, action, target, why, before)
    SELECT $3, 'erase', 'memory:' || $1, $4, jsonb_build_object(
        'documents', (SELECT count(*) FROM gone), 'whole_tenant', $2::text[] IS NULL)
)
SELECT count(*) AS "count!" FROM gone
"#,
        tenant.unwrap_or_default(),
        keys,
        by.operator,
        by.why,
    )
    .fetch_one(db.pool())
    .await
    .context("forgetting suppliers")?;
    Ok(u64::try_from(gone).unwrap_or_default())
}

/// A remembered document as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryRow {
    /// Id of the document.
    pub document_id: Uuid,
    /// Its kind.
    pub kind: String,
    /// `accepted` or `corrected` by a person, or `exact`.
    pub source: String,
    /// The fields that a person corrected.
    pub corrected_fields: Vec<String>,
    /// When it was learned.
    #[serde(with = "time::serde::rfc3339")]
    pub learned_at: OffsetDateTime,
}

/// Up to `limit` remembered documents of a tenant, those with one of the keys, or all; the newest
/// first.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_memory(
    db: &Db,
    tenant: Option<&str>,
    keys: Option<&[String]>,
    limit: u32,
) -> Result<Vec<MemoryRow>> {
    sqlx::query_as!(
        MemoryRow,
        "SELECT document_id, kind, source, corrected_fields, learned_at FROM supplier_memory
         WHERE tenant = $1 AND ($2::text[] IS NULL OR keys && $2)
         ORDER BY learned_at DESC, document_id LIMIT $3",
        tenant.unwrap_or_default(),
        keys,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing remembered documents")
}
