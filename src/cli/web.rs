//! `docmill web`: pages for operators and reviewers, an interface for programs, and their tokens.

use super::{CommandContext, CommandExit};
use docmill_client::telemetry;
use docmill_core::config::ConfigNeeds;
use docmill_operations::people::make_access_token;
use docmill_pipeline::shutdown::Shutdown;

/// Arguments of `web`.
#[derive(Debug, clap::Args)]
pub(super) struct WebArgs {
    /// Print a new token and its configuration entry, and exit
    #[arg(long)]
    new_token: bool,
}

pub(super) async fn run(context: &CommandContext, web: WebArgs) -> anyhow::Result<CommandExit> {
    if web.new_token {
        let made = make_access_token()?;
        context.result_output().show(&made, || {
            format!(
                "token (shown once, give it to whom it is for):\n  {}\nfor the configuration:\n  \
                 [[web.tokens]]\n  name = \"…\"\n  role = \"viewer\" # producer, reviewer, operator, administrator\n  \
                 sha256 = \"{}\"",
                made.token, made.sha256
            )
        })?;
        return Ok(CommandExit::Done);
    }
    let app = context.build_app(ConfigNeeds::WORKER)?;
    let traces = telemetry::init_service(app.config().worker.log, &app.config().telemetry)?;
    let stop = Shutdown::default();
    stop.on_signals()?;
    let console = Box::pin(app.open_console()).await?;
    console.announce(&app.config().web)?;
    console.serve(stop).await;
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    Ok(CommandExit::Done)
}
