//! The cost of a document: priced and booked as it is spent, and limited by the budgets of the day,
//! of the tenant's day and of the document.
//!
//! A budget is hard in this sense: no call begins once the booked spending of all workers has
//! reached it. Calls already running still end and are booked, and a worker sees the spending of
//! others within `FRESH`. An exhausted day defers work. An exhausted document ends: another day
//! would not make it cheaper.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rust_decimal::prelude::ToPrimitive as _;
use rust_decimal::{Decimal, RoundingStrategy};
use time::{Date, OffsetDateTime};

use crate::page_sink::PageSink;
use crate::step_error::StepError;
use docmill_core::config::CostConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::model::{
    ClaimedIngestion, EncodedImage, IngestionId, ModelUsage, OutcomeReason, PageText, PageUsage,
    PriceClass,
};
use docmill_core::work_clock::wait_off_clock;
use docmill_extract::RecordedReplies;
use docmill_ledger::{AttemptLedger, DocumentSpending, ProviderSpending};
use docmill_llm::{Llm, Prompt};

/// How old what is known of the day's spending may be.
const FRESH: Duration = Duration::from_secs(2);
/// Deferred jobs return spread over this part of the next day.
const SPREAD: Duration = Duration::from_secs(60);
/// Billionths in one unit of the currency.
const NANOS: u64 = 1_000_000_000;

/// Prices, and what is known of the day.
#[derive(Debug)]
pub struct CostTracker {
    config: CostConfig,
    /// Of the day, by tenant; under no name of everybody together.
    known: Mutex<HashMap<Option<String>, KnownSpending>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownSpending {
    nanos: u64,
    until_next_day: Duration,
    at: Instant,
}

impl CostTracker {
    /// A tracker with no spending loaded yet.
    pub fn new(config: CostConfig) -> Self {
        metrics::daily_budget(nanos_to_units(decimal_to_nanos(config.daily_budget)));
        Self { config, known: Mutex::default() }
    }

    fn lock_known(&self) -> MutexGuard<'_, HashMap<Option<String>, KnownSpending>> {
        self.known.lock()
    }

    /// Checks that today's budget and the tenant's are not exhausted.
    ///
    /// # Errors
    /// [`Fault::OverBudget`] with the time until the next day's budget; ledger errors.
    pub(crate) async fn ensure_budget(
        &self,
        ledger: &dyn AttemptLedger,
        tenant: Option<&str>,
    ) -> Result<()> {
        let budget = self.config.daily_budget;
        if !budget.is_zero() {
            let known = self.spent_today(ledger, None).await?;
            let is_spent = known.nanos >= decimal_to_nanos(budget);
            metrics::spent_today(nanos_to_units(known.nanos), is_spent);
            if is_spent {
                return Err(self.over_budget_error("cost.daily_budget", budget, known));
            }
        }
        let (key, budget) =
            tenant.map(|tenant| self.config.tenant_budget(tenant)).unwrap_or_default();
        if budget.is_zero() {
            return Ok(());
        }
        let known = self.spent_today(ledger, tenant).await?;
        if known.nanos < decimal_to_nanos(budget) {
            return Ok(());
        }
        Err(self.over_budget_error(key, budget, known))
    }

    /// Clears the gauge of an exhausted day once that is over: an idle worker loads no spending,
    /// and would report it for days.
    pub fn end_spent_day(&self) {
        let mut known = self.lock_known();
        if known
            .get(&None)
            .is_some_and(|known: &KnownSpending| known.at.elapsed() >= known.until_next_day)
        {
            known.remove(&None);
            metrics::spent_today(0.0, false);
        }
    }

