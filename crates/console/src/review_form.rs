//! The changes that a form makes in a document's fields and lines. The form itself is drawn in
//! `review_inputs` and `review_lines`.
//!
//! Only a difference from the value shown is a change, so that a value which no input can carry
//! stays as it was. A line is taken off if all its cells are empty, or its box for that is ticked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::failure::ConsoleFailure;
use super::fields::FieldValues;
use docmill_gate::kinds::{FieldType, Kind};
use docmill_operations::review::{self, ReviewCase};

/// Why a document is rejected: codes of the form, and the words that are recorded.
pub(super) const REJECT_REASONS: &[(&str, &str)] = &[
    ("not_a_document", "Not a document"),
    ("wrong_kind", "Wrong kind of document"),
    ("unreadable", "Unreadable"),
    ("incomplete", "Incomplete"),
    ("several_documents", "Several documents in one"),
    ("duplicate", "Duplicate"),
    ("suspicious", "Suspicious"),
];
/// The recorded reason of a rejection: its words from the list, then the note.
pub(super) fn rejection_words(code: Option<&str>, note: &str) -> String {
    let words = REJECT_REASONS.iter().find(|(known, _)| Some(*known) == code);
    match words {
        Some((_, words)) if note.is_empty() => (*words).to_owned(),
        Some((_, words)) => format!("{words}: {note}"),
        None => note.to_owned(),
    }
}

/// Lines that a form may add to those of the document.
const MAX_ADDED_LINES: usize = 1_000;

/// A value as an input shows it.
pub(super) fn shown_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.replace("\r\n", "\n"),
        Some(Value::Number(number)) => decimal_text(&number.to_string()),
        Some(other) => other.to_string(),
    }
}

/// A number as people write it: a fraction has at least two decimals, a whole number none.
pub(super) fn decimal_text(number: &str) -> String {
    match number.split_once('.') {
        Some((whole, "0")) => whole.to_owned(),
        Some((_, fraction)) if fraction.len() == 1 => format!("{number}0"),
        _ => number.to_owned(),
    }
}

/// The lines of a list; empty if it is missing or no list.
pub(super) fn lines_of<'a>(data: &'a Map<String, Value>, list: &str) -> &'a [Value] {
    data.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The fields that a person changed, as [`review::DataCorrection::Fields`] takes them.
///
/// # Errors
/// A cell that is not of its type, by name.
pub(super) fn read_changes(
    kind: &Kind,
    data: &Map<String, Value>,
    form: &FieldValues,
) -> Result<BTreeMap<String, String>, ConsoleFailure> {
    let mut changes = BTreeMap::new();
    for (name, field_type) in kind.fields() {
        if field_type == FieldType::List && kind.item_types(name).next().is_some() {
            if let Some(items) = read_lines(kind, data, name, form)? {
                changes.insert(name.to_owned(), Value::Array(items).to_string());
            }
            continue;
        }
        if let Some(text) = form.raw(&format!("field.{name}"))
            && text != shown_text(data.get(name))
        {
            changes.insert(name.to_owned(), text);
        }
    }
    Ok(changes)
}

/// Refuses a typed value that is not of its field's type, and names the field.
pub(super) fn require_values(
    kind: &Kind,
    case: &ReviewCase,
    changes: &BTreeMap<String, String>,
) -> Result<(), ConsoleFailure> {
    for (field, text) in changes {
        let one = BTreeMap::from([(field.clone(), text.clone())]);
        let read = review::apply_fields(kind, case, &one);
        read.map_err(|error| ConsoleFailure::from(error).about(field))?;
    }
    Ok(())
}

/// The box that takes a line off.
pub(super) fn off_name(list: &str, line: usize) -> String {
    format!("off.{list}.{line}")
}

/// Cells as they were typed, by line and field.
pub(super) type TypedLines = BTreeMap<usize, BTreeMap<String, String>>;

/// The typed cells of a list that has `known` lines.
///
/// # Errors
/// A line that is further down than a form adds any: each line up to it would be drawn.
pub(super) fn typed_lines(
    list: &str,
    known: usize,
    form: &FieldValues,
) -> Result<TypedLines, ConsoleFailure> {
    let prefix = format!("item.{list}.");
    let mut lines = TypedLines::new();
    for (name, text) in form.pairs() {
        let cell = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('.'));
        let Some((line, field)) = cell else { continue };
        let Ok(line) = line.parse::<usize>() else { continue };
        if line >= known.saturating_add(MAX_ADDED_LINES) {
            let text = format!("At most {MAX_ADDED_LINES} lines can be added at once.");
            return Err(ConsoleFailure::refused(text));
        }
        lines.entry(line).or_default().insert(field.to_owned(), text.replace("\r\n", "\n"));
    }
    Ok(lines)
}

/// The lines of a list as they are to be; `None`: as they were.
fn read_lines(
    kind: &Kind,
    data: &Map<String, Value>,
    list: &str,
    form: &FieldValues,
) -> Result<Option<Vec<Value>>, ConsoleFailure> {
    let before = lines_of(data, list);
    let typed = typed_lines(list, before.len(), form)?;
    if typed.is_empty() {
        return Ok(None);
    }
    let mut items = Vec::new();
    // Lines that the form did not carry stay.
    let all: BTreeSet<usize> = (0..before.len()).chain(typed.keys().copied()).collect();
    for line in all.into_iter().filter(|line| form.get(&off_name(list, *line)).is_none()) {
        let old = before.get(line);
        match typed.get(&line) {
            None => items.extend(old.cloned()),
            Some(cells) => items.extend(read_line(kind, list, old, cells)?),
        }
    }
    let empty_still = items.is_empty() && before.is_empty();
    Ok((items.as_slice() != before && !empty_still).then_some(items))
}

