//! A worker's background tasks: renews its registration, reloads the bucket's settings, and takes
//! its turn as janitor.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::BucketJobSource;
use crate::bucket::janitor::{self, SweepOptions};
use crate::bucket::{BucketSettings, WorkerRegistration, format_rfc3339};
use crate::objects::engine::LockRecord;
use docmill_core::fault::Result;
use docmill_worker::runner::RunnerHandle;

/// How long the bucket's settings are used before they are read again.
const HOUR: Duration = Duration::from_secs(3600);
/// The longest time between two passes of some janitor.
const MAX_TURN: Duration = Duration::from_secs(300);
/// The key of the object that records the last janitor.
const TURN: &str = "registry/janitor.json";

/// The last turn as janitor. It is never released: its age decides when the next is due.
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

/// Runs until no job is left, then removes the worker's registration.
pub(super) async fn run_background(
    source: &BucketJobSource,
    runner: &RunnerHandle<BucketJobSource>,
    stop: CancellationToken,
) {
    let mut registration = source.registration.lock().await;
    let no_more_sweeps = CancellationToken::new();
    let renewals = async {
        let is_kept = renew_registration(source, runner, &mut registration, &stop).await;
        no_more_sweeps.cancel();
        is_kept
    };
    // Beside each other: a long pass of the janitor is not to cost the worker its registration.
    let (is_kept, ()) = tokio::join!(renewals, sweep_in_turn(source, &no_more_sweeps));
    if is_kept && let Err(error) = registration.unregister(&source.bucket, &runner.stats()).await {
        tracing::warn!(error = %error, "cannot unregister this worker: {error}");
    }
}

/// Renews the registration until `stop`, and applies the bucket's settings; `false` if another
/// process took the registration: then the worker stops.
async fn renew_registration(
    source: &BucketJobSource,
    runner: &RunnerHandle<BucketJobSource>,
    registration: &mut WorkerRegistration,
    stop: &CancellationToken,
) -> bool {
    let mut read = Instant::now();
    loop {
        let beat = source.settings.borrow().heartbeat();
        if stop.run_until_cancelled(tokio::time::sleep(beat)).await.is_none() {
            return true;
        }
        if read.elapsed() >= HOUR {
            read = Instant::now();
            match BucketSettings::load(&source.bucket).await {
                Ok(settings) => drop(source.settings.send_replace(settings)),
                Err(error) => {
                    tracing::warn!(error = %error, "cannot reload the bucket's settings: {error}")
                }
            }
        }
        let job = runner.any_job().map(|job| job.hash.clone());
        match registration.renew(&source.bucket, job, &runner.stats()).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!("another process took this worker's registration: stopping");
                runner.stop();
                return false;
            }
            Err(error) => {
                tracing::warn!(error = %error, "cannot renew this worker's registration: {error}")
            }
        }
    }
}

/// Takes its turns as janitor until `stop`, of a pass the document it is at included.
async fn sweep_in_turn(source: &BucketJobSource, stop: &CancellationToken) {
    loop {
        let beat = source.settings.borrow().heartbeat();
        if stop.run_until_cancelled(tokio::time::sleep(beat)).await.is_none() {
            return;
        }
        if let Err(error) = sweep_if_due(source, stop).await {
            tracing::warn!(error = %error, "janitor pass failed: {error}");
        }
    }
}

/// One janitor pass, if the last one of any worker is long enough ago. It stops when the next one
/// is due, which continues.
async fn sweep_if_due(source: &BucketJobSource, stop: &CancellationToken) -> Result<()> {
    let settings = source.settings.borrow().clone();
    if !is_my_turn(source, &settings).await? {
        return Ok(());
    }
    let (began, longest) = (Instant::now(), turn_length(&settings));
    let is_over = || stop.is_cancelled() || began.elapsed() >= longest;
    let how = SweepOptions::default();
    let swept = janitor::sweep_until(&source.bucket, &settings, how, &is_over).await?;
    if !swept.acts.is_empty() {
        tracing::info!(documents = swept.acts.len(), "documents repaired");
    }
    Ok(())
}

async fn is_my_turn(source: &BucketJobSource, settings: &BucketSettings) -> Result<bool> {
    let engine = &source.bucket.engine;
    let turn = SweepTurn {
        worker: source.who.id.clone(),
        nonce: uuid::Uuid::new_v4().simple().to_string(),
        at: format_rfc3339(engine.now().await?),
    };
    let Some(last) = engine.read_lock::<SweepTurn>(TURN).await? else {
        return Ok(engine.acquire_lock(TURN, turn).await?.is_some());
    };
    if source.bucket.age_by_store(last.modified).await? < turn_length(settings) {
        return Ok(false);
    }
    Ok(engine.take_over_lock(TURN, &last.etag, turn).await?.is_some())
}

/// The time between two passes, and the longest that one takes.
fn turn_length(settings: &BucketSettings) -> Duration {
    (settings.stale_after() / 3).min(MAX_TURN)
}
