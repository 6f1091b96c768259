//! Commands that change a bucket's documents and settings.

use crate::cli::{CommandContext, CommandExit, print};
use docmill_compat::bucket::{
    self, BlobForgeBucket, BucketAction, BucketChange, BucketSettings, BucketState, SweepOptions,
};
use docmill_core::model::Priority;

/// Arguments of `reprioritize`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketReprioritizeArgs {
    /// New priority; unset: the last argument
    #[arg(long = "to", value_parser = super::parse_priority)]
    to: Option<Priority>,
    /// Hashes or prefixes
    #[arg(required = true)]
    documents: Vec<String>,
}

/// Arguments of `retry`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["documents", "failed", "dead"]))]
pub(in crate::cli) struct BucketRetryArgs {
    /// Hashes or prefixes
    documents: Vec<String>,
    /// All failed documents
    #[arg(long)]
    failed: bool,
    /// All dead documents
    #[arg(long)]
    dead: bool,
    /// New priority; unset: unchanged
    #[arg(long, value_parser = super::parse_priority)]
    priority: Option<Priority>,
    /// Reset the attempt counter; otherwise each gets one more attempt
    #[arg(long)]
    reset_retries: bool,
    /// Dry run: list the affected documents
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `janitor`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketJanitorArgs {
    /// Dry run: list what would be done
    #[arg(long)]
    dry_run: bool,
    /// Requeue failed documents without waiting for their retry delay
    #[arg(long)]
    now: bool,
}

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketConfigArgs {
    /// Change a setting
    #[arg(long, value_name = "NAME=NUMBER", value_parser = parse_assignment)]
    set: Option<(String, u64)>,
}

fn parse_assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=NUMBER")?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
    Ok((name.to_owned(), value))
}

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketCancelArgs {
    /// Hashes or prefixes
    #[arg(required = true)]
    documents: Vec<String>,
    /// Dry run: list the affected documents
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `remove`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketRemoveArgs {
    /// Hashes or prefixes
    #[arg(required = true)]
    documents: Vec<String>,
    /// Include running documents; their workers lose them
    #[arg(long)]
    force: bool,
    /// Dry run: list the affected documents
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn reprioritize(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketReprioritizeArgs,
) -> anyhow::Result<CommandExit> {
    let mut documents = arguments.documents;
    let to = match arguments.to {
        Some(to) => to,
        // `reprioritize HASH PRIORITY`, as BlobForge has it.
        None => {
            let last = documents.pop().unwrap_or_default();
            let named = super::parse_priority(&last).map_err(|known| {
                anyhow::anyhow!("give the new priority, last or after --to: {known}")
            })?;
            anyhow::ensure!(!documents.is_empty(), "name the documents before the priority");
            named
        }
    };
    change_each(context, bucket, &documents, false, async |hash: &str| {
        bucket::reprioritize_document(bucket, hash, to).await
    })
    .await
}

/// Arguments of `clear-dead`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketClearDeadArgs {
    /// Remove them; without this: list only
    #[arg(long)]
    yes: bool,
}

pub(super) async fn clear_dead(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketClearDeadArgs,
) -> anyhow::Result<CommandExit> {
    let dead = BucketState::Dead;
    let listed = bucket::list_documents(bucket, Some(dead), None, usize::MAX).await?;
    let hashes: Vec<String> = listed.into_iter().map(|document| document.hash).collect();
    if !arguments.yes {
        return show_hashes(context, &hashes);
    }
    change_each(context, bucket, &hashes, false, async |hash: &str| {
        bucket::remove_document(bucket, hash, false).await
    })
    .await
}

pub(super) async fn retry(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketRetryArgs,
) -> anyhow::Result<CommandExit> {
    let settings = super::load_settings(bucket).await?;
    let mut hashes = super::resolve_hashes(bucket, &arguments.documents).await?;
    for (wanted, state) in
        [(arguments.failed, BucketState::Failed), (arguments.dead, BucketState::Dead)]
    {
        if wanted {
            let listed = bucket::list_documents(bucket, Some(state), None, usize::MAX).await?;
            hashes.extend(listed.into_iter().map(|document| document.hash));
        }
    }
    if arguments.dry_run {
        return show_hashes(context, &hashes);
    }
    let mut done = Vec::new();
    for hash in hashes {
        let (priority, reset) = (arguments.priority, arguments.reset_retries);
        done.push(bucket::retry_document(bucket, &settings, &hash, priority, reset).await?);
    }
    show_changes(context, &done)
}

pub(super) async fn cancel(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketCancelArgs,
) -> anyhow::Result<CommandExit> {
    change_each(context, bucket, &arguments.documents, arguments.dry_run, async |hash: &str| {
        bucket::cancel_document(bucket, hash).await
    })
    .await
}

pub(super) async fn remove(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketRemoveArgs,
) -> anyhow::Result<CommandExit> {
    change_each(context, bucket, &arguments.documents, arguments.dry_run, async |hash: &str| {
        bucket::remove_document(bucket, hash, arguments.force).await
    })
    .await
}

/// Does it to every document that is meant, or only names them.
async fn change_each(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    documents: &[String],
    dry_run: bool,
    change: impl AsyncFn(&str) -> docmill_core::fault::Result<BucketChange>,
) -> anyhow::Result<CommandExit> {
    let hashes = super::resolve_hashes(bucket, documents).await?;
    if dry_run {
        return show_hashes(context, &hashes);
    }
    let mut done = Vec::new();
    for hash in &hashes {
        done.push(change(hash).await?);
    }
    show_changes(context, &done)
}

fn show_hashes(context: &CommandContext, hashes: &[String]) -> anyhow::Result<CommandExit> {
    context.result_output().show(&hashes, || hashes.join("\n"))?;
    Ok(CommandExit::Done)
}

fn show_changes(context: &CommandContext, done: &[BucketChange]) -> anyhow::Result<CommandExit> {
    context.result_output().show(&done, || {
        let rows: Vec<_> = done
            .iter()
            .map(|line| [line.hash.clone(), action_label(line.change).to_owned()])
            .collect();
        print::table(["document", "result"], &rows)
    })?;
    Ok(CommandExit::from_success(done.iter().all(|line| line.change != BucketAction::Busy)))
}

fn action_label(change: BucketAction) -> &'static str {
    match change {
        BucketAction::Queued => "waits",
        BucketAction::Moved => "moved",
        BucketAction::Cancelled => "given up",
        BucketAction::Asked => "its worker stops at the next heartbeat",
        BucketAction::Removed => "removed",
        BucketAction::Busy => "in work: left alone",
        BucketAction::Nothing => "nothing to do",
    }
}

pub(super) async fn run_janitor(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketJanitorArgs,
) -> anyhow::Result<CommandExit> {
    let settings = super::load_settings(bucket).await?;
    let how = SweepOptions { dry_run: arguments.dry_run, at_once: arguments.now };
    let swept = bucket::sweep_bucket(bucket, &settings, how).await?;
    context.result_output().show(&swept, || {
        let rows: Vec<_> = swept
            .acts
            .iter()
            .map(|act| {
                let worker = print::or_dash(act.worker.as_deref());
                [act.hash.clone(), act.act.to_owned(), act.runs.to_string(), worker]
            })
            .collect();
        let would = if swept.dry_run { "nothing was changed\n" } else { "" };
        format!("{}{would}", print::table(["document", "result", "begun", "left by"], &rows))
    })?;
    Ok(CommandExit::Done)
}

pub(super) async fn run_config(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketConfigArgs,
) -> anyhow::Result<CommandExit> {
    let settings = match arguments.set {
        Some((name, value)) => BucketSettings::set(bucket, &name, value).await?,
        None => super::load_settings(bucket).await?,
    };
    let text = serde_json::to_string_pretty(&settings)?;
    context.result_output().show(&settings, || text)?;
    Ok(CommandExit::Done)
}
