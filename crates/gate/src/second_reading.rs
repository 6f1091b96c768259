//! Fields that a service read of the same pages by itself: what it reads alike confirms a value, and
//! what it reads otherwise is flagged.
//!
//! For a model the rules reader is such a second reader. It confirms nothing, because it reads the
//! same words. A value that it is certain of is flagged where the model has another or none.
//!
//! Names are confirmed and never flagged: one company has several. A sort that the service read with
//! several values contradicts nothing either.

use rust_decimal::Decimal;
use serde_json::Value;

use super::subject::{GateSubject, json_decimal};
use super::{GateFinding, SecondReading};
use crate::kinds::{FieldRole, Kind, RuleCheck, RuleConsequence};
use docmill_core::expense::ExpenseField;
use docmill_core::model::{Extraction, ExtractionMethod, PageRegion, StatedConfidence};
use docmill_formats::notation::date::{find_dates, parse_iso};
use docmill_formats::notation::fold_text;
use docmill_formats::notation::number::{DecimalSeparator, parse_number};
use docmill_formats::notation::party_name::FoldedName;

/// The name under which reviewers see a contradiction.
const RULE: &str = "read_otherwise";
/// Values of a lower confidence neither confirm nor contradict.
const MIN_CONFIDENCE: f32 = 0.8;

/// The service's words for roles, and whether another value contradicts.
const ROLES: [(&str, FieldRole, bool); 14] = [
    ("VENDOR_NAME", FieldRole::SupplierName, false),
    ("VENDOR_VAT_NUMBER", FieldRole::SupplierVatId, true),
    ("RECEIVER_NAME", FieldRole::BuyerName, false),
    ("RECEIVER_VAT_NUMBER", FieldRole::BuyerVatId, true),
    ("INVOICE_RECEIPT_ID", FieldRole::DocumentNumber, true),
    ("PO_NUMBER", FieldRole::OrderNumber, false),
    ("INVOICE_RECEIPT_DATE", FieldRole::IssueDate, true),
    ("DUE_DATE", FieldRole::DueDate, true),
    ("DELIVERY_DATE", FieldRole::DeliveryDate, false),
    ("SUBTOTAL", FieldRole::NetAmount, true),
    ("TAX", FieldRole::TaxAmount, true),
    ("TOTAL", FieldRole::Total, true),
    ("AMOUNT_PAID", FieldRole::PaidAmount, false),
    ("AMOUNT_DUE", FieldRole::AmountDue, false),
];
/// Fields of the supplier.
const PARTY: [FieldRole; 2] = [FieldRole::SupplierAddress, FieldRole::SupplierVatId];
/// The service's words for the fields of a line.
const COLUMNS: [(&str, &str); 3] =
    [("QUANTITY", "quantity"), ("UNIT_PRICE", "unit_price"), ("PRICE", "amount")];

impl GateSubject<'_> {
    /// Whether there is a second reading, and the data are not a file's own.
    fn second_reading(&self) -> Option<&SecondReading> {
        let second = self.lookups.second_reading.as_ref();
        second.filter(|_| self.extraction.reader != ExtractionMethod::Einvoice)
    }

    /// Fields that the service read alike, and where: none if the pages' words are its own.
    pub(super) fn fields_read_twice(&self, kind: &Kind) -> Vec<(String, PageRegion)> {
        let Some(second) = self.second_reading().filter(|second| second.is_independent) else {
            return Vec::new();
        };
        let mark = self.decimal_mark();
        let mut alike = Vec::new();
        for (name, role, _) in ROLES {
            let field = kind.field_of(role);
            let own = self.field_value(field);
            let read = certain_fields(&second.reading.fields, name);
            alike.extend(
                read.filter(|read| is_alike(own, &read.text, mark))
                    .take(1)
                    .map(|read| (field.to_owned(), read.place)),
            );
        }
        let list = kind.field_of(FieldRole::Lines);
        for (at, row) in self.list_items(list).enumerate() {
            // Lines of both readings stand in the order of the pages.
            let Some(line) = second.reading.lines.get(at) else { break };
            for (name, column) in COLUMNS {
                let own = row.get(column).unwrap_or(&Value::Null);
                let mut read = certain_fields(line, name);
                if let Some(read) = read.find(|read| is_alike(own, &read.text, mark)) {
                    alike.push((format!("{list}[{at}].{column}"), read.place));
                }
            }
        }
        alike
    }

    /// Fields whose one value the service read otherwise.
    pub(super) fn fields_read_otherwise(&self, kind: &Kind) -> Vec<GateFinding> {
        let Some(second) = self.second_reading() else { return Vec::new() };
        let mark = self.decimal_mark();
        let contradicting = ROLES.into_iter().filter(|(.., contradicts)| *contradicts);
        let differing = contradicting.filter_map(|(name, role, _)| {
            let field = kind.field_of(role);
            let own = self.field_value(field);
            let read: Vec<&ExpenseField> = certain_fields(&second.reading.fields, name).collect();
            let [first, others @ ..] = read.as_slice() else { return None };
            let is_one =
                others.iter().all(|other| fold_text(&other.text) == fold_text(&first.text));
            let differs = is_one && is_other(own, &first.text, mark);
            differs.then(|| read_otherwise(field))
        });
        differing.collect()
    }

    /// Fields that the rules reader read with the certainty that the kind requires, and that the
    /// model read differently or omitted.
    pub(super) fn fields_ruled_otherwise(&self, kind: &Kind) -> Vec<GateFinding> {
        let rules = self.lookups.rules_reading.as_deref();
        // A doubtful reading contradicts nothing.
        let sure = rules.filter(|rules| rules.confidence == StatedConfidence::High);
        let Some(rules) = sure else { return Vec::new() };
        let checks = kind.rules.iter().filter_map(|rule| match &rule.check {
            RuleCheck::Certain { fields, least } => Some((fields, *least)),
            _ => None,
        });
        let certain = checks.flat_map(|(fields, least)| {
            fields.iter().filter(move |field| {
                // With the wrong supplier, all its fields are wrong.
                let of_party = matches!(kind.role_of(field), Some(role) if PARTY.contains(&role));
                let name = kind.field_of(FieldRole::SupplierName);
                is_certain(rules, field, least) && (!of_party || is_certain(rules, name, least))
            })
        });
        let differing = certain.filter(|field| {
            let read = rules.data.get(*field).unwrap_or(&Value::Null);
            !read.is_null() && !self.is_ruled_alike(field, kind, read)
        });
        differing.map(|field| read_otherwise(field)).collect()
    }

    /// Whether a field equals the rules reader's value up to notation.
    fn is_ruled_alike(&self, field: &str, kind: &Kind, read: &Value) -> bool {
        let own = self.field_value(field);
        match (own, read) {
            (Value::Null, _) => !self.is_printed_itself(read),
            (_, Value::Number(_)) => {
                json_decimal(own).map(|it| it.abs()) == json_decimal(read).map(|it| it.abs())
            }
            (Value::String(own), Value::String(read)) => match kind.role_of(field) {
                Some(FieldRole::SupplierName | FieldRole::SupplierAddress) => {
                    shares_a_word(own, read)
                }
                // Its country may be printed elsewhere.
                Some(FieldRole::SupplierVatId) => {
                    let (own, read) = (plain(own), plain(read));
                    own.ends_with(&read) || !own.is_empty() && read.ends_with(&own)
                }
                _ => plain(own) == plain(read),
            },
            _ => false,
        }
    }

    /// Whether a value is printed. A model need not have zero, or values that the rules reader
    /// derived.
    fn is_printed_itself(&self, value: &Value) -> bool {
        let is_nought = json_decimal(value).is_some_and(|amount| amount.is_zero());
        let is_plain = value.as_str().is_some_and(|text| parse_iso(text).is_none());
        !is_nought && (is_plain || self.ground.contains_value(value))
    }

    pub(super) fn decimal_mark(&self) -> Option<DecimalSeparator> {
        let lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        DecimalSeparator::from_words(lines.flat_map(|line| &line.words).map(|it| it.text.as_str()))
    }
}

