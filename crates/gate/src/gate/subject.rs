//! What is judged: the extraction by field, and the ground its values stand on.

use std::cell::OnceCell;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use time::Date;

use super::GateLookups;
use super::ground::PrintedValues;
use super::rows::NumberRows;
use docmill_core::model::{Extraction, PageSource, Transcript};
use docmill_formats::notation::date;

/// One extraction under judgement.
pub(super) struct GateSubject<'a> {
    pub(super) extraction: &'a Extraction,
    pub(super) transcript: &'a Transcript,
    pub(super) lookups: &'a GateLookups,
    pub(super) ground: PrintedValues,
    /// Lines of the document that speak to a model.
    pub(super) instructions: usize,
    /// Put together when a rule first asks for them.
    pub(super) rows: OnceCell<NumberRows>,
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

    /// Every value that a name stands for, with its full name: `total`, or for `list.item` that
    /// field of every item, `list[0].item`.
    pub(super) fn named_values(&self, field: &str) -> Vec<(String, &Value)> {
        let Some((list, item)) = field.split_once('.') else {
            return vec![(field.to_owned(), self.field_value(field))];
        };
        let rows = self.list_items(list).enumerate();
        let values = rows
            .filter_map(|(index, row)| Some((format!("{list}[{index}].{item}"), row.get(item)?)));
        values.collect()
    }

    /// Whether a page was read by OCR.
    pub(super) fn has_ocr_page(&self) -> bool {
        self.transcript.pages.iter().any(|page| page.source == PageSource::Ocr)
    }
}

/// A JSON number as the decimal it was written as.
pub(super) fn json_decimal(value: &Value) -> Option<Decimal> {
    let text = value.as_number()?.to_string();
    Decimal::from_str(&text).or_else(|_| Decimal::from_scientific(&text)).ok()
}
