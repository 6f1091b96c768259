//! Applies migrations while workers run.
//!
//! Each migration that changes a table waits only moments for its lock and then tries again: a
//! waiting lock would hold up every claim behind it. Indexes of large tables are built
//! concurrently, in files of their own that run without a transaction; the remains of an
//! interrupted build are removed first. Only a migration itself is waited for without a limit: all else
//! is answered in moments, or the connection counts as silent. Not promised: that a migration ends while
//! a transaction keeps a table locked for minutes; then it fails with an error and can be run again.

pub mod adopting;

use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor};

use docmill_core::fault::{Error, Result};
use docmill_core::retry::{RetryBackoff, with_deadline};

use super::connection::TRY_TIMEOUT;
use crate::db::{SqlErrorContext, fault_from_sqlx};

/// One migration at a time, also across versions: a number of ours among the advisory locks.
const TURN: i64 = 0x0064_6f63_6d69_6c6c;
/// Between two looks whether it is our turn. Asked again and again and not waited for inside
/// Postgres, where the one who waits would hold up the building of an index.
const TURN_PAUSE: Duration = Duration::from_millis(250);
/// A table's lock is waited for so long.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '2s'";
/// Building an index concurrently waits for open transactions, and blocks no other session.
const NO_LOCK_TIMEOUT: &str = "SET lock_timeout = 0";
/// So often a migration steps back from a lock before it gives up: about five minutes.
const TRIES: u32 = 60;
/// In between, sessions queued behind it have their turn.
const TRY_PAUSES: RetryBackoff =
    RetryBackoff::doubling(Duration::from_millis(500)).up_to(Duration::from_secs(3));
/// Statements have no timeout, but Postgres cancels one within this time after the client has gone.
const MIGRATION_LIMITS: &str =
    "SET statement_timeout = 0; SET client_connection_check_interval = '5s'";
/// Where sqlx notes what was applied.
const APPLIED: &str = "_sqlx_migrations";

/// Applies what is missing, in order, each as its file asks for. The turn is ours already.
pub(super) async fn apply_missing(
    connection: &mut PgConnection,
    all: &Migrator,
) -> std::result::Result<(), MigrateError> {
    let listed = async {
        connection.ensure_migrations_table(APPLIED).await?;
        connection.list_applied_migrations(APPLIED).await
    };
    let applied = answered_in_moments(listed, MigrateError::Execute).await?;
    let mut migrator = Migrator::with_migrations(all.iter().cloned().collect());
    migrator.set_ignore_missing(true);
    for migration in all.iter() {
        if applied.iter().any(|done| done.version == migration.version) {
            continue;
        }
        apply_one(connection, &migrator, migration).await?;
    }
    // Nothing left: this compares what was applied with what we have.
    migrator.run_direct(None, connection, false).await?;
    connection.execute(AssertSqlSafe(format!("SELECT pg_advisory_unlock({TURN})"))).await?;
    Ok(())
}

/// Waits for a quick statement. A half-open connection never answers.
async fn answered_in_moments<T, E>(
    asked: impl Future<Output = std::result::Result<T, E>>,
    late: impl FnOnce(sqlx::Error) -> E,
) -> std::result::Result<T, E> {
    with_deadline(TRY_TIMEOUT, asked, || {
        let text = format!("Postgres gave no answer within {TRY_TIMEOUT:?}");
        late(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, text)))
    })
    .await
}

/// Prepares a connection for migrations, which may take hours.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn lift_limits(connection: &mut PgConnection) -> Result<()> {
    let lifted = answered_in_moments(connection.execute(MIGRATION_LIMITS), |late| late).await;
    lifted.map(drop).context("preparing a connection to migrate")
}

/// Creates the schema if missing, under the lock: two concurrent creations fail in spite of IF NOT
/// EXISTS.
///
/// # Errors
/// As [`refuse_unreleased`].
pub(super) async fn make_schema(connection: &mut PgConnection, schema: &str) -> Result<()> {
    let made = async {
        refuse_unreleased(connection, schema).await?;
        let make = format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"");
        connection.execute(AssertSqlSafe(make)).await.context("making the schema")
    };
    let made = answered_in_moments(made, |late| fault_from_sqlx(late, "making the schema"));
    made.await.map(drop)
}

/// The first migration of all releases; builds before the first release recorded lower numbers.
const BASELINE: i64 = 20_261_128_000_001;

/// Refuses a schema that a build before the first release has made: nothing leads from there.
///
/// # Errors
/// `Internal`, with what to do; no answer from Postgres.
async fn refuse_unreleased(connection: &mut PgConnection, schema: &str) -> Result<()> {
    let sql = "SELECT to_regclass(format('%I._sqlx_migrations', $1)) IS NOT NULL";
    let is_there: bool = sqlx::query_scalar(sql)
        .bind(schema)
        .fetch_one(&mut *connection)
        .await
        .context("looking for a schema of ours")?;
    if !is_there {
        return Ok(());
    }
    let sql = format!("SELECT min(version) FROM \"{schema}\"._sqlx_migrations");
    let first: Option<i64> = sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(connection)
        .await
        .context("reading the schema's version")?;
    match first {
        Some(version) if version < BASELINE => Err(Error::internal(format!(
            "schema `{schema}` was created by a build before the first release (migration {version}) \
             and cannot be migrated: set another database.schema, or DROP SCHEMA \"{schema}\" CASCADE, \
             run `docmill migrate` and hand the documents in again"
        ))),
        _ => Ok(()),
    }
}

/// One program at a time migrates; the session's end gives the turn back as well.
pub(super) async fn wait_for_turn(connection: &mut PgConnection) -> sqlx::Result<()> {
    loop {
        let asked = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(TURN);
        let ours: bool =
            answered_in_moments(asked.fetch_one(&mut *connection), |late| late).await?;
        if ours {
            return Ok(());
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
}

async fn apply_one(
    connection: &mut PgConnection,
    migrator: &Migrator,
    migration: &Migration,
) -> std::result::Result<(), MigrateError> {
    if migration.no_tx {
        connection.execute(NO_LOCK_TIMEOUT).await?;
        drop_unfinished_index(connection, migration).await?;
        return migrator.run_direct(Some(migration.version), connection, false).await;
    }
    connection.execute(LOCK_TIMEOUT).await?;
    let mut refused = 0;
    loop {
        match migrator.run_direct(Some(migration.version), connection, false).await {
            Err(error) if refused < TRIES && is_lock_timeout(&error) => {
                let version = migration.version;
                tracing::warn!(version, refused, "a table is locked: migration {version} waits");
                TRY_PAUSES.sleep(refused).await;
                refused += 1;
            }
            ended => return ended,
        }
    }
}

/// An index whose building was interrupted is there and of no use: `IF NOT EXISTS` would keep it.
async fn drop_unfinished_index(
    connection: &mut PgConnection,
    migration: &Migration,
) -> sqlx::Result<()> {
    let unfinished: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace",
    )
    .fetch_all(&mut *connection)
    .await?;
    let sql = migration.sql.as_str();
    for name in unfinished.iter().filter(|name| sql.contains(&format!(" {name} "))) {
        let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS \"{name}\"");
        connection.execute(AssertSqlSafe(drop)).await?;
    }
    Ok(())
}

fn is_lock_timeout(error: &MigrateError) -> bool {
    let cause = match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause,
        _ => return false,
    };
    cause.as_database_error().is_some_and(|said| said.code().as_deref() == Some("55P03"))
}
