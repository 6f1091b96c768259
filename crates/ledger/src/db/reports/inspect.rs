//! Facts about the server and our session, for `docmill doctor`. Read-only.
//!
//! Asked of the system catalogues, which every login may read, so that a login without any right
//! gets an answer too. Not checked at compile time: the catalogues belong to the server.

use sqlx::FromRow;
use time::OffsetDateTime;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// The server and our rights in it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct DatabaseInspection {
    /// Postgres's `server_version_num`, e.g. 150018 for 15.18.
    pub version: i32,
    /// The database user we are logged in as.
    pub login: String,
    /// Whether the schema is there and we may read it.
    pub may_use: bool,
    /// Whether we may make tables in it.
    pub may_create: bool,
    /// Whether this server only follows another.
    pub standby: bool,
    /// Whether this connection is encrypted.
    pub encrypted: bool,
    /// `clock_timestamp()`, or what a test has put into its place.
    pub clock: OffsetDateTime,
}

const ASK: &str = "
SELECT current_setting('server_version_num')::int AS version,
    current_user::text AS login,
    COALESCE(has_schema_privilege(n.oid, 'USAGE'), false) AS may_use,
    COALESCE(has_schema_privilege(n.oid, 'CREATE'), false) AS may_create,
    pg_is_in_recovery() AS standby,
    COALESCE((SELECT s.ssl FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid()), false) AS encrypted,
    clock_timestamp() AS clock
FROM (VALUES ($1)) AS wanted(schema) LEFT JOIN pg_namespace n ON n.nspname = wanted.schema";

/// Reads version, login and rights from the server.
///
/// # Errors
/// No answer from Postgres.
pub async fn inspect_database(db: &Db) -> Result<DatabaseInspection> {
    sqlx::query_as(ASK)
        .bind(db.schema())
        .fetch_one(db.pool())
        .await
        .context("looking at the server")
}

/// What [`crate`] takes for the time.
///
/// # Errors
/// No answer from Postgres, or no schema.
pub async fn database_time(db: &Db) -> Result<OffsetDateTime> {
    sqlx::query_scalar("SELECT docmill_now()")
        .fetch_one(db.pool())
        .await
        .context("asking for the time")
}
