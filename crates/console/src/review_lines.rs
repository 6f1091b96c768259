//! Tables of lines in a review: a row per line, empty rows for more, and the sum beside the totals.
//!
//! Without script the button for more lines redraws the form with what was typed; with it rows are
//! added in place, taken from a spreadsheet, and summed up while they are typed.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::fields::FieldValues;
use super::review_form::{TypedLines, label_of, lines_of, off_name, shown_text, typed_lines};
use super::review_inputs::{FormSource, InputPlace};
use docmill_gate::kinds::{FieldRole, FieldType, Kind, RuleCheck};

/// Empty rows at the end of the table of the document's lines.
const BLANK_LINES: usize = 3;
/// The same of the other tables.
const BLANK_ENTRIES: usize = 1;

/// The column of a list that adds up to one of these fields.
struct ColumnSum<'a> {
    item: &'a str,
    totals: &'a [String],
}

/// One table and its contents.
struct LineTable<'a> {
    list: &'a str,
    before: &'a [Value],
    typed: TypedLines,
    form: Option<&'a FieldValues>,
    /// Rows that are drawn.
    count: usize,
    sum: Option<ColumnSum<'a>>,
}

impl LineTable<'_> {
    fn text(&self, line: usize, field: &str) -> String {
        let cell = self.typed.get(&line).and_then(|cells| cells.get(field)).cloned();
        cell.unwrap_or_else(|| shown_text(self.before.get(line).and_then(|item| item.get(field))))
    }

    fn is_off(&self, line: usize) -> bool {
        self.form.is_some_and(|form| form.get(&off_name(self.list, line)).is_some())
    }

    /// Rows with anything in them.
    fn filled(&self) -> usize {
        let typed = self.typed.iter().filter(|(line, cells)| {
            **line >= self.before.len() && cells.values().any(|text| !text.trim().is_empty())
        });
        self.before.len() + typed.count()
    }
}

/// The column of a list that a rule of the kind adds up.
fn column_sum<'a>(kind: &'a Kind, list: &str) -> Option<ColumnSum<'a>> {
    kind.rules.iter().find_map(|rule| match &rule.check {
        RuleCheck::ListSum { list: summed, item, totals, .. } if summed == list => {
            Some(ColumnSum { item, totals })
        }
        _ => None,
    })
}

/// A value of the data as an amount, for the sum without script.
fn amount_of(data: Option<&Value>) -> Option<f64> {
    data.and_then(Value::as_f64)
}

