//! What a worker does beside its documents: says that it lives, reads the bucket's settings again,
//! and takes its turn as janitor.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Shared;
use crate::fault::Result;
use crate::ops::bucket::janitor::{self, Pass};
use crate::ops::bucket::registry::Seat;
use crate::ops::bucket::{Settings, stamp};
use crate::queue::objects::engine::Lease;

/// How long settings are good.
const HOUR: Duration = Duration::from_secs(3600);
/// The longest time between two passes of some janitor.
const LONGEST: Duration = Duration::from_secs(300);
/// Whose turn it was last.
const TURN: &str = "registry/janitor.json";

/// The newest turn at mending. Nobody gives it back: its age says when the next one is due.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Turn {
    worker: String,
    nonce: String,
    at: String,
}

impl Lease for Turn {
    fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// Runs until the worker stops, then gives its seat up.
pub(super) async fn run(shared: Arc<Shared>, mut seat: Seat, sender: watch::Sender<Settings>) {
    let mut read = Instant::now();
    loop {
        let beat = shared.settings.borrow().heartbeat();
        tokio::select! {
            () = tokio::time::sleep(beat) => {}
            () = shared.stop.until_asked() => break,
        }
        if read.elapsed() >= HOUR {
            read = Instant::now();
            match Settings::load(&shared.bucket).await {
                Ok(settings) => drop(sender.send_replace(settings)),
                Err(error) => tracing::warn!(error = %error, "keeps the old settings: {error}"),
            }
        }
        match seat.beat(&shared.bucket, shared.a_job(), &shared.tally.now()).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!("another process has this worker's seat: stopping");
                shared.stop.ask();
                return;
            }
            Err(error) => tracing::warn!(error = %error, "cannot say that it lives: {error}"),
        }
        if let Err(error) = mend(&shared).await {
            tracing::warn!(error = %error, "cannot mend: {error}");
        }
    }
    if let Err(error) = seat.leave(&shared.bucket, &shared.tally.now()).await {
        tracing::warn!(error = %error, "cannot give its seat up: {error}");
    }
}

/// One pass of the janitor, if the last one of any worker is long enough ago.
async fn mend(shared: &Shared) -> Result<()> {
    let settings = shared.settings.borrow().clone();
    if !is_my_turn(shared, &settings).await? {
        return Ok(());
    }
    let swept = janitor::pass(&shared.bucket, &settings, Pass::default()).await?;
    if !swept.acts.is_empty() {
        tracing::info!(documents = swept.acts.len(), "mended");
    }
    Ok(())
}

async fn is_my_turn(shared: &Shared, settings: &Settings) -> Result<bool> {
    let engine = &shared.bucket.engine;
    let turn = Turn {
        worker: shared.who.id.clone(),
        nonce: uuid::Uuid::new_v4().simple().to_string(),
        at: stamp(engine.now().await?),
    };
    let Some(last) = engine.lock::<Turn>(TURN).await? else {
        return Ok(engine.take(TURN, turn).await?.is_some());
    };
    let every = (settings.stale() / 3).min(LONGEST);
    if shared.bucket.age(last.modified).await? < every {
        return Ok(false);
    }
    Ok(engine.take_over(TURN, &last.etag, turn).await?.is_some())
}
