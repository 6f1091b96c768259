//! `[review]`: the lease on an open document, the time in which a decision can be undone, and the
//! amounts above which a second person has to confirm it.

use std::collections::BTreeMap;
use std::time::Duration;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// The name under which `review.four_eyes_above` has the amount of every other currency.
pub const OTHER_CURRENCIES: &str = "*";
/// The shortest lease: a page has to renew it in time.
const MIN_LEASE: Duration = Duration::from_secs(30);
/// The longest time of any kind here.
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Rules for reviewers' decisions, on pages, by programs and on the command line alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewConfig {
    /// How long a document is a reviewer's after the last sign of the page that shows it.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// How long a decision can be undone by its reviewer; it is not delivered before. 0: never.
    #[serde(with = "humantime_serde")]
    pub undo: Duration,
    /// By currency, and [`OTHER_CURRENCIES`] for all others and for none: above it a second person
    /// has to say the same. Empty: one is enough.
    pub four_eyes_above: BTreeMap<String, Decimal>,
}

impl Default for ReviewConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(600),
            undo: Duration::from_secs(60),
            four_eyes_above: BTreeMap::new(),
        }
    }
}

impl ReviewConfig {
    /// The amount above which a second person is needed; `None`: there is none.
    pub fn four_eyes_limit(&self, currency: Option<&str>) -> Option<Decimal> {
        // Variables of the environment come in small letters.
        let currency = currency.map(str::trim);
        let mut limits = self.four_eyes_above.iter();
        let named =
            limits.find(|(name, _)| currency.is_some_and(|own| own.eq_ignore_ascii_case(name)));
        let named = named.map(|(_, amount)| amount);
        named.or_else(|| self.four_eyes_above.get(OTHER_CURRENCIES)).copied()
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.lease < MIN_LEASE || self.lease > MAX_TIME {
            problems.push("review.lease must be from 30s to 24h".to_owned());
        }
        if self.undo > MAX_TIME {
            problems.push("review.undo must be at most 24h; 0s: nothing can be undone".to_owned());
        }
        if !self.four_eyes_above.is_empty() && !self.four_eyes_above.contains_key(OTHER_CURRENCIES)
        {
            problems.push(
                "review.four_eyes_above needs \"*\", the amount for every other currency and for \
                 documents that name none: without it another currency would need one person"
                    .to_owned(),
            );
        }
        for (currency, amount) in &self.four_eyes_above {
            let is_code = currency.len() == 3 && currency.chars().all(|c| c.is_ascii_alphabetic());
            if !is_code && currency != OTHER_CURRENCIES {
                problems.push(
                    "review.four_eyes_above takes codes of ISO 4217 such as EUR, and \"*\""
                        .to_owned(),
                );
            }
            if amount.is_sign_negative() {
                problems.push(format!("review.four_eyes_above.{currency} must not be negative"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(pairs: &[(&str, i64)]) -> ReviewConfig {
        let pairs = pairs.iter().map(|(name, amount)| ((*name).to_owned(), Decimal::from(*amount)));
        ReviewConfig { four_eyes_above: pairs.collect(), ..ReviewConfig::default() }
    }

    #[test]
    fn a_currency_that_is_not_named_and_none_at_all_are_held_against_the_amount_for_others() {
        let config = above(&[("EUR", 5000), ("*", 1000)]);
        for (currency, limit) in
            [(Some("EUR"), 5000), (Some(" eur "), 5000), (Some("XXX"), 1000), (None, 1000)]
        {
            assert_eq!(config.four_eyes_limit(currency), Some(limit.into()), "{currency:?}");
        }
        assert_eq!(above(&[]).four_eyes_limit(Some("EUR")), None);
    }

    #[test]
    fn amounts_are_read_from_the_file_as_numbers_or_texts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "[review.four_eyes_above]\nEUR = 5000.50\nUSD = \"7000\"\n\"*\" = 1\n";
        std::fs::write(file.path(), text).unwrap();
        let config = super::super::Config::load(Some(file.path())).unwrap().review;
        for (currency, limit) in [("EUR", "5000.50"), ("USD", "7000"), ("CHF", "1")] {
            let found = config.four_eyes_limit(Some(currency)).unwrap();
            assert_eq!(found, limit.parse::<Decimal>().unwrap(), "{currency}");
        }
    }

    #[test]
    fn a_rule_that_another_currency_escapes_is_refused() {
        let problems = |config: &ReviewConfig| {
            let mut problems = Vec::new();
            config.collect_problems(&mut problems);
            problems.len()
        };
        let times = |lease, undo| ReviewConfig {
            lease: Duration::from_secs(lease),
            undo: Duration::from_secs(undo),
            ..ReviewConfig::default()
        };
        for (config, found) in [
            (ReviewConfig::default(), 0),
            (above(&[("EUR", 5000), ("*", 0)]), 0),
            (above(&[("EUR", 5000)]), 1),
            (above(&[("euro", 5000), ("*", 1)]), 1),
            (above(&[("*", -1)]), 1),
            (times(29, 60), 1),
            (times(30, 0), 0),
            (times(600, 90_000), 1),
        ] {
            assert_eq!(problems(&config), found, "{config:?}");
        }
    }
}
