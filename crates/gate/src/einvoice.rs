//! Rules about e-invoices: whether the one that a document carries was of use, and whether it says
//! what the pages say.

use rust_decimal::Decimal;
use serde_json::Value;

use super::checks::FailedFields;
use super::ground::PrintedValues;
use super::subject::{GateSubject, json_decimal};
use crate::kinds::FieldRole;
use docmill_core::model::{PageSource, RuleSeverity};
use docmill_formats::notation::{account, date, printed_vat_id, vat_digits, vat_id};

/// The state of the XML in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EinvoiceState {
    /// There is none, or it was not asked for.
    #[default]
    Absent,
    /// It was read, and the document has pages beside it.
    Attached {
        /// Whether one of them shows what is not in its text: a picture, letters drawn as shapes.
        show_more: bool,
    },
    /// The document is nothing else.
    Document,
    /// It was of no use, for this reason, and another reader took its place.
    Unusable(&'static str),
}

impl EinvoiceState {
    /// Whether the data are the XML's.
    pub(super) fn is_used(self) -> bool {
        matches!(self, Self::Attached { .. } | Self::Document)
    }
}

impl GateSubject<'_> {
    /// The reason stands where rules about fields name the field.
    pub(super) fn einvoice_usable(&self) -> FailedFields {
        match self.lookups.einvoice {
            EinvoiceState::Unusable(reason) => vec![Some(reason.to_owned())],
            _ => Vec::new(),
        }
    }

    /// Ids of the official rules of this severity or a graver one that the XML breaks, each once. They
    /// stand where rules about fields name the field.
    pub(super) fn broken_einvoice_rules(&self, severity: RuleSeverity) -> FailedFields {
        let mut ids: FailedFields = Vec::new();
        let findings = self.lookups.einvoice_rules.iter().flat_map(|report| &report.findings);
        for finding in findings.filter(|finding| finding.severity >= severity) {
            let id = Some(finding.rule.clone());
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// Whether a person sees a page that nobody held the XML against: one that shows more than its
    /// text, or pages that print no number at all.
    pub(super) fn einvoice_unseen(&self) -> bool {
        let EinvoiceState::Attached { show_more } = self.lookups.einvoice else { return false };
        show_more || !self.ground.prints_numbers()
    }

    /// Values that the pages do not print although they print something of the sort. Pages without
    /// a text layer ([`GateSubject::einvoice_unseen`]), and a document without pages, contradict nothing.
    pub(super) fn contradicted_fields(
        &self,
        fields: &[String],
        sums: &[String],
        rest_of: &[String],
    ) -> FailedFields {
        if !matches!(self.lookups.einvoice, EinvoiceState::Attached { .. }) {
            return Vec::new();
        }
        let values = fields.iter().flat_map(|field| self.named_values(field));
        let contradicted = values.filter(|(field, value)| {
            self.is_contradicted(field, value)
                && !self.is_printed_sum(value, sums)
                && !self.is_rest_of(value, rest_of)
        });
        let mut found: FailedFields = contradicted.map(|(field, _)| Some(field)).collect();
        let number = self.kind.field_of(FieldRole::DocumentNumber);
        let first = self.transcript.pages.first().filter(|_| fields.iter().any(|it| it == number));
        let denied = first.is_some_and(|page| self.kind.is_denied_by_title(page));
        found.extend(denied.then(|| Some("kind".to_owned())));
        found
    }

    fn is_contradicted(&self, field: &str, value: &Value) -> bool {
        if value.as_str().is_some_and(account::is_iban) {
            return self.prints_other_account();
        }
        if value.as_str().is_some_and(|id| vat_id::has_valid_form(id) == Some(true)) {
            return !self.ground.contains_value(value) && self.prints_foreign_vat_id(value);
        }
        if value.as_str().is_some_and(is_name) {
            return self.ground.prints_numbers() && !self.prints_party(field, value);
        }
        let places = self.ground.value_places(value);
        // A place that the drawn page does not confirm confirms nothing.
        let is_seen = places.is_empty() || places.iter().any(|place| !place.unwitnessed);
        let is_number = field == self.kind.field_of(FieldRole::DocumentNumber);
        let is_printed = match value.as_str().filter(|_| is_number) {
            Some(number) => self.ground.prints_identifier(number),
            None => self.ground.contains_value(value),
        };
        let is_total = field == self.kind.field_of(FieldRole::Total);
        prints_same_type(&self.ground, value) && !(is_seen && is_printed)
            || is_total && self.prints_other_total(value)
    }

    /// Whether no line with a label of the total prints it, and one that begins with such prints an amount
    /// that is none of the data.
    fn prints_other_total(&self, value: &Value) -> bool {
        let Some(total) = json_decimal(value).filter(|total| !total.is_zero()) else {
            return false;
        };
        let fields = [FieldRole::Total, FieldRole::AmountDue].map(|role| self.kind.field_of(role));
        let labels: Vec<String> = fields
            .iter()
            .flat_map(|field| self.kind.labels.labels_of(field))
            .map(str::to_owned)
            .collect();
        let total = total.abs().normalize();
        if self.ground.numbers_named(&labels).any(|it| it == total) {
            return false;
        }
        self.ground.numbers_labelled(&labels).any(|numbers| {
            let mut data = self.extraction.data.values();
            let known = data.any(|value| numbers.iter().any(|it| holds_amount(value, *it)));
            !known && numbers.iter().all(|it| it.scale() > 0)
        })
    }

    /// Days that the pages do not print, where lines with one of these folded words print others.
    pub(super) fn dates_of_other_day(&self, fields: &[String], words: &[String]) -> FailedFields {
        if !matches!(self.lookups.einvoice, EinvoiceState::Attached { .. })
            || !self.ground.prints_date_named(words)
        {
            return Vec::new();
        }
        self.fields_where(fields, |value| !self.ground.contains_value(value))
    }
}

/// Whether a text is one of words: a number of an invoice has digits.
fn is_name(text: &str) -> bool {
    !text.contains(|c: char| c.is_ascii_digit())
}

/// Half of a name, its legal form counted.
const NAME_SHARE: f64 = 0.5;

impl GateSubject<'_> {
    /// Whether the pages print half of a party's name, or a VAT identifier of the data: many a name is a
    /// picture or is shortened.
    fn prints_party(&self, field: &str, name: &Value) -> bool {
        let text = name.as_str().unwrap_or_default();
        let role = field.split('_').next().unwrap_or_default();
        let mut own = self.extraction.data.iter().filter(|(other, _)| other.starts_with(role));
        self.ground.holds_words(text, NAME_SHARE)
            || own.any(|(_, value)| is_vat_id(value) && self.ground.contains_value(value))
    }

    /// Whether a VAT identifier with sound check digits, or of the same country as the given one, is printed
    /// that is none of the data.
    fn prints_foreign_vat_id(&self, given: &Value) -> bool {
        let country = given.as_str().and_then(|id| id.get(..2));
        let own: Vec<String> = self
            .extraction
            .data
            .values()
            .filter(|value| is_vat_id(value))
            .filter_map(|value| value.as_str().map(vat_id::normalise_vat_id))
            .collect();
        let mut lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        lines.any(|line| {
            let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
            let mut printed = (0..words.len())
                .filter_map(|at| printed_vat_id::find_at(words.get(at..).unwrap_or_default()));
            printed.any(|(id, _)| {
                (vat_digits::check_digits_hold(&id) == Some(true) || id.get(..2) == country)
                    && !own.contains(&vat_id::normalise_vat_id(&id))
            })
        })
    }

    /// Whether an account is printed that is none of the data: somebody may pay to it. Many a page names
    /// none where the XML does.
    fn prints_other_account(&self) -> bool {
        let mut own = Vec::new();
        for value in self.extraction.data.values() {
            add_accounts(value, &mut own);
        }
        let pages = self.transcript.pages.iter();
        let mut lines = pages.flat_map(|page| page.lines.iter().map(move |line| (page, line)));
        lines.any(|(page, line)| {
            let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
            let mut starts = (0..words.len()).filter_map(|at| words.get(at..));
            starts.any(|words| {
                // A misread digit makes another account of a picture's.
                let begun = account::find_account_start(words);
                let begun = begun.filter(|_| page.source != PageSource::Ocr);
                account::find_iban_at(words).is_some_and(|(iban, _)| !own.contains(&iban))
                    || begun.is_some_and(|begun| {
                        own.iter()
                            .all(|it| !it.starts_with(&begun) && !begun.starts_with(it.as_str()))
                    })
            })
        })
    }
}

