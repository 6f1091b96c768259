//! CSV (RFC 4180, LF line ends), for spreadsheets and accounting.
//!
//! Document texts are untrusted: texts that a spreadsheet would evaluate as a formula are escaped, also
//! where it splits lines at another separator than they were written with.
//! Lists and objects are JSON in their cell, or separate rows.

use std::str::FromStr;

use serde_json::{Map, Value};
use time::format_description::well_known::Rfc3339;

use docmill_core::fault::{Error, Fault, Result};
use docmill_gate::kinds::Kind;
use docmill_ledger::db::reports::ExportedDocument;

/// The columns before the fields.
const FIRST_COLUMNS: [&str; 6] =
    ["document_id", "file", "tenant", "registered_at", "needs_review", "review_reasons"];
/// First characters of a formula in Excel, `LibreOffice` or Google Sheets.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// By it Excel recognises UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Characters at which programs begin a new cell.
const CELL_BREAKS: [char; 5] = [',', ';', '\t', '\n', '\r'];

/// How CSV is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether a byte order mark comes first, by which Excel recognises UTF-8.
    pub byte_order_mark: bool,
    /// Stands between cells.
    pub separator: CsvSeparator,
    /// Stands before the decimals of a number.
    pub decimal: DecimalSign,
}

/// The separator of cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CsvSeparator {
    /// A comma, as in RFC 4180.
    #[default]
    Comma,
    /// A semicolon, as spreadsheets of countries with decimal commas expect.
    Semicolon,
    /// A tab.
    Tab,
}

impl CsvSeparator {
    /// All, by their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("comma", Self::Comma), ("semicolon", Self::Semicolon), ("tab", Self::Tab)];

    fn sign(self) -> &'static str {
        match self {
            Self::Comma => ",",
            Self::Semicolon => ";",
            Self::Tab => "\t",
        }
    }
}

impl FromStr for CsvSeparator {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        find_named(&Self::ALL, name)
    }
}

/// The decimal sign of numbers in cells; numbers in JSON keep the point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DecimalSign {
    /// 12.5
    #[default]
    Point,
    /// 12,5
    Comma,
}

impl DecimalSign {
    /// Both, by their names.
    pub const ALL: [(&'static str, Self); 2] = [("point", Self::Point), ("comma", Self::Comma)];
}

impl FromStr for DecimalSign {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        find_named(&Self::ALL, name)
    }
}

fn find_named<T: Copy>(all: &[(&str, T)], name: &str) -> std::result::Result<T, String> {
    let found = all.iter().find(|(own, _)| *own == name).map(|(_, it)| *it);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(own, _)| *own).collect();
        format!("it is one of {}", names.join(", "))
    })
}

/// The columns of an export.
pub struct CsvColumns {
    options: CsvOptions,
    fields: Vec<String>,
    /// A list, and the fields of its entries.
    list: Option<(String, Vec<String>)>,
}

impl CsvColumns {
    /// The fields of a kind; with `lines` a row for each entry of this list.
    ///
    /// # Errors
    /// `Rejected`: the kind has no such list.
    pub fn of_kind(kind: &Kind, lines: Option<&str>, options: CsvOptions) -> Result<Self> {
        let list = match lines {
            None => None,
            Some(list) => {
                let items: Vec<String> =
                    kind.item_fields(list).into_iter().map(str::to_owned).collect();
                if items.is_empty() {
                    let text = format!("kind {} has no list `{list}`", kind.name);
                    return Err(Error::new(Fault::Rejected, text));
                }
                Some((list.to_owned(), items))
            }
        };
        let is_listed = |name: &str| list.as_ref().is_some_and(|(list, _)| list == name);
        let fields = kind.fields().map(|(name, _)| name.to_owned());
        let fields = fields.filter(|name| !is_listed(name)).collect();
        Ok(Self { options, fields, list })
    }

    fn titles(&self) -> Vec<String> {
        let items = self
            .list
            .iter()
            .flat_map(|(list, items)| items.iter().map(move |item| format!("{list}.{item}")));
        let first = FIRST_COLUMNS.iter().map(|&name| name.to_owned());
        first.chain(self.fields.iter().cloned()).chain(items).collect()
    }

