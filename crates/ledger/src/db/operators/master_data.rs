//! Suppliers and orders of the ERP, replaced as a whole, and the search for those of a document.

use serde::Serialize;

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::{
    MasterHit, MasterHits, MasterMarkSort, MasterOrder, MasterQuery, MasterSupplier,
};

/// A value by which a supplier is found.
#[derive(Debug, Clone, Serialize)]
pub struct SupplierMark {
    /// The supplier's number.
    pub number: String,
    /// The sort's word.
    pub sort: &'static str,
    /// The folded value.
    pub mark: String,
}

/// Suppliers with the values that they are found by.
#[derive(Debug, Clone, Default)]
pub struct SupplierUpload {
    /// The suppliers; their numbers differ.
    pub suppliers: Vec<MasterSupplier>,
    /// Their values.
    pub marks: Vec<SupplierMark>,
}

/// An order with its folded number.
#[derive(Debug, Clone, Serialize)]
pub struct OrderUpload {
    /// The order.
    #[serde(flatten)]
    pub order: MasterOrder,
    /// Its number, folded.
    pub mark: String,
}

/// How many rows a tenant has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MasterCounts {
    /// Suppliers.
    pub suppliers: i64,
    /// Purchase orders.
    pub orders: i64,
}

/// Puts these suppliers in the place of all of the tenant's, at once.
///
/// # Errors
/// No answer from Postgres, or values that it refuses: then the earlier ones stay.
pub async fn replace_suppliers(
    db: &Db,
    tenant: Option<&str>,
    upload: &SupplierUpload,
    by: &AuditNote,
) -> Result<()> {
    let doing = "replacing suppliers";
    let tenant = tenant.unwrap_or_default();
    let mut transaction = db.pool().begin().await.context(doing)?;
    let gone = sqlx::query!("DELETE FROM master_supplier WHERE tenant = $1", tenant)
        .execute(&mut transaction)
        .await
        .context(doing)?;
    sqlx::query!(
        "INSERT INTO master_supplier (tenant, number, name, vat_ids, accounts)
         SELECT $1, number, name, vat_ids, accounts FROM jsonb_to_recordset($2::jsonb) AS s (
             number text, name text, vat_ids text[], accounts text[])",
        tenant,
        sqlx::types::Json(&upload.suppliers) as _,
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    sqlx::query!(
        "INSERT INTO master_supplier_mark (tenant, sort, mark, number)
         SELECT DISTINCT $1, sort, mark, number
         FROM jsonb_to_recordset($2::jsonb) AS m (sort text, mark text, number text)",
        tenant,
        sqlx::types::Json(&upload.marks) as _,
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    sqlx::query!(
        "INSERT INTO operator_action (operator, action, target, why, before)
         VALUES ($2, 'suppliers', 'tenant:' || $1, $3, jsonb_build_object('rows', $4::int8))",
        tenant,
        by.operator,
        by.why,
        i64::try_from(gone.rows_affected()).unwrap_or(i64::MAX),
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    transaction.commit().await.context(doing)
}

/// Puts these orders in the place of all of the tenant's, at once.
///
/// # Errors
/// As [`replace_suppliers`].
pub async fn replace_orders(
    db: &Db,
    tenant: Option<&str>,
    orders: &[OrderUpload],
    by: &AuditNote,
) -> Result<()> {
    let doing = "replacing orders";
    let tenant = tenant.unwrap_or_default();
    let mut transaction = db.pool().begin().await.context(doing)?;
    let gone = sqlx::query!("DELETE FROM master_order WHERE tenant = $1", tenant)
        .execute(&mut transaction)
        .await
        .context(doing)?;
    sqlx::query!(
        "INSERT INTO master_order (tenant, number, mark, supplier, amount, currency)
         SELECT $1, number, mark, supplier, amount::numeric, currency
         FROM jsonb_to_recordset($2::jsonb) AS o (
             number text, mark text, supplier text, amount text, currency text)",
        tenant,
        sqlx::types::Json(orders) as _,
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    sqlx::query!(
        "INSERT INTO operator_action (operator, action, target, why, before)
         VALUES ($2, 'orders', 'tenant:' || $1, $3, jsonb_build_object('rows', $4::int8))",
        tenant,
        by.operator,
        by.why,
        i64::try_from(gone.rows_affected()).unwrap_or(i64::MAX),
    )
    .execute(&mut transaction)
    .await
    .context(doing)?;
    transaction.commit().await.context(doing)
}

/// How many rows a tenant has.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_master_data(db: &Db, tenant: Option<&str>) -> Result<MasterCounts> {
    sqlx::query_as!(
        MasterCounts,
        r#"SELECT (SELECT count(*) FROM master_supplier WHERE tenant = $1) AS "suppliers!",
               (SELECT count(*) FROM master_order WHERE tenant = $1) AS "orders!""#,
        tenant.unwrap_or_default(),
    )
    .fetch_one(db.pool())
    .await
    .context("counting master data")
}

/// Whether a tenant has any.
///
/// # Errors
/// No answer from Postgres.
pub async fn has_master_data(db: &Db, tenant: Option<&str>) -> Result<bool> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM master_supplier WHERE tenant = $1)
               OR EXISTS (SELECT 1 FROM master_order WHERE tenant = $1) AS "known!""#,
        tenant.unwrap_or_default(),
    )
    .fetch_one(db.pool())
    .await
    .context("looking for master data")
}

/// Rows of one value that are read: more are no evidence.
const MAX_HITS: i64 = 20;

/// The suppliers and orders of a tenant that these values belong to.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_master_data(
    db: &Db,
    tenant: Option<&str>,
    wanted: &MasterQuery,
) -> Result<MasterHits> {
    let rows = sqlx::query!(
        r#"
SELECT w.sort AS "sort!", h.number AS "number!", h.name AS "name!", NULL AS supplier,
    NULL AS amount, NULL AS currency
FROM (VALUES ('vat_id', $2), ('account', $3), ('name', $4)) AS w (sort, mark)
CROSS JOIN LATERAL (
    SELECT s.number, s.name FROM master_supplier_mark m
    JOIN master_supplier s ON s.tenant = m.tenant AND s.number = m.number
    WHERE m.tenant = $1 AND m.sort = w.sort AND m.mark = w.mark ORDER BY s.number LIMIT $6
) AS h
UNION ALL
(SELECT 'order', o.number, '', o.supplier, o.amount::text, o.currency FROM master_order o
 WHERE o.tenant = $1 AND o.mark = $5 ORDER BY o.number LIMIT $6)
"#,
        tenant.unwrap_or_default(),
        wanted.vat_id,
        wanted.account,
        wanted.name,
        wanted.order,
        MAX_HITS,
    )
    .fetch_all(db.pool())
    .await
    .context("looking for master data")?;
    let mut hits = MasterHits::default();
    for row in rows {
        match MasterMarkSort::from_code(&row.sort) {
            Some(sort) => {
                hits.suppliers.push(MasterHit { sort, number: row.number, name: row.name });
            }
            None => hits.orders.push(MasterOrder {
                number: row.number,
                supplier: row.supplier,
                amount: row.amount,
                currency: row.currency,
            }),
        }
    }
    Ok(hits)
}
