//! A separate database for every test.
//!
//! The server is the one of `scripts/with_postgres.sh` (`DOCMILL_TEST_DATABASE_URL`), or else a
//! private cluster of this process, which is slower. Databases are copies of a template that is
//! migrated once per server and schema version, and dropped with the test. Times can be moved: only
//! tests replace `docmill_now()`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Weak};
use std::time::Duration;

use docmill::cluster::{CrashDurability, PrivatePostgres};
use docmill_core::config::{DatabaseConfig, SecretString};
use docmill_ledger::db::Db;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr};
use time::OffsetDateTime;
use tokio::sync::Mutex;

/// A server, and how long it lives.
#[derive(Debug)]
enum Server {
    Given(String),
    Own(PrivatePostgres, #[expect(dead_code, reason = "removed when dropped")] tempfile::TempDir),
}

impl Server {
    fn url(&self, database: &str) -> String {
        match self {
            Self::Given(url) => format!("{}/{database}", url.rsplit_once('/').unwrap().0),
            Self::Own(cluster, _) => cluster.url(database),
        }
    }

    async fn shared() -> Arc<Self> {
        static RUNNING: Mutex<Weak<Server>> = Mutex::const_new(Weak::new());
        let mut running = RUNNING.lock().await;
        if let Some(server) = running.upgrade() {
            return server;
        }
        let server = match std::env::var("DOCMILL_TEST_DATABASE_URL") {
            Ok(url) => Self::Given(url),
            Err(_) => {
                let dir = tempfile::tempdir().unwrap();
                Self::Own(
                    PrivatePostgres::start(dir.path(), CrashDurability::Fast).await.unwrap(),
                    dir,
                )
            }
        };
        let server = Arc::new(server);
        *running = Arc::downgrade(&server);
        server
    }
}

/// A migration as a later release would bring it.
pub(crate) fn next_migration(sql: &'static str, no_tx: bool) -> Migrator {
    let kind = MigrationType::Simple;
    let sql = AssertSqlSafe(sql).into_sql_str();
    let later = Migration::new(29990101000000, "later".into(), kind, sql, no_tx);
    Migrator::with_migrations(vec![later])
}

/// A migrated database, dropped with this value.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    server: Arc<Server>,
    name: String,
    db: Db,
    pool: PgPool,
}

impl TestDatabase {
    /// A fresh copy of the migrated template.
    pub(crate) async fn create() -> Self {
        let server = Server::shared().await;
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let mut admin = PgConnection::connect(&server.url("postgres")).await.unwrap();
        let template = template(&server, &mut admin).await;
        run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        admin.close().await.unwrap();
        let db = Db::connect(&config(server.url(&name))).await.unwrap();
        let pool = own_pool(&server, &name).await;
        Self { server, name, db, pool }
    }

    /// An empty database, not migrated.
    pub(crate) async fn empty() -> Self {
        let server = Server::shared().await;
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let mut admin = PgConnection::connect(&server.url("postgres")).await.unwrap();
        run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE template0")).await;
        admin.close().await.unwrap();
        let db = Db::connect(&config(server.url(&name))).await.unwrap();
        let pool = own_pool(&server, &name).await;
        Self { server, name, db, pool }
    }

    /// The database's URL.
    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// The URL for a new login that has this role and no other.
    pub(crate) async fn login(&self, role: &str) -> String {
        let name = format!("login_{}", uuid::Uuid::new_v4().simple());
        let sql = format!("CREATE ROLE {name} LOGIN IN ROLE {role}");
        self.pool.execute(AssertSqlSafe(sql)).await.unwrap();
        let url = self.url().replacen("postgres@", &format!("{name}@"), 1);
        assert!(url.contains(&name), "{url}");
        url
    }

    /// A configuration that leads to it.
    pub(crate) fn config(&self) -> DatabaseConfig {
        config(self.url())
    }

    /// The product's own pool.
    pub(crate) fn db(&self) -> Db {
        self.db.clone()
    }

    /// A pool for what only a test may do.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Moves the database's clock to `now() + offset`, for everybody who uses it.
    pub(crate) async fn advance(&self, offset: Duration) {
        let seconds = offset.as_secs_f64();
        self.clock(format!("clock_timestamp() + interval '{seconds} seconds'")).await;
    }

    /// Stops the database's clock at this time.
    pub(crate) async fn freeze(&self, at: OffsetDateTime) {
        let micros = at.unix_timestamp_nanos() / 1000;
        self.clock(format!("timestamptz 'epoch' + interval '1 microsecond' * {micros}")).await;
    }

    async fn clock(&self, expression: String) {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION docmill.docmill_now() RETURNS timestamptz LANGUAGE sql \
             VOLATILE PARALLEL SAFE AS $$ SELECT {expression} $$"
        );
        self.pool.execute(AssertSqlSafe(sql)).await.unwrap();
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let url = self.server.url("postgres");
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A test may end while its runtime is going down, so this has a runtime of its own.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                if let Ok(mut admin) = PgConnection::connect(&url).await {
                    admin.execute(AssertSqlSafe(sql)).await.ok();
                    admin.close().await.ok();
                }
            });
        });
        dropped.join().ok();
    }
}

async fn own_pool(server: &Server, name: &str) -> PgPool {
    let url = format!("{}?options=-csearch_path%3Ddocmill", server.url(name));
    PgPoolOptions::new().max_connections(12).connect(&url).await.unwrap()
}

fn config(url: String) -> DatabaseConfig {
    DatabaseConfig { url: SecretString::from(url), max_connections: 8, ..DatabaseConfig::default() }
}

async fn run(admin: &mut PgConnection, sql: String) {
    admin.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// The name of the migrated template, created on first use.
async fn template(server: &Server, admin: &mut PgConnection) -> String {
    let name = format!("docmill_template_{}", Db::schema_fingerprint());
    run(admin, "SELECT pg_advisory_lock(20261121)".to_owned()).await;
    let there: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
            .bind(&name)
            .fetch_one(&mut *admin)
            .await
            .unwrap();
    if !there {
        // Under another name until it is whole.
        let half = format!("{name}_half");
        run(admin, format!("DROP DATABASE IF EXISTS {half} WITH (FORCE)")).await;
        run(admin, format!("CREATE DATABASE {half} TEMPLATE template0")).await;
        let db = Db::connect(&config(server.url(&half))).await.unwrap();
        db.migrate().await.unwrap();
        db.close().await;
        run(admin, format!("ALTER DATABASE {half} RENAME TO {name}")).await;
    }
    run(admin, "SELECT pg_advisory_unlock(20261121)".to_owned()).await;
    name
}
