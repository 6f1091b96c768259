//! Obstacles of an adoption, found before anything is changed: each a sentence that names the
//! object and the remedy. Reads catalogues and counts of rows, never their values.

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use docmill_core::fault::Result;

use super::needs::SchemaNeeds;
use super::{Adoption, SqlErrorContext};

/// A column as the catalogue has it.
#[derive(Debug, sqlx::FromRow)]
struct ExistingColumn {
    table: String,
    name: String,
    column_type: String,
    is_enum: bool,
}

/// All that is in the way.
pub(super) async fn find_obstacles(
    connection: &mut PgConnection,
    adoption: Adoption<'_>,
    needs: &SchemaNeeds,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    check_tables(connection, adoption, &mut found).await?;
    if !found.is_empty() {
        // Nothing below can be asked of tables of another form.
        return Ok(found);
    }
    check_columns(connection, adoption, needs, &mut found).await?;
    check_statuses(connection, adoption, &mut found).await?;
    check_dependents(connection, adoption, needs, &mut found).await?;
    check_names(connection, adoption, needs, &mut found).await?;
    if adoption.moves() {
        check_trigger_paths(connection, adoption, &mut found).await?;
    }
    Ok(found)
}

/// The catalogue's entry for one of the two tables.
#[derive(Debug, sqlx::FromRow)]
struct ExistingTable {
    is_table: bool,
    is_owned: bool,
    has_uuid: bool,
    is_unique: bool,
    owner: String,
}

/// Both are tables of ours to alter, with an id that messages can carry.
async fn check_tables(
    connection: &mut PgConnection,
    Adoption { from, .. }: Adoption<'_>,
    found: &mut Vec<String>,
) -> Result<()> {
    for name in ["document", "ingestion"] {
        match find_table(connection, from, name).await? {
            Some(table) => check_table(&table, &format!("{from}.{name}"), found),
            None => found.push(format!(
                "`{from}` has one of document and ingestion, but no {name}: the other is not the \
                 earlier system's; set database.schema to a schema without it"
            )),
        }
    }
    let sql = "SELECT count(*) = 1 FROM pg_attribute WHERE attname = 'document_id'
        AND attrelid = to_regclass(format('%I.ingestion', $1)) AND atttypid = 'uuid'::regtype";
    let names: bool = sqlx::query_scalar(sql)
        .bind(from)
        .fetch_one(connection)
        .await
        .context("reading the earlier tables")?;
    if !names {
        found.push(format!("{from}.ingestion has no column document_id of type uuid"));
    }
    Ok(())
}

async fn find_table(
    connection: &mut PgConnection,
    from: &str,
    name: &str,
) -> Result<Option<ExistingTable>> {
    let sql = "SELECT c.relkind = 'r' AS is_table,
            pg_has_role(c.relowner, 'USAGE') AS is_owned,
            EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'id'
                AND a.atttypid = 'uuid'::regtype AND NOT a.attisdropped) AS has_uuid,
            EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a
                ON a.attrelid = c.oid AND a.attname = 'id'
                WHERE i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
                  AND i.indkey::text = a.attnum::text) AS is_unique,
            pg_get_userbyid(c.relowner)::text AS owner
        FROM pg_class c WHERE c.oid = to_regclass(format('%I.%I', $1, $2))";
    let table = sqlx::query_as(sql).bind(from).bind(name).fetch_optional(connection).await;
    table.context("reading the earlier tables")
}

fn check_table(table: &ExistingTable, name: &str, found: &mut Vec<String>) {
    let owner = &table.owner;
    if !table.is_table {
        found.push(format!(
            "{name} is a view, a partitioned or a foreign table: only plain tables can be adopted; \
             use a schema of docmill's own and hand documents in (docs/guides/producers.md)"
        ));
    }
    if !table.is_owned {
        found.push(format!(
            "{name} belongs to {owner}: migrate as {owner}, or GRANT {owner} to the login that \
             migrates"
        ));
    }
    if !table.has_uuid {
        found.push(format!(
            "{name} has no column id of type uuid: messages carry nothing else; use a schema of \
             docmill's own and hand documents in (docs/guides/producers.md)"
        ));
    } else if !table.is_unique {
        found.push(format!("{name}.id is not unique: ALTER TABLE {name} ADD PRIMARY KEY (id)"));
    }
}

