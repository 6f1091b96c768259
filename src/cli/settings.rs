//! `docmill config`: what is set, and what is wrong with it.

use clap::Subcommand;

use super::{CommandContext, CommandExit, NOTHING};
use docmill_core::config::ConfigNeeds;

/// What to do.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum ConfigCommand {
    /// List everything that would keep a worker from starting; nothing connects
    Check,
    /// Print the settings in force, secrets masked
    Show,
}

pub(super) fn run(context: &CommandContext, what: ConfigCommand) -> anyhow::Result<CommandExit> {
    match what {
        ConfigCommand::Check => {
            context.load_config(ConfigNeeds::WORKER)?;
            let fine = serde_json::json!({ "valid": true });
            context
                .result_output()
                .show(&fine, || "the configuration is complete and valid".to_owned())?;
        }
        ConfigCommand::Show => {
            let config = context.load_config(NOTHING)?;
            let text = toml::to_string_pretty(&config)?;
            context.result_output().show(&config, || text)?;
        }
    }
    Ok(CommandExit::Done)
}
