//! `search`, `lookup`, `manifest`: finding documents in Postgres.

use uuid::Uuid;

use super::submit::parse_label;
use super::{CommandContext, CommandExit, DATABASE, jobs, print};
use docmill_operations::Db;
use docmill_operations::inspect::{self, DocumentQuery, DocumentRow};

/// Documents of one question, where all are wanted.
const PAGE: u32 = 1000;

/// Arguments of `search`.
#[derive(Debug, clap::Args)]
pub(super) struct SearchArgs {
    /// Parts of names, paths, labels, hashes, suppliers, numbers; all must match
    #[arg(required_unless_present_any = ["tags", "supplier", "number"])]
    words: Vec<String>,
    /// Filter by label, or label and value
    #[arg(long = "tag", id = "tags", value_name = "NAME[=VALUE]")]
    tags: Vec<String>,
    /// Filter by part of the supplier's name
    #[arg(long)]
    supplier: Option<String>,
    /// Filter by exact number
    #[arg(long)]
    number: Option<String>,
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Maximum number of results
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// Arguments of `lookup`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct LookupArgs {
    /// SHA-256 of the original in hex, or a prefix
    #[arg(long)]
    hash: Option<String>,
    /// Exact location of the original, or its exact name at the sender
    #[arg(long)]
    path: Option<String>,
}

/// Arguments of `manifest`.
#[derive(Debug, clap::Args)]
pub(super) struct ManifestArgs {
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Filter by label, or label and value
    #[arg(long = "tag", value_name = "NAME[=VALUE]")]
    tags: Vec<String>,
}

pub(super) async fn search(
    context: &CommandContext,
    asked: SearchArgs,
) -> anyhow::Result<CommandExit> {
    let wanted = DocumentQuery {
        words: asked.words,
        tags: asked.tags.iter().map(|tag| parse_label(tag)).collect(),
        supplier: asked.supplier,
        number: asked.number,
        tenant: asked.tenant,
        ..DocumentQuery::default()
    };
    show_found(context, &wanted, asked.limit).await
}

pub(super) async fn lookup(
    context: &CommandContext,
    asked: LookupArgs,
) -> anyhow::Result<CommandExit> {
    show_found(
        context,
        &DocumentQuery { sha256: asked.hash, path: asked.path, ..DocumentQuery::default() },
        PAGE,
    )
    .await
}

/// Prints the results; without any the exit code is 1, as with `grep`.
async fn show_found(
    context: &CommandContext,
    wanted: &DocumentQuery,
    limit: u32,
) -> anyhow::Result<CommandExit> {
    let (_, db) = jobs::open_database(context, DATABASE).await?;
    let rows = inspect::find_documents(&db, wanted, limit, None).await?;
    context.result_output().show(&rows, || format_documents(&rows))?;
    Ok(CommandExit::from_success(!rows.is_empty()))
}

/// Prints every document as one JSON object per line, with or without `--json`.
pub(super) async fn print_manifest(
    context: &CommandContext,
    asked: ManifestArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = jobs::open_database(context, DATABASE).await?;
    let tags = asked.tags.iter().map(|tag| parse_label(tag)).collect();
    let wanted = DocumentQuery { tags, tenant: asked.tenant, ..DocumentQuery::default() };
    let mut after = None;
    while let Some(last) = print_page(&db, &wanted, after).await? {
        after = Some(last);
    }
    Ok(CommandExit::Done)
}

async fn print_page(
    db: &Db,
    wanted: &DocumentQuery,
    after: Option<Uuid>,
) -> anyhow::Result<Option<Uuid>> {
    let rows = inspect::find_documents(db, wanted, PAGE, after).await?;
    let lines = rows.iter().map(print::json_line).collect::<Result<Vec<_>, _>>()?;
    if !lines.is_empty() {
        print::print(&lines.join("\n"))?;
    }
    Ok(rows.last().map(|row| row.id))
}

fn format_documents(rows: &[DocumentRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            [
                row.id.to_string(),
                row.original_name.clone().unwrap_or_else(|| row.file_path.clone()),
                print::or_dash(row.supplier_name.as_deref()),
                print::or_dash(row.invoice_number.as_deref()),
                print::or_dash(row.reason.as_deref().or(row.status.as_deref())),
                row.file_path.clone(),
            ]
        })
        .collect();
    print::table(["document", "file", "supplier", "number", "status", "lies at"], &rows)
}
