//! The offline reader: labels and layout, no model. What a kind's `labels.toml` names is looked for
//! beside the labels; totals, supplier and line items have readers of their own.
//!
//! It says of itself how sure it is, but does not check the result: that is the gate's.

mod fields;
mod items;
mod layout;
mod spots;
mod supplier;
mod totals;

use rust_decimal::Decimal;
use serde_json::{Map, Number, Value};

use self::fields::Calendar;
use self::layout::{Cell, Layout};
use self::spots::Spots;
use crate::kinds::{FieldType, Kind};
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
/// `successful` when identifier, date and total of the kind's required fields were found;
/// `confidence` is high only if nothing read was ambiguous.
pub fn extract(transcript: &Transcript, kind: &Kind) -> Extraction {
    let layout = Layout::new(transcript);
    let spots = Spots::new(&layout, &kind.labels);
    let words = layout.cells.iter().flat_map(|cell| cell.words.iter().map(String::as_str));
    let mut reading = Reading {
        kind,
        transcript,
        mark: Mark::of(words),
        data: kind.fields().map(|(name, _)| (name.to_owned(), Value::Null)).collect(),
        evidence: Vec::new(),
        doubts: 0,
    };
    reading.read(&spots);
    reading.finish()
}

struct Reading<'a> {
    kind: &'a Kind,
    transcript: &'a Transcript,
    mark: Option<Mark>,
    data: Map<String, Value>,
    evidence: Vec<Evidence>,
    /// Values of required fields and names that are not certain.
    doubts: usize,
}

/// Fields with a reader of their own.
const SPECIAL: [&str; 8] = [
    "supplier_name",
    "supplier_address",
    "supplier_vat_id",
    "currency",
    "subtotal",
    "vat_amount",
    "total",
    "line_items",
];

impl Reading<'_> {
    fn read(&mut self, spots: &Spots<'_>) {
        let currency = fields::currency(spots);
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
                    self.put(&name, fields::identifier(spots, &name).map(|f| f.map(Value::String)));
                }
                FieldType::Number => self.read_number(spots, &name),
                FieldType::List => {}
            }
        }
        self.read_totals(spots, currency);
        if self.kind.has("supplier_name") {
            self.read_supplier();
        }
        if self.kind.has("line_items") {
            self.read_items(spots);
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
        let mut found = fields::date(spots, calendar, name);
        if name == "invoice_date" && found.as_ref().is_none_or(|found| !found.certain) {
            let title = fields::date_of_title(spots, calendar);
            found = title.or(found).or_else(|| fields::unlabelled_date(spots, calendar));
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

    fn read_items(&mut self, spots: &Spots<'_>) {
        let mut items = items::find(spots, self.mark);
        let all_negative =
            items.iter().all(|item| item.amount.is_some_and(|a| a.is_sign_negative()));
        if all_negative && is_credit_note(spots) {
            for item in &mut items {
                item.amount = item.amount.map(|amount| amount.abs());
            }
        }
        let mut list = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let field = format!("line_items[{index}]");
            self.add_evidence(field, item.page, item.line);
            let number = |value: Option<Decimal>| value.map_or(Value::Null, json);
            let text = Some(item.description).filter(|text| !text.is_empty());
            list.push(serde_json::json!({
                "description": text,
                "quantity": number(item.quantity),
                "unit_price": number(item.unit_price),
                "amount": number(item.amount),
            }));
        }
        if !list.is_empty() {
            self.data.insert("line_items".to_owned(), Value::Array(list));
        }
    }

    fn put(&mut self, field: &str, found: Option<Found<Value>>) {
        let Some(found) = found.filter(|_| self.kind.has(field)) else { return };
        let counts = REQUIRED.contains(&field) || field == "supplier_name";
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
        let required: Vec<&str> =
            REQUIRED.into_iter().filter(|field| self.kind.has(field)).collect();
        let lacking = required.iter().filter(|field| is_null(field)).count();
        let missing_fields = self.data.iter().filter(|(_, value)| value.is_null());
        let confidence = match (lacking, self.doubts) {
            (0, 0) => Confidence::High,
            (0, 1..=2) => Confidence::Medium,
            _ => Confidence::Low,
        };
        Extraction {
            reader: Reader::Rules,
            model: None,
            kind: self.kind.name.clone(),
            missing_fields: missing_fields.map(|(field, _)| field.clone()).collect(),
            successful: lacking == 0,
            confidence,
            evidence: self.evidence,
            usage: Usage::default(),
            data: self.data,
        }
    }
}

