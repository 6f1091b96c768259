//! What was spent, and what a day's spending is so far.

use std::time::Duration;

use super::saturating_int;
use crate::db::{Db, SqlErrorContext};
use crate::ledger::{ProviderSpending, SpentToday, stored};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// See [`crate::ledger::AttemptLedger::add_spending`].
pub(super) async fn add_spending(
    db: &Db,
    id: IngestionId,
    claims: i64,
    spent: &ProviderSpending,
) -> Result<()> {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let unpriced = i64::from(spent.calls.max(u32::from(spent.pages > 0)));
    sqlx::query!(
        "WITH clock AS MATERIALIZED (
             SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast)
         INSERT INTO spending AS s (ingestion_id, claims, day, provider, model, document_id,
             tenant, calls, pages, input_tokens, cache_read_tokens, cache_write_tokens,
             output_tokens, cost_nanos, unpriced_calls)
         SELECT i.id, $2, (c.now AT TIME ZONE 'UTC')::date, $3, $4, i.document_id, i.tenant,
             $5::int, $6::int, $7, $8, $9, $10, $11, $12
         FROM ingestion i CROSS JOIN clock c WHERE i.id = $1
         ON CONFLICT (ingestion_id, claims, day, provider, model) DO UPDATE SET
             calls = s.calls + excluded.calls, pages = s.pages + excluded.pages,
             input_tokens = s.input_tokens + excluded.input_tokens,
             cache_read_tokens = s.cache_read_tokens + excluded.cache_read_tokens,
             cache_write_tokens = s.cache_write_tokens + excluded.cache_write_tokens,
             output_tokens = s.output_tokens + excluded.output_tokens,
             cost_nanos = s.cost_nanos + excluded.cost_nanos,
             unpriced_calls = s.unpriced_calls + excluded.unpriced_calls",
        id.0,
        claims,
        &stored::strip_nul(&spent.provider),
        &stored::strip_nul(&spent.model),
        saturating_int(spent.calls),
        saturating_int(spent.pages),
        count(spent.usage.input),
        count(spent.usage.cache_read),
        count(spent.usage.cache_write),
        count(spent.usage.output),
        count(spent.cost_nanos.unwrap_or(0)),
        if spent.cost_nanos.is_none() { unpriced } else { 0 },
    )
    .execute(db.pool())
    .await
    .context("writing down what was spent")?;
    Ok(())
}

/// See [`crate::ledger::AttemptLedger::spent_today`].
pub(super) async fn spent_today(db: &Db, tenant: Option<&str>) -> Result<SpentToday> {
    let tenant = tenant.map(stored::strip_nul);
    // The sums are those of an index each: which one is read is told by the tenant.
    let row = sqlx::query!(
        r#"SELECT
            CASE WHEN $1::text IS NULL
            THEN COALESCE((SELECT sum(cost_nanos) FROM spending_day WHERE day = c.today), 0)
            ELSE COALESCE((SELECT sum(cost_nanos) FROM spending
                           WHERE tenant = $1 AND day = c.today), 0)
            END::bigint AS "cost_nanos!",
            extract(epoch FROM (c.today + 1)::timestamp - c.now)::float8 AS "until_next_day!"
        FROM (SELECT n.now, n.now::date AS today
              FROM (SELECT docmill_now() AT TIME ZONE 'UTC' AS now) n) c"#,
        tenant.as_deref(),
    )
    .fetch_one(db.pool())
    .await
    .context("asking what was spent today")?;
    Ok(SpentToday {
        cost_nanos: u64::try_from(row.cost_nanos).unwrap_or(0),
        until_next_day: Duration::try_from_secs_f64(row.until_next_day).unwrap_or_default(),
    })
}

/// See [`crate::ledger::AttemptLedger::spent_on`].
pub(super) async fn spent_on(db: &Db, id: IngestionId) -> Result<u64> {
    let nanos = sqlx::query_scalar!(
        r#"SELECT COALESCE(sum(cost_nanos), 0)::bigint AS "nanos!"
        FROM spending WHERE ingestion_id = $1"#,
        id.0,
    )
    .fetch_one(db.pool())
    .await
    .context("asking what an ingestion has cost")?;
    Ok(u64::try_from(nanos).unwrap_or(0))
}
