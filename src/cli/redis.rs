//! `docmill redis`: looking after a queue in Redis that other programs work on as well.

use std::time::Duration;

use clap::Subcommand;

use super::{CommandContext, CommandExit, QUEUE, UsageError, print};
use docmill_core::config::QueueBackend;
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::redis::{Cleaning, RedisQueue};

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum RedisCommand {
    /// Requeue messages whose lease has expired
    Clean {
        /// Check the processing list (default)
        #[arg(long, conflicts_with = "deep")]
        light: bool,
        /// Check every item, including those that a crash left in no list
        #[arg(long)]
        deep: bool,
        /// Repeat until stopped, one pass per interval
        #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "2s",
              value_parser = humantime::parse_duration)]
        watch: Option<Duration>,
    },
    /// Count messages ready, in flight, delayed and dead over all tiers; asks Redis only
    Length,
    /// Clean on request: answer `light:QUEUE` and `deep:QUEUE` on standard input with `light
    /// cleaned QUEUE` and `deep cleaned QUEUE`, as the tests of redis-work-queue expect
    Cleaner,
}

pub(super) async fn run(
    context: &CommandContext,
    what: RedisCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(QUEUE)?;
    context.quiet_logs()?;
    if app.config().queue.backend != QueueBackend::Redis {
        let text = "queue.backend is not `redis`: there is nothing to look after";
        return Err(UsageError(text.to_owned()).into());
    }
    match what {
        RedisCommand::Clean { deep, watch, .. } => {
            let depth = if deep { Cleaning::Deep } else { Cleaning::Light };
            let queue = app.redis_queue(&app.config().queue.redis_prefix).await?;
            match watch {
                None => {
                    let cleaned = queue.clean(depth).await?;
                    let shown = serde_json::json!({ "put_back": cleaned });
                    context.result_output().show(&shown, || format!("requeued: {cleaned}"))?;
                }
                Some(every) => clean_repeatedly(&queue, depth, every).await?,
            }
        }
        RedisCommand::Length => {
            let depth = app.open_queue().await?.depth().await?;
            let dead = depth.dead.unwrap_or_default();
            context.result_output().show(&depth, || {
                format!(
                    "waiting: {}\nworked on or hidden: {}\nput off: {}\ndead: {dead}",
                    depth.ready, depth.in_flight, depth.delayed
                )
            })?;
        }
        RedisCommand::Cleaner => serve_metrics(&app).await?,
    }
    Ok(CommandExit::Done)
}

/// Cleans until stopped. A failed pass is logged, and the next one tried.
async fn clean_repeatedly(
    queue: &RedisQueue,
    depth: Cleaning,
    every: Duration,
) -> anyhow::Result<()> {
    let stop = Shutdown::on_signals()?;
    loop {
        match queue.clean(depth).await {
            Ok(0) => {}
            Ok(cleaned) => tracing::warn!(cleaned, "requeued: {cleaned}"),
            Err(error) => tracing::warn!(error = %error, "cleaning failed: {error}"),
        }
        tokio::select! {
            () = stop.wait_until_requested() => return Ok(()),
            () = tokio::time::sleep(every) => {}
        }
    }
}

async fn serve_metrics(app: &crate::app::App) -> anyhow::Result<()> {
    let mut lines = std::io::stdin().lines();
    let mut known = std::collections::BTreeMap::new();
    while let Some(line) = tokio::task::block_in_place(|| lines.next()).transpose()? {
        let (how, name) = line.split_once(':').unwrap_or_default();
        let depth = match how {
            "light" => Cleaning::Light,
            "deep" => Cleaning::Deep,
            _ => {
                let text = format!("`{line}` is neither `light:QUEUE` nor `deep:QUEUE`");
                return Err(UsageError(text).into());
            }
        };
        if !known.contains_key(name) {
            known.insert(name.to_owned(), app.redis_queue(name).await?);
        }
        if let Some(queue) = known.get(name) {
            queue.clean(depth).await?;
        }
        print::print(&format!("{how} cleaned {name}"))?;
    }
    Ok(())
}
