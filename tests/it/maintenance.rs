//! Maintenance on large tables, with chores that fail, and of what waits without a message.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use docmill_core::config::Config;
use docmill_core::fault::Fault;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::operators::idempotency::{self, IdempotentAnswer};
use docmill_ledger::db::operators::{AuditNote, PauseScope};
use docmill_ledger::db::{
    Db, operators, operators::erasure, operators::janitor, reports, reports::overview,
};
use docmill_ledger::{AttemptLedger as _, FirstProvider, Ledger as _, PauseTerms};
use docmill_operations::dead::{self, LetterChoice};
use docmill_operations::erase::{self, ErasureBackends, RetentionSweep};
use docmill_operations::janitor::{Maintenance, MaintenanceBackends, MaintenanceChore};
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::{MessageQueue, OutgoingMessage};
use docmill_storage::ObjectStore;
use docmill_storage::memory::MemoryStore;
use sqlx::{AssertSqlSafe, Executor};

use crate::support::controlled_store::{ControlledStore, ListingFault};
use crate::support::documents;
use crate::support::memory_queue::{Call, MemoryQueue};
use crate::support::postgres::{TestDatabase, next_migration};
use crate::support::row_reads::rows_read_by;
use crate::support::world::{SOON, World, until};

const HOUR: Duration = Duration::from_secs(3600);
const QUIET: Duration = Duration::from_secs(1800);

fn by() -> AuditNote {
    AuditNote { operator: "ada".to_owned(), why: "a test".to_owned() }
}

pub(crate) fn maintenance_over(
    db: Db,
    queue: Arc<dyn MessageQueue>,
    config: &Config,
) -> Maintenance {
    let store = Arc::new(MemoryStore::default());
    Maintenance::new(MaintenanceBackends { db, queue, store }, config, "test".to_owned())
}

pub(crate) fn maintenance_of(world: &World) -> Maintenance {
    let backends = MaintenanceBackends {
        db: world.database.db(),
        queue: Arc::clone(&world.queue),
        store: Arc::clone(&world.store),
    };
    Maintenance::new(backends, &world.config, "test".to_owned())
}

pub(crate) fn memory_queue() -> Arc<MemoryQueue> {
    Arc::new(MemoryQueue::new(Duration::from_secs(120), Some(1000)))
}

/// Inserts `kept` quarantined messages, each naming an ingestion, and a long one.
async fn fill_quarantine(database: &TestDatabase, kept: u32) {
    let rows = format!(
        "INSERT INTO quarantined_message (message_id, body, reason, quarantined_at)
         SELECT 'm-' || n, md5('i' || n)::uuid::text, 'unknown_ingestion',
             now() - n * interval '1 second'
         FROM generate_series(1, {kept}) n;
         INSERT INTO quarantined_message (message_id, body, reason)
         SELECT 'm-long', string_agg(md5(n::text), ''), 'malformed' FROM generate_series(1, 2000) n;
         ANALYZE quarantined_message"
    );
    database.pool().execute(AssertSqlSafe(rows)).await.unwrap();
}

