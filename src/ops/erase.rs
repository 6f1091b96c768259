//! Forgetting a tenant: rows, objects, messages; or what of it is old enough.
//!
//! Order matters. What is open is cancelled first and workers are given time to notice, so that
//! nobody writes behind our back; then objects, then the rows that lead to them; then dead letters.
//! A message that is still in the queue finds the id among the erased ones when it is received and
//! is deleted then. Stopped half way, the next run goes on. Not promised: copies that the store
//! keeps itself (versions of a bucket), backups, and what a producer hands in meanwhile.

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

pub use docmill_ledger::db::erasure::{TenantRetention, list_retentions, set_retention};

use super::erasable_keys;
use docmill_core::fault::Result;
use docmill_core::model::message::MessageBody;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::Db;
use docmill_ledger::db::erasure;
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_queue::queue::{DeadLetter, MessageQueue};
use docmill_storage::store::{ObjectStore, keys};

/// Documents at a time: short transactions.
const BATCH: u32 = 200;
/// The smallest id, before that of every document.
const FIRST: DocumentId = DocumentId(Uuid::nil());
/// Objects listed at a time.
const LISTED: usize = 1000;
/// Dead letters that are checked stay hidden from other readers for so long.
const HIDDEN: Duration = Duration::from_secs(30);

/// The backends that store what belongs to a tenant.
#[derive(Clone, Copy)]
pub struct ErasureBackends<'a> {
    /// The database with the tenant's rows.
    pub db: &'a Db,
    /// The store with the tenant's objects.
    pub store: &'a dyn ObjectStore,
    /// The queue with the tenant's messages.
    pub queue: &'a dyn MessageQueue,
}

/// What was erased, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ErasureReport {
    /// The tenant whose documents these were.
    pub tenant: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Documents that were erased.
    pub documents: usize,
    /// Ingestions of these documents.
    pub ingestions: usize,
    /// Of these, cancelled because they had not ended.
    pub cancelled: usize,
    /// Objects: originals and artefacts.
    pub objects: usize,
    /// Originals that stay because a document of somebody else refers to them.
    pub shared: usize,
    /// Dead letters that were deleted.
    pub dead_letters: usize,
}

/// Counts what [`erase_tenant`] would delete.
///
/// # Errors
/// Postgres or the store does not answer.
pub async fn preview_erasure(places: ErasureBackends<'_>, tenant: &str) -> Result<ErasureReport> {
    let mut found =
        ErasureReport { tenant: tenant.to_owned(), dry_run: true, ..ErasureReport::default() };
    let mut after = DocumentId(Uuid::nil());
    loop {
        let batch = erasure::find_erasable(places.db, tenant, None, after, BATCH).await?;
        let Some(last) = batch.last() else { return Ok(found) };
        after = last.id;
        let batch = erasable_keys::with_twins(places, batch).await?;
        let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
        let ingestions = erasure::find_ingestions(places.db, &ids).await?;
        found.cancelled += erasure::find_open(places.db, &ids).await?.0.len();
        found.documents += batch.len();
        found.ingestions += ingestions.len();
        let erasable = erasable_keys::find_keys(places, tenant, &batch, &ingestions).await?;
        found.shared += erasable.shared;
        for key in erasable.keys {
            found.objects += usize::from(places.store.head(&key).await?.is_some());
        }
    }
}

/// Erases everything of a tenant. `notice` is how long workers need to notice a lost claim: a
/// heartbeat and the write that may be under way.
///
/// # Errors
/// Postgres, the store or the queue does not answer; what was erased until then stays erased, and
/// the next run goes on.
pub async fn erase_tenant(
    places: ErasureBackends<'_>,
    tenant: &str,
    notice: Duration,
    by: &AuditNote,
) -> Result<ErasureReport> {
    let mut done = ErasureReport { tenant: tenant.to_owned(), ..ErasureReport::default() };
    let mut gone: Vec<IngestionId> = Vec::new();
    done.cancelled = cancel_open(places, tenant, notice, by).await?;
    while let Some(batch) = erase_batch(places, tenant, &mut done).await? {
        gone.extend(batch);
    }
    // A worker that was frozen all the while may have written after we looked.
    for id in &gone {
        done.objects += delete_below(places.store, *id).await?;
    }
    done.dead_letters = delete_dead_letters(places).await?;
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (documents, ingestions) = (count(done.documents), count(done.ingestions));
    erasure::close_tenant(places.db, tenant, documents, ingestions, by).await?;
    Ok(done)
}

