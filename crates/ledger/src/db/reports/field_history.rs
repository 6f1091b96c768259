//! Changes of a document's values: by decisions of people, and by later readings.

use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Readings, and decisions, that are compared: the newest.
const MAX_STEPS: i64 = 20;
/// Bytes of a value that is given whole, as JSON; of a longer one its beginning.
const MAX_VALUE_BYTES: i32 = 400;

/// One value that became another.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// When.
    pub changed_at: OffsetDateTime,
    /// The reviewer, or of a reading its reader.
    pub set_by: String,
    /// Of a reading: its model, if one was asked.
    pub model: Option<String>,
    /// `read`, or the decision: `accepted`, `corrected` or `undone`.
    pub cause: String,
    /// Whether it holds only once a second person has said the same.
    pub awaits_second: bool,
    /// The field.
    pub field: String,
    /// Of a list: the number of the entry, from 1.
    pub entry: Option<i64>,
    /// Of an object: the field in it.
    pub part: Option<String>,
    /// The value before; `None`: there was no such value.
    pub before: Option<Value>,
    /// The value from then on.
    pub after: Option<Value>,
}

/// The newest `limit` changes of a document's values, newest first. The first reading, and a rejection,
/// are none: they set or take all of them.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_field_changes(db: &Db, document: Uuid, limit: u32) -> Result<Vec<FieldChange>> {
    sqlx::query_as!(
        FieldChange,
        r#"WITH step AS (SELECT * FROM (SELECT i.completed_at AS at, i.reader AS who, i.extraction_model AS model,
            'read' AS cause, false AS awaits_second, i.structured_data AS after,
            lag(i.structured_data) OVER (ORDER BY i.created_at, i.id) AS before
        FROM (SELECT * FROM ingestion WHERE document_id = $1 ORDER BY created_at DESC LIMIT $2) AS i
        WHERE i.structured_data IS NOT NULL AND i.completed_at IS NOT NULL) AS o WHERE before IS NOT NULL
    UNION ALL
    SELECT r.decided_at, r.reviewer, NULL, r.decision, r.awaits_second,
        COALESCE(r.data_after, CASE WHEN r.undoes IS NOT NULL THEN i.structured_data END),
        COALESCE(r.data_before, i.structured_data)
    FROM (SELECT * FROM document_revision WHERE document_id = $1 ORDER BY id DESC LIMIT $2) AS r
    LEFT JOIN document_revision u ON u.id = r.undoes LEFT JOIN ingestion i
        ON i.id = COALESCE(r.ingestion_id, u.ingestion_id) WHERE r.decision <> 'rejected')
SELECT s.at AS "changed_at!", COALESCE(s.who, '') AS "set_by!", s.model AS "model?",
    s.cause AS "cause!", s.awaits_second AS "awaits_second!", f.name AS "field!", e.entry, p.part,
    CASE WHEN octet_length(p.before::text) <= $4 THEN p.before
        ELSE to_jsonb(left(p.before #>> '{}', 100) || '…') END AS "before?",
    CASE WHEN octet_length(p.after::text) <= $4 THEN p.after
        ELSE to_jsonb(left(p.after #>> '{}', 100) || '…') END AS "after?"
FROM step s
CROSS JOIN LATERAL (
    SELECT COALESCE(b.key, a.key) AS name, b.value AS before, a.value AS after
    FROM jsonb_each(CASE jsonb_typeof(s.before) WHEN 'object' THEN s.before ELSE '{}' END) AS b
    FULL JOIN jsonb_each(CASE jsonb_typeof(s.after) WHEN 'object' THEN s.after ELSE '{}' END) AS a
        ON a.key = b.key
    WHERE COALESCE(a.value, 'null') <> COALESCE(b.value, 'null')) AS f
CROSS JOIN LATERAL (
    SELECT NULL::bigint AS entry, f.before, f.after WHERE 'array' NOT IN (
        COALESCE(jsonb_typeof(f.before), ''), COALESCE(jsonb_typeof(f.after), ''))
    UNION ALL
    SELECT COALESCE(b.entry, a.entry), b.value, a.value FROM jsonb_array_elements(
        CASE jsonb_typeof(f.before) WHEN 'array' THEN f.before ELSE '[]' END)
        WITH ORDINALITY AS b (value, entry) FULL JOIN jsonb_array_elements(
        CASE jsonb_typeof(f.after) WHEN 'array' THEN f.after ELSE '[]' END)
        WITH ORDINALITY AS a (value, entry) ON a.entry = b.entry
    WHERE a.value IS DISTINCT FROM b.value) AS e
CROSS JOIN LATERAL (
    SELECT NULL::text AS part, e.before, e.after WHERE 'object' NOT IN (
        COALESCE(jsonb_typeof(e.before), ''), COALESCE(jsonb_typeof(e.after), ''))
    UNION ALL
    SELECT COALESCE(b.key, a.key), b.value, a.value
    FROM jsonb_each(CASE jsonb_typeof(e.before) WHEN 'object' THEN e.before ELSE '{}' END) AS b
    FULL JOIN jsonb_each(CASE jsonb_typeof(e.after) WHEN 'object' THEN e.after ELSE '{}' END) AS a
        ON a.key = b.key
    WHERE COALESCE(a.value, 'null') <> COALESCE(b.value, 'null')) AS p
ORDER BY s.at DESC, f.name, e.entry, p.part LIMIT $3"#,
        document,
        MAX_STEPS,
        i64::from(limit),
        MAX_VALUE_BYTES,
    )
    .fetch_all(db.pool())
    .await
    .context("reading changes of values")
}
