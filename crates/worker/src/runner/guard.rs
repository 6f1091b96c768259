//! Work that may panic or take too long, and must not take others with it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;

use docmill_core::work_clock::WorkClock;

/// How guarded work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum GuardedOutcome<T> {
    /// The work ended by itself, with this output.
    Ended(T),
    /// It panicked; the panic hook has logged where.
    Panicked,
    /// It was stopped at its limit.
    TookTooLong {
        /// Whether it had stored progress that the next attempt can use.
        has_progress: bool,
    },
}

/// Runs work until it has worked for `limit` by this clock, and catches its panic. Waiting is not
/// charged ([`WorkClock`]).
///
/// State shared with other tasks must stay consistent if the work stops at any await.
pub async fn run_guarded<T>(
    clock: &Arc<WorkClock>,
    limit: Duration,
    work: impl Future<Output = T>,
) -> GuardedOutcome<T> {
    tokio::select! {
        biased;
        ended = clock.run_job(AssertUnwindSafe(work).catch_unwind()) => match ended {
            Ok(ended) => GuardedOutcome::Ended(ended),
            Err(_panic) => GuardedOutcome::Panicked,
        },
        () = clock.wait_until_worked(limit) => {
            GuardedOutcome::TookTooLong { has_progress: clock.has_progress() }
        }
    }
}

/// The error text for work stopped at its limit.
pub fn describe_timeout(has_progress: bool) -> &'static str {
    if has_progress {
        "worker.job_timeout reached; the next attempt continues from stored progress"
    } else {
        "worker.job_timeout reached without progress"
    }
}

#[cfg(test)]
mod tests {
    use docmill_core::work_clock::{note_progress, wait_off_clock};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    async fn run_new<T>(limit: Duration, work: impl Future<Output = T>) -> GuardedOutcome<T> {
        run_guarded(&WorkClock::start(), limit, work).await
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_by_itself_by_its_panic_or_at_its_limit() {
        assert_eq!(run_new(LIMIT, async { 7 }).await, GuardedOutcome::Ended(7));
        assert_eq!(
            run_new(LIMIT, async { panic!("told to") }).await,
            GuardedOutcome::<()>::Panicked
        );
        let endless = std::future::pending::<()>();
        let too_long = GuardedOutcome::TookTooLong { has_progress: false };
        assert_eq!(run_new(LIMIT, endless).await, too_long);
        assert_eq!(run_new(Duration::MAX, async { 8 }).await, GuardedOutcome::Ended(8));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_others_never_uses_up_the_time_of_work() {
        let waits_long = async {
            wait_off_clock(tokio::time::sleep(LIMIT * 10_000)).await;
            tokio::time::sleep(LIMIT / 2).await;
        };
        assert_eq!(run_new(LIMIT, waits_long).await, GuardedOutcome::Ended(()));
        let keeps_something = async {
            note_progress();
            std::future::pending::<()>().await;
        };
        let stopped = GuardedOutcome::TookTooLong { has_progress: true };
        assert_eq!(run_new(LIMIT, keeps_something).await, stopped);
    }
}
