//! `docmill workspace`: an olmOCR workspace without a database.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use tokio::sync::mpsc;

use super::{CommandContext, CommandExit, NOTHING, print};
use crate::app::{App, WorkspaceParts};
use docmill_client::telemetry;
use docmill_compat::objects::olmocr::WorkspaceFormat;
use docmill_compat::workspace::{
    self, PopulateReport, RefusedPath, WorkspaceOptions, WorkspaceReading, WorkspaceStats,
    WorkspaceTally, WorkspaceWorkerSetup,
};
use docmill_core::config::LogFormat;
use docmill_operations::submit::{SearchStep, SubmitSearch, SubmitSource};
use docmill_pipeline::failpoint;
use docmill_pipeline::shutdown::Shutdown;

/// Pause before a group is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(15);
/// Interval between two checks of a group locked by another node.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum WorkspaceCommand {
    /// Add documents to the index
    Populate(PopulateArgs),
    /// Run a worker until every group is done (SIGTERM: drain, then release)
    Work(WorkspaceWorkArgs),
    /// Count groups, documents and pages; list failed documents
    Stats(WorkspaceArgs),
}

/// Which workspace, and how its nodes agree.
#[derive(Debug, clap::Args)]
pub(super) struct WorkspaceArgs {
    /// Folder, or s3:// address of a bucket and prefix (endpoint and region as in `store.*`)
    workspace: String,
    /// Layout of the locks and markers written; both layouts are read
    #[arg(long, value_enum, default_value_t = WorkspaceFormatArg::Both)]
    format: WorkspaceFormatArg,
    /// Lock duration without renewal; must be equal on all nodes
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_timeout)]
    timeout: Duration,
}

/// Layouts by the olmOCR version that introduced them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WorkspaceFormatArg {
    #[value(name = "olmocr-0.3")]
    Newer,
    #[value(name = "olmocr-0.1")]
    Older,
    Both,
}

impl From<WorkspaceFormatArg> for WorkspaceFormat {
    fn from(family: WorkspaceFormatArg) -> Self {
        match family {
            WorkspaceFormatArg::Newer => Self::Newer,
            WorkspaceFormatArg::Older => Self::Older,
            WorkspaceFormatArg::Both => Self::Both,
        }
    }
}

/// Arguments of `populate`.
#[derive(Debug, clap::Args)]
pub(super) struct PopulateArgs {
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Files, folders, quoted patterns, s3:// prefixes and patterns; documents, and .tar.gz of PDFs
    #[arg(required_unless_present_any = ["list", "failed"])]
    documents: Vec<PathBuf>,
    /// File of paths and s3:// addresses, one per line, taken literally
    #[arg(long, value_name = "FILE")]
    list: Vec<PathBuf>,
    /// Reopen finished groups with failed documents
    #[arg(long)]
    failed: bool,
    /// Documents per group
    #[arg(long, value_name = "N", conflicts_with = "pages_per_group")]
    items_per_group: Option<std::num::NonZeroU32>,
    /// Pages per group, by the average of at most 100 documents
    #[arg(long, value_name = "N", default_value_t = 500)]
    pages_per_group: u32,
    /// Dry run: list what would be added
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `work`.
#[derive(Debug, clap::Args)]
pub(super) struct WorkspaceWorkArgs {
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Groups in parallel
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    workers: u16,
    /// Immediate retries of a document with failed pages
    #[arg(long, default_value_t = 8)]
    max_page_retries: u32,
    /// Maximum share of lost pages; documents above it fail
    #[arg(long, value_name = "RATE", default_value_t = 0.004, value_parser = parse_rate)]
    max_page_error_rate: f64,
    /// Maximum attempts per document, over all runs of its group
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    tries: u32,
    /// Skip PDFs that are forms, not in English, or spam; `stats` lists them
    #[arg(long, alias = "apply_filter")]
    apply_filter: bool,
    /// Also write Markdown, below markdown/ under the documents' own paths
    #[arg(long)]
    markdown: bool,
    /// Read local files named by the index of an s3:// workspace; anyone who can write to the
    /// bucket chooses them
    #[arg(long)]
    local_files: bool,
    /// Exit when only groups locked by other nodes are left
    #[arg(long)]
    leave_locked: bool,
    /// Drain time after a signal; then groups are released
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    drain: Duration,
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    // A lock is renewed every third of it, and S3 has a precision of seconds.
    if time < Duration::from_secs(6) { Err("at least 6s".to_owned()) } else { Ok(time) }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err("a number from 0 to 1".to_owned()),
    }
}

