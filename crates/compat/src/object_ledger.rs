//! The ledger of attempts over an object store: for BlobForge buckets and olmOCR workspaces.
//!
//! All objects are below [`OWN_FOLDER`], which other users of the store ignore. Each document has a
//! record with the number of its newest attempt and the references that a row would have. The
//! record is written conditionally only: a new attempt replaces the token in it, and from then on
//! writes of earlier attempts are refused. The caller must own the document's lock before it begins
//! an attempt.
//!
//! The spending of a process in a day is one object, so that no two processes write to one. The
//! day's sum is read from all of them. Not promised: duplicates by supplier and number, a block
//! list, and seeing the spending of others sooner than after 15 s, or a minute while the store is
//! slow. Days are UTC by the worker's own clock.

mod stored_spending;

pub use stored_spending::StoredSpending;
pub(crate) use stored_spending::sum_stored_spending;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};

use docmill_core::fault::{Error, Result};
use docmill_core::model::{
    ArtefactRef, ClaimToken, ClaimedIngestion, DocumentId, DocumentRef, IngestionId, ModelUsage,
    Priority,
};
use docmill_ledger::duplicate_key::DuplicateKeys;
use docmill_ledger::{
    AttemptLedger, DocumentSpending, ProviderSpending, SpentToday, StoredTranscript,
    VersionOutcome, WriteResult,
};
use docmill_storage::prefixed::PrefixedStore;
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, PutResult, keys};

/// The folder for docmill's own objects in a store with another system's layout.
pub const OWN_FOLDER: &str = "docmill/";
/// Artefacts unchanged for this long are removed.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(30 * 86_400);

/// Maximum age of other processes' spending.
const OTHERS_FRESH: Duration = Duration::from_secs(15);
/// Maximum age while a reload is in progress.
const OTHERS_KEPT: Duration = Duration::from_secs(60);
/// Maximum size of a record.
const MAX_RECORD_BYTES: u64 = 1 << 20;
/// How often the beginning of an attempt is tried against others.
const TRIES: u32 = 5;
/// Requests at the same time.
const AT_ONCE: usize = 8;
/// Entries of one listing request.
const PAGE: usize = 1000;

/// Records of attempts and of spending in an object store.
pub struct ObjectLedger {
    store: Arc<dyn ObjectStore>,
    /// Names the objects of this process's spending.
    writer: String,
    /// Never locked across a call of the store: a store that is silent keeps no budget check
    /// waiting that can do without it.
    spending: Mutex<Option<DayBook>>,
    /// Serialises writes of the spending, so that the newest comes last.
    writing: tokio::sync::Mutex<()>,
    /// Serialises reloads of other processes' spending: one serves all.
    reading: tokio::sync::Mutex<()>,
}

/// One attempt at one document.
pub struct ObjectAttempt {
    ledger: Arc<ObjectLedger>,
    id: IngestionId,
    token: ClaimToken,
    /// Held during a write: spending and references are written concurrently.
    written: tokio::sync::Mutex<(AttemptRecord, Etag)>,
}

/// The stored record of a document's attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct AttemptRecord {
    /// The number of the newest attempt.
    claims: i64,
    /// The token of the newest attempt; none before the first.
    token: Option<ClaimToken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcription: Option<ArtefactRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extraction: Option<ArtefactRef>,
    /// The cost of all attempts, in billionths of the currency.
    spent_nanos: u64,
    /// Tokens that all attempts have taken.
    spent_tokens: u64,
}

/// The objects of one document during a listing: the keys of one document at a time.
#[derive(Default)]
struct KeptDocument {
    id: String,
    touched: Option<SystemTime>,
    keys: Vec<String>,
}

impl KeptDocument {
    fn add(&mut self, key: String, modified: SystemTime) {
        self.touched = self.touched.max(Some(modified));
        self.keys.push(key);
    }

    /// Removes it if unchanged for [`KEPT_FOR`]; returns whether it did.
    async fn remove_if_old(self, store: &dyn ObjectStore) -> Result<bool> {
        let Some(touched) = self.touched else { return Ok(false) };
        if !SystemTime::now().duration_since(touched).is_ok_and(|age| age > KEPT_FOR) {
            return Ok(false);
        }
        delete_all(store, &self.keys).await.map(|()| true)
    }
}

