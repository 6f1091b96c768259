//! `docmill kinds`: what sorts of documents there are, and what is wrong with a folder of them.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::{CommandContext, CommandExit, NOTHING, print};
use docmill_gate::kinds::{Kind, KindProblem, KindSet, KindsError};

/// Characters of a version that tell one from another.
const SHORT: usize = 12;

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum KindsCommand {
    /// List the kinds in force: the built-in ones and those of `kinds.path`
    List,
    /// Say what is wrong with kinds, by file and line; without a folder, with those in force
    Check {
        /// A folder with one folder per kind, or the folder of one kind
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
    let languages = |kind: &Kind| kind.labels.languages().collect::<Vec<_>>().join(" ");
    let origin = |kind: &Kind| if kind.built_in { "built in" } else { "folder" };
    let view = |kind: &Kind| {
        json!({
            "name": kind.name,
            "title": kind.title,
            "origin": origin(kind),
            "version": kind.version,
            "fields": kind.fields().map(|(name, _)| name).collect::<Vec<_>>(),
            "rules": kind.rules.len(),
            "languages": kind.labels.languages().collect::<Vec<_>>(),
        })
    };
    let row = |kind: &Kind| {
        [
            kind.name.clone(),
            kind.title.clone(),
            origin(kind).to_owned(),
            kind.version.chars().take(SHORT).collect(),
            kind.fields().count().to_string(),
            kind.rules.len().to_string(),
            languages(kind),
        ]
    };
    let header = ["kind", "title", "from", "version", "fields", "rules", "labels in"];
    let views: Vec<_> = kinds.iter().map(view).collect();
    context
        .result_output()
        .show(&views, || print::table(header, &kinds.iter().map(row).collect::<Vec<_>>()))?;
    Ok(CommandExit::Done)
}

fn report_problems(
    context: &CommandContext,
    count: usize,
    problems: &[KindProblem],
) -> anyhow::Result<CommandExit> {
    let view = json!({ "valid": problems.is_empty(), "kinds": count, "problems": problems });
    let text = || match problems {
        [] => format!("{count} kinds, nothing wrong"),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    };
    context.result_output().show(&view, text)?;
    Ok(CommandExit::from_success(problems.is_empty()))
}
