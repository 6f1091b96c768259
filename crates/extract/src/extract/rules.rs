//! The offline reader: labels and layout, no model. What a kind's `labels.toml` names is looked for
//! beside the labels; totals, supplier and line items have readers of their own.
//!
//! It says of itself how sure it is, but does not check the result: that is the gate's.

#[cfg(test)]
mod eleven;
mod fields;
mod items;
#[cfg(test)]
mod languages;
mod layout;
mod money;
mod spots;
mod supplier;
#[cfg(test)]
mod tests;
mod totals;
mod words;

use rust_decimal::Decimal;
use serde_json::{Map, Number, Value};

use self::fields::Calendar;
use self::layout::{Cell, Layout};
use self::spots::Spots;
use crate::kinds::{FieldType, Kind, Written};
use crate::model::{Confidence, Evidence, Extraction, Reader, Transcript, Usage};
use crate::notation::date;
use crate::notation::number::{self, Mark};

/// A value, whether the reader is sure of it, and where it stands.
#[derive(Debug, Clone)]
struct Found<T> {
    value: T,
    certain: bool,
    page: usize,
    line: u32,
    /// Index into `Layout::cells`, where it matters.
    cell: usize,
}

impl<T> Found<T> {
    fn new(value: T, certain: bool, cell: &Cell) -> Self {
        Self { value, certain, page: cell.page, line: cell.line, cell: usize::MAX }
    }

    fn at(value: T, certain: bool, cell: &Cell, index: usize) -> Self {
        Self { cell: index, ..Self::new(value, certain, cell) }
    }
}

fn abs_close(a: Decimal, b: Decimal, tolerance: Decimal) -> bool {
    (a - b).abs() <= tolerance
}

/// Reads a transcript.
///
/// `successful` when the fields that the kind's rules require were found, and anything at all;
/// `confidence` is high only if nothing of them was ambiguous.
pub fn extract(transcript: &Transcript, kind: &Kind) -> Extraction {
    let layout = Layout::new(transcript);
    let spots = Spots::new(&layout, &kind.labels);
    let words = layout.cells.iter().flat_map(|cell| cell.words.iter().map(String::as_str));
    let roles = Roles::of(kind);
    let mut reading = Reading {
        kind,
        roles,
        transcript,
        mark: Mark::of(words),
        data: kind.fields().map(|(name, _)| (name.to_owned(), Value::Null)).collect(),
        evidence: Vec::new(),
        doubts: 0,
    };
    reading.read(&spots);
    reading.finish()
}

/// Which of a kind's fields say which document it is.
struct Roles<'a> {
    required: Vec<&'a str>,
    /// Its own number.
    number: Option<&'a str>,
    /// The day it was written.
    date: Option<&'a str>,
    /// Other days it names.
    other_dates: Vec<&'a str>,
}

impl<'a> Roles<'a> {
    /// The required ones, else those that come first.
    fn of(kind: &'a Kind) -> Self {
        let required = kind.required();
        let own: Vec<(&str, FieldType)> =
            kind.fields().filter(|(name, _)| !SPECIAL.contains(name)).collect();
        let first = |wanted: &dyn Fn(&str, FieldType) -> bool| {
            let able = own.iter().filter(|(name, of)| wanted(name, *of)).map(|(name, _)| *name);
            let able: Vec<&str> = able.collect();
            able.iter().find(|name| required.contains(name)).or(able.first()).copied()
        };
        let is_number = |name: &str, of: FieldType| {
            of == FieldType::Text && kind.labels.written(name) == Written::Identifier
        };
        let date = first(&|_, of| of == FieldType::Date);
        let dates = own.iter().filter(|(_, of)| *of == FieldType::Date).map(|(name, _)| *name);
        Self {
            number: first(&is_number),
            date,
            other_dates: dates.filter(|name| Some(*name) != date).collect(),
            required,
        }
    }
}

struct Reading<'a> {
    kind: &'a Kind,
    roles: Roles<'a>,
    transcript: &'a Transcript,
    mark: Option<Mark>,
    data: Map<String, Value>,
    evidence: Vec<Evidence>,
    /// Values of required fields and names that are not certain.
    doubts: usize,
}