/// The loaded spending of one day.
struct DayBook {
    day: Date,
    own: DailySpending,
    /// Grows with each change of `own`; the one that was written last.
    version: u64,
    written: u64,
    /// The sum of all others, and when it was read.
    others: Option<(u64, Instant)>,
}

/// A change of what this process has spent.
struct BookVersion {
    day: Date,
    version: u64,
}

/// The stored spending of one process in a day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct DailySpending {
    /// Billionths of the currency.
    cost_nanos: u64,
    /// Calls, or readings of pages, for which there is no price.
    unpriced_calls: u64,
    rows: Vec<ObjectSpendingRow>,
}

/// Spending with one model of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ObjectSpendingRow {
    provider: String,
    model: String,
    calls: u64,
    pages: u64,
    #[serde(flatten)]
    usage: ModelUsage,
    cost_nanos: u64,
}

impl ObjectLedger {
    /// Over a store whose keys begin where the bucket or workspace begins.
    pub fn new(store: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::new(PrefixedStore::new(store, OWN_FOLDER)),
            writer: uuid::Uuid::new_v4().simple().to_string(),
            spending: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        })
    }

    /// The store that artefacts are written to.
    pub fn artefacts(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Begins an attempt at a document whose lock the caller owns; fences earlier ones.
    ///
    /// # Errors
    /// Store errors; transient after too many concurrent attempts.
    pub(crate) async fn begin_attempt(
        self: &Arc<Self>,
        id: IngestionId,
        document: DocumentRef,
    ) -> Result<(ClaimedIngestion, ObjectAttempt)> {
        let (key, token) = (keys::attempt_record_key(id), ClaimToken::random());
        for _ in 0..TRIES {
            let found = read_record::<AttemptRecord>(self.store.as_ref(), &key).await?;
            let (earlier, etag) =
                found.map_or((None, None), |(record, etag)| (Some(record), Some(etag)));
            let earlier = earlier.unwrap_or_default();
            let claims = earlier.claims.saturating_add(1);
            let record = AttemptRecord { claims, token: Some(token), ..earlier };
            let Some(etag) =
                write_record(self.store.as_ref(), &key, etag.as_ref(), &record).await?
            else {
                continue;
            };
            let claimed = build_claimed(id, token, document, &record);
            let written = tokio::sync::Mutex::new((record, etag));
            return Ok((claimed, ObjectAttempt { ledger: Arc::clone(self), id, token, written }));
        }
        Err(Error::transient("too many concurrent attempts at a document"))
    }

    /// Removes the objects of documents unchanged for [`KEPT_FOR`]; returns how many.
    ///
    /// # Errors
    /// Store errors; some may be removed already.
    pub(crate) async fn remove_abandoned(&self) -> Result<usize> {
        let mut removed = 0;
        let mut document = KeptDocument::default();
        let mut after: Option<String> = None;
        loop {
            let page = self.store.list(keys::INGESTIONS, after.as_deref(), PAGE).await?;
            after = page.last().map(|entry| entry.key.clone());
            let full = page.len() == PAGE;
            for entry in page {
                let rest = entry.key.strip_prefix(keys::INGESTIONS).unwrap_or_default();
                let id = rest.split('/').next().unwrap_or_default();
                // Keys come in their order: with another document the one before is whole.
                if id != document.id {
                    let next = KeptDocument { id: id.to_owned(), ..KeptDocument::default() };
                    let whole = std::mem::replace(&mut document, next);
                    removed += usize::from(whole.remove_if_old(self.store.as_ref()).await?);
                }
                document.add(entry.key, entry.modified);
            }
            if !full {
                break;
            }
        }
        removed += usize::from(document.remove_if_old(self.store.as_ref()).await?);
        Ok(removed)
    }

    /// Runs `act` on today's spending.
    fn with_book<T>(&self, act: impl FnOnce(&mut DayBook) -> T) -> T {
        let mut book = self.spending.lock();
        act(current_day(&mut book))
    }

    /// Adds to what this process has spent today, and writes that down.
    async fn add_spending(&self, spent: &ProviderSpending) -> Result<()> {
        let added = self.with_book(|book| {
            book.own.add(spent);
            book.version += 1;
            BookVersion { day: book.day, version: book.version }
        });
        // Only this process writes there, one write at a time.
        let _turn = self.writing.lock().await;
        let unwritten = self.with_book(|book| {
            // An earlier turn may have written this amount with its own.
            let is_written = book.day == added.day && book.written >= added.version;
            (!is_written).then(|| (book.day, book.version, book.own.clone()))
        });
        let Some((day, version, own)) = unwritten else { return Ok(()) };
        let key = keys::spending_key(day, &self.writer);
        self.store.put(&key, encode_record(&own)?, &BTreeMap::new()).await?;
        self.with_book(|book| {
            if book.day == day {
                book.written = version;
            }
        });
        Ok(())
    }

    async fn sum_today(&self) -> Result<SpentToday> {
        let others = self.spent_by_others().await?;
        let (day, own) = self.with_book(|book| (book.day, book.own.cost_nanos));
        let now = OffsetDateTime::now_utc();
        let next = day.next_day().map(|day| day.midnight().assume_utc());
        let until = next.map_or(time::Duration::ZERO, |next| next - now);
        let cost_nanos = own.saturating_add(others);
        Ok(SpentToday { cost_nanos, until_next_day: until.try_into().unwrap_or_default() })
    }

    /// The known spending of other processes; one caller reloads it for all.
    async fn spent_by_others(&self) -> Result<u64> {
        let known = |within: Duration| {
            let others = self.with_book(|book| book.others);
            others.filter(|(_, read)| read.elapsed() < within).map(|(nanos, _)| nanos)
        };
        if let Some(nanos) = known(OTHERS_FRESH) {
            return Ok(nanos);
        }
        let _turn = match self.reading.try_lock() {
            Ok(turn) => turn,
            Err(_taken) => match known(OTHERS_KEPT) {
                Some(nanos) => return Ok(nanos),
                None => self.reading.lock().await,
            },
        };
        if let Some(nanos) = known(OTHERS_FRESH) {
            return Ok(nanos);
        }
        let day = self.with_book(|book| book.day);
        let nanos = self.sum_of_others(day).await?;
        self.with_book(|book| {
            if book.day == day {
                book.others = Some((nanos, Instant::now()));
            }
        });
        Ok(nanos)
    }

    async fn sum_of_others(&self, day: Date) -> Result<u64> {
        let own = keys::spending_key(day, &self.writer);
        let (mut others, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
        loop {
            let page = self.store.list(&keys::spending_prefix(day), after.as_deref(), PAGE).await?;
            after = page.last().map(|entry| entry.key.clone());
            let full = page.len() == PAGE;
            others.extend(page.into_iter().map(|entry| entry.key).filter(|key| *key != own));
            if !full {
                break;
            }
        }
        let store = self.store.as_ref();
        let reads = others.into_iter().map(|key| async move {
            let spending = read_record::<DailySpending>(store, &key).await?;
            Ok::<u64, Error>(spending.map_or(0, |(spending, _)| spending.cost_nanos))
        });
        let mut reads = futures::stream::iter(reads).buffer_unordered(AT_ONCE);
        let mut sum: u64 = 0;
        while let Some(nanos) = reads.try_next().await? {
            sum = sum.saturating_add(nanos);
        }
        Ok(sum)
    }
}

impl DailySpending {
    fn add(&mut self, spent: &ProviderSpending) {
        let (calls, pages) = (u64::from(spent.calls), u64::from(spent.pages));
        let nanos = spent.cost_nanos.unwrap_or(0);
        self.cost_nanos = self.cost_nanos.saturating_add(nanos);
        if spent.cost_nanos.is_none() {
            self.unpriced_calls += calls.max(u64::from(pages > 0));
        }
        if let Some(row) = self.rows.iter_mut().find(|row: &&mut ObjectSpendingRow| {
            row.provider == spent.provider && row.model == spent.model
        }) {
            row.calls += calls;
            row.pages += pages;
            row.usage += spent.usage;
            row.cost_nanos = row.cost_nanos.saturating_add(nanos);
            return;
        }
        let (provider, model) = (spent.provider.clone(), spent.model.clone());
        let (usage, cost_nanos) = (spent.usage, nanos);
        self.rows.push(ObjectSpendingRow { provider, model, calls, pages, usage, cost_nanos });
    }
}

/// Today's book; a new one when the day (UTC) changes.
fn current_day(book: &mut Option<DayBook>) -> &mut DayBook {
    let day = OffsetDateTime::now_utc().date();
    if book.as_ref().is_some_and(|book| book.day != day) {
        *book = None;
    }
    book.get_or_insert_with(|| DayBook {
        day,
        own: DailySpending::default(),
        version: 0,
        written: 0,
        others: None,
    })
}

fn build_claimed(
    id: IngestionId,
    token: ClaimToken,
    document: DocumentRef,
    record: &AttemptRecord,
) -> ClaimedIngestion {
    let claimed_at = OffsetDateTime::now_utc();
    ClaimedIngestion {
        id,
        token,
        claims: record.claims,
        attempt: u32::try_from(record.claims).unwrap_or(u32::MAX),
        attempt_limit: 0,
        suspect: false,
        deferred_for: None,
        priority: Priority::default(),
        created_at: claimed_at,
        kind: None,
        tenant: None,
        document,
        transcription: record.transcription.clone(),
        extraction: record.extraction.clone(),
        lease_until: Instant::now(),
        claimed_at,
    }
}

impl ObjectAttempt {
    /// Writes the record as `change` makes it, if the attempt still is the newest.
    async fn save_record(
        &self,
        id: IngestionId,
        token: ClaimToken,
        change: impl FnOnce(&mut AttemptRecord) + Send,
    ) -> Result<WriteResult> {
        if (id, token) != (self.id, self.token) {
            return Ok(WriteResult::ClaimLost);
        }
        let mut written = self.written.lock().await;
        let (mut record, etag) = written.clone();
        change(&mut record);
        let (store, key) = (self.ledger.store.as_ref(), keys::attempt_record_key(id));
        let Some(etag) = write_record(store, &key, Some(&etag), &record).await? else {
            return Ok(WriteResult::ClaimLost);
        };
        *written = (record, etag);
        Ok(WriteResult::Applied)
    }
}

#[async_trait]
impl AttemptLedger for ObjectAttempt {
    async fn save_transcription(
        &self,
        id: IngestionId,
        token: ClaimToken,
        saved: &StoredTranscript,
    ) -> Result<WriteResult> {
        self.save_record(id, token, |record| record.transcription = Some(saved.artefact.clone()))
            .await
    }

    async fn save_extraction(
        &self,
        id: IngestionId,
        token: ClaimToken,
        artefact: &ArtefactRef,
    ) -> Result<WriteResult> {
        self.save_record(id, token, |record| record.extraction = Some(artefact.clone())).await
    }

    async fn find_duplicate(
        &self,
        _document: DocumentId,
        _tenant: Option<&str>,
        _keys: &DuplicateKeys,
    ) -> Result<Option<IngestionId>> {
        Ok(None)
    }

    async fn add_spending(
        &self,
        id: IngestionId,
        _claims: i64,
        spent: &ProviderSpending,
    ) -> Result<()> {
        let (ledger, more) = (&self.ledger, DocumentSpending::from(spent));
        if more == DocumentSpending::default() {
            return ledger.add_spending(spent).await;
        }
        // A newer attempt owns the record: it counted this spending when it began.
        let in_record = self.save_record(id, self.token, |record: &mut AttemptRecord| {
            record.spent_nanos = record.spent_nanos.saturating_add(more.cost_nanos);
            record.spent_tokens = record.spent_tokens.saturating_add(more.tokens);
        });
        let (of_day, of_document) = tokio::join!(ledger.add_spending(spent), in_record);
        of_day?;
        of_document.map(drop)
    }

    /// Buckets and workspaces have no tenants: the sum is over all.
    async fn spent_today(&self, _tenant: Option<&str>) -> Result<SpentToday> {
        self.ledger.sum_today().await
    }

    async fn spent_on(&self, _id: IngestionId) -> Result<DocumentSpending> {
        let AttemptRecord { spent_nanos, spent_tokens, .. } = self.written.lock().await.0;
        Ok(DocumentSpending { cost_nanos: spent_nanos, tokens: spent_tokens })
    }

    /// Documents of buckets and workspaces are named by their content, or in no version at all.
    async fn adopt_version(
        &self,
        _id: IngestionId,
        _token: ClaimToken,
        _etag: &str,
    ) -> Result<VersionOutcome> {
        Ok(VersionOutcome::Adopted)
    }

    async fn is_blocked(&self, _sha256: &str) -> Result<bool> {
        Ok(false)
    }
}

/// Removes the artefacts of a document with a result. `store` is the whole bucket or workspace.
/// Pages stored by a killed attempt may stay for [`KEPT_FOR`].
///
/// # Errors
/// Store errors; some may be removed already.
pub(crate) async fn remove_artefacts(store: &dyn ObjectStore, id: IngestionId) -> Result<()> {
    let record = format!("{OWN_FOLDER}{}", keys::attempt_record_key(id));
    if store.head(&record).await?.is_none() {
        return Ok(());
    }
    let artefacts = keys::artefact_keys(id).map(|key| format!("{OWN_FOLDER}{key}"));
    delete_all(store, &artefacts).await?;
    // Last, because it shows that there may be others.
    store.delete(&record).await
}

/// Removes everything there is of a document, finished pages included. `store` as above.
///
/// # Errors
/// As [`remove_artefacts`].
pub(crate) async fn erase_artefacts(store: &dyn ObjectStore, id: IngestionId) -> Result<()> {
    let below = format!("{OWN_FOLDER}{}", keys::ingestion_prefix(id));
    loop {
        let found = store.list(&below, None, PAGE).await?;
        if found.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = found.into_iter().map(|entry| entry.key).collect();
        delete_all(store, &keys).await?;
    }
}

async fn delete_all(store: &dyn ObjectStore, keys: &[String]) -> Result<()> {
    let deletions: Vec<_> = keys.iter().map(|key| store.delete(key)).collect();
    futures::stream::iter(deletions).buffer_unordered(AT_ONCE).try_collect().await
}

/// A record; invalid JSON counts as empty, and is replaced.
async fn read_record<T>(store: &dyn ObjectStore, key: &str) -> Result<Option<(T, Etag)>>
where
    T: serde::de::DeserializeOwned + Default,
{
    match store.get(key, GetOptions { at_most: MAX_RECORD_BYTES, if_match: None }).await? {
        GetResult::Found(object) => {
            let value = serde_json::from_slice(&object.bytes).unwrap_or_default();
            Ok(Some((value, object.etag)))
        }
        GetResult::Missing | GetResult::Changed => Ok(None),
        GetResult::TooLarge { .. } => Err(Error::internal("a record of an attempt is too large")),
    }
}

/// Writes a record over exactly the version that was found; `None` if that is not there any more.
async fn write_record(
    store: &dyn ObjectStore,
    key: &str,
    found: Option<&Etag>,
    record: &AttemptRecord,
) -> Result<Option<Etag>> {
    let bytes = encode_record(record)?;
    let put = match found {
        None => store.put_if_absent(key, bytes).await?,
        Some(etag) => store.put_if_match(key, etag, bytes).await?,
    };
    if let PutResult::Written(etag) = put {
        return Ok(Some(etag));
    }
    // Ours if the reply was lost and the client tried again: tokens are random.
    let now = read_record::<AttemptRecord>(store, key).await?;
    Ok(now.filter(|(now, _)| now == record).map(|(_, etag)| etag))
}

fn encode_record<T: Serialize>(record: &T) -> Result<bytes::Bytes> {
    let text = serde_json::to_vec(record).map_err(|error| {
        Error::internal("cannot serialise an attempt's record").with_source(error)
    })?;
    Ok(text.into())
}

#[cfg(test)]
mod tests;