/// The fields without which nothing was read.
const REQUIRED: [&str; 3] = ["invoice_number", "invoice_date", "total"];

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

#[cfg(test)]
mod tests {
    use super::layout::tests::transcript;
    use super::*;
    use crate::config::KindsConfig;
    use crate::kinds::Kinds;

    fn read(drawing: &str) -> Extraction {
        let kinds = Kinds::load(&KindsConfig::default()).unwrap();
        extract(&transcript(&[drawing]), kinds.get("invoice").unwrap())
    }

    const INVOICE: &str = "\
Lieferant GmbH - Lieferantenstr. 20 - 80333 München

Kunden AG                                Rechnungsnummer:  RE-2018/17
Kundenstr. 15                            Rechnungsdatum:   05.03.2018
69876 Frankfurt                          Fällig am:        04.04.2018

Beschreibung            Menge   Einzelpreis     Betrag
Trennblätter A4            20          9,90     198,00
Joghurt Banane             50          5,50     275,00

                           Summe netto          473,00 €
                           MwSt                  56,87 €
                           Gesamtbetrag         529,87 €

USt-IdNr. DE123456789";

    #[test]
    fn an_invoice_is_read_whole() {
        let extraction = read(INVOICE);
        let expected = serde_json::json!({
            "supplier_name": "Lieferant GmbH",
            "supplier_address": "Lieferantenstr. 20, 80333 München",
            "supplier_vat_id": "DE123456789",
            "invoice_number": "RE-2018/17",
            "invoice_date": "2018-03-05",
            "due_date": "2018-04-04",
            "currency": "EUR",
            "line_items": [
                {"description": "Trennblätter A4", "quantity": 20, "unit_price": 9.9, "amount": 198},
                {"description": "Joghurt Banane", "quantity": 50, "unit_price": 5.5, "amount": 275},
            ],
            "subtotal": 473, "vat_amount": 56.87, "total": 529.87,
        });
        assert_eq!(Value::Object(extraction.data), expected);
        assert!(extraction.successful);
        assert_eq!(extraction.confidence, Confidence::High);
        assert!(extraction.missing_fields.is_empty());
    }

    #[test]
    fn every_value_names_the_line_it_was_read_from() {
        let extraction = read(INVOICE);
        let total = extraction.evidence.iter().find(|e| e.field == "total").unwrap();
        assert_eq!((total.page, total.lines.as_slice()), (1, [9].as_slice()));
        assert!(extraction.evidence.iter().any(|e| e.field == "line_items[1]"));
    }

    #[test]
    fn a_letter_is_not_read_as_an_invoice() {
        let extraction = read("Dear Sir,\nthank you for your visit.\nYours, Somebody");
        assert!(!extraction.successful);
        assert_eq!(extraction.confidence, Confidence::Low);
        assert!(extraction.data.values().filter(|v| !v.is_null()).count() <= 1);
    }

    #[test]
    fn the_amounts_of_a_credit_note_have_no_sign() {
        let drawing = "Avoir AV-7\nDate de facture   16/11/2017\nTotal HT   -218,48 €\n\
                       Taxes   14,99 €\nTotal TTC   -233,47 €";
        let extraction = read(drawing);
        assert_eq!(extraction.data.get("total").unwrap().as_f64(), Some(233.47));
        assert_eq!(extraction.data.get("subtotal").unwrap().as_f64(), Some(218.48));
    }

    #[test]
    fn empty_and_broken_pages_give_nothing_and_do_not_panic() {
        let mut broken = transcript(&["Total   5,00"]);
        for page in &mut broken.pages {
            page.height = 0.0;
            for word in page.lines.iter_mut().flat_map(|line| &mut line.words) {
                word.bounding_box.x = f32::NAN;
            }
        }
        let kinds = Kinds::load(&KindsConfig::default()).unwrap();
        for transcript in [transcript(&[]), transcript(&[""]), broken] {
            assert!(!extract(&transcript, kinds.get("invoice").unwrap()).successful);
        }
    }
}