/// Columns of the product under names that we need.
async fn check_columns(
    connection: &mut PgConnection,
    Adoption { from, .. }: Adoption<'_>,
    needs: &SchemaNeeds,
    found: &mut Vec<String>,
) -> Result<()> {
    let sql = "SELECT c.relname::text AS \"table\", a.attname::text AS name,
            format_type(a.atttypid, a.atttypmod) AS column_type, t.typtype = 'e' AS is_enum
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
        WHERE c.relnamespace = to_regnamespace(quote_ident($1))
          AND c.relname IN ('document', 'ingestion') AND c.relkind = 'r'";
    let existing: Vec<ExistingColumn> = sqlx::query_as(sql)
        .bind(from)
        .fetch_all(connection)
        .await
        .context("reading the earlier columns")?;
    for column in existing {
        let ExistingColumn { table, name, column_type, is_enum } = column;
        let wanted = needs.columns.iter().find(|one| one.table == table && one.name == name);
        let Some(wanted) = wanted else { continue };
        let rename = format!("ALTER TABLE {from}.{table} RENAME COLUMN {name} TO product_{name}");
        if !wanted.is_shared() {
            found.push(format!(
                "{from}.{table} has a column {name} of the product's own, and docmill keeps \
                 something else under that name: {rename}"
            ));
        } else if !wanted.takes(&column_type, is_enum) {
            found.push(format!(
                "{from}.{table}.{name} is of type {column_type}, which is not taken as {}: change \
                 its type, or {rename}",
                wanted.full_type()
            ));
        }
    }
    Ok(())
}

/// Rows of an unknown status would never be worked on.
async fn check_statuses(
    connection: &mut PgConnection,
    Adoption { from, .. }: Adoption<'_>,
    found: &mut Vec<String>,
) -> Result<()> {
    let has: bool = sqlx::query_scalar(
        "SELECT count(*) = 1 FROM pg_attribute WHERE attname = 'status' AND NOT attisdropped
         AND attrelid = to_regclass(format('%I.ingestion', $1))",
    )
    .bind(from)
    .fetch_one(&mut *connection)
    .await
    .context("reading the earlier columns")?;
    if !has {
        return Ok(());
    }
    let sql = format!(
        "SELECT COALESCE(status::text, 'NULL'), count(*) FROM \"{from}\".ingestion
         WHERE status::text IN ('in-progress', 'completed', 'failed', 'cancelled') IS NOT TRUE
         GROUP BY 1 ORDER BY 1"
    );
    let unknown: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(sql))
        .fetch_all(connection)
        .await
        .context("counting the earlier statuses")?;
    for (status, count) in unknown {
        let is = if status == "NULL" { "IS NULL".to_owned() } else { format!("= '{status}'") };
        found.push(format!(
            "{count} rows of {from}.ingestion have a status other than in-progress, completed, failed \
             and cancelled: UPDATE {from}.ingestion SET status = '…' WHERE status {is}"
        ));
    }
    Ok(())
}

