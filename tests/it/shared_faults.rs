//! Faults of everybody: a missing right, a sick worker, a provider that declines every call, a server
//! that takes no writes, a worker cut from Postgres alone. No document ends by them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_core::config::DatabaseConfig;
use docmill_core::fault::Fault;
use docmill_core::model::IngestionId;
use docmill_ledger::Ledger;
use docmill_ledger::db::Db;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_operations::mounted::require_mounted;
use docmill_testkit::openai::{Answer, Script};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::documents;
use crate::support::flaky::{FlakyLedger, Recording};
use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, World, until};

const S: fn(u64) -> Duration = Duration::from_secs;
/// Work goes on within this time after the end of a fault; waits of documents that failed before it.
const BACK: Duration = Duration::from_secs(30);

/// A login in the worker's role, as documented, and its way to the database.
async fn worker_login(database: &TestDatabase) -> (String, DatabaseConfig) {
    let name = format!("login_{}", uuid::Uuid::new_v4().simple());
    run(database, &format!("CREATE ROLE {name} LOGIN IN ROLE docmill_worker")).await;
    let url = database.url().replacen("postgres@", &format!("{name}@"), 1);
    assert!(url.contains(&name), "{url}");
    (name, DatabaseConfig { url: url.into(), ..database.config() })
}

async fn run(database: &TestDatabase, sql: &str) {
    database.pool().execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
}

async fn submit_many(world: &World, prefix: &str, count: usize) -> Vec<IngestionId> {
    let mut ids = Vec::new();
    for number in 0..count {
        let name = format!("{prefix}-{number}");
        ids.push(world.insert("a.pdf", documents::invoice(&name)).await);
    }
    world.send_all(&ids).await;
    ids
}

async fn count(world: &World, condition: &str) -> usize {
    let sql = format!("SELECT count(*)::text FROM docmill.ingestion WHERE {condition}");
    world.scalar(&sql).await.parse().unwrap()
}

