//! The gate's findings in words and by field. The texts are those of the kind's rules.

use super::review_form::label_of;
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

impl ReviewFinding {
    /// The words for a list: with the field they are about, if it is one.
    pub(super) fn summary(&self) -> String {
        let words = self.words.trim_end_matches('.');
        match self.fields.as_slice() {
            [field] => format!("{}: {words}", label_of(field)),
            _ => words.to_owned(),
        }
    }
}

/// The words of a reason such as `net_and_vat_are_not_total` or `required:total`.
pub(super) fn explain_reason(kind: Option<&Kind>, code: &str) -> ReviewFinding {
    if let Some((hook, reason)) = code.strip_prefix("hook:").and_then(|it| it.split_once(':')) {
        let words = format!("Hook {hook}: {}.", reason.replace('_', " "));
        return ReviewFinding { code: code.to_owned(), words, fields: Vec::new() };
    }
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
        // A finding about no field of the kind is one about the document.
        (Some(place), _) if kind.is_none_or(|kind| kind.has_field(field_of_place(place))) => {
            vec![field_of_place(place).to_owned()]
        }
        (Some(_), _) => Vec::new(),
        (None, Some(rule)) => {
            let named = rule.check.named_fields();
            named.iter().map(|it| field_of_place(it).to_owned()).collect()
        }
        (None, None) => Vec::new(),
    };
    ReviewFinding { code: code.to_owned(), words, fields }
}

/// The words of all reasons of a document; the same about the same fields once.
pub(super) fn explain_reasons(kind: Option<&Kind>, codes: &[String]) -> Vec<ReviewFinding> {
    let mut found: Vec<ReviewFinding> = Vec::new();
    for finding in codes.iter().map(|code| explain_reason(kind, code)) {
        if !found.iter().any(|it| it.words == finding.words && it.fields == finding.fields) {
            found.push(finding);
        }
    }
    found
}

/// Findings at `line_items[2].amount` and `line_items.amount` appear beside `line_items`.
pub(super) fn field_of_place(place: &str) -> &str {
    place.split(['[', '.']).next().unwrap_or(place)
}

