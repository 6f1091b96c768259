//! `docmill config`: what is set, and what is wrong with it.

use clap::Subcommand;

use time::OffsetDateTime;

use super::{CommandContext, CommandExit, NOTHING};
use docmill_core::config::ConfigNeeds;
use docmill_operations::doctor::prices;

/// Subcommands.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the configuration offline: list everything that would stop a worker from starting
    Check,
    /// Print the effective settings, secrets masked
    Show,
}

pub(super) fn run(context: &CommandContext, what: ConfigCommand) -> anyhow::Result<CommandExit> {
    match what {
        ConfigCommand::Check => {
            let config = context.load_config(ConfigNeeds::WORKER)?;
            let prices = prices::check(&config, OffsetDateTime::now_utc().date());
            let warnings: Vec<_> =
                prices.advice.iter().map(|advice| format!("{}; {advice}", prices.found)).collect();
            let fine = serde_json::json!({ "valid": true, "warnings": warnings });
            context.result_output().show(&fine, || {
                let fine = ["the configuration is complete and valid".to_owned()];
                let warned = warnings.iter().map(|warning| format!("warning: {warning}"));
                fine.into_iter().chain(warned).collect::<Vec<_>>().join("\n")
            })?;
        }
        ConfigCommand::Show => {
            let config = context.load_config(NOTHING)?;
            let text = toml::to_string_pretty(&config)?;
            context.result_output().show(&config, || text)?;
        }
    }
    Ok(CommandExit::Done)
}