/// Erases what is older than its tenant's retention, up to a batch for each tenant.
///
/// # Errors
/// As [`erase_tenant`].
pub async fn erase_expired(places: ErasureBackends<'_>) -> Result<usize> {
    let mut expired = 0;
    for kept in list_retentions(places.db).await? {
        let days = u64::from(kept.days.unsigned_abs());
        let age = Some(Duration::from_secs(days * 24 * 3600));
        let batch = erasure::find_erasable(places.db, &kept.tenant, age, FIRST, BATCH).await?;
        let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
        let ingestions = erasure::find_ingestions(places.db, &ids).await?;
        let erasable = erasable_keys::find_keys(places, &kept.tenant, &batch, &ingestions).await?;
        delete_objects(places.store, &erasable.keys).await?;
        expired += erasure::delete_expired(places.db, &ids).await?;
    }
    Ok(expired)
}

/// Cancels what has not ended, and waits until workers must have noticed if one had any of it.
async fn cancel_open(
    places: ErasureBackends<'_>,
    tenant: &str,
    notice: Duration,
    by: &AuditNote,
) -> Result<usize> {
    let db = places.db;
    let (mut cancelled, mut held) = (0, 0);
    let mut after = DocumentId(Uuid::nil());
    loop {
        let batch = erasure::find_erasable(db, tenant, None, after, BATCH).await?;
        let Some(last) = batch.last() else { break };
        after = last.id;
        let batch = erasable_keys::with_twins(places, batch).await?;
        let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
        let (open, of_workers) = erasure::find_open(db, &ids).await?;
        cancelled += operators::cancel_ingestions(db, &open, by).await?.len();
        held += of_workers;
    }
    if held > 0 {
        tokio::time::sleep(notice).await;
    }
    Ok(cancelled)
}

/// Objects first: the rows lead to them. Returns the ingestions that are gone; `None`: nothing was
/// left.
async fn erase_batch(
    places: ErasureBackends<'_>,
    tenant: &str,
    done: &mut ErasureReport,
) -> Result<Option<Vec<IngestionId>>> {
    let batch = erasure::find_erasable(places.db, tenant, None, FIRST, BATCH).await?;
    if batch.is_empty() {
        return Ok(None);
    }
    let batch = erasable_keys::with_twins(places, batch).await?;
    let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
    let ingestions = erasure::find_ingestions(places.db, &ids).await?;
    let erasable = erasable_keys::find_keys(places, tenant, &batch, &ingestions).await?;
    done.objects += delete_objects(places.store, &erasable.keys).await?;
    erasure::delete_documents(places.db, &ids, &ingestions).await?;
    done.documents += batch.len();
    done.ingestions += ingestions.len();
    done.shared += erasable.shared;
    Ok(Some(ingestions))
}

async fn delete_objects(store: &dyn ObjectStore, keys: &[String]) -> Result<usize> {
    let mut deleted = 0;
    for key in keys {
        if store.head(key).await?.is_some() {
            store.delete(key).await?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

async fn delete_below(store: &dyn ObjectStore, id: IngestionId) -> Result<usize> {
    let left = store.list(&keys::ingestion_prefix(id), None, LISTED).await?;
    for entry in &left {
        store.delete(&entry.key).await?;
    }
    Ok(left.len())
}

/// Deletes the dead letters of erased ingestions.
async fn delete_dead_letters(places: ErasureBackends<'_>) -> Result<usize> {
    let (mut buried, mut others) = (0, Vec::new());
    loop {
        let letters = places.queue.receive_dead(10, HIDDEN).await?;
        if letters.is_empty() {
            // Whoever looks next sees the others at once, or, if that fails, when the time is over.
            places.queue.release_dead(&others).await;
            return Ok(buried);
        }
        let id_of = |body: &str| match MessageBody::parse(body) {
            MessageBody::Ingestion(id) => Some(id),
            _ => None,
        };
        let ids: Vec<_> = letters.iter().filter_map(|l| id_of(&l.delivery.body)).collect();
        let erased = erasure::find_erased(places.db, &ids).await?;
        let is_ours = |letter: &DeadLetter| {
            id_of(&letter.delivery.body).is_some_and(|id| erased.contains(&id))
        };
        let (ours, left): (Vec<_>, Vec<_>) = letters.into_iter().partition(is_ours);
        others.extend(left.into_iter().map(|letter| letter.delivery.receipt));
        let receipts: Vec<_> = ours.into_iter().map(|letter| letter.delivery.receipt).collect();
        for answer in places.queue.acknowledge_dead(&receipts).await {
            answer?;
            buried += 1;
        }
    }
}
