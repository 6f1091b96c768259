//! The cost of the pages in a large database.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill::app::App;
use docmill_ledger::db::Db;
use docmill_operations::inspect::{self, DocumentQuery};
use docmill_pipeline::shutdown::Shutdown;
use reqwest::StatusCode;
use sqlx::Executor as _;

use crate::maintenance::fill;
use crate::support::postgres::TestDatabase;
use crate::support::row_reads::rows_read_by;

/// Rows that failed and that call for a person, among many that did not.
async fn fail_some(database: &TestDatabase) {
    // Hundreds failed, one of them for a rare reason, and some call for a person.
    let change = "SET session_replication_role = replica;
        UPDATE document d SET structured_data = jsonb_build_object('invoice_number', 'R-' || t.n,
            'supplier_name', 'Supplier ' || t.n % 50, 'total', t.n % 9000)
            FROM (SELECT n FROM generate_series(1, 51000) n) t WHERE d.id = md5('d' || t.n)::uuid;
        INSERT INTO saved_view (owner, list, name, query)
            SELECT 'web:p' || n, 'reviews', 'a', 'kind=invoice' FROM generate_series(1, 20000) n;
        UPDATE ingestion SET status = 'failed', reason = 'corrupt', needs_human_review = true,
            valid_structured_data = false WHERE id IN (SELECT md5('i' || n)::uuid FROM generate_series(1100, 50600, 100) n);
        UPDATE ingestion SET reason = 'encrypted' WHERE id = md5('i50600')::uuid;
        UPDATE document SET needs_human_review = true, review_reasons = ARRAY['corrupt'],
            sha256 = encode(sha256(id::text::bytea), 'hex')
            WHERE id IN (SELECT md5('d' || n)::uuid FROM generate_series(1600, 50600, 1000) n);
        INSERT INTO operator_action (operator, action, target)
            SELECT 'web:ann', 'cancel', n::text FROM generate_series(1, 50000) n;
        INSERT INTO audit_link (source, row_id, digest, before, hash)
            SELECT 'operator_action', a.id, d, sha256(a.id::text::bytea),
                sha256(sha256(a.id::text::bytea) || d)
            FROM operator_action a, LATERAL digest_audit_row('operator_action', a.id) d;
        SET session_replication_role = DEFAULT;
        VACUUM ANALYZE";
    for statement in change.split(';') {
        let mut session = database.pool().acquire().await.unwrap();
        session.execute("SET session_replication_role = replica").await.unwrap();
        session.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.unwrap();
        session.execute("SET session_replication_role = DEFAULT").await.unwrap();
    }
}

/// Counts of a year's hours.
async fn count_hours(database: &TestDatabase) {
    let counted = "INSERT INTO ended_hour (hour, completed, flagged, failed, cancelled, cost_nanos)
        SELECT date_trunc('hour', now(), 'UTC') - n * interval '1 hour', 0, 0, 0, 0, 0
        FROM generate_series(1, 9000) n; ANALYZE ended_hour";
    database.pool().execute(counted).await.unwrap();
}

