//! Rules about e-invoices: whether the one that a document carries was of use, and whether it says
//! what the pages say.

use rust_decimal::Decimal;
use serde_json::Value;

use super::checks::FailedFields;
use super::ground::PrintedValues;
use super::subject::{GateSubject, json_decimal};
use crate::kinds::{FieldRole, RuleCheck};
use docmill_core::model::{PageSource, RuleSeverity};
use docmill_formats::notation::{account, date, fold_text, printed_vat_id, vat_digits, vat_id};

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
        let concerns = |role| fields.iter().any(|it| it == self.kind.field_of(role));
        let number = concerns(FieldRole::DocumentNumber);
        let first = self.transcript.pages.first().filter(|_| number);
        let denied = first.is_some_and(|page| self.kind.is_denied_by_title(page));
        found.extend(denied.then(|| Some("kind".to_owned())));
        if concerns(FieldRole::Total) {
            found.extend(self.denied_parts().map(|role| Some(self.kind.field_of(role).to_owned())));
            found.extend(self.denied_lines());
        }
        found
    }

    /// Checks values that pages need not print, where they print a different one.
    fn denied_parts(&self) -> impl Iterator<Item = FieldRole> {
        let [net, buyer] = [FieldRole::NetAmount, FieldRole::BuyerVatId].map(|role| {
            let field = self.kind.field_of(role);
            (field, self.field_value(field))
        });
        let buyer_denied = is_vat_id(buyer.1)
            && !self.ground.contains_value(buyer.1)
            && self.prints_foreign_vat_id(buyer.1);
        let parts = [
            (FieldRole::NetAmount, self.prints_other_amount(net.0, net.1)),
            (FieldRole::BuyerVatId, buyer_denied),
            (FieldRole::Taxes, self.prints_other_rate()),
        ];
        parts.into_iter().filter(|(_, denied)| *denied).map(|(role, _)| role)
    }

    fn is_contradicted(&self, field: &str, value: &Value) -> bool {
        if value.as_str().is_some_and(account::is_iban) {
            return self.prints_other_account();
        }
        if value.as_str().is_some_and(|id| vat_id::has_valid_form(id) == Some(true)) {
            return !self.ground.contains_value(value) && self.prints_foreign_vat_id(value);
        }
        if value.as_str().is_some_and(is_name) {
            return self.ground.prints_numbers() && !self.prints_party(field, value)
                || self.prints_other_form(value);
        }
        let places = self.ground.value_places(value);
        // A place that the drawn page does not confirm confirms nothing.
        let is_seen = places.is_empty() || places.iter().any(|place| !place.unwitnessed);
        let is_number = field == self.kind.field_of(FieldRole::DocumentNumber);
        let is_printed = match value.as_str().filter(|_| is_number) {
            Some(number) => self.ground.prints_identifier(number),
            None => self.ground.contains_value(value),
        };
        prints_same_type(&self.ground, value) && !(is_seen && is_printed)
            || is_number && self.prints_other_number(value)
            || self.prints_other_amount(field, value)
    }

    /// Whether no line with a label of this amount prints it, and a line that begins with such a
    /// label prints an amount that the data do not contain. For the total, the amount due counts as
    /// well.
    fn prints_other_amount(&self, field: &str, value: &Value) -> bool {
        let Some(amount) = json_decimal(value).filter(|amount| !amount.is_zero()) else {
            return false;
        };
        let sections: &[&str] = match field {
            _ if field == self.kind.field_of(FieldRole::Total) => &[field, PAYABLE],
            _ if field == self.kind.field_of(FieldRole::AmountDue) => &[PAYABLE],
            _ if field == self.kind.field_of(FieldRole::NetAmount) => &[field],
            _ => return false,
        };
        let labels: Vec<String> = sections
            .iter()
            .flat_map(|section| self.kind.labels.labels_of(section))
            .map(str::to_owned)
            .collect();
        let amount = amount.abs().normalize();
        if self.ground.numbers_named(&labels).any(|it| it == amount) {
            return false;
        }
        let is_net = sections == [self.kind.field_of(FieldRole::NetAmount)];
        self.ground.amounts_labelled(&labels, is_net).any(|amounts| {
            let mut data = self.extraction.data.values();
            !data.any(|value| amounts.iter().any(|it| holds_amount(value, *it)))
        })
    }

    /// Whether a short, ambiguous number is printed behind none of its labels, and another number
    /// is.
    fn prints_other_number(&self, value: &Value) -> bool {
        let number = fold_text(value.as_str().unwrap_or_default());
        if number.is_empty() || number.len() > MAX_SHORT_NUMBER_CHARS {
            return false;
        }
        let field = self.kind.field_of(FieldRole::DocumentNumber);
        let mut others = false;
        for line in self.ground.folded_lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            for at in 0..words.len() {
                let rest = words.get(at..).unwrap_or_default();
                let mut hits = self.kind.labels.labels_at(rest).into_iter();
                let hit = hits.find(|hit| hit.strong && hit.field == field);
                let behind = hit.and_then(|hit| rest.get(hit.length));
                let behind = behind.filter(|word| word.contains(|c: char| c.is_ascii_digit()));
                if behind == Some(&number.as_str()) {
                    return false;
                }
                others |= behind.is_some();
            }
        }
        others
    }

    /// Whether a tax rate of the data is not printed, and another one is printed beside a word for
    /// the tax.
    fn prints_other_rate(&self) -> bool {
        let words = self.kind.rules.iter().find_map(|rule| match &rule.check {
            RuleCheck::TaxByRate { words, .. } => Some(words),
            _ => None,
        });
        let rates = self.item_numbers(self.kind.field_of(FieldRole::Taxes), "rate");
        let printed = words.map(|words| self.ground.percentages_beside(words)).unwrap_or_default();
        let missing = |rate: &Decimal| self.ground.number_places(*rate).is_empty();
        rates.iter().any(|rate| !rate.is_zero() && missing(rate))
            && printed.iter().any(|it| !it.is_zero() && !rates.contains(it))
    }

    /// Whether a name is printed only with another legal form.
    fn prints_other_form(&self, name: &Value) -> bool {
        let folded = fold_text(name.as_str().unwrap_or_default());
        let words: Vec<&str> = folded.split(' ').collect();
        let ends = (1..words.len())
            .find(|at| self.kind.labels.is_label(LEGAL_FORM, words.get(*at..).unwrap_or_default()));
        let Some((core, form)) = ends.and_then(|at| words.split_at_checked(at)) else {
            return false;
        };
        let (core, form) = (format!(" {} ", core.join(" ")), form.join(" "));
        let spelled = |form: &str| form.split(' ').any(|word| word.len() >= MIN_SPELLED_CHARS);
        let mut others = false;
        for line in self.ground.folded_lines() {
            for (at, _) in line.match_indices(&core) {
                let rest = line.get(at + core.len()..).unwrap_or_default();
                let rest: Vec<&str> = rest.split_whitespace().take(MAX_FORM_WORDS).collect();
                let printed = self.legal_form_at(&rest);
                if printed.replace(' ', "") == form.replace(' ', "") {
                    return false;
                }
                others |= !printed.is_empty() && !spelled(&printed) && !spelled(&form);
            }
        }
        others
    }

    /// The legal form that folded words begin with, `gmbh co kg`; empty: none.
    fn legal_form_at(&self, words: &[&str]) -> String {
        let mut taken = 0;
        loop {
            let rest = words.get(taken..).unwrap_or_default();
            let hits = self.kind.labels.labels_at(rest).into_iter();
            let hit = hits.filter(|hit| hit.field == LEGAL_FORM).map(|hit| hit.length).max();
            // Only `co` may follow: after another form, `AG` may be a court (Amtsgericht).
            let goes_on =
                taken == 0 || rest.first() == Some(&"co") || words.get(taken - 1) == Some(&"co");
            match hit.filter(|_| goes_on) {
                Some(length) => taken += length,
                None => return words.get(..taken).unwrap_or_default().join(" "),
            }
        }
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

/// Section of labels of an amount that is left to pay.
pub(super) const PAYABLE: &str = "payable";
/// Section of legal forms.
const LEGAL_FORM: &str = "legal_form";
/// Maximum characters of a number that may also be a quantity or a position.
const MAX_SHORT_NUMBER_CHARS: usize = 3;
/// Maximum words after a name that may be its legal form.
const MAX_FORM_WORDS: usize = 8;
/// Minimum letters of a word that is no abbreviated legal form: `Limited`, `Group`.
const MIN_SPELLED_CHARS: usize = 5;

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

    /// Whether the pages print a VAT identifier that the data do not contain, with valid check
    /// digits or of the same country as the given one.
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
                // A misread digit would change an account on a page image.
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
pub(super) fn holds_amount(value: &Value, amount: Decimal) -> bool {
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
