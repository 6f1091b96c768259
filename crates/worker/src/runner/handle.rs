//! A job source's handle to its runner: slots, starting jobs, waiting, stopping.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ClaimedJob, IntakeGate, JobSource, RunnerState, RunningJob, WorkerStats, job};
use docmill_core::metrics;
use docmill_core::model::IngestionStage;
use docmill_core::work_clock::WorkClock;
use docmill_pipeline::ClaimHandle;

/// The loop that supplies jobs shows that it lives at least this often.
pub const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of checks for running jobs.
const IDLE_POLL: Duration = Duration::from_millis(100);

/// The right to run one job, acquired before polling.
#[derive(Debug)]
pub struct SlotPermit {
    _permit: OwnedSemaphorePermit,
    /// Of the one job that tries while a reason lets no more through.
    trial: Option<OwnedSemaphorePermit>,
}

impl SlotPermit {
    pub(super) fn new(permit: OwnedSemaphorePermit, trial: Option<OwnedSemaphorePermit>) -> Self {
        Self { _permit: permit, trial }
    }
}

/// A job source's handle to its runner. Cheap to clone.
pub struct RunnerHandle<S: JobSource>(Arc<RunnerState<S>>);

impl<S: JobSource> Clone for RunnerHandle<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: JobSource> RunnerHandle<S> {
    pub(super) fn from_shared(shared: &Arc<RunnerState<S>>) -> Self {
        Self(Arc::clone(shared))
    }

    /// Waits until the intake gate is open and a slot is free; `None` once the runner stops. The
    /// loop that waits here counts as alive.
    pub async fn acquire_slot(&self) -> Option<SlotPermit> {
        let one = self.acquire_slots(1, Duration::ZERO);
        tokio::pin!(one);
        loop {
            self.note_alive();
            tokio::select! {
                biased;
                () = self.0.stop_intake.cancelled() => return None,
                mut slots = &mut one => return slots.pop(),
                () = tokio::time::sleep(TICK_INTERVAL) => {}
            }
        }
    }

    /// Waits until the intake gate is open and a slot is free, and takes up to `most`. If other
    /// slots are in use, waits up to `linger` for more; zero: not at all, since a timer takes a
    /// millisecond. Does not return once the process ends.
    pub async fn acquire_slots(&self, most: usize, linger: Duration) -> Vec<SlotPermit> {
        let shared = &self.0;
        let first = self.acquire_first_slot().await;
        if first.trial.is_some() {
            return vec![first];
        }
        let mut slots = vec![first];
        // Jobs that are about to end free theirs first: no wait where a core is free.
        tokio::task::yield_now().await;
        let until = Instant::now() + linger;
        while slots.len() < most {
            match Arc::clone(&shared.slots).try_acquire_owned() {
                Ok(slot) => slots.push(SlotPermit::new(slot, None)),
                Err(TryAcquireError::NoPermits) if shared.is_busy() && !linger.is_zero() => {
                    let next = Arc::clone(&shared.slots).acquire_owned();
                    match tokio::time::timeout_at(until, next).await {
                        Ok(Ok(slot)) => slots.push(SlotPermit::new(slot, None)),
                        Ok(Err(_)) | Err(_) => break,
                    }
                }
                Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => break,
            }
        }
        slots
    }

    /// Waits until a slot is free, even while the intake gate is closed. Does not return once the
    /// process ends.
    pub async fn acquire_closed_slot(&self) -> SlotPermit {
        match Arc::clone(&self.0.slots).acquire_owned().await {
            Ok(slot) => SlotPermit::new(slot, None),
            Err(_) => std::future::pending().await,
        }
    }

    /// A free slot, even while the intake gate is closed; `None`: none is free.
    pub fn try_acquire_closed_slot(&self) -> Option<SlotPermit> {
        let slot = Arc::clone(&self.0.slots).try_acquire_owned().ok()?;
        Some(SlotPermit::new(slot, None))
    }

    async fn acquire_first_slot(&self) -> SlotPermit {
        let shared = &self.0;
        loop {
            let trial = shared.intake_gate.wait_for_turn().await;
            match Arc::clone(&shared.slots).acquire_owned().await {
                // The job that released the slot may have closed the gate.
                Ok(_) if shared.intake_gate.is_paused() => {}
                Ok(_) if trial.is_none() && shared.intake_gate.is_on_trial() => {}
                Ok(slot) => return SlotPermit::new(slot, trial),
                // The semaphore is closed only when the process ends.
                Err(_) => std::future::pending::<()>().await,
            }
        }
    }

