//! Properties of Postgres only: concurrent claims, renewals that touch no index, commits that do
//! not wait for the disk.

use std::time::{Duration, Instant};

use docmill_core::fault::{Fault, Result};
use docmill_core::model::{ArtefactRef, ClaimToken, IngestionId, IngestionStage};
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::operators::{self, AuditNote};
use docmill_ledger::{
    AttemptLedger, ClaimOutcome, IngestionResult, LeaseRenewal, LeaseStatus, Ledger, WriteResult,
};

use tokio::task::JoinHandle;

use super::fixture::{failed, record, renewal, terms};
use crate::support::postgres::TestDatabase;
use crate::support::world::SOON;

pub(super) async fn insert(database: &TestDatabase, count: usize) -> Vec<IngestionId> {
    let ids: Vec<uuid::Uuid> = (0..count).map(|_| uuid::Uuid::new_v4()).collect();
    // A document each: an end is not written while another end of its document is.
    for sql in [
        "INSERT INTO document (id, file_path) SELECT id, 'x' FROM unnest($1::uuid[]) id",
        "INSERT INTO ingestion (id, document_id) SELECT id, id FROM unnest($1::uuid[]) id",
    ] {
        sqlx::query(sql).bind(&ids).execute(database.pool()).await.unwrap();
    }
    ids.into_iter().map(IngestionId).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_claimers_of_one_batch_get_each_row_once_and_never_deadlock() {
    let database = TestDatabase::create().await;
    let ids = insert(&database, 40).await;
    let claimers: Vec<_> = (0..16)
        .map(|_| {
            let ledger = PostgresLedger::new(database.db());
            let mut ids = ids.clone();
            tokio::spawn(async move {
                fastrand::shuffle(&mut ids);
                ledger.claim(&ids, &terms()).await
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for claimer in claimers {
        for answer in claimer.await.unwrap().unwrap() {
            match answer {
                ClaimOutcome::Claimed(claim) => claimed.push(claim.id),
                ClaimOutcome::Busy(_) | ClaimOutcome::Locked => {}
                other => panic!("{other:?}"),
            }
        }
    }
    claimed.sort();
    let mut expected = ids.clone();
    expected.sort();
    assert_eq!(claimed, expected);
}

/// Both were judged before either had completed, and the first is still being written as the second comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invoice_waits_for_its_copy_that_is_being_recorded_and_is_flagged_for_it() {
    let database = TestDatabase::create().await;
    let (first, second) = (insert(&database, 1).await[0], insert(&database, 1).await[0]);
    let end = IngestionResult { duplicate_rule: Some("again".to_owned()), ..record(None) };
    // The end of the first is half written: its document's row waits for another.
    let slow = "CREATE TABLE gate (id int); INSERT INTO gate VALUES (1);
        CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM 1 FROM gate FOR UPDATE; RETURN NEW; END';
        CREATE TRIGGER slow BEFORE UPDATE ON document FOR EACH ROW EXECUTE FUNCTION wait_at_gate()";
    sqlx::raw_sql(slow).execute(database.pool()).await.unwrap();
    let mut holder = database.pool().begin().await.unwrap();
    sqlx::query("SELECT 1 FROM gate FOR UPDATE").execute(&mut *holder).await.unwrap();
    let held = begin_recording(&database, first, &end).await;
    wait_for_lock(&database, "<> 'advisory'").await;
    let copy = begin_recording(&database, second, &end).await;
    wait_for_lock(&database, "= 'advisory'").await;
    holder.rollback().await.unwrap();
    for ended in [held, copy] {
        assert_eq!(ended.await.unwrap().unwrap(), WriteResult::Applied);
    }
    for (id, reasons) in [(first, vec![]), (second, vec!["again".to_owned()])] {
        let read = "SELECT i.review_reasons, d.needs_human_review FROM ingestion i
            JOIN document d ON d.id = i.document_id WHERE i.id = $1";
        let row: (Vec<String>, bool) =
            sqlx::query_as(read).bind(id.0).fetch_one(database.pool()).await.unwrap();
        assert_eq!(row, (reasons.clone(), !reasons.is_empty()));
    }
}

/// Claims it and lets its result be written beside the test.
async fn begin_recording(
    database: &TestDatabase,
    id: IngestionId,
    end: &IngestionResult,
) -> JoinHandle<Result<WriteResult>> {
    let (ledger, end) = (PostgresLedger::new(database.db()), end.clone());
    let answer = ledger.claim(&[id], &terms()).await.unwrap().pop();
    let Some(ClaimOutcome::Claimed(claimed)) = answer else { panic!("{answer:?}") };
    tokio::spawn(async move { ledger.record_result(id, claimed.token, &end).await })
}

/// Two to the power of 1,024 is no number of Postgres.
#[tokio::test]
async fn a_document_denied_beyond_the_longest_delay_is_still_released() {
    let database = TestDatabase::create().await;
    let id = insert(&database, 1).await[0];
    let often = "UPDATE ingestion SET denials = 5000 WHERE id = $1";
    sqlx::query(often).bind(id.0).execute(database.pool()).await.unwrap();
    let ledger = PostgresLedger::new(database.db());
    let answer = ledger.claim(&[id], &terms()).await.unwrap().pop();
    let Some(ClaimOutcome::Claimed(claimed)) = answer else { panic!("{answer:?}") };
    let denied = failed(Fault::Denied, false, 60);
    let given = ledger.release_claim(id, claimed.token, &denied).await.unwrap();
    assert_eq!(given, WriteResult::Applied);
}

/// Until a session of this database waits for a lock of that sort.
async fn wait_for_lock(database: &TestDatabase, sort: &str) {
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
            AND wait_event_type = 'Lock' AND wait_event {sort}"
    );
    let deadline = Instant::now() + SOON;
    loop {
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(waits.clone()))
            .fetch_one(database.pool())
            .await
            .unwrap();
        if count > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "nobody waits for a lock {sort}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn renewals_are_hot_so_that_leases_cost_no_index_writes() {
    let database = TestDatabase::create().await;
    let ids = insert(&database, 200).await;
    let db = Db::connect(&database.config()).await.unwrap();
    // Vacuum makes room or holds old rows back, as the rest of the machine lets it.
    leave_alone(&database).await;
    let mut claims = Vec::new();
    for answer in PostgresLedger::new(db.clone()).claim(&ids, &terms()).await.unwrap() {
        let ClaimOutcome::Claimed(claimed) = answer else { panic!("{answer:?}") };
        claims.push(renewal(claimed.id, claimed.token));
    }
    db.close().await;
    let hot_claims = hot_updates(&database, 200).await;
    let db = Db::connect(&database.config()).await.unwrap();
    let ledger = PostgresLedger::new(db.clone());
    // The first rounds spread the rows over more pages, which cannot be HOT; then it is steady.
    for batch in claims.chunks(50).cycle().take(40 * 4) {
        ledger.renew_leases(batch, Duration::from_secs(300)).await.unwrap();
    }
    db.close().await;
    let hot = hot_updates(&database, 8200).await - hot_claims;
    // With an index on a changed column it would be none. How many of the rest find room on their
    // page depends on the machine's load: nine in ten alone, four under load; so this requires one.
    assert!(hot >= 800, "{hot} of 8000 renewals were HOT");
}

#[tokio::test]
async fn a_holder_finds_its_row_by_its_key_and_not_among_all_that_are_in_progress() {
    let database = TestDatabase::create().await;
    // So few that an index of them is one page, which looks as cheap as the key; and without
    // statistics, which sometimes show a table too small for any index.
    leave_alone(&database).await;
    let ids = insert(&database, 100).await;
    let db = Db::connect(&database.config()).await.unwrap();
    let ledger = PostgresLedger::new(db.clone());
    let mut claims = Vec::new();
    for answer in ledger.claim(&ids, &terms()).await.unwrap() {
        let ClaimOutcome::Claimed(claimed) = answer else { panic!("{answer:?}") };
        claims.push((claimed.id, claimed.token));
    }
    let artefact = ArtefactRef { path: "x".to_owned(), identity: "y".to_owned() };
    for (id, token) in claims {
        let news = LeaseRenewal { new_stage: Some(IngestionStage::Extract), ..renewal(id, token) };
        ledger.renew_leases(&[news], Duration::from_secs(300)).await.unwrap();
        ledger.save_extraction(id, token, &artefact).await.unwrap();
        assert_eq!(
            ledger.record_result(id, token, &record(None)).await.unwrap(),
            WriteResult::Applied
        );
        ledger.read_back(id, token).await.unwrap();
    }
    db.close().await;
    let deadline = Instant::now() + SOON;
    while scans(&database, "ingestion_pkey").await < 400 {
        assert!(Instant::now() < deadline, "the scans were not counted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for index in ["ingestion_sendable", "ingestion_open"] {
        assert_eq!(scans(&database, index).await, 0, "{index}");
    }
}

/// No vacuum and no statistics of `ingestion` but those that are there.
async fn leave_alone(database: &TestDatabase) {
    let alone = "ALTER TABLE docmill.ingestion SET (autovacuum_enabled = false)";
    sqlx::query(alone).execute(database.pool()).await.unwrap();
}

/// Index scans, as reported by ended sessions.
async fn scans(database: &TestDatabase, index: &str) -> i64 {
    sqlx::query_scalar("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1")
        .bind(index)
        .fetch_one(database.pool())
        .await
        .unwrap()
}

/// HOT updates of `ingestion`, once `all` updates have been counted. A session's statistics are
/// sure to arrive when it ends, and not at once.
async fn hot_updates(database: &TestDatabase, all: i64) -> i64 {
    let deadline = Instant::now() + SOON;
    loop {
        let (seen, hot): (i64, i64) = sqlx::query_as(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'ingestion'",
        )
        .fetch_one(database.pool())
        .await
        .unwrap();
        if seen >= all {
            return hot;
        }
        assert!(Instant::now() < deadline, "{seen} of {all} updates were counted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn claims_do_not_wait_for_the_disk_and_ends_do() {
    let database = TestDatabase::create().await;
    // The tests' cluster runs without durability; what a session asks for can be seen all the same.
    sqlx::query(
        "CREATE TABLE docmill.seen AS SELECT ''::text AS what, ''::text AS setting WHERE false",
    )
    .execute(database.pool())
    .await
    .unwrap();
    for sql in [
        "ALTER DATABASE CURRENT_NAME SET synchronous_commit = on",
        "CREATE FUNCTION docmill.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO docmill.seen VALUES (NEW.status || NEW.claims,
                current_setting('synchronous_commit')); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER see AFTER UPDATE ON docmill.ingestion
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION docmill.see()",
    ] {
        let name = database.url().rsplit_once('/').unwrap().1.to_owned();
        let sql = sql.replace("CURRENT_NAME", &name);
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(database.pool()).await.unwrap();
    }
    // A fresh pool, so that its sessions begin with the database's setting.
    let db = Db::connect(&database.config()).await.unwrap();
    let ledger = PostgresLedger::new(db);
    let ids = insert(&database, 1).await;
    let ClaimOutcome::Claimed(claim) = ledger.claim(&ids, &terms()).await.unwrap().remove(0) else {
        panic!("not claimed")
    };
    let released = failed(Fault::Interrupted, false, 0);
    ledger.release_claim(claim.id, claim.token, &released).await.unwrap();
    let token = take_all(&ledger, &ids).await.remove(0);
    ledger.record_result(claim.id, token, &record(None)).await.unwrap();
    let seen: Vec<(String, String)> = sqlx::query_as("SELECT what, setting FROM docmill.seen")
        .fetch_all(database.pool())
        .await
        .unwrap();
    // A give-back that a crash of Postgres undid would be taken for a worker that died.
    let expected = [
        ("in-progress1", "off"),
        ("in-progress1", "on"),
        ("in-progress2", "off"),
        ("completed2", "on"),
    ];
    assert_eq!(seen, expected.map(|(what, how)| (what.to_owned(), how.to_owned())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_written_together_are_each_their_own_affair() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    // Repeated: Postgres reports an error before it undoes the statement, so an immediate retry may
    // find the locks of the failed one.
    for _ in 0..10 {
        write_ends_of_which_one_is_refused(&ledger, &insert(&database, 60).await).await;
    }
}

async fn write_ends_of_which_one_is_refused(ledger: &PostgresLedger, ids: &[IngestionId]) {
    let mut ends = Vec::new();
    let tokens = take_all(ledger, ids).await;
    for (place, (id, token)) in ids.iter().copied().zip(tokens).enumerate() {
        let mut end = record(None);
        let token = if place == 9 { ClaimToken::random() } else { token };
        if place == 7 {
            // A CHECK refuses it, and with it the whole statement.
            end.sha256 = Some("no hash".to_owned());
        }
        let ledger = ledger.clone();
        ends.push(tokio::spawn(async move { ledger.record_result(id, token, &end).await }));
    }
    for (place, end) in ends.into_iter().enumerate() {
        let answer = end.await.unwrap();
        match place {
            7 => assert_eq!(answer.unwrap_err().fault, Fault::Internal),
            9 => assert_eq!(answer.unwrap(), WriteResult::ClaimLost),
            _ => assert_eq!(answer.unwrap(), WriteResult::Applied, "{place}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_13_a_local_deadline_is_counted_from_before_the_claim_was_asked_for() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 1).await;
    let mut other = database.pool().begin().await.unwrap();
    // A claim does not wait for a row's lock, but for the table's.
    let lock = "LOCK TABLE ingestion IN EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    let asking = tokio::spawn(async move { ledger.claim(&ids, &terms()).await });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let deadline = Instant::now() + SOON;
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(database.pool()).await.unwrap() == 0 {
        assert!(Instant::now() < deadline, "the claim never waited");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // From here on the answer is late; the lease that it speaks of began before.
    let late = Instant::now();
    other.rollback().await.unwrap();
    let ClaimOutcome::Claimed(claim) = asking.await.unwrap().unwrap().remove(0) else {
        panic!("not claimed")
    };
    assert!(claim.lease_until < late + terms().lease, "counted from the answer");
}

/// Claims each; the tokens in the order of the ids.
pub(super) async fn take_all(ledger: &PostgresLedger, ids: &[IngestionId]) -> Vec<ClaimToken> {
    let taken = |answer| match answer {
        ClaimOutcome::Claimed(claimed) => claimed.token,
        other => panic!("{other:?}"),
    };
    ledger.claim(ids, &terms()).await.unwrap().into_iter().map(taken).collect()
}

/// A transaction that holds the lock of one row of this table.
pub(super) async fn lock_row(
    database: &TestDatabase,
    table: &str,
    id: uuid::Uuid,
) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut other = database.pool().begin().await.unwrap();
    let sql = format!("SELECT 1 FROM {table} WHERE id = $1 FOR UPDATE");
    sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).execute(&mut *other).await.unwrap();
    other
}

#[tokio::test]
async fn a_locked_row_delays_no_other_claim_or_renewal() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 5).await;
    let other = lock_row(&database, "ingestion", ids[2].0).await;
    let answers = ledger.claim(&ids, &terms()).await.unwrap();
    for (place, answer) in answers.iter().enumerate() {
        match place {
            2 => assert!(matches!(answer, ClaimOutcome::Locked), "{answer:?}"),
            _ => assert!(matches!(answer, ClaimOutcome::Claimed(_)), "{answer:?}"),
        }
    }
    other.rollback().await.unwrap();
    let ids = insert(&database, 5).await;
    let tokens = take_all(&ledger, &ids).await;
    let other = lock_row(&database, "ingestion", ids[3].0).await;
    let mut asked: Vec<_> = ids.iter().zip(&tokens).map(|(id, t)| renewal(*id, *t)).collect();
    asked[1].token = ClaimToken::random();
    let renewed = ledger.renew_leases(&asked, Duration::from_secs(300)).await.unwrap();
    use LeaseStatus::{Locked, Lost, Renewed};
    assert_eq!(renewed, [Renewed, Lost, Renewed, Locked, Renewed]);
    other.rollback().await.unwrap();
    let renewed = ledger.renew_leases(&asked, Duration::from_secs(300)).await.unwrap();
    assert_eq!(renewed, [Renewed, Lost, Renewed, Renewed, Renewed]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_or_document_delays_no_other_end() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let mut ids = insert(&database, 20).await;
    // The last has a document of its own, whose row its end has to write.
    ids.extend(insert(&database, 1).await);
    let tokens = take_all(&ledger, &ids).await;
    let sql = "SELECT document_id FROM ingestion WHERE id = $1";
    let document: uuid::Uuid =
        sqlx::query_scalar(sql).bind(ids[20].0).fetch_one(database.pool()).await.unwrap();
    let row = lock_row(&database, "ingestion", ids[4].0).await;
    let document = lock_row(&database, "document", document).await;
    let mut ends = tokio::task::JoinSet::new();
    for (place, (id, token)) in ids.iter().copied().zip(tokens.iter().copied()).enumerate() {
        let ledger = ledger.clone();
        ends.spawn(async move {
            let end = record(None);
            let first = ledger.record_result(id, token, &end).await;
            // Deleted by itself, without delaying others again.
            let again =
                if first.is_err() { ledger.record_result(id, token, &end).await } else { first };
            (place, again)
        });
    }
    // Both rows stay locked: whoever waited for them in the place of others would never end.
    let ended = tokio::time::timeout(2 * SOON, ends.join_all()).await;
    for (place, answer) in ended.expect("all ends are answered") {
        match place {
            4 | 20 => assert_eq!(answer.unwrap_err().fault, Fault::Transient, "{place}"),
            _ => assert_eq!(answer.unwrap(), WriteResult::Applied, "{place}"),
        }
    }
    row.rollback().await.unwrap();
    document.rollback().await.unwrap();
    for place in [4, 20] {
        let answer = ledger.record_result(ids[place], tokens[place], &record(None)).await.unwrap();
        assert_eq!(answer, WriteResult::Applied, "{place}");
    }
}

/// Of the same supplier and number: the lock of their keys is shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_whose_document_is_locked_holds_up_no_end_of_the_same_invoice() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let mut locked = Vec::new();
    let end = IngestionResult { duplicate_rule: Some("again".to_owned()), ..record(None) };
    for _ in 0..8 {
        let id = insert(&database, 1).await[0];
        let sql = "SELECT document_id FROM ingestion WHERE id = $1";
        let document: uuid::Uuid =
            sqlx::query_scalar(sql).bind(id.0).fetch_one(database.pool()).await.unwrap();
        let token = take_all(&ledger, &[id]).await[0];
        locked.push((id, token, lock_row(&database, "document", document).await));
    }
    let free = insert(&database, 1).await[0];
    let token = take_all(&ledger, &[free]).await[0];
    let waiting = locked.iter().map(|(id, token, _)| ledger.record_result(*id, *token, &end));
    let answers = futures::future::join_all(waiting);
    let all = async { tokio::join!(answers, ledger.record_result(free, token, &end)) };
    // One that waited would wait for the lock's timeout of some seconds, and the others after it.
    let (answers, written) = tokio::time::timeout(Duration::from_secs(4), all).await.unwrap();
    assert_eq!(written.unwrap(), WriteResult::Applied);
    for answer in answers {
        assert_eq!(answer.unwrap_err().fault, Fault::Transient, "to be tried again");
    }
    for (id, token, lock) in locked {
        lock.rollback().await.unwrap();
        assert_eq!(ledger.record_result(id, token, &end).await.unwrap(), WriteResult::Applied);
    }
}

/// A product's import inserts such rows in one long transaction.
#[tokio::test]
async fn rows_of_a_product_that_refer_to_an_ingestion_hold_up_neither_claim_renewal_nor_end() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 3).await;
    let child = "CREATE TABLE child (ingestion_id uuid REFERENCES ingestion (id),
        document_id uuid REFERENCES document (id))";
    sqlx::query(child).execute(database.pool()).await.unwrap();
    let mut import = database.pool().begin().await.unwrap();
    sqlx::query("INSERT INTO child SELECT id, document_id FROM ingestion")
        .execute(&mut *import)
        .await
        .unwrap();
    let tokens = take_all(&ledger, &ids).await;
    let asked: Vec<_> = ids.iter().zip(&tokens).map(|(id, t)| renewal(*id, *t)).collect();
    let renewed = ledger.renew_leases(&asked, Duration::from_secs(300)).await.unwrap();
    assert_eq!(renewed, [LeaseStatus::Renewed; 3]);
    let how = failed(Fault::Unavailable, false, 0);
    let released = ledger.release_claim(ids[0], tokens[0], &how).await.unwrap();
    let recorded = ledger.record_result(ids[1], tokens[1], &record(None)).await.unwrap();
    assert_eq!((released, recorded), (WriteResult::Applied, WriteResult::Applied));
    let by = AuditNote { operator: "test".to_owned(), why: String::new() };
    let cancelled = operators::cancel_ingestions(&database.db(), &ids[2..], &by).await.unwrap();
    assert_eq!(cancelled, ids[2..]);
    import.rollback().await.unwrap();
}

#[tokio::test]
async fn a_claim_that_is_given_back_while_its_row_is_locked_holds_no_connection() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let id = insert(&database, 1).await[0];
    let token = take_all(&ledger, &[id]).await[0];
    let lock = lock_row(&database, "ingestion", id.0).await;
    let how = failed(Fault::Unavailable, false, 0);
    assert_eq!(ledger.release_claim(id, token, &how).await.unwrap_err().fault, Fault::Transient);
    lock.rollback().await.unwrap();
    assert_eq!(ledger.release_claim(id, token, &how).await.unwrap(), WriteResult::Applied);
    assert_eq!(ledger.release_claim(id, token, &how).await.unwrap(), WriteResult::ClaimLost);
}

#[tokio::test]
async fn a_claim_that_errs_has_claimed_nothing() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = insert(&database, 2).await;
    let asked = [ids[0], ids[1], IngestionId::random()];
    // Queries about unknown ids, beside the claims of known ones.
    let rename = "ALTER TABLE erased_ingestion RENAME TO elsewhere";
    sqlx::query(rename).execute(database.pool()).await.unwrap();
    let answers = ledger.claim(&asked, &terms()).await;
    assert!(answers.is_err() || answers.unwrap().iter().all(|a| matches!(a, ClaimOutcome::Locked)));
    let claims: i64 = sqlx::query_scalar("SELECT sum(claims)::int8 FROM ingestion")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(claims, 0, "claimed, and nobody knows");
}
