//! `docmill bucket`: a BlobForge bucket without a database.

mod change;
mod show;
mod work;

use clap::{Subcommand, ValueEnum};

use super::{Context, Exit, NOTHING};
use crate::app::App;
use crate::model::Priority;
use crate::ops::bucket::{Bucket, Settings, State};

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Hand in files, folders and Git repositories (Git LFS: only what the bucket lacks is fetched)
    Ingest(work::Ingest),
    /// Convert what waits until stopped; what is in work is put back at a signal
    Work(work::Work),
    /// Count documents by where they stand
    Status,
    /// List documents
    List(show::List),
    /// Change the priority of documents that wait
    Reprioritize(change::Reprioritize),
    /// Try failed and given-up documents again
    Retry(change::Retry),
    /// Take up what dead workers left, queue failed documents again
    Janitor(change::Janitor),
    /// Show counts, workers and what they do
    Dashboard(show::Dashboard),
    /// Look for documents by words of their paths and tags
    Search(show::Search),
    /// Show all that is known of one document
    Lookup(show::Lookup),
    /// Show the manifest, or make it anew
    Manifest(show::Manifest),
    /// List workers
    Workers(show::Workers),
    /// Show or change the settings that all workers of the bucket share
    Config(change::Shared),
    /// Give documents up; a worker that has one stops at its next heartbeat
    Cancel(change::Cancel),
    /// Remove everything there is of documents
    Remove(change::Remove),
}

/// A priority as an argument.
fn priority(text: &str) -> Result<Priority, String> {
    Priority::from_blobforge_key(text).ok_or_else(|| {
        format!(
            "one of {}, with or without its number",
            Priority::ALL.map(Priority::blobforge_key).join(", ")
        )
    })
}

/// A state as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateName {
    Todo,
    Processing,
    Failed,
    Dead,
    Done,
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Todo => Self::Todo,
            StateName::Processing => Self::Processing,
            StateName::Failed => Self::Failed,
            StateName::Dead => Self::Dead,
            StateName::Done => Self::Done,
        }
    }
}

pub(super) async fn run(context: &Context, what: What) -> anyhow::Result<Exit> {
    let app = context.app(NOTHING)?;
    app.config().bucket.check_place()?;
    if let What::Work(arguments) = what {
        return Box::pin(work::work(context, &app, arguments)).await;
    }
    context.quiet_logs()?;
    let bucket = app.bucket().await?;
    match what {
        What::Ingest(arguments) => Box::pin(work::ingest(context, &app, &bucket, arguments)).await,
        // Answered above.
        What::Work(_) => Ok(Exit::Failed),
        What::Status => show::status(context, &bucket).await,
        What::List(arguments) => show::list(context, &bucket, arguments).await,
        What::Reprioritize(arguments) => change::reprioritize(context, &bucket, arguments).await,
        What::Retry(arguments) => change::retry(context, &bucket, arguments).await,
        What::Janitor(arguments) => change::janitor(context, &bucket, arguments).await,
        What::Dashboard(arguments) => show::dashboard(context, &bucket, arguments).await,
        What::Search(arguments) => show::search(context, &bucket, arguments).await,
        What::Lookup(arguments) => show::lookup(context, &bucket, arguments).await,
        What::Manifest(arguments) => show::manifest(context, &bucket, arguments).await,
        What::Workers(arguments) => show::workers(context, &bucket, arguments).await,
        What::Config(arguments) => change::shared(context, &bucket, arguments).await,
        What::Cancel(arguments) => change::cancel(context, &bucket, arguments).await,
        What::Remove(arguments) => change::remove(context, &bucket, arguments).await,
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
async fn meant(bucket: &Bucket, names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut meant = Vec::new();
    for name in names {
        let found = crate::ops::bucket::find(bucket, name, false).await?;
        if !meant.contains(&found.hash) {
            meant.push(found.hash);
        }
    }
    Ok(meant)
}

/// The settings of the bucket's workers.
async fn settings(bucket: &Bucket) -> anyhow::Result<Settings> {
    Ok(Settings::load(bucket).await?)
}
