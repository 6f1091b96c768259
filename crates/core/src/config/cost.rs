//! `[cost]`: what providers charge, and what may be spent in a day, by a tenant, on a document.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use time::Date;
use time::macros::format_description;

use crate::model::{ModelUsage, PriceClass};

/// The prices of one provider for one model from a day on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Name of the provider, e.g. `openai`.
    pub provider: String,
    /// The configured model; of pages the processor or operation, or empty for all of the provider.
    #[serde(default)]
    pub model: String,
    /// First day, `YYYY-MM-DD`, in UTC. Of several prices the one that began last holds.
    pub from: String,
    /// For a million prompt tokens that were not read from a cache.
    #[serde(default)]
    pub input: Decimal,
    /// For a million prompt tokens out of the vendor's cache.
    #[serde(default)]
    pub cache_read: Decimal,
    /// For a million prompt tokens written to the vendor's cache.
    #[serde(default)]
    pub cache_write: Decimal,
    /// The same where they are kept for an hour; left out: `cache_write`.
    pub cache_write_hour: Option<Decimal>,
    /// For a million generated tokens.
    #[serde(default)]
    pub output: Decimal,
    /// For a thousand pages.
    #[serde(default)]
    pub pages: Decimal,
    /// The share of the token prices that a call in a batch costs.
    #[serde(default = "batch_part")]
    pub batch: Decimal,
    /// The share of the token prices in a class of service by its name; 1 in every other class.
    #[serde(default)]
    pub tiers: BTreeMap<String, Decimal>,
    /// Tokens of a prompt above which the call is dearer; 0: its length makes no difference.
    #[serde(default)]
    pub long_above: u64,
    /// The share of the prompt's prices that such a call costs.
    #[serde(default = "unchanged_part")]
    pub long_input: Decimal,
    /// The share of the price of generated tokens that such a call costs.
    #[serde(default = "unchanged_part")]
    pub long_output: Decimal,
}

impl Default for ModelPrice {
    /// No model, and a price of nothing.
    fn default() -> Self {
        Self {
            provider: String::new(),
            model: String::new(),
            from: String::new(),
            input: Decimal::ZERO,
            cache_read: Decimal::ZERO,
            cache_write: Decimal::ZERO,
            cache_write_hour: None,
            output: Decimal::ZERO,
            pages: Decimal::ZERO,
            batch: batch_part(),
            tiers: BTreeMap::new(),
            long_above: 0,
            long_input: unchanged_part(),
            long_output: unchanged_part(),
        }
    }
}

impl ModelPrice {
    /// The price of the tokens of one call.
    pub fn price_tokens(&self, usage: &ModelUsage, class: &PriceClass) -> Decimal {
        let is_long = self.long_above > 0 && usage.prompt_tokens() > self.long_above;
        let parts =
            if is_long { (self.long_input, self.long_output) } else { (1.into(), 1.into()) };
        let for_an_hour = self.cache_write_hour.filter(|_| class.caches_for_an_hour);
        let prompt = [
            (usage.input, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, for_an_hour.unwrap_or(self.cache_write)),
        ];
        let prompt: Decimal =
            prompt.iter().map(|(count, price)| Decimal::from(*count) * price).sum();
        let output = Decimal::from(usage.output) * self.output;
        let tier = self.tiers.get(&class.service_tier).copied().unwrap_or(Decimal::ONE);
        (prompt * parts.0 + output * parts.1) * tier / Decimal::from(1_000_000)
    }

    /// Every amount and share.
    fn list_amounts(&self) -> impl Iterator<Item = &Decimal> {
        let fixed = [
            &self.input,
            &self.cache_read,
            &self.cache_write,
            &self.output,
            &self.pages,
            &self.batch,
            &self.long_input,
            &self.long_output,
        ];
        fixed.into_iter().chain(&self.cache_write_hour).chain(self.tiers.values())
    }
}

/// List prices of vendors, in US dollars.
const BUILT_IN: &str = include_str!("../../../../config/prices.toml");
/// The currency of the built-in prices.
const BUILT_IN_CURRENCY: &str = "USD";

/// The built-in prices. A test reads them; none at all is what an unreadable file would leave.
static BUILT_IN_PRICES: LazyLock<Vec<ModelPrice>> =
    LazyLock::new(|| read_prices(BUILT_IN).unwrap_or_default());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    price: Vec<ModelPrice>,
}

fn read_prices(text: &str) -> Result<Vec<ModelPrice>, toml::de::Error> {
    toml::from_str::<PriceList>(text).map(|list| list.price)
}

/// Of the prices of a model that hold on a day the one that began last.
fn newest_price<'a>(
    prices: &'a [ModelPrice],
    provider: &str,
    model: &str,
    day: &str,
) -> Option<&'a ModelPrice> {
    let of_it = prices.iter().filter(|it| it.provider == provider && it.model == model);
    // ISO dates are in the order of their letters.
    of_it.filter(|it| it.from.as_str() <= day).max_by(|a, b| a.from.cmp(&b.from))
}

