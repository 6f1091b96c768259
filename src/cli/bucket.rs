//! `docmill bucket`: a BlobForge bucket without a database.

mod change;
mod results;
mod show;
mod variables;
mod work;

use clap::{Subcommand, ValueEnum};

use super::{CommandContext, CommandExit, NOTHING};
use crate::app::App;
use docmill_compat::bucket::{BlobForgeBucket, BucketSettings, BucketState};
use docmill_core::model::Priority;

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum BucketCommand {
    /// Ingest files, folders and Git repositories (Git LFS: fetches only missing content)
    Ingest(work::BucketIngestArgs),
    /// Run a worker (SIGTERM: drain, then put back)
    Work(work::BucketWorkArgs),
    /// Count documents by state, or show one document's state
    Status(show::BucketStatusArgs),
    /// List and count documents
    List(show::BucketListArgs),
    /// Change the priority of waiting documents
    Reprioritize(change::BucketReprioritizeArgs),
    /// Retry failed and dead documents
    Retry(change::BucketRetryArgs),
    /// Run one maintenance pass: abandoned locks, due retries
    Janitor(change::BucketJanitorArgs),
    /// Show status: counts, workers, running jobs
    Dashboard(show::BucketDashboardArgs),
    /// Search documents by words of their paths and tags
    Search(show::BucketSearchArgs),
    /// Show one document's record
    Lookup(show::BucketLookupArgs),
    /// Show or rebuild the manifest
    Manifest(show::BucketManifestArgs),
    /// List workers
    Workers(show::BucketWorkersArgs),
    /// Show or change the settings shared by all workers
    Config(change::BucketConfigArgs),
    /// Cancel documents; their workers stop at the next heartbeat
    Cancel(change::BucketCancelArgs),
    /// Remove documents completely
    Remove(change::BucketRemoveArgs),
    /// Download results
    Download(results::BucketDownloadArgs),
    /// Preview the text of a result
    Preview(results::BucketPreviewArgs),
    /// Show a document's failures, including BlobForge's log
    Logs(results::BucketLogsArgs),
    /// Remove dead documents: originals, markers and manifest entries
    ClearDead(change::BucketClearDeadArgs),
    /// Search unfinished documents by words of their paths and tags
    SearchQueue(show::BucketSearchArgs),
    #[command(flatten)]
    Replaced(ReplacedCommand),
}

/// Replaced BlobForge commands, refused with the name of the replacement.
#[derive(Debug, Subcommand)]
pub(super) enum ReplacedCommand {
    #[command(hide = true)]
    Convert(ReplacedArgs),
    #[command(hide = true)]
    Hydrate(ReplacedArgs),
    #[command(hide = true)]
    RepairMetadata(ReplacedArgs),
    #[command(hide = true)]
    RetryAll(ReplacedArgs),
    #[command(hide = true)]
    Watch(ReplacedArgs),
    #[command(hide = true, name = "test-s3")]
    TestS3(ReplacedArgs),
}

/// Its arguments, unread.
#[derive(Debug, clap::Args)]
pub(super) struct ReplacedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

impl ReplacedCommand {
    /// The name that it had, and what does it here.
    fn successor(&self) -> (&'static str, &'static str) {
        match self {
            Self::Convert(_) => ("convert", "docmill process FILE"),
            Self::Hydrate(_) => ("hydrate", "docmill bucket download HASH --output FOLDER"),
            Self::RepairMetadata(_) => ("repair-metadata", "docmill bucket manifest --rebuild"),
            Self::RetryAll(_) => ("retry-all", "docmill bucket retry --failed --dead"),
            Self::Watch(_) => ("watch", "docmill bucket dashboard --watch 5s"),
            Self::TestS3(_) => (
                "test-s3",
                "docmill bucket status, which like every command tries the bucket first",
            ),
        }
    }
}

/// A priority as an argument.
fn parse_priority(text: &str) -> Result<Priority, String> {
    Priority::from_blobforge_key(text).ok_or_else(|| {
        format!(
            "one of {}, with or without its number",
            Priority::ALL.map(Priority::blobforge_key).join(", ")
        )
    })
}

/// A state as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BucketStateArg {
    Todo,
    Processing,
    Failed,
    Dead,
    Done,
}

