//! The arithmetic of a token bucket: pure, the caller brings the time.
//!
//! A cost above the capacity is let through when the bucket is full and leaves a debt; otherwise a
//! request larger than the burst could never be sent.

use std::time::Duration;

use tokio::time::Instant;

/// The level, and when it was true.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenBucket {
    level: f64,
    at: Instant,
}

impl TokenBucket {
    /// A bucket that holds `level` tokens at `now`.
    pub(super) fn new(level: f64, now: Instant) -> Self {
        Self { level, at: now }
    }

    /// Refills at `rate` a second, never above `capacity`. A time before the last changes nothing.
    pub(super) fn refill(&mut self, now: Instant, rate: f64, capacity: f64) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * rate).min(capacity);
        self.at = self.at.max(now);
    }

    /// How long until `cost` can be taken; zero: now. Call [`TokenBucket::refill`] first.
    pub(super) fn time_until(&self, cost: f64, rate: f64, capacity: f64) -> Duration {
        let missing = cost.min(capacity) - self.level;
        if missing <= 1e-9 {
            return Duration::ZERO;
        }
        // A nanosecond more, so that rounding never ends a wait a hair too early.
        let wait = Duration::try_from_secs_f64(missing / rate).unwrap_or(Duration::MAX);
        wait.saturating_add(Duration::from_nanos(1))
    }

    /// Takes it, into debt if need be.
    pub(super) fn take_tokens(&mut self, cost: f64) {
        self.level -= cost;
    }

    /// There is at most so much: the server said so.
    pub(super) fn cap_level(&mut self, level: f64) {
        self.level = self.level.min(level);
    }

    /// The level, below zero for a debt.
    pub(super) fn level(&self) -> f64 {
        self.level
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_is_taken_than_the_capacity_and_the_refill(
            rate in 0.1_f64..100.0,
            capacity in 1.0_f64..50.0,
            steps in prop::collection::vec((0_u64..2_000, 0.1_f64..60.0), 1..200),
        ) {
            let start = Instant::now();
            let mut bucket = TokenBucket::new(capacity, start);
            let (mut now, mut given) = (start, 0.0);
            for (pause_ms, cost) in steps {
                now += Duration::from_millis(pause_ms);
                bucket.refill(now, rate, capacity);
                prop_assert!(bucket.level() <= capacity);
                if bucket.time_until(cost, rate, capacity).is_zero() {
                    bucket.take_tokens(cost);
                    given += cost;
                    let came = capacity + rate * (now - start).as_secs_f64();
                    // The last request may leave a debt of what it costs above the capacity.
                    prop_assert!(given <= came + (cost - capacity).max(0.0) + 1e-6);
                }
            }
        }

        #[test]
        fn after_the_wait_it_is_there_and_not_long_before(
            rate in 0.1_f64..100.0,
            level in -20.0_f64..1.0,
            cost in 0.1_f64..60.0,
        ) {
            let now = Instant::now();
            let capacity = 10.0;
            let mut bucket = TokenBucket::new(level, now);
            let wait = bucket.time_until(cost, rate, capacity);
            if wait > Duration::from_millis(2) {
                let mut early = bucket;
                early.refill(now + wait - Duration::from_millis(1), rate, capacity);
                prop_assert!(!early.time_until(cost, rate, capacity).is_zero());
            }
            bucket.refill(now + wait, rate, capacity);
            prop_assert!(bucket.time_until(cost, rate, capacity).is_zero());
        }
    }

    #[test]
    fn refill_use_and_the_servers_remainder_set_the_level() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(2.0, now);
        bucket.refill(now + Duration::from_secs(2), 3.0, 10.0);
        assert!((bucket.level() - 8.0).abs() < 1e-9);
        // A time before the last changes nothing.
        bucket.refill(now, 3.0, 10.0);
        assert!((bucket.level() - 8.0).abs() < 1e-9);
        bucket.take_tokens(1.5);
        bucket.cap_level(7.0);
        assert!((bucket.level() - 6.5).abs() < 1e-9, "it never gives more");
        bucket.cap_level(4.0);
        assert!((bucket.level() - 4.0).abs() < 1e-9);
        let wait = bucket.time_until(10.0, 3.0, 10.0);
        assert_eq!(wait, Duration::from_secs(2) + Duration::from_nanos(1));
        assert_eq!(bucket.time_until(4.0, 3.0, 10.0), Duration::ZERO);
    }
}