    /// The first line.
    pub fn header(&self) -> String {
        let mark = self.options.byte_order_mark.then_some(BYTE_ORDER_MARK);
        mark.into_iter().collect::<String>() + &csv_line(&self.titles(), self.options.separator)
    }

    /// The lines of one document; none where its data is no object.
    pub fn rows(&self, document: &ExportedDocument) -> String {
        let Some(data) = document.data.as_object() else { return String::new() };
        let rows = self.cells(&first_cells(document), data);
        rows.iter().map(|cells: &Vec<String>| csv_line(cells, self.options.separator)).collect()
    }

    fn cells(&self, first: &[String], data: &Map<String, Value>) -> Vec<Vec<String>> {
        let own: Vec<String> = first
            .iter()
            .cloned()
            .chain(self.fields.iter().map(|name| self.cell_of(data, name)))
            .collect();
        let Some((list, items)) = &self.list else { return vec![own] };
        let entries = data.get(list).and_then(Value::as_array).into_iter().flatten();
        let entries = entries.filter_map(Value::as_object);
        entries
            .map(|entry: &Map<String, Value>| {
                let cells = items.iter().map(|item| self.cell_of(entry, item));
                own.iter().cloned().chain(cells).collect()
            })
            .collect()
    }

    fn cell_of(&self, from: &Map<String, Value>, name: &str) -> String {
        from.get(name).map_or_else(String::new, |value| value_cell(value, self.options.decimal))
    }
}

fn first_cells(document: &ExportedDocument) -> Vec<String> {
    let file = document.original_name.as_deref().unwrap_or(&document.file_path);
    vec![
        document.document_id.to_string(),
        plain_text(file),
        document.tenant.as_deref().map_or_else(String::new, plain_text),
        document.created_at.format(&Rfc3339).unwrap_or_default(),
        document.needs_human_review.to_string(),
        document.review_reasons.join(" "),
    ]
}

/// A value as a cell shows it: numbers as numbers, texts as texts.
fn value_cell(value: &Value, decimal: DecimalSign) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain_text(text),
        Value::Number(number) if decimal == DecimalSign::Comma => {
            number.to_string().replace('.', ",")
        }
        other => plain_value(other).to_string(),
    }
}

/// The same value, its texts plain.
fn plain_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain_text(text)),
        Value::Array(items) => items.iter().map(plain_value).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (plain_text(name), plain_value(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// A text that no spreadsheet takes for a formula: an apostrophe before what would begin one, also
/// behind characters that an import drops, and where a program could begin a cell within the text.
fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 1);
    if text.starts_with(['\t', '\r']) {
        plain.push('\'');
    }
    for piece in text.split_inclusive(CELL_BREAKS) {
        if piece.trim_start_matches(is_dropped).starts_with(FORMULA) {
            plain.push('\'');
        }
        plain.push_str(piece);
    }
    plain
}

fn is_dropped(c: char) -> bool {
    let is_invisible = ('\u{200b}'..='\u{200f}').contains(&c) || c == '\u{feff}';
    c.is_whitespace() || c.is_control() || c == '"' || is_invisible
}

