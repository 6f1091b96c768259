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

use docmill_core::fault::Result;
use docmill_core::model::message::MessageBody;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::Db;
use docmill_ledger::db::erasure::{self, ErasableDocument, IngestionArtefacts};
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
    /// Originals that stay because another tenant's document refers to them.
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
        let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
        let trails = erasure::find_artefacts(places.db, &ids).await?;
        found.cancelled += erasure::find_open(places.db, &ids).await?.0.len();
        found.documents += batch.len();
        found.ingestions += trails.len();
        found.shared += batch.iter().filter(|document| document.shared).count();
        for key in keys_of(places.store, &batch, &trails).await? {
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
    done.cancelled = cancel_open(places.db, tenant, notice, by).await?;
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
        let trails = erasure::find_artefacts(places.db, &ids).await?;
        delete_objects(places.store, &batch, &trails).await?;
        expired += erasure::delete_expired(places.db, &ids).await?;
    }
    Ok(expired)
}

/// Cancels what has not ended, and waits until workers must have noticed if one had any of it.
async fn cancel_open(db: &Db, tenant: &str, notice: Duration, by: &AuditNote) -> Result<usize> {
    let (mut cancelled, mut held) = (0, 0);
    let mut after = DocumentId(Uuid::nil());
    loop {
        let batch = erasure::find_erasable(db, tenant, None, after, BATCH).await?;
        let Some(last) = batch.last() else { break };
        after = last.id;
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
    let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let trails = erasure::find_artefacts(places.db, &ids).await?;
    done.objects += delete_objects(places.store, &batch, &trails).await?;
    erasure::delete_documents(places.db, &ids, &trails).await?;
    done.documents += batch.len();
    done.ingestions += trails.len();
    done.shared += batch.iter().filter(|document| document.shared).count();
    Ok(Some(trails.into_iter().map(|trail| trail.id).collect()))
}

async fn delete_objects(
    store: &dyn ObjectStore,
    batch: &[ErasableDocument],
    trails: &[IngestionArtefacts],
) -> Result<usize> {
    let mut deleted = 0;
    for key in keys_of(store, batch, trails).await? {
        if store.head(&key).await?.is_some() {
            store.delete(&key).await?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

/// Everything that was stored for these documents, each key once.
async fn keys_of(
    store: &dyn ObjectStore,
    batch: &[ErasableDocument],
    trails: &[IngestionArtefacts],
) -> Result<Vec<String>> {
    let originals = batch.iter().filter(|document| !document.shared);
    let mut keys: Vec<String> = originals.map(|document| document.file_path.clone()).collect();
    for trail in trails {
        keys.extend(trail.paths.iter().cloned());
        let below = keys::ingestion_prefix(trail.id);
        let mut after: Option<String> = None;
        loop {
            let page = store.list(&below, after.as_deref(), LISTED).await?;
            after = page.last().map(|entry| entry.key.clone());
            let whole = page.len() < LISTED;
            keys.extend(page.into_iter().map(|entry| entry.key));
            if whole {
                break;
            }
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
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