/// One line as it is to be; `None`: it is taken off, or was never there.
fn read_line(
    kind: &Kind,
    list: &str,
    old: Option<&Value>,
    cells: &BTreeMap<String, String>,
) -> Result<Option<Value>, ConsoleFailure> {
    let changed: BTreeMap<&str, &String> = cells
        .iter()
        .filter(|(field, text)| **text != shown_text(old.and_then(|old| old.get(field.as_str()))))
        .map(|(field, text)| (field.as_str(), text))
        .collect();
    if changed.is_empty() {
        return Ok(old.cloned());
    }
    if cells.values().all(|text| text.trim().is_empty()) {
        return Ok(None);
    }
    let mut item = Map::new();
    for (field, _) in kind.item_types(list) {
        let kept = old.and_then(|old| old.get(field)).cloned().unwrap_or_default();
        let value = match changed.get(field) {
            Some(text) => {
                let read = review::parse_typed_cell(kind, list, field, text);
                read.map_err(|error| ConsoleFailure::from(error).about(list))?
            }
            None => kept,
        };
        item.insert(field.to_owned(), value);
    }
    Ok(Some(Value::Object(item)))
}

/// Words of names that are written in capitals.
const CAPITALS: [&str; 10] =
    ["bic", "iban", "id", "iso", "po", "sku", "swift", "tin", "url", "vat"];

/// `supplier_vat_id` as people write it: Supplier VAT ID.
pub(super) fn label_of(name: &str) -> String {
    let mut label = String::new();
    for word in name.split('_').filter(|word| !word.is_empty()) {
        let is_first = label.is_empty();
        if !is_first {
            label.push(' ');
        }
        let mut letters = word.chars();
        match letters.next() {
            _ if CAPITALS.contains(&word) => label.push_str(&word.to_uppercase()),
            Some(letter) if is_first => {
                label.extend(letter.to_uppercase());
                label.push_str(letters.as_str());
            }
            _ => label.push_str(word),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use serde_json::json;

    fn changes(data: &Value, form: &str) -> Result<BTreeMap<String, String>, ConsoleFailure> {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.get("invoice").unwrap();
        let data = data.as_object().unwrap();
        read_changes(invoice, data, &FieldValues::parse(form.as_bytes()))
    }

    #[test]
    fn names_of_fields_are_written_as_people_write_them() {
        for (name, label) in [
            ("invoice_number", "Invoice number"),
            ("supplier_vat_id", "Supplier VAT ID"),
            ("iban", "IBAN"),
            ("vat_amount", "VAT amount"),
        ] {
            assert_eq!(label_of(name), label);
        }
    }

    #[test]
    fn only_what_differs_from_what_was_shown_is_a_change() {
        let data = json!({
            "supplier_name": " A \r\nB", "total": 12.50, "due_date": null,
            "line_items": [{ "description": "x", "quantity": 1.0, "unit_price": null, "amount": 2 }],
        });
        let same = "field.supplier_name=+A+%0D%0AB&field.total=12.50&field.due_date=\
                    &item.line_items.0.description=x&item.line_items.0.quantity=1\
                    &item.line_items.0.unit_price=&item.line_items.0.amount=2\
                    &item.line_items.1.description=&item.line_items.1.amount=&field.unknown=1";
        assert_eq!(changes(&data, same).unwrap(), BTreeMap::new());
        let other = changes(&data, "field.total=13&field.due_date=2026-01-02").unwrap();
        assert_eq!(other["total"], "13");
        assert_eq!(other["due_date"], "2026-01-02");
    }

    #[test]
    fn lines_are_changed_added_and_taken_off_and_what_the_form_lacks_stays() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let fields = kinds.get("invoice").unwrap().item_fields("line_items");
        let empty: Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), Value::Null)).collect();
        let line = |name: &str, amount: i64| {
            let mut line = empty.clone();
            line.insert("description".to_owned(), name.into());
            line.insert("amount".to_owned(), amount.into());
            Value::Object(line)
        };
        let data = json!({ "line_items": [line("a", 1), line("b", 2), line("c", 3)] });
        let form = "item.line_items.0.description=&item.line_items.0.quantity=\
                    &item.line_items.0.unit_price=&item.line_items.0.amount=\
                    &item.line_items.1.amount=20&item.line_items.3.description=d\
                    &item.line_items.3.amount=4";
        let changed = changes(&data, form).unwrap();
        let items: Value = serde_json::from_str(&changed["line_items"]).unwrap();
        assert_eq!(items, json!([line("b", 20), line("c", 3), line("d", 4)]));
        let off = "item.line_items.0.amount=1&item.line_items.1.amount=20&off.line_items.1=1";
        let items: Value =
            serde_json::from_str(&changes(&data, off).unwrap()["line_items"]).unwrap();
        assert_eq!(items, json!([line("a", 1), line("c", 3)]), "a box that is ticked takes it off");
        let wrong = changes(&data, "item.line_items.0.amount=SECRETMARK").unwrap_err();
        assert!(wrong.detail.contains("line_items.amount"), "{wrong:?}");
        assert!(!wrong.detail.contains("SECRETMARK"), "{wrong:?}");
    }
}
