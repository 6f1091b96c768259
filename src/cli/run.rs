//! Commands that run or tend the service.

use std::process::ExitCode;

use super::{CommandContext, CommandExit, DATABASE, NOTHING, print};
use crate::app;
use docmill_client::telemetry;
use docmill_core::config::ConfigNeeds;
use docmill_operations::inspect::require_all_rows;
use docmill_operations::janitor::{JanitorReport, Maintenance, MaintenanceBackends};
use docmill_operations::moving::{self, EarlierWorkers, MigrationOptions};
use docmill_pipeline::failpoint;
use docmill_pipeline::shutdown::Shutdown;

/// Arguments of `janitor`.
#[derive(Debug, clap::Args)]
pub(super) struct JanitorArgs {
    /// Dry run: list what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run_worker(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let app = context.build_app(ConfigNeeds::WORKER)?;
    let traces = telemetry::init_service(app.config().worker.log, &app.config().telemetry)?;
    failpoint::check_plan()?;
    let stop = Shutdown::on_signals()?;
    let ended = Box::pin(app.serve(stop)).await;
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    ended.map(|()| CommandExit::Done)
}

/// Arguments of `migrate`.
#[derive(Debug, clap::Args)]
pub(super) struct MigrateArgs {
    /// Move `document` and `ingestion` of this schema into `database.schema` and adopt them; leave
    /// views of the same names (docs/guides/moving.md)
    #[arg(long, value_name = "SCHEMA")]
    adopt: Option<String>,
    /// Adopt in a transaction and roll it back. Locks out writers of both tables meanwhile
    #[arg(long)]
    rehearse: bool,
    /// Whether workers of the earlier system run beside docmill (docs/guides/moving.md)
    #[arg(long, value_enum)]
    earlier_workers: Option<EarlierWorkersArg>,
}

/// The state of the earlier system's workers.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum EarlierWorkersArg {
    /// They run, or will run again: their writes count
    Stay,
    /// They are stopped permanently
    Gone,
}

impl MigrateArgs {
    fn into_options(self) -> anyhow::Result<MigrationOptions> {
        if let Some(schema) = &self.adopt {
            anyhow::ensure!(
                !schema.is_empty()
                    && schema
                        .chars()
                        .all(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "--adopt takes a schema's name of a-z, 0-9 and _"
            );
        }
        Ok(MigrationOptions {
            adopt_from: self.adopt,
            rehearse: self.rehearse,
            earlier_workers: self.earlier_workers.map(|workers| match workers {
                EarlierWorkersArg::Stay => EarlierWorkers::Stay,
                EarlierWorkersArg::Gone => EarlierWorkers::Gone,
            }),
        })
    }
}

pub(super) async fn migrate(
    context: &CommandContext,
    arguments: MigrateArgs,
) -> anyhow::Result<CommandExit> {
    let options = arguments.into_options()?;
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let stop = Shutdown::on_signals()?;
    let db = app.connect_database().await?;
    moving::migrate_schema(&db, &options, &stop).await?;
    let place = db.description();
    let done = serde_json::json!({ "migrated": !options.rehearse, "database": place });
    context.result_output().show(&done, || match options.rehearse {
        true => format!("{place} can be adopted; nothing was changed"),
        false => format!("{place} is up to date"),
    })?;
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
    require_all_rows(&db).await?;
    let backends =
        MaintenanceBackends { db, queue: app.open_queue().await?, store: app.open_store().await? };
    let holder = format!("command-line-{}", std::process::id());
    let maintenance = Maintenance::new(backends, app.config(), holder);
    let pass = match arguments.dry_run {
        true => maintenance.run_pass(true).await,
        false => run_led_pass(&maintenance).await?,
    };
    context.result_output().show(&pass, || format_pass(&pass))?;
    anyhow::ensure!(pass.failed.is_empty(), "{} chores failed", pass.failed.len());
    anyhow::ensure!(!pass.cut_short, "the pass was cut short");
    Ok(CommandExit::Done)
}

/// A pass as the leader, so that no worker makes one at the same time.
async fn run_led_pass(maintenance: &Maintenance) -> anyhow::Result<JanitorReport> {
    let stop = Shutdown::on_signals()?;
    let Some(pass) = maintenance.run_pass_as_leader(&stop).await? else {
        let leader = maintenance.find_leader().await?.unwrap_or_else(|| "another".to_owned());
        anyhow::bail!(
            "{leader} leads maintenance and makes a pass every `janitor.interval`; `--dry-run` \
             says what there is to do"
        );
    };
    maintenance.release_lead().await;
    Ok(pass)
}

fn format_pass(pass: &JanitorReport) -> String {
    let would = if pass.dry_run { "would be " } else { "" };
    let mut lines = vec![
        format!("parked ingestions sent: {}", pass.woken),
        format!("long waiting without a message: {}", pass.candidates),
        format!("{would}sent again: {}", pass.resent.len()),
        format!("dead letters {would}sent again: {}", pass.revived),
        format!("obsolete dead letters {would}deleted: {}", pass.cleared),
        format!("dead letters whose document {would}failed as crashed: {}", pass.given_up),
    ];
    if !pass.dry_run {
        lines.push(format!("old rows deleted: {}", pass.deleted_rows));
        lines.push(format!("queue repairs: {}", pass.queue_repairs));
        lines.push(format!("documents past their tenant's retention erased: {}", pass.expired));
    }
    for failed in &pass.failed {
        lines.push(format!("failed: {}: {}", failed.chore.name(), failed.error));
    }
    if pass.cut_short {
        lines.push("stopped early: chores not listed above were not run".to_owned());
    }
    if pass.queue_is_behind {
        lines.push("the queue is behind: it holds as many messages as it should".to_owned());
    }
    lines.join("\n")
}

pub(super) async fn check_health(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let config = context.load_config(NOTHING)?;
    app::check_health(&config).await?;
    if context.global.verbose {
        print::note("healthy");
    }
    Ok(CommandExit::Done)
}

/// Runs a page process: no runtime, no output besides its protocol.
pub(super) fn run_page_process() -> ExitCode {
    match app::serve_page_process() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
