//! A database after long use, and the cost of a job's statements in it: execution time and pages
//! touched. Both are comparable on a busy machine; jobs per second are not.
#![expect(clippy::unwrap_used, reason = "a broken world ends the run")]

use serde_json::{Map, Value, json};
use sqlx::AssertSqlSafe;

use crate::support::world::World;

/// The kind of the rows that [`fill_tables`] makes; nothing else has it.
pub(crate) const GROWN: &str = "grown";

/// Identifies a statement, and names it among the figures. The bench's own statements name the
/// schema, the worker's never do.
const NAMED: &str = "CASE WHEN query LIKE '%given_up AS (%' THEN 'claim'
    WHEN query LIKE '%), ended AS (%' THEN 'end' ELSE 'others' END";

/// Inserts this many documents, each with an ended ingestion and its attempt. Indexes are built
/// afterwards, without foreign keys and triggers: the same result in a fraction of the time.
pub(crate) async fn fill_tables(world: &World, rows: usize) {
    let sql = format!(
        "SET LOCAL session_replication_role = replica;
        SET LOCAL statement_timeout = 0;
        SET LOCAL maintenance_work_mem = '512MB';
        CREATE TEMP TABLE put_aside ON COMMIT DROP AS
            SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS made_by
            FROM pg_index i
            WHERE i.indrelid IN ('docmill.document'::regclass, 'docmill.ingestion'::regclass,
                'docmill.attempt'::regclass)
              AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid);
        DO $$ DECLARE aside record; BEGIN
            FOR aside IN SELECT name FROM put_aside LOOP
                EXECUTE 'DROP INDEX ' || aside.name;
            END LOOP;
        END $$;
        INSERT INTO docmill.document (id, file_path, sha256, created_at, updated_at,
            structured_data, completed_ingestion_id, completed_ingestion_created_at)
        SELECT md5('document ' || n)::uuid, 'grown/' || n, md5('1' || n) || md5('2' || n),
            now() - n * interval '1 s', now() - n * interval '1 s', '{{}}',
            md5('ingestion ' || n)::uuid, now() - n * interval '1 s'
        FROM generate_series(1, {rows}) n;
        INSERT INTO docmill.ingestion (id, document_id, status, created_at, updated_at, enqueued_at,
            started_at, completed_at, attempt_count, claims, stage, worker, structured_data,
            valid_structured_data, reader, kind)
        SELECT md5('ingestion ' || n)::uuid, md5('document ' || n)::uuid, 'completed', t, t, t, t, t,
            1, 1, 'record', 'worker', '{{}}', true, 'rules', '{GROWN}'
        FROM generate_series(1, {rows}) n, LATERAL (SELECT now() - n * interval '1 s' AS t) AS at;
        INSERT INTO docmill.attempt (ingestion_id, claims, token, worker, started_at, ended_at,
            stage, outcome, final)
        SELECT md5('ingestion ' || n)::uuid, 1, md5('token ' || n)::uuid, 'worker', t, t, 'record',
            'completed', true
        FROM generate_series(1, {rows}) n, LATERAL (SELECT now() - n * interval '1 s' AS t) AS at;
        DO $$ DECLARE aside record; BEGIN
            FOR aside IN SELECT made_by FROM put_aside LOOP
                EXECUTE aside.made_by;
            END LOOP;
        END $$;
        ANALYZE docmill.document, docmill.ingestion, docmill.attempt;"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&world.pool).await.unwrap();
}

/// Resets the statement statistics. False: the server does not collect them
/// (`shared_preload_libraries`), and [`statement_costs`] is empty.
pub(crate) async fn begin_counting(world: &World) -> bool {
    let loaded = world.scalar("SELECT current_setting('shared_preload_libraries')").await;
    if !loaded.contains("pg_stat_statements") {
        return false;
    }
    let sql = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public;
        SELECT public.pg_stat_statements_reset()";
    sqlx::raw_sql(sql).execute(&world.pool).await.unwrap();
    true
}

/// The cost of the worker's statements since [`begin_counting`]: microseconds of execution and
/// pages per job, rows per statement. Triggers count with the statement that fires them.
pub(crate) async fn statement_costs(world: &World, jobs: f64) -> Value {
    let sql = format!(
        "SELECT json_object_agg(name, json_build_object('us', us, 'pages', pages, 'rows', rows))::text
        FROM (
            SELECT {NAMED} AS name, round((sum(total_exec_time) * 1000 / {jobs})::numeric, 1) AS us,
                round((sum(shared_blks_hit + shared_blks_read) / {jobs})::numeric, 1) AS pages,
                round(sum(rows)::numeric / sum(calls), 1) AS rows
            FROM public.pg_stat_statements s JOIN pg_database b ON b.oid = s.dbid
            WHERE b.datname = current_database() AND query NOT LIKE '%docmill.%'
              AND query NOT LIKE '%pg_stat_%'
            GROUP BY 1
        ) AS named"
    );
    let costs: Map<String, Value> = serde_json::from_str(&world.scalar(&sql).await).unwrap();
    json!({
        "postgres_execution_us_per_job": column_of(&costs, "us"),
        "pages_per_job": column_of(&costs, "pages"),
        "rows_per_statement": column_of(&costs, "rows"),
    })
}

fn column_of(costs: &Map<String, Value>, what: &str) -> Value {
    costs
        .iter()
        .map(|(name, of)| (name.clone(), of.get(what).cloned().unwrap_or_default()))
        .collect::<Map<_, _>>()
        .into()
}
