//! The way to Postgres: connecting, the settings of a session, and the kinds of errors.

pub(super) mod faults;
mod iam;
pub(super) mod login;
mod pooler;
pub(super) mod statements;

use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor as _};

use docmill_core::config::DatabaseConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{Jitter, RetryBackoff, retry, with_deadline};

use faults::SqlErrorContext as _;

/// Where the database is, for messages: never the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DatabaseAddress {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: String,
    pub(super) schema: String,
    pub(super) verifies: bool,
}

impl std::fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Postgres at {}:{}, database `{}`", self.host, self.port, self.database)
    }
}

/// The longest wait of a statement for a foreign lock (an operator's open transaction, for
/// example), and never more than a third of its time: the other rows are then tried without it.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

/// The settings of every new connection. A statement rather than start-up options, because
/// poolers refuse those. The schema's name was checked by the configuration.
pub(super) fn session_statement(config: &DatabaseConfig) -> String {
    format!(
        "SET search_path = \"{}\"; SET statement_timeout = {}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = '60s'; SET timezone = 'UTC'; \
         SET docmill.session = 'yes'",
        config.schema.replace('"', ""),
        config.statement_timeout.as_millis(),
        MAX_LOCK_WAIT.min(config.statement_timeout / 3).as_millis(),
    )
}

/// Between two tries to connect at start.
const CONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Shortened at random: after an outage all workers of a fleet start together.
const CONNECT_WAITS: RetryBackoff =
    RetryBackoff::constant(CONNECT_PAUSE).with_jitter(Jitter::Quarter);

/// Makes the first connection, and refuses a pooler that changes it between transactions. It has the
/// `settings` of every session: a proxy that keeps such a session on one server connection (RDS Proxy)
/// passes.
pub(super) async fn open_first(
    options: &PgConnectOptions,
    place: &DatabaseAddress,
    timeout: Duration,
    settings: &str,
) -> Result<()> {
    let mut first = wait_for_answer(options, place, timeout).await?;
    let set = first.execute(AssertSqlSafe(settings.to_owned())).await;
    set.context("setting up the first connection")?;
    pooler::refuse_transaction_pooling(first, options, place).await
}

/// Tries to connect until it works, the time is up, or waiting cannot help.
async fn wait_for_answer(
    options: &PgConnectOptions,
    place: &DatabaseAddress,
    timeout: Duration,
) -> Result<PgConnection> {
    let begun = Instant::now();
    let connected = retry(
        |_| {
            let left = timeout.saturating_sub(begun.elapsed()).max(Duration::from_secs(1));
            with_deadline(left, options.connect(), || sqlx::Error::PoolTimedOut)
        },
        |said, _| {
            let in_time = begun.elapsed() + CONNECT_PAUSE < timeout;
            (in_time && !faults::is_permanent(said)).then(|| CONNECT_WAITS.wait_after(0))
        },
    );
    connected.await.map_err(|said| {
        let waited = begun.elapsed().as_secs();
        let advice = if faults::is_permanent(&said) {
            "check user, password and database in database.url"
        } else {
            "check that it runs and that database.url names the right host and port"
        };
        Error::new(
            Fault::Unavailable,
            format!("{place} cannot be used (tried for {waited} s): {said}; {advice}"),
        )
    })
}
