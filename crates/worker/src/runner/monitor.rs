//! A read-only view of a runner, for health pages, progress bar and scale-in protection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{FailureContext, JobSource, RunnerState, RunningJob, SAME_FAILURE, WorkerStats};
use docmill_core::metrics;
use docmill_core::model::{IngestionId, IngestionStage};

/// Gauges are written this often.
const EVERY: Duration = Duration::from_secs(2);

/// A job in the list of running jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedJob {
    /// The ingestion.
    pub id: IngestionId,
    /// Where its work is.
    pub stage: IngestionStage,
    /// Whether the work is over: its end is being written, as a rule without a slot.
    pub is_ending: bool,
}

/// A read-only view of a runner with any job source. Cheap to clone.
#[derive(Clone)]
pub struct RunnerMonitor(Arc<dyn ObservedRunner>);

/// The runner's side of a monitor.
trait ObservedRunner: Send + Sync {
    fn intake_age(&self) -> Duration;
    fn is_draining(&self) -> bool;
    fn is_busy(&self) -> bool;
    fn running_jobs(&self) -> Vec<ObservedJob>;
    fn stats(&self) -> WorkerStats;
    fn open_failure(&self) -> Option<FailureContext>;
}

impl RunnerMonitor {
    pub(super) fn from_shared<S: JobSource>(shared: Arc<RunnerState<S>>) -> Self {
        Self(shared)
    }

    /// How long ago the intake loop last turned.
    pub fn intake_age(&self) -> Duration {
        self.0.intake_age()
    }

    /// Whether the runner was asked to stop.
    pub fn is_draining(&self) -> bool {
        self.0.is_draining()
    }

    /// Whether it has a claim or lease whose work would be lost if it stopped now.
    pub fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// The jobs whose end is not written yet.
    pub fn running_jobs(&self) -> Vec<ObservedJob> {
        self.0.running_jobs()
    }

    /// How its jobs ended so far.
    pub fn stats(&self) -> WorkerStats {
        self.0.stats()
    }

    /// Where documents fail one after the other, if they do: the fault is this worker's, its
    /// release's or its rights'.
    pub fn open_failure(&self) -> Option<FailureContext> {
        self.0.open_failure()
    }
}

impl<S: JobSource> ObservedRunner for RunnerState<S> {
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

    fn running_jobs(&self) -> Vec<ObservedJob> {
        self.lock_running()
            .values()
            .map(|running: &RunningJob<S::Job>| ObservedJob {
                id: running.claim.id,
                stage: running.renewer.stage(),
                is_ending: running.is_ending,
            })
            .collect()
    }

    fn stats(&self) -> WorkerStats {
        self.stats.snapshot()
    }

    fn open_failure(&self) -> Option<FailureContext> {
        self.outcomes.open_context()
    }
}

/// Writes the gauges until asked to stop.
pub(super) async fn update_gauges<S: JobSource>(
    shared: Arc<RunnerState<S>>,
    stop: CancellationToken,
) {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut drain_began = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        metrics::set_slots(shared.options.slots, shared.used_slots());
        metrics::set_ending_jobs(shared.ending_jobs());
        if shared.outcomes.forget_old() {
            shared.intake_gate.open(SAME_FAILURE);
        }
        shared.intake_gate.publish_metrics();
        let draining = shared.stop_intake.is_cancelled();
        let since = draining.then(|| *drain_began.get_or_insert_with(Instant::now));
        metrics::set_draining(since.map(|since| since.elapsed()).unwrap_or_default());
    }
}
