//! Taking over the tables of the earlier system: looked at first, then in one transaction, so that
//! what cannot be adopted is refused before anything has changed.
//!
//! A column that the product has already under a name of ours is kept with its values where it means
//! the same. Names that are taken are said, with what to do. With a schema of our own the two tables
//! move into it and views of the same names stay behind. Not promised: that other objects of the
//! product that hang on a column whose type changes can stay; Postgres refuses then, and so do we.

mod needs;
mod obstacles;

use sqlx::migrate::{Migration, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr};

use docmill_core::fault::{Error, Fault, Result};

use crate::db::{SqlErrorContext, fault_from_sqlx};
use needs::SchemaNeeds;

/// Lets workers of the earlier system run beside ours.
const BRIDGE: &str = include_str!("adopting/bridge.sql");
/// Ends that.
const FAREWELL: &str = include_str!("adopting/farewell.sql");

/// Whether workers of the earlier system still run beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierWorkers {
    /// They do, or may come back: what they write is heeded.
    Stay,
    /// They do not: what they held is free at once.
    Gone,
}

/// What `migrate` is to do beyond applying what is missing.
#[derive(Debug, Clone, Default)]
pub struct MigrationOptions {
    /// The schema whose `document` and `ingestion` move into ours; none: they are adopted where they
    /// are, if ours has them.
    pub adopt_from: Option<String>,
    /// Do everything and take it back: whether it would work.
    pub rehearse: bool,
    /// Whether earlier workers still run; none: unchanged, and when adopting, that they stay.
    pub earlier_workers: Option<EarlierWorkers>,
}

/// Where the two tables are, and where they are to be.
#[derive(Debug, Clone, Copy)]
struct Adoption<'a> {
    from: &'a str,
    to: &'a str,
}

impl Adoption<'_> {
    fn moves(&self) -> bool {
        self.from != self.to
    }
}

/// Adopts the tables of the earlier system, if there are any; `true` if so. Statements that run
/// without a transaction (indexes) are left to the caller.
///
/// # Errors
/// All obstacles, with what to do; nothing has changed then.
pub(in crate::db) async fn adopt_tables(
    connection: &mut PgConnection,
    all: &Migrator,
    schema: &str,
    options: &MigrationOptions,
) -> Result<bool> {
    let from = options.adopt_from.as_deref().unwrap_or(schema);
    let adoption = Adoption { from, to: schema };
    let found = async {
        let migrated = is_migrated(connection, schema).await?;
        Ok((migrated, has_tables(connection, from).await?))
    };
    let (migrated, has_tables) = super::answered_in_moments(found, |late| {
        fault_from_sqlx(late, "looking for tables to adopt")
    })
    .await?;
    if migrated {
        if adoption.moves() {
            return Err(Error::internal(format!(
                "schema `{schema}` is docmill's already, so the tables of `{from}` cannot move into \
                 it: name another in database.schema, or drop `{schema}` if nothing is in it"
            )));
        }
        return Ok(false);
    }
    if !has_tables {
        if adoption.moves() {
            return Err(Error::internal(format!(
                "schema `{from}` has no tables document and ingestion to adopt"
            )));
        }
        return Ok(false);
    }
    let needs = SchemaNeeds::of(all);
    let mut obstacles = obstacles::find_obstacles(connection, adoption, &needs).await?;
    if !obstacles.is_empty() {
        obstacles.insert(0, format!("the tables of `{from}` cannot be adopted as they are:"));
        obstacles.push("nothing was changed; docs/guides/moving.md has examples".to_owned());
        return Err(Error::internal(obstacles.join("\n- ")));
    }
    take_over(connection, all, adoption, &needs, options).await.map_err(say_unchanged)?;
    Ok(true)
}

/// Puts the bridge for earlier workers up or takes it down.
///
/// # Errors
/// No answer from Postgres, or no right to.
pub(in crate::db) async fn note_earlier_workers(
    connection: &mut PgConnection,
    earlier: EarlierWorkers,
) -> Result<()> {
    let mut transaction = connection.begin().await.context("beginning a transaction")?;
    let sql = match earlier {
        EarlierWorkers::Stay => BRIDGE,
        EarlierWorkers::Gone => FAREWELL,
    };
    transaction.execute(sqlx::raw_sql(sql)).await.context("noting the earlier workers")?;
    transaction.commit().await.context("noting the earlier workers")
}

