//! `docmill kinds`: what sorts of documents there are, and what is wrong with a folder of them.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use super::{CommandContext, CommandExit, NOTHING, print};
use docmill_extract::schema::ReplySchema;
use docmill_gate::kinds::{Kind, KindProblem, KindSet, KindsError};
use docmill_llm::schema::limits::{ExceededLimit, find_exceeded};

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
            let (kinds, problems) = KindSet::check_folder(&dir);
            let checked = CheckedKinds { count: kinds.len(), problems };
            report_check(context, &checked, kinds.iter().flatten())
        }
        KindsCommand::Check { dir: None } => {
            match KindSet::load(&context.load_config(NOTHING)?.kinds) {
                Ok(kinds) => {
                    let checked =
                        CheckedKinds { count: kinds.iter().count(), problems: Vec::new() };
                    report_check(context, &checked, kinds.iter())
                }
                Err(KindsError(problems)) => {
                    report_check(context, &CheckedKinds { count: 0, problems }, std::iter::empty())
                }
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

/// The result of a check.
struct CheckedKinds {
    count: usize,
    problems: Vec<KindProblem>,
}

/// A published limit of a model vendor that a kind's schema exceeds: no problem of the kind, but its replies are
/// asked for by the prompt alone there.
#[derive(Serialize)]
struct KindLimit {
    kind: String,
    #[serde(flatten)]
    exceeded: ExceededLimit,
}

fn report_check<'a>(
    context: &CommandContext,
    checked: &CheckedKinds,
    kinds: impl Iterator<Item = &'a Kind>,
) -> anyhow::Result<CommandExit> {
    let CheckedKinds { count, problems } = checked;
    let limits = exceeded_limits(kinds)?;
    let valid = problems.is_empty();
    let view = json!({ "valid": valid, "kinds": count, "problems": problems, "limits": limits });
    context.result_output().show(&view, || {
        let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        if valid {
            lines.push(format!("{count} kinds, no problems"));
        }
        lines.extend(limits.iter().map(|KindLimit { kind, exceeded }| {
            format!("{kind}: {exceeded}; its replies are asked for by the prompt alone there")
        }));
        lines.join("\n")
    })?;
    Ok(CommandExit::from_success(valid))
}

/// The vendors' limits that the largest schema of each kind exceeds, the one for shown pages.
fn exceeded_limits<'a>(kinds: impl Iterator<Item = &'a Kind>) -> anyhow::Result<Vec<KindLimit>> {
    let mut limits = Vec::new();
    for kind in kinds {
        let form = ReplySchema::for_reading(kind, true)?;
        let exceeded = find_exceeded(&form.schema).into_iter();
        limits.extend(exceeded.map(|exceeded| KindLimit { kind: kind.name.clone(), exceeded }));
    }
    Ok(limits)
}
