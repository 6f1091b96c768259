//! Reads of running attempts: blocked content, duplicates, known suppliers, the time.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::coalesce::{BatchedStatement, RowAnswer};
use crate::db::suppliers::{MemoryQuery, find_remembered_of_all};
use crate::db::{Db, SqlErrorContext};
use crate::duplicate_key::{DuplicateKeys, MAX_COMPARED};
use crate::supplier::RememberedDocument;
use docmill_core::fault::{Error, Result};
use docmill_core::model::{DocumentId, IngestionId};

/// Bytes of remembered data in the answer of one statement.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// See [`crate::AttemptLedger::is_blocked`]; asked by SHA-256.
pub(super) struct BlockedLookup;

/// See [`crate::AttemptLedger::find_duplicate`].
pub(super) struct DuplicateLookup;

/// See [`crate::AttemptLedger::find_remembered`].
pub(super) struct MemoryLookup;

/// The keys of a search for a duplicate.
#[derive(Debug, Serialize)]
pub(super) struct DuplicateRow {
    key: String,
    earlier_key: String,
    document: Uuid,
    tenant: Option<String>,
}

impl DuplicateRow {
    pub(super) fn new(document: DocumentId, tenant: Option<&str>, keys: &DuplicateKeys) -> Self {
        Self {
            key: keys.current.clone(),
            earlier_key: keys.earlier.clone(),
            document: document.0,
            tenant: tenant.map(str::to_owned),
        }
    }
}

impl BatchedStatement for BlockedLookup {
    type Row = String;
    type Answer = bool;

    async fn run_together(db: &Db, hashes: &[String]) -> Result<Vec<RowAnswer<bool>>> {
        let blocked = sqlx::query_scalar!(
            r#"
SELECT b.sha256 FROM unnest($1::text[]) WITH ORDINALITY AS a (sha256, place)
JOIN blocked_content b ON b.sha256 = a.sha256
-- All there are: read as one row by the planner (see `claims.rs`).
WHERE a.place BETWEEN 1 AND 1000000
"#,
            hashes
        )
        .fetch_all(db.pool())
        .await
        .context("looking for blocked content")?;
        Ok(hashes.iter().map(|sha256| RowAnswer::Given(blocked.contains(sha256))).collect())
    }

    async fn run_alone(db: &Db, sha256: &String) -> Result<bool> {
        only_answer(Self::run_together(db, std::slice::from_ref(sha256)).await?)
    }
}

impl BatchedStatement for DuplicateLookup {
    type Row = DuplicateRow;
    type Answer = Option<IngestionId>;

    async fn run_together(
        db: &Db,
        rows: &[DuplicateRow],
    ) -> Result<Vec<RowAnswer<Option<IngestionId>>>> {
        let found = sqlx::query_scalar!(
            r#"
SELECT (
    SELECT s.id FROM (
        SELECT i.id, i.completed_at FROM ingestion i
        WHERE i.duplicate_key IN (a.key, a.earlier_key) AND i.document_id <> a.document
          AND i.status = 'completed' AND COALESCE(i.tenant, '') = COALESCE(a.tenant, '')
        LIMIT $2) AS s
    ORDER BY s.completed_at DESC, s.id DESC LIMIT 1
)
FROM ROWS FROM (
    jsonb_to_recordset($1::jsonb) AS (key text, earlier_key text, document uuid, tenant text)
) WITH ORDINALITY AS a (key, earlier_key, document, tenant, place)
-- All there are: read as one row by the planner (see `claims.rs`).
WHERE a.place BETWEEN 1 AND 1000000
ORDER BY a.place
"#,
            sqlx::types::Json(rows) as _,
            MAX_COMPARED,
        )
        .fetch_all(db.pool())
        .await
        .context("looking for duplicates")?;
        Ok(found.into_iter().map(|id| RowAnswer::Given(id.map(IngestionId))).collect())
    }

    async fn run_alone(db: &Db, row: &DuplicateRow) -> Result<Option<IngestionId>> {
        only_answer(Self::run_together(db, std::slice::from_ref(row)).await?)
    }
}

impl BatchedStatement for MemoryLookup {
    type Row = MemoryQuery;
    type Answer = Vec<RememberedDocument>;
    const MAX_ROWS: usize = MAX_ANSWER_BYTES / MemoryQuery::MAX_ANSWER_BYTES;

    async fn run_together(
        db: &Db,
        queries: &[MemoryQuery],
    ) -> Result<Vec<RowAnswer<Vec<RememberedDocument>>>> {
        let found = find_remembered_of_all(db, queries).await?;
        Ok(found.into_iter().map(RowAnswer::Given).collect())
    }

    async fn run_alone(db: &Db, query: &MemoryQuery) -> Result<Vec<RememberedDocument>> {
        let found = find_remembered_of_all(db, std::slice::from_ref(query)).await?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// See [`crate::Ledger::current_time`].
pub(super) async fn current_time(db: &Db) -> Result<OffsetDateTime> {
    sqlx::query_scalar!(r#"SELECT docmill_now() AS "now!""#)
        .fetch_one(db.pool())
        .await
        .context("reading the ledger's clock")
}

/// The answer for the one row that was asked for.
fn only_answer<A>(mut answers: Vec<RowAnswer<A>>) -> Result<A> {
    match answers.pop() {
        Some(RowAnswer::Given(answer)) => Ok(answer),
        Some(RowAnswer::Locked) | None => Err(Error::internal("a question got no answer")),
    }
}
