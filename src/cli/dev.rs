//! `docmill dev`: runs all parts locally, by one command.
//!
//! The same code as in production with other backends: a private Postgres, a folder as store and
//! one as queue, all below one data folder. It submits the given documents, runs a worker in this
//! process, shows progress, and ends when every document has ended; without documents, or with
//! `--keep` or `--open`, it serves the pages and keeps running. Running it again is safe: finished
//! documents are shown, interrupted ones continue. Not for production: the database has no backup.

mod data_folder;
mod document_summary;
mod progress;

use std::path::PathBuf;

use super::submit as submitted;
use super::{CommandContext, CommandExit, NOTHING, print};
use crate::app::{App, ServiceBackends};
use data_folder::DataFolder;
use docmill_core::config::Config;
use docmill_core::model::IngestionId;
use docmill_operations::submit::{
    self, SearchResult, Submission, SubmitContext, SubmitOptions, SubmitStatus,
};
use docmill_pipeline::shutdown::Shutdown;
use docmill_worker::runner::RunnerMonitor;
use document_summary::DocumentSummary;

/// Arguments of `dev`.
#[derive(Debug, clap::Args)]
pub(super) struct DevArgs {
    /// Files and folders to read
    paths: Vec<PathBuf>,
    /// Serve the pages and go on after the given documents have ended, until a signal; the default
    /// without documents
    #[arg(long)]
    keep: bool,
    /// Open the pages in a browser; goes on as with --keep
    #[arg(long)]
    open: bool,
    /// Data folder: database, documents, messages
    #[arg(long, value_name = "DIR", default_value = ".docmill")]
    data: PathBuf,
    /// Delete the data of earlier runs first
    #[arg(long)]
    fresh: bool,
    /// Read documents again that were read before
    #[arg(long)]
    again: bool,
}

impl DevArgs {
    /// The page that a browser is opened with, if one is; without documents that to drop some on.
    fn first_page(&self) -> Option<&'static str> {
        self.open.then_some(if self.paths.is_empty() { "upload" } else { "" })
    }

    /// Whether it serves pages and waits for more documents until a signal.
    fn goes_on(&self) -> bool {
        self.keep || self.open || self.paths.is_empty()
    }
}

pub(super) async fn run(context: &CommandContext, dev: DevArgs) -> anyhow::Result<CommandExit> {
    let config = context.load_config(NOTHING)?;
    context.quiet_logs()?;
    let found = submit::find_paths(&dev.paths).await;
    submitted::print_skipped(&found.skipped);
    if found.files.is_empty() && !dev.goes_on() {
        anyhow::bail!("no documents to read");
    }
    let stop = Shutdown::on_signals()?;
    let place = DataFolder::open(&dev.data, dev.fresh).await?;
    let ended = Box::pin(serve_dev(context, &dev, &found, place.apply_to(config), stop)).await;
    let closed = place.close().await;
    let exit = ended?;
    closed?;
    Ok(exit)
}

