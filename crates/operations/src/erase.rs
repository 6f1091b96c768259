//! Erasing a tenant: rows, objects, messages; or those past their retention.
//!
//! Retention takes one step more: expired documents are marked first. From then on they get no new
//! ingestion, so that no original is deleted while it is needed. A document whose objects cannot be
//! deleted delays no other; it stays marked and is tried again.
//!
//! Order matters. Open ingestions are cancelled first and workers are given time to notice, so that
//! no write comes later; then objects, then the rows that lead to them; then dead letters. A
//! message still in the queue names an erased id when it is received, and is deleted then. After an
//! interruption the next run continues. Not promised: copies that the store keeps itself (versions
//! of a bucket), backups, and documents handed in meanwhile.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
use parking_lot::Mutex;
use serde::Serialize;

pub use docmill_ledger::db::operators::erasure::{TenantRetention, list_retentions, set_retention};

use super::erasable_keys;
use crate::dead::{self, DeadLetterPager};
use crate::janitor::ChoreTurn;
use docmill_core::fault::{Error, Result};
use docmill_core::model::message::MessageBody;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::erasure::{self, ErasableDocument, TenantPage, TenantPosition};
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_queue::{DeadLetter, MessageQueue, ReceiptHandle};
use docmill_storage::{ObjectStore, keys};

/// Documents at a time: short transactions.
const BATCH_ROWS: u32 = 200;
/// Pages of a tenant's documents that one pass looks through for those past their retention.
const MAX_PAGES: usize = 20;
/// Documents whose objects are deleted at the same time.
const AT_ONCE: usize = 8;
/// However lately they were handed in.
const ANY_AGE: i32 = -36_500;
/// Objects listed at a time.
const LIST_PAGE: usize = 1000;
/// Dead letters that are checked together.
const LETTERS: usize = 100;

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

/// Counts of the objects and rows erased, or of the dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ErasureReport {
    /// The tenant whose documents these were.
    pub tenant: String,
    /// Whether this was a dry run.
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

/// Counts of documents past their retention.
#[derive(Debug, Default)]
pub struct ExpiryReport {
    /// Documents that were erased.
    pub erased: usize,
    /// Why the last of those could not be erased that stay marked.
    pub failed: Option<Error>,
}

/// Counts what [`erase_tenant`] would delete.
///
/// # Errors
/// Postgres or the store does not answer.
pub async fn preview_erasure(places: ErasureBackends<'_>, tenant: &str) -> Result<ErasureReport> {
    let mut found =
        ErasureReport { tenant: tenant.to_owned(), dry_run: true, ..ErasureReport::default() };
    let mut after = TenantPosition::START;
    loop {
        let page = find_page(places.db, tenant, after).await?;
        let batch = erasable_keys::with_twins(places, page.documents).await?;
        let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
        let ingestions = erasure::find_ingestions(places.db, &ids).await?;
        found.cancelled += erasure::find_open(places.db, &ids).await?.0.len();
        found.documents += batch.len();
        found.ingestions += ingestions.len();
        let erasable = erasable_keys::find_keys(places, Some(tenant), &batch, &ingestions).await?;
        found.shared += erasable.shared;
        for key in erasable.keys {
            found.objects += usize::from(places.store.head(&key).await?.is_some());
        }
        let Some(next) = page.next else { return Ok(found) };
        after = next;
    }
}

async fn find_page(db: &Db, tenant: &str, after: TenantPosition) -> Result<TenantPage> {
    erasure::find_tenant_documents(db, tenant, ANY_AGE, after, BATCH_ROWS).await
}

/// Erases everything of a tenant. `notice` is how long workers need to notice a lost claim: a
/// heartbeat and the write that may be under way.
///
/// # Errors
/// Postgres, the store or the queue does not answer; earlier erasures remain, and the next
///   run continues.
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
    let documents = i64::try_from(done.documents).unwrap_or(i64::MAX);
    let ingestions = i64::try_from(done.ingestions).unwrap_or(i64::MAX);
    erasure::close_tenant(places.db, tenant, documents, ingestions, by).await?;
    Ok(done)
}

