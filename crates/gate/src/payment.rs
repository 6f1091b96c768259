//! Payment codes on the pages, compared with the values read from the print.
//!
//! A code is independent evidence: none of its letters can be misread, because its error correction
//! and check digits hold. It names the payee of anyone who scans it, who need not be the right one.
//! A code therefore proves nothing if it contradicts the print, breaks its own rules, or is one of
//! several that differ. A value that only the code has goes to a person.

use rust_decimal::Decimal;
use serde_json::{Number, Value};

use super::PageRegion;
use super::checks::FailedFields;
use super::subject::{GateSubject, json_decimal};
use crate::kinds::{Kind, PaymentFields, RuleCheck};
use docmill_core::model::{
    CodeSymbology, Extraction, ExtractionMethod, PageCode, PageText, Transcript,
};
use docmill_formats::notation::fold_text;
use docmill_formats::payment_code::{PaymentCode, read_payment_code};

/// The page has more codes than are kept, so that some are unread.
const TOO_MANY: &str = "too_many";
/// Codes that order different things.
const SEVERAL: &str = "several";

/// The orders for payment on the pages of a document.
#[derive(Debug, Default)]
pub(super) struct PagePayments {
    orders: Vec<(PaymentCode, PageRegion)>,
    /// Why they prove nothing, each reason once.
    defects: Vec<&'static str>,
}

/// The codes of a page that may be orders.
fn qr_codes(page: &PageText) -> impl Iterator<Item = &PageCode> {
    page.codes.iter().filter(|code| code.symbology == CodeSymbology::Qr)
}

impl PagePayments {
    pub(super) fn from_transcript(transcript: &Transcript) -> Self {
        let mut found = Self::default();
        for page in &transcript.pages {
            if qr_codes(page).count() >= PageCode::MAX_PER_PAGE {
                found.note_defect(TOO_MANY);
            }
            for code in qr_codes(page) {
                match read_payment_code(&code.payload, code.bytes) {
                    None => {}
                    Some(Err(defect)) => found.note_defect(defect.code()),
                    Some(Ok(order)) => found.orders.push((order, place_of(page, code))),
                }
            }
        }
        let first = found.orders.first().map(|(order, _)| order);
        let differs = found.orders.iter().any(|(order, _)| {
            first.is_some_and(|first| {
                (&order.iban, order.amount, &order.currency)
                    != (&first.iban, first.amount, &first.currency)
            })
        });
        if differs {
            found.note_defect(SEVERAL);
        }
        found
    }

    fn note_defect(&mut self, defect: &'static str) {
        if !self.defects.contains(&defect) {
            self.defects.push(defect);
        }
    }

    /// The order of a document on which no code is in doubt.
    fn sound_order(&self) -> Option<&(PaymentCode, PageRegion)> {
        self.orders.first().filter(|_| self.defects.is_empty())
    }
}

fn place_of(page: &PageText, code: &PageCode) -> PageRegion {
    let (page, bounding_box) = (page.number, code.bounding_box);
    PageRegion { page, bounding_box, confidence: 1.0, unwitnessed: false }
}

/// A field, and its value by an order.
struct OrderedValue<'a> {
    field: &'a str,
    value: Value,
}

/// The values of an order for the fields of a kind.
fn ordered_values<'a>(order: &PaymentCode, fields: &'a PaymentFields) -> Vec<OrderedValue<'a>> {
    let account = OrderedValue { field: &fields.account, value: order.iban.clone().into() };
    let currency = OrderedValue { field: &fields.currency, value: order.currency.clone().into() };
    let amount = order.amount.and_then(json_number);
    let total = amount.map(|value| OrderedValue { field: &fields.total, value });
    [account, currency].into_iter().chain(total).collect()
}

fn json_number(amount: Decimal) -> Option<Value> {
    let text = amount.normalize().to_string();
    text.parse::<Number>().ok().map(Value::Number)
}

