//! The cost of a silent Postgres, a lost reply, a lock and a refusal: seconds, for the affected
//! calls only.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use docmill_core::config::{AcknowledgeMode, DatabaseConfig};
use docmill_core::fault::Fault;
use docmill_core::model::IngestionId;
use docmill_ledger::Ledger;
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_testkit::openai::{Answer, Script};
use docmill_testkit::silent_proxy::SilentProxy;
use docmill_testkit::sqs::{Action, Failure};
use docmill_worker::ack_batcher::{AckBatcher, MessageDisposition};
use docmill_worker::heartbeat;
use docmill_worker::registry::MessageRegistry;
use sqlx::AssertSqlSafe;
use tokio::task::JoinSet;

use crate::support::documents;
use crate::support::flaky::{FlakyLedger, Recording};
use crate::support::postgres::TestDatabase;
use crate::support::process::{Process, docmill};
use crate::support::world::{SOON, World, until};

/// Maximum recovery time after an outage.
const BACK: Duration = Duration::from_secs(60);
const CONNECTIONS: u32 = 4;

/// A way to the same database through the proxy.
async fn through_proxy(config: DatabaseConfig) -> (SilentProxy, DatabaseConfig) {
    let url = config.url.reveal().to_owned();
    let (login, rest) = url.split_once('@').unwrap();
    let (place, database) = rest.split_once('/').unwrap();
    let proxy = SilentProxy::start(place).await.unwrap();
    let url = format!("{login}@{}/{database}", proxy.address()).into();
    let statement_timeout = Duration::from_secs(2);
    (proxy, DatabaseConfig { url, max_connections: CONNECTIONS, statement_timeout, ..config })
}