/// Inserts `ended` ended documents, each with an attempt, and a thousand waiting ones.
pub(crate) async fn fill(database: &TestDatabase, ended: u32) {
    let waiting = 1_000;
    let mut session = database.pool().acquire().await.unwrap();
    // Without the checks of references and without triggers: the rows are made to fit.
    let rows = format!(
        "SET session_replication_role = replica;
         INSERT INTO document (id, file_path, tenant, created_at, updated_at)
         SELECT md5('d' || n)::uuid, 'documents/' || n || '.pdf', 'tenant-' || n % 20,
             now() - n * interval '40 seconds', now() - n * interval '40 seconds'
         FROM generate_series(1, {ended} + {waiting}) n;
         INSERT INTO ingestion (id, document_id, tenant, kind, status, valid_structured_data,
             created_at, updated_at, enqueued_at, started_at, completed_at, claims, attempt_count)
         SELECT md5('i' || n)::uuid, md5('d' || n)::uuid, 'tenant-' || n % 20, 'invoice',
             CASE WHEN n <= {waiting} THEN 'in-progress' ELSE 'completed' END,
             CASE WHEN n > {waiting} THEN true END,
             t.at, t.at, t.at, t.at, CASE WHEN n > {waiting} THEN t.at + interval '9 s' END, 1, 1
         FROM generate_series(1, {ended} + {waiting}) n
         CROSS JOIN LATERAL (SELECT now() - n * interval '40 seconds' AS at) t;
         INSERT INTO attempt (ingestion_id, claims, token, started_at, ended_at, outcome, final)
         SELECT md5('i' || n)::uuid, 1, md5('t' || n)::uuid, t.at, t.at + interval '9 s',
             'completed', true
         FROM generate_series({waiting} + 1, {ended} + {waiting}) n
         CROSS JOIN LATERAL (SELECT now() - n * interval '40 seconds' AS at) t;
         INSERT INTO spending (ingestion_id, claims, day, provider, document_id, tenant,
             cost_nanos)
         SELECT md5('i' || n)::uuid, 1, (now() AT TIME ZONE 'UTC')::date, 'openai',
             md5('d' || n)::uuid, 'tenant-' || n % 20, 1
         FROM generate_series(1, {ended} / 10) n;
         INSERT INTO tenant_retention (tenant, days)
         SELECT 'tenant-' || n, 3000 FROM generate_series(0, 19) n;
         SET session_replication_role = DEFAULT;
         ANALYZE"
    );
    session.execute(AssertSqlSafe(rows)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn periodic_queries_read_few_of_a_hundred_thousand_ended_rows() {
    let database = TestDatabase::create().await;
    fill(&database, 100_000).await;
    fill_quarantine(&database, 100_000).await;
    let queue = memory_queue();
    let read = rows_read_by(&database, |db: Db| async move {
        let maintenance = maintenance_over(db.clone(), queue, &Config::default());
        for _ in 0..2 {
            let pass = maintenance.run_pass(false).await;
            assert_eq!(pass.failed, []);
        }
        overview::count_states(&db).await.unwrap();
        overview::list_active(&db, 20).await.unwrap();
        overview::load_throughput(&db).await.unwrap();
        overview::count_failures(&db).await.unwrap();
        overview::oldest_open_age(&db).await.unwrap();
        let ledger = PostgresLedger::new(db);
        ledger.spent_today(None).await.unwrap();
        ledger.spent_today(Some("tenant-1")).await.unwrap();
    })
    .await;
    for (table, [walked, fetched]) in read {
        assert!(walked < 5_000, "{table}: {walked} rows were walked through");
        assert!(fetched < 20_000, "{table}: {fetched} rows were fetched");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn erasing_a_document_reads_few_of_the_messages_that_are_kept() {
    let database = TestDatabase::create().await;
    fill(&database, 100_000).await;
    fill_quarantine(&database, 100_000).await;
    let of_number = async |number: u32| {
        let id = format!("SELECT md5('d{number}')::uuid");
        let id = sqlx::query_scalar(AssertSqlSafe(id)).fetch_one(database.pool()).await;
        DocumentId(id.unwrap())
    };
    let (expired, of_tenant) = (of_number(90_000).await, of_number(90_001).await);
    database.pool().execute("UPDATE tenant_retention SET days = 1").await.unwrap();
    let read = rows_read_by(&database, |db: Db| async move {
        assert_eq!(erasure::doom_expired(&db, &[expired]).await.unwrap(), 1);
        assert!(erasure::erase_doomed(&db, expired).await.unwrap());
        let ingestions = erasure::find_ingestions(&db, &[of_tenant]).await.unwrap();
        erasure::delete_documents(&db, &[of_tenant], &ingestions).await.unwrap();
    })
    .await;
    for (table, [walked, fetched]) in read {
        assert!(walked < 1_000, "{table}: {walked} rows were walked through");
        assert!(fetched < 1_000, "{table}: {fetched} rows were fetched");
    }
    let kept = "SELECT count(*) FROM quarantined_message";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(database.pool()).await.unwrap();
    assert_eq!(kept, 100_000 + 1 - 2);
}

/// Foreign keys without an index: deleting a referenced row would scan the whole table.
#[tokio::test]
async fn referencing_rows_are_found_by_index_when_a_row_is_deleted() {
    let database = TestDatabase::create().await;
    let without = "SELECT c.conrelid::regclass || ': ' || a.attname
        FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.contype = 'f' AND NOT EXISTS (
            SELECT 1 FROM pg_index i
            WHERE i.indrelid = c.conrelid AND i.indisvalid AND i.indkey[0] = c.conkey[1]
              AND i.indpred IS NULL)
        ORDER BY 1";
    let without: Vec<String> =
        sqlx::query_scalar(without).fetch_all(database.pool()).await.unwrap();
    assert_eq!(without, Vec::<String>::new());
}

/// Statements that people ask for once in a while, and that may read much.
const ASKED_BY_PEOPLE: [&str; 4] = [
    "d.structured_data AS \"data!\"", // `docmill export`, of all documents
    // `docmill search`
    "concat_ws(E'\\n', d.original_name",
    // `docmill list` with filters that no index serves
    "$5::boolean IS NULL OR i.needs_human_review",
    // How many ended how, over all time
    "FROM ingestion GROUP BY status, reason",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_of_the_program_walks_a_large_table_or_filters_by_a_changing_clock() {
    let database = TestDatabase::create().await;
    fill(&database, 100_000).await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let mut session = database.pool().acquire().await.unwrap();
    session.execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let known: serde_json::Value = serde_json::from_str(&text).unwrap();
        let query = known["query"].as_str().unwrap();
        let parameters = known["describe"]["parameters"]["Left"].as_array().unwrap().len();
        let nulls = vec!["NULL"; parameters].join(", ");
        let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
        session.execute(AssertSqlSafe(format!("PREPARE q AS {query}"))).await.unwrap();
        let explain = format!("EXPLAIN EXECUTE q{arguments}");
        let plan: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut *session).await.unwrap();
        session.execute("DEALLOCATE q").await.unwrap();
        looked_at += 1;
        let is_wrong = |line: &&String| {
            let walks = ["ingestion", "document", "attempt"]
                .iter()
                .any(|table| line.contains(&format!("Seq Scan on {table} ")));
            walks || (line.trim().starts_with("Filter:") && line.contains("clock_timestamp"))
        };
        if ASKED_BY_PEOPLE.iter().any(|part| query.contains(part)) {
            continue;
        }
        wrong.extend(plan.iter().filter(is_wrong).map(|line| format!("{}\n{query}", line.trim())));
    }
    assert!(looked_at > 50, "{looked_at}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn a_pass_deletes_so_many_old_attempts_and_leaves_the_rest_to_the_next() {
    let database = TestDatabase::create().await;
    fill(&database, 12_000).await;
    database.advance(HOUR * 24 * 120).await;
    let maintenance = maintenance_over(database.db(), memory_queue(), &Config::default());
    let mut deleted = Vec::new();
    for _ in 0..3 {
        let pass = maintenance.run_pass(false).await;
        assert_eq!(pass.failed, []);
        deleted.push(pass.deleted_rows);
    }
    assert_eq!(deleted, [10_000, 2_000, 0], "a pass stays short however much is left behind");
}

#[tokio::test]
async fn a_pass_that_loses_its_lead_reports_why_it_stopped() {
    let database = TestDatabase::create().await;
    let refuse = "CREATE FUNCTION docmill.refuse() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'told to'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON docmill.maintenance_lease
            FOR EACH ROW EXECUTE FUNCTION docmill.refuse()";
    database.pool().execute(refuse).await.unwrap();
    let maintenance = maintenance_over(database.db(), memory_queue(), &Config::default());
    let pass = maintenance.run_pass_as_leader(&Shutdown::default()).await.unwrap().unwrap();
    assert!(pass.cut_short);
    let failed: Vec<_> = pass.failed.iter().map(|failed| failed.chore).collect();
    assert_eq!(failed, [MaintenanceChore::OldestOpen]);
}

/// With finished pages that may be left in the store, of the ended ones from the oldest on.
async fn leave_pages(database: &TestDatabase, from: u32, to: u32) {
    let crashed = format!(
        "UPDATE attempt SET outcome = 'crashed'
         WHERE ingestion_id IN (SELECT md5('i' || n)::uuid FROM generate_series({from}, {to}) n)"
    );
    database.pool().execute(AssertSqlSafe(crashed)).await.unwrap();
    database.advance(HOUR * 24 * 120).await;
}

async fn count_attempts(database: &TestDatabase) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM attempt").fetch_one(database.pool()).await.unwrap()
}

fn maintenance_with(database: &TestDatabase, store: &Arc<ControlledStore>) -> Maintenance {
    let store: Arc<dyn ObjectStore> = store.clone();
    let backends = MaintenanceBackends { db: database.db(), queue: memory_queue(), store };
    Maintenance::new(backends, &Config::default(), "test".to_owned())
}

#[tokio::test]
async fn a_pass_cut_off_over_a_slow_store_keeps_its_progress() {
    let database = TestDatabase::create().await;
    fill(&database, 400).await;
    leave_pages(&database, 1_001, 1_400).await;
    let store = Arc::new(ControlledStore::default());
    store.lists_until(250, ListingFault::Silent);
    let maintenance = maintenance_with(&database, &store);
    tokio::select! {
        _ = maintenance.run_pass(false) => panic!("it waits for the store"),
        () = until(SOON, || async { store.lists.load(Ordering::SeqCst) > 250 }) => {}
    }
    assert_eq!(count_attempts(&database).await, 200, "two groups of a hundred are gone");
}

#[tokio::test]
async fn attempts_whose_pages_cannot_be_removed_hold_up_none_behind_them() {
    let database = TestDatabase::create().await;
    fill(&database, 5_200).await;
    leave_pages(&database, 1_101, 6_200).await;
    let store = Arc::new(ControlledStore::default());
    store.lists_until(0, ListingFault::Refused);
    let pass = maintenance_with(&database, &store).run_pass(false).await;
    let failed: Vec<_> = pass.failed.iter().map(|failed| failed.chore).collect();
    assert_eq!(failed, [MaintenanceChore::OldRows], "those that stay are told");
    assert_eq!(count_attempts(&database).await, 5_100);
}

#[tokio::test]
async fn a_named_answer_that_is_too_old_gives_way_before_it_is_deleted() {
    let database = TestDatabase::create().await;
    let answer = |text: &str| IdempotentAnswer {
        fingerprint: text.to_owned(),
        answer: serde_json::json!(text),
    };
    let (first, second) = (answer("first"), answer("second"));
    let db = database.db();
    for (kept, after, found) in [(&first, 0, &first), (&second, 1, &first), (&second, 24, &second)]
    {
        database.advance(HOUR * after).await;
        idempotency::keep_answer(&db, "a program", "key", kept).await.unwrap();
        let answer = idempotency::find_answer(&db, "a program", "key").await.unwrap();
        assert_eq!(answer.as_ref(), Some(found));
    }
}

#[tokio::test]
async fn a_failed_chore_is_reported_and_stops_no_other() {
    let database = TestDatabase::create().await;
    fill(&database, 50).await;
    database.advance(HOUR * 24 * 30).await;
    database.pool().execute("ALTER TABLE attempt RENAME TO elsewhere").await.unwrap();
    let queue = memory_queue();
    let maintenance = maintenance_over(database.db(), queue.clone(), &Config::default());
    queue.fail(Call::Depth, 1, Fault::Unavailable);
    let pass = maintenance.run_pass(false).await;
    let failed: Vec<_> = pass.failed.iter().map(|failed| failed.chore).collect();
    let broken = [MaintenanceChore::OldRows, MaintenanceChore::HourlyCounts];
    assert_eq!(failed, [&[MaintenanceChore::ResendLost], &broken[..]].concat());
    let pass = maintenance.run_pass(false).await;
    let failed: Vec<_> = pass.failed.iter().map(|failed| failed.chore).collect();
    assert_eq!(failed, broken);
    assert_eq!(pass.resent.len(), 500, "as many as one pass may");
}

#[tokio::test]
async fn a_pass_ends_soon_after_the_stop_and_is_made_by_the_leader_alone() {
    let database = TestDatabase::create().await;
    let config = Config::default();
    let maintenance = maintenance_over(database.db(), memory_queue(), &config);
    let stop = Shutdown::default();
    assert!(janitor::try_acquire_lead(&database.db(), "janitor", "w-1", HOUR).await.unwrap());
    assert_eq!(maintenance.run_pass_as_leader(&stop).await.unwrap(), None);
    assert_eq!(maintenance.find_leader().await.unwrap().as_deref(), Some("w-1"));
    janitor::release_lead(&database.db(), "janitor", "w-1").await.unwrap();
    // The first statement of the pass waits for a lock that is never released.
    let mut holder = database.pool().begin().await.unwrap();
    holder.execute("LOCK TABLE ingestion IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let asked = stop.clone();
    let pass = tokio::spawn(async move { maintenance.run_pass_as_leader(&asked).await.unwrap() });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(SOON, || async {
        let waiting: i64 = sqlx::query_scalar(waits).fetch_one(database.pool()).await.unwrap();
        waiting > 0
    })
    .await;
    stop.request();
    tokio::time::timeout(SOON, pass).await.expect("the lock is never given back").unwrap();
    holder.rollback().await.unwrap();
}

/// The rows of attempts, and how often the ingestion's row was written since it was inserted.
async fn traces_of(world: &World, id: IngestionId) -> [String; 2] {
    let attempts =
        format!("SELECT count(*)::text FROM docmill.attempt WHERE ingestion_id = '{id}'");
    [world.scalar(&attempts).await, world.column(id, "xmin").await.unwrap()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_ingestion_is_written_once_without_a_message_and_continues_after_the_pause() {
    let world = World::new().await;
    let db = world.database.db();
    operators::add_pause(&db, PauseScope::Kind, "invoice", &by()).await.unwrap();
    let id = world.insert("a.pdf", documents::invoice("P-1")).await;
    world.execute("UPDATE docmill.ingestion SET deferred_since = docmill.docmill_now()").await;
    let worker = world.worker_with(|config| config.kinds.default = "invoice".to_owned()).await;
    world.send(id.to_string()).await;
    until(SOON, || async {
        world.column(id, "parked_by").await.as_deref() == Some("kind:invoice")
    })
    .await;
    world.until_empty().await;
    let before = traces_of(&world, id).await;
    assert_eq!(before[0], "0", "no attempt");
    assert_eq!(world.column(id, "deferred_since").await, None, "no part of a streak of deferrals");
    for _ in 0..3 {
        world.pass(HOUR).await;
        let pass = maintenance_of(&world).run_pass(false).await;
        assert_eq!((pass.failed.len(), pass.woken, pass.resent.len()), (0, 0, 0));
    }
    assert_eq!(traces_of(&world, id).await, before, "nothing is written while the pause lasts");
    let state = "SELECT state || ': ' || explanation FROM docmill.ops_in_flight";
    assert_eq!(world.scalar(state).await, "parked: an operator has paused kind invoice");
    // A message that comes all the same changes nothing.
    world.send(id.to_string()).await;
    world.until_empty().await;
    assert_eq!(traces_of(&world, id).await, before);
    assert!(operators::remove_pause(&db, PauseScope::Kind, "invoice", &by()).await.unwrap());
    assert_eq!(maintenance_of(&world).run_pass(false).await.woken, 1);
    // A worker without the news releases it once.
    world.pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" }).await;
    worker.stop().await;
    assert_eq!(world.column(id, "attempt_count").await.unwrap(), "1");
}

#[tokio::test]
async fn a_paused_provider_holds_back_only_documents_that_use_it_first() {
    let database = TestDatabase::create().await;
    fill(&database, 1).await;
    let ledger = PostgresLedger::new(database.db());
    let rows: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM ingestion WHERE status = 'in-progress' LIMIT 4")
            .fetch_all(database.pool())
            .await
            .unwrap();
    let kinds = "UPDATE ingestion SET kind = k.kind
        FROM unnest($1::uuid[], ARRAY['invoice', 'form', NULL, 'letter']) AS k (id, kind)
        WHERE ingestion.id = k.id";
    sqlx::query(kinds).bind(&rows).execute(database.pool()).await.unwrap();
    let ids: Vec<IngestionId> = rows.into_iter().map(IngestionId).collect();
    let first = |kind: &str, provider: &str| FirstProvider {
        kind: kind.to_owned(),
        provider: provider.to_owned(),
    };
    let terms = PauseTerms {
        default_kind: "letter".to_owned(),
        providers: vec![
            first("", "tesseract"),
            first("invoice", "tesseract"),
            first("form", "textract"),
            first("letter", "openai"),
        ],
    };
    let parked = async || {
        let mut parked = ledger.park(&ids, &terms, HOUR).await.unwrap();
        parked.sort_by_key(|id| ids.iter().position(|known| known == id));
        parked
    };
    let db = database.db();
    let pause = async |scope, name: &str| {
        operators::add_pause(&db, scope, name, &by()).await.unwrap();
    };
    assert_eq!(parked().await, []);
    // Never first: a fallback, or an escalation.
    pause(PauseScope::Provider, "anthropic").await;
    assert_eq!(parked().await, []);
    pause(PauseScope::Provider, "textract").await;
    assert_eq!(parked().await, [ids[1]]);
    // The default kind's pause holds those whose row names none.
    pause(PauseScope::Kind, "letter").await;
    assert_eq!(parked().await, [ids[1], ids[2], ids[3]]);
    pause(PauseScope::Provider, "tesseract").await;
    assert_eq!(parked().await, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_leaves_no_message_in_flight_and_is_sent_again_when_it_is_due() {
    let world = World::new().await;
    let id = world.insert("a.pdf", documents::invoice("W-1")).await;
    world
        .execute(
            "UPDATE docmill.ingestion
             SET next_attempt_at = docmill.docmill_now() + interval '20 hours'",
        )
        .await;
    let worker = world.worker().await;
    world.send(id.to_string()).await;
    until(SOON, || async { world.column(id, "parked_until").await.is_some() }).await;
    world.until_empty().await;
    world.pass(HOUR * 19).await;
    assert_eq!(maintenance_of(&world).run_pass(false).await.woken, 0, "not due");
    world.pass(HOUR * 2).await;
    assert_eq!(maintenance_of(&world).run_pass(false).await.woken, 1);
    world.until(id, "status", "completed").await;
    worker.stop().await;
    assert_eq!(world.column(id, "parked_until").await, None);
}

#[tokio::test]
async fn a_parked_ingestion_whose_send_failed_is_sent_by_the_next_pass() {
    let database = TestDatabase::create().await;
    fill(&database, 1).await;
    database.pool().execute("UPDATE ingestion SET parked_until = now()").await.unwrap();
    let queue = memory_queue();
    let maintenance = maintenance_over(database.db(), queue.clone(), &Config::default());
    queue.fail(Call::Send, 30, Fault::Unavailable);
    let first = maintenance.run_pass(false).await;
    assert_eq!(first.failed.len(), 1);
    let second = maintenance.run_pass(false).await;
    assert_eq!(second.failed, []);
    assert_eq!(first.woken + second.woken, 1_000);
    let sent: BTreeSet<String> = queue.bodies().into_iter().collect();
    assert_eq!(sent.len(), 1_000, "each of them");
}

#[tokio::test]
async fn of_a_healthy_backlog_a_few_are_sent_again_however_far_later_messages_have_come() {
    let database = TestDatabase::create().await;
    fill(&database, 1).await;
    // As a worker of an earlier release notes it, and as tiers and fair queues make it look.
    database
        .pool()
        .execute(
            "INSERT INTO worker (id, receipt_sent_at, receipt_noted_at) VALUES ('w', now(), now())",
        )
        .await
        .unwrap();
    let sent = "UPDATE ingestion SET enqueued_at = now() WHERE status = 'in-progress'";
    database.pool().execute(sent).await.unwrap();
    database.advance(QUIET * 2).await;
    let queue = memory_queue();
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT id::text FROM ingestion WHERE status = 'in-progress'")
            .fetch_all(database.pool())
            .await
            .unwrap();
    let messages: Vec<OutgoingMessage> = ids.into_iter().map(OutgoingMessage::from_body).collect();
    queue.send(&messages).await;
    let maintenance = maintenance_over(database.db(), queue.clone(), &Config::default());
    for _ in 0..3 {
        let pass = maintenance.run_pass(false).await;
        assert_eq!((pass.resent.len(), pass.queue_is_behind), (20, true));
    }
    assert_eq!(queue.bodies().len(), 1_060);
}

#[tokio::test]
async fn a_lost_message_is_found_at_the_first_pass_whatever_else_lies_in_the_queue() {
    let database = TestDatabase::create().await;
    fill(&database, 1).await;
    // All but one are deferred, each with its message, and others' messages lie there as well.
    let deferred = "UPDATE ingestion SET next_attempt_at = docmill_now() + interval '9 h'
        WHERE status = 'in-progress'
          AND id <> (SELECT id FROM ingestion WHERE status = 'in-progress' ORDER BY id LIMIT 1)";
    database.pool().execute(deferred).await.unwrap();
    database.advance(QUIET * 2).await;
    let queue = memory_queue();
    let messages: Vec<OutgoingMessage> =
        (0..2_000).map(|n| OutgoingMessage::from_body(format!("other {n}"))).collect();
    queue.send(&messages).await;
    let pass = maintenance_over(database.db(), queue.clone(), &Config::default());
    let pass = pass.run_pass(false).await;
    assert_eq!((pass.resent.len(), pass.queue_is_behind), (1, false));
    assert_eq!(queue.bodies().len(), 2_001);
}

#[tokio::test]
async fn a_resend_that_fails_makes_no_row_wait_longer() {
    let database = TestDatabase::create().await;
    fill(&database, 1).await;
    database.advance(QUIET * 2).await;
    let queue = memory_queue();
    let mut config = Config::default();
    config.janitor.resends_per_pass = 10;
    let maintenance = maintenance_over(database.db(), queue.clone(), &config);
    let state =
        "SELECT max(resends)::text || ' ' || md5(string_agg(enqueued_at::text, ',' ORDER BY id))
        FROM ingestion";
    let state =
        async || -> String { sqlx::query_scalar(state).fetch_one(database.pool()).await.unwrap() };
    let before = state().await;
    queue.fail(Call::Send, 10, Fault::Unavailable);
    let pass = maintenance.run_pass(false).await;
    assert_eq!((pass.failed.len(), pass.resent.len()), (1, 0));
    assert_eq!(state().await, before);
    assert_eq!(maintenance.run_pass(false).await.resent.len(), 10);
    assert_ne!(state().await, before);
}

/// A document of the given tenant (of its own, of its ingestion) that ended 40 days ago.
async fn ended_document(
    world: &World,
    key: &str,
    own: Option<&str>,
    of_ingestion: &str,
) -> DocumentId {
    let (document, id) = (DocumentId::random(), IngestionId::random());
    if !key.contains("..") {
        world.store.put(key, "original".into(), &BTreeMap::new()).await.unwrap();
    }
    world.insert_rows(document, id, key).await;
    let own = own.map_or("NULL".to_owned(), |tenant| format!("'{tenant}'"));
    world
        .execute(&format!(
            "UPDATE docmill.document SET tenant = {own},
                 created_at = docmill.docmill_now() - interval '40 days' WHERE id = '{document}'"
        ))
        .await;
    world
        .execute(&format!(
            "UPDATE docmill.ingestion SET tenant = '{of_ingestion}', status = 'completed',
                 created_at = docmill.docmill_now() - interval '40 days',
                 completed_at = docmill.docmill_now() - interval '40 days',
                 valid_structured_data = true WHERE id = '{id}'"
        ))
        .await;
    document
}

async fn there(world: &World, document: DocumentId) -> bool {
    let sql = format!("SELECT count(*)::text FROM docmill.document WHERE id = '{document}'");
    world.scalar(&sql).await == "1"
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_erases_rows_with_their_objects_and_one_that_cannot_go_holds_up_no_other() {
    let world = World::new().await;
    let db = world.database.db();
    let places =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    for tenant in ["acme", "zeta"] {
        erasure::set_retention(&db, tenant, Some(30), &by()).await.unwrap();
    }
    // The original of the first lies where nothing may be deleted.
    let stuck = ended_document(&world, "../outside.pdf", Some("acme"), "acme").await;
    let by_ingestion = ended_document(&world, "documents/a.pdf", None, "acme").await;
    let of_next = ended_document(&world, "documents/z.pdf", Some("zeta"), "zeta").await;
    let done = erase::erase_expired(places, &RetentionSweep::default(), None).await.unwrap();
    assert_eq!(done.erased, 2);
    assert!(done.failed.is_some(), "the one that stays is told");
    assert_eq!(
        (
            there(&world, stuck).await,
            there(&world, by_ingestion).await,
            there(&world, of_next).await
        ),
        (true, false, false)
    );
    assert_eq!(world.store.list("documents/", None, 10).await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn marked_documents_are_erased_before_others_are_marked() {
    let world = World::new().await;
    let db = world.database.db();
    let places =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    erasure::set_retention(&db, "acme", Some(30), &by()).await.unwrap();
    let doomed = ended_document(&world, "documents/doomed.pdf", Some("acme"), "acme").await;
    assert_eq!(erasure::doom_expired(&db, &[doomed]).await.unwrap(), 1);
    // The remaining documents can no longer be determined.
    world.execute("ALTER TABLE docmill.tenant_retention RENAME COLUMN days TO nights").await;
    let sweep = RetentionSweep::default();
    assert!(erase::erase_expired(places, &sweep, None).await.is_err());
    assert!(!there(&world, doomed).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_worked_on_again_keeps_its_original_and_a_doomed_one_gets_no_new_work() {
    let world = World::new().await;
    let db = world.database.db();
    let places =
        ErasureBackends { db: &db, store: world.store.as_ref(), queue: world.queue.as_ref() };
    erasure::set_retention(&db, "acme", Some(30), &by()).await.unwrap();
    let again = ended_document(&world, "documents/again.pdf", Some("acme"), "acme").await;
    let doomed = ended_document(&world, "documents/doomed.pdf", Some("acme"), "acme").await;
    let more = |document: DocumentId| {
        format!(
            "INSERT INTO docmill.ingestion (id, document_id, tenant)
             VALUES (gen_random_uuid(), '{document}', 'acme')"
        )
    };
    // Found by the first look, and then handed in once more.
    let start = erasure::TenantPosition::START;
    let found = erasure::find_tenant_documents(&db, "acme", 30, start, 10).await.unwrap();
    let mut ids: Vec<_> = found.documents.iter().map(|document| document.id).collect();
    assert_eq!(ids.len(), 2);
    ids.sort();
    world.execute(&more(again)).await;
    assert_eq!(erasure::doom_expired(&db, &ids).await.unwrap(), 1);
    let refused = sqlx::query(AssertSqlSafe(more(doomed))).execute(&world.pool).await;
    assert!(refused.unwrap_err().to_string().contains("past its tenant's retention"));
    let reopened = format!(
        "UPDATE docmill.ingestion SET status = 'in-progress', completed_at = NULL
         WHERE document_id = '{doomed}'"
    );
    let refused = sqlx::query(AssertSqlSafe(reopened)).execute(&world.pool).await;
    assert!(refused.is_err(), "nor is what it has opened again");
    let done = erase::erase_expired(places, &RetentionSweep::default(), None).await.unwrap();
    assert_eq!((done.erased, done.failed.is_none()), (1, true));
    let left = world.store.list("documents/", None, 10).await.unwrap();
    let left: Vec<_> = left.into_iter().map(|entry| entry.key).collect();
    assert_eq!(left, ["documents/again.pdf"]);
    assert!(there(&world, again).await && !there(&world, doomed).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_come_round_again_end_the_reading_of_a_dead_letter_queue() {
    let database = TestDatabase::create().await;
    let queue = crate::support::endless_letters::EndlessLetters::default();
    let read = tokio::time::timeout(SOON, async {
        let listed = dead::list_letters(&database.db(), &queue, usize::MAX).await.unwrap().len();
        let driven =
            dead::redrive_letters(&database.db(), &queue, &LetterChoice::All, &by()).await.unwrap();
        let places =
            ErasureBackends { db: &database.db(), store: &MemoryStore::default(), queue: &queue };
        let erased = erase::erase_tenant(places, "acme", Duration::ZERO, &by()).await.unwrap();
        (listed, driven.left, erased.dead_letters)
    });
    assert_eq!(read.await.expect("the reading ends"), (25, 25, 0), "each letter once");
}

#[tokio::test]
async fn a_days_cost_is_the_sum_over_all_releases_books() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let paid = "INSERT INTO spending (ingestion_id, claims, day, provider, document_id, cost_nanos)
        SELECT gen_random_uuid(), 1, (now() AT TIME ZONE 'UTC')::date, 'p', gen_random_uuid(), n
        FROM generate_series(1, 100) n";
    database.pool().execute(paid).await.unwrap();
    assert_eq!(ledger.spent_today(None).await.unwrap().cost_nanos, 5050);
    let more = "UPDATE spending SET cost_nanos = cost_nanos + 10 WHERE cost_nanos <= 10";
    database.pool().execute(more).await.unwrap();
    assert_eq!(ledger.spent_today(None).await.unwrap().cost_nanos, 5150);
    let parts: i64 = sqlx::query_scalar("SELECT count(*) FROM spending_day")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert!(parts <= 16, "{parts} rows to sum up, however many payments");
    assert!(
        reports::list_attempts(&database.db(), IngestionId::random()).await.unwrap().is_empty()
    );
}

#[tokio::test]
async fn an_index_whose_building_was_interrupted_is_built_again() {
    let database = TestDatabase::empty().await;
    let db = database.db();
    futures::future::try_join_all((0..6).map(|_| db.migrate())).await.expect("they take turns");
    let index = "CREATE INDEX CONCURRENTLY IF NOT EXISTS attempt_later ON attempt (stage)";
    let indexing = next_migration(index, true);
    db.apply_migrations(&indexing).await.unwrap();
    let interrupted = "UPDATE pg_index SET indisvalid = false
            WHERE indexrelid = 'docmill.attempt_later'::regclass;
        DELETE FROM docmill._sqlx_migrations WHERE description = 'later'";
    database.pool().execute(interrupted).await.unwrap();
    db.apply_migrations(&indexing).await.unwrap();
    let valid: bool = sqlx::query_scalar(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'docmill.attempt_later'::regclass",
    )
    .fetch_one(database.pool())
    .await
    .unwrap();
    assert!(valid);
}

#[tokio::test]
async fn a_migration_does_not_wait_in_front_of_the_workers_for_a_locked_table() {
    let database = TestDatabase::empty().await;
    let db = database.db();
    db.migrate().await.unwrap();
    let altering = next_migration("ALTER TABLE ingestion ADD COLUMN later text", false);
    let mut holder = database.pool().begin().await.unwrap();
    holder.execute("LOCK TABLE docmill.ingestion IN ACCESS SHARE MODE").await.unwrap();
    let migrating = tokio::spawn(async move { db.apply_migrations(&altering).await });
    // Concurrent sessions wait only briefly, not until the holder ends.
    for _ in 0..4 {
        let count = sqlx::query("SELECT count(*) FROM docmill.ingestion").execute(database.pool());
        tokio::time::timeout(SOON, count).await.expect("the holder is never done").unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(!migrating.is_finished(), "it waits for the lock");
    holder.rollback().await.unwrap();
    migrating.await.unwrap().unwrap();
}
