//! Spending is booked by attempt, document, tenant and day, and an exhausted budget parks the work.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::{Duration, Instant};

use docmill_core::config::{CostConfig, ModelPrice};
use docmill_ledger::db::reports::costs::{self, CostGrouping};
use docmill_testkit::models::{Answer, Script};
use time::OffsetDateTime;

use crate::maintenance::maintenance_of;
use crate::support::documents;
use crate::support::world::{SOON, World, until};

pub(crate) fn prices(daily_budget: &str) -> CostConfig {
    let price = ModelPrice {
        provider: "openai".to_owned(),
        model: "scripted".to_owned(),
        from: "2026-01-01".to_owned(),
        input: 1.into(),
        output: 10.into(),
        ..ModelPrice::default()
    };
    CostConfig {
        daily_budget: daily_budget.parse().unwrap(),
        price: vec![price],
        ..CostConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_written_down_with_its_price_also_of_an_attempt_that_failed() {
    // Prose, then a failure of the server: the first attempt has paid for one call.
    let script = Script::of([Answer::Text { content: "prose".to_owned() }, Answer::status(400)]);
    let world = World::with_model(script).await;
    let id = world.insert("invoice.pdf", documents::invoice("C-1")).await;
    world.execute("UPDATE docmill.ingestion SET tenant = 'acme'").await;
    world.send(id.to_string()).await;
    let worker = world.worker_with(|config| config.cost = prices("0")).await;
    world.pass_until(|| async { world.column(id, "status").await.unwrap() == "completed" }).await;
    worker.stop().await;
    let rows = "SELECT string_agg(claims || ':' || calls, ' ' ORDER BY claims) \
                FROM docmill.spending WHERE tenant = 'acme' AND provider = 'openai'";
    assert_eq!(world.scalar(rows).await, "1:1 2:1", "the kept reply is not paid for again");
    let exact = "SELECT bool_and(cost_nanos = input_tokens * 1000 + output_tokens * 10000 \
                 AND cost_nanos > 0 AND unpriced_calls = 0)::text FROM docmill.spending";
    assert_eq!(world.scalar(exact).await, "true");
    let of_row = "SELECT (sum(s.output_tokens) = max(i.extraction_output_tokens))::text \
                  FROM docmill.spending s JOIN docmill.ingestion i ON i.id = s.ingestion_id";
    assert_eq!(world.scalar(of_row).await, "true", "both calls are behind the data");
    let since = OffsetDateTime::now_utc() - Duration::from_secs(86_400);
    for (by, name) in [(CostGrouping::Tenant, "acme"), (CostGrouping::Model, "openai scripted")] {
        let sums = costs::sum_costs(&world.database.db(), by, since, 10).await.unwrap();
        let [sum] = sums.as_slice() else { panic!("{sums:?}") };
        assert_eq!((sum.name.as_str(), sum.attempts, sum.calls), (name, 2, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_price_is_counted_as_such() {
    let world = World::with_model(Script::default()).await;
    let id = world.submit("invoice.pdf", documents::invoice("C-2")).await;
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    let row = "SELECT calls || ' ' || unpriced_calls || ' ' || cost_nanos FROM docmill.spending";
    assert_eq!(world.scalar(row).await, "1 1 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_parks_the_work_until_the_next_day_and_counts_no_attempt() {
    let world = World::with_model(Script::default()).await;
    // One call costs more than this.
    let worker = world.worker_with(|config| config.cost = prices("0.000001")).await;
    let first = world.submit("invoice.pdf", documents::invoice("C-3")).await;
    world.until(first, "status", "completed").await;
    let second = world.submit("invoice.pdf", documents::invoice("C-4")).await;
    until(SOON, || async { world.attempts(second).await == ["over_budget"] }).await;
    assert_eq!(world.column(second, "attempt_count").await.unwrap(), "0");
    assert_eq!(world.column(second, "deferred_since").await, None, "no streak of failures");
    let due = "next_attempt_at >= date_trunc('day', docmill.docmill_now() AT TIME ZONE 'UTC') \
               AT TIME ZONE 'UTC' + interval '1 day'";
    assert_eq!(world.column(second, due).await.unwrap(), "true");
    let detail = world.column(second, "detail").await.unwrap();
    assert!(detail.contains("cost.daily_budget"), "{detail}");
    let calls = || world.llm.as_ref().unwrap().calls().len();
    assert_eq!(calls(), 1, "nothing was asked for beyond the budget");
    // A wait that long has no message: it is sent again by the pass after it is due.
    let is_done = || async { world.column(second, "status").await.unwrap() == "completed" };
    for _half_day in 0..4 {
        world.pass(Duration::from_secs(43_200 + 120)).await;
        maintenance_of(&world).run_pass(false).await;
        let patience = Instant::now() + Duration::from_secs(10);
        while !is_done().await && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    until(SOON, is_done).await;
    worker.stop().await;
    assert_eq!(world.column(second, "attempt_count").await.unwrap(), "1");
    assert_eq!(calls(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_has_cost_its_budget_ends_and_no_further_call_is_paid() {
    // Prose is asked for once more, in form; that call is one too many.
    let world = World::with_model(Script::of([Answer::Text { content: "prose".to_owned() }])).await;
    let worker = world
        .worker_with(|config| {
            let document_budget = "0.000001".parse().unwrap();
            config.cost = CostConfig { document_budget, ..prices("0") };
        })
        .await;
    let id = world.submit("invoice.pdf", documents::invoice("C-5")).await;
    world.until(id, "status", "failed").await;
    worker.stop().await;
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1);
    assert_eq!(world.column(id, "reason").await.unwrap(), "cut");
    assert_eq!(world.column(id, "needs_human_review").await.unwrap(), "true");
    let detail = world.column(id, "detail").await.unwrap();
    assert!(detail.contains("cost.document_budget"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_has_taken_its_tokens_ends_though_no_model_has_a_price() {
    let world = World::with_model(Script::of([Answer::Text { content: "prose".to_owned() }])).await;
    let worker = world
        .worker_with(|config| {
            config.cost = CostConfig { document_tokens: 10, ..CostConfig::default() };
        })
        .await;
    let id = world.submit("invoice.pdf", documents::invoice("C-10")).await;
    world.until(id, "status", "failed").await;
    worker.stop().await;
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 1, "the one that went over it");
    assert_eq!(world.column(id, "reason").await.unwrap(), "cut");
    let detail = world.column(id, "detail").await.unwrap();
    assert!(detail.contains("cost.document_tokens"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_cannot_spend_the_day_of_the_others() {
    let world = World::with_model(Script::default()).await;
    let ids = [
        world.insert("a.pdf", documents::invoice("C-6")).await,
        world.insert("b.pdf", documents::invoice("C-7")).await,
        world.insert("c.pdf", documents::invoice("C-8")).await,
        world.insert("d.pdf", documents::invoice("C-9")).await,
    ];
    for (id, tenant) in ids.iter().zip(["acme", "acme", "globex", "vip"]) {
        let sql = format!("UPDATE docmill.ingestion SET tenant = '{tenant}' WHERE id = '{id}'");
        world.execute(&sql).await;
    }
    let worker = world
        .worker_with(|config| {
            config.cost = CostConfig {
                tenant_daily_budget: "0.000001".parse().unwrap(),
                tenant_daily_budgets: [("vip".to_owned(), "100".parse().unwrap())].into(),
                ..prices("100")
            };
        })
        .await;
    world.send(ids[0].to_string()).await;
    world.until(ids[0], "status", "completed").await;
    world.send(ids[1].to_string()).await;
    until(SOON, || async { world.attempts(ids[1]).await == ["over_budget"] }).await;
    let detail = world.column(ids[1], "detail").await.unwrap();
    assert!(detail.contains("cost.tenant_daily_budget"), "{detail}");
    for id in &ids[2..] {
        world.send(id.to_string()).await;
        world.until(*id, "status", "completed").await;
    }
    worker.stop().await;
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), 3);
}
