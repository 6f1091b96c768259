//! `docmill reprioritize`: what has not ended becomes more or less urgent.

use super::jobs::{OpenIngestionArgs, audit_note, open_database, preview_change, show_changes};
use super::{CommandContext, CommandExit, DATABASE_AND_QUEUE};
use docmill_core::model::Priority;
use docmill_operations::retry;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(super) struct ReprioritizeArgs {
    /// New priority: critical, high, normal, low or background
    #[arg(long = "to", value_name = "PRIORITY")]
    priority: Priority,
    #[command(flatten)]
    open: OpenIngestionArgs,
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
    let ids = wish.open.resolve(&db).await?;
    if wish.dry_run {
        return preview_change(context, &db, &ids).await;
    }
    let queue = app.open_queue().await?;
    let (by, mut done) = (audit_note(wish.why), Vec::new());
    for some in ids.chunks(retry::MAX_TOGETHER) {
        let (queue, priority) = (queue.as_ref(), wish.priority);
        done.extend(retry::reprioritize_ingestions(&db, queue, some, priority, &by).await?);
    }
    show_changes(context, &done)
}
