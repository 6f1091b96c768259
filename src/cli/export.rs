//! `docmill export`: extracted data as CSV, UBL or packages for DATEV, for spreadsheets and accounting.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use time::OffsetDateTime;

use super::jobs::open_database;
use super::{CommandContext, CommandExit, DATABASE, UsageError, print};
use docmill_core::config::ConfigNeeds;
use docmill_core::fault::{self, Fault};
use docmill_core::model::IngestionId;
use docmill_gate::kinds::{Kind, KindSet};
use docmill_operations::export::{
    CsvColumns, CsvOptions, CsvSeparator, DatevInvoice, DatevPackages, DecimalSign, ExportForm,
    ExportLayout, ExportStyle, ExportedDocument, exported_document, kind_of, write_export,
};
use docmill_operations::inspect::{self, IngestionFilter};
use docmill_operations::{Db, review};
use docmill_storage::ObjectStore;

/// Documents of one question, where all are wanted.
const PAGE: u32 = 500;

/// A form of export on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// A row per document, or per entry of a list
    Csv,
    /// Invoices and credit notes in UBL 2.1 by EN 16931, a file per document
    Ubl,
    /// Received invoices for DATEV Unternehmen online: ZIP packages of ledger files and originals
    Datev,
}

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// One document: id of the ingestion or document, or a SHA-256 prefix
    id: Option<String>,
    /// Form of the output
    #[arg(long, value_enum, default_value = "csv")]
    format: ExportFormat,
    /// Document kind; its fields are the columns
    #[arg(long, default_value = "invoice", conflicts_with = "id")]
    kind: String,
    /// Filter by tenant
    #[arg(long, conflicts_with = "id")]
    tenant: Option<String>,
    /// Registered within this time, e.g. 30days
    #[arg(long, value_name = "TIME", value_parser = inspect::parse_look_back, conflicts_with = "id")]
    since: Option<std::time::Duration>,
    /// CSV: one row per entry of this list instead of per document, e.g. `line_items`
    #[arg(long, value_name = "LIST")]
    lines: Option<String>,
    /// CSV: begin with a byte order mark, by which Excel recognises UTF-8
    #[arg(long)]
    bom: bool,
    /// CSV: separator of cells: comma, semicolon or tab
    #[arg(long, value_name = "NAME", default_value = "comma")]
    separator: CsvSeparator,
    /// CSV: decimal sign of numbers: point or comma
    #[arg(long, value_name = "NAME", default_value = "point")]
    decimal: DecimalSign,
    /// Write files into this folder: KIND.csv and KIND-LIST.csv for each list, or a file per document
    #[arg(long, value_name = "DIR", conflicts_with = "lines")]
    output: Option<PathBuf>,
    /// Names of the files of documents, e.g. `{tenant}/{day}/{name}-{id}`
    #[arg(long, value_name = "TEMPLATE", requires = "output")]
    layout: Option<String>,
}

impl ExportArgs {
    fn csv_options(&self) -> CsvOptions {
        CsvOptions { byte_order_mark: self.bom, separator: self.separator, decimal: self.decimal }
    }

    fn ubl_style<'a>(&self, layout: &'a ExportLayout) -> ExportStyle<'a> {
        ExportStyle { form: ExportForm::Ubl, csv: self.csv_options(), layout }
    }

    fn filter(&self) -> IngestionFilter {
        IngestionFilter {
            kind: Some(self.kind.clone()),
            tenant: self.tenant.clone(),
            since: self.since.map(|since| OffsetDateTime::now_utc() - since),
            ..IngestionFilter::default()
        }
    }

    fn layout(&self) -> anyhow::Result<ExportLayout> {
        let Some(template) = &self.layout else { return Ok(ExportLayout::of_downloads()) };
        ExportLayout::parse(template)
            .map_err(|defect| UsageError(format!("--layout: {defect}")).into())
    }
}

/// Counts of an export into a folder.
#[derive(Debug, Default, Serialize)]
struct ExportReport {
    /// Documents that were written.
    written: u64,
    /// Documents that the form cannot carry, and why.
    left_out: Vec<LeftOutDocument>,
}

