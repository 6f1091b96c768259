//! The way to Postgres: connecting, the settings of a session, and the kinds of errors.

pub(super) mod faults;
mod iam;
pub(super) mod login;
mod pooler;
pub(super) mod statements;

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor as _};

use docmill_core::config::DatabaseConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{Jitter, RetryBackoff, retry, with_deadline};

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
/// poolers refuse those. The schema's name was checked by the configuration. Postgres does not compile
/// statements (`jit`): it would take 90 ms for one of 0.2 ms, whose JSON is estimated far too large.
pub(super) fn session_statement(config: &DatabaseConfig) -> String {
    format!(
        "SET search_path = \"{}\"; SET statement_timeout = {}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = '60s'; SET timezone = 'UTC'; SET jit = off; \
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

/// Timeout of one attempt, at most a third of the time for all attempts: a half-open connection
/// never answers.
pub(super) const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes the first connection, and refuses a pooler that changes it between transactions. It has the
/// `settings` of every session: a proxy that keeps such a session on one server connection (RDS Proxy)
/// passes. Tries until it works, the time is up, or waiting cannot help.
pub(super) async fn open_first(
    options: &PgConnectOptions,
    place: &DatabaseAddress,
    timeout: Duration,
    settings: &str,
) -> Result<()> {
    let begun = Instant::now();
    let opened = retry(
        |_| {
            let limit = (timeout / 3).clamp(Duration::from_secs(1), TRY_TIMEOUT);
            with_deadline(limit, try_session(options, settings), || sqlx::Error::PoolTimedOut)
        },
        |said, _| {
            let in_time = begun.elapsed() + CONNECT_PAUSE < timeout;
            (in_time && !faults::is_permanent(said)).then(|| CONNECT_WAITS.wait_after(0))
        },
    );
    let is_shared = opened.await.map_err(|said| {
        let waited = begun.elapsed().as_secs();
        // The error's text would include a line number of Postgres' source.
        let words = said.as_database_error().map(|error| error.message().to_owned());
        let words = words.unwrap_or_else(|| said.to_string());
        let advice = if faults::is_permanent(&said) {
            "check user, password and database in database.url"
        } else {
            "check that it runs and that database.url names the right host and port"
        };
        Error::new(
            Fault::Unavailable,
            format!("{place} cannot be used (tried for {waited} s): {words}; {advice}"),
        )
    })?;
    if is_shared { Err(pooler::refusal(place)) } else { Ok(()) }
}

/// Opens and closes a connection; returns whether its transactions share sessions with others.
async fn try_session(options: &PgConnectOptions, settings: &str) -> sqlx::Result<bool> {
    let mut first = options.connect().await?;
    first.execute(AssertSqlSafe(settings.to_owned())).await?;
    pooler::shares_sessions(first, options).await
}
