//! Bounds on memory, and on replacements by late writers: invariants 8 and 9 at the steps that keep
//! them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use docmill_core::config::{ByteSize, LimitsConfig};
use docmill_core::fault::{Fault, Result};
use docmill_core::model::{ClaimToken, DocumentId, DocumentRef, IngestionId, OutcomeReason};
use docmill_documents::sandbox::CpuPool;
use docmill_ledger::memory::MemoryLedger;
use docmill_pipeline::artefact::ArtefactSlot;
use docmill_pipeline::claim_handle::{self, ClaimHandle, ClaimRenewer};
use docmill_pipeline::fetch::{FetchedDocument, fetch_document};
use docmill_pipeline::{ByteBudget, StepError};
use docmill_storage::folder::FolderStore;
use docmill_storage::{
    Etag, FetchedObject, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectStore, PutResult,
};

/// One object that answers at once, optionally with a wrong size.
struct OneObject {
    says: u64,
    bytes: Bytes,
    bodies: AtomicU32,
    /// Requests of either sort.
    requests: AtomicU32,
}

impl OneObject {
    fn new(says: usize, has: usize) -> Self {
        let bytes = Bytes::from(vec![b'x'; has]);
        Self { says: says as u64, bytes, bodies: AtomicU32::new(0), requests: AtomicU32::new(0) }
    }

    fn etag() -> Etag {
        Etag("1".to_owned())
    }
}

#[async_trait]
impl ObjectStore for OneObject {
    fn describe(&self) -> String {
        "one object".to_owned()
    }

    async fn head(&self, _: &str) -> Result<Option<ObjectMeta>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let (etag, modified) = (Self::etag(), SystemTime::UNIX_EPOCH);
        Ok(Some(ObjectMeta { size: self.says, etag, modified, metadata: BTreeMap::new() }))
    }

    async fn get(&self, _: &str, what: GetOptions) -> Result<GetResult> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let size = self.bytes.len() as u64;
        if size > what.at_most {
            return Ok(GetResult::TooLarge { size });
        }
        self.bodies.fetch_add(1, Ordering::SeqCst);
        Ok(GetResult::Found(FetchedObject { bytes: self.bytes.clone(), etag: Self::etag() }))
    }

    async fn put(&self, _: &str, _: Bytes, _: &BTreeMap<String, String>) -> Result<Etag> {
        unimplemented!("a fetch writes nothing")
    }

    async fn put_if_absent(&self, _: &str, _: Bytes) -> Result<PutResult> {
        unimplemented!("a fetch writes nothing")
    }

    async fn put_if_match(&self, _: &str, _: &Etag, _: Bytes) -> Result<PutResult> {
        unimplemented!("a fetch writes nothing")
    }

    async fn delete(&self, _: &str) -> Result<()> {
        unimplemented!("a fetch deletes nothing")
    }

    async fn delete_if_match(&self, _: &str, _: &Etag) -> Result<bool> {
        unimplemented!("a fetch deletes nothing")
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> Result<Vec<ObjectEntry>> {
        unimplemented!("a fetch lists nothing")
    }
}

/// Fetches it where a document may have 100 KiB.
async fn fetched(
    store: &OneObject,
    budget: &ByteBudget,
) -> std::result::Result<FetchedDocument, StepError> {
    let limits = LimitsConfig { document_bytes: ByteSize(100 << 10), ..LimitsConfig::default() };
    fetched_within(store, &limits, budget).await
}

async fn fetched_within(
    store: &OneObject,
    limits: &LimitsConfig,
    budget: &ByteBudget,
) -> std::result::Result<FetchedDocument, StepError> {
    let ledger = MemoryLedger::new(time::OffsetDateTime::UNIX_EPOCH);
    let document = DocumentRef {
        id: DocumentId::random(),
        file_path: "documents/x".to_owned(),
        original_name: None,
        etag: None,
        depth: 0,
        pages: None,
    };
    fetch_document(store, &ledger, &document, limits, budget).await
}

fn is_too_large(answer: std::result::Result<FetchedDocument, StepError>) -> bool {
    matches!(answer, Err(StepError::Rejected { reason: OutcomeReason::TooLarge, .. }))
}

#[tokio::test]
async fn invariant_9_documents_in_memory_share_one_budget_and_the_next_waits_for_its_part() {
    let store = OneObject::new(60 << 10, 60 << 10);
    let budget = ByteBudget::new(ByteSize(100 << 10));
    let first = fetched(&store, &budget).await.unwrap();
    let mut second = Box::pin(fetched(&store, &budget));
    assert!(futures::poll!(second.as_mut()).is_pending(), "two of them are more than the budget");
    assert_eq!(store.bodies.load(Ordering::SeqCst), 1, "no byte of the second is read");
    drop(first);
    assert_eq!(second.await.unwrap().bytes.len(), 60 << 10);
}

