//! Answers of models to a short call with each schema, for `docmill doctor --probe`.

use super::DoctorFinding;
use docmill_core::fault::Result;
use docmill_core::model::ModelUsage;
use rust_decimal::Decimal;

const CHECK: &str = "probe";

/// One model's answer to one schema.
#[derive(Debug)]
pub struct SchemaProbe {
    /// The vendor and the model: `anthropic claude-…`.
    pub model: String,
    /// The kind whose schema was sent; with ` with pictures` where its form for shown pages was.
    pub kind: String,
    /// Whether the request held the schema, as set by `llm.structured`.
    pub has_schema: bool,
    /// Whether the schema was refused, so that the prompt alone was tried.
    pub refused: bool,
    /// The tokens of the call, or why there was no reply.
    pub answer: Result<ModelUsage>,
    /// The price of these tokens, if one is configured.
    pub cost: Option<Decimal>,
}

/// The finding of one probe; `currency` is that of prices.
pub fn check(probe: &SchemaProbe, currency: &str) -> DoctorFinding {
    let SchemaProbe { model, kind, has_schema, refused, answer, cost } = probe;
    let usage = match answer {
        Ok(usage) => usage,
        Err(error) => return DoctorFinding::unusable(CHECK, &format!("{model}, {kind}: {error}")),
    };
    let cost = cost.map_or_else(
        || "no price is configured".to_owned(),
        |cost| format!("{:.6} {currency}", cost),
    );
    let spent = format!("{} tokens in, {} out, {cost}", usage.prompt_tokens(), usage.output);
    if *refused {
        let found = format!(
            "{model}, {kind}: the schema is refused, the prompt alone is answered ({spent})"
        );
        let advice = "works so by itself, with one refused call per process; set `structured = \"prompt\"` for this \
                      model, or make the kind's schema smaller";
        return DoctorFinding::wrong(CHECK, found, advice);
    }
    let how = if *has_schema { "the schema is accepted" } else { "the prompt alone is answered" };
    DoctorFinding::ok(CHECK, format!("{model}, {kind}: {how} ({spent})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use docmill_core::fault::Error;

    #[test]
    fn a_refused_schema_must_be_changed_and_an_accepted_one_names_its_price() {
        let probe = |refused: bool, answer: Result<ModelUsage>| SchemaProbe {
            model: "anthropic m".to_owned(),
            kind: "invoice".to_owned(),
            has_schema: true,
            refused,
            answer,
            cost: Some(Decimal::new(12, 4)),
        };
        let usage = ModelUsage { input: 9, output: 3, ..ModelUsage::default() };
        let accepted = check(&probe(false, Ok(usage)), "EUR");
        assert_eq!(accepted.verdict, Severity::Ok);
        assert_eq!(
            accepted.found,
            "anthropic m, invoice: the schema is accepted (9 tokens in, 3 out, 0.001200 EUR)"
        );
        let refused = check(&probe(true, Ok(usage)), "EUR");
        assert_eq!(refused.verdict, Severity::Wrong);
        assert!(refused.found.contains("the schema is refused"), "{}", refused.found);
        let failed = check(&probe(false, Err(Error::transient("no answer"))), "EUR");
        assert_eq!(failed.verdict, Severity::Wrong);
    }
}
