//! A document's data as people read it: fields and columns in the order of the kind, amounts with two
//! decimals and their currency, days with the name of their month.

use std::collections::HashMap;

use maud::{Markup, html};
use serde_json::{Map, Value};
use time::Date;
use time::macros::format_description;

use super::layout::foreign_name;
use super::page_sheets::{FieldPlaces, mark_id};
use super::review_form::{decimal_text, label_of};
use docmill_core::model::value_at;
use docmill_gate::kinds::{FieldRole, FieldType, Kind, RuleCheck};

/// Links from values to the pages that they were read from.
pub(super) struct PlaceLinks<'a> {
    /// Path of the pages.
    pages: String,
    /// The data that was read there: of other values the place is unknown.
    read: Option<&'a Map<String, Value>>,
    /// By field: the number of the mark, and the page.
    places: HashMap<String, (usize, u32)>,
}

impl<'a> PlaceLinks<'a> {
    /// Links below `pages` for the values that were read.
    pub(super) fn new(pages: String, read: Option<&'a Value>, places: &FieldPlaces) -> Self {
        let places = places.iter().enumerate();
        let places = places.map(|(at, place)| (place.field.clone(), (at, place.page))).collect();
        Self { pages, read: read.and_then(Value::as_object), places }
    }

    fn link(&self, path: &str, value: &Value) -> Markup {
        let read = self.read.and_then(|read| value_at(read, path));
        let found = self.places.get(path).filter(|_| read == Some(value));
        html! {
            @if let Some((at, page)) = found {
                " " span.place { a href={ (self.pages) "/" (page) "#" (mark_id(*at)) }
                    aria-label={ "found on page " (page) } { "p. " (page) } }
            }
        }
    }
}

/// How data is shown.
#[derive(Clone, Copy, Default)]
pub(super) struct DataView<'a> {
    /// The kind of the document; `None`: unknown here.
    pub(super) kind: Option<&'a Kind>,
    /// The places of its values, if links lead there.
    pub(super) places: Option<&'a PlaceLinks<'a>>,
}

impl<'a> DataView<'a> {
    /// As a document of this kind, without links.
    pub(super) fn of_kind(kind: Option<&'a Kind>) -> Self {
        Self { kind, places: None }
    }

    /// All fields of a document.
    pub(super) fn table(self, data: &Value) -> Markup {
        let Value::Object(fields) = data else { return self.value("", data) };
        let known: Vec<&str> =
            self.kind.map(|kind| kind.fields().map(|(name, _)| name).collect()).unwrap_or_default();
        let of_kind = known.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
        let others = fields.iter().map(|(name, value)| (name.as_str(), value));
        let others = others.filter(|(name, _)| !known.contains(name));
        let (empty, filled): (Vec<_>, Vec<_>) =
            of_kind.chain(others).partition(|(_, value)| value.is_null());
        let empty: Vec<String> = empty.into_iter().map(|(name, _)| label_of(name)).collect();
        let currency = self.currency(fields);
        html! {
            dl.facts { @for (name, value) in filled {
                div.whole[is_table(value)] { dt { (label_of(name)) } dd {
                    (self.value(name, value))
                    @if let Some(currency) = currency.filter(|_| self.is_amount(name)) { " " bdi { (currency) } }
                    (self.place(name, value))
                } }
            } }
            @if !empty.is_empty() { p.hint { "Without a value: " (empty.join(", ")) } }
        }
    }

    /// The value of a field, or of `list.field` in a list's entry.
    pub(super) fn value(self, name: &str, value: &Value) -> Markup {
        html! {
            @match value {
                Value::Null => "–",
                Value::String(text) => {
                    @if let Some(day) = self.day(name, text) { time datetime=(text) { (day) } }
                    @else { (foreign_name(text)) }
                }
                Value::Array(lines) if is_table(value) => (self.lines(name, lines)),
                Value::Array(items) => ol { @for item in items { li { (self.value("", item)) } } },
                Value::Object(fields) => {
                    @for (part, value) in fields {
                        span.hint { (label_of(part)) ": " } (self.value(&format!("{name}.{part}"), value)) "; "
                    }
                }
                Value::Number(number) if self.is_amount(name) => (two_decimals(&number.to_string())),
                Value::Number(number) => (decimal_text(&number.to_string())),
                Value::Bool(true) => "yes",
                Value::Bool(false) => "no",
            }
        }
    }

    /// The value at a path such as `line_items[2].amount`.
    pub(super) fn value_at(self, path: &str, value: &Value) -> Markup {
        match path.split_once('[').and_then(|(list, rest)| Some((list, rest.split_once("].")?.1))) {
            Some((list, part)) => self.value(&format!("{list}.{part}"), value),
            None => self.value(path, value),
        }
    }

    /// Lines as a table, with a column for each field that one of them has a value of.
    fn lines(self, list: &str, lines: &[Value]) -> Markup {
        let mut columns: Vec<&str> =
            self.kind.map(|kind| kind.item_fields(list)).unwrap_or_default();
        let found = lines.iter().filter_map(Value::as_object).flat_map(Map::keys);
        for name in found.map(String::as_str) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        columns
            .retain(|name| lines.iter().any(|line| line.get(name).is_some_and(|it| !it.is_null())));
        html! {
            div.wide tabindex="0" { table {
                thead { tr { @for name in &columns { th { (label_of(name)) } } } }
                tbody { @for (at, line) in lines.iter().enumerate() { tr { @for name in &columns {
                    @let value = line.get(name).unwrap_or(&Value::Null);
                    td.number[value.is_number()] {
                        (self.value(&format!("{list}.{name}"), value))
                        (self.place(&format!("{list}[{at}].{name}"), value))
                    }
                } } } }
            } }
        }
    }

