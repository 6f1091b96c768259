//! Row-level security on the tables of documents. A login that sees some rows only takes the others
//! for unknown: their messages would end in quarantine.

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::{Error, Result};

/// Tables of which this login sees some rows only, by the catalogues: policies apply to it, and none
/// of them lets everything through.
const ASK: &str = "
WITH policy AS (
    SELECT p.polrelid, p.polpermissive, p.polcmd = '*'
        AND pg_get_expr(p.polqual, p.polrelid) = 'true'
        AND COALESCE(pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true' AS is_open
    FROM pg_policy p
    WHERE p.polroles = '{0}'::oid[] OR EXISTS (
        SELECT 1 FROM unnest(p.polroles) AS role (id)
        WHERE role.id <> 0 AND pg_has_role(current_user, role.id, 'USAGE'))
)
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname IN ('document', 'ingestion', 'supplier_memory') AND row_security_active(c.oid)
  AND NOT EXISTS (SELECT 1 FROM policy p
    WHERE p.polrelid = c.oid AND p.polpermissive AND p.is_open
      AND NOT EXISTS (SELECT 1 FROM policy r WHERE r.polrelid = c.oid AND NOT r.polpermissive))
ORDER BY c.relname";

/// The tables of which this login sees some rows only.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_filtered_tables(db: &Db) -> Result<Vec<String>> {
    sqlx::query_scalar(ASK)
        .bind(db.schema())
        .fetch_all(db.pool())
        .await
        .context("looking for row-level security")
}

/// The statements that let docmill's roles see all rows of these tables.
pub fn describe_remedy(db: &Db, tables: &[String]) -> String {
    let schema = db.schema();
    let statements = tables.iter().map(|table| {
        format!(
            "CREATE POLICY docmill ON {schema}.{table} TO docmill_worker, docmill_operator, \
             docmill_reader USING (true) WITH CHECK (true)"
        )
    });
    statements.collect::<Vec<_>>().join("; ")
}

/// Refuses a login that sees some rows only.
///
/// # Errors
/// `Internal`, with the statements that change it; no answer from Postgres.
pub async fn require_all_rows(db: &Db) -> Result<()> {
    let tables = find_filtered_tables(db).await?;
    if tables.is_empty() {
        return Ok(());
    }
    Err(Error::internal(format!(
        "row-level security hides rows of {} from this login, and their messages would count as \
         unknown: {}",
        tables.join(" and "),
        describe_remedy(db, &tables)
    )))
}
