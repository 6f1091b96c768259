//! The schema itself: what producers may rely on, what no row may be, what every column means,
//! and who may do what.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_core::config::{DatabaseConfig, SecretString};
use docmill_core::fault::Fault;
use docmill_core::model::{
    AttemptOutcome, IngestionId, IngestionStage, IngestionStatus, OutcomeReason,
};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::{Db, SchemaVersion};
use docmill_ledger::decide::FRESH_ATTEMPTS;
use docmill_ledger::{ClaimOutcome, ClaimTerms, Ledger};
use sqlx::{AssertSqlSafe, Executor};

use crate::support::postgres::TestDatabase;

/// Inserts as producers of the earlier system do: `(id, file_path)` and `(id, document_id)`.
async fn produce(database: &TestDatabase) -> IngestionId {
    let (document, ingestion) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    sqlx::query("INSERT INTO docmill.document (id, file_path) VALUES ($1, 'documents/x.pdf')")
        .bind(document)
        .execute(database.pool())
        .await
        .unwrap();
    sqlx::query("INSERT INTO docmill.ingestion (id, document_id) VALUES ($1, $2)")
        .bind(ingestion)
        .bind(document)
        .execute(database.pool())
        .await
        .unwrap();
    IngestionId(ingestion)
}

fn terms() -> ClaimTerms {
    ClaimTerms { worker: "w".to_owned(), lease: Duration::from_secs(60), crash_limit: 3 }
}

#[tokio::test]
async fn a_producer_with_only_the_old_columns_keeps_working() {
    let database = TestDatabase::create().await;
    let id = produce(&database).await;
    let claim = PostgresLedger::new(database.db()).claim(&[id], &terms()).await.unwrap().remove(0);
    assert!(matches!(claim, ClaimOutcome::Claimed(_)), "{claim:?}");
}

#[tokio::test]
async fn no_row_can_be_in_a_state_that_the_worker_does_not_know() {
    let database = TestDatabase::create().await;
    let id = produce(&database).await;
    let done = "completed_at = now(), valid_structured_data = false, needs_human_review = true";
    let table = [
        ("status = 'running'".to_owned(), "ingestion_status_is_known"),
        (
            "status = 'completed', valid_structured_data = true".to_owned(),
            "ingestion_terminal_has_an_end",
        ),
        ("completed_at = now()".to_owned(), "ingestion_terminal_has_an_end"),
        ("claim_token = gen_random_uuid()".to_owned(), "ingestion_token_and_lease_together"),
        ("lease_expires_at = now()".to_owned(), "ingestion_token_and_lease_together"),
        (
            format!(
                "status = 'failed', reason = 'corrupt', {done}, claim_token = gen_random_uuid(), lease_expires_at = now()"
            ),
            "ingestion_terminal_has_no_lease",
        ),
        (format!("status = 'failed', {done}"), "ingestion_reason_tells_why"),
        ("reason = 'corrupt'".to_owned(), "ingestion_reason"),
        (format!("status = 'failed', reason = 'bad luck', {done}"), "ingestion_reason_fits_status"),
        (
            format!("status = 'failed', reason = 'cancelled', {done}"),
            "ingestion_reason_fits_status",
        ),
        (
            "status = 'completed', completed_at = now()".to_owned(),
            "ingestion_completed_has_a_verdict",
        ),
        (
            "status = 'failed', reason = 'corrupt', completed_at = now()".to_owned(),
            "ingestion_failed_is_not_valid",
        ),
        ("stage = 'lunch'".to_owned(), "ingestion_stage_is_known"),
        ("attempt_count = -1".to_owned(), "ingestion_counts_are_not_negative"),
        ("sha256 = 'abc'".to_owned(), "ingestion_sha256_is_whole"),
    ];
    for (change, constraint) in table {
        let sql = format!("UPDATE ingestion SET {change} WHERE id = '{id}'");
        let error = database.pool().execute(AssertSqlSafe(sql)).await.unwrap_err();
        let broken =
            error.as_database_error().and_then(|error| error.constraint().map(str::to_owned));
        assert!(
            broken.as_deref().is_some_and(|name| name.starts_with(constraint)),
            "{change}: {error}"
        );
    }
}

#[tokio::test]
async fn a_fresh_ingestion_has_as_many_attempts_in_the_schema_as_in_the_code() {
    let database = TestDatabase::create().await;
    let id = produce(&database).await;
    let limit: i32 = sqlx::query_scalar("SELECT attempt_limit FROM ingestion WHERE id = $1")
        .bind(id.0)
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(u32::try_from(limit).unwrap(), FRESH_ATTEMPTS);
}