impl ExportReport {
    /// Notes a document that the form cannot carry.
    ///
    /// # Errors
    /// Any other fault, as it is.
    fn leave_out(&mut self, document: &ExportedDocument, error: fault::Error) -> fault::Result<()> {
        if error.fault != Fault::Rejected {
            return Err(error);
        }
        let (document_id, problem) = (document.document_id, error.to_string());
        self.left_out.push(LeftOutDocument { document_id, problem });
        Ok(())
    }
}

/// A document that was not written.
#[derive(Debug, Serialize)]
struct LeftOutDocument {
    document_id: uuid::Uuid,
    problem: String,
}

pub(super) async fn export(
    context: &CommandContext,
    arguments: ExportArgs,
) -> anyhow::Result<CommandExit> {
    let layout = arguments.layout()?;
    let has_originals = arguments.format == ExportFormat::Datev;
    let needs = ConfigNeeds { store: has_originals, ..DATABASE };
    let (app, db) = open_database(context, needs).await?;
    let kinds = KindSet::load(&app.config().kinds)?;
    if let Some(id) = &arguments.id {
        return export_one(&db, &kinds, id, &arguments).await;
    }
    let kind =
        kinds.get(&arguments.kind).with_context(|| format!("unknown kind `{}`", arguments.kind))?;
    match (arguments.format, &arguments.output) {
        (ExportFormat::Csv, None) => print_csv(&db, kind, &arguments).await,
        (ExportFormat::Csv, Some(folder)) => {
            let report = write_csv_files(&db, kind, &arguments, folder).await?;
            show_report(context, &report)
        }
        (ExportFormat::Ubl, Some(folder)) => {
            let report = write_files(&db, kind, &arguments, folder, &layout).await?;
            show_report(context, &report)
        }
        (ExportFormat::Datev, Some(folder)) => {
            let store = app.open_store().await?;
            let report = write_packages(&db, store.as_ref(), kind, &arguments, folder).await?;
            show_report(context, &report)
        }
        (ExportFormat::Ubl, None) => {
            Err(UsageError("--format ubl takes --output DIR, or the id of one document".to_owned())
                .into())
        }
        (ExportFormat::Datev, None) => {
            Err(UsageError("--format datev takes --output DIR".to_owned()).into())
        }
    }
}

/// Prints one document.
async fn export_one(
    db: &Db,
    kinds: &KindSet,
    id: &str,
    arguments: &ExportArgs,
) -> anyhow::Result<CommandExit> {
    if arguments.output.is_some() {
        return Err(UsageError("one document is printed: leave --output out".to_owned()).into());
    }
    let found = inspect::find_ingestions(db, id).await?;
    let row = found.first().context("nothing has this id")?;
    let document = exported_document(row, &review::load_case(db, &row.id.to_string()).await?)?;
    let kind = kind_of(kinds, row)?;
    match arguments.format {
        ExportFormat::Csv => {
            let columns =
                CsvColumns::of_kind(kind, arguments.lines.as_deref(), arguments.csv_options())?;
            print::piece(&columns.header())?;
            print::piece(&columns.rows(&document))?;
        }
        ExportFormat::Ubl => {
            let layout = ExportLayout::of_downloads();
            let style = arguments.ubl_style(&layout);
            let file = write_export(db, kind, &document, style).await?;
            print::piece(&String::from_utf8(file.bytes)?)?;
        }
        ExportFormat::Datev => {
            return Err(UsageError("--format datev takes --output DIR and no id".to_owned()).into());
        }
    }
    Ok(CommandExit::Done)
}

/// The next documents of the filter, newest first.
async fn next_page(
    db: &Db,
    arguments: &ExportArgs,
    after: &mut Option<IngestionId>,
) -> anyhow::Result<Vec<ExportedDocument>> {
    let page = inspect::list_exported_documents(db, &arguments.filter(), PAGE, *after).await?;
    *after = page.last().map(|last| IngestionId(last.ingestion_id));
    Ok(page)
}

