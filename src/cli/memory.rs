//! `docmill memory`: the remembered documents of a tenant's suppliers.

use clap::Subcommand;
use serde_json::json;
use time::format_description::well_known::Rfc3339;

use super::{CommandContext, CommandExit, DATABASE, jobs, print};
use docmill_operations::suppliers::{self, MemoryRow, SupplierChoice};

/// The supplier that is meant.
#[derive(Debug, Clone, clap::Args)]
#[group(multiple = true)]
pub(super) struct SupplierArgs {
    /// VAT id
    #[arg(long)]
    vat_id: Option<String>,
    /// Account (IBAN)
    #[arg(long)]
    iban: Option<String>,
    /// Name
    #[arg(long)]
    name: Option<String>,
}

impl SupplierArgs {
    fn into_choice(self) -> SupplierChoice {
        let Self { vat_id, iban, name } = self;
        SupplierChoice { vat_id, iban, name }
    }
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// List remembered documents, newest first
    List {
        /// Tenant; without: documents of no tenant
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        supplier: SupplierArgs,
    },
    /// Forget a supplier, or with --all every supplier of the tenant; documents stay
    Forget {
        /// Tenant; without: documents of no tenant
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        supplier: SupplierArgs,
        /// Forget every supplier of the tenant
        #[arg(long, conflicts_with_all = ["vat_id", "iban", "name"],
            required_unless_present_any = ["vat_id", "iban", "name"])]
        all: bool,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

pub(super) async fn run(
    context: &CommandContext,
    what: MemoryCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    match what {
        MemoryCommand::List { tenant, supplier } => {
            let choice = supplier.into_choice();
            let rows = suppliers::list_memory(&db, tenant.as_deref(), &choice).await?;
            context.result_output().show(&rows, || format_rows(&rows))?;
        }
        MemoryCommand::Forget { tenant, supplier, all: _, why } => {
            let (choice, by) = (supplier.into_choice(), jobs::audit_note(why));
            let gone = suppliers::forget_suppliers(&db, tenant.as_deref(), &choice, &by).await?;
            let done = json!({ "forgotten": gone });
            context.result_output().show(&done, || format!("documents forgotten: {gone}"))?;
        }
    }
    Ok(CommandExit::Done)
}

fn format_rows(rows: &[MemoryRow]) -> String {
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let at = row.learned_at.format(&Rfc3339).unwrap_or_default();
            let corrected = row.corrected_fields.join(", ");
            [row.document_id.to_string(), row.kind.clone(), row.source.clone(), at, corrected]
        })
        .collect();
    match cells.is_empty() {
        true => "nothing is remembered".to_owned(),
        false => print::table(["document", "kind", "source", "learned", "corrected"], &cells),
    }
}
