//! Attempts and spending over a store in memory.

use super::*;
use docmill_storage::memory::MemoryStore;

fn document() -> DocumentRef {
    DocumentRef {
        id: DocumentId::random(),
        file_path: "document".to_owned(),
        original_name: None,
        etag: None,
        depth: 0,
        pages: None,
    }
}

fn reference(identity: &str) -> ArtefactRef {
    ArtefactRef { path: "somewhere".to_owned(), identity: identity.to_owned() }
}

fn spent(nanos: u64) -> ProviderSpending {
    ProviderSpending {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        calls: 1,
        pages: 0,
        usage: ModelUsage { input: 2, ..ModelUsage::default() },
        cost_nanos: Some(nanos),
    }
}

#[tokio::test]
async fn a_later_attempt_finds_earlier_references_and_fences_the_earlier_attempt() {
    let ledger = ObjectLedger::new(Arc::new(MemoryStore::default()));
    let id = IngestionId::random();
    let (first, early) = ledger.begin_attempt(id, document()).await.unwrap();
    assert_eq!((first.claims, &first.extraction), (1, &None));
    let saved = early.save_extraction(id, first.token, &reference("one")).await.unwrap();
    assert_eq!(saved, WriteResult::Applied);
    let (second, late) = ledger.begin_attempt(id, document()).await.unwrap();
    assert_eq!((second.claims, second.extraction), (2, Some(reference("one"))));
    let refused = early.save_extraction(id, first.token, &reference("zombie")).await.unwrap();
    assert_eq!(refused, WriteResult::ClaimLost);
    let saved = late.save_extraction(id, second.token, &reference("two")).await.unwrap();
    assert_eq!(saved, WriteResult::Applied);
    let (third, _) = ledger.begin_attempt(id, document()).await.unwrap();
    assert_eq!(third.extraction, Some(reference("two")));
}

#[tokio::test]
async fn attempts_begun_at_once_have_different_numbers_and_one_of_them_writes() {
    let ledger = ObjectLedger::new(Arc::new(MemoryStore::default()));
    let id = IngestionId::random();
    let (one, two) =
        tokio::join!(ledger.begin_attempt(id, document()), ledger.begin_attempt(id, document()));
    let ((one, first), (two, second)) = (one.unwrap(), two.unwrap());
    assert_eq!(one.claims + two.claims, 3, "numbers 1 and 2");
    let reference = reference("x");
    let saved = [
        first.save_extraction(id, one.token, &reference).await.unwrap(),
        second.save_extraction(id, two.token, &reference).await.unwrap(),
    ];
    assert_eq!(saved.iter().filter(|held| **held == WriteResult::Applied).count(), 1, "{saved:?}");
}

#[tokio::test]
async fn a_days_sum_is_that_of_all_processes_and_of_those_before_them() {
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::default());
    let ledgers = [ObjectLedger::new(Arc::clone(&store)), ObjectLedger::new(Arc::clone(&store))];
    for (ledger, nanos) in ledgers.iter().zip([5, 7]) {
        let (claimed, attempt) =
            ledger.begin_attempt(IngestionId::random(), document()).await.unwrap();
        attempt.add_spending(claimed.id, claimed.claims, &spent(nanos)).await.unwrap();
        attempt.add_spending(claimed.id, claimed.claims, &spent(nanos)).await.unwrap();
    }
    let restarted = ObjectLedger::new(Arc::clone(&store));
    for ledger in ledgers.iter().chain([&restarted]) {
        let today = ledger.sum_today().await.unwrap();
        assert_eq!(today.cost_nanos, 24);
        assert!(today.until_next_day <= Duration::from_secs(86_400));
    }
    let day = OffsetDateTime::now_utc().date();
    let key = format!("{OWN_FOLDER}{}", keys::spending_key(day, &ledgers[0].writer));
    let (stored, _) = read_record::<DailySpending>(store.as_ref(), &key).await.unwrap().unwrap();
    assert_eq!((stored.cost_nanos, stored.rows[0].calls, stored.rows[0].usage.input), (10, 2, 4));
}

