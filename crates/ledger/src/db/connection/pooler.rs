//! Telling a pooler that hands out another server connection for every transaction.
//!
//! Behind one (`PgBouncer` with `pool_mode = transaction` or `statement`) the settings of a session
//! (search path, timeouts), prepared statements and the migrations' lock would pass to other
//! clients. Two of our connections are two connections of the server everywhere else; behind such a
//! pooler the second one gets the server connection that the first has just given back.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};

use super::DatabaseAddress;
use docmill_core::fault::{Error, Fault};

/// A pooler in session mode may have no second connection to give; then nothing is shown.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether a connection shares its session with others, as behind a transaction pooler.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn shares_sessions(
    mut first: PgConnection,
    options: &PgConnectOptions,
) -> sqlx::Result<bool> {
    let one = backend_pid(&mut first).await?;
    let second = tokio::time::timeout(PROBE_TIMEOUT, async {
        let mut second = options.connect().await?;
        let other = backend_pid(&mut second).await?;
        second.close().await?;
        Ok::<_, sqlx::Error>(other)
    });
    let other = second.await.ok().transpose()?;
    first.close().await?;
    Ok(other == Some(one))
}

/// The error for a connection without sessions of its own, with the remedy.
pub(super) fn refusal(place: &DatabaseAddress) -> Error {
    Error::new(
        Fault::Misconfigured,
        format!(
            "{place} stands behind a pooler in transaction mode, which gives every transaction \
             another session: search path, timeouts, prepared statements and the lock of \
             migrations would be lost. Let database.url lead to the server itself or to a pool in \
             session mode; docmill needs few connections (database.max_connections)"
        ),
    )
}

/// The server process behind a connection, asked without preparing a statement.
async fn backend_pid(connection: &mut PgConnection) -> sqlx::Result<i32> {
    sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}
