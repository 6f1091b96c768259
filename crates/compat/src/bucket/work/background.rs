//! What a worker does beside its documents: writes that it is alive, reads the bucket's settings
//! again, and takes its turn as janitor.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::BucketBacklog;
use crate::bucket::janitor::{self, SweepOptions};
use crate::bucket::{BucketSettings, WorkerRegistration, format_rfc3339};
use crate::objects::engine::LockRecord;
use docmill_core::fault::Result;
use docmill_worker::runner::RunnerHandle;

/// How long the bucket's settings are used before they are read again.
const HOUR: Duration = Duration::from_secs(3600);
/// The longest time between two passes of some janitor.
const LONGEST: Duration = Duration::from_secs(300);
/// The key of the object that says which worker was janitor last.
const TURN: &str = "registry/janitor.json";

/// The newest turn as janitor. Nobody releases it: its age says when the next one is due.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct SweepTurn {
    worker: String,
    nonce: String,
    at: String,
}

impl LockRecord for SweepTurn {
    fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// Runs until no document is in work any more, then gives up the worker's registration.
pub(super) async fn run_background(
    backlog: &BucketBacklog,
    runner: &RunnerHandle<BucketBacklog>,
    stop: CancellationToken,
) {
    let mut registration = backlog.registration.lock().await;
    let no_more_sweeps = CancellationToken::new();
    let renewals = async {
        let is_kept = renew_registration(backlog, runner, &mut registration, &stop).await;
        no_more_sweeps.cancel();
        is_kept
    };
    // Beside each other: a long pass of the janitor is not to cost the worker its registration.
    let (is_kept, ()) = tokio::join!(renewals, sweep_in_turn(backlog, &no_more_sweeps));
    if is_kept && let Err(error) = registration.unregister(&backlog.bucket, &runner.stats()).await {
        tracing::warn!(error = %error, "cannot give its seat up: {error}");
    }
}

/// Says that the worker lives until `stop`, and keeps to the bucket's settings; `false` if another
/// process has its registration: then the worker stops.
async fn renew_registration(
    backlog: &BucketBacklog,
    runner: &RunnerHandle<BucketBacklog>,
    registration: &mut WorkerRegistration,
    stop: &CancellationToken,
) -> bool {
    let mut read = Instant::now();
    loop {
        let beat = backlog.settings.borrow().heartbeat();
        if stop.run_until_cancelled(tokio::time::sleep(beat)).await.is_none() {
            return true;
        }
        if read.elapsed() >= HOUR {
            read = Instant::now();
            match BucketSettings::load(&backlog.bucket).await {
                Ok(settings) => drop(backlog.settings.send_replace(settings)),
                Err(error) => tracing::warn!(error = %error, "keeps the old settings: {error}"),
            }
        }
        let job = runner.any_job().map(|job| job.hash.clone());
        match registration.renew(&backlog.bucket, job, &runner.stats()).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!("another process has this worker's seat: stopping");
                runner.stop();
                return false;
            }
            Err(error) => tracing::warn!(error = %error, "cannot say that it lives: {error}"),
        }
    }
}

/// Takes its turns as janitor until `stop`, of a pass the document it is at included.
async fn sweep_in_turn(backlog: &BucketBacklog, stop: &CancellationToken) {
    loop {
        let beat = backlog.settings.borrow().heartbeat();
        if stop.run_until_cancelled(tokio::time::sleep(beat)).await.is_none() {
            return;
        }
        if let Err(error) = sweep_if_due(backlog, stop).await {
            tracing::warn!(error = %error, "cannot mend: {error}");
        }
    }
}

/// One pass of the janitor, if the last one of any worker is long enough ago. It ends when the next
/// one is due, which goes on with what is left.
async fn sweep_if_due(backlog: &BucketBacklog, stop: &CancellationToken) -> Result<()> {
    let settings = backlog.settings.borrow().clone();
    if !is_my_turn(backlog, &settings).await? {
        return Ok(());
    }
    let (began, longest) = (Instant::now(), turn_length(&settings));
    let is_over = || stop.is_cancelled() || began.elapsed() >= longest;
    let how = SweepOptions::default();
    let swept = janitor::sweep_until(&backlog.bucket, &settings, how, &is_over).await?;
    if !swept.acts.is_empty() {
        tracing::info!(documents = swept.acts.len(), "mended");
    }
    Ok(())
}

async fn is_my_turn(backlog: &BucketBacklog, settings: &BucketSettings) -> Result<bool> {
    let engine = &backlog.bucket.engine;
    let turn = SweepTurn {
        worker: backlog.who.id.clone(),
        nonce: uuid::Uuid::new_v4().simple().to_string(),
        at: format_rfc3339(engine.now().await?),
    };
    let Some(last) = engine.read_lock::<SweepTurn>(TURN).await? else {
        return Ok(engine.acquire_lock(TURN, turn).await?.is_some());
    };
    if backlog.bucket.age_by_store(last.modified).await? < turn_length(settings) {
        return Ok(false);
    }
    Ok(engine.take_over_lock(TURN, &last.etag, turn).await?.is_some())
}

/// The time between two passes, and the longest that one takes.
fn turn_length(settings: &BucketSettings) -> Duration {
    (settings.stale_after() / 3).min(LONGEST)
}