/// The words of a failed check.
pub(super) fn words_of_check(check: &RuleCheck) -> &'static str {
    match check {
        RuleCheck::Required(_) => "A required value is missing.",
        RuleCheck::Format(..) => "The value has the wrong format.",
        RuleCheck::EinvoiceRules(_) => "The e-invoice breaks an official rule.",
        RuleCheck::Magnitude { .. } => "The number has too many digits.",
        RuleCheck::PrintedSign(_) => "The document prints this amount with the other sign.",
        RuleCheck::Sum { .. } => "The amounts do not add up to the total.",
        RuleCheck::NoGap { .. } => "An amount between these seems to be missing.",
        RuleCheck::TaxRate { .. } | RuleCheck::TaxByRate { .. } => {
            "The tax does not follow from the net amount and the printed rates."
        }
        RuleCheck::BeforePayment { .. } => "This looks like the balance after a payment.",
        RuleCheck::AmountOrder { .. } => "One of these amounts is too large.",
        RuleCheck::ListSum { .. } => "The lines do not add up to a total.",
        RuleCheck::TaxBreakdown { .. } => "The taxes by rate do not add up to the tax.",
        RuleCheck::ListProduct { .. } => "In a line, quantity times price differs from the amount.",
        RuleCheck::Confirmed { .. } => "Nothing else on the document confirms this total.",
        RuleCheck::DateOrder(_) => "A later date is before an earlier one.",
        RuleCheck::DateRange { .. } => "This date is too far from today.",
        RuleCheck::Grounded { .. } | RuleCheck::GroundedWords { .. } => {
            "This value is not on the document."
        }
        RuleCheck::CurrencyPrinted(_) => "The document prints another currency.",
        RuleCheck::Legible { .. } => "This was hard to read.",
        RuleCheck::Certain { .. } => "The reader is uncertain.",
        RuleCheck::NoInstructions { .. } => "A line of the document addresses a model.",
        RuleCheck::PaymentInData { .. } => {
            "The page prints a payment, and the whole total is said to be due."
        }
        RuleCheck::OneTotal { .. } => "The pages print another total as well.",
        RuleCheck::PartsInData { .. } => "The pages state a payment in parts.",
        RuleCheck::Complete { .. } => "Lines of the document seem to be missing here.",
        RuleCheck::NotContradicted { .. } | RuleCheck::DateBeside { .. } => {
            "The pages differ from the attached XML."
        }
        RuleCheck::EinvoiceSeen => "Pages were not compared with the attached XML.",
        RuleCheck::EinvoiceUsable => "The attached e-invoice could not be used.",
        RuleCheck::PaymentCode(_) => "A payment code on the page differs.",
        RuleCheck::PaymentCodeUsable => "A payment code on the page is unusable.",
        RuleCheck::PaymentCodePrinted(_) => "Only a code on the page has this value.",
        RuleCheck::KnownAccount(_) => "Another account was confirmed of this supplier.",
        RuleCheck::OwnAccount(_) => "This account was confirmed of another supplier.",
        RuleCheck::AccountCountry { .. } => "The account is of another country than the VAT id.",
        RuleCheck::KnownCurrency(_) => "Another currency was confirmed of this supplier.",
        RuleCheck::KnownForm(_) => "Numbers of this supplier had another form.",
        RuleCheck::UsualAmount { .. } => {
            "The amount is far above those confirmed of this supplier."
        }
        RuleCheck::NotOwnCompany(_) => "This is one of your own companies, or left out beside one.",
        RuleCheck::AddressedToUs(_) => "The document names none of your companies.",
        RuleCheck::Duplicate => "There is an earlier document of this supplier and number.",
        RuleCheck::NearDuplicate => {
            "An earlier document has the same day and total, and the same supplier or number."
        }
        RuleCheck::Quality => "The pages are of bad quality.",
        RuleCheck::ReaderSucceeded => "The reader did not succeed.",
        RuleCheck::Confidence(_) => "The reader is not confident.",
        RuleCheck::Score { .. } => "The score of the data is too low.",
    }
}

/// Words for a code that no rule of the kind has: a reason code, or a former rule.
fn words_of_code(code: &str) -> String {
    match code {
        "differs_from_correction" => "A later reading differs from a person's decision.".to_owned(),
        "stated_bound" => "The stated bound on errors asks for a look.".to_owned(),
        "second_person" => "The amount or the account needs a second person.".to_owned(),
        "several_documents" => "The pages seem to be several documents.".to_owned(),
        "pages_missing" => "Pages are missing by their own numbers.".to_owned(),
        "kind_uncertain" => "The kind of the document is uncertain.".to_owned(),
        "corrupt" => "The file is damaged.".to_owned(),
        "encrypted" => "The file needs a password.".to_owned(),
        "no_text" => "No text was found on the pages.".to_owned(),
        "timeout" => "Reading took too long.".to_owned(),
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
        assert_eq!(missing.words, "A required value is missing.");
        assert_eq!(missing.fields, ["total"]);
        let item = explain_reason(Some(invoice), "line_product:line_items[2].amount");
        assert_eq!(item.fields, ["line_items"]);
        let of_hook = explain_reason(None, "hook:erp:new_supplier");
        assert_eq!((of_hook.words.as_str(), of_hook.fields.len()), ("Hook erp: new supplier.", 0));
        let whole = explain_reason(Some(invoice), "differs:kind");
        assert!(whole.fields.is_empty(), "a kind is no field: {whole:?}");
        let unknown = explain_reason(Some(invoice), "gate_refused");
        assert_eq!((unknown.words.as_str(), unknown.fields.len()), ("Gate refused.", 0));
        for rule in &invoice.rules {
            let told = explain_reason(Some(invoice), &rule.name);
            assert!(!told.words.contains('_'), "{told:?}");
            assert!(told.fields.iter().all(|field| invoice.has_field(field)), "{told:?}");
        }
    }
}