/// Where the search for expired documents continues. Saved on the way: the search may be cut off.
#[derive(Debug, Default)]
pub struct RetentionSweep(Mutex<RetentionPosition>);

#[derive(Debug, Default)]
struct RetentionPosition {
    /// Of tenants with more documents than one pass looks through.
    documents: BTreeMap<String, TenantPosition>,
    /// The tenant processed last: the next one is first in the next pass.
    tenant: Option<String>,
}

impl RetentionSweep {
    /// The tenants, by name, from the one whose turn it is.
    fn in_turn(&self, mut kept: Vec<TenantRetention>) -> Vec<TenantRetention> {
        let last = self.0.lock().tenant.clone();
        let behind = kept.partition_point(|one| Some(&one.tenant) <= last.as_ref());
        kept.rotate_left(behind);
        kept
    }
}

/// Erases documents past their tenant's retention, batch by batch until `turn` is over. Marked ones
/// come first: marking may take longer than a turn and must not keep anything from being erased.
///
/// # Errors
/// Postgres does not answer. A failure of one document or tenant stops no other; see
/// [`ExpiryReport::failed`].
pub async fn erase_expired(
    places: ErasureBackends<'_>,
    sweep: &RetentionSweep,
    turn: Option<ChoreTurn<'_>>,
) -> Result<ExpiryReport> {
    let is_over = || turn.is_some_and(|turn| turn.is_over());
    let mut done = ExpiryReport::default();
    let mut tried = HashSet::new();
    erase_marked(places, &mut tried, &mut done, is_over).await?;
    for kept in sweep.in_turn(list_retentions(places.db).await?) {
        if is_over() {
            return Ok(done);
        }
        if let Err(error) = mark_expired(places, sweep, &kept, is_over).await {
            done.failed = Some(error);
        }
        sweep.0.lock().tenant = Some(kept.tenant);
    }
    erase_marked(places, &mut tried, &mut done, is_over).await?;
    Ok(done)
}

/// Marks what of a tenant is past its retention, from where the last pass came to.
async fn mark_expired(
    places: ErasureBackends<'_>,
    sweep: &RetentionSweep,
    kept: &TenantRetention,
    is_over: impl Fn() -> bool,
) -> Result<()> {
    for _ in 0..MAX_PAGES {
        let after = sweep.0.lock().documents.get(&kept.tenant).copied();
        let after = after.unwrap_or(TenantPosition::START);
        let page =
            erasure::find_tenant_documents(places.db, &kept.tenant, kept.days, after, BATCH_ROWS)
                .await?;
        let ids: Vec<_> = page.documents.iter().map(|document| document.id).collect();
        if !ids.is_empty() {
            erasure::doom_expired(places.db, &ids).await?;
        }
        let Some(next) = page.next else {
            sweep.0.lock().documents.remove(&kept.tenant);
            break;
        };
        sweep.0.lock().documents.insert(kept.tenant.clone(), next);
        if is_over() {
            break;
        }
    }
    Ok(())
}

/// Erases what is marked and was not tried in this pass.
async fn erase_marked(
    places: ErasureBackends<'_>,
    tried: &mut HashSet<DocumentId>,
    done: &mut ExpiryReport,
    is_over: impl Fn() -> bool,
) -> Result<()> {
    while !is_over() {
        let batch = erasure::take_doomed(places.db, BATCH_ROWS).await?;
        // Those that failed a moment ago come round again.
        let fresh: Vec<_> = batch.into_iter().filter(|one| tried.insert(one.id)).collect();
        if fresh.is_empty() {
            break;
        }
        let erasures: Vec<_> =
            fresh.iter().map(|document| erase_doomed(places, document)).collect();
        let mut ended = futures::stream::iter(erasures).buffer_unordered(AT_ONCE);
        while let Some(ended) = ended.next().await {
            match ended {
                Ok(erased) => done.erased += usize::from(erased),
                Err(error) => done.failed = Some(error),
            }
        }
    }
    Ok(())
}

