//! The form of one document: fields and lines of its kind's schema, and the changes in them.
//!
//! Only a difference from the value shown is a change, so that a value which no input can carry
//! stays as it was. A line is taken off if all its cells are empty, or its box for that is ticked.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::failure::ConsoleFailure;
use super::fields::FieldValues;
use super::findings::ReviewFinding;
use super::page_sheets::PicturedPages;
use docmill_gate::kinds::{FieldType, Kind};
use docmill_operations::review;

/// Empty lines at the end of a table of items.
const BLANK_LINES: usize = 3;
/// Lines that a form may add to those of the document.
const MAX_ADDED_LINES: usize = 1_000;
/// A longer text gets several lines.
const MAX_LINE_CHARS: usize = 70;

/// The source of the form.
pub(super) struct FormSource<'a> {
    /// The kind of the document.
    pub(super) kind: &'a Kind,
    /// The best known data.
    pub(super) data: &'a Map<String, Value>,
    /// The gate's findings.
    pub(super) findings: &'a [ReviewFinding],
    /// The pages, and where on them each value was found.
    pub(super) pages: &'a PicturedPages,
    /// Values typed before, if the form is shown again.
    pub(super) typed: Option<&'a FieldValues>,
}

/// A value as an input shows it.
fn shown_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.replace("\r\n", "\n"),
        Some(other) => other.to_string(),
    }
}

/// The lines of a list; empty if it is missing or no list.
fn lines_of<'a>(data: &'a Map<String, Value>, list: &str) -> &'a [Value] {
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

/// The box that takes a line off.
fn off_name(list: &str, line: usize) -> String {
    format!("off.{list}.{line}")
}

/// Cells as they were typed, by line and field.
type TypedLines = BTreeMap<usize, BTreeMap<String, String>>;

/// The typed cells of a list that has `known` lines.
///
/// # Errors
/// A line that is further down than a form adds any: each line up to it would be drawn.
fn typed_lines(list: &str, known: usize, form: &FieldValues) -> Result<TypedLines, ConsoleFailure> {
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
            Some(text) => review::parse_typed_cell(kind, list, field, text)?,
            None => kept,
        };
        item.insert(field.to_owned(), value);
    }
    Ok(Some(Value::Object(item)))
}