    /// Whether the document's budget has room for the next call's input. Without prices nothing is
    /// loaded before a model's first call in a first claim (`begins`): it would cost a query per
    /// job, for an answer that is zero or already checked when pages were read.
    ///
    /// # Errors
    /// Ledger errors.
    async fn has_room(
        &self,
        ledger: &dyn AttemptLedger,
        id: IngestionId,
        ahead: DocumentSpending,
        begins: bool,
    ) -> Result<bool> {
        let budget = or_unlimited(decimal_to_nanos(self.config.document_budget));
        let tokens = or_unlimited(self.config.document_tokens);
        if budget == u64::MAX && tokens == u64::MAX {
            return Ok(true);
        }
        let spent = match begins && self.config.price.is_empty() {
            true => ahead,
            false => wait_off_clock(ledger.spent_on(id)).await?.plus(ahead),
        };
        Ok(spent.cost_nanos < budget && spent.tokens < tokens)
    }

    /// The document's cost limits, as keys and values.
    fn document_bounds(&self) -> String {
        let CostConfig { document_budget, document_tokens, currency, .. } = &self.config;
        format!(
            "cost.document_budget of {document_budget} {currency} or cost.document_tokens of \
             {document_tokens}"
        )
    }

    async fn spent_today(
        &self,
        ledger: &dyn AttemptLedger,
        tenant: Option<&str>,
    ) -> Result<KnownSpending> {
        let whose = tenant.map(ToOwned::to_owned);
        let known = self.lock_known().get(&whose).copied();
        if let Some(known) = known.filter(|known| known.at.elapsed() < FRESH) {
            return Ok(known);
        }
        let today = wait_off_clock(ledger.spent_today(tenant)).await?;
        let (nanos, until_next_day) = (today.cost_nanos, today.until_next_day);
        let read = KnownSpending { nanos, until_next_day, at: Instant::now() };
        let mut known = self.lock_known();
        // Bounds the map over many tenants; old entries are reloaded anyway.
        known.retain(|_, known| known.at.elapsed() < FRESH);
        known.insert(whose, read);
        Ok(read)
    }

    fn over_budget_error(&self, key: &str, budget: Decimal, known: KnownSpending) -> Error {
        let wait = known.until_next_day + SPREAD.mul_f64(fastrand::f64());
        let currency = &self.config.currency;
        Error::new(
            Fault::OverBudget(wait),
            format!(
                "{key} of {budget} {currency} is spent: waits for the next day, in {} min",
                wait.as_secs() / 60
            ),
        )
    }

    /// Adds to what is known of the day, of everybody and of this tenant.
    fn add_known(&self, tenant: Option<&String>, nanos: u64) {
        for (whose, known) in self.lock_known().iter_mut() {
            if whose.is_none() || whose.as_ref() == tenant {
                known.nanos = known.nanos.saturating_add(nanos);
            }
        }
    }

    /// `None`: there is no price.
    fn price(&self, spent: &SpendingEntry<'_>, day: Date) -> Option<u64> {
        let named = self.config.price_on(spent.provider, spent.model, day);
        // Pages cost the same with every processor of a provider, unless one is named.
        let price = named.or_else(|| {
            self.config.price_on(spent.provider, "", day).filter(|_| spent.pages > 0)
        })?;
        let calls = spent.calls.iter();
        let tokens: Decimal = calls.map(|usage| price.price_tokens(usage, &spent.class)).sum();
        let pages = Decimal::from(spent.pages) * price.pages / Decimal::from(1_000);
        Some(decimal_to_nanos(tokens + pages))
    }

    /// Today's price of the tokens of one call of a model; `None`: there is none.
    pub fn price_call(&self, llm: &dyn Llm, usage: ModelUsage) -> Option<Decimal> {
        let today = OffsetDateTime::now_utc().date();
        let price = self.config.price_on(llm.provider(), llm.model(), today)?;
        Some(price.price_tokens(&usage, &llm.price_class()))
    }