/// One document: objects, then rows.
async fn erase_doomed(places: ErasureBackends<'_>, document: &ErasableDocument) -> Result<bool> {
    let erased = async {
        let ingestions = erasure::find_ingestions(places.db, &[document.id]).await?;
        let batch = std::slice::from_ref(document);
        let erasable = erasable_keys::find_keys(places, None, batch, &ingestions).await?;
        delete_objects(places.store, &erasable.keys).await?;
        erasure::erase_doomed(places.db, document.id).await
    };
    let erased = erased.await;
    if let Err(error) = &erased {
        let id = document.id;
        tracing::warn!(document.id = %id, %error, "document {id} is past its retention and stays: {error}");
    }
    erased
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
    let mut after = Some(TenantPosition::START);
    while let Some(from) = after {
        let page = find_page(db, tenant, from).await?;
        let batch = erasable_keys::with_twins(places, page.documents).await?;
        let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
        let (open, of_workers) = erasure::find_open(db, &ids).await?;
        cancelled += operators::cancel_ingestions(db, &open, by).await?.len();
        held += of_workers;
        after = page.next;
    }
    if held > 0 {
        tokio::time::sleep(notice).await;
    }
    Ok(cancelled)
}

/// Objects first: the rows lead to them. Returns the ingestions that are gone; `None` if there were
/// none left.
async fn erase_batch(
    places: ErasureBackends<'_>,
    tenant: &str,
    done: &mut ErasureReport,
) -> Result<Option<Vec<IngestionId>>> {
    // From the beginning each time: erased rows are gone. A page may hold none of the tenant's and
    // not be the last.
    let mut page = find_page(places.db, tenant, TenantPosition::START).await?;
    while let (true, Some(next)) = (page.documents.is_empty(), page.next) {
        page = find_page(places.db, tenant, next).await?;
    }
    if page.documents.is_empty() {
        return Ok(None);
    }
    let batch = erasable_keys::with_twins(places, page.documents).await?;
    let ids: Vec<_> = batch.iter().map(|document| document.id).collect();
    let ingestions = erasure::find_ingestions(places.db, &ids).await?;
    let erasable = erasable_keys::find_keys(places, Some(tenant), &batch, &ingestions).await?;
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
    let left = store.list(&keys::ingestion_prefix(id), None, LIST_PAGE).await?;
    for entry in &left {
        store.delete(&entry.key).await?;
    }
    Ok(left.len())
}

/// Deletes the dead letters of erased ingestions.
async fn delete_dead_letters(places: ErasureBackends<'_>) -> Result<usize> {
    let mut reader = DeadLetterPager::new(places.queue, dead::REDRIVE_HIDE, usize::MAX);
    let (mut buried, mut others) = (0, Vec::new());
    let ended = loop {
        let letters = match reader.read_letters(LETTERS).await {
            Ok(letters) if letters.is_empty() => break Ok(()),
            Ok(letters) => letters,
            Err(error) => break Err(error),
        };
        match bury_letters(places, letters, &mut others).await {
            Ok(count) => buried += count,
            Err(error) => break Err(error),
        }
    };
    // The next reader sees the others at once, or, if that fails, after the visibility timeout.
    reader.release_others(others).await;
    ended.map(|()| buried)
}

async fn bury_letters(
    places: ErasureBackends<'_>,
    letters: Vec<DeadLetter>,
    others: &mut Vec<ReceiptHandle>,
) -> Result<usize> {
    let ids: Vec<_> = letters.iter().filter_map(ingestion_of).collect();
    let erased = erasure::find_erased(places.db, &ids).await?;
    let (ours, left): (Vec<_>, Vec<_>) = letters
        .into_iter()
        .partition(|letter| ingestion_of(letter).is_some_and(|id| erased.contains(&id)));
    others.extend(left.into_iter().map(|letter| letter.delivery.receipt));
    let receipts: Vec<_> = ours.into_iter().map(|letter| letter.delivery.receipt).collect();
    for answer in places.queue.acknowledge_dead(&receipts).await {
        answer?;
    }
    Ok(receipts.len())
}

fn ingestion_of(letter: &DeadLetter) -> Option<IngestionId> {
    match MessageBody::parse(&letter.delivery.body) {
        MessageBody::Ingestion(id) => Some(id),
        _ => None,
    }
}
