//! `search`, `lookup`, `manifest`: finding documents in Postgres.

use uuid::Uuid;

use super::submit::label;
use super::{Context, DATABASE, Exit, jobs, print};
use crate::ops::Db;
use crate::ops::inspect::{self, DocumentRow, Wanted};

/// Documents of one question, where all are wanted.
const PAGE: u32 = 1000;

/// Arguments of `search`.
#[derive(Debug, clap::Args)]
pub(super) struct Search {
    /// Parts of names, paths, labels, hashes, suppliers, numbers; all have to be there
    #[arg(required_unless_present_any = ["tags", "supplier", "number"])]
    words: Vec<String>,
    /// Only with this label, or label and value
    #[arg(long = "tag", id = "tags", value_name = "NAME[=VALUE]")]
    tags: Vec<String>,
    /// Only with this in the supplier's name
    #[arg(long)]
    supplier: Option<String>,
    /// Only with exactly this number
    #[arg(long)]
    number: Option<String>,
    /// Only those of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// Arguments of `lookup`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Lookup {
    /// SHA-256 of the original in hex, or its beginning
    #[arg(long)]
    hash: Option<String>,
    /// Where the original lies, or the name it had with its sender; exactly
    #[arg(long)]
    path: Option<String>,
}

/// Arguments of `manifest`.
#[derive(Debug, clap::Args)]
pub(super) struct Manifest {
    /// Only those of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only with this label, or label and value
    #[arg(long = "tag", value_name = "NAME[=VALUE]")]
    tags: Vec<String>,
}

pub(super) async fn search(context: &Context, asked: Search) -> anyhow::Result<Exit> {
    let wanted = Wanted {
        words: asked.words,
        tags: asked.tags.iter().map(|tag| label(tag)).collect(),
        supplier: asked.supplier,
        number: asked.number,
        tenant: asked.tenant,
        ..Wanted::default()
    };
    found(context, &wanted, asked.limit).await
}

pub(super) async fn lookup(context: &Context, asked: Lookup) -> anyhow::Result<Exit> {
    found(context, &Wanted { sha256: asked.hash, path: asked.path, ..Wanted::default() }, PAGE)
        .await
}

/// Shows what was found; nothing found is exit code 1, as with `grep`.
async fn found(context: &Context, wanted: &Wanted, limit: u32) -> anyhow::Result<Exit> {
    let (_, db) = jobs::database(context, DATABASE).await?;
    let rows = inspect::find_documents(&db, wanted, limit, None).await?;
    context.out().show(&rows, || listing(&rows))?;
    Ok(Exit::of(!rows.is_empty()))
}

/// Every document, one JSON object a line, whatever the form asked for: a manifest is for programs.
pub(super) async fn manifest(context: &Context, asked: Manifest) -> anyhow::Result<Exit> {
    let (_, db) = jobs::database(context, DATABASE).await?;
    let tags = asked.tags.iter().map(|tag| label(tag)).collect();
    let wanted = Wanted { tags, tenant: asked.tenant, ..Wanted::default() };
    let mut after = None;
    while let Some(last) = page(&db, &wanted, after).await? {
        after = Some(last);
    }
    Ok(Exit::Done)
}

async fn page(db: &Db, wanted: &Wanted, after: Option<Uuid>) -> anyhow::Result<Option<Uuid>> {
    let rows = inspect::find_documents(db, wanted, PAGE, after).await?;
    let lines = rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    if !lines.is_empty() {
        print::print(&lines.join("\n"))?;
    }
    Ok(rows.last().map(|row| row.id))
}

fn listing(rows: &[DocumentRow]) -> String {
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