async fn print_csv(db: &Db, kind: &Kind, arguments: &ExportArgs) -> anyhow::Result<CommandExit> {
    let columns = CsvColumns::of_kind(kind, arguments.lines.as_deref(), arguments.csv_options())?;
    print::piece(&columns.header())?;
    let mut after = None;
    loop {
        let page = next_page(db, arguments, &mut after).await?;
        if page.is_empty() {
            return Ok(CommandExit::Done);
        }
        for document in &page {
            print::piece(&columns.rows(document))?;
        }
    }
}

/// `KIND.csv` with the heads, and `KIND-LIST.csv` for each list.
async fn write_csv_files(
    db: &Db,
    kind: &Kind,
    arguments: &ExportArgs,
    folder: &Path,
) -> anyhow::Result<ExportReport> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let lists =
        kind.fields().map(|(name, _)| name).filter(|name| !kind.item_fields(name).is_empty());
    let mut files = Vec::new();
    for list in std::iter::once(None).chain(lists.map(Some)) {
        let name = list.map_or_else(String::new, |list| format!("-{list}"));
        let path = folder.join(format!("{}{name}.csv", kind.name));
        let columns = CsvColumns::of_kind(kind, list, arguments.csv_options())?;
        let file = std::fs::File::create(&path);
        let mut file = file.with_context(|| format!("writing {}", path.display()))?;
        file.write_all(columns.header().as_bytes())?;
        files.push((columns, file));
    }
    let (mut report, mut after) = (ExportReport::default(), None);
    loop {
        let page = next_page(db, arguments, &mut after).await?;
        if page.is_empty() {
            return Ok(report);
        }
        for (columns, file) in &mut files {
            let rows: String = page.iter().map(|document| columns.rows(document)).collect();
            file.write_all(rows.as_bytes())?;
        }
        report.written += u64::try_from(page.len()).unwrap_or_default();
    }
}

/// A file per document. Those that the form cannot carry are left out and named.
async fn write_files(
    db: &Db,
    kind: &Kind,
    arguments: &ExportArgs,
    folder: &Path,
    layout: &ExportLayout,
) -> anyhow::Result<ExportReport> {
    let (mut report, mut after) = (ExportReport::default(), None);
    loop {
        let page = next_page(db, arguments, &mut after).await?;
        if page.is_empty() {
            return Ok(report);
        }
        for document in &page {
            match write_export(db, kind, document, arguments.ubl_style(layout)).await {
                Ok(file) => {
                    let path = folder.join(&file.name);
                    let parent = path.parent().unwrap_or(folder);
                    std::fs::create_dir_all(parent)
                        .and_then(|()| std::fs::write(&path, &file.bytes))
                        .with_context(|| format!("writing {}", path.display()))?;
                    report.written += 1;
                }
                Err(error) => report.leave_out(document, error)?,
            }
        }
    }
}

/// Packages of documents with their originals.
async fn write_packages(
    db: &Db,
    store: &dyn ObjectStore,
    kind: &Kind,
    arguments: &ExportArgs,
    folder: &Path,
) -> anyhow::Result<ExportReport> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut packages = DatevPackages::new(folder, OffsetDateTime::now_utc());
    let (mut report, mut after) = (ExportReport::default(), None);
    loop {
        let page = next_page(db, arguments, &mut after).await?;
        if page.is_empty() {
            packages.finish()?;
            return Ok(report);
        }
        for document in &page {
            let id = document.ingestion_id.to_string();
            let found = inspect::find_ingestions(db, &id).await?;
            let sha256 = found.first().and_then(|row| row.sha256.as_deref()).unwrap_or_default();
            match DatevInvoice::prepare(db, store, kind, document, sha256).await {
                Ok(invoice) => {
                    packages.add(&invoice)?;
                    report.written += 1;
                }
                Err(error) => report.leave_out(document, error)?,
            }
        }
    }
}

fn show_report(context: &CommandContext, report: &ExportReport) -> anyhow::Result<CommandExit> {
    context.result_output().show(report, || {
        let mut lines = vec![format!("written: {}", report.written)];
        let left = report.left_out.iter();
        lines.extend(left.map(|one| format!("left out: {}: {}", one.document_id, one.problem)));
        lines.join("\n")
    })?;
    Ok(CommandExit::from_success(report.left_out.is_empty()))
}
