//! `docmill inbox`: takes mails and files from the configured sources.

use super::{CommandContext, CommandExit, print};
use docmill_client::telemetry;
use docmill_core::config::ConfigNeeds;
use docmill_operations::inbox::InboxReport;
use docmill_pipeline::shutdown::Shutdown;

/// Arguments of `inbox`.
#[derive(Debug, clap::Args)]
pub(super) struct InboxArgs {
    /// Names of sources; without any: all of `inbox.sources`
    names: Vec<String>,
    /// Take what is there, print counts, and exit
    #[arg(long)]
    once: bool,
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: InboxArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(ConfigNeeds::WORKER)?;
    let traces = telemetry::init_service(app.config().worker.log, &app.config().telemetry)?;
    let stop = Shutdown::on_signals()?;
    let ended = if arguments.once {
        take_once(context, &app, &arguments.names, &stop).await
    } else {
        Box::pin(app.serve_inboxes(&arguments.names, &stop)).await.map(|()| CommandExit::Done)
    };
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    ended
}

async fn take_once(
    context: &CommandContext,
    app: &crate::app::App,
    names: &[String],
    stop: &Shutdown,
) -> anyhow::Result<CommandExit> {
    let reports = Box::pin(app.take_inboxes_once(names, stop)).await?;
    context.result_output().show(&reports, || format_reports(&reports))?;
    let is_well = reports.iter().all(|report| report.problem.is_none() && report.failed == 0);
    Ok(CommandExit::from_success(is_well))
}

fn format_reports(reports: &[InboxReport]) -> String {
    let rows: Vec<_> = reports
        .iter()
        .map(|report| {
            let InboxReport { inbox, submitted, known, failed, deferred, problem } = report;
            let [submitted, known, failed, deferred] =
                [submitted, known, failed, deferred].map(u64::to_string);
            let problem = print::or_dash(problem.as_deref());
            [inbox.clone(), submitted, known, failed, deferred, problem]
        })
        .collect();
    print::table(["inbox", "submitted", "known", "failed", "deferred", "problem"], &rows)
}