    /// Today's price of the tokens of one question in a batch.
    pub fn price_batched(
        &self,
        provider: &str,
        model: &str,
        class: &PriceClass,
        usage: ModelUsage,
    ) -> BatchedPrice {
        let today = OffsetDateTime::now_utc().date();
        let Some(price) = self.config.price_on(provider, model, today) else {
            return BatchedPrice { cost_nanos: None, saved_nanos: 0 };
        };
        let direct = price.price_tokens(&usage, class);
        let batched = decimal_to_nanos(direct * price.batch);
        let saved_nanos = decimal_to_nanos(direct).saturating_sub(batched);
        BatchedPrice { cost_nanos: Some(batched), saved_nanos }
    }
}

/// Zero means no limit.
fn or_unlimited(most: u64) -> u64 {
    if most == 0 { u64::MAX } else { most }
}

/// The price of tokens in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchedPrice {
    /// In billionths of the currency; `None`: there is no price.
    pub cost_nanos: Option<u64>,
    /// The additional price of a direct call.
    pub saved_nanos: u64,
}

/// Spending with one model of one provider.
#[derive(Debug, Clone)]
struct SpendingEntry<'a> {
    provider: &'a str,
    model: &'a str,
    pages: u32,
    /// The tokens of each call: a long prompt is dearer by itself.
    calls: Vec<ModelUsage>,
    class: PriceClass,
}

fn decimal_to_nanos(amount: Decimal) -> u64 {
    // Halves go up, as bills have it.
    let rounded = (amount * Decimal::from(NANOS))
        .round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero);
    rounded.to_u64().unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "for gauges; what is stored is exact")]
fn nanos_to_units(nanos: u64) -> f64 {
    nanos as f64 / NANOS as f64
}

/// Where what one claim spends is priced and written down.
#[derive(Clone, Copy)]
pub(super) struct SpendingBook<'a> {
    /// Prices, and what is known of the day.
    pub(super) costs: &'a CostTracker,
    /// The ledger that spending is written to.
    pub(super) ledger: &'a dyn AttemptLedger,
    /// The ingestion and the claim that spends.
    pub(super) claimed: &'a ClaimedIngestion,
}

impl SpendingBook<'_> {
    /// Whether a call with this input cost may be made; `false`: the document's budget is
    /// exhausted. Fails once the day's is, see [`CostTracker::ensure_budget`].
    async fn may_call(&self, ahead: DocumentSpending, begins: bool) -> Result<bool> {
        self.costs.ensure_budget(self.ledger, self.claimed.tenant.as_deref()).await?;
        self.costs.has_room(self.ledger, self.claimed.id, ahead, begins).await
    }

    /// Whether a page may be read elsewhere; see [`SpendingBook::may_call`].
    pub(super) async fn may_read_page(&self) -> Result<bool> {
        self.may_call(DocumentSpending::default(), false).await
    }

    /// Books pages that were read elsewhere.
    ///
    /// # Errors
    /// Ledger errors.
    pub(super) async fn book_pages(&self, read: &PageUsage) -> Result<()> {
        let spent = SpendingEntry {
            provider: read.provider,
            model: &read.model,
            pages: read.pages,
            calls: vec![read.tokens],
            class: read.class.clone(),
        };
        self.book(spent).await
    }

    /// Books spending.
    ///
    /// # Errors
    /// Ledger errors.
    async fn book(&self, spent: SpendingEntry<'_>) -> Result<()> {
        let today = OffsetDateTime::now_utc().date();
        let price = self.costs.price(&spent, today);
        let mut usage = ModelUsage::default();
        spent.calls.iter().for_each(|call| usage += *call);
        let spending = ProviderSpending {
            provider: spent.provider.to_owned(),
            model: spent.model.to_owned(),
            calls: u32::try_from(spent.calls.len()).unwrap_or(u32::MAX),
            pages: spent.pages,
            usage,
            cost_nanos: price,
        };
        metrics::count_spending(spent.provider, spent.model, price.unwrap_or(0));
        self.costs.add_known(self.claimed.tenant.as_ref(), price.unwrap_or(0));
        let (id, claims) = (self.claimed.id, self.claimed.claims);
        wait_off_clock(self.ledger.add_spending(id, claims, &spending)).await
    }
}