pub(super) async fn run(
    context: &CommandContext,
    what: WorkspaceCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(NOTHING)?;
    match what {
        WorkspaceCommand::Populate(arguments) => Box::pin(populate(context, &app, arguments)).await,
        WorkspaceCommand::Work(arguments) => Box::pin(run_worker(context, &app, arguments)).await,
        WorkspaceCommand::Stats(place) => Box::pin(show_stats(context, &app, &place)).await,
    }
}

async fn open_workspace(app: &App, place: &WorkspaceArgs) -> anyhow::Result<WorkspaceParts> {
    app.open_workspace(&place.workspace, place.format.into(), place.timeout).await
}

fn is_s3(path: &str) -> bool {
    path.starts_with("s3://")
}

async fn populate(
    context: &CommandContext,
    app: &App,
    arguments: PopulateArgs,
) -> anyhow::Result<CommandExit> {
    context.quiet_logs()?;
    let parts = open_workspace(app, &arguments.place).await?;
    let mut reopened = Vec::new();
    if arguments.failed {
        reopened = workspace::reopen_groups(&parts.workspace, arguments.dry_run).await?;
    }
    let lists = read_lists(&arguments.list).await?;
    let named = arguments.documents.iter().filter_map(|path| path.to_str());
    let s3 = named.chain(lists.iter().map(String::as_str)).any(is_s3);
    // These paths are the person's own.
    let sources = app.workspace_sources(&parts, s3, true).await;
    let (mut paths, skipped) = resolve_documents(&arguments.documents, sources.s3.as_deref()).await;
    paths.extend(lists);
    let at_once = match arguments.items_per_group {
        Some(items) => usize::try_from(items.get())?,
        None if paths.is_empty() => 1,
        None => {
            let plain = WorkspaceReading::default();
            let reader = app.workspace_reader(&parts.workspace, plain).await?;
            let pages = arguments.pages_per_group;
            workspace::sample_group_size(pages, &paths, &sources, reader.as_ref()).await?
        }
    };
    let mut populated =
        workspace::populate_workspace(&parts.workspace, &paths, at_once, arguments.dry_run).await?;
    populated.refused.extend(skipped);
    let shown = serde_json::json!({
        "added": populated.added,
        "groups": populated.groups,
        "known": populated.known,
        "refused": populated.refused,
        "reopened": reopened,
        "items_per_group": at_once,
        "dry_run": arguments.dry_run,
    });
    context.result_output().show(&shown, || format_populated(&populated, reopened.len()))?;
    Ok(CommandExit::from_success(populated.refused.is_empty()))
}

fn format_populated(populated: &PopulateReport, reopened: usize) -> String {
    let rows: Vec<_> =
        populated.refused.iter().map(|one| [one.path.clone(), one.problem.clone()]).collect();
    let table = match rows.is_empty() {
        true => String::new(),
        false => print::table(["left out", "why"], &rows),
    };
    format!(
        "{table}{} documents added in {} groups, {} known before, {reopened} to be tried again\n",
        populated.added, populated.groups, populated.known
    )
}

