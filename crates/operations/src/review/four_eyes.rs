//! The decisions that need a second person: amounts above `review.four_eyes_above`.
//!
//! The amount is the largest absolute number at the top of the data: of an invoice its total, its
//! net amount, its tax. Data read and data of the document count like the decided data, each in its
//! own currency, so that a correction cannot lower the amount below the limit. Not promised:
//! amounts only in lists or objects.

use rust_decimal::Decimal;
use serde_json::Value;

use docmill_core::config::ReviewConfig;

/// Whether one of these is about more than one person may decide; `currency`: the field of the
/// currency.
pub(super) fn needs_second(
    config: &ReviewConfig,
    currency: &str,
    about: &[Option<&Value>],
) -> bool {
    about.iter().flatten().any(|data| is_above(config, currency, data))
}

fn is_above(config: &ReviewConfig, currency: &str, data: &Value) -> bool {
    let Some(fields) = data.as_object() else { return false };
    let currency = fields.get(currency).and_then(Value::as_str);
    let Some(limit) = config.four_eyes_limit(currency) else { return false };
    fields.values().filter_map(Value::as_number).any(|number| {
        let text = number.to_string();
        let amount = text.parse::<Decimal>().or_else(|_| Decimal::from_scientific(&text));
        // A number too large for an amount is above every limit.
        amount.map_or(true, |amount| amount.abs() > limit)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_amount_of_what_was_read_carried_or_decided_counts_in_its_own_currency() {
        let limits = [("EUR".to_owned(), Decimal::from(5000)), ("*".to_owned(), Decimal::from(10))];
        let config = ReviewConfig { four_eyes_above: limits.into(), ..ReviewConfig::default() };
        let small = json!({"currency": "EUR", "total": 5000, "subtotal": 4201.68});
        for (about, needed) in [
            (json!({"currency": "EUR", "total": 5000.01}), true),
            (json!({"currency": "EUR", "total": null, "subtotal": 9000}), true),
            (json!({"currency": "EUR", "total": -5001}), true),
            (json!({"currency": "EUR", "total": 1e40}), true),
            (json!({"currency": "CHF", "total": 11}), true),
            (json!({"total": 11}), true),
            (json!({"total": 10}), false),
            (json!({"currency": "EUR", "total": null, "lines": [{"amount": 9000}]}), false),
            (json!(null), false),
        ] {
            assert_eq!(
                needs_second(&config, "currency", &[Some(&small), None, Some(&about)]),
                needed,
                "{about}"
            );
        }
        assert!(!needs_second(&config, "currency", &[Some(&small)]));
        let own = json!({"waehrung": "EUR", "total": 5000});
        assert!(!needs_second(&config, "waehrung", &[Some(&own)]), "a field of another name");
        assert!(needs_second(&config, "currency", &[Some(&own)]), "no currency: the limit of all");
        let none = ReviewConfig::default();
        assert!(!needs_second(&none, "currency", &[Some(&json!({"total": 1e40}))]));
    }
}