/// Queries on `count` connections in parallel.
fn ask_many(ledger: &PostgresLedger, count: u32) -> JoinSet<Result<(), Fault>> {
    let mut asked = JoinSet::new();
    for _ in 0..count {
        let ledger = ledger.clone();
        asked.spawn(
            async move { ledger.current_time().await.map(drop).map_err(|error| error.fault) },
        );
    }
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_on_a_silent_connection_end_and_new_connections_are_used_once_there_are_any() {
    let database = TestDatabase::create().await;
    let (proxy, config) = through_proxy(database.config()).await;
    let ledger = PostgresLedger::new(Db::connect(&config).await.unwrap());
    let answers = ask_many(&ledger, 4 * CONNECTIONS).join_all().await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");

    // First with abandoned statements, then with awaited ones.
    for is_dropped in [true, false] {
        proxy.fall_silent();
        let begun = Instant::now();
        let mut asked = ask_many(&ledger, 2 * CONNECTIONS);
        tokio::time::sleep(Duration::from_millis(200)).await;
        if is_dropped {
            asked.abort_all();
            while asked.join_next().await.is_some() {}
        } else {
            let answers = tokio::time::timeout(BACK, asked.join_all()).await;
            let answers = answers.expect("a statement waits without end for a silent server");
            assert!(answers.iter().all(|said| *said == Err(Fault::Unavailable)), "{answers:?}");
            assert!(begun.elapsed() > config.statement_timeout, "the proxy was not silent");
        }
        proxy.speak_again();
        until(BACK, || async { ledger.current_time().await.is_ok() }).await;
        let answers = ask_many(&ledger, 4 * CONNECTIONS).join_all().await;
        assert!(answers.iter().all(Result::is_ok), "a place in the pool is lost: {answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_postgres_was_silent_goes_on_soon_after_and_has_counted_nothing() {
    let mut world = World::new().await;
    let (proxy, config) = through_proxy(world.database.config()).await;
    world.config.database = config;
    // The delay of ingestions claimed before the silence: the default is longer than this test
    // waits.
    world.config.retry.unavailable_delay = Duration::from_secs(2);
    let db = Db::connect(&world.config.database).await.unwrap();
    let worker = world.worker_on(Arc::new(PostgresLedger::new(db)), None).await;
    let first = world.submit("a.pdf", documents::invoice("S-0")).await;
    world.until(first, "status", "completed").await;

    let mut ids = Vec::new();
    for number in 1..10 {
        ids.push(world.insert("a.pdf", documents::invoice(&format!("S-{number}"))).await);
    }
    world.send_all(&ids).await;
    // At an arbitrary point.
    proxy.fall_silent();
    until(SOON, || async { worker.monitor.is_busy() }).await;
    // Longer than a statement, its answer and a connection together may take.
    tokio::time::sleep(Duration::from_secs(15)).await;
    proxy.speak_again();
    let later = world.submit("a.pdf", documents::invoice("S-99")).await;
    world.until(later, "status", "completed").await;
    for id in ids {
        world.until(id, "status", "completed").await;
        assert_eq!(world.column(id, "attempt_count").await.as_deref(), Some("1"));
        assert_eq!(world.column(id, "crashes").await.as_deref(), Some("0"));
        assert_eq!(world.attempts(id).await.last().map(String::as_str), Some("completed"));
    }
    worker.stop().await;
}

/// Claims without a reply, under this mode.
async fn lose_claims(mode: AcknowledgeMode) {
    let mut world = World::new().await;
    world.config.queue.acknowledge = mode;
    let id = world.submit("a.pdf", documents::invoice("C-1")).await;
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    flaky.lost_claims.store(3, Ordering::SeqCst);
    let worker = world.worker_on(Arc::clone(&flaky) as Arc<dyn Ledger>, None).await;
    world.until(id, "status", "completed").await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(flaky.lost_claims.load(Ordering::SeqCst), 0, "the replies were lost");
    assert_eq!(world.attempts(id).await, ["completed"]);
    let counted = "claims || ' ' || attempt_count || ' ' || crashes";
    assert_eq!(world.column(id, counted).await.as_deref(), Some("1 1 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_reply_is_lost_is_taken_up_and_counted_once() {
    Box::pin(lose_claims(AcknowledgeMode::After)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_reply_is_lost_fails_no_document_whose_message_goes_first() {
    Box::pin(lose_claims(AcknowledgeMode::Early)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_delays_no_other_row_with_a_lost_claim() {
    let world = World::new().await;
    let locked = world.submit("a.pdf", documents::invoice("L-1")).await;
    let free = world.submit("b.pdf", documents::invoice("L-2")).await;
    let mut other = world.pool.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM docmill.ingestion WHERE id = '{locked}' FOR UPDATE");
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *other).await.unwrap();
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    flaky.lost_claims.store(1, Ordering::SeqCst);
    let worker = world.worker_on(Arc::clone(&flaky) as Arc<dyn Ledger>, None).await;
    world.until(free, "status", "completed").await;
    assert_eq!(flaky.lost_claims.load(Ordering::SeqCst), 0, "the reply was lost");
    assert_eq!(world.column(locked, "claims").await.as_deref(), Some("0"));
    other.rollback().await.unwrap();
    world.until(locked, "status", "completed").await;
    worker.stop().await;
    for id in [locked, free] {
        let counted = "claims || ' ' || attempt_count || ' ' || crashes";
        assert_eq!(world.column(id, counted).await.as_deref(), Some("1 1 0"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_may_have_been_made_is_taken_back_when_the_worker_stops() {
    let world = World::new().await;
    let id = world.submit("a.pdf", documents::invoice("C-2")).await;
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    flaky.lost_claims.store(u32::MAX, Ordering::SeqCst);
    let worker = world.worker_on(flaky, None).await;
    world.until(id, "claims", "1").await;
    worker.stop().await;
    assert_eq!(world.column(id, "claim_token").await, None);
    assert_eq!(world.column(id, "attempt_count").await.as_deref(), Some("0"));
    assert_eq!(world.attempts(id).await, ["interrupted"]);
    let depth = world.queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight), (1, 0), "the message is there for others");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_a_lost_reply_is_found_by_reading_back() {
    let mut world = World::with_model(Script::always(Answer::Hang)).await;
    world.config.queue.acknowledge = AcknowledgeMode::Early;
    let id = world.submit("a.pdf", documents::invoice("G-1")).await;
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    flaky.lost_releases.store(1, Ordering::SeqCst);
    let model = world.model().await;
    let worker = world.worker_on(Arc::clone(&flaky) as Arc<dyn Ledger>, model).await;
    assert!(world.llm.as_ref().unwrap().arrived(1, SOON).await);
    worker.hurry().await;
    assert_eq!(flaky.lost_releases.load(Ordering::SeqCst), 0, "the reply was lost");
    assert_eq!(world.attempts(id).await, ["interrupted"]);
    let depth = world.queue.depth().await.unwrap();
    assert_eq!(depth.ready, 1, "a new message took the place of the one that was deleted");
}

/// Lets Postgres refuse rows of this document for which `condition` does not hold.
async fn refuse_unless(world: &World, id: IngestionId, name: &str, condition: &str) {
    let sql = format!(
        "ALTER TABLE docmill.ingestion ADD CONSTRAINT {name} CHECK (id <> '{id}' OR {condition})
         NOT VALID"
    );
    world.execute(&sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_postgres_refuses_is_a_failure_of_ours_with_the_reason() {
    let world = World::new().await;
    let id = world.insert("a.pdf", documents::invoice("R-1")).await;
    refuse_unless(&world, id, "no_data", "structured_data IS NULL").await;
    let other = world.submit("a.pdf", documents::invoice("R-2")).await;
    world.send(id.to_string()).await;
    let worker = world.worker().await;
    world.until(other, "status", "completed").await;
    world.until(id, "status", "failed").await;
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.column(id, "reason").await.as_deref(), Some("internal"));
    let detail = world.column(id, "detail").await.unwrap();
    assert!(detail.contains("no_data"), "which constraint: {detail}");
    assert_eq!(world.attempts(id).await, ["internal"; 3], "another attempt may be written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_postgres_lets_end_in_no_way_is_given_back_for_later() {
    let world = World::new().await;
    let id = world.insert("a.pdf", documents::invoice("R-3")).await;
    refuse_unless(&world, id, "no_end", "status = 'in-progress'").await;
    world.send(id.to_string()).await;
    let worker = world.worker().await;
    until(SOON, || async { world.attempts(id).await == ["internal"] }).await;
    assert_eq!(world.column(id, "status").await.as_deref(), Some("in-progress"));
    assert_eq!(world.column(id, "claim_token").await, None);
    world.execute("ALTER TABLE docmill.ingestion DROP CONSTRAINT no_end").await;
    world
        .pass_until(|| async { world.column(id, "status").await.as_deref() == Some("completed") })
        .await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, ["internal", "completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_postgres_lets_be_given_back_in_no_way_keeps_no_slot() {
    let world = World::new().await;
    let id = world.insert("a.pdf", documents::invoice("R-4")).await;
    let held = "status = 'in-progress' AND (claims = 0 OR claim_token IS NOT NULL)";
    refuse_unless(&world, id, "no_release", held).await;
    world.send(id.to_string()).await;
    let worker = world.worker_with(|config| config.worker.slots = 1).await;
    world.until(id, "claims", "1").await;
    let other = world.submit("b.pdf", documents::invoice("R-5")).await;
    world.until(other, "status", "completed").await;
    worker.stop().await;
    assert_eq!(world.attempts(id).await, Vec::<String>::new(), "its lease ends by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_an_operator_has_locked_holds_up_no_other_job_of_the_worker() {
    let world = World::new().await;
    let locked = world.insert("a.pdf", documents::invoice("L-0")).await;
    let mut operator = world.pool.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM docmill.ingestion WHERE id = '{locked}' FOR UPDATE");
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *operator).await.unwrap();
    let mut ids = vec![locked];
    for number in 1..8 {
        ids.push(world.insert("a.pdf", documents::invoice(&format!("L-{number}"))).await);
    }
    world.send_all(&ids).await;
    let worker = world.worker().await;
    for id in ids.iter().skip(1) {
        world.until(*id, "status", "completed").await;
        assert_eq!(world.attempts(*id).await, ["completed"]);
    }
    assert_eq!(world.column(locked, "claims").await.as_deref(), Some("0"));
    operator.rollback().await.unwrap();
    world
        .pass_until(|| async {
            world.column(locked, "status").await.as_deref() == Some("completed")
        })
        .await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_that_hang_hold_back_no_message_that_is_given_back() {
    let world = World::new().await;
    let (batcher, inbox) = AckBatcher::with_inbox();
    let carrying = tokio::spawn(inbox.run(Arc::clone(&world.queue)));
    for _ in 0..100 {
        world.send("x").await;
    }
    let mut receipts = Vec::new();
    while receipts.len() < 100 {
        let received = world.queue.receive(10, Duration::from_secs(1)).await.unwrap();
        receipts.extend(received.into_iter().map(|delivery| delivery.receipt));
    }
    world.sqs.faults().fail(Action::DeleteMessageBatch, 1000, Failure::Hang);
    let last = receipts.split_off(99);
    let mut deletes = JoinSet::new();
    for receipt in receipts {
        let batcher = batcher.clone();
        deletes
            .spawn(async move { batcher.dispose(receipt, MessageDisposition::Acknowledge).await });
        // Each in a request of its own, so that all places for requests are taken.
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let release = MessageDisposition::Hide(Duration::ZERO);
    let released = batcher.dispose(last.into_iter().next().unwrap(), release);
    let released = tokio::time::timeout(Duration::from_secs(4), released).await;
    assert!(released.is_ok(), "a release waits for deletes that nobody answers");
    deletes.abort_all();
    carrying.abort();
}

#[tokio::test]
async fn a_message_is_given_back_after_its_extension_and_not_while_that_is_under_way() {
    let world = World::new().await;
    world.send("x").await;
    let delivery = world.queue.receive(1, Duration::from_secs(1)).await.unwrap().remove(0);
    let registry = Arc::new(MessageRegistry::default());
    let ticket = registry.hold(&delivery);
    ticket.wait_until_extended().await;
    let due = registry.due_extensions(delivery.received + Duration::from_secs(60));
    assert_eq!(due.len(), 1);
    let mut given_back = Box::pin(ticket.wait_until_extended());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut given_back).await;
    assert!(early.is_err(), "its extension may arrive after the release, and win");
    registry.end_extensions(&due);
    tokio::time::timeout(SOON, given_back).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_by_a_slow_queue_count_although_the_rest_is_late() {
    let world = World::new().await;
    for _ in 0..100 {
        world.send("x").await;
    }
    let registry = Arc::new(MessageRegistry::default());
    let mut tickets = Vec::new();
    while tickets.len() < 100 {
        let received = world.queue.receive(10, Duration::from_secs(1)).await.unwrap();
        tickets.extend(received.iter().map(|delivery| registry.hold(delivery)));
    }
    // Eight requests of the first part are answered, nothing of the second.
    world.sqs.faults().latency(Action::ChangeMessageVisibilityBatch, Duration::from_millis(1400));
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let (every, visibility) = (Duration::from_secs(2), Duration::from_secs(120));
    let begun = Instant::now();
    heartbeat::extend_messages(&registry, world.queue.as_ref(), every, visibility).await;
    // Had it waited for all, none would be left.
    let left = registry.due_extensions(begun);
    assert!(!left.is_empty() && left.len() <= 20, "{} are left for the next", left.len());
}

/// The number of the advisory lock that one migrating program has at a time.
const TURN: i64 = 0x0064_6f63_6d69_6c6c;
/// The migration that builds the index which the tests take away.
const INDEX_BUILD: (i64, &str) = (20_261_129_119_202, "ingestion_near_numbers_by_tenant");

/// Whether a session of the database runs a statement that begins so.
async fn runs(database: &TestDatabase, statement: &str) -> bool {
    let sql = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()
        AND state <> 'idle' AND starts_with(query, $1) OR datname = current_database()
        AND wait_event = 'ClientRead' AND starts_with(query, $1)";
    sqlx::query_scalar(sql).bind(statement).fetch_one(database.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_for_its_turn_on_a_silent_connection_ends() {
    let database = TestDatabase::create().await;
    let mut other = database.pool().acquire().await.unwrap().detach();
    sqlx::query("SELECT pg_advisory_lock($1)").bind(TURN).execute(&mut other).await.unwrap();
    let (proxy, config) = through_proxy(database.config()).await;
    let db = Db::connect(&config).await.unwrap();
    let migrating = tokio::spawn(async move { db.migrate().await });
    until(SOON, || runs(&database, "SELECT pg_try_advisory_lock")).await;
    proxy.fall_silent();
    let ended = tokio::time::timeout(BACK, migrating).await;
    let ended = ended.expect("a migration waits for a silent connection without end").unwrap();
    assert_eq!(ended.unwrap_err().fault, Fault::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_migration_is_waited_for_and_ends_everywhere_at_the_first_signal() {
    let world = World::new().await;
    let (database, (version, index)) = (&world.database, INDEX_BUILD);
    world.execute(&format!("DROP INDEX docmill.{index}")).await;
    let forget = format!("DELETE FROM docmill._sqlx_migrations WHERE version = {version}");
    world.execute(&forget).await;
    let mut writer = database.pool().begin().await.unwrap();
    let lock = "LOCK TABLE docmill.ingestion IN ROW EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *writer).await.unwrap();
    let settings = [("DATABASE__STATEMENT_TIMEOUT", "1s")];
    let migrating = docmill(&world, &["migrate"], &settings);
    let mut migrating = Process::spawn(migrating, "info", world.logs.path());
    until(SOON, || runs(database, "-- no-transaction")).await;
    // Longer than a statement may take elsewhere.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(runs(database, "-- no-transaction").await, "{}", migrating.log());
    migrating.terminate();
    assert_eq!(migrating.ended(SOON).await.code(), Some(1));
    assert!(migrating.log().contains("stopped by a signal"), "{}", migrating.log());
    until(SOON, || async { !runs(database, "-- no-transaction").await }).await;
    writer.rollback().await.unwrap();
    let again = docmill(&world, &["migrate"], &[]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let whole = format!(
        "SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'docmill.{index}'::regclass"
    );
    assert_eq!(world.scalar(&whole).await, "true");
}