fn say_unchanged(error: Error) -> Error {
    Error::new(error.fault, format!("{error}; nothing was changed")).with_source(error)
}

async fn is_migrated(connection: &mut PgConnection, schema: &str) -> Result<bool> {
    let there: Option<String> =
        sqlx::query_scalar("SELECT to_regclass(format('%I._sqlx_migrations', $1))::text")
            .bind(schema)
            .fetch_one(&mut *connection)
            .await
            .context("looking for a schema of ours")?;
    if there.is_none() {
        return Ok(false);
    }
    let applied = format!("SELECT count(*) > 0 FROM \"{schema}\"._sqlx_migrations");
    let applied = sqlx::query_scalar(AssertSqlSafe(applied)).fetch_one(connection).await;
    applied.context("looking for a schema of ours")
}

async fn has_tables(connection: &mut PgConnection, schema: &str) -> Result<bool> {
    let sql = "SELECT count(*) > 0 FROM pg_class
        WHERE relnamespace = to_regnamespace(quote_ident($1))
          AND relname IN ('document', 'ingestion')";
    let found = sqlx::query_scalar(sql).bind(schema).fetch_one(connection).await;
    found.context("looking for tables of the earlier system")
}

/// Everything that needs no more than a transaction, in one.
async fn take_over(
    connection: &mut PgConnection,
    all: &Migrator,
    adoption: Adoption<'_>,
    needs: &SchemaNeeds,
    options: &MigrationOptions,
) -> Result<()> {
    let mut transaction = connection.begin().await.context("beginning to adopt")?;
    let settings = "SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL lock_timeout = '30s'";
    transaction.execute(settings).await.context("beginning to adopt")?;
    let shapes =
        if adoption.moves() { Some(move_tables(&mut transaction, adoption).await?) } else { None };
    let kept = prepare_columns(&mut transaction, needs).await?;
    let mut migrator = Migrator::with_migrations(
        all.iter().filter(|one| !one.no_tx).map(|one| adapt(one, &kept)).collect(),
    );
    migrator.set_ignore_missing(true);
    let migrated = migrator.run_direct(None, &mut *transaction, false).await;
    migrated.map_err(describe_migration_error)?;
    finish_columns(&mut transaction, needs, &kept).await?;
    for view in shapes.unwrap_or_default() {
        transaction.execute(AssertSqlSafe(view)).await.context("leaving a view behind")?;
    }
    let workers = options.earlier_workers.unwrap_or(EarlierWorkers::Stay);
    if workers == EarlierWorkers::Stay {
        transaction.execute(sqlx::raw_sql(BRIDGE)).await.context("building the bridge")?;
    }
    let ended =
        if options.rehearse { transaction.rollback().await } else { transaction.commit().await };
    ended.context("ending the adoption")
}

/// The names of objects, which Postgres gives as detail, help; of values it says nothing here.
fn describe_migration_error(error: sqlx::migrate::MigrateError) -> Error {
    use sqlx::migrate::MigrateError::{Execute, ExecuteMigration};
    let (Execute(cause) | ExecuteMigration(cause, _)) = error else {
        return Error::internal(format!("adopting: {error}"));
    };
    let hanging = cause.as_database_error().and_then(|said| {
        let said = said.try_downcast_ref::<sqlx::postgres::PgDatabaseError>()?;
        let hangs = matches!(said.code(), "0A000" | "2BP01" | "42883" | "42P17" | "42704");
        let detail = said.detail().or(said.hint()).unwrap_or_default();
        hangs.then(|| {
            format!(
                "something of the product hangs on what has to change: {} ({detail}); drop it, \
                 migrate, and make it again",
                said.message()
            )
        })
    });
    match hanging {
        Some(said) => Error::new(Fault::Internal, said),
        None => fault_from_sqlx(cause, "adopting the earlier tables"),
    }
}

