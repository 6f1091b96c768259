//! Own companies of tenants. A change and its row of the audit are one statement.

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::OwnCompany;

/// The companies of a tenant, or those of documents without one.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_companies(db: &Db, tenant: Option<&str>) -> Result<Vec<OwnCompany>> {
    sqlx::query_as!(
        OwnCompany,
        r#"SELECT NULLIF(tenant, '') AS "tenant?", name, other_names, vat_ids, accounts, addresses
           FROM own_company WHERE tenant = $1 ORDER BY name"#,
        tenant.unwrap_or_default(),
    )
    .fetch_all(db.pool())
    .await
    .context("reading own companies")
}

/// The companies of every tenant.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_all_companies(db: &Db) -> Result<Vec<OwnCompany>> {
    sqlx::query_as!(
        OwnCompany,
        r#"SELECT NULLIF(tenant, '') AS "tenant?", name, other_names, vat_ids, accounts, addresses
           FROM own_company ORDER BY tenant, name"#,
    )
    .fetch_all(db.pool())
    .await
    .context("reading own companies")
}

/// Puts these companies in the place of all of the tenant's. Their names differ.
///
/// # Errors
/// No answer from Postgres, or values that it refuses.
pub async fn replace_companies(
    db: &Db,
    tenant: Option<&str>,
    companies: &[OwnCompany],
    by: &AuditNote,
) -> Result<()> {
    sqlx::query!(
        "WITH given AS MATERIALIZED (
             SELECT * FROM jsonb_to_recordset($2::jsonb) AS g (
                 name text, other_names text[], vat_ids text[], accounts text[], addresses text[])
         ), before AS MATERIALIZED (
             SELECT COALESCE(jsonb_agg(to_jsonb(c)), '[]') AS rows FROM own_company c WHERE tenant = $1
         ), gone AS (
             DELETE FROM own_company c WHERE c.tenant = $1
                 AND NOT EXISTS (SELECT 1 FROM given g WHERE g.name = c.name)
         ), kept AS (
             INSERT INTO own_company (tenant, name, other_names, vat_ids, accounts, addresses, set_by)
             SELECT $1, name, other_names, vat_ids, accounts, addresses, $3 FROM given
             ON CONFLICT (tenant, name) DO UPDATE SET
                 other_names = excluded.other_names, vat_ids = excluded.vat_ids,
                 accounts = excluded.accounts, addresses = excluded.addresses,
                 set_by = excluded.set_by, set_at = docmill_now()
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $3, 'companies', 'tenant:' || $1, $4,
             jsonb_build_object('companies', (SELECT rows FROM before))",
        tenant.unwrap_or_default(),
        sqlx::types::Json(companies) as _,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("setting own companies")?;
    Ok(())
}

/// Adds a company of a tenant, or replaces the one of its name. `false`: the tenant has as many as it
/// may.
///
/// # Errors
/// No answer from Postgres, or values that it refuses.
pub async fn put_company(db: &Db, company: &OwnCompany, by: &AuditNote) -> Result<bool> {
    let most = i64::try_from(OwnCompany::MAX_PER_TENANT).unwrap_or(i64::MAX);
    let done = sqlx::query!(
        "WITH before AS MATERIALIZED (
             SELECT to_jsonb(c) AS row FROM own_company c WHERE tenant = $1 AND name = $2
         ), kept AS (
             INSERT INTO own_company (tenant, name, other_names, vat_ids, accounts, addresses, set_by)
             SELECT $1, $2, $3, $4, $5, $6, $7
             WHERE (SELECT count(*) FROM own_company WHERE tenant = $1 AND name <> $2) < $9
             ON CONFLICT (tenant, name) DO UPDATE SET
                 other_names = excluded.other_names, vat_ids = excluded.vat_ids,
                 accounts = excluded.accounts, addresses = excluded.addresses,
                 set_by = excluded.set_by, set_at = docmill_now()
             RETURNING tenant
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $7, 'companies', 'tenant:' || tenant, $8, COALESCE((SELECT row FROM before), '{}')
         FROM kept",
        company.tenant.as_deref().unwrap_or_default(),
        company.name,
        &company.other_names,
        &company.vat_ids,
        &company.accounts,
        &company.addresses,
        by.operator,
        by.why,
        most,
    )
    .execute(db.pool())
    .await
    .context("setting an own company")?;
    Ok(done.rows_affected() > 0)
}

/// Removes a company of a tenant; `false`: it has none of this name.
///
/// # Errors
/// No answer from Postgres.
pub async fn remove_company(
    db: &Db,
    tenant: Option<&str>,
    name: &str,
    by: &AuditNote,
) -> Result<bool> {
    let done = sqlx::query!(
        "WITH gone AS (
             DELETE FROM own_company c WHERE tenant = $1 AND name = $2 RETURNING to_jsonb(c) AS row
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $3, 'companies', 'tenant:' || $1, $4, row FROM gone",
        tenant.unwrap_or_default(),
        name,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("removing an own company")?;
    Ok(done.rows_affected() > 0)
}
