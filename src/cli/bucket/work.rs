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
    /// Files, folders, Git repository addresses; `-`: read paths from standard input, one per line
    #[arg(required = true)]
    places: Vec<String>,
    /// Paths on standard input are separated by NUL bytes (`find -print0`)
    #[arg(long, short = '0')]
    null: bool,
    /// Priority
    #[arg(long, default_value = "3_normal", value_parser = super::parse_priority)]
    priority: Priority,
    /// Additional label
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// Ingest all formats that docmill reads, not only PDFs (BlobForge's workers read only PDFs)
    #[arg(long)]
    any_format: bool,
    /// Dry run: list what would be done
    #[arg(long)]
    dry_run: bool,
    /// Git program, with Git LFS
    #[arg(long, default_value = "git", value_name = "PROGRAM")]
    git: PathBuf,
    /// Fetch Git LFS content for folders too, by their repositories' settings (which may run programs)
    #[arg(long)]
    trust_folders: bool,
}

/// Arguments of `work`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketWorkArgs {
    /// Documents in parallel; unset: cores + 1
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    jobs: Option<u16>,
    /// Exit when no documents are waiting
    #[arg(long)]
    once: bool,
    /// Drain time after a signal; then documents are put back
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    drain: Duration,
    /// Run windows in local time, repeated or comma-separated, e.g. 22:00-06:00. With --once: exit outside them
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
    let stop = Shutdown::on_signals()?;
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
