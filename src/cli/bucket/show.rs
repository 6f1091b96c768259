//! Commands that only read a bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use super::BucketStateArg;
use crate::cli::{CommandContext, CommandExit, print};
use docmill_compat::bucket::{
    self, BlobForgeBucket, BucketCounts, BucketState, ManifestEntry, RebuildOptions,
    RegisteredWorker,
};
use docmill_core::model::Priority;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketStatusArgs {
    /// Hash or prefix; unset: the whole bucket
    document: Option<String>,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketListArgs {
    /// Filter by state
    #[arg(long, value_enum)]
    state: Option<BucketStateArg>,
    /// Filter by priority
    #[arg(long, value_parser = super::parse_priority)]
    priority: Option<Priority>,
    /// Maximum number per state
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Arguments of `dashboard`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketDashboardArgs {
    /// Refresh at this interval
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    watch: Option<Duration>,
}

/// Arguments of `search`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketSearchArgs {
    /// Words; all must occur in a path or tag
    #[arg(required = true)]
    words: Vec<String>,
    /// Maximum number of results
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Arguments of `lookup`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct BucketLookupArgs {
    /// SHA-256, or a prefix
    #[arg(long)]
    hash: Option<String>,
    /// Path at ingestion
    #[arg(long)]
    path: Option<String>,
}

/// Arguments of `manifest`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketManifestArgs {
    /// Rebuild it from the labels of the originals
    #[arg(long)]
    rebuild: bool,
    /// With --rebuild: dry run
    #[arg(long, requires = "rebuild")]
    dry_run: bool,
}

/// Arguments of `workers`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketWorkersArgs {
    /// Only active workers
    #[arg(long)]
    active: bool,
}

/// The note on an original without markers.
const UNMARKED: &str = "nothing is to be done with its original; `docmill bucket retry` queues it";

pub(super) async fn show_status(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketStatusArgs,
) -> anyhow::Result<CommandExit> {
    if let Some(hash) = arguments.document {
        return lookup(context, bucket, BucketLookupArgs { hash: Some(hash), path: None }).await;
    }
    let standing = bucket::count_states(bucket).await?;
    context.result_output().show(&standing, || format_counts(&standing))?;
    Ok(CommandExit::Done)
}

fn format_counts(standing: &BucketCounts) -> String {
    let mut rows: Vec<[String; 2]> = standing
        .todo
        .iter()
        .map(|(priority, count)| [format!("todo {priority}"), count.to_string()])
        .collect();
    for (name, count) in [
        ("processing", standing.processing),
        ("failed", standing.failed),
        ("dead", standing.dead),
        ("done", standing.done),
    ] {
        rows.push([name.to_owned(), count.to_string()]);
    }
    print::table(["state", "documents"], &rows)
}

pub(super) async fn list(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketListArgs,
) -> anyhow::Result<CommandExit> {
    let state = arguments.state.map(BucketState::from);
    let found = bucket::list_documents(bucket, state, arguments.priority, arguments.limit).await?;
    // BlobForge's `list` shows the counts too.
    let standing = bucket::count_states(bucket).await?;
    context.result_output().show(&found, || {
        let rows: Vec<_> = found
            .iter()
            .map(|document| {
                let path = print::or_dash(document.paths.first().map(String::as_str));
                let priority = print::or_dash(document.priority);
                let put_back = print::or_dash(document.put_back.as_deref());
                [document.hash.clone(), document.state.code().to_owned(), priority, put_back, path]
            })
            .collect();
        let listed = print::table(["document", "state", "priority", "put back", "path"], &rows);
        format!("{listed}\n{}", format_counts(&standing))
    })?;
    Ok(CommandExit::Done)
}

pub(super) async fn show_dashboard(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketDashboardArgs,
) -> anyhow::Result<CommandExit> {
    loop {
        let board = bucket::load_dashboard(bucket).await?;
        context.result_output().show(&board, || {
            let running: Vec<_> = board
                .running
                .iter()
                .map(|job| {
                    let renewed = format!("{} s ago", job.renewed_seconds_ago);
                    let elapsed = format!("{} s", job.elapsed_seconds);
                    [job.hash.clone(), job.worker.clone(), job.stage.clone(), elapsed, renewed]
                })
                .collect();
            let header = ["in work", "worker", "stage", "for", "renewed"];
            let workers = format_workers(&board.workers);
            format!(
                "{}{}\n{workers}\n{}",
                format_counts(&board.standing),
                format_put_back(&board.put_back),
                print::table(header, &running)
            )
        })?;
        let Some(pause) = arguments.watch else { return Ok(CommandExit::Done) };
        tokio::select! {
            () = tokio::time::sleep(pause.max(Duration::from_secs(1))) => {}
            _ = tokio::signal::ctrl_c() => return Ok(CommandExit::Done),
        }
    }
}

/// The reasons why documents were put back; empty if there are none.
fn format_put_back(put_back: &BTreeMap<String, u64>) -> String {
    if put_back.is_empty() {
        return String::new();
    }
    let rows: Vec<_> =
        put_back.iter().map(|(why, count)| [why.clone(), count.to_string()]).collect();
    format!("\n{}", print::table(["put back", "documents"], &rows))
}