#[tokio::test]
async fn artefacts_go_with_the_result_and_abandoned_ones_by_age() {
    // With a clock 40 days behind, every object is that old.
    let old =
        Arc::new(MemoryStore::with_clock(|| SystemTime::now() - Duration::from_secs(40 * 86_400)));
    let new = Arc::new(MemoryStore::default());
    for (store, abandoned) in [(old, 1), (new, 0)] {
        let ledger = ObjectLedger::new(Arc::clone(&store) as Arc<dyn ObjectStore>);
        let (kept, done) = (IngestionId::random(), IngestionId::random());
        for id in [kept, done] {
            ledger.begin_attempt(id, document()).await.unwrap();
            let key = keys::transcription_key(id);
            ledger.artefacts().put(&key, "text".into(), &BTreeMap::new()).await.unwrap();
        }
        remove_artefacts(store.as_ref(), done).await.unwrap();
        let below = |id| format!("{OWN_FOLDER}{}", keys::ingestion_prefix(id));
        assert!(store.list(&below(done), None, 9).await.unwrap().is_empty());
        assert_eq!(store.list(&below(kept), None, 9).await.unwrap().len(), 2);
        assert_eq!(ledger.remove_abandoned().await.unwrap(), abandoned);
        erase_artefacts(store.as_ref(), kept).await.unwrap();
        assert!(store.list(OWN_FOLDER, None, 9).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_documents_cost_carries_over_to_its_next_attempt_only() {
    let ledger = ObjectLedger::new(Arc::new(MemoryStore::default()));
    let id = IngestionId::random();
    let (first, attempt) = ledger.begin_attempt(id, document()).await.unwrap();
    // As the pipeline does: what was paid and what was stored are written at once.
    let (paid, reply) = (spent(5), reference("reply"));
    let (booked, saved) = tokio::join!(
        attempt.add_spending(id, first.claims, &paid),
        attempt.save_extraction(id, first.token, &reply),
    );
    booked.unwrap();
    assert_eq!(saved.unwrap(), WriteResult::Applied, "booking takes no claim away");
    attempt.add_spending(id, first.claims, &spent(7)).await.unwrap();
    assert_eq!(attempt.spent_on(id).await.unwrap().cost_nanos, 12);
    let (second, next) = ledger.begin_attempt(id, document()).await.unwrap();
    assert_eq!(next.spent_on(id).await.unwrap().cost_nanos, 12);
    assert_eq!(second.extraction, Some(reply));
    let (_, other) = ledger.begin_attempt(IngestionId::random(), document()).await.unwrap();
    assert_eq!(other.spent_on(IngestionId::random()).await.unwrap(), DocumentSpending::default());
}

#[tokio::test]
async fn a_store_that_does_not_answer_a_write_keeps_no_budget_check_waiting() {
    let ledger = ObjectLedger::new(Arc::new(MemoryStore::default()));
    ledger.add_spending(&spent(7)).await.unwrap();
    assert_eq!(ledger.sum_today().await.unwrap().cost_nanos, 7);
    // Writers wait for the store from here on.
    let silent = ledger.writing.lock().await;
    let writing = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move { ledger.add_spending(&spent(5)).await }
    });
    tokio::task::yield_now().await;
    let sum = tokio::time::timeout(Duration::from_secs(60), ledger.sum_today()).await;
    assert_eq!(sum.unwrap().unwrap().cost_nanos, 12, "what is paid counts before it is written");
    // Others are read by one for all; meanwhile what is known will do.
    let _reading = ledger.reading.lock().await;
    ledger.with_book(|book| {
        let age = OTHERS_FRESH + Duration::from_secs(1);
        book.others = book.others.map(|(nanos, read)| (nanos, read.checked_sub(age).unwrap()));
    });
    let sum = tokio::time::timeout(Duration::from_secs(60), ledger.sum_today()).await;
    assert_eq!(sum.unwrap().unwrap().cost_nanos, 12);
    drop(silent);
    writing.await.unwrap().unwrap();
}