fn is_certain(rules: &Extraction, field: &str, least: f32) -> bool {
    rules.certainties.iter().any(|one| one.field == field && one.certainty >= least)
}

fn read_otherwise(field: &str) -> GateFinding {
    let (rule, field) = (RULE.to_owned(), Some(field.to_owned()));
    GateFinding { rule, field, consequence: RuleConsequence::Flag }
}

/// Whether two names or addresses have a word in common; one with a digit, if both have such.
fn shares_a_word(own: &str, read: &str) -> bool {
    let [own, read] = [own, read].map(|text| FoldedName::new(text).words);
    let numbered = |words: &[String]| -> Vec<String> {
        words.iter().filter(|word| word.contains(|c: char| c.is_ascii_digit())).cloned().collect()
    };
    let (some, others) = (numbered(&own), numbered(&read));
    let (own, read) =
        if some.is_empty() || others.is_empty() { (own, read) } else { (some, others) };
    own.iter().any(|word| read.contains(word)) || own.concat() == read.concat()
}

fn certain_fields<'f>(
    fields: &'f [ExpenseField],
    name: &'static str,
) -> impl Iterator<Item = &'f ExpenseField> {
    fields.iter().filter(move |it| it.name == name && it.place.confidence >= MIN_CONFIDENCE)
}

/// Whether a printed text has the value. Signs are not compared: credits are printed either way.
fn is_alike(own: &Value, text: &str, mark: Option<DecimalSeparator>) -> bool {
    match own {
        Value::Number(_) => {
            json_decimal(own).is_some_and(|own| read_amount(text, mark) == Some(own.abs()))
        }
        Value::String(own) => match parse_iso(own) {
            Some(day) => find_dates(text)
                .iter()
                .any(|it| it.day_first == Some(day) || it.month_first == Some(day)),
            None => plain(own) == plain(text) || is_same_name(own, text),
        },
        _ => false,
    }
}

/// Whether two texts are one name: an identifier is one only letter by letter.
fn is_same_name(own: &str, text: &str) -> bool {
    !own.contains(|c: char| c.is_ascii_digit())
        && FoldedName::new(own).may_equal(&FoldedName::new(text))
}

/// Whether a printed text is a value of the same sort, and another one.
fn is_other(own: &Value, text: &str, mark: Option<DecimalSeparator>) -> bool {
    let is_value = match own {
        Value::Number(_) => read_amount(text, mark).is_some(),
        Value::String(own) if parse_iso(own).is_some() => !find_dates(text).is_empty(),
        Value::String(_) => true,
        _ => false,
    };
    is_value && !is_alike(own, text, mark)
}

/// The amount that a text is, without its sign and currency.
fn read_amount(text: &str, mark: Option<DecimalSeparator>) -> Option<Decimal> {
    let digits = text.trim_matches(|c: char| !c.is_ascii_digit());
    parse_number(digits, mark).map(|amount| amount.abs())
}

/// Letters and digits alone.
fn plain(text: &str) -> String {
    fold_text(text).chars().filter(|c| c.is_alphanumeric()).collect()
}