pub(super) async fn search(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketSearchArgs,
) -> anyhow::Result<CommandExit> {
    let found =
        bucket::search_manifest(bucket, &arguments.words.join(" "), arguments.limit).await?;
    context.result_output().show(&found, || format_entries(&found))?;
    Ok(CommandExit::from_success(!found.is_empty()))
}

pub(super) async fn search_queue(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketSearchArgs,
) -> anyhow::Result<CommandExit> {
    let all = bucket::search_manifest(bucket, &arguments.words.join(" "), usize::MAX).await?;
    let mut found = Vec::new();
    for (hash, entry) in all {
        let state = bucket.state(&hash).await?;
        if found.len() < arguments.limit && state.is_some_and(|it| it != BucketState::Done) {
            found.push((hash, state, entry));
        }
    }
    context.result_output().show(&found, || {
        let rows: Vec<_> = found
            .iter()
            .map(|(hash, state, entry)| {
                let path = print::or_dash(entry.paths.first().map(String::as_str));
                let state = print::or_dash(state.map(BucketState::code));
                [hash.clone(), state, path]
            })
            .collect();
        print::table(["document", "state", "path"], &rows)
    })?;
    Ok(CommandExit::from_success(!found.is_empty()))
}

fn format_entries(found: &[(String, ManifestEntry)]) -> String {
    let rows: Vec<_> = found
        .iter()
        .map(|(hash, entry)| {
            let path = print::or_dash(entry.paths.first().map(String::as_str));
            [hash.clone(), path, entry.size.to_string(), entry.tags.join(" ")]
        })
        .collect();
    print::table(["document", "path", "bytes", "tags"], &rows)
}

pub(super) async fn lookup(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketLookupArgs,
) -> anyhow::Result<CommandExit> {
    let found = match (&arguments.hash, &arguments.path) {
        (_, Some(path)) => bucket::find_document(bucket, path, true).await?,
        (hash, None) => {
            bucket::find_document(bucket, hash.as_deref().unwrap_or_default(), false).await?
        }
    };
    context.result_output().show(&found, || {
        let state = found.state.map_or(UNMARKED, BucketState::code);
        let mut lines = vec![format!("document {}: {state}", found.hash)];
        let mut say = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("  {name}: {}", value.escape_debug())));
        };
        say("priority", found.priority.map(ToOwned::to_owned));
        say("begun", Some(found.runs.to_string()));
        say("worker", found.worker.clone());
        say("reason", found.reason.clone());
        say("put back", found.put_back.clone());
        for path in found.entry.iter().flat_map(|entry| &entry.paths) {
            say("path", Some(path.clone()));
        }
        say("tags", found.entry.as_ref().map(|entry| entry.tags.join(" ")));
        for failure in &found.history {
            let text = format!("run {} of {}: {}", failure.run, failure.worker, failure.error);
            say(&failure.at, Some(text));
        }
        lines.join("\n")
    })?;
    Ok(CommandExit::Done)
}

pub(super) async fn show_manifest(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketManifestArgs,
) -> anyhow::Result<CommandExit> {
    if arguments.rebuild {
        let how = RebuildOptions { dry_run: arguments.dry_run };
        let rebuilt = bucket::BucketManifest::rebuild(bucket, how).await?;
        context.result_output().show(&rebuilt, || {
            let aside = rebuilt.put_aside.as_ref();
            let aside = aside.map(|key| format!("\nthe old file is {key}"));
            let unmarked: String =
                rebuilt.unmarked.iter().map(|hash| format!("\n{hash}: {UNMARKED}")).collect();
            format!(
                "{} documents, {} of them new to the manifest, {} entries without original{}{}",
                rebuilt.documents,
                rebuilt.added,
                rebuilt.removed,
                aside.unwrap_or_default(),
                unmarked
            )
        })?;
        return Ok(CommandExit::Done);
    }
    let manifest = bucket::BucketManifest::load(bucket).await?;
    context.result_output().show(&manifest, || {
        let all: Vec<_> = manifest.entries.clone().into_iter().collect();
        format_entries(&all)
    })?;
    Ok(CommandExit::Done)
}

pub(super) async fn show_workers(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketWorkersArgs,
) -> anyhow::Result<CommandExit> {
    let stale = super::load_settings(bucket).await?.stale_after();
    let mut found: Vec<(RegisteredWorker, u64)> = Vec::new();
    for (worker, age) in bucket::list_workers(bucket).await? {
        let active = worker.status != "stopped" && age <= stale;
        if active || !arguments.active {
            found.push((worker, age.as_secs()));
        }
    }
    context.result_output().show(&found, || format_workers(&found))?;
    Ok(CommandExit::Done)
}

fn format_workers(workers: &[(RegisteredWorker, u64)]) -> String {
    let rows: Vec<_> = workers
        .iter()
        .map(|(worker, age)| {
            let done = worker.metrics.get("done").copied().unwrap_or_default();
            [
                worker.worker_id.clone(),
                worker.status.clone(),
                format!("{age} s ago"),
                print::or_dash(worker.current_job.as_deref()),
                done.to_string(),
            ]
        })
        .collect();
    print::table(["worker", "status", "heard of", "document", "done"], &rows)
}