/// Every page of a console over many rows: an ingestion that ended long ago, a document under review,
/// and the beginning of that document's hash.
fn list_pages(old: &uuid::Uuid, reviewed: &uuid::Uuid, hash: &str) -> Vec<String> {
    vec![
        "/overview".to_owned(),
        "/overview?period=month".to_owned(),
        "/ingestions".to_owned(),
        format!("/ingestions?cursor={old}"),
        "/ingestions?status=in-progress".to_owned(),
        "/ingestions?status=failed".to_owned(),
        "/ingestions?status=failed&reason=encrypted".to_owned(),
        "/ingestions/change?of=matching&status=failed&reason=corrupt".to_owned(),
        "/ingestions/export?of=waiting".to_owned(),
        "/reviews/reject?of=waiting".to_owned(),
        format!("/reviews/reject?of=documents&id={reviewed}"),
        "/ingestions?tenant=tenant-3".to_owned(),
        "/ingestions?tenant=nobody".to_owned(),
        format!("/ingestions/{old}"),
        format!("/ingestions/{reviewed}"),
        format!("/documents?q={hash}"),
        "/documents?q=pdf".to_owned(),
        "/documents?by=key&q=r-30000".to_owned(),
        "/documents?by=key&q=Supplier".to_owned(),
        "/documents?by=key&q=supplier+17".to_owned(),
        "/documents?by=key&q=8123".to_owned(),
        "/documents?by=key&q=documents/30000.pdf".to_owned(),
        "/reviews".to_owned(),
        format!("/reviews?cursor={reviewed}"),
        format!("/reviews/{reviewed}"),
        "/reviews/ahead".to_owned(),
        "/upload".to_owned(),
        "/pauses".to_owned(),
        "/quality".to_owned(),
        "/webhooks".to_owned(),
        "/api-reference".to_owned(),
        "/companies".to_owned(),
        "/kinds".to_owned(),
        "/kinds/invoice".to_owned(),
        "/kinds/invoice/draft".to_owned(),
        "/people".to_owned(),
        "/audit".to_owned(),
        "/audit?who=web:nobody".to_owned(),
        "/audit?who=web:ann&cursor=40000".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_walks_through_tens_of_thousands_that_have_ended() {
    let database = TestDatabase::create().await;
    fill(&database, 50_000).await;
    fail_some(&database).await;
    count_hours(&database).await;
    let ids = "SELECT ARRAY[md5('i30000')::uuid, md5('d1600')::uuid]";
    let ids: Vec<uuid::Uuid> = sqlx::query_scalar(ids).fetch_one(database.pool()).await.unwrap();
    let (old, reviewed) = (ids.first().unwrap(), ids.last().unwrap());
    let hash = "SELECT left(sha256, 12) FROM document WHERE id = md5('d1600')::uuid";
    let hash: String = sqlx::query_scalar(hash).fetch_one(database.pool()).await.unwrap();
    let paths = list_pages(old, reviewed, &hash);
    let folder = tempfile::tempdir().unwrap();
    let config = super::desk::console_config(&database, folder.path());
    for path in paths {
        let (config, asked) = (config.clone(), path.clone());
        let read = Box::pin(rows_read_by(&database, |_: Db| async move {
            let stop = Shutdown::default();
            let console = Box::pin(App::new(config).open_console()).await.unwrap();
            let address = console.address().unwrap();
            let serving = tokio::spawn(console.serve(stop.clone()));
            let answer = reqwest::get(format!("http://{address}{asked}")).await.unwrap();
            // It leads to a picture of a file that is not there.
            let is_ahead = asked == "/reviews/ahead";
            let expected = if is_ahead { StatusCode::CONFLICT } else { StatusCode::OK };
            assert_eq!(answer.status(), expected, "{asked}");
            stop.request();
            serving.await.unwrap();
        }))
        .await;
        for (table, [walked, fetched]) in read {
            // The spending of a day is summed up; a table with a row for each migration is read whole.
            if !["spending", "_sqlx_migrations"].contains(&table.as_str()) {
                assert!(walked == 0, "{path}: {walked} rows of {table} were walked through");
                // Words are looked for in a piece of the table, and its end is looked for before.
                let most = if path.contains("q=pdf") { 25_000 } else { 10_000 };
                assert!(fetched < most, "{path}: {fetched} rows of {table} were fetched");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_for_words_goes_back_piece_by_piece_and_overlooks_nothing() {
    let database = TestDatabase::create().await;
    fill(&database, 50_000).await;
    let named = "UPDATE document SET original_name = 'needle' WHERE id IN (md5('d10000')::uuid,
        md5('d10001')::uuid, md5('d51000')::uuid)";
    database.pool().execute(named).await.unwrap();
    let wanted = DocumentQuery { words: vec!["needle".to_owned()], ..DocumentQuery::default() };
    let look = async |limit: u32, after: Option<uuid::Uuid>, patience: Duration| {
        let db = database.db();
        inspect::look_for_documents(&db, &wanted, limit, after, patience).await.unwrap()
    };
    // With no time to search, each request covers 10,000 rows and returns the next position.
    let (mut after, mut pieces) = (None, Vec::new());
    loop {
        let found = look(50, after, Duration::ZERO).await;
        pieces.push(found.rows.len());
        assert_eq!(found.looked_back_to.is_some(), found.next.is_some());
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(
        pieces,
        [1, 1, 0, 0, 0, 1],
        "the last of a piece, the first of the next, the oldest"
    );
    let all = look(50, None, Duration::from_secs(60)).await;
    assert_eq!((all.rows.len(), all.next, all.looked_back_to), (3, None, None));
    let full = look(2, None, Duration::from_secs(60)).await;
    assert_eq!((full.rows.len(), full.looked_back_to), (2, None));
    let rest = look(2, full.next, Duration::from_secs(60)).await;
    assert_eq!((rest.rows.len(), rest.next), (1, None));
}
