//! What only looks at a bucket.

use std::time::Duration;

use super::StateName;
use crate::cli::{Context, Exit, print};
use crate::model::Priority;
use crate::ops::bucket::{self, Bucket, ManifestEntry, Rebuilding, Standing, State, Worker};

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// Only those that stand there
    #[arg(long, value_enum)]
    state: Option<StateName>,
    /// Only those that wait with this priority
    #[arg(long, value_parser = super::priority)]
    priority: Option<Priority>,
    /// At most so many of each state
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Arguments of `dashboard`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Dashboard {
    /// Show it again and again, with so much time between
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    watch: Option<Duration>,
}

/// Arguments of `search`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Search {
    /// Words, all of which are in a path or tag
    #[arg(required = true)]
    words: Vec<String>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Arguments of `lookup`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct Lookup {
    /// By SHA-256, or its beginning
    #[arg(long)]
    hash: Option<String>,
    /// By a path it was handed in by
    #[arg(long)]
    path: Option<String>,
}

/// Arguments of `manifest`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Manifest {
    /// Make it anew from the labels of the originals
    #[arg(long)]
    rebuild: bool,
    /// With --rebuild: only say what would change
    #[arg(long, requires = "rebuild")]
    dry_run: bool,
}

/// Arguments of `workers`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Workers {
    /// Only those that work or wait for work
    #[arg(long)]
    active: bool,
}

pub(super) async fn status(context: &Context, bucket: &Bucket) -> anyhow::Result<Exit> {
    let standing = bucket::status(bucket).await?;
    context.out().show(&standing, || counts(&standing))?;
    Ok(Exit::Done)
}

fn counts(standing: &Standing) -> String {
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
    context: &Context,
    bucket: &Bucket,
    arguments: List,
) -> anyhow::Result<Exit> {
    let state = arguments.state.map(State::from);
    let found = bucket::list(bucket, state, arguments.priority, arguments.limit).await?;
    context.out().show(&found, || {
        let rows: Vec<_> = found
            .iter()
            .map(|document| {
                let path = print::or_dash(document.paths.first().map(String::as_str));
                let priority = print::or_dash(document.priority);
                [document.hash.clone(), document.state.code().to_owned(), priority, path]
            })
            .collect();
        print::table(["document", "state", "priority", "path"], &rows)
    })?;
    Ok(Exit::Done)
}

pub(super) async fn dashboard(
    context: &Context,
    bucket: &Bucket,
    arguments: Dashboard,
) -> anyhow::Result<Exit> {
    loop {
        let board = bucket::dashboard(bucket).await?;
        context.out().show(&board, || {
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
            let workers = table_of(&board.workers);
            format!("{}\n{workers}\n{}", counts(&board.standing), print::table(header, &running))
        })?;
        let Some(pause) = arguments.watch else { return Ok(Exit::Done) };
        tokio::select! {
            () = tokio::time::sleep(pause.max(Duration::from_secs(1))) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
        }
    }
}

pub(super) async fn search(
    context: &Context,
    bucket: &Bucket,
    arguments: Search,
) -> anyhow::Result<Exit> {
    let found = bucket::search(bucket, &arguments.words.join(" "), arguments.limit).await?;
    context.out().show(&found, || entries(&found))?;
    Ok(Exit::of(!found.is_empty()))
}

fn entries(found: &[(String, ManifestEntry)]) -> String {
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
    context: &Context,
    bucket: &Bucket,
    arguments: Lookup,
) -> anyhow::Result<Exit> {
    let found = match (&arguments.hash, &arguments.path) {
        (_, Some(path)) => bucket::find(bucket, path, true).await?,
        (hash, None) => bucket::find(bucket, hash.as_deref().unwrap_or_default(), false).await?,
    };
    context.out().show(&found, || {
        let state = found.state.map_or("none", State::code);
        let mut lines = vec![format!("document {}: {state}", found.hash)];
        let mut say = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("  {name}: {}", value.escape_debug())));
        };
        say("priority", found.priority.map(ToOwned::to_owned));
        say("begun", Some(found.runs.to_string()));
        say("worker", found.worker.clone());
        say("reason", found.reason.clone());
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
    Ok(Exit::Done)
}

pub(super) async fn manifest(
    context: &Context,
    bucket: &Bucket,
    arguments: Manifest,
) -> anyhow::Result<Exit> {
    if arguments.rebuild {
        let how = Rebuilding { dry_run: arguments.dry_run };
        let rebuilt = bucket::Manifest::rebuild(bucket, how).await?;
        context.out().show(&rebuilt, || {
            let aside = rebuilt.put_aside.as_ref();
            let aside = aside.map(|key| format!("\nwhat lay there is kept as {key}"));
            format!(
                "{} documents, {} of them new to the manifest, {} entries without original{}",
                rebuilt.documents,
                rebuilt.added,
                rebuilt.removed,
                aside.unwrap_or_default()
            )
        })?;
        return Ok(Exit::Done);
    }
    let manifest = bucket::Manifest::load(bucket).await?;
    context.out().show(&manifest, || {
        let all: Vec<_> = manifest.entries.clone().into_iter().collect();
        entries(&all)
    })?;
    Ok(Exit::Done)
}

pub(super) async fn workers(
    context: &Context,
    bucket: &Bucket,
    arguments: Workers,
) -> anyhow::Result<Exit> {
    let stale = super::settings(bucket).await?.stale();
    let mut found: Vec<(Worker, u64)> = Vec::new();
    for (worker, age) in bucket::workers(bucket).await? {
        let active = worker.status != "stopped" && age <= stale;
        if active || !arguments.active {
            found.push((worker, age.as_secs()));
        }
    }
    context.out().show(&found, || table_of(&found))?;
    Ok(Exit::Done)
}

fn table_of(workers: &[(Worker, u64)]) -> String {
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
