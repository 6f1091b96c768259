//! The offline reader: labels and layout, no model. Values are searched for beside the labels of a
//! kind's `labels.toml`; totals, supplier and line items have readers of their own.
//!
//! It states its own certainty; checking the result is the gate's task.

mod certainty;
mod characters;
mod dates;
mod evidence;
mod fields;
mod items;
mod label_matches;
mod layout;
mod money;
mod numbers;
mod parameters;
mod payables;
mod slope;
mod style;
mod supplier;
#[cfg(test)]
mod tests;
mod tip;
mod totals;
mod vocabulary;
mod weighing;
mod words;

pub use self::evidence::{CandidateEvidence, gather_evidence};
pub use self::parameters::reader_identity;
use rust_decimal::Decimal;
use rust_decimal::prelude::{FromPrimitive as _, ToPrimitive as _};
use serde_json::{Map, Number, Value};

use self::certainty::ReadingSign;
use self::dates::{DateReader, DateRole, DateSearch};
use self::label_matches::LabelMatches;
use self::layout::{CellLayout, TextCell};
use self::money::DollarSign;
use self::numbers::NumberSearch;
use self::parameters::parameters;
use self::style::PageStyle;
use docmill_core::model::{
    Extraction, ExtractionMethod, FieldCertainty, FieldEvidence, ModelUsage, PageSource,
    StatedConfidence, Transcript,
};
use docmill_formats::notation::date;
use docmill_gate::kinds::{FieldRole, FieldRole as R, FieldType, Kind, ValueStyle};

/// The net amount, the tax, and the total.
const SUMS: [FieldRole; 3] = [R::NetAmount, R::TaxAmount, R::Total];

/// A value with its certainty and position.
#[derive(Debug, Clone)]
struct FoundValue<T> {
    value: T,
    certain: bool,
    /// Its share of certainty beside the other candidates, where they were weighed.
    share: Option<f32>,
    page: usize,
    line: u32,
    /// Index into `CellLayout::cells`, where it matters.
    cell: usize,
}

impl<T> FoundValue<T> {
    fn new(value: T, certain: bool, cell: &TextCell) -> Self {
        let (page, line) = (cell.page, cell.line);
        Self { value, certain, share: None, page, line, cell: usize::MAX }
    }

    /// The best of candidates that were weighed against each other.
    fn weighed(value: T, share: f32, cell: &TextCell) -> Self {
        Self { share: Some(share), ..Self::new(value, share >= parameters().certainty.sure, cell) }
    }

    fn at_word(value: T, certain: bool, cell: &TextCell, index: usize) -> Self {
        Self { cell: index, ..Self::new(value, certain, cell) }
    }
}

/// Another country's dollars where the page names it; a doubt where it only excludes those of the
/// United States.
fn name_dollars<'a>(
    matches: &LabelMatches<'_>,
    found: Option<FoundValue<&'a str>>,
    reading: ReadingSign,
) -> (Option<FoundValue<&'a str>>, ReadingSign) {
    match (found, money::resolve_dollar(matches)) {
        (Some(found), DollarSign::Of(code)) if found.value == "USD" => {
            (Some(FoundValue { value: code, certain: true, ..found }), ReadingSign::CurrencyByTax)
        }
        // A receipt of another country prints `$` for its own currency, and does not name it.
        (Some(found), DollarSign::Foreign) if found.value == "USD" && matches.style.shop_head => {
            (None, ReadingSign::NoCurrency)
        }
        (Some(found), DollarSign::Foreign) if found.value == "USD" => {
            (Some(FoundValue { certain: false, ..found }), ReadingSign::CurrencyForeign)
        }
        (found, _) => (found, reading),
    }
}

fn abs_close(a: Decimal, b: Decimal, tolerance: Decimal) -> bool {
    (a - b).abs() <= tolerance
}