/// Fields with a reader of their own.
const SPECIAL: [&str; 7] = [
    "supplier_name",
    "supplier_address",
    "supplier_vat_id",
    "currency",
    "subtotal",
    "vat_amount",
    "total",
];

impl Reading<'_> {
    fn read(&mut self, spots: &Spots<'_>) {
        let currency = money::find(spots);
        let code = currency.as_ref().map(|found| found.value);
        let calendar = Calendar::of(spots.layout, code);
        let plain: Vec<(String, FieldType)> = self
            .kind
            .fields()
            .filter(|(name, _)| !SPECIAL.contains(name))
            .map(|(name, of)| (name.to_owned(), of))
            .collect();
        for (name, field_type) in plain {
            match field_type {
                FieldType::Date => self.read_date(spots, &calendar, &name),
                FieldType::Text => {
                    let found = match self.kind.labels.written(&name) {
                        Written::Identifier => fields::identifier(spots, &name),
                        Written::Words => words::beside(spots, &name),
                        Written::Title => words::title(spots),
                    };
                    self.put(&name, found.map(|f| f.map(Value::String)));
                }
                FieldType::Number => self.read_number(spots, &name),
                FieldType::List => self.read_items(spots, &name),
                FieldType::Boolean => {}
            }
        }
        self.read_totals(spots, currency);
        if self.kind.has("supplier_name") {
            self.read_supplier();
        }
    }

    /// Suppliers stand on the first pages or the last; looking for them takes the square of the
    /// cells.
    fn read_supplier(&mut self) {
        let pages = self.transcript.pages.len();
        let layout = Layout::of_pages(self.transcript, |page| page < 3 || page + 1 == pages);
        let spots = Spots::new(&layout, &self.kind.labels);
        let supplier = supplier::find(&spots, &self.kind.labels);
        self.put("supplier_name", supplier.name.map(|f| f.map(Value::String)));
        self.put("supplier_address", supplier.address.map(|f| f.map(Value::String)));
        self.put("supplier_vat_id", supplier.vat_id.map(|f| f.map(Value::String)));
    }

    fn read_date(&mut self, spots: &Spots<'_>, calendar: &Calendar, name: &str) {
        let number = self.roles.number.unwrap_or_default();
        let mut found = fields::date(spots, calendar, (name, number));
        if self.roles.date == Some(name) && found.as_ref().is_none_or(|found| !found.certain) {
            let title = fields::date_of_title(spots, calendar, number);
            let others = &self.roles.other_dates;
            found = title.or(found).or_else(|| fields::unlabelled_date(spots, calendar, others));
        }
        self.put(name, found.map(|f| f.map(|date| Value::String(date::to_iso(date)))));
    }

    fn read_number(&mut self, spots: &Spots<'_>, name: &str) {
        let found = spots.of(name).find_map(|spot| {
            let beside = spots.beside(spot).into_iter();
            beside.into_iter().find_map(|beside| {
                let amount = number::find(&beside.words(), self.mark).into_iter().next()?;
                Some(Found::new(amount.value, spot.strong, beside.cell))
            })
        });
        self.put(name, found.map(|f| f.map(json)));
    }

    fn read_totals(&mut self, spots: &Spots<'_>, currency: Option<Found<&'static str>>) {
        if !self.kind.has("total") {
            return;
        }
        let totals = totals::find(spots, self.mark);
        let credit = is_credit_note(spots);
        let gross_negative =
            totals.gross.as_ref().is_some_and(|gross| gross.value.is_sign_negative());
        // EN 16931 states the amounts of a credit note without a sign.
        let sign = |value: Decimal| if credit && gross_negative { value.abs() } else { value };
        if let (Some(code), Some(gross)) = (totals.currency, &totals.gross) {
            let found = Found { value: code, certain: true, ..gross_place(gross) };
            self.put("currency", Some(found.map(|code| Value::String(code.to_owned()))));
        } else {
            self.put("currency", currency.map(|f| f.map(|code| Value::String(code.to_owned()))));
        }
        self.put("subtotal", totals.net.map(|f| f.map(|value| json(sign(value)))));
        self.put("vat_amount", totals.vat.map(|f| f.map(|value| json(sign(value)))));
        self.put("total", totals.gross.map(|f| f.map(|value| json(sign(value)))));
    }

    /// Rows of a table, as far as the entries have fields that are columns we know.
    fn read_items(&mut self, spots: &Spots<'_>, list: &str) {
        let fields = self.kind.item_fields(list);
        let Some(key) = items::Column::key_of(&fields) else { return };
        let mut items = items::find(spots, self.mark, key);
        let all_negative =
            items.iter().all(|item| item.amount.is_some_and(|a| a.is_sign_negative()));
        if all_negative && is_credit_note(spots) {
            for item in &mut items {
                item.amount = item.amount.map(|amount| amount.abs());
            }
        }
        let mut entries = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            self.add_evidence(format!("{list}[{index}]"), item.page, item.line);
            let number = |value: Option<Decimal>| value.map_or(Value::Null, json);
            let text = Some(&item.description).filter(|text| !text.is_empty());
            let value = |field: &str| match field {
                "description" => text.cloned().map_or(Value::Null, Value::String),
                "quantity" => number(item.quantity),
                "unit_price" => number(item.unit_price),
                "amount" => number(item.amount),
                _ => Value::Null,
            };
            let entry: Map<String, Value> =
                fields.iter().map(|field| ((*field).to_owned(), value(field))).collect();
            entries.push(Value::Object(entry));
        }
        if !entries.is_empty() {
            self.data.insert(list.to_owned(), Value::Array(entries));
        }
    }

    fn put(&mut self, field: &str, found: Option<Found<Value>>) {
        let Some(found) = found.filter(|_| self.kind.has(field)) else { return };
        // A currency that is not printed is a guess, which somebody has to see.
        let counts = self.roles.required.contains(&field) || field == "currency";
        self.doubts += usize::from(counts && !found.certain);
        self.add_evidence(field.to_owned(), found.page, found.line);
        self.data.insert(field.to_owned(), found.value);
    }

    fn add_evidence(&mut self, field: String, page: usize, line: u32) {
        let number = self.transcript.pages.get(page).map_or(1, |page| page.number);
        self.evidence.push(Evidence { field, page: number, lines: vec![line] });
    }

    fn finish(self) -> Extraction {
        let is_null = |field: &&str| self.data.get(*field).is_none_or(Value::is_null);
        let lacking = self.roles.required.iter().filter(|field| is_null(field)).count();
        let anything = self.data.values().any(|value| !value.is_null());
        let missing_fields = self.data.iter().filter(|(_, value)| value.is_null());
        let confidence = match (lacking, self.doubts) {
            (0, 0) if anything && !self.roles.required.is_empty() => Confidence::High,
            (0, 0..=2) if anything => Confidence::Medium,
            _ => Confidence::Low,
        };
        Extraction {
            reader: Reader::Rules,
            model: None,
            kind: self.kind.name.clone(),
            missing_fields: missing_fields.map(|(field, _)| field.clone()).collect(),
            successful: lacking == 0 && anything,
            confidence,
            evidence: self.evidence,
            usage: Usage::default(),
            data: self.data,
        }
    }
}

fn gross_place(gross: &Found<Decimal>) -> Found<&'static str> {
    Found {
        value: "",
        certain: gross.certain,
        page: gross.page,
        line: gross.line,
        cell: gross.cell,
    }
}

impl<T> Found<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Found<U> {
        let Self { value, certain, page, line, cell } = self;
        Found { value: change(value), certain, page, line, cell }
    }
}

/// Whether a title says so, rather than a sentence.
fn is_credit_note(spots: &Spots<'_>) -> bool {
    spots.of("credit_note").any(|spot| {
        let short = spots.cell(spot).is_some_and(|cell| cell.words.len() <= 8);
        spot.words.start == 0 && short
    })
}

/// A decimal as the JSON number that prints the same.
fn json(value: Decimal) -> Value {
    let text = value.normalize().to_string();
    serde_json::from_str::<Number>(&text).map_or(Value::Null, Value::Number)
}