    /// Starts a claimed job; its slot is free again once its work has ended.
    pub fn start_job(&self, claimed: ClaimedJob<S::Job>, slot: SlotPermit) {
        let ClaimedJob { job, claim, renewer, since, place, trace, log } = claimed;
        metrics::count_delivery("claimed");
        let (shared, job) = (Arc::clone(&self.0), Arc::new(job));
        let withdrawn = CancellationToken::new();
        let clock = WorkClock::start_for(Some(claim.id), place);
        let running = RunningJob {
            job: Arc::clone(&job),
            claim: claim.clone(),
            renewer,
            withdrawn: withdrawn.clone(),
            clock: Arc::clone(&clock),
            renewed: since,
            told_stage: IngestionStage::Claimed,
            is_ending: false,
        };
        let key = shared.next_key.fetch_add(1, Ordering::Relaxed);
        shared.lock_running().insert(key, running);
        let entry = job::RunningJobGuard::new(Arc::clone(&shared), key, slot);
        let dropped = shared.dropped.clone();
        let run = Box::new(job::JobTask { job, claim, withdrawn, clock, trace, log });
        // Boxed: what waits for the cancellation would have room for the job's whole state twice more.
        let run = Box::pin(job::run_job(Arc::clone(&shared), run, entry));
        shared.tasks.spawn(dropped.run_until_cancelled_owned(run));
    }

    /// The gate that pauses intake.
    pub fn intake_gate(&self) -> &IntakeGate {
        &self.0.intake_gate
    }

    /// Notes that the loop that supplies jobs is alive.
    pub fn note_alive(&self) {
        let elapsed = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.pulse_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Waits until `then`, a job's end, [`RunnerHandle::wake`] or the stop, whichever comes first.
    /// A loop waiting here counts as alive.
    pub async fn wait_until(&self, then: Instant) {
        loop {
            self.note_alive();
            let next = then.min(Instant::now() + TICK_INTERVAL);
            tokio::select! {
                biased;
                () = self.0.stop_intake.cancelled() => return,
                () = self.0.changed.notified() => return,
                () = tokio::time::sleep_until(next) => {}
            }
            if Instant::now() >= then {
                return;
            }
        }
    }

    /// Ends the waiting of [`RunnerHandle::wait_until`], now or the next.
    pub fn wake(&self) {
        self.0.changed.notify_one();
    }

    /// Whether no more jobs are to be started.
    pub fn is_stopping(&self) -> bool {
        self.0.stop_intake.is_cancelled()
    }

    /// Resolves when no more jobs are to be started.
    pub async fn wait_until_stopping(&self) {
        self.0.stop_intake.cancelled().await;
    }

    /// Stops the runner as a signal would.
    pub fn stop(&self) {
        self.0.quit.cancel();
    }

    /// Whether no job runs.
    pub fn is_idle(&self) -> bool {
        self.0.lock_running().is_empty()
    }

    /// Whether no job works: those that run are over, and their ends are being written.
    pub fn is_work_done(&self) -> bool {
        self.0.lock_running().values().all(|running| running.is_ending)
    }

    /// The claims of jobs that are over, whose ends are not written yet.
    pub fn unwritten_claims(&self) -> Vec<ClaimHandle> {
        let running = self.0.lock_running();
        let ending = running.values().filter(|running| running.is_ending);
        ending.map(|running| running.claim.clone()).collect()
    }

    /// Returns once no job works, or the runner is to stop.
    pub async fn wait_until_work_done(&self) {
        while !self.is_work_done() && !self.is_stopping() {
            self.wait_for_job().await;
        }
    }

    /// Returns once no job runs, or the runner is to stop.
    pub async fn wait_until_idle(&self) {
        while !self.is_idle() && !self.is_stopping() {
            self.wait_for_job().await;
        }
    }

    async fn wait_for_job(&self) {
        tokio::select! {
            () = self.0.changed.notified() => {}
            // Another task may have been told of it instead.
            () = tokio::time::sleep(IDLE_POLL) => {}
            () = self.wait_until_stopping() => {}
        }
    }

    /// Whether a job runs that `is_meant` accepts.
    pub fn is_running(&self, is_meant: impl Fn(&S::Job) -> bool) -> bool {
        self.0.lock_running().values().any(|running| is_meant(&running.job))
    }

    /// One of the jobs that run.
    pub fn any_job(&self) -> Option<Arc<S::Job>> {
        self.0.lock_running().values().next().map(|running| Arc::clone(&running.job))
    }

    /// The number of all slots, and of jobs under work.
    pub fn slot_counts(&self) -> (usize, usize) {
        (self.0.options.slots, self.0.used_slots())
    }

    /// The counts of how jobs have ended so far.
    pub fn stats(&self) -> WorkerStats {
        self.0.stats.snapshot()
    }
}
