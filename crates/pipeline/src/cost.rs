//! What a document costs: priced and written down as it is spent, and not begun once the budget of
//! the day, of the tenant's day or of the document is.
//!
//! A budget is hard in this sense: no call begins once what all workers have written down reaches
//! it. Calls under way then, of every worker, still end and are written down; and a worker learns
//! of what others have spent in the day within `FRESH`. A spent day puts work off, a spent document
//! ends: another day would not make it cheaper.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rust_decimal::prelude::ToPrimitive as _;
use rust_decimal::{Decimal, RoundingStrategy};
use time::{Date, OffsetDateTime};

use crate::page_sink::PageSink;
use crate::step_error::StepError;
use docmill_core::config::{CostConfig, ModelPrice};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::model::{
    ClaimedIngestion, EncodedImage, IngestionId, ModelUsage, OutcomeReason, PageText, PageUsage,
};
use docmill_core::work_clock::wait_off_clock;
use docmill_extract::RecordedReplies;
use docmill_ledger::{AttemptLedger, DocumentSpending, ProviderSpending};
use docmill_llm::{Llm, Prompt};

/// How old what is known of the day's spending may be.
const FRESH: Duration = Duration::from_secs(2);
/// Jobs come back spread over so much of the next day.
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
    /// A tracker that knows nothing of the day's spending yet.
    pub fn new(config: CostConfig) -> Self {
        metrics::daily_budget(nanos_to_units(decimal_to_nanos(config.daily_budget)));
        Self { config, known: Mutex::default() }
    }

    fn lock_known(&self) -> MutexGuard<'_, HashMap<Option<String>, KnownSpending>> {
        self.known.lock()
    }

    /// Returns if something may be spent today, on behalf of this tenant.
    ///
    /// # Errors
    /// [`Fault::OverBudget`] with the time until the next day's budget; what the ledger says.
    pub async fn ensure_budget(
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

    /// Where the day that is known is over, says that the next day's budget is not spent: a worker
    /// that has nothing to do asks nobody, and would say so for days.
    pub fn end_spent_day(&self) {
        let mut known = self.lock_known();
        let is_over = |known: &KnownSpending| known.at.elapsed() >= known.until_next_day;
        if known.get(&None).is_some_and(is_over) {
            known.remove(&None);
            metrics::spent_today(0.0, false);
        }
    }

    /// Whether something may still be spent on this document: what the next call takes before it says
    /// anything must fit besides. Where nothing has a price, nobody asks before a model's first call in
    /// a first claim (`begins`) what was spent: a question of the ledger for every job, of which the
    /// answer is nothing, or what reading pages took, and that was asked then.
    ///
    /// # Errors
    /// What the ledger says.
    async fn has_room(
        &self,
        ledger: &dyn AttemptLedger,
        id: IngestionId,
        ahead: DocumentSpending,
        begins: bool,
    ) -> Result<bool> {
        let bound = |most: u64| if most == 0 { u64::MAX } else { most };
        let budget = bound(decimal_to_nanos(self.config.document_budget));
        let tokens = bound(self.config.document_tokens);
        if budget == u64::MAX && tokens == u64::MAX {
            return Ok(true);
        }
        let spent = match begins && self.config.price.is_empty() {
            true => ahead,
            false => wait_off_clock(ledger.spent_on(id)).await?.plus(ahead),
        };
        Ok(spent.cost_nanos < budget && spent.tokens < tokens)
    }

    /// What bounds the cost of a document, as keys and values.
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
        // Tenants come and go; what is old is read again anyway.
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
        let any = || self.config.price_on(spent.provider, "", day).filter(|_| spent.pages > 0);
        let price = named.or_else(any)?;
        let sum = token_price(price, &spent.usage);
        Some(decimal_to_nanos(
            sum + Decimal::from(spent.pages) * price.pages / Decimal::from(1_000),
        ))
    }

    /// What tokens cost in a batch, today.
    pub fn price_batched(&self, provider: &str, model: &str, usage: ModelUsage) -> BatchedPrice {
        let today = OffsetDateTime::now_utc().date();
        let Some(price) = self.config.price_on(provider, model, today) else {
            return BatchedPrice { cost_nanos: None, saved_nanos: 0 };
        };
        let direct = token_price(price, &usage);
        let batched = decimal_to_nanos(direct * price.batch);
        let saved_nanos = decimal_to_nanos(direct).saturating_sub(batched);
        BatchedPrice { cost_nanos: Some(batched), saved_nanos }
    }
}

/// What tokens cost in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchedPrice {
    /// In billionths of the currency; `None`: there is no price.
    pub cost_nanos: Option<u64>,
    /// What they would have cost more directly.
    pub saved_nanos: u64,
}