/// Passes pages on to another sink, stops provider calls once the budget is spent, and books the
/// cost of each call.
pub(super) struct BilledPageSink<'a> {
    spending: SpendingBook<'a>,
    inner: &'a mut dyn PageSink,
}

impl<'a> BilledPageSink<'a> {
    pub(super) fn new(spending: SpendingBook<'a>, inner: &'a mut dyn PageSink) -> Self {
        Self { spending, inner }
    }
}

#[async_trait]
impl PageSink for BilledPageSink<'_> {
    async fn store_page(
        &mut self,
        page: &PageText,
        repaired: Option<EncodedImage>,
    ) -> std::result::Result<(), StepError> {
        self.inner.store_page(page, repaired).await
    }

    async fn before_call(&mut self) -> std::result::Result<(), StepError> {
        if !self.spending.may_read_page().await? {
            let bounds = self.spending.costs.document_bounds();
            let detail = format!("reading its pages costs more than {bounds}");
            return Err(StepError::rejected(OutcomeReason::TooLarge, detail));
        }
        self.inner.before_call().await
    }

    async fn after_call(
        &mut self,
        usage: &PageUsage,
        is_whole: bool,
    ) -> std::result::Result<(), StepError> {
        // Paid for, whether or not the pages can be stored; stored, whether or not that is written
        // down.
        let booked = self.spending.book_pages(usage).await;
        self.inner.after_call(usage, is_whole).await?;
        Ok(booked?)
    }
}

/// The calls of one extraction: each is written down once, whether or not its reply can be kept.
pub(super) struct LlmCallBilling<'a> {
    spending: SpendingBook<'a>,
    llm: &'a dyn Llm,
    booked: usize,
}

impl<'a> LlmCallBilling<'a> {
    pub(super) fn new(spending: SpendingBook<'a>, llm: &'a dyn Llm) -> Self {
        Self { spending, llm, booked: 0 }
    }

    /// These were paid for by an earlier attempt.
    pub(super) fn skip_paid(&mut self, kept: Option<&RecordedReplies>) {
        self.booked = kept.map_or(0, |kept| kept.calls.len());
    }

    /// Whether a call may be made; see [`SpendingBook::may_call`]. Its images are counted before: a
    /// text fits one context window, but a call may carry dozens of images.
    pub(super) async fn may_call(&self, prompt: &Prompt) -> Result<bool> {
        let usage = ModelUsage { input: prompt.picture_tokens(), ..ModelUsage::default() };
        let shown = self.entry_of(vec![usage]);
        let today = OffsetDateTime::now_utc().date();
        let cost_nanos = self.spending.costs.price(&shown, today).unwrap_or(0);
        let ahead = DocumentSpending { cost_nanos, tokens: usage.input };
        let begins = self.booked == 0 && self.spending.claimed.claims == 1;
        self.spending.may_call(ahead, begins).await
    }

    /// The most that this prompt may cost in a batch, in billionths of the currency; known here as
    /// spent from now on.
    pub(super) fn reserve_batched(&self, prompt: &Prompt) -> u64 {
        let usage = ModelUsage {
            input: prompt.estimate_tokens(),
            output: u64::from(prompt.max_output_tokens),
            ..ModelUsage::default()
        };
        let SpendingBook { costs, claimed, .. } = self.spending;
        let (provider, model) = (self.llm.provider(), self.llm.model());
        let class = PriceClass { service_tier: String::new(), ..self.llm.price_class() };
        let price = costs.price_batched(provider, model, &class, usage);
        let nanos = price.cost_nanos.unwrap_or(0);
        costs.add_known(claimed.tenant.as_ref(), nanos);
        nanos
    }

