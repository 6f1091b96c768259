//! Postgres: the pool, the migrations, readiness, and what its errors ask of us.
//!
//! All SQL lives here and in the children of this module, the claims on ingestions in [`claims`];
//! one function per statement. Statements name tables without a schema: the schema is the search
//! path of every connection, set from `database.schema`. A pooler that hands out another server
//! connection per transaction is refused. No statement waits without end: for an answer neither
//! (`statements`) nor for a lock (`MAX_LOCK_WAIT`).

pub mod claims;
mod connection;
pub mod lanes;
pub mod migrating;
pub mod operators;
pub mod reports;
pub mod reviews;
pub mod suppliers;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnection, PgPoolOptions, PgSslMode};
use sqlx::{AssertSqlSafe, Connection, Executor};

use docmill_core::config::DatabaseConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::digest::encode_hex;
use docmill_core::retry::with_deadline;

use connection::login::{self, DatabaseLogin};
use connection::statements::StatementPool;
use connection::{DatabaseAddress, session_statement};
use migrating::adopting::{self, MigrationOptions};

pub(crate) use connection::faults::{SqlErrorContext, fault_from_sqlx};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// A pool of connections to our schema.
#[derive(Debug, Clone)]
pub struct Db {
    pool: StatementPool,
    place: DatabaseAddress,
}

/// How far the schema of the database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaVersion {
    /// Just what this program was built for.
    Current,
    /// A newer program has migrated it; that is fine, migrations only add.
    Newer,
    /// Migrations are missing: the newest that was applied, if any.
    Older(Option<i64>),
}

impl Db {
    /// Opens the pool and waits up to `connect_timeout` for the first connection.
    ///
    /// # Errors
    /// `Unavailable` with host, port, database and what to check, after the timeout; at once when
    /// waiting cannot help (wrong password, no such database, an unreadable URL).
    pub async fn connect(config: &DatabaseConfig) -> Result<Self> {
        Self::connect_with(config, session_statement(config)).await
    }

    /// The same for questions with conditions that may be left out: Postgres plans each anew with
    /// its values, so that a condition that is there can use its index.
    ///
    /// # Errors
    /// As [`Db::connect`].
    pub async fn connect_for_questions(config: &DatabaseConfig) -> Result<Self> {
        let settings = session_statement(config);
        let settings = format!("{settings}; SET plan_cache_mode = force_custom_plan");
        Self::connect_with(config, settings).await
    }

    async fn connect_with(config: &DatabaseConfig, settings: String) -> Result<Self> {
        let login = Arc::new(DatabaseLogin::new(config).await?);
        let options = login.connect_options().await?;
        let place = DatabaseAddress {
            host: options.get_host().to_owned(),
            port: options.get_port(),
            database: options.get_database().unwrap_or(options.get_username()).to_owned(),
            schema: config.schema.clone(),
            verifies: matches!(options.get_ssl_mode(), PgSslMode::VerifyFull),
        };
        connection::open_first(&options, &place, config.connect_timeout, &settings).await?;
        let pool = PgPoolOptions::new().max_connections(config.max_connections).after_connect(
            move |connection, _| {
                let settings = settings.clone();
                Box::pin(async move {
                    connection.execute(AssertSqlSafe(settings)).await?;
                    Ok(())
                })
            },
        );
        let pool = StatementPool::connect_lazy(pool, options, config.statement_timeout);
        login::refresh_credentials(pool.inner().clone(), login);
        Ok(Self { pool, place })
    }

    /// A pool without a connection, for tests of code that runs before a statement.
    #[cfg(test)]
    fn unconnected() -> Self {
        let (pool, options) = (PgPoolOptions::new(), sqlx::postgres::PgConnectOptions::new());
        let pool = StatementPool::connect_lazy(pool, options, Duration::from_secs(1));
        let place = DatabaseAddress {
            host: String::new(),
            port: 0,
            database: String::new(),
            schema: String::new(),
            verifies: false,
        };
        Self { pool, place }
    }

    /// Changes with every change of the migrations; names the template of the tests' databases.
    pub fn schema_fingerprint() -> String {
        let mut digest = Sha256::new();
        MIGRATIONS.iter().for_each(|migration| digest.update(&migration.checksum));
        encode_hex(digest.finalize()).chars().take(16).collect()
    }

    /// Host, port, database and schema, without credentials.
    pub fn description(&self) -> String {
        format!("{}, schema `{}`", self.place, self.place.schema)
    }

    /// Connections of this process that are in use, and those that are idle.
    pub fn count_connections(&self) -> (usize, usize) {
        let idle = self.pool.inner().num_idle();
        let open = usize::try_from(self.pool.inner().size()).unwrap_or_default();
        (open.saturating_sub(idle), idle)
    }

    /// Whether the server may be on another machine.
    pub fn is_remote(&self) -> bool {
        let host = self.place.host.as_str();
        let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        !(loopback || host == "localhost" || host.starts_with('/') || host.is_empty())
    }

    /// Whether no other machine can pass for the server: its certificate and its name are verified
    /// (`sslmode=verify-full`).
    pub fn verifies_server(&self) -> bool {
        self.place.verifies
    }

    /// Name of the schema.
    pub(crate) fn schema(&self) -> &str {
        &self.place.schema
    }

    /// The pool, for the modules that hold SQL.
    pub(crate) fn pool(&self) -> &StatementPool {
        &self.pool
    }