impl FormSource<'_> {
    /// The inputs, doubtful fields first.
    pub(super) fn inputs(&self) -> Markup {
        let fields: Vec<(&str, FieldType)> = self.kind.fields().collect();
        let (doubtful, sound): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| !self.findings_of(name).is_empty());
        html! {
            @if !doubtful.is_empty() {
                h2 { "To be checked" }
                @for (at, (name, field_type)) in doubtful.iter().enumerate() {
                    (self.field(name, *field_type, at == 0)) }
                h2 { "The rest" }
            }
            @for (name, field_type) in &sound { (self.field(name, *field_type, false)) }
        }
    }

    /// The list with the most lines; of several the first.
    fn longest_list(&self) -> Option<&str> {
        let lists = self.kind.fields().map(|(name, _)| name);
        let lists = lists.filter(|name| self.kind.item_types(name).next().is_some());
        let mut lists: Vec<&str> = lists.collect();
        lists.reverse();
        lists.into_iter().max_by_key(|list| lines_of(self.data, list).len())
    }

    fn findings_of(&self, field: &str) -> Vec<&ReviewFinding> {
        self.findings.iter().filter(|it| it.fields.iter().any(|it| it == field)).collect()
    }

    /// `first`: where the reviewer begins.
    fn field(&self, name: &str, field_type: FieldType, first: bool) -> Markup {
        let findings = self.findings_of(name);
        let id = format!("field-{name}");
        let class = if findings.is_empty() { "field" } else { "field doubtful" };
        let hint = description(&self.kind.schema, name);
        // Ids of the texts that a screen reader reads with the input.
        let mut described: Vec<String> =
            (0..findings.len()).map(|at| format!("{id}-finding-{at}")).collect();
        described.extend(hint.map(|_| format!("{id}-hint")));
        let described = Some(described.join(" ")).filter(|ids| !ids.is_empty());
        let about = InputPlace { id: &id, described: described.as_deref(), first };
        html! {
            div class=(class) data-field=(name) data-mark=[self.pages.mark_of(name)] {
                label for=(id) { (label_of(name)) }
                (self.pages.describe_place(name))
                @for (at, finding) in findings.iter().enumerate() {
                    p.finding id={ (id) "-finding-" (at) } { (finding.words) " " span.hint { (finding.code) } }
                }
                @if !findings.is_empty() { (self.pages.crop(name)) }
                @if field_type == FieldType::List && self.kind.item_types(name).next().is_some() {
                    (self.lines(name, about))
                } @else {
                    (self.input(name, field_type, about))
                }
                @if let Some(hint) = hint { p.hint id={ (id) "-hint" } { (hint) } }
            }
        }
    }

    fn input(&self, name: &str, field_type: FieldType, place: InputPlace<'_>) -> Markup {
        let InputPlace { id, described, first } = place;
        let input_name = format!("field.{name}");
        let typed = self.typed.and_then(|typed| typed.raw(&input_name));
        let text = typed.unwrap_or_else(|| shown_text(self.data.get(name)));
        let long = text.contains('\n') || text.chars().count() > MAX_LINE_CHARS;
        html! {
            @match field_type {
                FieldType::Boolean => select id=(id) name=(input_name) aria-describedby=[described] autofocus[first] {
                    @for choice in ["", "true", "false"] {
                        option value=(choice) selected[text == choice] { (choice) } }
                },
                FieldType::Number => input id=(id) name=(input_name) value=(text)
                    inputmode="decimal" aria-describedby=[described] autofocus[first];,
                FieldType::Date => input id=(id) name=(input_name) value=(text)
                    placeholder="YYYY-MM-DD" aria-describedby=[described] autofocus[first];,
                // Lists of texts and objects are shown, and taken, as JSON.
                FieldType::Text | FieldType::List | FieldType::Object => {
                    @if long {
                        // A line feed after the tag is not part of the text.
                        textarea id=(id) name=(input_name) rows="4" aria-describedby=[described] autofocus[first] { "\n" (text) }
                    } @else {
                        input id=(id) name=(input_name) value=(text) aria-describedby=[described] autofocus[first];
                    }
                }
            }
        }
    }

    fn lines(&self, list: &str, place: InputPlace<'_>) -> Markup {
        let InputPlace { id, described, first } = place;
        let before = lines_of(self.data, list);
        let typed = self.typed.map(|typed| typed_lines(list, before.len(), typed));
        let typed = typed.and_then(Result::ok).unwrap_or_default();
        let last_typed = typed.keys().next_back().map_or(0, |last| last.saturating_add(1));
        let count = (before.len() + BLANK_LINES).max(last_typed);
        let fields: Vec<&str> = self.kind.item_fields(list);
        let text = |line: usize, field: &str| {
            let cell = typed.get(&line).and_then(|cells| cells.get(field)).cloned();
            cell.unwrap_or_else(|| shown_text(before.get(line).and_then(|item| item.get(field))))
        };
        let is_off =
            |line| self.typed.is_some_and(|typed| typed.get(&off_name(list, line)).is_some());
        let blank = before.len();
        let cell_id = |line: usize, at: usize| match (line, at) {
            (0, 0) => Some(id.to_owned()),
            (line, 0) if line == blank => Some(format!("{id}-empty")),
            _ => None,
        };
        // One key means one thing: of several lists the longest has it.
        let key = (self.longest_list() == Some(list)).then_some("l");
        let empty_id = if blank == 0 { id.to_owned() } else { format!("{id}-empty") };
        html! {
            p { a href={ "#" (empty_id) } accesskey=[key] { "To the first empty line" } }
            div.wide { table.items {
                thead { tr { th { "#" } @for field in &fields { th { (label_of(field)) } } th { "Take off" } } }
                tbody { @for line in 0..count { tr {
                    td.number { (line + 1) }
                    @for (at, field) in fields.iter().enumerate() {
                        td data-mark=[self.pages.mark_of(&format!("{list}[{line}].{field}"))] {
                            input id=[cell_id(line, at)]
                            name={ "item." (list) "." (line) "." (field) } value=(text(line, field))
                            aria-label={ "Line " (line + 1) ", " (label_of(field)) }
                            aria-describedby=[described.filter(|_| line == 0 && at == 0)]
                            autofocus[first && line == 0 && at == 0]; }
                    }
                    td { @if line < blank { input type="checkbox" name=(off_name(list, line)) value="1"
                        checked[is_off(line)] aria-label={ "Take off line " (line + 1) }; } }
                } } }
            } }
            p.hint { "A line whose cells are all empty is taken off too. Save for more empty lines." }
        }
    }
}