#[tokio::test]
async fn invariant_9_a_document_over_the_limit_costs_no_memory_even_if_the_store_reports_a_wrong_size()
 {
    let budget = ByteBudget::new(ByteSize(150 << 10));
    let honest = OneObject::new(101 << 10, 101 << 10);
    assert!(is_too_large(fetched(&honest, &budget).await));
    let counted = |store: &OneObject| {
        (store.requests.load(Ordering::SeqCst), store.bodies.load(Ordering::SeqCst))
    };
    assert_eq!(counted(&honest), (1, 0), "refused by its size alone");
    // So much is in use that sizes are requested first.
    let _others = budget.try_reserve(100 << 10).unwrap();
    let honest = OneObject::new(101 << 10, 50 << 10);
    assert!(is_too_large(fetched(&honest, &budget).await));
    assert_eq!(counted(&honest), (1, 0), "refused by its size alone");
    let growing = OneObject::new(1 << 10, 101 << 10);
    assert!(is_too_large(fetched(&growing, &budget).await));
    assert_eq!(counted(&growing), (2, 0), "capped while it was read");
}

#[tokio::test]
async fn a_document_of_usual_size_costs_one_request_and_holds_no_more_than_its_bytes() {
    let limits = LimitsConfig::default();
    let budget = ByteBudget::new(limits.documents_in_memory);
    let small = OneObject::new(60 << 10, 60 << 10);
    let held = fetched_within(&small, &limits, &budget).await.unwrap();
    assert_eq!(small.requests.load(Ordering::SeqCst), 1);
    let rest = budget.total() - (60 << 10);
    assert!(budget.try_reserve(rest + 4096).is_none());
    drop(budget.try_reserve(rest).unwrap());
    drop(held);
    let large = OneObject::new(5 << 20, 5 << 20);
    let held = fetched_within(&large, &limits, &budget).await.unwrap();
    assert_eq!(large.requests.load(Ordering::SeqCst), 2, "its size, then its body");
    assert!(budget.try_reserve(budget.total() - (5 << 20) + 4096).is_none());
    drop(held);
    let empty = OneObject::new(0, 0);
    assert!(fetched_within(&empty, &limits, &budget).await.is_err());
    drop(budget.try_reserve(budget.total()).unwrap());
}

/// The result for a document of a folder, registered in this version.
async fn fetched_from(
    store: &FolderStore,
    ledger: &MemoryLedger,
    etag: Option<String>,
) -> std::result::Result<FetchedDocument, OutcomeReason> {
    let file_path = "documents/x".to_owned();
    let document = DocumentRef {
        id: DocumentId::random(),
        file_path,
        original_name: None,
        etag,
        depth: 0,
        pages: None,
    };
    let budget = ByteBudget::new(ByteSize(1 << 20));
    match fetch_document(store, ledger, &document, &LimitsConfig::default(), &budget).await {
        Ok(fetched) => Ok(fetched),
        Err(StepError::Rejected { reason, .. }) => Err(reason),
        Err(StepError::Fault(error)) => panic!("{error}"),
    }
}

#[tokio::test]
async fn another_version_than_was_registered_is_not_taken_for_it_and_its_content_not_if_it_is_blocked()
 {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).await.unwrap();
    let ledger = MemoryLedger::new(time::OffsetDateTime::UNIX_EPOCH);
    let put = async |text: &'static str| {
        let bytes = Bytes::from_static(text.as_bytes());
        store.put("documents/x", bytes, &BTreeMap::new()).await.unwrap().0
    };
    let (old, new) = (put("an older one").await, put("a newer one").await);
    let read = fetched_from(&store, &ledger, Some(new.clone())).await.unwrap();
    assert_eq!(read.bytes, Bytes::from_static(b"a newer one"));
    let refused = fetched_from(&store, &ledger, Some(old)).await.map(|read| read.sha256);
    assert_eq!(refused, Err(OutcomeReason::Superseded));
    ledger.block_content(&read.sha256);
    let refused = fetched_from(&store, &ledger, Some(new)).await.map(|read| read.sha256);
    assert_eq!(refused, Err(OutcomeReason::Blocked));
}