/// Whether an amount is within a value, signs aside.
fn holds_amount(value: &Value, amount: Decimal) -> bool {
    match value {
        Value::Number(_) => json_decimal(value).is_some_and(|it| it.abs() == amount),
        Value::Array(list) => list.iter().any(|entry| holds_amount(entry, amount)),
        Value::Object(fields) => fields.values().any(|inner| holds_amount(inner, amount)),
        _ => false,
    }
}

fn is_vat_id(value: &Value) -> bool {
    value.as_str().is_some_and(|text| vat_id::has_valid_form(text) == Some(true))
}

/// Collects every account within a value.
fn add_accounts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if account::is_iban(text) => {
            found.push(text.chars().filter(|c| !c.is_whitespace()).collect());
        }
        Value::Array(list) => list.iter().for_each(|entry| add_accounts(entry, found)),
        Value::Object(fields) => fields.values().for_each(|inner| add_accounts(inner, found)),
        _ => {}
    }
}

fn prints_same_type(ground: &PrintedValues, value: &Value) -> bool {
    match value {
        Value::Number(_) => ground.prints_numbers(),
        Value::String(text) if date::parse_iso(text).is_some() => ground.prints_dates(),
        // A page with text but without any amount is no invoice page: a letter, a cover.
        Value::String(_) => ground.prints_numbers(),
        _ => false,
    }
}