/// Moves the two tables; returns the statements that leave views behind, with the rights of the
/// tables and the columns that they have now.
async fn move_tables(
    connection: &mut PgConnection,
    Adoption { from, to }: Adoption<'_>,
) -> Result<Vec<String>> {
    let mut statements = Vec::new();
    for table in ["document", "ingestion"] {
        let sql = "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
            FROM pg_attribute WHERE attrelid = to_regclass(format('%I.%I', $1, $2))
              AND attnum > 0 AND NOT attisdropped";
        let columns: String = sqlx::query_scalar(sql)
            .bind(from)
            .bind(table)
            .fetch_one(&mut *connection)
            .await
            .context("reading the earlier tables")?;
        statements.push(format!(
            "CREATE VIEW \"{from}\".{table} AS SELECT {columns} FROM \"{to}\".{table}; \
             COMMENT ON VIEW \"{from}\".{table} IS \
             'What the table was before it moved to {to}: see docs/guides/moving.md.'"
        ));
        let sql = "SELECT format('GRANT USAGE ON SCHEMA %I TO %s; GRANT %s ON %I.%I TO %s', $3,
                w.who, a.privilege_type, $1, $2, w.who)
            FROM pg_class c, aclexplode(c.relacl) a, LATERAL (SELECT CASE a.grantee
                WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who) w
            WHERE c.oid = to_regclass(format('%I.%I', $1, $2)) AND a.grantee <> c.relowner";
        let grants: Vec<String> = sqlx::query_scalar(sql)
            .bind(from)
            .bind(table)
            .bind(to)
            .fetch_all(&mut *connection)
            .await
            .context("reading the rights on the earlier tables")?;
        statements.extend(grants);
    }
    for table in ["document", "ingestion"] {
        let sql = format!("ALTER TABLE \"{from}\".{table} SET SCHEMA \"{to}\"");
        connection.execute(AssertSqlSafe(sql)).await.context("moving the earlier tables")?;
    }
    Ok(statements)
}

/// Columns of the product that are ours from now on, as `table.column`.
type KeptColumns = Vec<String>;

/// Gives the columns that the product has already the type that ours have, and fills what is empty.
async fn prepare_columns(
    connection: &mut PgConnection,
    needs: &SchemaNeeds,
) -> Result<KeptColumns> {
    let mut kept = KeptColumns::new();
    for column in &needs.columns {
        let sql = "SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
            WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped";
        let has: Option<String> = sqlx::query_scalar(sql)
            .bind(&column.table)
            .bind(&column.name)
            .fetch_optional(&mut *connection)
            .await
            .context("reading the earlier columns")?;
        let Some(has) = has else { continue };
        let (table, name, wanted) = (&column.table, &column.name, column.full_type());
        let mut sql = String::new();
        if has != wanted {
            sql = format!(
                "ALTER TABLE {table} ALTER COLUMN {name} DROP DEFAULT, \
                 ALTER COLUMN {name} TYPE {wanted} USING {name}::text::{wanted};"
            );
        }
        if let Some(default) = column.default_before_us() {
            let started = column.key() == "ingestion.created_at";
            let earlier = if started { "started_at, completed_at, " } else { "" };
            sql += &format!(
                "UPDATE {table} SET {name} = COALESCE({earlier}{default}) WHERE {name} IS NULL;"
            );
        }
        connection
            .execute(AssertSqlSafe(sql))
            .await
            .context("giving an earlier column its type")?;
        kept.push(column.key());
    }
    Ok(kept)
}

/// Defaults and NOT NULL of the columns that were there.
async fn finish_columns(
    connection: &mut PgConnection,
    needs: &SchemaNeeds,
    kept: &KeptColumns,
) -> Result<()> {
    for column in needs.columns.iter().filter(|column| kept.contains(&column.key())) {
        let (table, name) = (&column.table, &column.name);
        let mut sql = String::new();
        if let Some(default) = &column.default {
            sql += &format!("ALTER TABLE {table} ALTER COLUMN {name} SET DEFAULT {default};");
        }
        if column.not_null {
            sql += &format!("ALTER TABLE {table} ALTER COLUMN {name} SET NOT NULL;");
        }
        connection.execute(AssertSqlSafe(sql)).await.context("finishing an earlier column")?;
    }
    Ok(())
}

/// The same migration, over columns that are there: what is recorded of it is the same.
fn adapt(migration: &Migration, kept: &KeptColumns) -> Migration {
    let mut adapted = migration.clone();
    if kept.is_empty() {
        return adapted;
    }
    let mut sql = migration
        .sql
        .as_str()
        .replace("ADD COLUMN IF NOT EXISTS ", "ADD COLUMN ")
        .replace("ADD COLUMN ", "ADD COLUMN IF NOT EXISTS ");
    if kept.iter().any(|column| column == "ingestion.created_at") {
        // Its own creation date is truer than what the earlier system's rows let one guess.
        sql = sql.replace(needs::GUESSED_CREATION, "");
    }
    adapted.sql = AssertSqlSafe(sql).into_sql_str();
    adapted
}