/// The signs for and against the absence of an amount that was not found; `all`: the lines make the
/// total, `seen`: a label of it is printed.
fn absence_signs(
    role: FieldRole,
    totals: &totals::TotalAmounts<'_>,
    seen: bool,
    all: Option<ReadingSign>,
    parts: totals::OpenParts,
) -> impl Iterator<Item = ReadingSign> + use<> {
    // The label is accounted for where its amount is the total.
    let apart = totals.tax_table && totals.taxed;
    let accounted = role == R::NetAmount && (totals.net_is_total || totals.net_is_reduced || apart);
    let seen = (seen && !accounted).then_some(ReadingSign::LabelSeen);
    let settled = totals.paid && seen.is_none() && all.is_none();
    let settled = settled.then_some(ReadingSign::PaidWithout);
    let open = role == R::NetAmount && parts.net || role == R::TaxAmount && parts.tax;
    let open = open.then_some(ReadingSign::OpenParts);
    [seen, all, settled, open].into_iter().flatten()
}

/// Reads a transcript.
///
/// `successful` when the fields that the kind's rules require were found, and anything at all;
/// `confidence` is high only if nothing of them was ambiguous.
pub fn extract_by_rules(transcript: &Transcript, kind: &Kind) -> Extraction {
    read_transcript(transcript, kind).into_extraction()
}

/// How the values were found that were not weighed against others.
fn read_signs(transcript: &Transcript, kind: &Kind) -> Vec<(String, Value, Vec<ReadingSign>)> {
    let read = read_transcript(transcript, kind);
    let value = |field: &str| read.data.get(field).cloned().unwrap_or(Value::Null);
    let readings = read.readings.iter();
    readings.map(|(field, signs)| (field.clone(), value(field), signs.clone())).collect()
}

fn read_transcript<'a>(transcript: &'a Transcript, kind: &'a Kind) -> RulesExtractor<'a> {
    let layout = CellLayout::new(transcript);
    let matches = LabelMatches::new(&layout, kind);
    let roles = IdentifyingFields::of_kind(kind);
    let mut reading = RulesExtractor {
        kind,
        roles,
        transcript,
        data: kind.fields().map(|(name, _)| (name.to_owned(), Value::Null)).collect(),
        evidence: Vec::new(),
        certainties: Vec::new(),
        readings: Vec::new(),
        doubts: 0,
        style: matches.style,
    };
    reading.read_fields(&matches);
    reading
}

/// A kind's fields that identify the document.
struct IdentifyingFields<'a> {
    required: Vec<&'a str>,
    /// The field of the document's own number.
    number: Option<&'a str>,
    /// The field of the day it was written.
    date: Option<&'a str>,
    /// Other days it names.
    other_dates: Vec<&'a str>,
}

impl<'a> IdentifyingFields<'a> {
    /// The required ones, else those that come first.
    fn of_kind(kind: &'a Kind) -> Self {
        let required = kind.required_fields();
        let own: Vec<(&str, FieldType)> = plain_fields(kind).collect();
        let first = |wanted: &dyn Fn(&str, FieldType) -> bool| {
            let able = own.iter().filter(|(name, of)| wanted(name, *of)).map(|(name, _)| *name);
            let able: Vec<&str> = able.collect();
            able.iter().find(|name| required.contains(name)).or(able.first()).copied()
        };
        let is_number = |name: &str, of: FieldType| {
            of == FieldType::Text && kind.labels.value_style(name) == ValueStyle::Identifier
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

impl<'a> IdentifyingFields<'a> {
    /// Every field that holds a day, that of issue first.
    fn dates(&self) -> impl Iterator<Item = &'a str> {
        self.date.into_iter().chain(self.other_dates.iter().copied())
    }

    fn date_role<'r>(&self, field: &'r str, dates: &'r [&'r str]) -> DateRole<'r>
    where
        'a: 'r,
    {
        let number = self.number.unwrap_or_default();
        DateRole { field, issued: self.date == Some(field), dates, number }
    }
}

struct RulesExtractor<'a> {
    kind: &'a Kind,
    roles: IdentifyingFields<'a>,
    transcript: &'a Transcript,
    data: Map<String, Value>,
    evidence: Vec<FieldEvidence>,
    /// How certain each field is, those that were not found included.
    certainties: Vec<FieldCertainty>,
    /// How the values that were not weighed were found.
    readings: Vec<(String, Vec<ReadingSign>)>,
    /// Values of required fields and names that are not certain.
    doubts: usize,
    style: &'static PageStyle,
}

