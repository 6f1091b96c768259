//! `docmill dev`: everything on this machine, by one command.
//!
//! The same code as in production with other backends: a private Postgres, a folder as store and
//! one as queue, all below one data folder. Hands the given documents in, runs a worker in this
//! process, shows how far it is, and ends when every document has ended. Running it again is safe:
//! what was read before is shown, what was interrupted goes on. Not meant for production: the
//! database has no backup.

mod ends;
mod place;
mod progress;

use std::path::PathBuf;

use super::submit as submitted;
use super::{Context, Exit, NOTHING, WrongUse, print};
use crate::app::{App, Parts};
use crate::config::Config;
use crate::model::IngestionId;
use crate::ops::submit::{self, Desk, Fate, Found, Submission, Terms};
use crate::runner::Monitor;
use crate::shutdown::Stop;
use ends::End;
use place::Place;

/// Arguments of `dev`.
#[derive(Debug, clap::Args)]
pub(super) struct Dev {
    /// Files, and folders whose documents are read
    paths: Vec<PathBuf>,
    /// Go on serving after the given documents have ended, until a signal comes
    #[arg(long)]
    keep: bool,
    /// Where database, documents and messages are kept
    #[arg(long, value_name = "DIR", default_value = ".docmill")]
    data: PathBuf,
    /// Forget what earlier runs left in the data folder
    #[arg(long)]
    fresh: bool,
    /// Read documents once more that were read before
    #[arg(long)]
    again: bool,
}

pub(super) async fn run(context: &Context, dev: Dev) -> anyhow::Result<Exit> {
    let config = context.config(NOTHING)?;
    if dev.paths.is_empty() && !dev.keep {
        let text = "give files or folders to read, or --keep to wait for more by `docmill submit`";
        return Err(WrongUse(text.to_owned()).into());
    }
    context.quiet_logs()?;
    let found = submit::find(&dev.paths).await;
    submitted::skipped(&found.skipped);
    if found.files.is_empty() && !dev.keep {
        anyhow::bail!("there is no document to read");
    }
    let stop = Stop::default();
    stop.on_signals()?;
    let place = Place::open(&dev.data, dev.fresh).await?;
    let ended = Box::pin(serve(context, &dev, &found, place.config(config), stop)).await;
    let closed = place.close().await;
    let exit = ended?;
    closed?;
    Ok(exit)
}

async fn serve(
    context: &Context,
    dev: &Dev,
    found: &Found,
    config: Config,
    stop: Stop,
) -> anyhow::Result<Exit> {
    let app = App::new(config);
    let db = app.database().await?;
    db.migrate().await?;
    db.close().await;
    let parts = Box::pin(app.parts()).await?;
    // Before the first document is handed in: what is missing is said without leaving rows.
    let (worker, maintenance) = app.worker(&parts).await?;
    let monitor = worker.monitor();
    let pages = if dev.keep { Some(pages(&app, &parts, &monitor).await?) } else { None };
    let working = tokio::spawn(worker.run(stop.clone()));
    let tending = tokio::spawn(maintenance.run(stop.clone()));

    let destination = app.config().destination();
    let desk = Desk {
        db: &parts.db,
        store: parts.store.as_ref(),
        queue: parts.queue.as_ref(),
        largest: app.config().limits.document_bytes.0,
        destination: &destination,
    };
    let watched = watch(desk, dev, found, &monitor, &stop).await;
    if dev.keep && watched.is_ok() {
        stop.until_asked().await;
    }
    stop.ask();
    working.await?;
    tending.await?;
    if let Some(pages) = pages {
        pages.abort();
    }
    let (submissions, ends) = watched?;
    let ends = match ends {
        Some(ends) => ends,
        None => ends::of(&parts.db, &submissions).await?,
    };
    parts.db.close().await;
    context.out().show(&ends, || ends::table(&ends))?;
    let well = ends.iter().all(End::is_well);
    Ok(Exit::of(well && !found.skipped.iter().any(|skip| skip.named)))
}

/// Hands the documents in and waits until all have ended, or until stopped.
async fn watch(
    desk: Desk<'_>,
    dev: &Dev,
    found: &Found,
    monitor: &Monitor,
    stop: &Stop,
) -> anyhow::Result<(Vec<Submission>, Option<Vec<End>>)> {
    let terms = Terms { again: dev.again, ..Terms::default() };
    let mut submissions = Vec::new();
    for file in &found.files {
        let done = submit::submit(desk, file, &terms).await?;
        if done.fate == Fate::Refused {
            let problem = done.problem.as_deref().unwrap_or_default();
            print::note(&format!("skipped {}: {problem}", file.display()));
        }
        submissions.push(done);
        if stop.is_asked() {
            break;
        }
    }
    progress::until_ended(desk.db, monitor, &submissions, stop).await?;
    if dev.keep && !stop.is_asked() {
        let ends = ends::of(desk.db, &submissions).await?;
        return Ok((submissions, Some(ends)));
    }
    Ok((submissions, None))
}

/// Serves the health pages, as a worker does.
async fn pages(
    app: &App,
    parts: &Parts,
    monitor: &Monitor,
) -> anyhow::Result<tokio::task::JoinHandle<std::io::Result<()>>> {
    let pages = app.health_pages().await?;
    print::note(&pages.describe());
    Ok(pages.serve(monitor.clone(), parts.dependencies()))
}

/// The ingestions of submissions, none twice.
fn ingestions(submissions: &[Submission]) -> Vec<IngestionId> {
    let mut ids: Vec<_> = submissions.iter().filter_map(|done| done.ingestion_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