#[tokio::test]
async fn every_code_of_the_program_is_allowed_by_the_schema() {
    let database = TestDatabase::create().await;
    for reason in OutcomeReason::ALL {
        let id = produce(&database).await;
        sqlx::query(
            "UPDATE ingestion SET status = $2, reason = $3, completed_at = now(),
                 valid_structured_data = false, needs_human_review = true WHERE id = $1",
        )
        .bind(id.0)
        .bind(reason.status().code())
        .bind(reason.code())
        .execute(database.pool())
        .await
        .unwrap();
    }
    let id = produce(&database).await;
    for stage in IngestionStage::ALL {
        sqlx::query("UPDATE ingestion SET stage = $2 WHERE id = $1")
            .bind(id.0)
            .bind(stage.code())
            .execute(database.pool())
            .await
            .unwrap();
    }
    let faults = [
        Fault::Transient,
        Fault::Throttled(None),
        Fault::Unavailable,
        Fault::Denied,
        Fault::Misconfigured,
        Fault::Paused,
        Fault::OverBudget(Duration::ZERO),
        Fault::Batched(Duration::ZERO),
        Fault::Missing,
        Fault::Rejected,
        Fault::Interrupted,
        Fault::Internal,
    ];
    let outcomes = OutcomeReason::ALL
        .map(AttemptOutcome::Ended)
        .into_iter()
        .chain(faults.map(AttemptOutcome::Fault))
        .chain([AttemptOutcome::Completed]);
    for (claims, outcome) in (1_i64..).zip(outcomes) {
        sqlx::query(
            "INSERT INTO attempt (ingestion_id, claims, token, outcome)
             VALUES ($1, $2, gen_random_uuid(), $3)",
        )
        .bind(id.0)
        .bind(claims)
        .bind(outcome.code())
        .execute(database.pool())
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn every_table_view_and_column_has_a_comment() {
    let database = TestDatabase::create().await;
    let silent: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname || COALESCE('.' || a.attname, '')
         FROM pg_class c
         LEFT JOIN pg_attribute a
             ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'r'
         WHERE c.relnamespace = 'docmill'::regnamespace AND c.relkind IN ('r', 'v')
           AND c.relname <> '_sqlx_migrations'
           AND (obj_description(c.oid, 'pg_class') IS NULL
             OR (a.attnum IS NOT NULL AND col_description(c.oid, a.attnum) IS NULL))",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    assert!(silent.is_empty(), "without a COMMENT: {silent:?}");
}

#[tokio::test]
async fn no_index_is_on_a_column_that_a_renewal_changes() {
    let database = TestDatabase::create().await;
    let hot =
        ["lease_expires_at", "next_attempt_at", "claim_token", "stage", "updated_at", "worker"];
    let indexes: Vec<String> = sqlx::query_scalar(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'docmill' AND tablename = 'ingestion'",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    assert!(indexes.len() > 3, "{indexes:?}");
    for index in indexes {
        assert!(!hot.iter().any(|column| index.contains(column)), "{index}");
    }
    let options: Vec<String> = sqlx::query_scalar(
        "SELECT unnest(reloptions) FROM pg_class WHERE oid = 'ingestion'::regclass",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    assert!(options.contains(&"fillfactor=70".to_owned()), "{options:?}");
}

#[tokio::test]
async fn in_flight_ingestions_are_listed_by_state_with_the_reason() {
    let database = TestDatabase::create().await;
    let states = [
        ("queued", "", "waits for its message"),
        (
            "leased",
            "claim_token = gen_random_uuid(), lease_expires_at = now() + interval '1 h', worker = 'w7'",
            "worker w7 works on it",
        ),
        (
            "orphaned",
            "claim_token = gen_random_uuid(), lease_expires_at = now() - interval '1 h', worker = 'w7'",
            "worker w7 fell silent",
        ),
        (
            "deferred",
            "next_attempt_at = now() + interval '1 h', deferred_since = now(), detail = 'store down'",
            "store down",
        ),
        ("parked", "tenant = 'acme'", "an operator has paused tenant acme"),
    ];
    database
        .pool()
        .execute("INSERT INTO pause (scope, name) VALUES ('tenant', 'acme')")
        .await
        .unwrap();
    for (state, change, words) in states {
        let id = produce(&database).await;
        if !change.is_empty() {
            let sql = format!("UPDATE ingestion SET {change} WHERE id = '{id}'");
            database.pool().execute(AssertSqlSafe(sql)).await.unwrap();
        }
        let (seen, explanation): (String, String) =
            sqlx::query_as("SELECT state, explanation FROM ops_in_flight WHERE ingestion_id = $1")
                .bind(id.0)
                .fetch_one(database.pool())
                .await
                .unwrap();
        assert_eq!(seen, state);
        assert!(explanation.contains(words), "{explanation}");
    }
}

#[tokio::test]
async fn the_other_views_show_ends_and_open_reviews() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let id = produce(&database).await;
    for _ in 0..3 {
        ledger.claim(&[id], &terms()).await.unwrap();
        sqlx::query("UPDATE ingestion SET lease_expires_at = docmill_now() WHERE id = $1")
            .bind(id.0)
            .execute(database.pool())
            .await
            .unwrap();
    }
    ledger.claim(&[id], &terms()).await.unwrap();
    let seen: (String, String, i64) = sqlx::query_as(
        "SELECT f.reason, r.review_reasons[1], t.failed
         FROM ops_failures f, ops_review r, ops_throughput t
         WHERE f.ingestion_id = $1 AND r.newest_ingestion_id = $1",
    )
    .bind(id.0)
    .fetch_one(database.pool())
    .await
    .unwrap();
    assert_eq!(seen, ("crashed".to_owned(), "crashed".to_owned(), 1));
}

#[tokio::test]
async fn the_worker_role_can_work_but_not_alter_and_the_reader_only_reads() {
    let database = TestDatabase::create().await;
    let id = produce(&database).await;
    let table = [
        ("docmill_worker", format!("UPDATE ingestion SET stage = 'fetch' WHERE id = '{id}'"), true),
        ("docmill_worker", "SELECT * FROM ops_in_flight".to_owned(), true),
        ("docmill_worker", "DELETE FROM ingestion".to_owned(), false),
        ("docmill_worker", "SELECT erase_expired('{}')".to_owned(), true),
        ("docmill_worker", "UPDATE tenant_retention SET days = 1".to_owned(), false),
        ("docmill_reader", "SELECT erase_expired('{}')".to_owned(), false),
        ("docmill_worker", "CREATE TABLE t (a int)".to_owned(), false),
        ("docmill_worker", "ALTER TABLE ingestion ADD COLUMN a int".to_owned(), false),
        (
            "docmill_reader",
            "SELECT * FROM document, ingestion, attempt, ops_review".to_owned(),
            true,
        ),
        ("docmill_reader", "UPDATE ingestion SET stage = 'fetch'".to_owned(), false),
        ("docmill_migrator", "CREATE TABLE t (a int)".to_owned(), true),
    ];
    for (role, sql, allowed) in table {
        let mut transaction = database.pool().begin().await.unwrap();
        transaction.execute(AssertSqlSafe(format!("SET LOCAL ROLE {role}"))).await.unwrap();
        let answer = transaction.execute(AssertSqlSafe(sql.clone())).await;
        let refused = answer.as_ref().err().and_then(|error| {
            error.as_database_error().map(|error| error.code().unwrap_or_default().into_owned())
        });
        let expected = (!allowed).then(|| "42501".to_owned());
        assert_eq!(refused, expected, "{role}: {sql}: {answer:?}");
    }
}

#[tokio::test]
async fn the_trigger_works_for_a_session_with_another_search_path() {
    let database = TestDatabase::create().await;
    let id = produce(&database).await;
    let mut session = database.pool().acquire().await.unwrap().detach();
    session.execute("SET search_path = pg_temp").await.unwrap();
    let sql = format!(
        "UPDATE docmill.ingestion SET status = 'completed', completed_at = now(),
         valid_structured_data = true, structured_data = '{{}}' WHERE id = '{id}'"
    );
    session.execute(AssertSqlSafe(sql)).await.unwrap();
    let carried: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM docmill.document WHERE completed_ingestion_id IS NOT NULL",
    )
    .fetch_one(&mut session)
    .await
    .unwrap();
    assert_eq!(carried, 1);
}

#[tokio::test]
async fn an_older_schema_is_refused_and_a_newer_one_is_fine() {
    let database = TestDatabase::empty().await;
    let db = database.db();
    assert_eq!(db.schema_version().await.unwrap(), SchemaVersion::Older(None));
    let refusal = db.require_schema().await.unwrap_err();
    assert!(refusal.to_string().contains("docmill migrate"), "{refusal}");
    let (one, other) = tokio::join!(db.migrate(), db.migrate());
    one.and(other).unwrap();
    assert_eq!(db.schema_version().await.unwrap(), SchemaVersion::Current);
    db.migrate().await.unwrap();
    database
        .pool()
        .execute(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (29990101000000, 'from the future', true, '', 0)",
        )
        .await
        .unwrap();
    assert_eq!(db.schema_version().await.unwrap(), SchemaVersion::Newer);
    db.require_schema().await.unwrap();
    db.migrate().await.unwrap();
    db.ping(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn a_schema_of_a_build_before_the_first_release_is_refused_with_what_to_do() {
    let database = TestDatabase::create().await;
    let old = "UPDATE _sqlx_migrations SET version = 20261127000102
        WHERE version = (SELECT min(version) FROM _sqlx_migrations)";
    database.pool().execute(old).await.unwrap();
    let refusal = database.db().migrate().await.unwrap_err().to_string();
    assert!(refusal.contains("20261127000102") && refusal.contains("database.schema"), "{refusal}");
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let database = TestDatabase::create().await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let there = database.url();
    let there = there.rsplit_once('/').unwrap().0;
    for (url, expected) in [
        (format!("postgres://me:hunter2@127.0.0.1:{unused}/orders"), format!("127.0.0.1:{unused}")),
        (format!("{there}/no_such_database"), "no_such_database".to_owned()),
    ] {
        let config = DatabaseConfig {
            url: SecretString::from(url),
            connect_timeout: Duration::from_millis(600),
            ..DatabaseConfig::default()
        };
        let error = Db::connect(&config).await.unwrap_err();
        assert_eq!(error.fault, Fault::Unavailable);
        let said = format!("{error} {error:?}");
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert_eq!(IngestionStatus::from_code("in-progress"), Some(IngestionStatus::InProgress));
}