/// How an input is found, read out and begun with.
#[derive(Clone, Copy)]
struct InputPlace<'a> {
    id: &'a str,
    /// Ids of its descriptions.
    described: Option<&'a str>,
    /// Whether the reviewer begins there.
    first: bool,
}

/// `invoice_number` as people write it.
fn label_of(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

fn description<'a>(schema: &'a Value, field: &str) -> Option<&'a str> {
    schema.get("properties")?.get(field)?.get("description")?.as_str()
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
    fn only_what_differs_from_what_was_shown_is_a_change() {
        let data = json!({
            "supplier_name": " A \r\nB", "total": 12.50, "due_date": null,
            "line_items": [{ "description": "x", "quantity": 1.0, "unit_price": null, "amount": 2 }],
        });
        let same = "field.supplier_name=+A+%0D%0AB&field.total=12.5&field.due_date=\
                    &item.line_items.0.description=x&item.line_items.0.quantity=1.0\
                    &item.line_items.0.unit_price=&item.line_items.0.amount=2\
                    &item.line_items.1.description=&item.line_items.1.amount=&field.unknown=1";
        assert_eq!(changes(&data, same).unwrap(), BTreeMap::new());
        let other = changes(&data, "field.total=13&field.due_date=2026-01-02").unwrap();
        assert_eq!(other["total"], "13");
        assert_eq!(other["due_date"], "2026-01-02");
    }

    #[test]
    fn lines_are_changed_added_and_taken_off_and_what_the_form_lacks_stays() {
        let line = |name: &str, amount: i64| {
            json!({
            "description": name, "article_number": null, "quantity": null, "unit": null,
            "unit_price": null, "tax_rate": null, "amount": amount })
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

    #[test]
    fn objects_and_lists_of_texts_are_changed_as_json() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let mut kind = kinds.get("invoice").unwrap().as_ref().clone();
        kind.schema["properties"]["payment"] = json!({"type": ["object", "null"], "properties": {"iban": {"type": ["string", "null"]}}});
        kind.schema["properties"]["tags"] =
            json!({"type": ["array", "null"], "items": {"type": "string"}});
        let data = json!({"payment": {"iban": "x"}, "tags": ["a"]});
        let source = FormSource {
            kind: &kind,
            data: data.as_object().unwrap(),
            findings: &[],
            pages: &PicturedPages::unseen(),
            typed: None,
        };
        let shown = source.inputs().into_string();
        assert!(shown.contains("{&quot;iban&quot;:&quot;x&quot;}"), "{shown}");
        let form = "field.payment=%7B%22iban%22%3A%22y%22%7D&field.tags=%5B%22a%22%5D";
        let form = FieldValues::parse(form.as_bytes());
        let changed = read_changes(&kind, data.as_object().unwrap(), &form).unwrap();
        assert_eq!(changed, [("payment".to_owned(), "{\"iban\":\"y\"}".to_owned())].into());
    }
}