/// The lines of files; an empty line is nothing.
async fn read_lists(files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for file in files {
        let text = tokio::fs::read_to_string(file)
            .await
            .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", file.display()))?;
        lines.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    Ok(lines)
}

/// The documents that paths mean, local ones absolute; and what is left out.
async fn resolve_documents(
    documents: &[PathBuf],
    s3: Option<&dyn docmill_storage::ObjectStore>,
) -> (Vec<String>, Vec<RefusedPath>) {
    let (steps, mut inbox) = mpsc::channel(64);
    let search = async {
        let is_archive = |path: &Path| path.to_str().is_some_and(workspace::is_archive);
        let mut search = SubmitSearch::new(steps, s3).with_files(is_archive);
        for path in documents {
            search.search_path(path).await;
        }
    };
    let collect = async {
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        while let Some(step) = inbox.recv().await {
            match step {
                SearchStep::Found(SubmitSource::Object(address)) => found.push(address),
                SearchStep::Found(SubmitSource::File(file)) => match name_of(&file) {
                    Ok(name) => found.push(name),
                    Err(left_out) => refused.push(left_out),
                },
                SearchStep::Skipped(skipped) => refused.push(RefusedPath {
                    path: skipped.file.display().to_string(),
                    problem: skipped.problem,
                }),
            }
        }
        (found, refused)
    };
    tokio::join!(search, collect).1
}

fn name_of(file: &Path) -> Result<String, RefusedPath> {
    let refused = |problem: String| RefusedPath { path: file.display().to_string(), problem };
    let whole = std::path::absolute(file).map_err(|error| refused(error.to_string()))?;
    match whole.to_str() {
        Some(name) => Ok(name.to_owned()),
        None => Err(refused("its name is no UTF-8".to_owned())),
    }
}

async fn run_worker(
    context: &CommandContext,
    app: &App,
    arguments: WorkspaceWorkArgs,
) -> anyhow::Result<CommandExit> {
    let format =
        if std::io::stderr().is_terminal() { LogFormat::Text } else { app.config().worker.log };
    let level = if context.global.verbose { "debug" } else { "info" };
    let level = format!("warn,docmill={level},lopdf=off");
    let traces = telemetry::init_with(format, &level, &app.config().telemetry)?;
    failpoint::check_plan()?;
    let stop = Shutdown::on_signals()?;
    let ended = Box::pin(read_groups(app, arguments, stop)).await;
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    let tally = ended?;
    context.result_output().show(&tally, || {
        format!(
            "{} groups done: {} documents read, {} empty, {} not read; {} runs left something \
             for another, {} groups lost to other nodes",
            tally.groups, tally.documents, tally.empty, tally.unread, tally.partial, tally.lost
        )
    })?;
    Ok(CommandExit::Done)
}

/// Works, with health pages, until stopped or everything is done.
async fn read_groups(
    app: &App,
    arguments: WorkspaceWorkArgs,
    stop: Shutdown,
) -> anyhow::Result<WorkspaceTally> {
    let pages = app.health_pages_if_free().await?;
    let parts = open_workspace(app, &arguments.place).await?;
    let (index, _) = parts.workspace.load_index().await?;
    let s3 = index.groups.iter().flat_map(|group| &group.paths).any(|path| is_s3(path));
    // Anyone who can write to a local workspace folder already has access to this machine.
    let local = arguments.local_files || parts.s3.is_none();
    let sources = app.workspace_sources(&parts, s3, local).await;
    let workspace = Arc::clone(&parts.workspace);
    let reading = WorkspaceReading {
        page_retries: arguments.max_page_retries,
        markdown: arguments.markdown,
        apply_filter: arguments.apply_filter,
    };
    let reader = app.workspace_reader(&workspace, reading).await?;
    reader.pipeline.start_removal();
    let work = WorkspaceWorkerSetup {
        workspace: parts.workspace,
        reader,
        sources: Arc::new(sources),
        terms: WorkspaceOptions {
            jobs: usize::from(arguments.workers),
            tries: arguments.tries,
            document_time: app.config().worker.job_timeout,
            page_error_rate: arguments.max_page_error_rate,
            retry_pause: RETRY_PAUSE,
            poll_interval: POLL_INTERVAL,
            leave_locked: arguments.leave_locked,
            drain: arguments.drain,
        },
    };
    let worker = work.open().await?;
    tracing::info!("worker ready, {}", pages.describe());
    let pages = pages.serve(worker.monitor(), workspace);
    let tally = worker.run(stop).await;
    pages.abort();
    Ok(tally?)
}

async fn show_stats(
    context: &CommandContext,
    app: &App,
    place: &WorkspaceArgs,
) -> anyhow::Result<CommandExit> {
    context.quiet_logs()?;
    let parts = open_workspace(app, place).await?;
    let stats = workspace::load_stats(&parts.workspace).await?;
    context.result_output().show(&stats, || format_stats(&stats))?;
    Ok(CommandExit::Done)
}

fn format_stats(stats: &WorkspaceStats) -> String {
    let rows: Vec<[String; 2]> = [
        ("groups", stats.groups.to_string()),
        ("groups done", stats.groups_done.to_string()),
        ("groups in work", stats.groups_in_work.to_string()),
        ("documents", stats.documents.to_string()),
        ("documents read", stats.documents_read.to_string()),
        ("documents skipped", stats.unread.len().to_string()),
        ("pages", stats.pages.to_string()),
        ("pages lost", stats.pages_lost.to_string()),
        ("characters", stats.characters.to_string()),
        ("input tokens", stats.input_tokens.to_string()),
        ("output tokens", stats.output_tokens.to_string()),
        ("cost", super::costs::format_amount(i64::try_from(stats.cost_nanos).unwrap_or(i64::MAX))),
        ("calls without a price", stats.unpriced_calls.to_string()),
    ]
    .map(|(name, value)| [name.to_owned(), value])
    .to_vec();
    let unread: Vec<[String; 4]> = stats
        .unread
        .iter()
        .map(|one| {
            let next = if one.waits { "tried again" } else { "populate --failed" };
            [one.path.clone(), one.reason.clone(), one.detail.clone(), next.to_owned()]
        })
        .collect();
    let mut text = print::table(["what", "count"], &rows);
    if !unread.is_empty() {
        text.push('\n');
        text.push_str(&print::table(["not read", "reason", "detail", "next"], &unread));
    }
    text
}
