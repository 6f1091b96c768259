//! `migrate` over a database with the earlier system's tables, with rows in every status: they are
//! adopted in place and processed.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_core::config::DatabaseConfig;
use docmill_core::model::{IngestionId, IngestionStatus};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::{Db, SchemaVersion};
use docmill_ledger::{ClaimOutcome, ClaimTerms, Ledger};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor};

use crate::support::postgres::TestDatabase;

/// The shape that the earlier system's statements imply, in two dialects of taste.
const PLAIN: &str = "
CREATE TABLE document (id uuid PRIMARY KEY, file_path text NOT NULL, structured_data jsonb,
    needs_human_review boolean NOT NULL DEFAULT false, updated_at timestamptz DEFAULT now());
CREATE TABLE ingestion (id uuid PRIMARY KEY, document_id uuid NOT NULL REFERENCES document (id),
    status text NOT NULL DEFAULT 'in-progress', started_at timestamptz, completed_at timestamptz,
    attempt_count int NOT NULL DEFAULT 0, transcription_file_path text,
    transcription_quality_score double precision, preprocessed_file_path text,
    structured_data jsonb, valid_structured_data boolean, extraction_input_tokens int,
    extraction_output_tokens int, extraction_model text);";
const OTHER: &str = "
CREATE TYPE ingestion_status AS ENUM ('in-progress', 'completed', 'failed');
CREATE TABLE document (id uuid PRIMARY KEY, file_path varchar(500), structured_data json,
    needs_human_review boolean, updated_at timestamp);
CREATE TABLE ingestion (id uuid PRIMARY KEY, document_id uuid,
    status ingestion_status DEFAULT 'in-progress', started_at timestamp, completed_at timestamp,
    attempt_count smallint DEFAULT 0, transcription_file_path varchar(500),
    transcription_quality_score numeric(4, 3), preprocessed_file_path text,
    structured_data json, valid_structured_data boolean, extraction_input_tokens int,
    extraction_output_tokens int, extraction_model varchar(100));";

/// The earlier trigger, which lets a failure overwrite good data and hides it.
const TRIGGER: &str = "
CREATE FUNCTION update_document_from_ingestion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE document SET structured_data = NEW.structured_data,
        needs_human_review = NOT COALESCE(NEW.valid_structured_data, true), updated_at = now()
    WHERE id = NEW.document_id;
    RETURN NEW; END $$;
CREATE TRIGGER ingestion_done AFTER UPDATE ON ingestion FOR EACH ROW
    EXECUTE FUNCTION update_document_from_ingestion();";

/// One document per letter; the last digit of an ingestion is its place.
const ROWS: &str = "
INSERT INTO document (id, file_path, structured_data, needs_human_review) VALUES
    ('a0000000-0000-0000-0000-000000000000', 'documents/a.pdf', NULL, false),
    ('b0000000-0000-0000-0000-000000000000', 'documents/b.pdf', NULL, false),
    ('c0000000-0000-0000-0000-000000000000', 'documents/c.pdf', '{\"n\": 1}', false),
    ('d0000000-0000-0000-0000-000000000000', 'documents/d.pdf', NULL, false),
    ('e0000000-0000-0000-0000-000000000000', 'documents/e.pdf', '{\"n\": 2}', true);
INSERT INTO ingestion (id, document_id, status, started_at, completed_at, attempt_count,
    structured_data, valid_structured_data) VALUES
    ('a0000000-0000-0000-0000-000000000001', 'a0000000-0000-0000-0000-000000000000', 'in-progress', NULL, NULL, 0, NULL, NULL),
    ('b0000000-0000-0000-0000-000000000001', 'b0000000-0000-0000-0000-000000000000', 'in-progress', now() - interval '1 h', NULL, 2, NULL, NULL),
    ('c0000000-0000-0000-0000-000000000001', 'c0000000-0000-0000-0000-000000000000', 'completed', now() - interval '2 h', now(), 0, '{\"n\": 1}', NULL),
    ('d0000000-0000-0000-0000-000000000001', 'd0000000-0000-0000-0000-000000000000', 'failed', now() - interval '2 h', now(), 3, NULL, NULL),
    ('e0000000-0000-0000-0000-000000000001', 'e0000000-0000-0000-0000-000000000000', 'completed', now() - interval '2 h', NULL, 1, '{\"n\": 2}', false);";