/// Whether fields of this role have a reader of their own.
fn has_own_reader(role: FieldRole) -> bool {
    matches!(
        role,
        R::SupplierName
            | R::SupplierAddress
            | R::SupplierVatId
            | R::BuyerName
            | R::BuyerVatId
            | R::PaymentTerms
            | R::Iban
            | R::Bic
            | R::Currency
            | R::NetAmount
            | R::TaxAmount
            | R::Total
    )
}

/// The fields of a kind that are read by their types alone.
fn plain_fields(kind: &Kind) -> impl Iterator<Item = (&str, FieldType)> {
    kind.fields().filter(|(name, _)| {
        kind.role_of(name).is_none_or(|role| {
            let is_printed = kind.labels.labels_of(name).next().is_some();
            !has_own_reader(role) && (is_printed || !role.is_of_einvoices())
        })
    })
}

impl RulesExtractor<'_> {
    fn read_fields(&mut self, matches: &LabelMatches<'_>) {
        let kind = self.kind;
        let currency = money::find_currency(matches);
        let code = currency.as_ref().map(|found| found.value);
        let code = money::currency_of_days(matches, code);
        let calendar = DateReader::from_matches(matches, code);
        for (name, field_type) in plain_fields(kind) {
            match field_type {
                FieldType::Text => {
                    let found = match kind.labels.value_style(name) {
                        ValueStyle::Identifier if self.roles.number == Some(name) => {
                            self.find_own_number(matches, name)
                        }
                        ValueStyle::Identifier => fields::labelled_identifier(matches, name),
                        ValueStyle::Words => words::text_beside_label(matches, name),
                        ValueStyle::Title => words::document_title(matches),
                    };
                    self.put_value(name, found.map(|f| f.map_value(Value::String)));
                }
                FieldType::Number => self.read_number(matches, name),
                FieldType::List => self.read_items(matches, name),
                FieldType::Date | FieldType::Boolean | FieldType::Object => {}
            }
        }
        self.read_dates(matches, &calendar);
        self.read_totals(matches, currency);
        if kind.has_role(R::SupplierName) {
            self.read_supplier();
        }
        self.read_payables(matches);
    }

    fn find_own_number(
        &mut self,
        matches: &LabelMatches<'_>,
        name: &str,
    ) -> Option<FoundValue<String>> {
        let search = NumberSearch::new(matches, name);
        let found = search.find_number();
        let absent = search.absence_certainty().filter(|_| found.is_none());
        if let Some(absent) = absent {
            self.note_certainty(name, absent);
        }
        found
    }

    fn read_supplier(&mut self) {
        let layout = supplier::layout_of_parties(self.transcript);
        let matches = LabelMatches::new(&layout, self.kind);
        let supplier = supplier::find_supplier(&matches);
        self.note_reading(R::SupplierVatId, supplier.id_reading);
        self.note_reading(R::SupplierAddress, supplier.address_reading);
        self.put_text(R::SupplierName, supplier.name);
        self.put_text(R::SupplierAddress, supplier.address);
        self.put_text(R::SupplierVatId, supplier.vat_id);
        self.put_text(R::BuyerName, supplier.buyer_name);
        self.put_text(R::BuyerVatId, supplier.buyer_vat_id);
    }

    /// The day of issue first: the others lie after it.
    fn read_dates(&mut self, matches: &LabelMatches<'_>, calendar: &DateReader) {
        let search = DateSearch::new(matches, calendar);
        let dates: Vec<&str> = self.roles.dates().collect();
        let mut issued = None;
        for field in &dates {
            let role = self.roles.date_role(field, &dates);
            let found = search.find_day(role, issued);
            if role.issued {
                issued = found.as_ref().map(|found| found.value);
            }
            if found.is_none() {
                let absent = search.absence_certainty(role, issued);
                self.note_certainty(field, absent);
            }
            let found = found.map(|f| f.map_value(|date| Value::String(date::to_iso(date))));
            self.put_value(field, found);
        }
    }

    fn read_number(&mut self, matches: &LabelMatches<'_>, name: &str) {
        let found = matches.of_field(name).find_map(|label_match| {
            let beside = matches.value_candidates(label_match).into_iter();
            beside.into_iter().find_map(|beside| {
                let amount = matches.layout.numbers_in(&beside.value_words()).into_iter().next()?;
                Some(FoundValue::new(amount.value, label_match.strong, beside.cell))
            })
        });
        self.put_value(name, found.map(|f| f.map_value(decimal_to_json)));
    }

    fn read_totals(
        &mut self,
        matches: &LabelMatches<'_>,
        currency: Option<FoundValue<&'static str>>,
    ) {
        let totals = totals::find_totals(matches);
        let credit = self.kind.name == CREDIT_NOTE || is_credit_note(matches);
        let gross_negative =
            totals.gross.as_ref().is_some_and(|gross| gross.value.is_sign_negative());
        self.note_totals(matches, &totals);
        // EN 16931 states the amounts of a credit note without a sign.
        let sign = |value: Decimal| if credit && gross_negative { value.abs() } else { value };
        let of_total = totals.currency.zip(totals.gross.as_ref());
        let (found, reading) = match (of_total, currency) {
            (Some((code, gross)), _) => {
                let found = FoundValue { value: code, certain: true, ..gross_position(gross) };
                (Some(found), ReadingSign::CurrencyOfTotal)
            }
            (None, Some(found)) if found.certain => (Some(found), ReadingSign::CurrencyCounted),
            (None, Some(found)) => (Some(found), ReadingSign::CurrencyGuessed),
            (None, None) => (None, ReadingSign::NoCurrency),
        };
        let (found, reading) = name_dollars(matches, found, reading);
        self.note_reading(R::Currency, vec![reading]);
        self.put_text(R::Currency, found.map(|f| f.map_value(str::to_owned)));
        for (role, found) in SUMS.into_iter().zip([totals.net, totals.vat, totals.gross]) {
            let found = found.map(|f| f.map_value(|value| decimal_to_json(sign(value))));
            self.put_role(role, found);
        }
    }

    /// Notes the certainty of the amounts: by their sum, the lines, and other signs.
    fn note_totals(&mut self, matches: &LabelMatches<'_>, totals: &totals::TotalAmounts<'_>) {
        let sum: f64 = self.amounts_of_lines().sum();
        let made = |found: &Option<FoundValue<Decimal>>| {
            let value = found.as_ref().and_then(|found| found.value.abs().to_f64());
            value.is_some_and(|value| sum > 0.0 && (value - sum).abs() < 0.03)
        };
        let lines =
            made(&totals.net) || made(&totals.gross) || self.has_sum_of_column(matches, totals);
        let largest = totals.gross.as_ref().is_some_and(|gross| {
            totals::largest_amount(matches.layout).is_none_or(|most| gross.value.abs() >= most)
        });
        let open = totals
            .gross
            .as_ref()
            .is_some_and(|gross| totals::has_open_amount_below(matches, gross));
        let items = self.amounts_of_lines().filter_map(Decimal::from_f64);
        let items: Vec<Decimal> = items.map(|amount| amount.round_dp(4)).collect();
        let parts = totals
            .gross
            .as_ref()
            .map(|gross| totals::find_open_parts(matches, gross, &items))
            .unwrap_or_default();
        let none = [ReadingSign::NoNet, ReadingSign::NoTax, ReadingSign::NoTotal];
        let found = [&totals.net, &totals.vat, &totals.gross];
        for ((role, found), none) in SUMS.into_iter().zip(found).zip(none) {
            let mut signs = match found {
                None => {
                    let all = made(&totals.gross).then_some(ReadingSign::AllByLines);
                    let seen = matches.of_role(role).next().is_some();
                    let signs = absence_signs(role, totals, seen, all, parts);
                    self.note_reading(role, [none].into_iter().chain(signs).collect());
                    continue;
                }
                Some(_)
                    if totals.tax_table
                        || totals.tax_by_rate && (role == R::TaxAmount || totals.net_is_rest) =>
                {
                    vec![ReadingSign::TaxByRate]
                }
                Some(_) if totals.adds_up && totals.taxed => vec![ReadingSign::AddsUp],
                Some(_) if totals.adds_up => vec![ReadingSign::AddsUpUntaxed],
                Some(found) if found.certain => vec![ReadingSign::LabelAlone],
                Some(_) => vec![ReadingSign::Rivals],
            };
            signs.extend(lines.then_some(ReadingSign::LinesMakeIt));
            signs.extend(largest.then_some(ReadingSign::Largest));
            signs.extend(totals.outdone.then_some(ReadingSign::Outdone));
            signs.extend(open.then_some(ReadingSign::OpenBelow));
            let paid = totals.paid && (role == R::Total || totals.adds_up);
            signs.extend(paid.then_some(ReadingSign::PaidMakesIt));
            match role {
                R::NetAmount => signs.push(ReadingSign::Net),
                R::TaxAmount => signs.push(ReadingSign::Tax),
                _ => {}
            }
            self.note_reading(role, signs);
        }
    }

    /// Whether the column of amounts over the sums makes one of them, where no lines were read: a
    /// table without known headings has none.
    fn has_sum_of_column(
        &self,
        matches: &LabelMatches<'_>,
        totals: &totals::TotalAmounts<'_>,
    ) -> bool {
        let unread = self.value_of(R::Lines).is_none_or(Value::is_null);
        let mut sums = [&totals.net, &totals.gross].into_iter().flatten();
        unread && sums.any(|sum| totals::is_sum_of_column(matches, sum))
    }

    /// The amounts of the document's lines.
    fn amounts_of_lines(&self) -> impl Iterator<Item = f64> {
        let lines = self.value_of(R::Lines).and_then(Value::as_array);
        lines.into_iter().flatten().filter_map(|row| row.get("amount")?.as_f64())
    }

    fn value_of(&self, role: FieldRole) -> Option<&Value> {
        self.data.get(self.kind.field_of(role))
    }

    /// Reads the rows of a table, for fields that are known columns.
    fn read_items(&mut self, matches: &LabelMatches<'_>, list: &str) {
        let fields = self.kind.item_fields(list);
        let Some(key) = items::ItemColumn::key_column(&fields) else { return };
        let mut items = items::find_items(matches, key);
        let all_negative =
            items.iter().all(|item| item.amount.is_some_and(|a| a.is_sign_negative()));
        if all_negative && is_credit_note(matches) {
            for item in &mut items {
                item.amount = item.amount.map(|amount| amount.abs());
            }
        }
        let mut entries = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            self.add_evidence(format!("{list}[{index}]"), item.page, item.line);
            let text = Some(&item.description).filter(|text| !text.is_empty());
            let value = |field: &str| match field {
                "description" => text_to_json(text),
                "article_number" => text_to_json(item.article_number.as_ref()),
                "unit" => text_to_json(item.unit.as_ref()),
                "tax_rate" => optional_number_to_json(item.tax_rate),
                "quantity" => optional_number_to_json(item.quantity),
                "unit_price" => optional_number_to_json(item.unit_price),
                "amount" => optional_number_to_json(item.amount),
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

    fn put_role(&mut self, role: FieldRole, found: Option<FoundValue<Value>>) {
        self.put_value(self.kind.field_of(role), found);
    }

    fn put_text(&mut self, role: FieldRole, found: Option<FoundValue<String>>) {
        self.put_role(role, found.map(|f| f.map_value(Value::String)));
    }

    fn put_value(&mut self, field: &str, found: Option<FoundValue<Value>>) {
        let Some(found) = found.filter(|_| self.kind.has_field(field)) else { return };
        // A currency that is not printed is a guess, which a person has to review.
        let is_currency = field == self.kind.field_of(R::Currency);
        let counts = self.roles.required.contains(&field) || is_currency;
        // A weighed value has the certainty of its signs. An unprinted currency is a guess.
        let weighed = self.certainties.iter().find(|one| one.field == field && !is_currency);
        let certain =
            weighed.map_or(found.certain, |one| one.certainty >= parameters().certainty.sure);
        self.doubts += usize::from(counts && !certain);
        self.add_evidence(field.to_owned(), found.page, found.line);
        if let Some(share) = found.share {
            self.note_certainty(field, share);
        }
        self.data.insert(field.to_owned(), found.value);
    }

    fn note_certainty(&mut self, field: &str, certainty: f32) {
        self.certainties.push(FieldCertainty { field: field.to_owned(), certainty });
    }

    /// The certainty of a field that was not weighed, found or not.
    fn note_reading(&mut self, role: FieldRole, mut signs: Vec<ReadingSign>) {
        let ocr = self.transcript.pages.iter().any(|page| page.source == PageSource::Ocr);
        let of_ocr = ocr.then(|| certainty::sign_of_ocr(&signs));
        let of_style = self.style.reading_sign(&signs);
        signs.extend(of_ocr.into_iter().chain(of_style));
        let field = self.kind.field_of(role);
        self.note_certainty(field, certainty::certainty_of(&signs));
        self.readings.push((field.to_owned(), signs));
    }

    fn add_evidence(&mut self, field: String, page: usize, line: u32) {
        let number = self.transcript.pages.get(page).map_or(1, |page| page.number);
        self.evidence.push(FieldEvidence { field, page: number, lines: vec![line] });
    }

    fn into_extraction(self) -> Extraction {
        let lacking = self.roles.required.iter().filter(|field| self.is_null(field)).count();
        let anything = self.data.values().any(|value| !value.is_null());
        let missing_fields = self.data.iter().filter(|(_, value)| value.is_null());
        let confidence = match (lacking, self.doubts) {
            (0, 0) if anything && !self.roles.required.is_empty() => StatedConfidence::High,
            (0, 0..=2) if anything => StatedConfidence::Medium,
            _ => StatedConfidence::Low,
        };
        Extraction {
            reader: ExtractionMethod::Rules,
            model: None,
            kind: self.kind.name.clone(),
            missing_fields: missing_fields.map(|(field, _)| field.clone()).collect(),
            successful: lacking == 0 && anything,
            confidence,
            evidence: self.evidence,
            certainties: self.certainties,
            usage: ModelUsage::default(),
            data: self.data,
        }
    }

    fn is_null(&self, field: &&str) -> bool {
        self.data.get(*field).is_none_or(Value::is_null)
    }
}

fn text_to_json(text: Option<&String>) -> Value {
    text.cloned().map_or(Value::Null, Value::String)
}

fn optional_number_to_json(value: Option<Decimal>) -> Value {
    value.map_or(Value::Null, decimal_to_json)
}

fn gross_position(gross: &FoundValue<Decimal>) -> FoundValue<&'static str> {
    FoundValue {
        value: "",
        certain: gross.certain,
        share: gross.share,
        page: gross.page,
        line: gross.line,
        cell: gross.cell,
    }
}

impl<T> FoundValue<T> {
    fn map_value<U>(self, change: impl FnOnce(T) -> U) -> FoundValue<U> {
        let Self { value, certain, share, page, line, cell } = self;
        FoundValue { value: change(value), certain, share, page, line, cell }
    }
}

/// The kind of documents with returned amounts.
const CREDIT_NOTE: &str = "credit_note";

/// Whether a title, rather than a sentence or a line, makes it a credit note: it stands above all amounts.
fn is_credit_note(matches: &LabelMatches<'_>) -> bool {
    let mut cells = matches.layout.cells.iter();
    let amounts = cells.find(|cell| matches.layout.is_on_amount_row(cell)).map(|cell| cell.row);
    matches.of_field("credit_note").any(|label_match| {
        let cell = matches.cell_of(label_match).filter(|cell| cell.words.len() <= 8);
        let above = cell.is_some_and(|cell| amounts.is_none_or(|row| cell.row < row));
        label_match.words.start == 0 && above
    })
}

/// A decimal as the JSON number that prints the same.
fn decimal_to_json(value: Decimal) -> Value {
    let text = value.normalize().to_string();
    serde_json::from_str::<Number>(&text).map_or(Value::Null, Value::Number)
}