/// Half, as OpenAI, Anthropic, Bedrock and Gemini have it.
fn batch_part() -> Decimal {
    Decimal::new(5, 1)
}

/// A price as it is.
fn unchanged_part() -> Decimal {
    Decimal::ONE
}

/// Prices and the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostConfig {
    /// Of all amounts; a name for people, nothing is converted.
    pub currency: String,
    /// Most that may be spent in a day (UTC), by all workers together; 0: no bound.
    pub daily_budget: Decimal,
    /// Most that may be spent in a day (UTC) on behalf of one tenant; 0: no bound.
    pub tenant_daily_budget: Decimal,
    /// The same for tenants by name, in the place of the above.
    pub tenant_daily_budgets: BTreeMap<String, Decimal>,
    /// Most that one document may cost, all attempts together; 0: no bound.
    pub document_budget: Decimal,
    /// Most tokens that one document may take in all attempts, whatever their price; 0: no bound.
    pub document_tokens: u64,
    /// The prices, in any order.
    pub price: Vec<ModelPrice>,
}

impl Default for CostConfig {
    fn default() -> Self {
        Self {
            currency: "USD".to_owned(),
            daily_budget: Decimal::ZERO,
            tenant_daily_budget: Decimal::ZERO,
            tenant_daily_budgets: BTreeMap::new(),
            // Some hundred pages by a strong model: far above what documents cost, far below what
            // one could.
            document_budget: Decimal::from(5),
            // About as many tokens of a medium model, for documents whose models have no price.
            document_tokens: 2_000_000,
            price: Vec::new(),
        }
    }
}

impl CostConfig {
    /// The price that holds on a day: one of the settings before the built-in list price.
    pub fn price_on(&self, provider: &str, model: &str, day: Date) -> Option<&ModelPrice> {
        let (day, built_in) = (day.to_string(), self.built_in_prices());
        newest_price(&self.price, provider, model, &day)
            .or_else(|| newest_price(built_in, provider, model, &day))
    }

    /// Whether a model has a price on any day.
    pub fn has_price(&self, provider: &str, model: &str) -> bool {
        let mut all = self.price.iter().chain(self.built_in_prices());
        all.any(|price| price.provider == provider && price.model == model)
    }

