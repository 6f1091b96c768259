//! The gate's findings in words and by field. The texts are those of the kind's rules.

use docmill_gate::kinds::{Kind, RuleCheck};

/// One reason for a review, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReviewFinding {
    /// The reason as it is stored.
    pub(super) code: String,
    /// The same in words.
    pub(super) words: String,
    /// The fields concerned; empty for the document as a whole.
    pub(super) fields: Vec<String>,
}

/// The words of a reason such as `net_and_vat_are_not_total` or `required:total`.
pub(super) fn explain_reason(kind: Option<&Kind>, code: &str) -> ReviewFinding {
    let (name, place) = match code.split_once(':') {
        Some((name, place)) => (name, Some(place)),
        None => (code, None),
    };
    let rule = kind.and_then(|kind| kind.rules.iter().find(|rule| rule.name == name));
    let words = match rule {
        Some(rule) => words_of_check(&rule.check).to_owned(),
        None => words_of_code(name),
    };
    let fields = match (place, rule) {
        (Some(place), _) => vec![field_of_place(place).to_owned()],
        (None, Some(rule)) => {
            let named = rule.check.named_fields();
            named.iter().map(|it| field_of_place(it).to_owned()).collect()
        }
        (None, None) => Vec::new(),
    };
    ReviewFinding { code: code.to_owned(), words, fields }
}

/// Findings at `line_items[2].amount` and `line_items.amount` appear beside `line_items`.
pub(super) fn field_of_place(place: &str) -> &str {
    place.split(['[', '.']).next().unwrap_or(place)
}

fn words_of_check(check: &RuleCheck) -> &'static str {
    match check {
        RuleCheck::Required(_) => "This has to be there and is not.",
        RuleCheck::Format(..) => "This has not the form that it should have.",
        RuleCheck::Magnitude { .. } => "This number has more digits than it should have.",
        RuleCheck::Sum { .. } => "The amounts do not add up to the total.",
        RuleCheck::NoGap { .. } => "An amount between these seems to be missing.",
        RuleCheck::TaxRate { .. } | RuleCheck::TaxByRate { .. } => {
            "The tax does not follow from the net amount and the printed rates."
        }
        RuleCheck::BeforePayment { .. } => "This looks like what is left after a payment.",
        RuleCheck::AmountOrder { .. } => "One of these amounts is larger than it can be.",
        RuleCheck::ListSum { .. } => "The lines do not add up to a total.",
        RuleCheck::TaxBreakdown { .. } => "The taxes by rate do not make the tax.",
        RuleCheck::ListProduct { .. } => "In a line the factors do not make the amount.",
        RuleCheck::Confirmed { .. } => "Nothing else on the document confirms this total.",
        RuleCheck::DateOrder(_) => "A later date is before an earlier one.",
        RuleCheck::DateRange { .. } => "This date is too far from today.",
        RuleCheck::Grounded { .. } | RuleCheck::GroundedWords { .. } => {
            "This does not stand on the document."
        }
        RuleCheck::CurrencyPrinted(_) => "The document prints another currency.",
        RuleCheck::Legible { .. } => "This was hard to read on the page.",
        RuleCheck::Certain { .. } => "The reader is not certain of this.",
        RuleCheck::NoInstructions { .. } => "A line of the document speaks to a model.",
        RuleCheck::Complete { .. } => "Lines of the document seem to be missing here.",
        RuleCheck::NotContradicted(_) => "The pages print something else than the attached XML.",
        RuleCheck::EinvoiceSeen => "The pages show what the attached XML was not held against.",
        RuleCheck::EinvoiceUsable => "The attached e-invoice could not be used.",
        RuleCheck::PaymentCode(_) => "A code on the page orders another payment than this.",
        RuleCheck::PaymentCodeUsable => "A code for payments on the page could not be used.",
        RuleCheck::PaymentCodePrinted(_) => "Only a code on the page has this, no print.",
        RuleCheck::Duplicate => "There is an earlier document of this supplier and number.",
        RuleCheck::Quality => "The pages are of bad quality.",
        RuleCheck::ReaderSucceeded => "The reader says that it did not succeed.",
        RuleCheck::Confidence(_) => "The reader is not confident.",
        RuleCheck::Score { .. } => "All things considered the data is too doubtful.",
    }
}

/// Words for a code that no rule of the kind has: a reason code, or a former rule.
fn words_of_code(code: &str) -> String {
    match code {
        "differs_from_correction" => {
            "A later reading differs from what a person has decided.".to_owned()
        }
        "second_person" => {
            "The amount is so large that a second person has to say the same.".to_owned()
        }
        _ => {
            let words = code.replace('_', " ");
            let mut letters = words.chars();
            let first = letters.next().map(|first| first.to_uppercase().to_string());
            format!("{}{}.", first.unwrap_or_default(), letters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn a_reason_is_told_in_words_beside_the_fields_it_is_about() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.get("invoice").unwrap();
        let missing = explain_reason(Some(invoice), "required:total");
        assert_eq!(missing.words, "This has to be there and is not.");
        assert_eq!(missing.fields, ["total"]);
        let item = explain_reason(Some(invoice), "line_product:line_items[2].amount");
        assert_eq!(item.fields, ["line_items"]);
        let unknown = explain_reason(Some(invoice), "gate_refused");
        assert_eq!((unknown.words.as_str(), unknown.fields.len()), ("Gate refused.", 0));
        for rule in &invoice.rules {
            let told = explain_reason(Some(invoice), &rule.name);
            assert!(!told.words.contains('_'), "{told:?}");
            assert!(told.fields.iter().all(|field| invoice.has_field(field)), "{told:?}");
        }
    }
}
