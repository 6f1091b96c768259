//! CSV (RFC 4180, LF line ends), for spreadsheets and accounting.
//!
//! Document texts are untrusted: cells that a spreadsheet would evaluate as a formula are escaped.
//! Lists and objects are JSON in their cell, or separate rows.

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

/// How CSV is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether a byte order mark comes first, by which Excel recognises UTF-8.
    pub byte_order_mark: bool,
}

/// The columns of an export.
pub struct CsvColumns {
    fields: Vec<String>,
    /// A list, and the fields of its entries.
    list: Option<(String, Vec<String>)>,
}

impl CsvColumns {
    /// The fields of a kind; with `lines` a row for each entry of this list.
    ///
    /// # Errors
    /// `Rejected`: the kind has no such list.
    pub fn of_kind(kind: &Kind, lines: Option<&str>) -> Result<Self> {
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
        Ok(Self { fields, list })
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
    pub fn header(&self, options: CsvOptions) -> String {
        let mark = options.byte_order_mark.then_some(BYTE_ORDER_MARK);
        mark.into_iter().collect::<String>() + &csv_line(&self.titles())
    }

    /// The lines of one document; none where its data is no object.
    pub fn rows(&self, document: &ExportedDocument) -> String {
        let Some(data) = document.data.as_object() else { return String::new() };
        self.cells(&first_cells(document), data).iter().map(|cells| csv_line(cells)).collect()
    }

    fn cells(&self, first: &[String], data: &Map<String, Value>) -> Vec<Vec<String>> {
        let own: Vec<String> = first
            .iter()
            .cloned()
            .chain(self.fields.iter().map(|name| cell_of(data, name)))
            .collect();
        let Some((list, items)) = &self.list else { return vec![own] };
        let entries = data.get(list).and_then(Value::as_array).into_iter().flatten();
        let entries = entries.filter_map(Value::as_object);
        entries
            .map(|entry: &Map<String, Value>| {
                own.iter().cloned().chain(items.iter().map(|item| cell_of(entry, item))).collect()
            })
            .collect()
    }
}

fn cell_of(from: &Map<String, Value>, name: &str) -> String {
    from.get(name).map_or_else(String::new, value_cell)
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
fn value_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain_text(text),
        other => other.to_string(),
    }
}

/// A text that no spreadsheet takes for a formula: an apostrophe before what would begin one, also
/// behind characters that an import drops.
fn plain_text(text: &str) -> String {
    if text.trim_start_matches(is_dropped).starts_with(FORMULA) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

fn is_dropped(c: char) -> bool {
    c.is_whitespace() || c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c) || c == '\u{feff}'
}

fn csv_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells
        .iter()
        .map(|cell: &String| match cell.contains([',', '"', '\n', '\r', ';']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        })
        .collect();
    format!("{}\n", cells.join(","))
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
            (json!("\t=1"), "'\t=1"),
            (json!("\n=1"), "'\n=1"),
            (json!("\0\u{a0}\u{feff}=1"), "'\0\u{a0}\u{feff}=1"),
            (json!("＝1"), "'＝1"),
            (json!("RE-17"), "RE-17"),
            (json!(-12.5), "-12.5"),
            (json!(null), ""),
            (json!(["=1"]), "[\"=1\"]"),
        ] {
            assert_eq!(value_cell(&value), expected);
        }
        let line = csv_line(&["a \"b\", c".to_owned(), "x\ny".to_owned(), "z".to_owned()]);
        assert_eq!(line, "\"a \"\"b\"\", c\",\"x\ny\",z\n");
    }

    #[test]
    fn entries_of_a_list_are_rows_with_the_fields_of_their_document() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        assert!(CsvColumns::of_kind(kind, Some("total")).is_err());
        let columns = CsvColumns::of_kind(kind, Some("line_items")).unwrap();
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
        let columns = CsvColumns::of_kind(kinds.get("invoice").unwrap(), None).unwrap();
        for byte_order_mark in [false, true] {
            let header = columns.header(CsvOptions { byte_order_mark });
            assert_eq!(header.starts_with("\u{feff}document_id,"), byte_order_mark, "{header}");
            assert_eq!(header.starts_with("document_id,"), !byte_order_mark, "{header}");
        }
    }
}
