//! `docmill kinds`: what sorts of documents there are, and what is wrong with a folder of them.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::{CommandContext, CommandExit, NOTHING, print};
use docmill_gate::kinds::{Kind, KindProblem, KindSet, KindsError};

/// Characters of a version that are shown.
const SHORT: usize = 12;

/// Subcommands.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum KindsCommand {
    /// List the active kinds: built-in ones and those of `kinds.path`
    List,
    /// Check kinds, by file and line; without a folder: the active ones
    Check {
        /// Folder with one folder per kind, or the folder of one kind
        dir: Option<PathBuf>,
    },
}

pub(super) fn run(context: &CommandContext, what: KindsCommand) -> anyhow::Result<CommandExit> {
    match what {
        KindsCommand::List => list_kinds(context),
        KindsCommand::Check { dir: Some(dir) } => {
            let (count, problems) = KindSet::check_folder(&dir);
            report_problems(context, count, &problems)
        }
        KindsCommand::Check { dir: None } => {
            match KindSet::load(&context.load_config(NOTHING)?.kinds) {
                Ok(kinds) => report_problems(context, kinds.iter().count(), &[]),
                Err(KindsError(problems)) => report_problems(context, 0, &problems),
            }
        }
    }
}

fn list_kinds(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let kinds = KindSet::load(&context.load_config(NOTHING)?.kinds)?;
    let header = ["kind", "title", "from", "version", "fields", "rules", "labels in"];
    let views: Vec<_> = kinds.iter().map(kind_view).collect();
    context
        .result_output()
        .show(&views, || print::table(header, &kinds.iter().map(kind_row).collect::<Vec<_>>()))?;
    Ok(CommandExit::Done)
}

/// A kind as a row of the table.
fn kind_row(kind: &Kind) -> [String; 7] {
    [
        kind.name.clone(),
        kind.title.clone(),
        origin_of(kind).to_owned(),
        kind.version.chars().take(SHORT).collect(),
        kind.fields().count().to_string(),
        kind.rules.len().to_string(),
        list_languages(kind),
    ]
}

/// A kind for programs.
fn kind_view(kind: &Kind) -> serde_json::Value {
    json!({
        "name": kind.name,
        "title": kind.title,
        "origin": origin_of(kind),
        "version": kind.version,
        "fields": kind.fields().map(|(name, _)| name).collect::<Vec<_>>(),
        "rules": kind.rules.len(),
        "languages": kind.labels.languages().collect::<Vec<_>>(),
    })
}

fn list_languages(kind: &Kind) -> String {
    kind.labels.languages().collect::<Vec<_>>().join(" ")
}

fn origin_of(kind: &Kind) -> &'static str {
    if kind.built_in { "built in" } else { "folder" }
}

fn report_problems(
    context: &CommandContext,
    count: usize,
    problems: &[KindProblem],
) -> anyhow::Result<CommandExit> {
    let view = json!({ "valid": problems.is_empty(), "kinds": count, "problems": problems });
    context.result_output().show(&view, || match problems {
        [] => format!("{count} kinds, no problems"),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(CommandExit::from_success(problems.is_empty()))
}
