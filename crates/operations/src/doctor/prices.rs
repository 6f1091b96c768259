//! Whether what models cost is known: without prices no budget bounds it.

use time::Date;

use super::DoctorFinding;
use docmill_core::config::Config;

/// Every model with a price of its own has one on this day.
pub fn check(config: &Config, day: Date) -> DoctorFinding {
    const CHECK: &str = "cost.price";
    let unpriced = config.unpriced_models(day);
    if unpriced.is_empty() {
        return DoctorFinding::ok(CHECK, "no model without a price is charged for");
    }
    let found = format!(
        "no price of {}: no budget bounds what it costs, only cost.document_tokens",
        unpriced.join(", ")
    );
    let advice = "add a [[cost.price]] for it; one of 0 if nobody charges for it";
    DoctorFinding::warn(CHECK, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_model_of_others_without_a_price_is_found_and_one_of_this_machine_is_not() {
        let price = "[[cost.price]]\nprovider = 'openai'\nmodel = 'm'\nfrom = '2026-01-01'\n";
        let far = "[llm]\nprovider = 'openai'\nmodel = 'm'\nbase_url = 'https://api.example/v1'\n";
        let near = far.replace("https://api.example", "http://127.0.0.1:8000");
        let vllm = format!("{far}server = 'vllm'\n");
        let local = format!("{far}[llm.scheduler]\nmodels = ['m']\n");
        let stronger = format!("{far}[[llm.chain]]\nmodel = 'n'\n{price}");
        let later = price.replace("2026", "2027");
        #[rustfmt::skip]
        let table = [
            ("no model",                String::new(),           None),
            ("of others",               far.to_owned(),          Some("openai m")),
            ("priced",                  format!("{far}{price}"), None),
            ("priced from next year",   format!("{far}{later}"), Some("openai m")),
            ("a stronger one",          stronger,                Some("openai n")),
            ("on this machine",         near,                    None),
            ("a server of one's own",   vllm,                    None),
            ("scheduled here",          local,                   None),
        ];
        for (name, text, unpriced) in table {
            let config = Config::parse_text(&text).unwrap();
            let finding = check(&config, time::macros::date!(2026 - 11 - 27));
            let expected = if unpriced.is_some() { Severity::Warn } else { Severity::Ok };
            assert_eq!(finding.verdict, expected, "{name}: {}", finding.found);
            assert!(unpriced.is_none_or(|model| finding.found.contains(model)), "{name}");
        }
    }
}
