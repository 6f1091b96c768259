//! What a runner shows to the health pages, the progress bar and whoever protects it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Backlog, Shared, WorkerStats};
use crate::metrics;
use crate::model::{IngestionId, Stage};

/// Gauges are written this often.
const EVERY: Duration = Duration::from_secs(2);

/// A look at a runner from outside, whatever its backlog. Cloned freely.
#[derive(Clone)]
pub struct Monitor(Arc<dyn Observed>);

/// What is seen of a runner.
trait Observed: Send + Sync {
    fn intake_age(&self) -> Duration;
    fn is_draining(&self) -> bool;
    fn is_busy(&self) -> bool;
    fn working(&self) -> Vec<(IngestionId, Stage)>;
    fn stats(&self) -> WorkerStats;
}

impl Monitor {
    pub(super) fn of<B: Backlog>(shared: Arc<Shared<B>>) -> Self {
        Self(shared)
    }

    /// How long ago the intake loop last turned.
    pub fn intake_age(&self) -> Duration {
        self.0.intake_age()
    }

    /// Whether it was told to stop.
    pub fn is_draining(&self) -> bool {
        self.0.is_draining()
    }

    /// Whether it holds anything that would be lost time if it stopped now.
    pub fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// What is worked on, and the stages.
    pub fn working(&self) -> Vec<(IngestionId, Stage)> {
        self.0.working()
    }

    /// How its jobs ended so far.
    pub fn stats(&self) -> WorkerStats {
        self.0.stats()
    }
}

impl<B: Backlog> Observed for Shared<B> {
    fn intake_age(&self) -> Duration {
        let pulse = Duration::from_millis(self.pulse_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(pulse)
    }

    fn is_draining(&self) -> bool {
        self.stop_intake.is_cancelled()
    }

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }

    fn working(&self) -> Vec<(IngestionId, Stage)> {
        let running = self.running();
        running.values().map(|running| (running.claim.id, running.renewer.stage())).collect()
    }

    fn stats(&self) -> WorkerStats {
        self.stats.now()
    }
}

/// Writes the gauges until told to stop.
pub(super) async fn gauges<B: Backlog>(shared: Arc<Shared<B>>, stop: CancellationToken) {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut drain_began = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        metrics::slots(shared.options.slots, shared.used_slots());
        let draining = shared.stop_intake.is_cancelled();
        let since = draining.then(|| *drain_began.get_or_insert_with(Instant::now));
        metrics::draining(since.map(|since| since.elapsed()).unwrap_or_default());
    }
}
