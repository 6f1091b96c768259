//! `docmill reprioritize`: what has not ended becomes more or less urgent.

use super::jobs::{by, changes, database, meant, preview};
use super::{Context, DATABASE_AND_QUEUE, Exit};
use crate::model::Priority;
use crate::ops::retry;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Reprioritize {
    /// critical, high, normal, low or background
    #[arg(long = "to", value_name = "PRIORITY")]
    priority: Priority,
    /// Ingestion ids, document ids (the newest ingestion), or beginnings of SHA-256
    #[arg(required = true)]
    ids: Vec<String>,
    /// For those who read it later
    #[arg(long, default_value = "")]
    why: String,
    /// Only say which ingestions are meant
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(context: &Context, wish: Reprioritize) -> anyhow::Result<Exit> {
    let (app, db) = database(context, DATABASE_AND_QUEUE).await?;
    let ids = meant(&db, &wish.ids).await?;
    if wish.dry_run {
        return preview(context, &db, &ids).await;
    }
    let queue = app.queue().await?;
    let by = by(wish.why);
    let done = retry::reprioritize(&db, queue.as_ref(), &ids, wish.priority, &by).await?;
    changes(context, &done)
}
