//! Fields that a service read of the same pages by itself: what it reads alike confirms a value, and
//! what it reads otherwise is flagged.
//!
//! Names are confirmed and never flagged: one company has several. A sort that the service read with
//! several values contradicts nothing either.

use rust_decimal::Decimal;
use serde_json::Value;

use super::subject::{GateSubject, json_decimal};
use super::{GateFinding, SecondReading};
use crate::kinds::{FieldRole, Kind, RuleConsequence};
use docmill_core::expense::ExpenseField;
use docmill_core::model::{ExtractionMethod, PageRegion};
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
            differs.then(|| GateFinding {
                rule: RULE.to_owned(),
                field: Some(field.to_owned()),
                consequence: RuleConsequence::Flag,
            })
        });
        differing.collect()
    }

    fn decimal_mark(&self) -> Option<DecimalSeparator> {
        let lines = self.transcript.pages.iter().flat_map(|page| &page.lines);
        DecimalSeparator::from_words(lines.flat_map(|line| &line.words).map(|it| it.text.as_str()))
    }
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