async fn adopted(shape: &'static str) -> (TestDatabase, Db) {
    let database = TestDatabase::empty().await;
    for sql in ["SET search_path = public", shape, TRIGGER, ROWS] {
        // One connection keeps its search path: the pool hands out the same idle one.
        let mut connection = database.pool().acquire().await.unwrap();
        connection.execute("SET search_path = public").await.unwrap();
        connection.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    let config = DatabaseConfig { schema: "public".to_owned(), ..database.config() };
    let db = Db::connect(&config).await.unwrap();
    db.migrate().await.unwrap();
    assert_eq!(db.schema_version().await.unwrap(), SchemaVersion::Current);
    (database, db)
}

fn id(letter: char) -> IngestionId {
    format!("{letter}0000000-0000-0000-0000-000000000001").parse().unwrap()
}

async fn document(database: &TestDatabase, letter: char) -> (Option<Value>, bool) {
    let sql = "SELECT structured_data, needs_human_review FROM public.document
        WHERE left(id::text, 1) = $1";
    let row = sqlx::query_as(sql).bind(letter.to_string()).fetch_one(database.pool()).await;
    row.unwrap()
}

#[tokio::test]
async fn rows_of_the_earlier_system_are_taken_over_in_every_status() {
    for shape in [PLAIN, OTHER] {
        let (database, db) = adopted(shape).await;
        let ledger = PostgresLedger::new(db);
        let terms =
            ClaimTerms { worker: "w".to_owned(), lease: Duration::from_secs(60), crash_limit: 3 };
        let ids = ['a', 'b', 'c', 'd', 'e'].map(id);
        let claims = ledger.claim(&ids, &terms).await.unwrap();
        let ClaimOutcome::Claimed(fresh) = &claims[0] else { panic!("{claims:?}") };
        assert_eq!((fresh.attempt, fresh.suspect), (1, false));
        let ClaimOutcome::Claimed(running) = &claims[1] else {
            panic!("started_at blocks: {claims:?}")
        };
        assert_eq!((running.attempt, running.suspect), (3, false));
        assert!(matches!(claims[2], ClaimOutcome::Terminal(IngestionStatus::Completed)));
        assert!(matches!(claims[3], ClaimOutcome::Terminal(IngestionStatus::Failed)));
        assert!(matches!(claims[4], ClaimOutcome::Terminal(IngestionStatus::Completed)));
        assert_eq!(document(&database, 'c').await, (Some(json!({"n": 1})), false));
        assert_eq!(document(&database, 'd').await, (None, true), "a failure nobody was shown");
        assert_eq!(document(&database, 'e').await, (Some(json!({"n": 2})), true));
    }
}

#[tokio::test]
async fn the_earlier_trigger_no_longer_lets_a_failure_wipe_good_data() {
    let (database, db) = adopted(PLAIN).await;
    let triggers: Vec<String> = sqlx::query_scalar(
        "SELECT tgname::text FROM pg_trigger WHERE tgrelid = 'public.ingestion'::regclass
         AND NOT tgisinternal ORDER BY tgname",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    let ours = [
        "change_of_an_ingestion_of_its_document",
        "heed_earlier_worker",
        "ingestion_of_a_doomed_document",
        "ingestion_of_its_document",
        "reopening_of_a_doomed_document",
        "update_document_from_ingestion",
        "write_webhook_of_end",
    ];
    assert_eq!(triggers, ours);
    // An old producer goes on, with another ingestion of the document that has data.
    let newer = uuid::Uuid::new_v4();
    sqlx::query("INSERT INTO public.ingestion (id, document_id) VALUES ($1, 'c0000000-0000-0000-0000-000000000000')")
        .bind(newer)
        .execute(database.pool())
        .await
        .unwrap();
    let failed = docmill_ledger::db::operators::janitor::fail_unclaimed(
        &db,
        IngestionId(newer),
        docmill_core::model::OutcomeReason::Missing,
        "not there",
    );
    assert!(failed.await.unwrap());
    assert_eq!(document(&database, 'c').await, (Some(json!({"n": 1})), true));
}
