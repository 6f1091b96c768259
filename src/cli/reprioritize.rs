//! `docmill reprioritize`: what has not ended becomes more or less urgent.

use super::jobs::{audit_note, open_database, preview_change, resolve_ids, show_changes};
use super::{CommandContext, CommandExit, DATABASE_AND_QUEUE};
use docmill_core::model::Priority;
use docmill_operations::retry;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(super) struct ReprioritizeArgs {
    /// New priority: critical, high, normal, low or background
    #[arg(long = "to", value_name = "PRIORITY")]
    priority: Priority,
    /// Ingestion ids, document ids (newest ingestion), or SHA-256 prefixes
    #[arg(required = true)]
    ids: Vec<String>,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
    /// Dry run: list the affected ingestions
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(
    context: &CommandContext,
    wish: ReprioritizeArgs,
) -> anyhow::Result<CommandExit> {
    let (app, db) = open_database(context, DATABASE_AND_QUEUE).await?;
    let ids = resolve_ids(&db, &wish.ids).await?;
    if wish.dry_run {
        return preview_change(context, &db, &ids).await;
    }
    let queue = app.open_queue().await?;
    let by = audit_note(wish.why);
    let done =
        retry::reprioritize_ingestions(&db, queue.as_ref(), &ids, wish.priority, &by).await?;
    show_changes(context, &done)
}
