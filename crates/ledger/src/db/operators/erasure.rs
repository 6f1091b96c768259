//! The data of a tenant, and deleting it for good.
//!
//! A document belongs to its tenant with everything that was made of it; one without a tenant to
//! that of its ingestions, if they are all of one. Objects are not deleted here; they come first,
//! because the rows lead to them.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext, saturating_int};
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId};

/// A document that is to be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasableDocument {
    /// Id of the document.
    pub id: DocumentId,
    /// Where its original lies, as its row says.
    pub file_path: String,
}

/// For how long a tenant's documents are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TenantRetention {
    /// The tenant whose documents are kept this long.
    pub tenant: String,
    /// Days after the end of a document's newest ingestion.
    pub days: i32,
    /// When this retention was set.
    #[serde(with = "time::serde::rfc3339")]
    pub set_at: OffsetDateTime,
    /// The operator who set it.
    pub set_by: String,
}

/// A place in the order in which a tenant's documents were handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantPosition {
    created_at: OffsetDateTime,
    key: Uuid,
}

impl TenantPosition {
    /// Before the first.
    pub const START: Self = Self { created_at: OffsetDateTime::UNIX_EPOCH, key: Uuid::nil() };
}

/// A page of a tenant's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantPage {
    /// Documents of the tenant, oldest first.
    pub documents: Vec<ErasableDocument>,
    /// Where the next page begins; `None`: this was the last one.
    pub next: Option<TenantPosition>,
}