fn csv_line(cells: &[String], separator: CsvSeparator) -> String {
    let cells: Vec<String> = cells
        .iter()
        .map(|cell: &String| match cell.contains('"') || cell.contains(CELL_BREAKS) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        })
        .collect();
    format!("{}\n", cells.join(separator.sign()))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use serde_json::json;

    #[test]
    fn no_text_of_a_document_is_a_formula_and_numbers_stay_numbers() {
        for (value, expected) in [
            (json!("=HYPERLINK(\"http://x\")"), "'=HYPERLINK(\"http://x\")"),
            (json!("+1"), "'+1"),
            (json!("-5 Grad GmbH"), "'-5 Grad GmbH"),
            (json!("@SUM(A1)"), "'@SUM(A1)"),
            (json!("  =1"), "'  =1"),
            (json!("\t=1"), "'\t'=1"),
            (json!("\ttext"), "'\ttext"),
            (json!("\n=1"), "\n'=1"),
            (json!("a;=1, \"+2\t@3\r\n-4"), "a;'=1,' \"+2\t'@3\r\n'-4"),
            (json!("a; b, c = d - e"), "a; b, c = d - e"),
            (json!("\0\u{a0}\u{feff}=1"), "'\0\u{a0}\u{feff}=1"),
            (json!("＝1"), "'＝1"),
            (json!("RE-17"), "RE-17"),
            (json!(-12.5), "-12.5"),
            (json!(null), ""),
            (json!(["=1", -2]), "[\"'=1\",-2]"),
            (json!({"a": {"b": "x;@1"}}), "{\"a\":{\"b\":\"x;'@1\"}}"),
        ] {
            assert_eq!(value_cell(&value, DecimalSign::Point), expected);
        }
        for (value, expected) in
            [(json!(-12.5), "-12,5"), (json!(1234), "1234"), (json!("1.5"), "1.5")]
        {
            assert_eq!(value_cell(&value, DecimalSign::Comma), expected);
        }
    }

    #[test]
    fn no_cell_begins_with_a_formula_at_whichever_separator_a_spreadsheet_splits() {
        let hostile = ["a", "x;=1", "y,+2", "z\t@3", "u\n-4", "\"=5\"", "v\";=6", "w\r=7"];
        let cells: Vec<String> = hostile.map(plain_text).to_vec();
        for (name, separator) in CsvSeparator::ALL {
            assert_eq!(name.parse(), Ok(separator));
            let line = csv_line(&cells, separator);
            for split in [',', ';', '\t'] {
                // As by a program that honours no quotes.
                for piece in line.split([split, '\n', '\r']) {
                    let piece = piece.trim_start_matches('"');
                    assert!(!piece.starts_with(FORMULA), "{piece:?} of {line:?} at {split:?}");
                }
            }
        }
        let line = csv_line(&["a \"b\"; c".to_owned(), "1,5".to_owned()], CsvSeparator::Semicolon);
        assert_eq!(line, "\"a \"\"b\"\"; c\";\"1,5\"\n");
        assert!("pipe".parse::<CsvSeparator>().is_err() && "dot".parse::<DecimalSign>().is_err());
    }

    #[test]
    fn entries_of_a_list_are_rows_with_the_fields_of_their_document() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        assert!(CsvColumns::of_kind(kind, Some("total"), CsvOptions::default()).is_err());
        let columns = CsvColumns::of_kind(kind, Some("line_items"), CsvOptions::default()).unwrap();
        let data = json!({"total": 3, "line_items": [{"amount": 1}, {"amount": 2}]});
        let rows = columns.cells(&[], data.as_object().unwrap());
        let at = |name: &str| columns.titles().iter().position(|it| it == name).unwrap() - 6;
        let cells = |name: &str| rows.iter().map(|row| row[at(name)].clone()).collect::<Vec<_>>();
        assert_eq!(cells("line_items.amount"), ["1", "2"]);
        assert_eq!(cells("total"), ["3", "3"]);
        let text = columns.rows(&sample(Some("=1.pdf"), data));
        let line = "00000000-0000-0000-0000-000000000009,'=1.pdf,acme,1970-01-01T00:00:00Z,false,,";
        assert_eq!(text.lines().filter(|it| it.starts_with(line)).count(), 2, "{text}");
    }

    #[test]
    fn a_byte_order_mark_comes_first_where_it_is_asked_for() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        for byte_order_mark in [false, true] {
            let options = CsvOptions { byte_order_mark, ..CsvOptions::default() };
            let columns =
                CsvColumns::of_kind(kinds.get("invoice").unwrap(), None, options).unwrap();
            let header = columns.header();
            assert_eq!(header.starts_with("\u{feff}document_id,"), byte_order_mark, "{header}");
            assert_eq!(header.starts_with("document_id,"), !byte_order_mark, "{header}");
        }
    }
}
