//! Quality of results by the decisions of people: straight-through share, reasons that led to a
//! change, corrections by field, reader and supplier. Over the newest rows, so that it takes as long
//! however many there are.

use serde::Serialize;
use utoipa::ToSchema;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Ended ingestions evaluated, the newest of all tenants.
pub const MAX_ENDED: i64 = 5_000;
/// Decisions evaluated, the newest of all tenants.
pub const MAX_DECISIONS: i64 = 2_000;
/// Rows of each table.
const MAX_ROWS: i64 = 30;

/// Documents that ended, and how many of them without a person.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReaderThroughput {
    /// The kind; empty: none was recognised.
    pub kind: String,
    /// The reader: `einvoice`, `rules`, or `llm:` and the model; empty: none.
    pub reader: String,
    /// Documents that completed or failed.
    pub ended: i64,
    /// Those of them that completed without a flag.
    pub straight_through: i64,
}

/// A reason for reviews, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReasonYield {
    /// Name of the gate rule, or code.
    pub reason: String,
    /// Decisions about documents that had it.
    pub decided: i64,
    /// Those of them that changed or rejected the data.
    pub changed: i64,
}

/// How often a field was corrected.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FieldCorrections {
    /// The field.
    pub field: String,
    /// The reader: `einvoice`, `rules`, or `llm:` and the model; empty: none.
    pub reader: String,
    /// Decisions that changed its value.
    pub corrections: i64,
}

/// How often a supplier's documents were corrected.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SupplierCorrections {
    /// Name of the supplier, as it was decided.
    pub supplier: String,
    /// Decisions about documents of the supplier.
    pub decided: i64,
    /// Those of them that changed the data.
    pub changed: i64,
}

/// The effort of decisions about documents of a kind, as pages measured it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct KindEffort {
    /// The kind; empty: none was recognised.
    pub kind: String,
    /// Decisions whose effort was measured.
    pub measured: i64,
    /// Median of the seconds from the opening of the page to the decision.
    pub seconds: f64,
    /// Median of the keys pressed.
    pub keys: f64,
}

/// How many documents of a kind a reader had, or a rule flagged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindCount {
    /// Whether it is about a reader; otherwise about a reason for reviews.
    pub is_reader: bool,
    /// The reader: `einvoice`, `rules`, or `llm:` and the model; or name of the gate rule, or code.
    pub name: String,
    /// Documents that ended.
    pub documents: i64,
    /// Those of them that a person has to look at.
    pub flagged: i64,
}

/// Who read the documents of a kind within 30 days and which rules flagged them, of one tenant or of
/// all.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_kind(db: &Db, kind: &str, tenant: Option<&str>) -> Result<Vec<KindCount>> {
    sqlx::query_as!(
        KindCount,
        r#"
SELECT grouping(g.reader) = 0 AS "is_reader!", COALESCE(g.reader, g.rule) AS "name!",
    count(DISTINCT g.id) AS "documents!",
    count(DISTINCT g.id) FILTER (WHERE g.needs_human_review) AS "flagged!"
FROM (
    SELECT e.id, e.needs_human_review, concat_ws(':', e.reader, e.extraction_model) AS reader,
        COALESCE(split_part(reason, ':', 1), '') AS rule
    FROM (
        SELECT i.id, i.kind, i.tenant, i.status, i.needs_human_review, i.review_reasons, i.reader,
            i.extraction_model
        FROM ingestion i WHERE i.completed_at > (SELECT docmill_now()) - interval '30 days'
        ORDER BY i.completed_at DESC LIMIT $3
    ) AS e LEFT JOIN LATERAL unnest(e.review_reasons) AS reason ON true
    WHERE e.kind = $1 AND e.status <> 'cancelled' AND ($2::text IS NULL OR e.tenant = $2)
) AS g
GROUP BY GROUPING SETS ((g.reader), (g.rule)) ORDER BY 1 DESC, 3 DESC, 2
"#,
        kind,
        tenant,
        MAX_ENDED,
    )
    .fetch_all(db.pool())
    .await
    .context("counting documents of a kind")
}

