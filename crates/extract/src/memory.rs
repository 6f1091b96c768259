//! Confirmed documents of a supplier, used for its next one: where each value stood, beside which
//! label and in what form.
//!
//! A remembered value counts only where the page bears it out: a supplier's name is printed, a number
//! stands beside the remembered label in its form. Amounts count only if they add up as well. The newest
//! confirmed document wins. Not promised: layouts that change; then the reader's own doubts stay.

mod cells;

use std::collections::BTreeSet;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use self::cells::{CellIndex, decimal_to_json, json_decimal};
use super::combine::is_blank;
use docmill_core::model::{Extraction, FieldCertainty, StatedConfidence, Transcript};
use docmill_formats::notation::account::find_iban_at;
use docmill_formats::notation::currency::CurrencyMark;
use docmill_formats::notation::{fold_text, printed_vat_id};
use docmill_gate::kinds::{FieldRole as R, FieldType, Kind};
use docmill_gate::{has_number_form, read_number_form};

/// Certainty of a value that the reader and the memory agree about.
const AGREED: f32 = 0.97;
/// Certainty of a value that the memory alone has found.
const REMEMBERED: f32 = 0.9;
/// Certainty of a value about which reader and memory differ.
const DISPUTED: f32 = 0.4;
/// Certainty from which on a reader's value is not replaced; as the rule `uncertain` of invoices.
const CERTAIN: f32 = 0.85;
/// Confirmed documents that are used.
pub const MAX_REMEMBERED: usize = 3;
/// Identifiers and names of a document by which its supplier is looked for.
const MAX_IDENTIFIERS: usize = 64;
const MAX_NAMES: usize = 400;

/// A confirmed document.
#[derive(Debug, Clone)]
pub struct RememberedPages {
    /// Its pages as they were read.
    pub transcript: Arc<Transcript>,
    /// Its confirmed data.
    pub data: Map<String, Value>,
    /// Since when it is confirmed.
    pub learned_at: OffsetDateTime,
}

/// The confirmed documents of the supplier of a document.
#[derive(Debug, Clone, Default)]
pub struct SupplierRecall {
    /// The newest first.
    pub documents: Vec<RememberedPages>,
    /// The document prints an account of the supplier: no other party has that.
    pub prints_account: bool,
}

/// Printed values of a document that may identify its supplier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedIdentifiers {
    /// VAT identifiers.
    pub vat_ids: BTreeSet<String>,
    /// Accounts (IBAN).
    pub accounts: BTreeSet<String>,
    /// Texts that may be names.
    pub names: BTreeSet<String>,
}

/// Finds what the pages print that may identify a supplier.
pub fn find_identifiers(transcript: &Transcript) -> PrintedIdentifiers {
    let index = CellIndex::new(transcript);
    let mut found = PrintedIdentifiers::default();
    for words in index.rows() {
        for at in 0..words.len() {
            let rest = words.get(at..).unwrap_or_default();
            if let Some((id, _)) = printed_vat_id::find_at(rest)
                && found.vat_ids.len() < MAX_IDENTIFIERS
            {
                found.vat_ids.insert(id);
            }
            if let Some((account, _)) = find_iban_at(rest)
                && found.accounts.len() < MAX_IDENTIFIERS
            {
                found.accounts.insert(account);
            }
        }
    }
    found.names.extend(index.texts().take(MAX_NAMES));
    found
}

/// Holds what the rules reader has read against the confirmed documents of the supplier.
#[must_use]
pub fn apply_memory(
    extraction: Extraction,
    transcript: &Transcript,
    kind: &Kind,
    recall: &SupplierRecall,
) -> Extraction {
    let documents: Vec<IndexedDocument<'_>> = recall
        .documents
        .iter()
        .take(MAX_REMEMBERED)
        .map(|it| IndexedDocument { index: CellIndex::new(&it.transcript), data: &it.data })
        .collect();
    let mut reading = MemoryReading {
        kind,
        pages: CellIndex::new(transcript),
        documents,
        prints_account: recall.prints_account,
        extraction,
    };
    if reading.documents.is_empty() || reading.is_of_buyer() {
        return reading.extraction;
    }
    reading.read_fields();
    reading.read_amounts();
    reading.restate();
    reading.extraction
}

