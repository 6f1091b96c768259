//! Concurrent queries and writes of jobs: few statements, and an answer for each.

use docmill_core::fault::Result;
use docmill_core::model::{ArtefactRef, ClaimToken, DocumentId, IngestionId, ModelUsage};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::duplicate_key::DuplicateKeys;
use docmill_ledger::{
    AttemptLedger, ClaimOutcome, ClaimTerms, Ledger, ProviderSpending, StoredTranscript,
    WriteResult,
};
use futures::future::{FutureExt as _, join_all};
use sqlx::Executor as _;

use super::fixture::{record, terms};
use super::locks::{insert, lock_row, take_all};
use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, until};

fn artefact(name: &str) -> ArtefactRef {
    ArtefactRef { path: name.to_owned(), identity: "made from this".to_owned() }
}

fn transcript(name: &str) -> StoredTranscript {
    StoredTranscript {
        artefact: artefact(name),
        quality: 0.5,
        sha256: "ab".repeat(32),
        pages: 3,
        preprocessed: None,
    }
}

fn spent(cost_nanos: u64) -> ProviderSpending {
    ProviderSpending {
        provider: "openai".to_owned(),
        model: "m".to_owned(),
        calls: 1,
        pages: 0,
        usage: ModelUsage { input: 7, ..ModelUsage::default() },
        cost_nanos: Some(cost_nanos),
    }
}

async fn count(database: &TestDatabase, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(database.pool()).await.unwrap()
}

/// Notes the transaction of each statement that updates an ingestion or adds spending.
async fn watch_statements(database: &TestDatabase) {
    let watch = "CREATE TABLE seen (transaction xid8);
        CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN INSERT INTO docmill.seen VALUES (pg_current_xact_id()); RETURN NULL; END';
        CREATE TRIGGER see AFTER UPDATE ON ingestion FOR EACH STATEMENT EXECUTE FUNCTION see();
        CREATE TRIGGER see AFTER INSERT ON spending FOR EACH STATEMENT EXECUTE FUNCTION see()";
    database.pool().execute(watch).await.unwrap();
}

const STATEMENTS: &str = "SELECT count(DISTINCT transaction) FROM seen";

#[tokio::test]
async fn twelve_concurrent_receives_are_claimed_in_a_few_statements() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 60).await;
    watch_statements(&database).await;
    let terms = terms();
    let received: Vec<&[IngestionId]> = ids.chunks(5).collect();
    let claims = join_all(received.iter().map(|ids| ledger.claim(ids, &terms))).await;
    for (asked, answers) in received.iter().zip(claims) {
        let answers = answers.unwrap();
        let claimed: Vec<IngestionId> = answers
            .iter()
            .map(|answer| match answer {
                ClaimOutcome::Claimed(claimed) => claimed.id,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(claimed, **asked, "each receive has its own answers, in its order");
    }
    let statements = count(&database, STATEMENTS).await;
    assert!(statements <= 2, "{statements} statements for 60 claims");
}

#[tokio::test]
async fn of_two_who_ask_for_an_ingestion_at_the_same_moment_one_has_it_and_the_other_finds_it_busy()
{
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 3).await;
    let terms = terms();
    let (first, second) = futures::future::join(
        ledger.claim(&[ids[0], ids[1]], &terms),
        ledger.claim(&[ids[1], ids[2]], &terms),
    )
    .await;
    let (first, second) = (first.unwrap(), second.unwrap());
    let has = |answer: &ClaimOutcome, id: IngestionId| match answer {
        ClaimOutcome::Claimed(claimed) => claimed.id == id,
        _ => false,
    };
    assert!(has(&first[0], ids[0]) && has(&first[1], ids[1]), "{first:?}");
    assert!(matches!(second[0], ClaimOutcome::Busy(_)) && has(&second[1], ids[2]), "{second:?}");
    let claims = "SELECT sum(claims)::bigint FROM ingestion";
    assert_eq!(count(&database, claims).await, 3, "none was claimed twice");
}

#[tokio::test]
async fn claims_that_are_asked_for_together_have_each_the_terms_of_who_asked() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 2).await;
    let (own, other) = (terms(), ClaimTerms { worker: "another".to_owned(), ..terms() });
    let claims =
        futures::future::join(ledger.claim(&ids[..1], &own), ledger.claim(&ids[1..], &other));
    let (first, second) = claims.await;
    assert_eq!((first.unwrap().len(), second.unwrap().len()), (1, 1));
    for (id, worker) in [(ids[0], "w1"), (ids[1], "another")] {
        let sql = "SELECT worker FROM ingestion WHERE id = $1";
        let named: String =
            sqlx::query_scalar(sql).bind(id.0).fetch_one(database.pool()).await.unwrap();
        assert_eq!(named, worker);
    }
}

