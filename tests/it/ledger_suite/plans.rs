//! Postgres' plans for the statements of jobs: each row found by its key, and one plan kept per
//! connection. (`maintenance` checks every statement over a large table; over the small one here
//! the planner would read all of it.) Nothing grows with the square of the requested rows.

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::support::postgres::TestDatabase;

/// Arguments that the planner takes for one row: ids, positions.
const RANGES: [&str; 2] =
    ["BETWEEN '00000000-0000-0000-0000-000000000000'", "BETWEEN 1 AND 1000000"];
/// Claim, renewal, reference, spending, end; block list, duplicates and known suppliers.
const STATEMENTS: usize = 8;
/// Postgres plans so often with the values before it thinks of keeping a plan.
const WITH_VALUES: i64 = 5;
const ID: &str = "11111111-1111-4111-8111-111111111111";

/// The statements of jobs, and how many parameters of which types they have.
fn statements_of_jobs() -> Vec<(String, Vec<String>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let known: Value = serde_json::from_str(&text).unwrap();
        let query = known.get("query").and_then(Value::as_str).unwrap();
        if RANGES.iter().any(|range| query.contains(range)) {
            let types =
                known.pointer("/describe/parameters/Left").and_then(Value::as_array).unwrap();
            let types = types.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            found.push((query.to_owned(), types));
        }
    }
    found
}

/// An argument for one row that is not there.
fn argument(type_name: &str) -> String {
    match type_name {
        "UuidArray" => format!("ARRAY['{ID}']::uuid[]"),
        "TextArray" => "ARRAY['fetch']".to_owned(),
        "BoolArray" => "ARRAY[true]".to_owned(),
        "Int4Array" => "ARRAY[2]".to_owned(),
        "Jsonb" => {
            let row = json!([{
                "id": ID, "token": ID, "document": ID, "key": "k", "claims": 1, "provider": "p",
                "model": "m", "calls": 1, "status": "completed",
            }]);
            format!("'{row}'::jsonb")
        }
        "Text" => "'worker'".to_owned(),
        "Float8" | "Int4" | "Int8" => "60".to_owned(),
        other => panic!("an argument of type {other}"),
    }
}

async fn explain(session: &mut PgConnection, execute: &str) -> String {
    session.execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let explain = AssertSqlSafe(format!("EXPLAIN {execute}"));
    let plan: Vec<String> = sqlx::query_scalar(explain).fetch_all(&mut *session).await.unwrap();
    session.execute("RESET plan_cache_mode").await.unwrap();
    plan.join("\n")
}

#[tokio::test]
async fn the_statements_of_jobs_find_each_row_by_its_key_in_a_small_table_too_and_are_planned_once()
{
    let database = TestDatabase::create().await;
    let fill = "INSERT INTO document (id, file_path)
            SELECT gen_random_uuid(), 'documents/' || n FROM generate_series(1, 2000) n;
        INSERT INTO ingestion (id, document_id) SELECT gen_random_uuid(), id FROM document;
        ANALYZE document; ANALYZE ingestion";
    database.pool().execute(fill).await.unwrap();
    let mut session = database.pool().acquire().await.unwrap().detach();
    let statements = statements_of_jobs();
    assert_eq!(statements.len(), STATEMENTS);
    for (query, types) in statements {
        let name = query.lines().find(|line| !line.trim().is_empty()).unwrap().to_owned();
        session.execute(AssertSqlSafe(format!("PREPARE q AS {query}"))).await.unwrap();
        let arguments: Vec<String> = types.iter().map(|name| argument(name)).collect();
        let execute = format!("EXECUTE q({})", arguments.join(", "));
        let plan = explain(&mut session, &execute).await;
        for table in ["ingestion", "document"] {
            assert!(!plan.contains(&format!("Seq Scan on {table} ")), "{name}\n{plan}");
        }
        // Ten thousand renewals against ten thousand would take minutes.
        assert!(!plan.contains("Join Filter"), "each row against each other: {name}\n{plan}");
        for _ in 0..WITH_VALUES + 2 {
            session.execute(AssertSqlSafe(execute.clone())).await.unwrap();
        }
        let kept = "SELECT custom_plans FROM pg_prepared_statements WHERE name = 'q'";
        let custom: i64 = sqlx::query_scalar(kept).fetch_one(&mut session).await.unwrap();
        assert_eq!(custom, WITH_VALUES, "planned at every call: {name}");
        session.execute("DEALLOCATE q").await.unwrap();
    }
    session.close().await.unwrap();
}

/// The first statements of a connection are planned with their values, and the statistics lack rows
/// submitted within a second: the planner expects a row or two.
#[tokio::test]
async fn an_end_reads_no_ingestions_of_other_documents_however_many_came_at_once() {
    let database = TestDatabase::create().await;
    let fill = |folder: &str, rows: u32, age: &str| {
        AssertSqlSafe(format!(
            "WITH made AS (
                INSERT INTO document (id, file_path)
                SELECT gen_random_uuid(), '{folder}/' || n FROM generate_series(1, {rows}) n
                RETURNING id
            )
            INSERT INTO ingestion (id, document_id, created_at)
            SELECT gen_random_uuid(), id, now() - random() * interval '{age}' FROM made"
        ))
    };
    let mut session = database.pool().acquire().await.unwrap().detach();
    session.execute(fill("earlier", 20_000, "30 days")).await.unwrap();
    session.execute("ANALYZE ingestion").await.unwrap();
    session.execute(fill("at once", 2_000, "1 s")).await.unwrap();
    // The oldest of those: all the others are newer.
    let oldest = "SELECT i.id FROM ingestion i JOIN document d ON d.id = i.document_id
        WHERE d.file_path LIKE 'at once/%' ORDER BY i.created_at LIMIT 1";
    let id: uuid::Uuid = sqlx::query_scalar(oldest).fetch_one(&mut session).await.unwrap();
    let end = "UPDATE ingestion SET status = 'completed', completed_at = now(),
        valid_structured_data = true WHERE id = $1";
    // Entries that this transaction has read of the index.
    let read = "SELECT pg_stat_get_xact_tuples_returned('ingestion_by_age'::regclass)";
    let mut transaction = session.begin().await.unwrap();
    let before: i64 = sqlx::query_scalar(read).fetch_one(&mut *transaction).await.unwrap();
    sqlx::query(end).bind(id).execute(&mut *transaction).await.unwrap();
    let after: i64 = sqlx::query_scalar(read).fetch_one(&mut *transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    assert!(after - before < 100, "{} entries read for one end", after - before);
    session.close().await.unwrap();
}
