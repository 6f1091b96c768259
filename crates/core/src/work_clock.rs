//! The time that a job works, which is what its limit counts: never the time that it waits.
//!
//! A job runs under a [`WorkClock`]. Every wait for a shared resource (a core, bytes in memory, a
//! provider's turn) or for a database to return goes through [`wait_off_clock`], anywhere in the
//! program, and stops the clock of its job. A job that does several things at once counts as
//! working while one of them has a core ([`work_on_clock`]). Without a clock neither has an effect.
//!
//! The clock has its job's place in line, for those who serve the jobs of a process in their order
//! ([`cpu_queue_position`]). It also notes whether the job has kept anything that another attempt at the
//! same work need not do again ([`note_progress`]).
//!
//! Not promised: that a hang within a wait is noticed. Every wait needs its own deadline or
//! failure. A task that a job spawns has no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::model::IngestionId;
use crate::regression::{self, FixToggle};

/// The next place in line.
static PLACES: AtomicU64 = AtomicU64::new(0);

tokio::task_local! {
    /// The clock of the job that the current task works on.
    static CLOCK: Arc<WorkClock>;
}

/// A job's place in line: the one that was taken earlier comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuQueuePosition(u64);

impl CpuQueuePosition {
    /// The place behind all that were taken so far.
    pub fn take() -> Self {
        Self(PLACES.fetch_add(1, Ordering::Relaxed))
    }
}

/// How long a job has worked, and whether it has kept anything.
#[derive(Debug)]
pub struct WorkClock {
    place: CpuQueuePosition,
    /// The document that the job works on, if it is about one.
    document: Option<IngestionId>,
    state: Mutex<ClockState>,
    /// The clock was stopped or started.
    changed: Notify,
    has_progress: AtomicBool,
}

#[derive(Debug)]
struct ClockState {
    /// Time worked before `running_since`.
    worked: Duration,
    /// `None`: the clock is stopped.
    running_since: Option<Instant>,
    /// Parts of the job that wait.
    waiting: usize,
    /// Parts of the job that have a core.
    working: usize,
}

impl ClockState {
    fn time_worked(&self) -> Duration {
        self.worked + self.running_since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl WorkClock {
    /// The clock of a job that begins now, behind all that came before.
    pub fn start() -> Arc<Self> {
        Self::start_for(None, CpuQueuePosition::take())
    }

    /// The clock of a job that begins now, about this document, and whose place in line was taken
    /// when its work came.
    pub fn start_for(document: Option<IngestionId>, place: CpuQueuePosition) -> Arc<Self> {
        let running_since = Some(Instant::now());
        let state = ClockState { worked: Duration::ZERO, running_since, waiting: 0, working: 0 };
        Arc::new(Self {
            place,
            document,
            state: Mutex::new(state),
            changed: Notify::new(),
            has_progress: AtomicBool::new(false),
        })
    }

    /// Does a job's work under this clock; one that it was under before does not notice it.
    pub async fn run_job<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        CLOCK.scope(Arc::clone(self), work).await
    }

    /// How long the job has worked so far.
    pub fn time_worked(&self) -> Duration {
        self.lock_state().time_worked()
    }

    /// Whether the job has kept anything since the clock was started.
    pub fn has_progress(&self) -> bool {
        self.has_progress.load(Ordering::Relaxed)
    }

    /// Returns once the job has worked for so long.
    pub async fn wait_until_worked(&self, limit: Duration) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (left, stands_still) = {
                let state = self.lock_state();
                (limit.saturating_sub(state.time_worked()), state.running_since.is_none())
            };
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(left), if !stands_still => {}
            }
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock()
    }

    fn count_parts(&self, count: impl FnOnce(&mut ClockState)) {
        let mut state = self.lock_state();
        count(&mut state);
        let runs = state.waiting == 0 || state.working > 0;
        if runs == state.running_since.is_some() {
            return;
        }
        state.worked = state.time_worked();
        state.running_since = runs.then(Instant::now);
        drop(state);
        self.changed.notify_waiters();
    }
}

/// The state of a part of a job while its mark is set.
#[derive(Debug, Clone, Copy)]
enum PartState {
    Waits,
    HasCore,
}

/// A part of a job that is counted until this is dropped.
struct CountedPart {
    clock: Arc<WorkClock>,
    does: PartState,
}

impl CountedPart {
    /// `None`: no job's clock runs here.
    fn begin(does: PartState) -> Option<Self> {
        let clock = CLOCK.try_with(Arc::clone).ok()?;
        clock.count_parts(|state| match does {
            PartState::Waits => state.waiting += 1,
            PartState::HasCore => state.working += 1,
        });
        Some(Self { clock, does })
    }
}