#[tokio::test]
async fn sixty_concurrent_writes_take_a_few_statements() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 60).await;
    let tokens = take_all(&ledger, &ids).await;
    watch_statements(&database).await;

    let (reference, cost) = (artefact("replies.json"), spent(5));
    let pairs = || ids.iter().zip(&tokens);
    let saved =
        join_all(pairs().map(|(id, token)| ledger.save_extraction(*id, *token, &reference)));
    assert!(saved.await.into_iter().all(|saved| saved.unwrap() == WriteResult::Applied));
    let for_references = count(&database, STATEMENTS).await;
    assert!(for_references <= 4, "{for_references} statements for 60 references");

    let paid = join_all(ids.iter().map(|id| ledger.add_spending(*id, 1, &cost)));
    assert!(paid.await.iter().all(Result::is_ok));
    let for_payments = count(&database, STATEMENTS).await - for_references;
    assert!(for_payments <= 4, "{for_payments} statements for 60 payments");
    assert_eq!(count(&database, "SELECT sum(cost_nanos)::bigint FROM spending_day").await, 300);
    assert_eq!(count(&database, "SELECT count(*) FROM spending WHERE cost_nanos = 5").await, 60);
}

#[tokio::test]
async fn invariant_2_of_references_that_are_written_together_each_needs_its_own_token() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 30).await;
    let mut tokens = take_all(&ledger, &ids).await;
    tokens[4] = ClaimToken::random();
    tokens[7] = tokens[8];
    let (reply, text) = (artefact("replies.json"), transcript("text.json"));
    let writes = ids.iter().zip(&tokens).enumerate().map(|(place, (id, token))| {
        let (ledger, reply, text) = (&ledger, &reply, &text);
        async move {
            match place % 2 {
                0 => ledger.save_extraction(*id, *token, reply).await,
                _ => ledger.save_transcription(*id, *token, text).await,
            }
        }
    });
    for (place, written) in join_all(writes).await.into_iter().enumerate() {
        let expected =
            if [4, 7].contains(&place) { WriteResult::ClaimLost } else { WriteResult::Applied };
        assert_eq!(written.unwrap(), expected, "{place}");
    }
    let replies =
        "SELECT count(*) FROM ingestion WHERE extraction_output_file_path = 'replies.json'
        AND extraction_identity = 'made from this' AND transcription_file_path IS NULL";
    assert_eq!(count(&database, replies).await, 14);
    let texts = "SELECT count(*) FROM ingestion WHERE transcription_file_path = 'text.json'
        AND pages = 3 AND transcription_quality_score = 0.5 AND sha256 IS NOT NULL
        AND extraction_output_file_path IS NULL";
    assert_eq!(count(&database, texts).await, 14);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_delays_no_other_reference_and_gets_its_own_later() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 20).await;
    let tokens = take_all(&ledger, &ids).await;
    let other = lock_row(&database, "ingestion", ids[3].0).await;
    let reply = artefact("replies.json");
    let mut writes: Vec<_> = ids
        .iter()
        .zip(&tokens)
        .map(|(id, token)| ledger.save_extraction(*id, *token, &reply).boxed())
        .collect();
    let mut locked = writes.remove(3);
    let all = join_all(writes);
    tokio::select! {
        biased;
        answer = &mut locked => panic!("{answer:?} of a row that is locked"),
        answers = all => {
            assert!(answers.into_iter().all(|answer| answer.unwrap() == WriteResult::Applied));
        }
    }
    other.rollback().await.unwrap();
    assert_eq!(locked.await.unwrap(), WriteResult::Applied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_2_a_reference_that_waits_for_its_row_is_lost_with_a_claim_that_goes_meanwhile() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 2).await;
    let tokens = take_all(&ledger, &ids).await;
    let (reply, text) = (artefact("replies.json"), transcript("text.json"));
    // Both rows are taken over, uncommitted: each write waits for its own.
    let mut taking = database.pool().begin().await.unwrap();
    sqlx::query("UPDATE ingestion SET claim_token = gen_random_uuid()")
        .execute(&mut *taking)
        .await
        .unwrap();
    let writes = futures::future::join(
        ledger.save_extraction(ids[0], tokens[0], &reply),
        ledger.save_transcription(ids[1], tokens[1], &text),
    );
    let committed = async {
        let waits = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until(SOON, || async { count(&database, waits).await == 2 }).await;
        taking.commit().await.unwrap();
    };
    let ((one, other), ()) = futures::future::join(writes, committed).await;
    assert_eq!((one.unwrap(), other.unwrap()), (WriteResult::ClaimLost, WriteResult::ClaimLost));
    let written = "SELECT count(*) FROM ingestion
        WHERE extraction_output_file_path IS NOT NULL OR transcription_file_path IS NOT NULL";
    assert_eq!(count(&database, written).await, 0);
}