impl FormSource<'_> {
    /// All tables: that of the document's lines first and open, others folded unless doubtful.
    pub(super) fn lines(&self) -> Markup {
        let main = self.main_list();
        let lists = self.kind.fields().map(|(name, _)| name).filter(|name| self.is_table(name));
        let (first, others): (Vec<&str>, Vec<&str>) = lists.partition(|name| Some(*name) == main);
        html! {
            @for list in first {
                @let table = self.table_of(list, BLANK_LINES);
                div.field.lines-field.doubtful[self.is_doubtful(list)] data-field=(list) {
                    div.head { label for={ "field-" (list) } { (label_of(list)) " " span.count { (table.filled()) } }
                        (self.sums(&table)) (self.help(list)) (add_button()) }
                    (self.finding_lines(list))
                    (self.table(&table, true))
                }
            }
            @for list in others {
                @let table = self.table_of(list, BLANK_ENTRIES);
                details.more open[self.is_doubtful(list)] {
                    summary { (label_of(list)) " " span.count { (table.filled()) } }
                    div.field.doubtful[self.is_doubtful(list)] data-field=(list) {
                        (self.finding_lines(list))
                        (self.table(&table, false))
                        div.head { (add_button()) }
                    }
                }
            }
        }
    }

    /// The list of the document's lines; of a kind without that role, the longest.
    fn main_list(&self) -> Option<&str> {
        let lines = self.kind.field_of(FieldRole::Lines);
        if self.is_table(lines) {
            return Some(lines);
        }
        let lists = self.kind.fields().map(|(name, _)| name).filter(|name| self.is_table(name));
        let mut lists: Vec<&str> = lists.collect();
        lists.reverse();
        lists.into_iter().max_by_key(|list| lines_of(self.data, list).len())
    }

    fn table_of<'a>(&'a self, list: &'a str, blank: usize) -> LineTable<'a> {
        let before = lines_of(self.data, list);
        let typed = self.typed.map(|typed| typed_lines(list, before.len(), typed));
        let typed = typed.and_then(Result::ok).unwrap_or_default();
        let last_typed = typed.keys().next_back().map_or(0, |last| last.saturating_add(1));
        let count = (before.len() + blank).max(last_typed + self.added_lines);
        let sum = column_sum(self.kind, list);
        LineTable { list, before, typed, form: self.typed, count, sum }
    }

    /// The sum of the summed column beside the totals that it should be.
    fn sums(&self, table: &LineTable<'_>) -> Markup {
        let Some(sum) = &table.sum else { return Markup::default() };
        let amounts = table.before.iter().filter_map(|line| amount_of(line.get(sum.item)));
        let total: f64 = amounts.sum();
        html! {
            span.sums {
                "Sum " output data-sum-of=(table.list) data-column=(sum.item)
                    data-totals=(sum.totals.join(" ")) { (format!("{total:.2}")) }
                @for name in sum.totals {
                    @if let Some(value) = amount_of(self.data.get(name)) {
                        span data-total=(name) { " · " (label_of(name)) " " (format!("{value:.2}")) }
                    }
                }
            }
        }
    }

    fn table(&self, table: &LineTable<'_>, is_main: bool) -> Markup {
        let fields: Vec<(&str, FieldType)> = self.kind.item_types(table.list).collect();
        let (list, blank) = (table.list, table.before.len());
        let (id, described) = (format!("field-{list}"), self.described_by(list));
        let first = self.first_doubtful() == Some(list);
        let place = InputPlace { id: &id, described: described.as_deref(), first };
        let empty_id = if blank == 0 { id.clone() } else { format!("{id}-empty") };
        html! {
            // One key means one thing: the document's lines have it.
            @if is_main { a.skip-line href={ "#" (empty_id) } accesskey="l" { "To the first empty line" } }
            div.wide { table.items data-list=(list) {
                thead { tr { th.number { "#" }
                    @for (field, field_type) in &fields { th class=(column_class(*field_type)) { (label_of(field)) } }
                    th { "Delete" } } }
                tbody { @for line in 0..table.count { (self.row(table, &fields, line, place)) } }
            } }
        }
    }

    fn row(
        &self,
        table: &LineTable<'_>,
        fields: &[(&str, FieldType)],
        line: usize,
        place: InputPlace<'_>,
    ) -> Markup {
        let (list, blank) = (table.list, table.before.len());
        let is_first = |at: usize| line == 0 && at == 0;
        html! {
            tr {
                td.number { (line + 1) }
                @for (at, (field, field_type)) in fields.iter().enumerate() {
                    td class=(column_class(*field_type))
                        data-mark=[self.pages.mark_of(&format!("{list}[{line}].{field}"))] {
                        input id=[cell_id(place.id, line, at, blank)]
                            name={ "item." (list) "." (line) "." (field) } value=(table.text(line, field))
                            data-column=(field)
                            aria-label={ "Line " (line + 1) ", " (label_of(field)) }
                            aria-describedby=[place.described.filter(|_| is_first(at))]
                            autofocus[place.first && is_first(at)]; }
                }
                td { @if line < blank { input type="checkbox" name=(off_name(list, line)) value="1"
                    checked[table.is_off(line)] aria-label={ "Delete line " (line + 1) }; } }
            }
        }
    }
}

fn add_button() -> Markup {
    html! { button.plain name="decision" value="more_lines" data-add { "Add line" } }
}

/// The id of a table's first cell, and of the first empty one.
fn cell_id(id: &str, line: usize, at: usize, blank: usize) -> Option<String> {
    match (line, at) {
        (0, 0) => Some(id.to_owned()),
        (line, 0) if line == blank => Some(format!("{id}-empty")),
        _ => None,
    }
}

fn column_class(field_type: FieldType) -> &'static str {
    match field_type {
        FieldType::Number => "number",
        FieldType::Date | FieldType::Boolean => "short",
        FieldType::Text | FieldType::List | FieldType::Object => "text",
    }
}

/// The total and its currency, by the roles of the kind; `None`: no total.
pub(super) fn total_text(kind: &Kind, data: &Map<String, Value>) -> Option<String> {
    let total = amount_of(data.get(kind.field_of(FieldRole::Total)))?;
    let currency = data.get(kind.field_of(FieldRole::Currency)).and_then(Value::as_str);
    Some(format!("{total:.2} {}", currency.unwrap_or_default()).trim_end().to_owned())
}
