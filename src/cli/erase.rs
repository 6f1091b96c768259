//! `docmill erase`, `retention` and `memory`: what is kept of a tenant, and for how long.

use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use time::format_description::well_known::Rfc3339;

use super::companies::{self, CompaniesCommand};
use super::master::{self, MasterCommand, MasterTable};
use super::{CommandContext, CommandExit, DATABASE, jobs, print};
use docmill_core::config::ConfigNeeds;
use docmill_operations::erase::{self, ErasureBackends, ErasureReport};
use docmill_operations::suppliers::{self, MemoryRow, SupplierChoice};

/// Maximum duration of a write in progress when its claim is lost.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Arguments of `erase`.
#[derive(Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// Tenant
    #[arg(long)]
    tenant: String,
    /// Dry run: count only
    #[arg(long)]
    dry_run: bool,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum RetentionCommand {
    /// List retention by tenant
    List,
    /// Set retention in days after the end of an ingestion
    Set {
        /// Tenant
        #[arg(long)]
        tenant: String,
        /// Days
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..=36_500))]
        days: i32,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Remove a tenant's retention: keep documents forever
    Clear {
        /// Tenant
        #[arg(long)]
        tenant: String,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

pub(super) async fn erase(
    context: &CommandContext,
    arguments: EraseArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(ConfigNeeds::WORKER)?;
    context.quiet_logs()?;
    let parts = Box::pin(app.open_backends()).await?;
    let places =
        ErasureBackends { db: &parts.db, store: parts.store.as_ref(), queue: parts.queue.as_ref() };
    let done = if arguments.dry_run {
        erase::preview_erasure(places, &arguments.tenant).await?
    } else {
        let notice = app.config().heartbeat_interval() + LAST_WRITE;
        erase::erase_tenant(places, &arguments.tenant, notice, &jobs::audit_note(arguments.why))
            .await?
    };
    context.result_output().show(&done, || format_erased(&done))?;
    Ok(CommandExit::Done)
}

fn format_erased(done: &ErasureReport) -> String {
    let would = if done.dry_run { "would be " } else { "" };
    let mut lines = vec![
        format!("documents {would}erased: {}", done.documents),
        format!("ingestions {would}erased: {}", done.ingestions),
        format!("of these {would}cancelled first: {}", done.cancelled),
        format!("objects {would}deleted: {}", done.objects),
    ];
    if done.shared > 0 {
        lines.push(format!("originals shared with another tenant, kept: {}", done.shared));
    }
    if !done.dry_run {
        lines.push(format!("dead letters deleted: {}", done.dead_letters));
        lines.push("messages still in the queue are deleted when workers receive them".to_owned());
    }
    lines.join("\n")
}

pub(super) async fn run_retention(
    context: &CommandContext,
    what: RetentionCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    match what {
        RetentionCommand::List => {}
        RetentionCommand::Set { tenant, days, why } => {
            erase::set_retention(&db, &tenant, Some(days), &jobs::audit_note(why)).await?;
        }
        RetentionCommand::Clear { tenant, why } => {
            erase::set_retention(&db, &tenant, None, &jobs::audit_note(why)).await?;
        }
    }
    let kept = erase::list_retentions(&db).await?;
    context.result_output().show(&kept, || {
        let rows: Vec<_> = kept
            .iter()
            .map(|row| [row.tenant.clone(), row.days.to_string(), row.set_by.clone()])
            .collect();
        match rows.is_empty() {
            true => "every tenant's documents are kept for ever".to_owned(),
            false => print::table(["tenant", "days", "set by"], &rows),
        }
    })?;
    Ok(CommandExit::Done)
}

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

/// Subcommands of `memory`.
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

pub(super) async fn run_memory(
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
            context.result_output().show(&rows, || format_memory(&rows))?;
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

fn format_memory(rows: &[MemoryRow]) -> String {
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

/// `docmill companies`.
pub(super) async fn run_companies(
    context: &CommandContext,
    what: &CompaniesCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let by = jobs::audit_note(what.why().to_owned());
    let kept = companies::apply(&db, what, &by).await?;
    context.result_output().show(&kept, || companies::table_of(&kept))?;
    Ok(CommandExit::Done)
}

/// `docmill suppliers` and `docmill orders`.
pub(super) async fn run_master(
    context: &CommandContext,
    table: MasterTable,
    what: &MasterCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let by = jobs::audit_note(what.why().to_owned());
    let counts = master::apply(&db, table, what, &by).await?;
    context
        .result_output()
        .show(&counts, || format!("suppliers: {}\norders: {}", counts.suppliers, counts.orders))?;
    Ok(CommandExit::Done)
}
