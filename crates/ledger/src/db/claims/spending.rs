//! Spending: adding to it, and the sum of a day.

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::coalesce::{BatchedStatement, RowAnswer};
use super::saturating_int;
use crate::db::{Db, SqlErrorContext, saturating_bigint};
use crate::{DocumentSpending, ProviderSpending, SpentToday, stored};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// Writes down what was spent; see [`crate::AttemptLedger::add_spending`].
pub(super) struct SpendingStatement;

/// Spending in the form of the statement's arguments.
#[derive(Debug, Serialize)]
pub(super) struct SpendingRow {
    id: Uuid,
    claims: i64,
    provider: String,
    model: String,
    calls: i32,
    pages: i32,
    input_tokens: i64,
    cache_read_tokens: i64,
    cache_write_tokens: i64,
    output_tokens: i64,
    cost_nanos: i64,
    unpriced_calls: i64,
}

impl SpendingRow {
    /// Spending under the claim with this number.
    pub(super) fn new(id: IngestionId, claims: i64, spent: &ProviderSpending) -> Self {
        let unpriced = i64::from(spent.calls.max(u32::from(spent.pages > 0)));
        Self {
            id: id.0,
            claims,
            provider: stored::strip_nul(&spent.provider).into_owned(),
            model: stored::strip_nul(&spent.model).into_owned(),
            calls: saturating_int(spent.calls),
            pages: saturating_int(spent.pages),
            input_tokens: saturating_bigint(spent.usage.input),
            cache_read_tokens: saturating_bigint(spent.usage.cache_read),
            cache_write_tokens: saturating_bigint(spent.usage.cache_write),
            output_tokens: saturating_bigint(spent.usage.output),
            cost_nanos: saturating_bigint(spent.cost_nanos.unwrap_or(0)),
            unpriced_calls: if spent.cost_nanos.is_none() { unpriced } else { 0 },
        }
    }
}

impl BatchedStatement for SpendingStatement {
    type Row = SpendingRow;
    type Answer = ();

    /// In the order of the parts of the day's sum, so that two never wait for each other.
    async fn run_together(db: &Db, rows: &[SpendingRow]) -> Result<Vec<RowAnswer<()>>> {
        sqlx::query!(
            r#"
WITH clock AS MATERIALIZED (
    SELECT docmill_now() AS now, set_config('synchronous_commit', 'off', true) AS fast
)
INSERT INTO spending AS s (ingestion_id, claims, day, provider, model, document_id, tenant, calls,
    pages, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_nanos,
    unpriced_calls)
SELECT i.id, a.claims, (c.now AT TIME ZONE 'UTC')::date, a.provider, a.model, i.document_id,
    i.tenant, sum(a.calls), sum(a.pages), sum(a.input_tokens), sum(a.cache_read_tokens),
    sum(a.cache_write_tokens), sum(a.output_tokens), sum(a.cost_nanos), sum(a.unpriced_calls)
FROM jsonb_to_recordset($1::jsonb) AS a (
    id uuid, claims bigint, provider text, model text, calls int, pages int,
    input_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint,
    output_tokens bigint, cost_nanos bigint, unpriced_calls bigint)
JOIN ingestion i ON i.id = a.id CROSS JOIN clock c
-- All there are: read as one row by the planner (see `claims.rs`).
WHERE a.id BETWEEN '00000000-0000-0000-0000-000000000000'
    AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'
GROUP BY i.id, i.document_id, i.tenant, a.claims, c.now, a.provider, a.model
ORDER BY hashtext(i.id::text) & 15, i.id
ON CONFLICT (ingestion_id, claims, day, provider, model) DO UPDATE SET
    calls = s.calls + excluded.calls, pages = s.pages + excluded.pages,
    input_tokens = s.input_tokens + excluded.input_tokens,
    cache_read_tokens = s.cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = s.cache_write_tokens + excluded.cache_write_tokens,
    output_tokens = s.output_tokens + excluded.output_tokens,
    cost_nanos = s.cost_nanos + excluded.cost_nanos,
    unpriced_calls = s.unpriced_calls + excluded.unpriced_calls
"#,
            sqlx::types::Json(rows) as _,
        )
        .execute(db.pool())
        .await
        .context("recording spending")?;
        Ok(rows.iter().map(|_| RowAnswer::Given(())).collect())
    }

    async fn run_alone(db: &Db, spent: &SpendingRow) -> Result<()> {
        Self::run_together(db, std::slice::from_ref(spent)).await.map(drop)
    }
}

/// See [`crate::AttemptLedger::spent_today`].
pub(super) async fn spent_today(db: &Db, tenant: Option<&str>) -> Result<SpentToday> {
    let tenant = tenant.map(stored::strip_nul);
    // Each sum is served by an index; the tenant decides which one is read.
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
    .context("reading the spending of today")?;
    Ok(SpentToday {
        cost_nanos: u64::try_from(row.cost_nanos).unwrap_or(0),
        until_next_day: Duration::try_from_secs_f64(row.until_next_day).unwrap_or_default(),
    })
}

/// See [`crate::AttemptLedger::spent_on`].
pub(super) async fn spent_on(db: &Db, id: IngestionId) -> Result<DocumentSpending> {
    let sums = sqlx::query!(
        r#"SELECT COALESCE(sum(cost_nanos), 0)::bigint AS "nanos!",
            COALESCE(sum(input_tokens + cache_read_tokens + cache_write_tokens + output_tokens), 0)::bigint
                AS "tokens!"
        FROM spending WHERE ingestion_id = $1 AND claims > 0"#,
        id.0,
    )
    .fetch_one(db.pool())
    .await
    .context("reading the cost of an ingestion")?;
    Ok(DocumentSpending {
        cost_nanos: u64::try_from(sums.nanos).unwrap_or(0),
        tokens: u64::try_from(sums.tokens).unwrap_or(0),
    })
}
