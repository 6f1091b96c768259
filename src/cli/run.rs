//! Commands that run or tend the service.

use std::process::ExitCode;

use super::{CommandContext, CommandExit, DATABASE, NOTHING, print};
use crate::app;
use crate::ops::janitor::{JanitorReport, Maintenance};
use crate::shutdown::Shutdown;
use docmill_client::telemetry;
use docmill_core::config::ConfigNeeds;

/// Arguments of `janitor`.
#[derive(Debug, clap::Args)]
pub(super) struct JanitorArgs {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run_worker(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let app = context.build_app(ConfigNeeds::WORKER)?;
    let traces = telemetry::init_service(app.config().worker.log, &app.config().telemetry)?;
    let stop = Shutdown::default();
    stop.on_signals()?;
    let ended = Box::pin(app.serve(stop)).await;
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    ended.map(|()| CommandExit::Done)
}

pub(super) async fn migrate(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.migrate().await?;
    let place = db.description();
    let done = serde_json::json!({ "migrated": true, "database": place });
    context.result_output().show(&done, || format!("{place} is up to date"))?;
    db.close().await;
    Ok(CommandExit::Done)
}

pub(super) async fn run_janitor(
    context: &CommandContext,
    arguments: JanitorArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(ConfigNeeds::WORKER)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let maintenance = Maintenance {
        db,
        queue: app.open_queue().await?,
        store: app.open_store().await?,
        config: app.config().janitor.clone(),
        crash_limit: app.config().retry.crash_attempts,
        holder: format!("command-line-{}", std::process::id()),
    };
    let pass = maintenance.run_pass(arguments.dry_run).await?;
    context.result_output().show(&pass, || format_pass(&pass))?;
    Ok(CommandExit::Done)
}

fn format_pass(pass: &JanitorReport) -> String {
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

pub(super) async fn check_health(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let config = context.load_config(NOTHING)?;
    app::check_health(&config).await?;
    if context.global.verbose {
        print::note("well");
    }
    Ok(CommandExit::Done)
}

/// The process of a cell; without a runtime, and without words that nobody would read.
pub(super) fn run_page_process() -> ExitCode {
    match app::serve_page_process() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
