//! The gate's findings about data while a person types it. Advice only: a decision ignores it.
//!
//! Rules about the reading are left out: typed data is not read.

use serde_json::{Map, Value};
use time::OffsetDateTime;

use docmill_core::model::{Extraction, ExtractionMethod, ModelUsage, StatedConfidence, Transcript};
use docmill_gate::kinds::{Kind, RuleCheck};
use docmill_gate::{GateLookups, judge_extraction};

/// Violations of the kind's rules by `data`, compared with the pages of `transcript`, as `rule` or
/// `rule:field`.
pub fn check_typed_data(
    kind: &Kind,
    data: Map<String, Value>,
    transcript: &Transcript,
) -> Vec<String> {
    let extraction = Extraction {
        // Its rules are the strictest: values have to appear on the pages.
        reader: ExtractionMethod::Llm,
        model: None,
        kind: kind.name.clone(),
        data,
        successful: true,
        confidence: StatedConfidence::High,
        missing_fields: Vec::new(),
        evidence: Vec::new(),
        certainties: Vec::new(),
        usage: ModelUsage::default(),
    };
    let lookups = GateLookups::on_day(OffsetDateTime::now_utc().date());
    let verdict = judge_extraction(&extraction, transcript, kind, &lookups);
    let reasons = verdict.review_reasons().into_iter().filter(|reason| {
        let name = reason.split(':').next().unwrap_or_default();
        let rule = kind.rules.iter().find(|rule| rule.name == name);
        rule.is_some_and(|rule| is_about_data(&rule.check))
    });
    reasons.collect()
}

/// Whether the rule concerns the data, and not the reading.
fn is_about_data(check: &RuleCheck) -> bool {
    !matches!(
        check,
        RuleCheck::Legible { .. }
            | RuleCheck::Certain { .. }
            | RuleCheck::NoInstructions { .. }
            | RuleCheck::EinvoiceSeen
            | RuleCheck::EinvoiceUsable
            | RuleCheck::PaymentCodeUsable
            | RuleCheck::Duplicate
            | RuleCheck::NearDuplicate
            | RuleCheck::Quality
            | RuleCheck::ReaderSucceeded
            | RuleCheck::Confidence(_)
            | RuleCheck::Score { .. }
    )
}