    /// Makes the schema if it is not there and applies what is missing: several at once wait for
    /// each other, and none keeps the workers waiting for a lock for more than moments: it steps back
    /// and tries again, for some minutes. A database that a newer program has migrated is left alone.
    ///
    /// # Errors
    /// The failing migration by name; nothing of it was applied, and it can be run again.
    pub async fn migrate(&self) -> Result<()> {
        self.migrate_with(&MigrationOptions::default()).await
    }

    /// The same, and what is wished beyond it. Tables of the earlier system are adopted in one
    /// transaction.
    ///
    /// # Errors
    /// As [`Db::migrate`]; the obstacles of an adoption, with nothing changed.
    pub async fn migrate_with(&self, options: &MigrationOptions) -> Result<()> {
        // A connection of its own: migrations may take longer than any statement should.
        let mut connection =
            self.pool.detach_connection().await.context("connecting to migrate")?;
        migrating::lift_limits(&mut connection).await?;
        let done = self.migrate_over(&mut connection, options).await;
        connection.close().await.context("closing the connection that migrated")?;
        done
    }

    /// Applies the missing ones of these migrations as [`Db::migrate`] applies docmill's own: for
    /// rehearsals of migrations that are not released.
    ///
    /// # Errors
    /// As [`Db::migrate`].
    pub async fn apply_migrations(&self, migrations: &Migrator) -> Result<()> {
        let mut connection =
            self.pool.detach_connection().await.context("connecting to migrate")?;
        migrating::wait_for_turn(&mut connection).await.context("waiting to migrate")?;
        let applied = migrating::apply_missing(&mut connection, migrations).await;
        connection.close().await.context("closing the connection that migrated")?;
        applied.map_err(|error| Error::internal(error.to_string()).with_source(error))
    }

    async fn migrate_over(
        &self,
        connection: &mut PgConnection,
        options: &MigrationOptions,
    ) -> Result<()> {
        migrating::wait_for_turn(connection).await.context("waiting for our turn to migrate")?;
        let schema = self.schema();
        migrating::make_schema(connection, schema).await?;
        let adopted = adopting::adopt_tables(connection, &MIGRATIONS, schema, options).await?;
        if options.rehearse {
            let nothing = "there is nothing to adopt, so nothing to rehearse";
            return if adopted { Ok(()) } else { Err(Error::internal(nothing)) };
        }
        migrating::apply_missing(connection, &MIGRATIONS).await.map_err(
            |error: MigrateError| {
                Error::internal(format!("migrating {}: {error}", self.description()))
                    .with_source(error)
            },
        )?;
        if let Some(earlier) = options.earlier_workers.filter(|_| !adopted) {
            adopting::note_earlier_workers(connection, earlier).await?;
        }
        Ok(())
    }

    /// How far the schema is, compared with this program.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub async fn schema_version(&self) -> Result<SchemaVersion> {
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max();
        let applied: Option<i64> =
            match sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
                .fetch_one(&self.pool)
                .await
            {
                Ok(applied) => applied,
                // No schema or no table: nothing was ever applied.
                Err(sqlx::Error::Database(error))
                    if error.code() == Some(Cow::Borrowed("42P01")) =>
                {
                    None
                }
                Err(error) => return Err(fault_from_sqlx(error, "reading the schema's version")),
            };
        Ok(match applied.cmp(&newest) {
            std::cmp::Ordering::Less => SchemaVersion::Older(applied),
            std::cmp::Ordering::Equal => SchemaVersion::Current,
            std::cmp::Ordering::Greater => SchemaVersion::Newer,
        })
    }

    /// Refuses a schema that is older than this program.
    ///
    /// # Errors
    /// `Internal`, saying which command to run, if migrations are missing.
    pub async fn require_schema(&self) -> Result<()> {
        match self.schema_version().await? {
            SchemaVersion::Current | SchemaVersion::Newer => Ok(()),
            SchemaVersion::Older(applied) => {
                let has = applied.map_or("none".to_owned(), |version| version.to_string());
                Err(Error::internal(format!(
                    "{} lacks migrations (newest applied: {has}): run `docmill migrate`",
                    self.description()
                )))
            }
        }
    }

    /// Whether Postgres answers and takes writes, within `patience`.
    ///
    /// # Errors
    /// `Unavailable` if it does not.
    pub async fn ping(&self, patience: Duration) -> Result<()> {
        with_deadline(patience, self.require_writer(), || {
            let context = format!("{} gave no answer within {patience:?}", self.place);
            Error::new(Fault::Unavailable, context)
        })
        .await
    }

    /// Whether the server takes writes. One that does not loses its connections: the next ones ask the
    /// name of the server again, which may lead to another one by then.
    ///
    /// # Errors
    /// `Unavailable` if it does not, or does not answer.
    pub async fn require_writer(&self) -> Result<()> {
        let takes_writes = sqlx::query_scalar!(
            r#"SELECT NOT pg_is_in_recovery()
                AND current_setting('transaction_read_only') = 'off' AS "takes_writes!""#
        )
        .fetch_one(&self.pool)
        .await
        .context("asking Postgres whether it takes writes")?;
        if takes_writes {
            return Ok(());
        }
        self.pool.replace_connections();
        let context = format!("{} takes no writes: a replica, or read-only", self.place);
        Err(Error::new(Fault::Unavailable, context))
    }

    /// Closes the pool; statements that run are waited for, but not for longer than a second.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// A `u64` for a column of type `bigint`, capped.
pub(crate) fn saturating_bigint(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A `u32` for a column of type `int`; what does not fit is capped.
pub(crate) fn saturating_int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
