//! Spending, for people and programs: by day, tenant, model or document.

use serde::Serialize;
use time::OffsetDateTime;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// By what the sums are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostGrouping {
    /// One sum for each day, in UTC.
    Day,
    /// One sum for each tenant; the name is empty for documents without a tenant.
    Tenant,
    /// One sum for each provider and model.
    Model,
    /// One sum for each document.
    Document,
}

impl CostGrouping {
    fn code(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Tenant => "tenant",
            Self::Model => "model",
            Self::Document => "document",
        }
    }
}

/// The spending of one day, tenant, model or document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CostSum {
    /// The day, tenant, model or document.
    pub name: String,
    /// Attempts with a cost.
    pub attempts: i64,
    /// Answered calls to models.
    pub calls: i64,
    /// Pages that were paid for.
    pub pages: i64,
    /// Prompt tokens that did not come from a cache and were not written to one.
    pub input_tokens: i64,
    /// Prompt tokens out of a cache.
    pub cache_read_tokens: i64,
    /// Prompt tokens written to a cache.
    pub cache_write_tokens: i64,
    /// Tokens that models generated.
    pub output_tokens: i64,
    /// Billionths of the currency.
    pub cost_nanos: i64,
    /// Calls that had no price.
    pub unpriced_calls: i64,
    /// Those of the calls that were answered in a batch.
    pub batch_calls: i64,
    /// Savings against direct calls, in billionths of the currency.
    pub saved_nanos: i64,
    /// Answers of batches that came after a direct call had taken their place: paid for twice.
    pub late_calls: i64,
}

/// The sums since a time, days newest first, others dearest first, at most `limit`.
///
/// # Errors
/// No answer from Postgres.
pub async fn sum_costs(
    db: &Db,
    by: CostGrouping,
    since: OffsetDateTime,
    limit: u32,
) -> Result<Vec<CostSum>> {
    sqlx::query_as!(
        CostSum,
        r#"SELECT name AS "name!", count(DISTINCT (ingestion_id, claims)) FILTER (WHERE claims > 0) AS "attempts!",
            sum(calls)::bigint AS "calls!", sum(pages)::bigint AS "pages!",
            sum(input_tokens)::bigint AS "input_tokens!",
            sum(cache_read_tokens)::bigint AS "cache_read_tokens!",
            sum(cache_write_tokens)::bigint AS "cache_write_tokens!",
            sum(output_tokens)::bigint AS "output_tokens!",
            sum(cost_nanos)::bigint AS "cost_nanos!",
            sum(unpriced_calls)::bigint AS "unpriced_calls!",
            sum(batch_calls)::bigint AS "batch_calls!", sum(saved_nanos)::bigint AS "saved_nanos!",
            sum(late_calls)::bigint AS "late_calls!"
        FROM (SELECT s.*, CASE $1::text
                WHEN 'day' THEN day::text
                WHEN 'tenant' THEN COALESCE(tenant, '')
                WHEN 'model' THEN concat_ws(' ', provider, NULLIF(model, ''))
                ELSE document_id::text END AS name
            FROM spending s WHERE day >= ($2::timestamptz AT TIME ZONE 'UTC')::date) named
        GROUP BY name
        ORDER BY CASE WHEN $1 = 'day' THEN name END DESC, sum(cost_nanos) DESC, name
        LIMIT $3"#,
        by.code(),
        since,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("adding up spending")
}

/// The cost of one model or provider in one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptCost {
    /// Of which attempt: [`AttemptRow::claims`](super::AttemptRow::claims);
    /// [`BESIDE_ATTEMPTS`](crate::BESIDE_ATTEMPTS): of none.
    pub claims: i64,
    /// The provider, e.g. `openai`.
    pub provider: String,
    /// The configured model; of pages the processor or operation.
    pub model: String,
    /// Answered calls.
    pub calls: i64,
    /// Pages read.
    pub pages: i64,
    /// Prompt tokens, cached or not.
    pub input_tokens: i64,
    /// Generated tokens.
    pub output_tokens: i64,
    /// Billionths of the currency.
    pub cost_nanos: i64,
    /// Calls that had no price.
    pub unpriced_calls: i64,
}

/// The cost of an ingestion, the attempts in their order.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_attempt_costs(db: &Db, id: IngestionId) -> Result<Vec<AttemptCost>> {
    sqlx::query_as!(
        AttemptCost,
        r#"SELECT claims, provider, model, sum(calls)::bigint AS "calls!",
            sum(pages)::bigint AS "pages!",
            sum(input_tokens + cache_read_tokens + cache_write_tokens)::bigint AS "input_tokens!",
            sum(output_tokens)::bigint AS "output_tokens!", sum(cost_nanos)::bigint AS "cost_nanos!",
            sum(unpriced_calls)::bigint AS "unpriced_calls!"
        FROM spending WHERE ingestion_id = $1
        GROUP BY claims, provider, model ORDER BY claims, provider, model"#,
        id.0,
    )
    .fetch_all(db.pool())
    .await
    .context("reading the cost of an ingestion")
}
