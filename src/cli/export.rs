//! `docmill export`: extracted data as CSV (RFC 4180, LF line ends), for spreadsheets and
//! accounting.
//!
//! Document texts are untrusted: cells that a spreadsheet would evaluate as a formula are escaped.
//! Lists and objects are JSON in their cell, or separate rows with `--lines`.

use anyhow::Context as _;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::jobs::open_database;
use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_core::model::IngestionId;
use docmill_gate::kinds::{Kind, KindSet};
use docmill_operations::inspect::{self, ExportedDocument, IngestionFilter};

/// Documents of one question, where all are wanted.
const PAGE: u32 = 500;
/// The columns before the fields.
const FIRST_COLUMNS: [&str; 6] =
    ["document_id", "file", "tenant", "registered_at", "needs_review", "review_reasons"];
/// First characters of a formula in Excel, `LibreOffice` or Google Sheets.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub(super) struct CsvExportArgs {
    /// Document kind; its fields are the columns
    #[arg(long, default_value = "invoice")]
    kind: String,
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Registered within this time, e.g. 30days
    #[arg(long, value_name = "TIME", value_parser = inspect::parse_look_back)]
    since: Option<std::time::Duration>,
    /// One row per entry of this list instead of per document, e.g. `line_items`
    #[arg(long, value_name = "LIST")]
    lines: Option<String>,
}

/// The columns of an export.
struct ExportColumns {
    fields: Vec<String>,
    /// A list, and the fields of its entries.
    list: Option<(String, Vec<String>)>,
}

impl ExportColumns {
    fn of_kind(kind: &Kind, lines: Option<&str>) -> anyhow::Result<Self> {
        let list = match lines {
            None => None,
            Some(list) => {
                let items: Vec<String> =
                    kind.item_fields(list).into_iter().map(str::to_owned).collect();
                anyhow::ensure!(!items.is_empty(), "kind {} has no list `{list}`", kind.name);
                Some((list.to_owned(), items))
            }
        };
        let is_listed = |name: &str| list.as_ref().is_some_and(|(list, _)| list == name);
        let fields = kind.fields().map(|(name, _)| name.to_owned());
        let fields = fields.filter(|name| !is_listed(name)).collect();
        Ok(Self { fields, list })
    }

    fn header(&self) -> Vec<String> {
        let items = self
            .list
            .iter()
            .flat_map(|(list, items)| items.iter().map(move |item| format!("{list}.{item}")));
        let first = FIRST_COLUMNS.iter().map(|&name| name.to_owned());
        first.chain(self.fields.iter().cloned()).chain(items).collect()
    }

    /// The rows of one document.
    fn rows(&self, first: &[String], data: &Map<String, Value>) -> Vec<Vec<String>> {
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

pub(super) async fn export(
    context: &CommandContext,
    arguments: CsvExportArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let kinds = KindSet::load(&context.load_config(DATABASE)?.kinds)?;
    let kind =
        kinds.get(&arguments.kind).with_context(|| format!("unknown kind `{}`", arguments.kind))?;
    let columns = ExportColumns::of_kind(kind, arguments.lines.as_deref())?;
    let filter = IngestionFilter {
        kind: Some(arguments.kind),
        tenant: arguments.tenant,
        since: arguments.since.map(|since| OffsetDateTime::now_utc() - since),
        ..IngestionFilter::default()
    };
    print::piece(&csv_line(&columns.header()))?;
    let mut after = None;
    loop {
        let page = inspect::list_exported_documents(&db, &filter, PAGE, after).await?;
        let Some(last) = page.last() else { return Ok(CommandExit::Done) };
        after = Some(IngestionId(last.ingestion_id));
        for document in &page {
            let Some(data) = document.data.as_object() else { continue };
            for line in columns.rows(&first_cells(document)?, data) {
                print::piece(&csv_line(&line))?;
            }
        }
    }
}

fn first_cells(document: &ExportedDocument) -> anyhow::Result<Vec<String>> {
    let file = document.original_name.as_deref().unwrap_or(&document.file_path);
    Ok(vec![
        document.document_id.to_string(),
        plain_text(file),
        document.tenant.as_deref().map_or_else(String::new, plain_text),
        document.created_at.format(&Rfc3339)?,
        document.needs_human_review.to_string(),
        document.review_reasons.join(" "),
    ])
}

/// A value as a cell shows it: numbers as numbers, texts as texts.
fn value_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain_text(text),
        other => other.to_string(),
    }
}

/// A text that no spreadsheet takes for a formula: an apostrophe before what would begin one.
fn plain_text(text: &str) -> String {
    if text.trim_start_matches(' ').starts_with(FORMULA) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
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
    use super::*;
    use docmill_core::config::KindsConfig;
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
        assert!(ExportColumns::of_kind(kind, Some("total")).is_err());
        let columns = ExportColumns::of_kind(kind, Some("line_items")).unwrap();
        let data = json!({"total": 3, "line_items": [{"amount": 1}, {"amount": 2}]});
        let rows = columns.rows(&[], data.as_object().unwrap());
        let at = |name: &str| columns.header().iter().position(|it| it == name).unwrap() - 6;
        let cells = |name: &str| rows.iter().map(|row| row[at(name)].clone()).collect::<Vec<_>>();
        assert_eq!(cells("line_items.amount"), ["1", "2"]);
        assert_eq!(cells("total"), ["3", "3"]);
    }
}