fn token_price(price: &ModelPrice, usage: &ModelUsage) -> Decimal {
    let tokens = [
        (usage.input, price.input),
        (usage.cache_read, price.cache_read),
        (usage.cache_write, price.cache_write),
        (usage.output, price.output),
    ];
    let million = Decimal::from(1_000_000);
    tokens.iter().map(|(count, price)| Decimal::from(*count) * price / million).sum()
}

/// What was spent with one model of one provider.
#[derive(Debug, Clone, Copy)]
struct SpendingEntry<'a> {
    provider: &'a str,
    model: &'a str,
    calls: u32,
    pages: u32,
    usage: ModelUsage,
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
    /// Whether a call may be paid for that takes so much by what it shows alone; `false`: this document
    /// has cost enough. Fails once nothing may be spent today, see [`CostTracker::ensure_budget`].
    async fn may_call(&self, ahead: DocumentSpending, begins: bool) -> Result<bool> {
        self.costs.ensure_budget(self.ledger, self.claimed.tenant.as_deref()).await?;
        self.costs.has_room(self.ledger, self.claimed.id, ahead, begins).await
    }

    /// Writes down what was spent.
    ///
    /// # Errors
    /// What the ledger says.
    async fn book(&self, spent: SpendingEntry<'_>) -> Result<()> {
        let today = OffsetDateTime::now_utc().date();
        let price = self.costs.price(&spent, today);
        let spending = ProviderSpending {
            provider: spent.provider.to_owned(),
            model: spent.model.to_owned(),
            calls: spent.calls,
            pages: spent.pages,
            usage: spent.usage,
            cost_nanos: price,
        };
        metrics::count_spending(spent.provider, spent.model, price.unwrap_or(0));
        self.costs.add_known(self.claimed.tenant.as_ref(), price.unwrap_or(0));
        let (id, claims) = (self.claimed.id, self.claimed.claims);
        wait_off_clock(self.ledger.add_spending(id, claims, &spending)).await
    }
}

/// Passes pages on to another sink, lets no call to a provider begin once the budget is spent, and
/// writes down the cost of each call.
pub(super) struct BilledPageSink<'a> {
    spending: SpendingBook<'a>,
    inner: &'a mut dyn PageSink,
}

impl<'a> BilledPageSink<'a> {
    pub(super) fn new(spending: SpendingBook<'a>, inner: &'a mut dyn PageSink) -> Self {
        Self { spending, inner }
    }

    async fn book(&mut self, read: &PageUsage) -> Result<()> {
        let (provider, model) = (read.provider, read.model.as_str());
        let spent =
            SpendingEntry { provider, model, calls: 1, pages: read.pages, usage: read.tokens };
        self.spending.book(spent).await
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
        if !self.spending.may_call(DocumentSpending::default(), false).await? {
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
        let booked = self.book(usage).await;
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

    /// Whether a call may be paid for; see [`SpendingBook::may_call`]. Its pictures are counted before
    /// it is made: of a text nobody sends more than a window, of pictures one call may take dozens.
    pub(super) async fn may_call(&self, prompt: &Prompt) -> Result<bool> {
        let usage = ModelUsage { input: prompt.picture_tokens(), ..ModelUsage::default() };
        let (provider, model) = (self.llm.provider(), self.llm.model());
        let shown = SpendingEntry { provider, model, calls: 1, pages: 0, usage };
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
        let price = costs.price_batched(self.llm.provider(), self.llm.model(), usage);
        let nanos = price.cost_nanos.unwrap_or(0);
        costs.add_known(claimed.tenant.as_ref(), nanos);
        nanos
    }

    /// Writes down what is new among these.
    pub(super) async fn book(&mut self, replies: &RecordedReplies) -> Result<()> {
        // What was kept in another form was not taken over: everything is new.
        let begin = if replies.calls.len() < self.booked { 0 } else { self.booked };
        let new = replies.calls.get(begin..).unwrap_or_default();
        // What a batch answered was booked with its answer.
        let new: Vec<_> = new.iter().filter(|call| !call.batched).collect();
        if new.is_empty() {
            self.booked = replies.calls.len();
            return Ok(());
        }
        let mut usage = ModelUsage::default();
        new.iter().for_each(|call| usage += call.usage);
        let calls = u32::try_from(new.len()).unwrap_or(u32::MAX);
        let (provider, model) = (self.llm.provider(), self.llm.model());
        self.booked = replies.calls.len();
        let spent = SpendingEntry { provider, model, calls, pages: 0, usage };
        self.spending.book(spent).await
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
    fn the_gauge_of_a_spent_day_falls_back_with_the_day_though_nobody_asks() {
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
        let spent = SpendingEntry { provider: "p", model: "m", calls: 1, pages: 5, usage };
        let day = date!(2026 - 02 - 01);
        // 150 + 2 · 15 + 3 · 187.5 + 4 · 600 billionths, and five pages of 0.0015.
        assert_eq!(costs.price(&spent, day), Some(3_143 + 7_500_000));
        assert_eq!(costs.price(&SpendingEntry { model: "other", ..spent }, day), None);
    }
}