/// Whether data and code agree.
fn agree(own: &Value, ordered: &Value) -> bool {
    match (own, ordered) {
        (Value::Number(_), Value::Number(_)) => json_decimal(own) == json_decimal(ordered),
        (Value::String(own), Value::String(ordered)) => {
            fold_text(own).replace(' ', "") == fold_text(ordered).replace(' ', "")
        }
        _ => false,
    }
}

/// The fields that codes contain, as the rules of a kind name them.
fn payment_fields(kind: &Kind) -> Option<&PaymentFields> {
    kind.rules.iter().find_map(|rule| match &rule.check {
        RuleCheck::PaymentCode(fields) => Some(fields),
        _ => None,
    })
}

impl GateSubject<'_> {
    /// Fields for which a code has another value, even if the code is otherwise in doubt.
    pub(super) fn fields_against_codes(&self, fields: &PaymentFields) -> FailedFields {
        let mut failed: FailedFields = Vec::new();
        for (order, _) in &self.payments.orders {
            for OrderedValue { field, value } in ordered_values(order, fields) {
                let own = self.field_value(field);
                let named = Some(field.to_owned());
                if !own.is_null() && !agree(own, &value) && !failed.contains(&named) {
                    failed.push(named);
                }
            }
        }
        failed
    }

    /// The defects of the codes, under the fields that rules about fields name.
    pub(super) fn code_defects(&self) -> FailedFields {
        self.payments.defects.iter().map(|defect| Some((*defect).to_owned())).collect()
    }

    /// Fields whose value a code has and no print.
    pub(super) fn fields_in_code_alone(&self, fields: &PaymentFields) -> FailedFields {
        let Some((order, _)) = self.payments.orders.first() else { return Vec::new() };
        let alone = ordered_values(order, fields).into_iter().filter(|ordered| {
            let own = self.field_value(ordered.field);
            ordered.field != fields.currency
                && agree(own, &ordered.value)
                && !self.ground.contains_value(own)
        });
        alone.map(|ordered| Some(ordered.field.to_owned())).collect()
    }

    /// Fields whose value a code on the page repeats, and the place of the code. None if the codes
    /// are in any doubt.
    pub(super) fn corroborated_fields(&self, kind: &Kind) -> Vec<(String, PageRegion)> {
        let (Some(fields), Some((order, place))) =
            (payment_fields(kind), self.payments.sound_order())
        else {
            return Vec::new();
        };
        if !self.fields_against_codes(fields).is_empty() {
            return Vec::new();
        }
        let values = ordered_values(order, fields).into_iter();
        let same = values.filter(|it| agree(self.field_value(it.field), &it.value));
        same.map(|it| (it.field.to_owned(), *place)).collect()
    }
}

/// Fills missing fields from a code on the pages: account, total and currency. Nothing is added if a
/// code is in doubt or contradicts the extraction, nor to the data of an attached XML.
#[must_use]
pub fn fill_from_codes(
    mut extraction: Extraction,
    transcript: &Transcript,
    kind: &Kind,
) -> Extraction {
    let Some(fields) = payment_fields(kind) else { return extraction };
    let payments = PagePayments::from_transcript(transcript);
    let Some((order, _)) = payments.sound_order() else { return extraction };
    let ordered = ordered_values(order, fields);
    let is_contradicted = ordered.iter().any(|it| {
        let own = extraction.data.get(it.field);
        own.is_some_and(|own| !own.is_null() && !agree(own, &it.value))
    });
    if is_contradicted || extraction.reader == ExtractionMethod::Einvoice {
        return extraction;
    }
    for OrderedValue { field, value } in ordered {
        if !extraction.data.get(field).unwrap_or(&Value::Null).is_null() {
            continue;
        }
        extraction.data.insert(field.to_owned(), value);
        extraction.missing_fields.retain(|missing| missing != field);
        // The certainty that there is none does not apply to the new value.
        extraction.certainties.retain(|certainty| certainty.field != field);
    }
    extraction
}
