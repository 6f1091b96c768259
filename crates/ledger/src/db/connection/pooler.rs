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
use super::faults::SqlErrorContext;
use docmill_core::fault::{Error, Fault, Result};

/// A pooler in session mode may have no second connection to give; then nothing is shown.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Refuses a way to Postgres on which a session is not one.
///
/// # Errors
/// `Denied`, with the reason and what to do, behind such a pooler; no answer from Postgres.
pub(super) async fn refuse_transaction_pooling(
    mut first: PgConnection,
    options: &PgConnectOptions,
    place: &DatabaseAddress,
) -> Result<()> {
    let doing = "looking for a pooler";
    let one = backend_pid(&mut first).await.context(doing)?;
    let second = tokio::time::timeout(PROBE_TIMEOUT, async {
        let mut second = options.connect().await?;
        let other = backend_pid(&mut second).await?;
        second.close().await?;
        Ok::<_, sqlx::Error>(other)
    });
    let other = second.await.ok().transpose().context(doing)?;
    first.close().await.context(doing)?;
    if other != Some(one) {
        return Ok(());
    }
    Err(Error::new(
        Fault::Misconfigured,
        format!(
            "{place} stands behind a pooler in transaction mode, which gives every transaction \
             another session: search path, timeouts, prepared statements and the lock of \
             migrations would be lost. Let database.url lead to the server itself or to a pool in \
             session mode; docmill needs few connections (database.max_connections)"
        ),
    ))
}

/// The server process behind a connection, asked without preparing a statement.
async fn backend_pid(connection: &mut PgConnection) -> sqlx::Result<i32> {
    sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}
