//! Rows of each table read by a piece of work, as counted by Postgres.
//!
//! Not for work that uses other connections during the measurement: those are closed first.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use docmill_ledger::db::Db;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};

use super::postgres::TestDatabase;
use super::world::{SOON, until};

/// Rows of each table that were read so far, by walking them and by index.
async fn rows_read(observer: &mut PgConnection) -> BTreeMap<String, [i64; 2]> {
    let read = sqlx::query(
        "SELECT relname::text, seq_tup_read, COALESCE(idx_tup_fetch, 0) AS fetched
         FROM pg_stat_user_tables",
    );
    let rows = read.fetch_all(observer).await.unwrap();
    let counts = |row: &sqlx::postgres::PgRow| [row.get("seq_tup_read"), row.get("fetched")];
    rows.iter().map(|row| (row.get("relname"), counts(row))).collect()
}

/// Closes every other connection. A connection reports its reads at any time, but certainly at its
/// end: one of the pool that filled the tables would report them during the measurement.
async fn close_others(database: &TestDatabase) {
    let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND backend_type = 'client backend'";
    until(SOON, || async {
        let mut observer = PgConnection::connect(&database.url()).await.unwrap();
        let left: i64 = sqlx::query_scalar(others).fetch_one(&mut observer).await.unwrap();
        observer.close().await.unwrap();
        left == 0
    })
    .await;
}

/// Runs work on separate connections, and returns how many rows of each table it read.
pub(crate) async fn rows_read_by<F: Future<Output = ()>>(
    database: &TestDatabase,
    work: impl FnOnce(Db) -> F,
) -> BTreeMap<String, [i64; 2]> {
    close_others(database).await;
    let mut observer = PgConnection::connect(&database.url()).await.unwrap();
    let before = rows_read(&mut observer).await;
    observer.close().await.unwrap();
    let db = Db::connect(&database.config()).await.unwrap();
    work(db.clone()).await;
    db.close().await;
    close_others(database).await;
    let mut observer = PgConnection::connect(&database.url()).await.unwrap();
    let mut read = rows_read(&mut observer).await;
    observer.close().await.unwrap();
    for (table, counts) in &mut read {
        let earlier = before.get(table).copied().unwrap_or_default();
        *counts = [counts[0] - earlier[0], counts[1] - earlier[1]];
    }
    read
}