/// Waits until so many are completed; nothing may have ended otherwise.
async fn until_completed(world: &World, documents: usize) {
    until(SOON, || async { count(world, "status = 'completed'").await == documents }).await;
    assert_eq!(count(world, "status = 'failed'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_pauses_intake_and_ends_no_document() {
    let mut world = World::new().await;
    // The delay of the two documents before the pause.
    world.config.retry.unavailable_delay = S(2);
    let (_, config) = worker_login(&world.database).await;
    run(&world.database, "REVOKE SELECT ON docmill.blocked_content FROM docmill_worker").await;
    let ledger = Arc::new(PostgresLedger::new(Db::connect(&config).await.unwrap()));
    let worker = world.worker_on(ledger, None).await;
    submit_many(&world, "G", 20).await;
    until(SOON, || async { worker.monitor.open_failure().is_some() }).await;
    let told = worker.monitor.open_failure().unwrap().to_string();
    assert!(told.contains("misconfigured") && told.contains("fetch"), "{told}");
    // Several trials.
    let trials = "SELECT count(*)::text FROM docmill.attempt";
    until(SOON, || async { world.scalar(trials).await.parse::<u32>().unwrap() >= 14 }).await;
    assert_eq!(count(&world, "status <> 'in-progress' OR attempt_count > 1").await, 0);

    run(&world.database, "GRANT SELECT ON docmill.blocked_content TO docmill_worker").await;
    let begun = Instant::now();
    until_completed(&world, 20).await;
    assert!(begun.elapsed() < BACK, "{:?}", begun.elapsed());
    assert_eq!(worker.monitor.open_failure(), None);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sick_worker_takes_itself_out_and_a_healthy_one_reads_its_documents() {
    let mut world = World::new().await;
    world.config.retry.unavailable_delay = S(2);
    let (_, config) = worker_login(&world.database).await;
    run(&world.database, "REVOKE SELECT ON docmill.blocked_content FROM docmill_worker").await;
    let ledger = Arc::new(PostgresLedger::new(Db::connect(&config).await.unwrap()));
    let sick = world.worker_on(ledger, None).await;
    submit_many(&world, "B", 40).await;
    until(SOON, || async { sick.monitor.open_failure().is_some() }).await;
    let healthy = world.worker().await;
    until_completed(&world, 40).await;
    assert!(sick.monitor.open_failure().is_some(), "it passed nothing");
    assert_eq!(healthy.monitor.open_failure(), None);
    sick.stop().await;
    healthy.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_this_worker_may_not_write_is_left_to_one_that_may() {
    let mut world = World::new().await;
    world.config.retry.unavailable_delay = S(2);
    let (_, config) = worker_login(&world.database).await;
    let trigger = "CREATE FUNCTION docmill.deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.status = 'completed' AND session_user LIKE 'login_%' THEN
            RAISE EXCEPTION 'permission denied for table x' USING ERRCODE = '42501';
        END IF; RETURN NEW; END $$;
        CREATE TRIGGER deny BEFORE UPDATE ON docmill.ingestion FOR EACH ROW EXECUTE FUNCTION docmill.deny()";
    run(&world.database, trigger).await;
    let ledger = Arc::new(PostgresLedger::new(Db::connect(&config).await.unwrap()));
    let sick = world.worker_on(ledger, None).await;
    submit_many(&world, "R", 8).await;
    until(SOON, || async { sick.monitor.open_failure().is_some() }).await;
    assert_eq!(count(&world, "status <> 'in-progress'").await, 0);
    let healthy = world.worker().await;
    until_completed(&world, 8).await;
    assert_eq!(count(&world, "crashes > 0").await, 0, "its claims were given back");
    sick.stop().await;
    healthy.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_the_database_refuses_of_all_documents_end_none_of_them() {
    let world = World::new().await;
    let trigger = "CREATE FUNCTION docmill.break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.status = 'completed' THEN
            RAISE EXCEPTION 'index corrupted' USING ERRCODE = 'XX002';
        END IF; RETURN NEW; END $$;
        CREATE TRIGGER break BEFORE UPDATE ON docmill.ingestion FOR EACH ROW EXECUTE FUNCTION docmill.break()";
    run(&world.database, trigger).await;
    let worker = world.worker().await;
    submit_many(&world, "B", 8).await;
    until(SOON, || async { worker.monitor.open_failure().is_some() }).await;
    assert_eq!(count(&world, "status <> 'in-progress'").await, 0);
    run(&world.database, "DROP TRIGGER break ON docmill.ingestion").await;
    until_completed(&world, 8).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_result_that_may_not_be_written_beside_others_that_may_is_tried_ever_more_seldom() {
    let world = World::new().await;
    let refused = submit_many(&world, "R", 1).await.remove(0);
    let trigger = format!(
        "CREATE FUNCTION docmill.deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.status = 'completed' AND NEW.id = '{}' THEN
            RAISE EXCEPTION 'permission denied for table x' USING ERRCODE = '42501';
        END IF; RETURN NEW; END $$;
        CREATE TRIGGER deny BEFORE UPDATE ON docmill.ingestion FOR EACH ROW EXECUTE FUNCTION docmill.deny()",
        refused.0
    );
    run(&world.database, &trigger).await;
    let worker = world.worker().await;
    submit_many(&world, "S", 4).await;
    until_completed(&world, 4).await;
    until(SOON, || async { count(&world, "denials >= 2").await == 1 }).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_declines_every_call_ends_no_document() {
    for status in [400, 413, 422] {
        let mut world = World::with_model(Script::always(Answer::status(status))).await;
        world.config.retry.unavailable_delay = S(2);
        world.config.throttle.open_for = S(1);
        world.config.retry.base_delay = S(1);
        let worker = world.worker().await;
        submit_many(&world, "L", 12).await;
        let attempts = "SELECT count(*)::text FROM docmill.attempt";
        until(SOON, || async { world.scalar(attempts).await.parse::<u32>().unwrap() >= 12 }).await;
        tokio::time::sleep(S(8)).await;
        assert_eq!(count(&world, "status <> 'in-progress'").await, 0, "{status}");
        world.llm.as_ref().unwrap().set(Script::always(Answer::Read));
        until_completed(&world, 12).await;
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_a_server_that_takes_no_writes_is_replaced() {
    let database = TestDatabase::create().await;
    let (name, config) = worker_login(&database).await;
    let read_only =
        |is_on: &str| format!("ALTER ROLE {name} SET default_transaction_read_only = {is_on}");
    let vitals = docmill_ledger::WorkerStatus {
        slots: 1,
        slots_used: 0,
        lanes: Vec::new(),
        local_models: None,
    };
    // As after a failover whose name still leads to the earlier server, seen by a statement.
    run(&database, &read_only("on")).await;
    let ledger = PostgresLedger::new(Db::connect(&config).await.unwrap());
    let refused = ledger.save_worker_status("w", &vitals).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Unavailable, "{refused}");
    run(&database, &read_only("off")).await;
    ledger.save_worker_status("w", &vitals).await.unwrap();
    // And seen by the question.
    run(&database, &read_only("on")).await;
    let db = Db::connect(&config).await.unwrap();
    let refused = db.require_writer().await.unwrap_err();
    assert!(refused.to_string().contains("takes no writes"), "{refused}");
    run(&database, &read_only("off")).await;
    db.ping(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_connections_led_to_a_replica_goes_on_within_half_a_minute() {
    let mut world = World::new().await;
    world.config.retry.unavailable_delay = S(2);
    let (name, config) = worker_login(&world.database).await;
    let read_only =
        |is_on: &str| format!("ALTER ROLE {name} SET default_transaction_read_only = {is_on}");
    let end =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'");
    let ledger = Arc::new(PostgresLedger::new(Db::connect(&config).await.unwrap()));
    let worker = world.worker_on(ledger, None).await;
    submit_many(&world, "F", 3).await;
    until_completed(&world, 3).await;
    run(&world.database, &read_only("on")).await;
    run(&world.database, &end).await;
    submit_many(&world, "N", 20).await;
    tokio::time::sleep(S(6)).await;
    assert!(count(&world, "status = 'completed'").await < 23, "the replica takes writes");
    run(&world.database, &read_only("off")).await;
    let begun = Instant::now();
    until_completed(&world, 23).await;
    assert!(begun.elapsed() < BACK, "{:?}", begun.elapsed());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_cut_from_postgres_alone_lets_its_messages_go_and_another_takes_over() {
    let mut world = World::with_model(Script::of([Answer::Hang, Answer::Hang])).await;
    (world.config.claim.lease, world.config.queue.visibility) = (S(4), S(4));
    let flaky = Arc::new(FlakyLedger::new(world.ledger().await, Recording::Fails(0)));
    let model = world.model().await;
    let cut = world.worker_on(Arc::clone(&flaky) as Arc<dyn Ledger>, model).await;
    let claimed = world.submit("a.pdf", documents::invoice("C-0")).await;
    let asked = world.submit("a.pdf", documents::invoice("C-1")).await;
    assert!(world.llm.as_ref().unwrap().arrived(2, SOON).await);
    // Neither renewals nor claims are answered any more; the queue is.
    flaky.cut_off();
    let in_doubt = world.submit("a.pdf", documents::invoice("C-2")).await;
    tokio::time::sleep(S(3)).await;
    let healthy = world.worker().await;
    let begun = Instant::now();
    for id in [claimed, asked, in_doubt] {
        world.until(id, "status", "completed").await;
    }
    // A lease, what is left of the visibility, and the work.
    assert!(begun.elapsed() < BACK, "{:?}", begun.elapsed());
    healthy.stop().await;
    drop(cut);
}

/// A store that can be read and takes no writes, by hand: `chmod` does not bind root.
fn set_writable(world: &World, is_writable: bool) {
    let own = world.config.store.path.join(".docmill-store");
    let (from, to) = if is_writable { ("gone", "tmp") } else { ("tmp", "gone") };
    std::fs::rename(own.join(from), own.join(to)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_takes_no_writes_pauses_intake_and_no_document_is_read_over_and_over() {
    let mut world = World::with_model(Script::always(Answer::Read)).await;
    world.config.retry.unavailable_delay = S(2);
    world.config.worker.slots = 4;
    submit_many(&world, "W", 20).await;
    set_writable(&world, false);
    let worker = world.worker().await;
    until(SOON, || async { worker.monitor.open_failure().is_some() }).await;
    let told = worker.monitor.open_failure().unwrap().to_string();
    assert!(told.contains("store_takes_no_writes"), "{told}");
    let attempts = "SELECT count(*)::text FROM docmill.attempt";
    let before = world.scalar(attempts).await.parse::<u32>().unwrap();
    tokio::time::sleep(S(6)).await;
    let after = world.scalar(attempts).await.parse::<u32>().unwrap();
    assert!(after - before <= 8, "{before} {after}");
    set_writable(&world, true);
    until_completed(&world, 20).await;
    assert_eq!(worker.monitor.open_failure(), None);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_folder_is_no_store_of_a_database_with_documents() {
    let world = World::new().await;
    let db = Db::connect(&world.config.database).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let mut store = world.config.store.clone();
    store.path = place.path().to_owned();
    require_mounted(&db, &store).await.unwrap();
    world.insert("a.pdf", documents::invoice("M-0")).await;
    let refused = require_mounted(&db, &store).await.unwrap_err();
    assert_eq!(refused.fault, Fault::Unavailable);
    assert!(refused.to_string().contains("is its volume mounted?"), "{refused}");
    std::fs::create_dir(place.path().join(".docmill-store")).unwrap();
    require_mounted(&db, &store).await.unwrap();
    require_mounted(&db, &world.config.store).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_paid_for_once_though_postgres_fails_while_the_row_is_to_refer_to_it() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let trigger = "CREATE FUNCTION docmill.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.extraction_identity IS DISTINCT FROM OLD.extraction_identity THEN
            RAISE EXCEPTION 'too many connections' USING ERRCODE = '53300';
        END IF; RETURN NEW; END $$;
        CREATE TRIGGER fail BEFORE UPDATE ON docmill.ingestion FOR EACH ROW EXECUTE FUNCTION docmill.fail()";
    run(&world.database, trigger).await;
    let worker = world.worker().await;
    let id = submit_many(&world, "P", 1).await.remove(0);
    let stored = docmill_storage::keys::extraction_key(id);
    until(SOON, || async { world.store.head(&stored).await.unwrap().is_some() }).await;
    tokio::time::sleep(S(1)).await;
    run(&world.database, "DROP TRIGGER fail ON docmill.ingestion").await;
    until_completed(&world, 1).await;
    assert_eq!(world.attempts(id).await, ["completed"]);
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1);
    worker.stop().await;
}