    /// List prices, which are no amounts of another currency.
    fn built_in_prices(&self) -> &'static [ModelPrice] {
        if self.currency == BUILT_IN_CURRENCY { &BUILT_IN_PRICES } else { &[] }
    }

    /// The keys of the budgets of a day that are set.
    pub(super) fn daily_budgets(&self) -> Vec<String> {
        let by_name = self.tenant_daily_budgets.iter();
        let by_name =
            by_name.map(|(name, budget)| (format!("tenant_daily_budgets.{name}"), budget));
        let days = [
            ("daily_budget".to_owned(), &self.daily_budget),
            ("tenant_daily_budget".to_owned(), &self.tenant_daily_budget),
        ];
        let set = days.into_iter().chain(by_name).filter(|(_, budget)| !budget.is_zero());
        set.map(|(key, _)| key).collect()
    }

    /// The daily budget on behalf of a tenant (0: no bound), and the key that sets it.
    pub fn tenant_budget(&self, tenant: &str) -> (&'static str, Decimal) {
        match self.tenant_daily_budgets.get(tenant) {
            Some(budget) => ("cost.tenant_daily_budgets", *budget),
            None => ("cost.tenant_daily_budget", self.tenant_daily_budget),
        }
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        let by_name = self.tenant_daily_budgets.iter();
        let by_name =
            by_name.map(|(name, budget)| (format!("tenant_daily_budgets.{name}"), budget));
        let days = [
            ("daily_budget".to_owned(), &self.daily_budget),
            ("tenant_daily_budget".to_owned(), &self.tenant_daily_budget),
        ];
        for (key, budget) in days.into_iter().chain(by_name) {
            if budget.is_sign_negative() {
                problems.push(format!("cost.{key} must not be negative; 0 is no bound"));
            }
        }
        if self.document_budget.is_sign_negative() {
            problems.push("cost.document_budget must not be negative; 0 is no bound".to_owned());
        }
        for (at, price) in self.price.iter().enumerate() {
            let form = format_description!("[year]-[month]-[day]");
            if Date::parse(&price.from, form).is_err() {
                problems.push(format!("cost.price[{at}].from is no date: write YYYY-MM-DD"));
            }
            if price.list_amounts().any(Decimal::is_sign_negative) {
                problems.push(format!("cost.price[{at}] must not be negative"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    fn config(toml: &str) -> CostConfig {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn of_several_prices_the_one_that_began_last_holds() {
        let config = config(
            "[[price]]\nprovider = 'p'\nmodel = 'm'\nfrom = '2026-06-01'\ninput = 0.3\n\
             [[price]]\nprovider = 'p'\nmodel = 'm'\nfrom = '2025-01-01'\ninput = 1\n\
             [[price]]\nprovider = 'p'\nfrom = '2025-01-01'\npages = '1.5'\n",
        );
        let input = |model: &str, day| Some(config.price_on("p", model, day)?.input.to_string());
        assert_eq!(input("m", date!(2024 - 12 - 31)), None);
        assert_eq!(input("m", date!(2026 - 05 - 31)).as_deref(), Some("1"));
        assert_eq!(input("m", date!(2026 - 06 - 01)).as_deref(), Some("0.3"));
        assert_eq!(input("other", date!(2026 - 06 - 01)), None);
        let pages = config.price_on("p", "", date!(2026 - 06 - 01)).unwrap().pages;
        assert_eq!(pages.to_string(), "1.5");
    }

    #[test]
    fn built_in_prices_hold_until_the_settings_name_one_and_are_in_dollars() {
        let built_in = read_prices(BUILT_IN).unwrap();
        let form = format_description!("[year]-[month]-[day]");
        for price in &built_in {
            let at = &price.model;
            assert!(Date::parse(&price.from, form).is_ok(), "{at}");
            assert!(["openai", "anthropic", "gemini"].contains(&price.provider.as_str()), "{at}");
            let (read, input, output) = (price.cache_read, price.input, price.output);
            assert!(Decimal::ZERO < read && read < input && input < output, "{at}");
            assert!(price.cache_write.is_zero() || price.cache_write >= input, "{at}");
        }
        let input = |toml: &str, day| {
            let config = config(toml);
            Some(config.price_on("openai", "gpt-6-luna", day)?.input.to_string())
        };
        let day = date!(2026 - 11 - 28);
        assert_eq!(input("", day).as_deref(), Some("0.10"));
        assert_eq!(input("", date!(2026 - 09 - 21)), None, "it was not sold yet");
        assert_eq!(input("currency = 'EUR'", day), None, "nothing is converted");
        let own = "[[price]]\nprovider = 'openai'\nmodel = 'gpt-6-luna'\nfrom = '2026-01-01'\n\
                   input = 0.08";
        assert_eq!(input(own, day).as_deref(), Some("0.08"), "a contract's price");
    }

    #[test]
    fn a_class_of_service_an_hour_in_the_cache_and_a_long_prompt_have_their_prices() {
        let config = config(
            "[[price]]\nprovider = 'p'\nmodel = 'm'\nfrom = '2026-01-01'\ninput = 2\n\
             cache_read = 0.2\ncache_write = 2.5\ncache_write_hour = 4\noutput = 10\n\
             tiers = { flex = 0.5, priority = 2 }\n\
             long_above = 1000000\nlong_input = 2\nlong_output = 1.5\n",
        );
        let price = config.price_on("p", "m", date!(2026 - 02 - 01)).unwrap();
        let million = 1_000_000;
        let input = ModelUsage { input: million, ..ModelUsage::default() };
        let written = ModelUsage { cache_write: million, ..ModelUsage::default() };
        let long =
            ModelUsage { input: million, cache_read: million, cache_write: 0, output: million };
        #[rustfmt::skip]
        let table = [
            ("the default class",         input,   "",         false, "2"),
            ("half for later",            input,   "flex",     false, "1.0"),
            ("twice for sooner",          input,   "priority", false, "4"),
            ("a class without a share",   input,   "scale",    false, "2"),
            ("kept for minutes",          written, "",         false, "2.5"),
            ("kept for an hour",          written, "",         true,  "4"),
            ("long",                      long,    "",         false, "19.4"),
            ("long, in another class",    long,    "flex",     false, "9.7"),
        ];
        for (name, usage, tier, caches_for_an_hour, expected) in table {
            let class = PriceClass { service_tier: tier.to_owned(), caches_for_an_hour };
            let expected: Decimal = expected.parse().unwrap();
            assert_eq!(price.price_tokens(&usage, &class), expected, "{name}");
        }
        let without = ModelPrice { cache_write_hour: None, ..price.clone() };
        let class = PriceClass { caches_for_an_hour: true, ..PriceClass::default() };
        assert_eq!(without.price_tokens(&written, &class).to_string(), "2.5");
    }

    #[test]
    fn a_negative_price_and_an_invalid_date_are_reported() {
        let problems = |toml: &str| {
            let mut problems = Vec::new();
            config(toml).collect_problems(&mut problems);
            problems.join("\n")
        };
        assert!(problems("daily_budget = -5").contains("cost.daily_budget"));
        let wrong = "[[price]]\nprovider = 'p'\nfrom = '1.6.2026'\noutput = -1\n";
        let said = problems(wrong);
        assert!(said.contains("cost.price[0].from") && said.contains("negative"), "{said}");
        assert_eq!(problems(""), "");
    }
}
