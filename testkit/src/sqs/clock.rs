//! The stand-in's clock: real time plus an offset that only tests move, and only forward.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, by the stand-in's clock.
pub(super) type Millis = u64;

/// A clock that never runs backwards, even if the machine's does.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    started_at: Millis,
    offset: AtomicU64,
}

/// A duration in whole milliseconds, rounded up so that nothing is due too early.
pub(super) fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(Millis::MAX / 4)
}

impl Clock {
    pub(super) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_at: millis(since), offset: AtomicU64::new(0) }
    }

    pub(super) fn now(&self) -> Millis {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or_default();
        self.started_at + elapsed + self.offset.load(Ordering::Acquire)
    }

    pub(super) fn advance(&self, by: Duration) {
        self.offset.fetch_add(millis(by), Ordering::AcqRel);
    }
}