/// The reasons for which people decided about documents of a kind within 30 days, and how often they
/// changed the value named, or where none is named anything; of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_kind_reasons(
    db: &Db,
    kind: &str,
    tenant: Option<&str>,
) -> Result<Vec<ReasonYield>> {
    sqlx::query_as!(
        ReasonYield,
        r#"
SELECT split_part(reason, ':', 1) AS "reason!", count(DISTINCT r.id) AS "decided!",
    count(DISTINCT r.id) FILTER (WHERE r.decision = 'rejected' OR CASE field WHEN ''
        THEN r.decision = 'corrected'
        ELSE COALESCE(r.data_before -> field, 'null') <> COALESCE(r.data_after -> field, 'null')
        END) AS "changed!"
FROM (
    SELECT x.id, x.document_id, x.ingestion_id, x.decided_at, x.decision, x.reasons_before,
        x.data_before, x.data_after, x.awaits_second
    FROM document_revision x ORDER BY x.id DESC LIMIT $3
) AS r CROSS JOIN LATERAL unnest(r.reasons_before) AS reason
CROSS JOIN LATERAL (SELECT split_part(regexp_replace(reason, '(\[|\.).*$', ''), ':', 2) AS field) AS f
WHERE r.decided_at > (SELECT docmill_now()) - interval '30 days' AND NOT r.awaits_second
  AND r.decision <> 'undone'
  AND (SELECT i.kind FROM ingestion i WHERE i.id = r.ingestion_id) = $1
  AND ($2::text IS NULL OR document_tenant(r.document_id) = $2)
GROUP BY 1
"#,
        kind,
        tenant,
        MAX_DECISIONS,
    )
    .fetch_all(db.pool())
    .await
    .context("counting reasons for reviews of a kind")
}

/// The straight-through share by kind and reader, of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn measure_throughput(db: &Db, tenant: Option<&str>) -> Result<Vec<ReaderThroughput>> {
    sqlx::query_as!(
        ReaderThroughput,
        r#"
SELECT COALESCE(e.kind, '') AS "kind!", concat_ws(':', e.reader, e.extraction_model) AS "reader!",
    count(*) AS "ended!",
    count(*) FILTER (WHERE e.status = 'completed' AND NOT e.needs_human_review)
        AS "straight_through!"
FROM (
    SELECT i.kind, i.reader, i.extraction_model, i.status, i.needs_human_review, i.tenant
    FROM ingestion i WHERE i.completed_at IS NOT NULL ORDER BY i.completed_at DESC LIMIT $2
) AS e
WHERE e.status <> 'cancelled' AND ($1::text IS NULL OR e.tenant = $1)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT $3
"#,
        tenant,
        MAX_ENDED,
        MAX_ROWS,
    )
    .fetch_all(db.pool())
    .await
    .context("measuring the straight-through share")
}

/// The reasons for reviews and how many led to a change, of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_reasons(db: &Db, tenant: Option<&str>) -> Result<Vec<ReasonYield>> {
    sqlx::query_as!(
        ReasonYield,
        r#"
SELECT split_part(reason, ':', 1) AS "reason!", count(DISTINCT r.id) AS "decided!",
    count(DISTINCT r.id) FILTER (WHERE r.decision <> 'accepted') AS "changed!"
FROM (
    SELECT x.id, x.document_id, x.decision, x.reasons_before, x.awaits_second, x.undoes
    FROM document_revision x ORDER BY x.id DESC LIMIT $2
) AS r CROSS JOIN LATERAL unnest(r.reasons_before) AS reason
WHERE NOT r.awaits_second AND r.undoes IS NULL
  AND ($1::text IS NULL OR document_tenant(r.document_id) = $1)
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $3
"#,
        tenant,
        MAX_DECISIONS,
        MAX_ROWS,
    )
    .fetch_all(db.pool())
    .await
    .context("counting reasons for reviews")
}

