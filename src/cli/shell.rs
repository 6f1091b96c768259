//! Shell completions and man pages, generated from the command line's definition.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, CommandContext, CommandExit, print};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Output folder, one page per command; created if missing
    dir: PathBuf,
}

pub(super) fn print_completions(arguments: &CompletionsArgs) -> anyhow::Result<CommandExit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "docmill", &mut script);
    print::print(&String::from_utf8(script)?)?;
    Ok(CommandExit::Done)
}

pub(super) fn write_man_pages(
    context: &CommandContext,
    arguments: &ManArgs,
) -> anyhow::Result<CommandExit> {
    let dir = &arguments.dir;
    let in_vain = || format!("cannot write man pages to {}", dir.display());
    std::fs::create_dir_all(dir).with_context(in_vain)?;
    let mut pages = Vec::new();
    let mut command = Cli::command();
    command.build();
    write_page(&command, dir, &mut pages).with_context(in_vain)?;
    context
        .result_output()
        .show(&pages, || format!("{} pages in {}", pages.len(), dir.display()))?;
    Ok(CommandExit::Done)
}

/// A page for this command and those below it, as `git` names its pages: `docmill-dead-list.1`.
fn write_page(command: &clap::Command, dir: &Path, pages: &mut Vec<String>) -> io::Result<()> {
    let file = format!("{}.1", command.get_display_name().unwrap_or(command.get_name()));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    std::fs::write(dir.join(&file), page)?;
    pages.push(file);
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below
        .filter(|below| below.get_name() != "help")
        .try_for_each(|below| write_page(below, dir, pages))
}