impl From<BucketStateArg> for BucketState {
    fn from(name: BucketStateArg) -> Self {
        match name {
            BucketStateArg::Todo => Self::Todo,
            BucketStateArg::Processing => Self::Processing,
            BucketStateArg::Failed => Self::Failed,
            BucketStateArg::Dead => Self::Dead,
            BucketStateArg::Done => Self::Done,
        }
    }
}

pub(super) async fn run(
    context: &CommandContext,
    what: BucketCommand,
) -> anyhow::Result<CommandExit> {
    if let BucketCommand::Replaced(replaced) = &what {
        let (name, successor) = replaced.successor();
        anyhow::bail!("`{name}` is not supported: use {successor}");
    }
    let app = context.build_app(NOTHING)?;
    app.config().bucket.check_place()?;
    if let BucketCommand::Work(arguments) = what {
        return Box::pin(work::run_worker(context, &app, arguments)).await;
    }
    context.quiet_logs()?;
    let bucket = app.open_bucket().await?;
    if !matches!(what, BucketCommand::Config(_)) {
        variables::check_variables(&bucket, std::env::vars()).await?;
    }
    match what {
        BucketCommand::Ingest(arguments) => {
            Box::pin(work::ingest(context, &app, &bucket, arguments)).await
        }
        // Answered above.
        BucketCommand::Work(_) | BucketCommand::Replaced(_) => Ok(CommandExit::Failed),
        BucketCommand::Status(arguments) => show::show_status(context, &bucket, arguments).await,
        BucketCommand::Download(arguments) => results::download(context, &bucket, arguments).await,
        BucketCommand::Preview(arguments) => results::preview(context, &bucket, arguments).await,
        BucketCommand::Logs(arguments) => results::show_logs(context, &bucket, arguments).await,
        BucketCommand::ClearDead(arguments) => {
            change::clear_dead(context, &bucket, arguments).await
        }
        BucketCommand::SearchQueue(arguments) => {
            show::search_queue(context, &bucket, arguments).await
        }
        BucketCommand::List(arguments) => show::list(context, &bucket, arguments).await,
        BucketCommand::Reprioritize(arguments) => {
            change::reprioritize(context, &bucket, arguments).await
        }
        BucketCommand::Retry(arguments) => change::retry(context, &bucket, arguments).await,
        BucketCommand::Janitor(arguments) => change::run_janitor(context, &bucket, arguments).await,
        BucketCommand::Dashboard(arguments) => {
            show::show_dashboard(context, &bucket, arguments).await
        }
        BucketCommand::Search(arguments) => show::search(context, &bucket, arguments).await,
        BucketCommand::Lookup(arguments) => show::lookup(context, &bucket, arguments).await,
        BucketCommand::Manifest(arguments) => {
            show::show_manifest(context, &bucket, arguments).await
        }
        BucketCommand::Workers(arguments) => show::show_workers(context, &bucket, arguments).await,
        BucketCommand::Config(arguments) => change::run_config(context, &bucket, arguments).await,
        BucketCommand::Cancel(arguments) => change::cancel(context, &bucket, arguments).await,
        BucketCommand::Remove(arguments) => change::remove(context, &bucket, arguments).await,
    }
}

/// The level of a worker's log lines, by BlobForge's word for it.
fn log_level(app: &App, verbose: bool) -> String {
    let level = match app.config().bucket.log_level.to_lowercase().as_str() {
        "warning" => "warn".to_owned(),
        level => level.to_owned(),
    };
    let level = if verbose { "debug".to_owned() } else { level };
    format!("warn,docmill={level},lopdf=off")
}

/// The hash that is meant: whole, or the only one that begins so.
async fn resolve_hashes(bucket: &BlobForgeBucket, names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut meant = Vec::new();
    for name in names {
        let found = docmill_compat::bucket::find_document(bucket, name, false).await?;
        if !meant.contains(&found.hash) {
            meant.push(found.hash);
        }
    }
    Ok(meant)
}

/// The settings of the bucket's workers.
async fn load_settings(bucket: &BlobForgeBucket) -> anyhow::Result<BucketSettings> {
    Ok(BucketSettings::load(bucket).await?)
}