    /// Writes down what is new among these.
    pub(super) async fn book(&mut self, replies: &RecordedReplies) -> Result<()> {
        // Replies stored in another form were dropped: all are new.
        let begin = if replies.calls.len() < self.booked { 0 } else { self.booked };
        let new = replies.calls.get(begin..).unwrap_or_default();
        // Batch answers were booked when they were fetched.
        let new: Vec<_> = new.iter().filter(|call| !call.batched).collect();
        if new.is_empty() {
            self.booked = replies.calls.len();
            return Ok(());
        }
        self.booked = replies.calls.len();
        let spent = self.entry_of(new.iter().map(|call| call.usage).collect());
        self.spending.book(spent).await
    }

    /// Records a call whose reply is not stored; without a token count its cost is zero.
    pub(super) async fn book_unkept(&self, usage: ModelUsage) -> Result<()> {
        if usage == ModelUsage::default() {
            return Ok(());
        }
        self.spending.book(self.entry_of(vec![usage])).await
    }

    fn entry_of(&self, calls: Vec<ModelUsage>) -> SpendingEntry<'_> {
        let (provider, model) = (self.llm.provider(), self.llm.model());
        SpendingEntry { provider, model, pages: 0, calls, class: self.llm.price_class() }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;
    use docmill_ledger::memory::MemoryLedger;

    #[tokio::test]
    async fn a_spent_day_names_the_key_that_bounds_the_tenant() {
        let costs = CostTracker::new(CostConfig {
            tenant_daily_budget: 5.into(),
            tenant_daily_budgets: [("acme".to_owned(), 20.into())].into(),
            ..CostConfig::default()
        });
        let ledger = MemoryLedger::new(OffsetDateTime::now_utc());
        for (tenant, key) in [
            ("acme", "cost.tenant_daily_budgets of 20 USD is spent"),
            ("globex", "cost.tenant_daily_budget of 5 USD is spent"),
        ] {
            let (nanos, until_next_day) = (20 * NANOS, Duration::ZERO);
            let known = KnownSpending { nanos, until_next_day, at: Instant::now() };
            costs.lock_known().insert(Some(tenant.to_owned()), known);
            let spent = costs.ensure_budget(&ledger, Some(tenant)).await.unwrap_err();
            assert!(spent.to_string().contains(key), "{spent}");
        }
    }

    #[test]
    fn the_gauge_of_a_spent_day_resets_without_further_calls() {
        let page = metrics::install_metrics().unwrap();
        let gauge = |value: u8| {
            let line = format!("docmill_daily_budget_spent {value}");
            page.render().lines().any(|found| found == line)
        };
        let costs = CostTracker::new(CostConfig::default());
        for (until_next_day, expected) in [(Duration::from_secs(3600), 1), (Duration::ZERO, 0)] {
            metrics::spent_today(1.0, true);
            let known = KnownSpending { nanos: NANOS, until_next_day, at: Instant::now() };
            costs.lock_known().insert(None, known);
            costs.end_spent_day();
            assert!(gauge(expected), "{until_next_day:?}");
        }
    }

    #[test]
    fn a_price_is_exact_to_the_billionth_and_each_class_has_its_own() {
        let config: CostConfig = toml::from_str(
            "[[price]]\nprovider = 'p'\nmodel = 'm'\nfrom = '2026-01-01'\ninput = 0.15\n\
             cache_read = 0.015\ncache_write = 0.1875\noutput = 0.6\npages = 1.5\n",
        )
        .unwrap();
        let costs = CostTracker::new(config);
        let usage = ModelUsage { input: 1, cache_read: 2, cache_write: 3, output: 4 };
        let calls = vec![usage];
        let class = PriceClass::default();
        let spent = SpendingEntry { provider: "p", model: "m", pages: 5, calls, class };
        let day = date!(2026 - 02 - 01);
        // 150 + 2 · 15 + 3 · 187.5 + 4 · 600 billionths, and five pages of 0.0015.
        assert_eq!(costs.price(&spent, day), Some(3_143 + 7_500_000));
        assert_eq!(costs.price(&SpendingEntry { model: "other", ..spent }, day), None);
    }
}
