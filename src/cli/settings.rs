//! `docmill config`: what is set, and what is wrong with it.

use clap::Subcommand;

use super::{Context, Exit, NOTHING};
use crate::config::Needs;

/// What to do.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum Settings {
    /// List everything that would keep a worker from starting; nothing connects
    Check,
    /// Print the settings in force, secrets masked
    Show,
}

pub(super) fn run(context: &Context, what: Settings) -> anyhow::Result<Exit> {
    match what {
        Settings::Check => {
            context.config(Needs::WORKER)?;
            let fine = serde_json::json!({ "valid": true });
            context.out().show(&fine, || "the configuration is complete and valid".to_owned())?;
        }
        Settings::Show => {
            let config = context.config(NOTHING)?;
            let text = toml::to_string_pretty(&config)?;
            context.out().show(&config, || text)?;
        }
    }
    Ok(Exit::Done)
}