struct IndexedDocument<'a> {
    index: CellIndex,
    data: &'a Map<String, Value>,
}

struct MemoryReading<'a> {
    kind: &'a Kind,
    pages: CellIndex,
    /// The newest first; never empty.
    documents: Vec<IndexedDocument<'a>>,
    prints_account: bool,
    extraction: Extraction,
}

impl MemoryReading<'_> {
    fn own(&self, field: &str) -> &Value {
        self.extraction.data.get(field).unwrap_or(&Value::Null)
    }

    fn own_of(&self, role: R) -> &Value {
        self.own(self.kind.field_of(role))
    }

    /// The value of the newest confirmed document.
    fn newest(&self, field: &str) -> &Value {
        self.documents.first().and_then(|it| it.data.get(field)).unwrap_or(&Value::Null)
    }

    /// Whether the document is addressed to the remembered supplier: one of our own, say.
    fn is_of_buyer(&self) -> bool {
        [(R::BuyerName, R::SupplierName), (R::BuyerVatId, R::SupplierVatId)].into_iter().any(
            |(buyer, supplier)| {
                let (own, known) = (self.own_of(buyer), self.newest(self.kind.field_of(supplier)));
                !is_blank(own) && is_same(own, known)
            },
        )
    }

    fn read_fields(&mut self) {
        let kind = self.kind;
        for (field, field_type) in kind.fields() {
            match kind.role_of(field) {
                Some(
                    R::SupplierName
                    | R::SupplierAddress
                    | R::SupplierVatId
                    | R::Bic
                    | R::TradingName,
                ) => self.read_constant(field),
                Some(R::Currency) => self.read_currency(field),
                Some(R::Iban) => self.fill_account(field),
                // Amounts are read together; what the buyer is called is no fact of the supplier.
                Some(R::NetAmount | R::TaxAmount | R::Total | R::BuyerName | R::BuyerVatId) => {}
                _ => match field_type {
                    FieldType::Text | FieldType::Date => self.read_variable(field),
                    _ => {}
                },
            }
        }
    }

    /// A property of the supplier.
    fn read_constant(&mut self, field: &str) {
        let (own, known) = (self.own(field).clone(), self.newest(field).clone());
        let Some(text) = known.as_str().filter(|text| !text.trim().is_empty()) else {
            return self.note_absence(field);
        };
        let is_printed = self.pages.prints(text) || self.pages.prints_words(text);
        if is_same(&own, &known) {
            if is_printed {
                self.put(field, known, AGREED);
            }
        } else if is_printed && self.prints_account {
            // A part of the name, or another spelling, where the reader has doubts anyway.
            let is_open = own.is_null() || self.certainty(field) < CERTAIN || holds(&own, &known);
            // An address is written in many ways.
            let is_spelled_freely = self.kind.role_of(field) == Some(R::SupplierAddress);
            match (is_open, is_spelled_freely) {
                (true, _) => self.put(field, known, AGREED),
                (false, true) => {}
                (false, false) => self.note_certainty(field, DISPUTED),
            }
        }
    }

    /// The currency: filled only if the pages print it, and no other one.
    fn read_currency(&mut self, field: &str) {
        let (own, known) = (self.own(field).clone(), self.newest(field).clone());
        let Some(code) = known.as_str() else { return };
        let marks: BTreeSet<&str> = self.pages.words().filter(|word| is_mark(word)).collect();
        let may_mean =
            |word: &&&str| CurrencyMark::from_word(word).is_some_and(|it| it.may_mean(code));
        let is_printed = !marks.is_empty() && marks.iter().all(|word| may_mean(&word));
        if is_printed && (own.is_null() || own == known || self.certainty(field) < CERTAIN) {
            self.put(field, known, AGREED);
        }
    }

    /// The account is filled where the reader has none; another one is the gate's to judge.
    fn fill_account(&mut self, field: &str) {
        let known = self.newest(field).clone();
        let is_printed = known.as_str().is_some_and(|account| self.pages.prints(account));
        if self.own(field).is_null() && is_printed {
            self.put(field, known, AGREED);
        }
    }

    /// A value of the document itself: by label and form.
    fn read_variable(&mut self, field: &str) {
        let Some(found) = self.recall(field) else {
            if self.documents.iter().all(|it| is_blank(it.data.get(field).unwrap_or(&Value::Null)))
            {
                self.note_absence(field);
            }
            return;
        };
        let own = self.own(field).clone();
        if is_same(&own, &found) {
            self.note_certainty(field, AGREED.max(self.certainty(field)));
        } else if own.is_null() || self.certainty(field) < CERTAIN {
            self.put(field, found, REMEMBERED);
        } else {
            self.note_certainty(field, DISPUTED);
        }
    }

    /// The one value that stands where the newest confirmed document that says anything had it.
    fn recall(&self, field: &str) -> Option<Value> {
        self.documents.iter().find_map(|document| self.recall_by(document, field))
    }

    /// None where the places lead to different values: one of them had the same value by chance, as a day
    /// of delivery may be the day of issue.
    fn recall_by(&self, document: &IndexedDocument<'_>, field: &str) -> Option<Value> {
        let known = document.data.get(field).filter(|value| !is_blank(value))?;
        let mut found: Option<Value> = None;
        for place in document.index.value_places(known) {
            for label in document.index.labels_of(&place) {
                let values = self.pages.values_beside(&label, place.notation());
                for value in values.into_iter().filter(|value| has_form_of(value, known)) {
                    if found.as_ref().is_some_and(|found| *found != value) {
                        return None;
                    }
                    found = Some(value);
                }
            }
        }
        found
    }

    /// The amounts: borne out by the labels, and only if they add up.
    fn read_amounts(&mut self) {
        let fields = [R::NetAmount, R::TaxAmount, R::Total].map(|role| self.kind.field_of(role));
        let fields = fields.map(str::to_owned);
        let recalled =
            fields.each_ref().map(|field| self.recall(field).as_ref().and_then(json_decimal));
        let own = fields.each_ref().map(|field| json_decimal(self.own(field)));
        let [.., total] = &recalled;
        let agree = recalled.iter().zip(&own).all(|(recalled, own)| match (recalled, own) {
            (Some(recalled), Some(own)) => recalled.abs() == own.abs(),
            (None, _) => true,
            (Some(_), None) => false,
        });
        if agree && total.is_some() && (adds_up(&own) || self.lines_make(&own)) {
            for field in &fields {
                self.note_certainty(field, AGREED.max(self.certainty(field)));
            }
        } else if !agree && adds_up(&recalled) && !adds_up(&own) {
            for (field, value) in fields.iter().zip(recalled) {
                if let Some(value) = value.and_then(decimal_to_json) {
                    self.put(field, value, REMEMBERED);
                }
            }
        } else if !agree && total.is_some() {
            let [.., field] = &fields;
            self.note_certainty(field, DISPUTED);
        }
    }

    /// Whether an invoice without tax has lines that make its total, as the confirmed ones had none.
    fn lines_make(&self, [net, tax, total]: &[Option<Decimal>; 3]) -> bool {
        let untaxed = [R::NetAmount, R::TaxAmount].into_iter().all(|role| {
            let field = self.kind.field_of(role);
            self.documents.iter().all(|it| it.data.get(field).is_none_or(Value::is_null))
        });
        let lines = self.own_of(R::Lines).as_array();
        let amounts: Option<Vec<Decimal>> = lines
            .and_then(|lines| lines.iter().map(|line| json_decimal(line.get("amount")?)).collect());
        let sum = amounts.filter(|amounts| !amounts.is_empty());
        let sum = sum.map(|amounts| amounts.into_iter().sum::<Decimal>());
        untaxed && net.is_none() && tax.is_none() && sum.is_some() && sum == *total
    }

    /// The confirmed documents have no such value either.
    fn note_absence(&mut self, field: &str) {
        let none = |it: &IndexedDocument<'_>| is_blank(it.data.get(field).unwrap_or(&Value::Null));
        if self.own(field).is_null() && self.documents.iter().all(none) {
            self.note_certainty(field, AGREED.max(self.certainty(field)));
        }
    }

    /// The least certainty that the reader states; a field that it does not weigh is certain.
    fn certainty(&self, field: &str) -> f32 {
        let own = self.extraction.certainties.iter().filter(|one| one.field == field);
        own.map(|one| one.certainty).fold(1.0, f32::min)
    }

    fn note_certainty(&mut self, field: &str, certainty: f32) {
        self.extraction.certainties.retain(|one| one.field != field);
        self.extraction.certainties.push(FieldCertainty { field: field.to_owned(), certainty });
    }

    fn put(&mut self, field: &str, value: Value, certainty: f32) {
        self.note_certainty(field, certainty);
        self.extraction.data.insert(field.to_owned(), value);
    }

    /// The reader's own statement, as it would be with the values as they are now.
    fn restate(&mut self) {
        let data = &self.extraction.data;
        let required = self.kind.required_fields();
        let is_known = |field: &str| data.get(field).is_some_and(|value| !value.is_null());
        let currency = self.kind.field_of(R::Currency);
        let weighed =
            required.iter().copied().chain([currency]).filter(|it| self.kind.has_field(it));
        let is_sure =
            weighed.into_iter().all(|field| is_known(field) && self.certainty(field) >= CERTAIN);
        let is_whole = !required.is_empty() && required.iter().all(|field| is_known(field));
        if is_whole {
            self.extraction.successful = true;
        }
        if is_whole && is_sure {
            self.extraction.confidence = StatedConfidence::High;
        }
        let empty = self.extraction.data.iter().filter(|(_, value)| value.is_null());
        self.extraction.missing_fields = empty.map(|(field, _)| field.clone()).collect();
    }
}