/// Corrections by field and reader, of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_corrections(db: &Db, tenant: Option<&str>) -> Result<Vec<FieldCorrections>> {
    sqlx::query_as!(
        FieldCorrections,
        r#"
SELECT changed.key AS "field!", concat_ws(':', i.reader, i.extraction_model) AS "reader!",
    count(*) AS "corrections!"
FROM (
    SELECT x.document_id, x.ingestion_id, x.decision, x.data_after, x.awaits_second
    FROM document_revision x ORDER BY x.id DESC LIMIT $2
) AS r
JOIN ingestion i ON i.id = r.ingestion_id
CROSS JOIN LATERAL (
    SELECT name AS key FROM (
        SELECT jsonb_object_keys(CASE jsonb_typeof(i.structured_data)
            WHEN 'object' THEN i.structured_data ELSE '{}' END)
        UNION
        SELECT jsonb_object_keys(CASE jsonb_typeof(r.data_after)
            WHEN 'object' THEN r.data_after ELSE '{}' END)
    ) AS names (name)
    WHERE COALESCE(i.structured_data -> name, 'null') <> COALESCE(r.data_after -> name, 'null')
) AS changed
WHERE r.decision = 'corrected' AND NOT r.awaits_second
  AND ($1::text IS NULL OR document_tenant(r.document_id) = $1)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT $3
"#,
        tenant,
        MAX_DECISIONS,
        MAX_ROWS,
    )
    .fetch_all(db.pool())
    .await
    .context("counting corrections by field")
}

/// Corrections by supplier, of one tenant or of all; `field`: the field of the supplier's name.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_suppliers(
    db: &Db,
    tenant: Option<&str>,
    field: &str,
) -> Result<Vec<SupplierCorrections>> {
    sqlx::query_as!(
        SupplierCorrections,
        r#"
SELECT r.supplier AS "supplier!", count(*) AS "decided!",
    count(*) FILTER (WHERE r.decision = 'corrected') AS "changed!"
FROM (
    SELECT x.document_id, x.decision, x.awaits_second, left(x.data_after ->> $3, 100) AS supplier
    FROM document_revision x ORDER BY x.id DESC LIMIT $2
) AS r
WHERE r.supplier IS NOT NULL AND r.decision IN ('accepted', 'corrected') AND NOT r.awaits_second
  AND ($1::text IS NULL OR document_tenant(r.document_id) = $1)
GROUP BY 1 ORDER BY 3 DESC, 2 DESC, 1 LIMIT $4
"#,
        tenant,
        MAX_DECISIONS,
        field,
        MAX_ROWS,
    )
    .fetch_all(db.pool())
    .await
    .context("counting corrections by supplier")
}

/// The median effort of decisions by kind, of one tenant or of all.
///
/// # Errors
/// No answer from Postgres.
pub async fn measure_effort(db: &Db, tenant: Option<&str>) -> Result<Vec<KindEffort>> {
    sqlx::query_as!(
        KindEffort,
        r#"
SELECT COALESCE(i.kind, '') AS "kind!", count(*) AS "measured!",
    percentile_cont(0.5) WITHIN GROUP (ORDER BY r.seconds_spent::float8) AS "seconds!",
    percentile_cont(0.5) WITHIN GROUP (ORDER BY r.keys_pressed::float8) AS "keys!"
FROM (
    SELECT x.document_id, x.ingestion_id, x.seconds_spent, x.keys_pressed
    FROM document_revision x ORDER BY x.id DESC LIMIT $2
) AS r
JOIN ingestion i ON i.id = r.ingestion_id
WHERE r.seconds_spent IS NOT NULL AND r.keys_pressed IS NOT NULL
  AND ($1::text IS NULL OR document_tenant(r.document_id) = $1)
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $3
"#,
        tenant,
        MAX_DECISIONS,
        MAX_ROWS,
    )
    .fetch_all(db.pool())
    .await
    .context("measuring the effort of decisions")
}
