//! What changes documents and settings of a bucket.

use crate::cli::{Context, Exit, print};
use crate::model::Priority;
use crate::ops::bucket::{self, Bucket, Change, Changed, Pass, Settings, State};

/// Arguments of `reprioritize`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Reprioritize {
    /// The new priority
    #[arg(long = "to", value_parser = super::priority)]
    to: Priority,
    /// Hashes, or their beginnings
    #[arg(required = true)]
    documents: Vec<String>,
}

/// Arguments of `retry`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["documents", "failed", "dead"]))]
pub(in crate::cli) struct Retry {
    /// Hashes, or their beginnings
    documents: Vec<String>,
    /// Every document that failed
    #[arg(long)]
    failed: bool,
    /// Every document that was given up
    #[arg(long)]
    dead: bool,
    /// Where they are to wait; unset: where they waited
    #[arg(long, value_parser = super::priority)]
    priority: Option<Priority>,
    /// Forget how often they were begun; otherwise each is begun once more
    #[arg(long)]
    reset_retries: bool,
    /// Only say which documents are meant
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `janitor`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Janitor {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Queue failed documents again without waiting for their pause
    #[arg(long)]
    now: bool,
}

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Shared {
    /// Change one
    #[arg(long, value_name = "NAME=NUMBER", value_parser = assignment)]
    set: Option<(String, u64)>,
}

fn assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=NUMBER")?;
    let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    Ok((name.to_owned(), value))
}

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Cancel {
    /// Hashes, or their beginnings
    #[arg(required = true)]
    documents: Vec<String>,
    /// Only say which documents are meant
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `remove`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Remove {
    /// Hashes, or their beginnings
    #[arg(required = true)]
    documents: Vec<String>,
    /// Also those that are worked on; their workers lose them
    #[arg(long)]
    force: bool,
    /// Only say which documents are meant
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn reprioritize(
    context: &Context,
    bucket: &Bucket,
    arguments: Reprioritize,
) -> anyhow::Result<Exit> {
    let move_it = async |hash: &str| bucket::reprioritize(bucket, hash, arguments.to).await;
    to_each(context, bucket, &arguments.documents, false, move_it).await
}

pub(super) async fn retry(
    context: &Context,
    bucket: &Bucket,
    arguments: Retry,
) -> anyhow::Result<Exit> {
    let settings = super::settings(bucket).await?;
    let mut hashes = super::meant(bucket, &arguments.documents).await?;
    for (wanted, state) in [(arguments.failed, State::Failed), (arguments.dead, State::Dead)] {
        if wanted {
            let listed = bucket::list(bucket, Some(state), None, usize::MAX).await?;
            hashes.extend(listed.into_iter().map(|document| document.hash));
        }
    }
    if arguments.dry_run {
        return only_named(context, &hashes);
    }
    let mut done = Vec::new();
    for hash in hashes {
        let (priority, reset) = (arguments.priority, arguments.reset_retries);
        done.push(bucket::retry(bucket, &settings, &hash, priority, reset).await?);
    }
    shown(context, &done)
}

pub(super) async fn cancel(
    context: &Context,
    bucket: &Bucket,
    arguments: Cancel,
) -> anyhow::Result<Exit> {
    let cancel = async |hash: &str| bucket::cancel(bucket, hash).await;
    to_each(context, bucket, &arguments.documents, arguments.dry_run, cancel).await
}

pub(super) async fn remove(
    context: &Context,
    bucket: &Bucket,
    arguments: Remove,
) -> anyhow::Result<Exit> {
    let remove = async |hash: &str| bucket::remove(bucket, hash, arguments.force).await;
    to_each(context, bucket, &arguments.documents, arguments.dry_run, remove).await
}

/// Does it to every document that is meant, or only names them.
async fn to_each(
    context: &Context,
    bucket: &Bucket,
    documents: &[String],
    dry_run: bool,
    change: impl AsyncFn(&str) -> crate::fault::Result<Changed>,
) -> anyhow::Result<Exit> {
    let hashes = super::meant(bucket, documents).await?;
    if dry_run {
        return only_named(context, &hashes);
    }
    let mut done = Vec::new();
    for hash in &hashes {
        done.push(change(hash).await?);
    }
    shown(context, &done)
}

fn only_named(context: &Context, hashes: &[String]) -> anyhow::Result<Exit> {
    context.out().show(&hashes, || hashes.join("\n"))?;
    Ok(Exit::Done)
}

fn shown(context: &Context, done: &[Changed]) -> anyhow::Result<Exit> {
    context.out().show(&done, || {
        let rows: Vec<_> =
            done.iter().map(|line| [line.hash.clone(), word(line.change).to_owned()]).collect();
        print::table(["document", "result"], &rows)
    })?;
    Ok(Exit::of(done.iter().all(|line| line.change != Change::Busy)))
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Queued => "waits",
        Change::Moved => "moved",
        Change::Cancelled => "given up",
        Change::Asked => "its worker stops at the next heartbeat",
        Change::Removed => "removed",
        Change::Busy => "in work: left alone",
        Change::Nothing => "nothing to do",
    }
}

pub(super) async fn janitor(
    context: &Context,
    bucket: &Bucket,
    arguments: Janitor,
) -> anyhow::Result<Exit> {
    let settings = super::settings(bucket).await?;
    let how = Pass { dry_run: arguments.dry_run, at_once: arguments.now };
    let swept = bucket::pass(bucket, &settings, how).await?;
    context.out().show(&swept, || {
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
    Ok(Exit::Done)
}

pub(super) async fn shared(
    context: &Context,
    bucket: &Bucket,
    arguments: Shared,
) -> anyhow::Result<Exit> {
    let settings = match arguments.set {
        Some((name, value)) => Settings::set(bucket, &name, value).await?,
        None => super::settings(bucket).await?,
    };
    let text = serde_json::to_string_pretty(&settings)?;
    context.out().show(&settings, || text)?;
    Ok(Exit::Done)
}