/// Up to `limit` documents of the tenant after a place, oldest first; only those that were handed in
/// at least `days` ago (negative: however lately). A page may hold fewer and not be the last.
///
/// `document_tenant` alone decides who owns a document. A document without a tenant of its own is
/// found by its ingestions, at the oldest of them.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_tenant_documents(
    db: &Db,
    tenant: &str,
    days: i32,
    after: TenantPosition,
    limit: u32,
) -> Result<TenantPage> {
    let rows = sqlx::query!(
        r#"
WITH looked AS MATERIALIZED (
    (SELECT d.created_at AS at, d.id AS key, d.id AS document, true AS own
     FROM document d
     WHERE d.tenant = $1 AND (d.created_at, d.id) > ($2, $3)
       AND d.created_at < (SELECT docmill_now()) - make_interval(days => $5)
     ORDER BY d.created_at, d.id LIMIT $4)
    UNION ALL
    (SELECT i.created_at, i.id, i.document_id, false
     FROM ingestion i
     WHERE i.tenant = $1 AND (i.created_at, i.id) > ($2, $3)
       AND i.created_at < (SELECT docmill_now()) - make_interval(days => $5)
     ORDER BY i.created_at, i.id LIMIT $4)
    ORDER BY 1, 2 LIMIT $4
)
SELECT l.at AS "at!", l.key AS "key!", d.id AS "document!", d.file_path AS "file_path!",
    CASE WHEN l.own THEN true
        WHEN d.tenant IS NOT NULL THEN false
        ELSE document_tenant(d.id) = $1 AND NOT EXISTS (
            SELECT 1 FROM ingestion e WHERE e.document_id = d.id
              AND (e.created_at, e.id) < (l.at, l.key)) END AS "belongs!"
FROM looked l JOIN document d ON d.id = l.document
ORDER BY l.at, l.key
"#,
        tenant,
        after.created_at,
        after.key,
        i64::from(limit),
        days,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a tenant's documents")?;
    let is_full = rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let last = rows.last().map(|row| TenantPosition { created_at: row.at, key: row.key });
    let documents = rows
        .into_iter()
        .filter(|row| row.belongs)
        .map(|row| ErasableDocument { id: DocumentId(row.document), file_path: row.file_path });
    Ok(TenantPage { documents: documents.collect(), next: last.filter(|_| is_full) })
}

/// Marks those of the documents that are past their tenant's retention: from now on they get no new
/// ingestion, and [`take_doomed`] finds them. Returns how many are marked anew.
///
/// # Errors
/// No answer from Postgres.
pub async fn doom_expired(db: &Db, documents: &[DocumentId]) -> Result<usize> {
    let ids: Vec<Uuid> = documents.iter().map(|id| id.0).collect();
    let doomed = sqlx::query_scalar!("SELECT doom_expired($1)", &ids)
        .fetch_all(db.pool())
        .await
        .context("marking documents past their retention")?;
    Ok(doomed.len())
}

/// Up to `limit` documents that were marked, those first that were not tried for longest.
///
/// # Errors
/// No answer from Postgres.
pub async fn take_doomed(db: &Db, limit: u32) -> Result<Vec<ErasableDocument>> {
    let rows = sqlx::query!(
        r#"
WITH taken AS MATERIALIZED (SELECT take_doomed($1) AS id)
SELECT d.id, d.file_path
FROM taken t JOIN document d ON d.id = t.id
"#,
        saturating_int(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing documents to erase")?;
    Ok(rows
        .into_iter()
        .map(|row| ErasableDocument { id: DocumentId(row.id), file_path: row.file_path })
        .collect())
}

/// Deletes a marked document with everything about it, as [`delete_documents`] does; `false` if it is
/// not marked. A worker's login may do this, but not [`delete_documents`].
///
/// # Errors
/// As [`delete_documents`].
pub async fn erase_doomed(db: &Db, document: DocumentId) -> Result<bool> {
    let gone = sqlx::query_scalar!("SELECT erase_doomed($1)", &[document.0])
        .fetch_all(db.pool())
        .await
        .context("erasing documents past their retention")?;
    Ok(!gone.is_empty())
}

/// Those of these documents without an owner: neither they nor any ingestion of theirs has a
/// tenant.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_tenantless(db: &Db, documents: &[DocumentId]) -> Result<Vec<ErasableDocument>> {
    let ids: Vec<Uuid> = documents.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        "SELECT d.id, d.file_path FROM document d
         WHERE d.id = ANY ($1) AND d.tenant IS NULL AND NOT EXISTS (
             SELECT 1 FROM ingestion i WHERE i.document_id = d.id AND i.tenant IS NOT NULL)
         ORDER BY d.id",
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a tenant's documents without a tenant")?;
    Ok(rows
        .into_iter()
        .map(|row| ErasableDocument { id: DocumentId(row.id), file_path: row.file_path })
        .collect())
}

/// Which of these places documents name that are not the tenant's and not among `erased`.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_shared(
    db: &Db,
    tenant: &str,
    places: &[String],
    erased: &[DocumentId],
) -> Result<HashSet<String>> {
    let erased: Vec<Uuid> = erased.iter().map(|id| id.0).collect();
    let shared = sqlx::query_scalar!(
        "SELECT DISTINCT o.file_path FROM document o
         WHERE o.file_path = ANY ($1) AND o.id <> ALL ($3)
           AND document_tenant(o.id) IS DISTINCT FROM $2",
        places,
        tenant,
        &erased,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for originals that others refer to")?;
    Ok(shared.into_iter().collect())
}

/// Which of these places documents name that are not marked: the tenant's own among them, which may
/// be kept for longer.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_kept(db: &Db, places: &[String]) -> Result<HashSet<String>> {
    let kept = sqlx::query_scalar!(
        "SELECT DISTINCT o.file_path FROM document o
         WHERE o.file_path = ANY ($1)
           AND NOT EXISTS (SELECT 1 FROM doomed_document x WHERE x.document_id = o.id)",
        places,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for originals that are still referred to")?;
    Ok(kept.into_iter().collect())
}

/// The ingestions of these documents. Their artefacts lie below their own prefix; the columns of
/// their rows do not count, because producers may write them.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_ingestions(db: &Db, documents: &[DocumentId]) -> Result<Vec<IngestionId>> {
    let ids: Vec<Uuid> = documents.iter().map(|id| id.0).collect();
    let rows = sqlx::query_scalar!(
        "SELECT id FROM ingestion WHERE document_id = ANY ($1) ORDER BY id",
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a tenant's ingestions")?;
    Ok(rows.into_iter().map(IngestionId).collect())
}

/// Ingestions of the tenant's documents that have not ended, and how many of them a worker holds.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_open(db: &Db, documents: &[DocumentId]) -> Result<(Vec<IngestionId>, usize)> {
    let ids: Vec<Uuid> = documents.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"SELECT id, COALESCE(lease_expires_at > (SELECT docmill_now()), false) AS "held!"
        FROM ingestion WHERE document_id = ANY ($1) AND status = 'in-progress' ORDER BY id"#,
        &ids,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for a tenant's open ingestions")?;
    let held = rows.iter().filter(|row| row.held).count();
    Ok((rows.into_iter().map(|row| IngestionId(row.id)).collect(), held))
}

/// Deletes documents with everything about them, and remembers the ids of the ingestions. All or
/// nothing.
///
/// # Errors
/// No answer from Postgres; a foreign table refers to one of the rows.
pub async fn delete_documents(
    db: &Db,
    documents: &[DocumentId],
    ingestions: &[IngestionId],
) -> Result<()> {
    let documents: Vec<Uuid> = documents.iter().map(|id| id.0).collect();
    let ids: Vec<Uuid> = ingestions.iter().map(|id| id.0).collect();
    let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    let doing = "erasing a tenant's rows";
    let mut transaction = db.pool().begin().await.context(doing)?;
    // In the order in which every other statement locks them.
    sqlx::query!("SELECT id FROM ingestion WHERE id = ANY ($1) ORDER BY id FOR UPDATE", &ids)
        .fetch_all(&mut transaction)
        .await
        .context(doing)?;
    sqlx::query!(
        "INSERT INTO erased_ingestion (id) SELECT * FROM unnest($1::uuid[]) ON CONFLICT DO NOTHING",
        &ids,
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    sqlx::query!("DELETE FROM operator_action WHERE target = ANY ($1)", &texts)
        .execute(&mut transaction)
        .await
        .context(doing)?;
    // The length is the index's condition: what is longer names more than an ingestion.
    sqlx::query!(
        "DELETE FROM quarantined_message WHERE length(body) < 64 AND lower(trim(body)) = ANY ($1)",
        &texts,
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    // Paid amounts stay on the books, without a tenant or a document.
    sqlx::query!("UPDATE spending SET tenant = NULL WHERE ingestion_id = ANY ($1)", &ids)
        .execute(&mut transaction)
        .await
        .context(doing)?;
    sqlx::query!("DELETE FROM ingestion WHERE id = ANY ($1)", &ids)
        .execute(&mut transaction)
        .await
        .context(doing)?;
    sqlx::query!("DELETE FROM document WHERE id = ANY ($1)", &documents)
        .execute(&mut transaction)
        .await
        .context(doing)?;
    transaction.commit().await.context(doing)
}

/// Deletes the tenant's pause and retention, and writes down who erased how much.
///
/// # Errors
/// No answer from Postgres.
pub async fn close_tenant(
    db: &Db,
    tenant: &str,
    documents: i64,
    ingestions: i64,
    by: &AuditNote,
) -> Result<()> {
    sqlx::query!(
        "WITH unpaused AS (DELETE FROM pause WHERE scope = 'tenant' AND name = $1),
         unkept AS (DELETE FROM tenant_retention WHERE tenant = $1),
         unbound AS (DELETE FROM certainty_level WHERE tenant = $1),
         disowned AS (DELETE FROM own_company WHERE tenant = $1),
         undrafted AS (DELETE FROM kind_replay WHERE tenant = $1),
         unsupplied AS (DELETE FROM master_supplier WHERE tenant = $1),
         unordered AS (DELETE FROM master_order WHERE tenant = $1),
         -- They hold what was there before a change.
         unsaid AS (DELETE FROM operator_action WHERE target = 'tenant:' || $1
             AND action IN ('companies', 'suppliers', 'orders'))
         INSERT INTO operator_action (operator, action, target, why, before)
         VALUES ($2, 'erase', 'tenant:' || $1, $3,
             jsonb_build_object('documents', $4::int8, 'ingestions', $5::int8))",
        tenant,
        by.operator,
        by.why,
        documents,
        ingestions,
    )
    .execute(db.pool())
    .await
    .context("noting an erasure")?;
    Ok(())
}

/// Which of these were erased.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_erased(db: &Db, ids: &[IngestionId]) -> Result<HashSet<IngestionId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = sqlx::query_scalar!("SELECT id FROM erased_ingestion WHERE id = ANY ($1)", &ids)
        .fetch_all(db.pool())
        .await
        .context("looking for erased ingestions")?;
    Ok(found.into_iter().map(IngestionId).collect())
}

/// Forgets the ids of ingestions that were erased longer ago than any message can live.
///
/// # Errors
/// No answer from Postgres.
pub async fn forget_erased(db: &Db, age: Duration) -> Result<u64> {
    let done = sqlx::query!(
        "DELETE FROM erased_ingestion WHERE erased_at < (SELECT docmill_now()) - make_interval(secs => $1)",
        age.as_secs_f64(),
    )
    .execute(db.pool())
    .await
    .context("forgetting erased ingestions")?;
    Ok(done.rows_affected())
}

/// For how long whose documents are kept.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_retentions(db: &Db) -> Result<Vec<TenantRetention>> {
    sqlx::query_as!(
        TenantRetention,
        "SELECT tenant, days, set_at, set_by FROM tenant_retention ORDER BY tenant"
    )
    .fetch_all(db.pool())
    .await
    .context("reading retentions")
}

/// Sets for how many days a tenant's documents are kept; `None`: for ever.
///
/// # Errors
/// No answer from Postgres, or days out of range.
pub async fn set_retention(db: &Db, tenant: &str, days: Option<i32>, by: &AuditNote) -> Result<()> {
    sqlx::query!(
        "WITH before AS MATERIALIZED (
             SELECT to_jsonb(r) AS row FROM tenant_retention r WHERE tenant = $1
         ), gone AS (
             DELETE FROM tenant_retention WHERE tenant = $1 AND $2::int IS NULL
         ), kept AS (
             INSERT INTO tenant_retention (tenant, days, set_by)
             SELECT $1, $2::int, $3 WHERE $2::int IS NOT NULL
             ON CONFLICT (tenant) DO UPDATE SET
                 days = excluded.days, set_by = excluded.set_by, set_at = docmill_now()
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $3, 'retain', 'tenant:' || $1, $4, COALESCE((SELECT row FROM before), '{}')",
        tenant,
        days,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("setting a retention")?;
    Ok(())
}