    fn place(self, path: &str, value: &Value) -> Markup {
        self.places.map(|places| places.link(path, value)).unwrap_or_default()
    }

    fn currency(self, fields: &Map<String, Value>) -> Option<&str> {
        fields.get(self.kind?.field_of(FieldRole::Currency))?.as_str()
    }

    /// Whether numbers of a field are amounts of money: by its role, or because a rule adds the column up.
    fn is_amount(self, name: &str) -> bool {
        let Some(kind) = self.kind else { return false };
        if let Some((list, item)) = name.split_once('.') {
            return kind.rules.iter().any(|rule| {
                matches!(&rule.check, RuleCheck::ListSum { list: summed, item: column, .. }
                    if summed == list && column == item)
            });
        }
        let role = kind.role_of(name).filter(|_| kind.has_field(name));
        role.is_some_and(|role| AMOUNTS.contains(&role))
    }

    /// A day with the name of its month, if the field has days.
    fn day(self, name: &str, text: &str) -> Option<String> {
        let kind = self.kind?;
        let mut types: Vec<(&str, FieldType)> = match name.split_once('.') {
            Some((list, _)) => kind.item_types(list).collect(),
            None => kind.fields().collect(),
        };
        let own = name.rsplit('.').next()?;
        types.retain(|(field, field_type)| *field == own && *field_type == FieldType::Date);
        types.first()?;
        let day = Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
        day.format(format_description!("[day padding:none] [month repr:short] [year]")).ok()
    }
}

/// `Line items 3: Amount` of `line_items[2].amount`.
pub(super) fn label_of_path(path: &str) -> String {
    let Some((list, rest)) = path.split_once('[') else { return label_of(path) };
    let (entry, part) = rest.split_once(']').unwrap_or((rest, ""));
    let entry = entry.parse::<usize>().ok().map(|entry| entry.saturating_add(1));
    entry_label(list, entry, Some(part.trim_start_matches('.')).filter(|part| !part.is_empty()))
}

/// `Line items 3: Amount`; the entry is counted from 1.
pub(super) fn entry_label(field: &str, entry: Option<usize>, part: Option<&str>) -> String {
    let mut label = label_of(field);
    if let Some(entry) = entry {
        label.push_str(&format!(" {entry}"));
    }
    if let Some(part) = part {
        label.push_str(&format!(": {}", label_of(part)));
    }
    label
}

/// Roles of amounts of money.
const AMOUNTS: [FieldRole; 6] = [
    FieldRole::NetAmount,
    FieldRole::TaxAmount,
    FieldRole::Total,
    FieldRole::PaidAmount,
    FieldRole::RoundingAmount,
    FieldRole::AmountDue,
];

/// Whether it is a list of lines, each with fields.
fn is_table(value: &Value) -> bool {
    value.as_array().is_some_and(|lines| !lines.is_empty() && lines.iter().all(Value::is_object))
}

/// An amount with at least two decimals.
fn two_decimals(number: &str) -> String {
    let text = decimal_text(number);
    if text.chars().all(|c| c.is_ascii_digit() || c == '-') { format!("{text}.00") } else { text }
}

#[cfg(test)]
mod tests {
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_have_two_decimals_and_other_whole_numbers_none() {
        for (number, shown, amount) in [
            ("2042.4", "2042.40", "2042.40"),
            ("24.35", "24.35", "24.35"),
            ("-2", "-2", "-2.00"),
            ("2.0", "2", "2.00"),
            ("0.125", "0.125", "0.125"),
            ("1e20", "1e20", "1e20"),
        ] {
            assert_eq!((decimal_text(number), two_decimals(number)), (shown.into(), amount.into()));
        }
    }

    #[test]
    fn a_path_is_told_in_words_and_its_entry_counted_from_one() {
        for (path, label) in [
            ("supplier_vat_id", "Supplier VAT ID"),
            ("line_items[2].unit_price", "Line items 3: Unit price"),
            ("further_accounts[0]", "Further accounts 1"),
        ] {
            assert_eq!(label_of_path(path), label);
        }
    }

    #[test]
    fn data_is_shown_in_the_kinds_order_with_its_money_days_and_pages() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let data = json!({
            "total": 120, "currency": "GBP", "invoice_date": "2018-03-05", "iban": null,
            "supplier_name": "A <b>", "line_items": [{ "amount": 100, "quantity": 2 }],
        });
        let places = FieldPlaces::read(Some(json!([
            { "field": "total", "page": 3 }, { "field": "line_items[0].amount", "page": 2 },
            { "field": "supplier_name", "page": 1 },
        ])));
        let mut read = data.clone();
        read["supplier_name"] = "Another".into();
        let links = PlaceLinks::new("/p".to_owned(), Some(&read), &places);
        let view = DataView { kind: kinds.get("invoice").map(|it| &**it), places: Some(&links) };
        let shown = view.table(&data).into_string();
        let order = ["A &lt;b&gt;", "5 Mar 2018", "GBP", ">100.00", "120.00 <bdi>GBP</bdi>"];
        let places: Vec<usize> = order.iter().map(|text| shown.find(text).unwrap()).collect();
        assert!(places.is_sorted_by_key(|at| *at), "{places:?} {shown}");
        assert!(shown.contains("Without a value: IBAN"), "{shown}");
        assert!(shown.contains("/p/3#mark-0") && shown.contains("/p/2#mark-1"), "{shown}");
        assert!(!shown.contains("/p/1#"), "a value that a person set stands on no page: {shown}");
    }
}