impl Drop for CountedPart {
    fn drop(&mut self) {
        self.clock.count_parts(|state| match self.does {
            PartState::Waits => state.waiting = state.waiting.saturating_sub(1),
            PartState::HasCore => state.working = state.working.saturating_sub(1),
        });
    }
}

/// Waits for something that is not this job's work: its clock is stopped meanwhile, unless another
/// part of the job has a core.
pub async fn wait_off_clock<W: IntoFuture>(wait: W) -> W::Output {
    let _waits = match regression::is_off(FixToggle::WaitClock) {
        true => None,
        false => CountedPart::begin(PartState::Waits),
    };
    wait.await
}

/// Waits for work that has a core: the job's clock runs meanwhile, even while other parts of it
/// wait.
pub async fn work_on_clock<W: IntoFuture>(work: W) -> W::Output {
    let _works = CountedPart::begin(PartState::HasCore);
    work.await
}

/// The place in line of the job that is worked on, the earlier ones having smaller numbers; where
/// none is, a place behind all others.
pub fn cpu_queue_position() -> u64 {
    let own = CLOCK.try_with(|clock| clock.place);
    own.unwrap_or_else(|_| CpuQueuePosition::take()).0
}

/// The document that the current job works on; `None` outside of jobs.
pub fn current_document() -> Option<IngestionId> {
    CLOCK.try_with(|clock| clock.document).ok().flatten()
}

/// Notes that the job has kept something that another attempt need not do again.
pub fn note_progress() {
    // Without a job there is no clock.
    let _noted = CLOCK.try_with(|clock| clock.has_progress.store(true, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    async fn sleep(seconds: u64) {
        tokio::time::sleep(S(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn only_work_is_counted_and_a_job_that_waits_for_ever_has_not_used_its_time() {
        let clock = WorkClock::start();
        let job = async {
            sleep(3).await;
            wait_off_clock(sleep(1000)).await;
            sleep(4).await;
        };
        clock.run_job(job).await;
        assert_eq!(clock.time_worked(), S(7));

        let (clock, began) = (WorkClock::start(), Instant::now());
        let stuck = clock.run_job(wait_off_clock(std::future::pending::<()>()));
        tokio::select! {
            () = stuck => panic!("it never ends"),
            () = clock.wait_until_worked(S(1)) => panic!("it has done nothing"),
            () = sleep(86_400) => {}
        }
        assert_eq!((clock.time_worked(), began.elapsed()), (S(0), S(86_400)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_a_job_runs_while_one_of_its_parts_has_a_core() {
        let clock = WorkClock::start();
        let page = async {
            wait_off_clock(sleep(10)).await;
            work_on_clock(sleep(5)).await;
        };
        let next = async {
            wait_off_clock(sleep(15)).await;
            work_on_clock(sleep(2)).await;
            wait_off_clock(sleep(100)).await;
        };
        clock.run_job(async { tokio::join!(page, next) }).await;
        assert_eq!(clock.time_worked(), S(5 + 2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_met_when_so_much_was_worked_and_a_wait_that_is_given_up_ends() {
        let (clock, began) = (WorkClock::start(), Instant::now());
        let job = clock.run_job(async {
            loop {
                sleep(1).await;
                let given_up = wait_off_clock(std::future::pending::<()>());
                let _elapsed = tokio::time::timeout(S(9), given_up).await;
            }
        });
        tokio::select! {
            () = job => {}
            () = clock.wait_until_worked(S(3)) => {}
        }
        assert_eq!((clock.time_worked(), began.elapsed()), (S(3), S(3 + 2 * 9)));
    }

    #[tokio::test]
    async fn a_job_keeps_its_queue_position_whatever_the_order_in_which_jobs_begin() {
        let (first, second) = (CpuQueuePosition::take(), CpuQueuePosition::take());
        let (late, early) = (WorkClock::start_for(None, second), WorkClock::start_for(None, first));
        let early = early.run_job(async { cpu_queue_position() }).await;
        let late = late.run_job(async { cpu_queue_position() }).await;
        let next = WorkClock::start().run_job(async { cpu_queue_position() }).await;
        assert!(early < late && late < next, "{early} {late} {next}");
    }

    #[tokio::test]
    async fn progress_is_noted_of_the_job_that_makes_it_and_nowhere_else() {
        let (one, other) = (WorkClock::start(), WorkClock::start());
        note_progress();
        one.run_job(async { note_progress() }).await;
        other.run_job(std::future::ready(())).await;
        assert_eq!((one.has_progress(), other.has_progress()), (true, false));
    }
}
