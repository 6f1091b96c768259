//! Commands that run or tend the service.

use std::process::ExitCode;

use super::{Context, DATABASE, Exit, NOTHING, print};
use crate::app;
use crate::config::Needs;
use crate::ops::janitor::{Maintenance, Pass};
use crate::shutdown::Stop;
use crate::telemetry;

/// Arguments of `janitor`.
#[derive(Debug, clap::Args)]
pub(super) struct Janitor {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn worker(context: &Context) -> anyhow::Result<Exit> {
    let app = context.app(Needs::WORKER)?;
    let traces = telemetry::init_service(app.config().worker.log, &app.config().telemetry)?;
    let stop = Stop::default();
    stop.on_signals()?;
    let ended = Box::pin(app.serve(stop)).await;
    if let Some(traces) = traces {
        traces.end().await;
    }
    ended.map(|()| Exit::Done)
}

pub(super) async fn migrate(context: &Context) -> anyhow::Result<Exit> {
    let app = context.app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.database().await?;
    db.migrate().await?;
    let place = db.describe();
    let done = serde_json::json!({ "migrated": true, "database": place });
    context.out().show(&done, || format!("{place} is up to date"))?;
    db.close().await;
    Ok(Exit::Done)
}

pub(super) async fn janitor(context: &Context, arguments: Janitor) -> anyhow::Result<Exit> {
    let app = context.app(Needs::WORKER)?;
    context.quiet_logs()?;
    let db = app.database().await?;
    db.require_schema().await?;
    let maintenance = Maintenance {
        db,
        queue: app.queue().await?,
        store: app.store().await?,
        config: app.config().janitor.clone(),
        crash_limit: app.config().retry.crash_attempts,
        holder: format!("command-line-{}", std::process::id()),
    };
    let pass = maintenance.pass(arguments.dry_run).await?;
    context.out().show(&pass, || describe(&pass))?;
    Ok(Exit::Done)
}

fn describe(pass: &Pass) -> String {
    let would = if pass.dry_run { "would be " } else { "" };
    let mut lines = vec![
        format!("waiting for long without a message: {}", pass.candidates),
        format!("{would}sent again: {}", pass.resent.len()),
        format!("dead letters of live ingestions {would}sent again: {}", pass.revived),
        format!("dead letters that stand for nothing {would}deleted: {}", pass.cleared),
    ];
    if !pass.dry_run {
        lines.push(format!("old rows deleted: {}", pass.deleted_rows));
        lines.push(format!("things put right in the queue: {}", pass.queue_repairs));
        lines.push(format!("documents past their tenant's retention erased: {}", pass.expired));
    }
    if pass.queue_is_behind {
        lines.push("the queue is behind: what it may still hold was left alone".to_owned());
    }
    lines.join("\n")
}

pub(super) async fn healthcheck(context: &Context) -> anyhow::Result<Exit> {
    let config = context.config(NOTHING)?;
    app::healthcheck(&config).await?;
    if context.global.verbose {
        print::note("well");
    }
    Ok(Exit::Done)
}

/// The process of a cell; without a runtime, and without words that nobody would read.
pub(super) fn page_process() -> ExitCode {
    match app::page_process() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
