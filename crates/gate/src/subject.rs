//! The input of the gate's checks: the extraction by field, and the printed values behind it.

use std::cell::OnceCell;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use time::Date;

use super::GateLookups;
use super::ground::PrintedValues;
use super::payment::PagePayments;
use super::rows::NumberRows;
use crate::kinds::Kind;
use docmill_core::model::{Extraction, PageSource, Transcript};
use docmill_formats::notation::date;

/// One extraction under judgement.
pub(super) struct GateSubject<'a> {
    pub(super) extraction: &'a Extraction,
    pub(super) transcript: &'a Transcript,
    pub(super) kind: &'a Kind,
    pub(super) lookups: &'a GateLookups,
    pub(super) ground: PrintedValues,
    /// Lines of the document that speak to a model.
    pub(super) instructions: usize,
    /// Put together when a rule first asks for them.
    pub(super) rows: OnceCell<NumberRows>,
    /// The orders of payment codes on the pages.
    pub(super) payments: PagePayments,
}

impl GateSubject<'_> {
    /// The field's value; null if it is not there.
    pub(super) fn field_value(&self, field: &str) -> &Value {
        self.extraction.data.get(field).unwrap_or(&Value::Null)
    }

    pub(super) fn field_number(&self, field: &str) -> Option<Decimal> {
        json_decimal(self.field_value(field))
    }

    pub(super) fn field_date(&self, field: &str) -> Option<Date> {
        date::parse_iso(self.field_value(field).as_str()?)
    }

    pub(super) fn list_items(&self, list: &str) -> impl Iterator<Item = &Map<String, Value>> {
        self.field_value(list).as_array().into_iter().flatten().filter_map(Value::as_object)
    }

    pub(super) fn item_numbers(&self, list: &str, item: &str) -> Vec<Decimal> {
        self.list_items(list).filter_map(|row| json_decimal(row.get(item)?)).collect()
    }

    pub(super) fn number_rows(&self) -> &NumberRows {
        self.rows.get_or_init(|| NumberRows::from_transcript(self.transcript))
    }

    /// Every value of a field name, with its full name: `total`, or for `list.item` that field of
    /// every item, `list[0].item`. A list of single values gives each, `list[0]`; an empty one
    /// gives none. Fields of an object that is null are absent.
    pub(super) fn named_values(&self, field: &str) -> Vec<(String, &Value)> {
        let (first, path) = field.split_once('.').unwrap_or((field, ""));
        let mut found = Vec::new();
        add_values(first.to_owned(), self.field_value(first), path, &mut found);
        found
    }

    /// Whether a page was read by OCR.
    pub(super) fn has_ocr_page(&self) -> bool {
        self.transcript.pages.iter().any(|page| page.source == PageSource::Ocr)
    }

    /// Whether a field's value is in text of the file, where no letter is misread, even if other
    /// pages were read by OCR.
    pub(super) fn is_of_file(&self, field: Option<&str>) -> bool {
        let Some(value) = field.map(|field| self.field_value(field)) else { return false };
        self.ground.value_places(value).iter().any(|place| {
            let page = self.transcript.pages.iter().find(|page| page.number == place.page);
            page.is_some_and(|page| page.source == PageSource::Native)
        })
    }
}

fn add_values<'v>(
    name: String,
    value: &'v Value,
    path: &str,
    found: &mut Vec<(String, &'v Value)>,
) {
    match value {
        Value::Array(list) if !path.is_empty() || !list.iter().any(Value::is_object) => {
            for (index, entry) in list.iter().enumerate() {
                add_values(format!("{name}[{index}]"), entry, path, found);
            }
        }
        Value::Object(object) if !path.is_empty() => {
            let (step, rest) = path.split_once('.').unwrap_or((path, ""));
            if let Some(inner) = object.get(step) {
                add_values(format!("{name}.{step}"), inner, rest, found);
            }
        }
        value if path.is_empty() => found.push((name, value)),
        _ => {}
    }
}

/// The names by which [`GateSubject::named_values`] finds all single values within one: those of a
/// list's first entry stand for all.
pub(super) fn names_within(name: &str, value: &Value, found: &mut Vec<String>) {
    let row = value.as_array().and_then(|rows| rows.iter().find_map(Value::as_object));
    match row.or(value.as_object()) {
        Some(fields) => {
            for (step, inner) in fields {
                names_within(&format!("{name}.{step}"), inner, found);
            }
        }
        None => found.push(name.to_owned()),
    }
}

/// A JSON number as the decimal it was written as.
pub(super) fn json_decimal(value: &Value) -> Option<Decimal> {
    let text = value.as_number()?.to_string();
    Decimal::from_str(&text).or_else(|_| Decimal::from_scientific(&text)).ok()
}