#[tokio::test]
async fn questions_that_are_asked_together_get_their_own_answers_each() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let blocked = "INSERT INTO blocked_content (sha256, blocked_by, why)
        SELECT repeat(n::text, 64), 'a person', 'why' FROM generate_series(0, 8, 2) n";
    database.pool().execute(blocked).await.unwrap();
    let hashes: Vec<String> = (0..10).map(|n| n.to_string().repeat(64)).collect();
    let answers = join_all(hashes.iter().map(|sha256| ledger.is_blocked(sha256))).await;
    for (place, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), place % 2 == 0, "{place}");
    }

    let ids = insert(&database, 1).await;
    let ClaimOutcome::Claimed(claim) = ledger.claim(&ids, &terms()).await.unwrap().remove(0) else {
        panic!("not claimed")
    };
    ledger.record_result(claim.id, claim.token, &record(None)).await.unwrap();
    let elsewhere = DocumentId::random();
    let asked = [
        (elsewhere, None, "Müller", Some(claim.id)),
        (elsewhere, Some("other tenant"), "Müller", None),
        (elsewhere, None, "Meier", None),
        (claim.document.id, None, "Müller", None),
        (elsewhere, None, "MÜLLER", Some(claim.id)),
    ];
    let ledger = &ledger;
    let found = join_all(asked.iter().map(|(document, tenant, supplier, _)| async move {
        let keys = DuplicateKeys::new(supplier, "R 1").unwrap();
        ledger.find_duplicate(*document, *tenant, &keys).await
    }));
    let expected: Vec<Option<IngestionId>> = asked.iter().map(|asked| asked.3).collect();
    let found: Vec<_> = found.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn two_payments_for_the_same_attempt_in_one_statement_are_both_counted() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 2).await;
    let (one, two) = (spent(5), spent(11));
    let paid = [(ids[0], &one), (ids[0], &two), (ids[1], &one), (ids[0], &one)];
    let paid = join_all(paid.iter().map(|(id, spent)| ledger.add_spending(*id, 1, spent)));
    assert!(paid.await.iter().all(Result::is_ok));
    assert_eq!(ledger.spent_on(ids[0]).await.unwrap().cost_nanos, 21);
    assert_eq!(ledger.spent_on(ids[1]).await.unwrap().cost_nanos, 5);
    assert_eq!(count(&database, "SELECT sum(calls)::bigint FROM spending").await, 4);
}

/// The first statement waits for a table lock until another begins beside it; more than two never
/// do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_long_has_one_beside_it_and_never_two() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 5).await;
    let tokens = take_all(&ledger, &ids).await;
    let mut other = database.pool().begin().await.unwrap();
    other.execute("LOCK TABLE ingestion IN EXCLUSIVE MODE").await.unwrap();
    let waiting = || async {
        let sql = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        count(&database, sql).await
    };
    let mut writing = tokio::task::JoinSet::new();
    for (place, (id, token)) in ids.iter().copied().zip(tokens).enumerate() {
        let ledger = ledger.clone();
        writing.spawn(async move { ledger.record_result(id, token, &record(None)).await });
        // The first by itself, the second beside it, the others behind them.
        let statements = i64::try_from(place + 1).unwrap().min(2);
        until(SOON, || async { waiting().await == statements }).await;
    }
    // However long that takes, no third begins: no observable event would show it. A session that
    // checks for a deadlock, after a second, is not listed as waiting meanwhile.
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_millis(200) {
        assert!(waiting().await <= 2, "a third statement");
    }
    other.rollback().await.unwrap();
    while let Some(written) = writing.join_next().await {
        assert_eq!(written.unwrap().unwrap(), WriteResult::Applied);
    }
}
