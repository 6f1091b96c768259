//! Trying again: how often, how long to wait in between, and how long one call may take.
//!
//! The caller decides which failures are transient; nothing here depends on the operation. Waits
//! use tokio's clock, so that tests can pause it. The consequences of a failed job are decided in
//! `pipeline::failure`.

use std::time::Duration;

/// How the waits of a [`RetryBackoff`] grow from one failure to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackoffGrowth {
    Constant,
    Linear,
    Doubling,
}

/// The random share taken off a wait, so that many callers do not retry in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// The wait is kept in full.
    None,
    /// Up to a quarter, as the model vendors' own SDKs do.
    Quarter,
    /// Up to all of it: for many who want to change one thing.
    Full,
}

/// The waits between the tries of one call.
#[derive(Debug, Clone, Copy)]
pub struct RetryBackoff {
    first: Duration,
    longest: Duration,
    growth: BackoffGrowth,
    jitter: Jitter,
    retries: u32,
}

impl RetryBackoff {
    /// The same wait each time, without end.
    pub const fn constant(wait: Duration) -> Self {
        Self::with_growth(wait, BackoffGrowth::Constant)
    }

    /// One step after the first failure, two after the second and so on.
    pub const fn linear(step: Duration) -> Self {
        Self::with_growth(step, BackoffGrowth::Linear)
    }

    /// `first` after the first failure, doubled after each further one.
    pub const fn doubling(first: Duration) -> Self {
        Self::with_growth(first, BackoffGrowth::Doubling)
    }

    const fn with_growth(first: Duration, growth: BackoffGrowth) -> Self {
        let (longest, jitter, retries) = (Duration::MAX, Jitter::None, u32::MAX);
        Self { first, longest, growth, jitter, retries }
    }

    /// Never longer than this.
    #[must_use]
    pub const fn up_to(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The same backoff with each wait shortened at random by `jitter`.
    #[must_use]
    pub const fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// At most so many tries after the first.
    #[must_use]
    pub const fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The wait before the next try, if there is one; `failed` tries went before the one that just
    /// failed.
    pub fn next_wait(self, failed: u32) -> Option<Duration> {
        (failed < self.retries).then(|| self.wait_after(failed))
    }

    /// Waits as before the next try, however many there were.
    pub async fn sleep(self, failed: u32) {
        tokio::time::sleep(self.wait_after(failed)).await;
    }

    /// The wait before the next try, however many there were.
    pub fn wait_after(self, failed: u32) -> Duration {
        self.jittered_wait(failed, fastrand::f64())
    }

    /// `random` is in 0..1.
    fn jittered_wait(self, failed: u32, random: f64) -> Duration {
        let full = match self.growth {
            BackoffGrowth::Constant => self.first,
            BackoffGrowth::Linear => self.first.saturating_mul(failed.saturating_add(1)),
            BackoffGrowth::Doubling => self.first.saturating_mul(1 << failed.min(30)),
        };
        let full = full.min(self.longest);
        match self.jitter {
            Jitter::None => full,
            Jitter::Quarter => full.mul_f64(1.0 - 0.25 * random),
            Jitter::Full => full.mul_f64(1.0 - random),
        }
    }
}

/// Calls until it succeeds or `wait_after` gives no further wait. `attempt` is given the number of
/// failures so far; `wait_after` the newest failure and how many went before it.
///
/// # Errors
/// The error of the last try.
pub async fn retry<T, E, F>(
    mut attempt: impl FnMut(u32) -> F,
    mut wait_after: impl FnMut(&E, u32) -> Option<Duration>,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut failed = 0;
    loop {
        let error = match attempt(failed).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(wait) = wait_after(&error, failed) else { return Err(error) };
        tokio::time::sleep(wait).await;
        failed = failed.saturating_add(1);
    }
}

/// Waits for a call, at most this long. A late call is dropped.
///
/// # Errors
/// The call's own, or `late()`.
pub async fn with_deadline<T, E>(
    limit: Duration,
    call: impl IntoFuture<Output = Result<T, E>>,
    late: impl FnOnce() -> E,
) -> Result<T, E> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_elapsed| Err(late()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_by_their_factor_up_to_the_cap_and_jitter_only_shortens_them() {
        let doubling = RetryBackoff::doubling(SECOND / 2).up_to(8 * SECOND);
        #[rustfmt::skip]
        let table = [
            (RetryBackoff::constant(SECOND),                  0.0, [1000, 1000, 1000, 1000]),
            (RetryBackoff::linear(SECOND),                    0.0, [1000, 2000, 3000, 10_000]),
            (doubling,                                   0.0, [500, 1000, 2000, 8000]),
            (doubling.with_jitter(Jitter::Quarter),      0.0, [500, 1000, 2000, 8000]),
            (doubling.with_jitter(Jitter::Quarter),      1.0, [375, 750, 1500, 6000]),
            (doubling.with_jitter(Jitter::Full),         0.5, [250, 500, 1000, 4000]),
            (doubling.with_jitter(Jitter::Full),         1.0, [0, 0, 0, 0]),
        ];
        for (backoff, random, expected) in table {
            let waits =
                [0, 1, 2, 9].map(|failed| backoff.jittered_wait(failed, random).as_millis());
            assert_eq!(waits, expected, "{backoff:?} {random}");
        }
        assert!(RetryBackoff::doubling(SECOND).wait_after(u32::MAX) > 1000 * SECOND, "no overflow");
    }

    #[test]
    fn after_the_last_try_there_is_no_wait() {
        let backoff = RetryBackoff::constant(SECOND).with_retries(2);
        assert_eq!(
            [0, 1, 2].map(|failed| backoff.next_wait(failed)),
            [Some(SECOND), Some(SECOND), None]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_tried_until_it_succeeds_its_failure_is_final_or_the_tries_are_used_up() {
        let backoff = RetryBackoff::linear(SECOND).with_retries(2);
        // The answer of each try, then the number of tries and their time.
        let table = [
            (vec![Ok(())], 1, 0),
            (vec![Err(true), Ok(())], 2, 1),
            (vec![Err(false), Ok(())], 1, 0),
            (vec![Err(true), Err(true), Err(true), Ok(())], 3, 3),
        ];
        for (answers, tries, seconds) in table {
            let (begun, made) = (Instant::now(), Cell::new(0));
            let attempt = |failed: u32| {
                made.set(failed + 1);
                std::future::ready(answers[usize::try_from(failed).unwrap()])
            };
            let passes = |passes: &bool, failed| backoff.next_wait(failed).filter(|_| *passes);
            let ended = retry(attempt, passes).await;
            assert_eq!(ended, answers[usize::try_from(tries - 1_u32).unwrap()], "{answers:?}");
            assert_eq!((made.get(), begun.elapsed()), (tries, seconds * SECOND), "{answers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_by_itself_waits_as_long_as_before_the_next_try_however_many_there_were() {
        let backoff = RetryBackoff::linear(SECOND).with_retries(1);
        for failed in [0, 1, 5] {
            let begun = Instant::now();
            backoff.sleep(failed).await;
            assert_eq!(begun.elapsed(), (failed + 1) * SECOND, "{failed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_call_is_dropped_and_one_in_time_is_not() {
        let call = |takes: Duration| async move {
            tokio::time::sleep(takes).await;
            Ok::<_, &str>(takes)
        };
        assert_eq!(with_deadline(2 * SECOND, call(SECOND), || "late").await, Ok(SECOND));
        assert_eq!(with_deadline(SECOND, call(2 * SECOND), || "late").await, Err("late"));
    }
}
