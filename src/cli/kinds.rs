//! `docmill kinds`: what sorts of documents there are, and what is wrong with a folder of them.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::{Context, Exit, NOTHING, print};
use crate::kinds::{Kind, Kinds, KindsError, Problem};

/// Characters of a version that tell one from another.
const SHORT: usize = 12;

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum What {
    /// List the kinds in force: the built-in ones and those of `kinds.path`
    List,
    /// Say what is wrong with kinds, by file and line; without a folder, with those in force
    Check {
        /// A folder with one folder per kind, or the folder of one kind
        dir: Option<PathBuf>,
    },
}

pub(super) fn run(context: &Context, what: What) -> anyhow::Result<Exit> {
    match what {
        What::List => list(context),
        What::Check { dir: Some(dir) } => {
            let (count, problems) = Kinds::check(&dir);
            report(context, count, &problems)
        }
        What::Check { dir: None } => match Kinds::load(&context.config(NOTHING)?.kinds) {
            Ok(kinds) => report(context, kinds.iter().count(), &[]),
            Err(KindsError(problems)) => report(context, 0, &problems),
        },
    }
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let kinds = Kinds::load(&context.config(NOTHING)?.kinds)?;
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
        .out()
        .show(&views, || print::table(header, &kinds.iter().map(row).collect::<Vec<_>>()))?;
    Ok(Exit::Done)
}

fn report(context: &Context, count: usize, problems: &[Problem]) -> anyhow::Result<Exit> {
    let view = json!({ "valid": problems.is_empty(), "kinds": count, "problems": problems });
    let text = || match problems {
        [] => format!("{count} kinds, nothing wrong"),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    };
    context.out().show(&view, text)?;
    Ok(Exit::of(problems.is_empty()))
}
