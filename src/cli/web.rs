//! `docmill web`: pages for operators and reviewers, an interface for programs, and their tokens.

use super::{CommandContext, CommandExit};
use docmill_client::telemetry;
use docmill_console::make_token;
use docmill_core::config::ConfigNeeds;
use docmill_pipeline::shutdown::Shutdown;
use serde::Serialize;

/// Arguments of `web`.
#[derive(Debug, clap::Args)]
pub(super) struct WebArgs {
    /// Print a new token and its configuration entry, and exit
    #[arg(long)]
    new_token: bool,
}

/// A token and its configuration entry.
#[derive(Debug, Serialize)]
struct NewToken {
    token: String,
    sha256: String,
}

pub(super) async fn run(context: &CommandContext, web: WebArgs) -> anyhow::Result<CommandExit> {
    if web.new_token {
        let (token, sha256) = make_token().map_err(anyhow::Error::msg)?;
        let made = NewToken { token, sha256 };
        context.result_output().show(&made, || {
            format!(
                "token (shown once, give it to whom it is for):\n  {}\nfor the configuration:\n  \
                 [[web.tokens]]\n  name = \"…\"\n  role = \"viewer\" # producer, reviewer, operator\n  \
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
