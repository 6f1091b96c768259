//! Work that may panic or take too long, and must not take others with it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;

/// How guarded work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum GuardedOutcome<T> {
    /// The work ended by itself, with this output.
    Ended(T),
    /// It panicked; the panic hook has logged where.
    Panicked,
    /// It was stopped at its limit.
    TookTooLong,
}

/// Runs work for at most `limit`, and catches its panic.
///
/// What it shares with others must stay sound if it stops anywhere: so must everything that is
/// dropped at an await.
pub async fn run_guarded<T>(limit: Duration, work: impl Future<Output = T>) -> GuardedOutcome<T> {
    match tokio::time::timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(ended)) => GuardedOutcome::Ended(ended),
        Ok(Err(_panic)) => GuardedOutcome::Panicked,
        Err(_elapsed) => GuardedOutcome::TookTooLong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_ends_by_itself_by_its_panic_or_at_its_limit() {
        let limit = Duration::from_secs(1);
        assert_eq!(run_guarded(limit, async { 7 }).await, GuardedOutcome::Ended(7));
        assert_eq!(
            run_guarded(limit, async { panic!("told to") }).await,
            GuardedOutcome::<()>::Panicked
        );
        let endless = std::future::pending::<()>();
        assert_eq!(run_guarded(limit, endless).await, GuardedOutcome::TookTooLong);
        assert_eq!(run_guarded(Duration::MAX, async { 8 }).await, GuardedOutcome::Ended(8));
    }
}
