//! Handing in, and working.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::app::App;
use crate::cli::{CommandContext, CommandExit, print, standard_input};
use docmill_client::telemetry;
use docmill_compat::bucket::{self, BlobForgeBucket, IngestSource, IngestStatus, IngestedFile};
use docmill_core::config::LogFormat;
use docmill_core::model::Priority;
use docmill_pipeline::failpoint;
use docmill_pipeline::shutdown::Shutdown;
use docmill_worker::runner::WorkerStats;

/// Arguments of `ingest`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketIngestArgs {
    /// Files, folders, and addresses of Git repositories; `-` reads files and folders from standard
    /// input, one a line
    #[arg(required = true)]
    places: Vec<String>,
    /// Paths on standard input end with a NUL byte instead of a line break (`find -print0`)
    #[arg(long, short = '0')]
    null: bool,
    /// How urgent they are
    #[arg(long, default_value = "3_normal", value_parser = super::parse_priority)]
    priority: Priority,
    /// A label beside those of the path
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// Everything that docmill reads, not only PDFs (BlobForge's own workers read those only)
    #[arg(long)]
    any_format: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// The program that knows Git and Git LFS
    #[arg(long, default_value = "git", value_name = "PROGRAM")]
    git: PathBuf,
    /// Fetch content of Git LFS for folders too, as the settings of their repositories say (these
    /// may run programs)
    #[arg(long)]
    trust_folders: bool,
}

/// Arguments of `work`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketWorkArgs {
    /// Documents at the same time; unset: one more than cores
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    jobs: Option<u16>,
    /// End once nothing waits any more
    #[arg(long)]
    once: bool,
    /// How long documents in work may go on after a signal; then they are put back
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    drain: Duration,
    /// Hours of this machine's local time at which documents are taken; again, or separated by
    /// commas, for more; over midnight as 22:00-06:00. With --once it ends outside them
    #[arg(long, value_name = "HH:MM-HH:MM")]
    run_window: Vec<bucket::RunWindows>,
}

pub(super) async fn ingest(
    context: &CommandContext,
    app: &App,
    bucket: &BlobForgeBucket,
    arguments: BucketIngestArgs,
) -> anyhow::Result<CommandExit> {
    standard_input::check_null(arguments.null, &arguments.places)?;
    let how = bucket::IngestOptions {
        priority: arguments.priority,
        tags: arguments.tags,
        any_format: arguments.any_format,
        dry_run: arguments.dry_run,
        largest: app.config().limits.document_bytes.0,
        git: arguments.git,
        trusts_folders: arguments.trust_folders,
    };
    let watched = std::io::stderr().is_terminal() && !context.global.json;
    let seen = |done: usize, of: usize| {
        if watched {
            print::note(&format!("{done} of {of} files"));
        }
    };
    let mut files = Vec::new();
    for place in &arguments.places {
        let place = match standard_input::is_dash(place) {
            true => listed_source(arguments.null).await,
            false => IngestSource::parse(place),
        };
        files.extend(bucket::ingest_all(bucket, &place, &how, &seen).await?.files);
    }
    context.result_output().show(&files, || format_ingested(&files, how.dry_run))?;
    Ok(CommandExit::from_success(
        !files.is_empty() && files.iter().all(|file| file.fate != IngestStatus::Refused),
    ))
}

/// All of them: the manifest is changed for many at a time.
async fn listed_source(null: bool) -> IngestSource {
    let (mut inbox, mut paths) = (standard_input::read_paths(null), Vec::new());
    while let Some(path) = inbox.recv().await {
        paths.push(path);
    }
    IngestSource::Listed(paths)
}

fn format_ingested(files: &[IngestedFile], dry_run: bool) -> String {
    let rows: Vec<_> = files
        .iter()
        .map(|file| {
            let fate = match (file.fate, dry_run) {
                (IngestStatus::Queued, false) => "queued".to_owned(),
                (IngestStatus::Queued, true) => "would be queued".to_owned(),
                (IngestStatus::Known, _) => {
                    file.state.map_or("known", |state| state.code()).to_owned()
                }
                (IngestStatus::Refused, _) => "refused".to_owned(),
            };
            let hash = file.hash.as_deref().and_then(|hash| hash.get(..12));
            [file.path.clone(), fate, print::or_dash(hash), print::or_dash(file.problem.as_deref())]
        })
        .collect();
    let count = |fate| files.iter().filter(|file| file.fate == fate).count();
    let fetched = files.iter().filter(|file| file.fetched).count();
    format!(
        "{}{} queued, {} known before, {} refused, {fetched} fetched from Git LFS\n",
        print::table(["file", "result", "hash", "problem"], &rows),
        count(IngestStatus::Queued),
        count(IngestStatus::Known),
        count(IngestStatus::Refused),
    )
}

pub(super) async fn run_worker(
    context: &CommandContext,
    app: &App,
    arguments: BucketWorkArgs,
) -> anyhow::Result<CommandExit> {
    let level = super::log_level(app, context.global.verbose);
    let format =
        if std::io::stderr().is_terminal() { LogFormat::Text } else { app.config().worker.log };
    let traces = telemetry::init_with(format, &level, &app.config().telemetry)?;
    failpoint::check_plan()?;
    let stop = Shutdown::default();
    stop.on_signals()?;
    let ended = Box::pin(work_until_done(app, arguments, stop)).await;
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    let stats = ended?;
    context.result_output().show(&stats, || {
        format!(
            "{} converted, {} failed, {} given up, {} put back, {} withdrawn, {} lost",
            stats.done, stats.failed, stats.dead, stats.given_back, stats.cancelled, stats.lost
        )
    })?;
    Ok(CommandExit::Done)
}

/// Works, with health pages, until stopped or nothing waits.
async fn work_until_done(
    app: &App,
    arguments: BucketWorkArgs,
    stop: Shutdown,
) -> anyhow::Result<WorkerStats> {
    let pages = app.health_pages_if_free().await?;
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = arguments.jobs.map_or(cores + 1, usize::from);
    let mut work = Box::pin(app.bucket_worker_setup(jobs, arguments.once, arguments.drain)).await?;
    work.terms.windows = bucket::RunWindows::joined(&arguments.run_window);
    let bucket = Arc::clone(&work.bucket);
    super::variables::check_variables(&bucket, std::env::vars()).await?;
    let worker = work.open().await?;
    tracing::info!("worker ready, {}", pages.describe());
    let pages = pages.serve(worker.monitor(), bucket);
    let stats = worker.run(stop).await;
    pages.abort();
    Ok(stats?)
}