async fn serve_dev(
    context: &CommandContext,
    dev: &DevArgs,
    found: &SearchResult,
    config: Config,
    stop: Shutdown,
) -> anyhow::Result<CommandExit> {
    let app = App::new(config);
    let db = app.connect_database().await?;
    db.migrate().await?;
    db.close().await;
    let parts = Box::pin(app.open_backends()).await?;
    // Before the first submission, so that missing dependencies leave no rows.
    let (worker, maintenance, replays) = Box::pin(app.build_parts(&parts)).await?;
    let monitor = worker.monitor();
    let health = match dev.goes_on() {
        true => Some(serve_health(&app, &parts, &monitor).await?),
        false => None,
    };
    let pages = match dev.goes_on() {
        true => Some(Box::pin(serve_pages(&app, dev.first_page(), &stop)).await?),
        false => None,
    };
    let working = tokio::spawn(worker.run(stop.clone()));
    let tended = futures::future::join(maintenance.run(stop.clone()), replays.run(stop.clone()));
    let tending = tokio::spawn(tended);

    let destination = app.config().queue_destination();
    let desk = SubmitContext {
        db: &parts.db,
        store: parts.store.as_ref(),
        queue: parts.queue.as_ref(),
        largest: app.config().limits.document_bytes.0,
        destination: &destination,
    };
    let watched = submit_and_watch(desk, dev, found, &monitor, &stop).await;
    if dev.goes_on() && watched.is_ok() {
        stop.wait_until_requested().await;
    }
    stop.request();
    working.await??;
    tending.await?;
    if let Some(health) = health {
        health.abort();
    }
    if let Some(pages) = pages {
        pages.await?;
    }
    let (submissions, ends) = watched?;
    let ends = match ends {
        Some(ends) => ends,
        None => document_summary::load_summaries(&parts.db, &submissions).await?,
    };
    parts.db.close().await;
    context.result_output().show(&ends, || document_summary::format_summaries(&ends))?;
    if !dev.goes_on() {
        print::note("to look at them in a browser: docmill dev --open");
    }
    let well = ends.iter().all(DocumentSummary::is_success);
    Ok(CommandExit::from_success(well && !found.skipped.iter().any(|skip| skip.named)))
}

/// Hands the documents in and waits until all have ended, or until stopped.
async fn submit_and_watch(
    desk: SubmitContext<'_>,
    dev: &DevArgs,
    found: &SearchResult,
    monitor: &RunnerMonitor,
    stop: &Shutdown,
) -> anyhow::Result<(Vec<Submission>, Option<Vec<DocumentSummary>>)> {
    let terms = SubmitOptions { again: dev.again, ..SubmitOptions::default() };
    let mut submissions = Vec::new();
    for file in &found.files {
        let done = submit::submit_file(desk, file, &terms).await?;
        if done.fate == SubmitStatus::Refused {
            let problem = done.problem.as_deref().unwrap_or_default();
            print::note(&format!("skipped {}: {problem}", file.display()));
        }
        submissions.push(done);
        if stop.is_requested() {
            break;
        }
    }
    progress::wait_until_ended(desk.db, monitor, &submissions, stop).await?;
    if dev.goes_on() && !stop.is_requested() {
        let ends = document_summary::load_summaries(desk.db, &submissions).await?;
        return Ok((submissions, Some(ends)));
    }
    Ok((submissions, None))
}

/// Serves the health pages, as a worker does.
async fn serve_health(
    app: &App,
    parts: &ServiceBackends,
    monitor: &RunnerMonitor,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let pages = app.health_pages().await?;
    print::note(&pages.describe());
    Ok(pages.serve(monitor.clone(), app.health_dependencies(parts).await?))
}

/// Serves the console until the stop, and says where.
async fn serve_pages(
    app: &App,
    first_page: Option<&str>,
    stop: &Shutdown,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let console = Box::pin(app.open_console()).await?;
    let address = format!("http://{}{}/", console.address()?, app.config().web.base_path);
    print::note(&format!("pages on {address} (drop documents on {address}upload)"));
    let serving = tokio::spawn(console.serve(stop.clone()));
    if let Some(page) = first_page {
        open_in_browser(&format!("{address}{page}"));
    }
    Ok(serving)
}

/// Asks the desktop to show an address. Without a desktop the printed address is enough.
fn open_in_browser(address: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = std::process::Stdio::null;
    let opened = std::process::Command::new(opener)
        .arg(address)
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .spawn();
    if opened.is_err() {
        print::note(&format!("no browser was opened ({opener} is not there): open the address"));
    }
}

/// The ingestions of submissions, none twice.
fn submitted_ingestions(submissions: &[Submission]) -> Vec<IngestionId> {
    let mut ids: Vec<_> = submissions.iter().filter_map(|done| done.ingestion_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