/// A claim whose local deadline is far ahead, as that of a worker that was asleep.
fn claim(id: IngestionId) -> (ClaimHandle, ClaimRenewer) {
    claim_handle::claim_pair(id, ClaimToken::random(), Instant::now() + Duration::from_secs(600))
}

type TextSlot = ArtefactSlot<BTreeMap<String, String>>;

async fn slot(store: &dyn ObjectStore, id: IngestionId) -> TextSlot {
    slot_made_from(store, id, "the same").await
}

async fn slot_made_from(store: &dyn ObjectStore, id: IngestionId, identity: &str) -> TextSlot {
    let key = docmill_storage::keys::extraction_key(id);
    let pool = Arc::new(CpuPool::new(1).unwrap());
    ArtefactSlot::load(store, &pool, key, identity.to_owned()).await.unwrap()
}

fn content(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("text".to_owned(), text.to_owned())])
}

#[tokio::test]
async fn invariant_8_a_late_zombie_cannot_replace_a_newer_claims_artefact() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(FolderStore::open(folder.path()).await.unwrap());
    let store = store.as_ref();
    let id = IngestionId::random();
    let ((zombie, _keeper), (owner, _other)) = (claim(id), claim(id));
    // First where nothing lay, then over a version that both have seen.
    for round in ["first", "second"] {
        let (mut late, mut newer) = (slot(store, id).await, slot(store, id).await);
        newer.write(store, &owner, content(round)).await.unwrap();
        let refused = late.write(store, &zombie, content("late")).await;
        assert!(refused.is_err(), "{round}: the zombie's write took effect");
        assert_eq!(slot(store, id).await.content, Some(content(round)), "the newer one stands");
    }
}

#[tokio::test]
async fn invariant_8_a_write_whose_reply_was_lost_is_ours_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).await.unwrap();
    let id = IngestionId::random();
    let (hold, _keeper) = claim(id);
    let (mut once, mut again) = (slot(&store, id).await, slot(&store, id).await);
    once.write(&store, &hold, content("same")).await.unwrap();
    again.write(&store, &hold, content("same")).await.unwrap();
    again.write(&store, &hold, content("next")).await.unwrap();
}

#[tokio::test]
async fn invariant_2_no_artefact_is_written_after_a_noticed_loss_of_the_claim() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).await.unwrap();
    let id = IngestionId::random();
    let (hold, keeper) = claim(id);
    let mut slot = slot(&store, id).await;
    keeper.note_lost();
    let answer = slot.write(&store, &hold, content("late")).await;
    assert_eq!(answer.unwrap_err().fault, Fault::ClaimLost);
    let key = docmill_storage::keys::extraction_key(id);
    assert!(store.head(&key).await.unwrap().is_none());
}

#[tokio::test]
async fn an_artefact_that_was_made_from_something_else_is_absent_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).await.unwrap();
    let id = IngestionId::random();
    let (hold, _keeper) = claim(id);
    slot(&store, id).await.write(&store, &hold, content("earlier")).await.unwrap();
    let mut other = slot_made_from(&store, id, "another prompt").await;
    assert_eq!(other.content, None);
    other.write(&store, &hold, content("now")).await.unwrap();
    assert_eq!(slot(&store, id).await.content, None);
    let now = slot_made_from(&store, id, "another prompt").await;
    assert_eq!(now.content, Some(content("now")));
}

#[tokio::test]
async fn an_artefact_of_any_length_is_read_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).await.unwrap();
    let id = IngestionId::random();
    let (hold, _keeper) = claim(id);
    // Around the length up to which JSON is written on the spot, the envelope included.
    for length in [0, 1 << 20].into_iter().chain((64 << 10) - 128..=64 << 10) {
        let text = "x".repeat(length);
        slot(&store, id).await.write(&store, &hold, content(&text)).await.unwrap();
        assert_eq!(slot(&store, id).await.content, Some(content(&text)), "{length}");
    }
}

#[tokio::test]
async fn an_artefact_that_is_too_large_to_read_is_made_anew_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).await.unwrap();
    let id = IngestionId::random();
    let (hold, _keeper) = claim(id);
    slot(&store, id).await.write(&store, &hold, content("once")).await.unwrap();
    let key = docmill_storage::keys::extraction_key(id);
    let file = std::fs::File::options().write(true).open(folder.path().join(&key)).unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    let mut large = slot(&store, id).await;
    assert_eq!(large.content, None);
    large.write(&store, &hold, content("anew")).await.unwrap();
    assert_eq!(slot(&store, id).await.content, Some(content("anew")));
}