/// Whether net and tax make the total, all three known.
fn adds_up(amounts: &[Option<Decimal>; 3]) -> bool {
    match amounts {
        [Some(net), Some(tax), Some(total)] => net.checked_add(*tax) == Some(*total),
        _ => false,
    }
}

/// Whether a word is a currency and nothing else.
fn is_mark(word: &str) -> bool {
    let plain = word.trim_matches(|c: char| c.is_ascii_digit() || ",.-:;()'".contains(c));
    CurrencyMark::from_word(plain).is_some()
        && !docmill_formats::notation::currency::is_also_word(plain)
}

/// Whether two values say the same, folded.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            compact(one) == compact(other) && !compact(one).is_empty()
        }
        (Value::Number(_), Value::Number(_)) => json_decimal(one) == json_decimal(other),
        _ => false,
    }
}

/// Whether one of two texts holds the other.
fn holds(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_str().map(compact), other.as_str().map(compact)) else {
        return false;
    };
    one.contains(&other) || other.contains(&one)
}

fn compact(text: &str) -> String {
    fold_text(text).chars().filter(|c| *c != ' ').collect()
}

/// Whether a value has the form of a confirmed one; dates and numbers were read as such.
fn has_form_of(value: &Value, known: &Value) -> bool {
    match (value, known) {
        (Value::String(value), Value::String(known)) => {
            docmill_formats::notation::date::parse_iso(known).is_some()
                || has_number_form(&read_number_form(value), &read_number_form(known))
        }
        (Value::Number(_), Value::Number(_)) => true,
        _ => false,
    }
}