/// Indexes and constraints that compare an enum column with its values: the column becomes text.
async fn check_dependents(
    connection: &mut PgConnection,
    Adoption { from, .. }: Adoption<'_>,
    needs: &SchemaNeeds,
    found: &mut Vec<String>,
) -> Result<()> {
    let sql = "WITH enum_column AS (
            SELECT c.oid AS relation, c.relname::text AS table_name, a.attnum,
                a.attname::text AS column_name, '::' || format_type(t.oid, NULL) AS type_name
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
                AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'e'
            WHERE c.relnamespace = to_regnamespace(quote_ident($1))
              AND c.relname IN ('document', 'ingestion') AND c.relkind = 'r')
        SELECT e.table_name, e.column_name, format('DROP INDEX %s', i.indexrelid::regclass),
            replace(pg_get_indexdef(i.indexrelid), e.type_name, '::text')
        FROM enum_column e JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass
            AND d.refobjid = e.relation AND d.refobjsubid = e.attnum
            AND d.classid = 'pg_class'::regclass
        JOIN pg_index i ON i.indexrelid = d.objid
        WHERE i.indpred IS NOT NULL OR i.indexprs IS NOT NULL
        UNION
        SELECT e.table_name, e.column_name,
            format('ALTER TABLE %s DROP CONSTRAINT %I', e.relation::regclass, k.conname),
            format('ALTER TABLE %s ADD CONSTRAINT %I %s', e.relation::regclass, k.conname,
                replace(pg_get_constraintdef(k.oid), e.type_name, '::text'))
        FROM enum_column e JOIN pg_constraint k ON k.conrelid = e.relation AND k.contype = 'c'
            AND e.attnum = ANY (k.conkey)
        ORDER BY 3";
    let dependents: Vec<(String, String, String, String)> = sqlx::query_as(sql)
        .bind(from)
        .fetch_all(connection)
        .await
        .context("looking for what hangs on the earlier columns")?;
    for (table, name, drop, again) in dependents {
        // Of the earlier system's own columns only the status may be an enum.
        let is_earlier = (table.as_str(), name.as_str()) == ("ingestion", "status");
        if is_earlier || needs.columns.iter().any(|one| one.table == table && one.name == name) {
            found.push(format!(
                "{from}.{table}.{name} is an enum that becomes text, and this compares it with values \
                 of the enum: {drop}; after the migration make it again: {again}"
            ));
        }
    }
    Ok(())
}

/// Relations and types under names that we need.
async fn check_names(
    connection: &mut PgConnection,
    adoption: Adoption<'_>,
    needs: &SchemaNeeds,
    found: &mut Vec<String>,
) -> Result<()> {
    let sql = "SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' ELSE 'table' END, c.relname::text
        FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident($1))
          AND c.relname = ANY ($2)
        UNION ALL SELECT 'type', t.typname::text FROM pg_type t
        WHERE t.typnamespace = to_regnamespace(quote_ident($1)) AND t.typrelid = 0
          AND t.typname = ANY ($2) ORDER BY 2";
    let taken: Vec<(String, String)> = sqlx::query_as(sql)
        .bind(adoption.to)
        .bind(&needs.relations)
        .fetch_all(&mut *connection)
        .await
        .context("looking for names that are taken")?;
    if taken.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        taken.iter().map(|(kind, name)| format!("the {kind} `{name}`")).collect();
    let (names, to) = (names.join(", "), adoption.to);
    found.push(if adoption.moves() {
        format!("schema `{to}` has {names}: name another schema in database.schema")
    } else {
        format!(
            "schema `{to}` has {names}, and docmill needs the names: give docmill a schema of its own \
             (database.schema = \"docmill\") and run `docmill migrate --adopt {to}`, which moves \
             document and ingestion there and leaves views of the same names behind"
        )
    });
    Ok(())
}

/// Triggers of the product run in our sessions, whose search path is our schema alone.
async fn check_trigger_paths(
    connection: &mut PgConnection,
    Adoption { from, .. }: Adoption<'_>,
    found: &mut Vec<String>,
) -> Result<()> {
    let sql = "SELECT p.oid::regprocedure::text, string_agg(DISTINCT c.relname, ' and ')
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE c.relnamespace = to_regnamespace(quote_ident($1))
          AND c.relname IN ('document', 'ingestion') AND NOT t.tgisinternal
          AND p.proname <> 'update_document_from_ingestion'
          AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) s WHERE s LIKE 'search_path=%')
        GROUP BY 1 ORDER BY 1";
    let loose: Vec<(String, String)> = sqlx::query_as(sql)
        .bind(from)
        .fetch_all(connection)
        .await
        .context("looking at the product's triggers")?;
    for (function, table) in loose {
        found.push(format!(
            "a trigger on {table} of `{from}` calls {function}, which looks its tables up in whatever \
             session it runs: ALTER FUNCTION {function} SET search_path = {from}"
        ));
    }
    Ok(())
}
