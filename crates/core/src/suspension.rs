//! The time that the machine was suspended, which the clock behind `Instant` does not count.
//!
//! Deadlines that others count meanwhile (a lease in Postgres, the twelve hours of SQS) pass
//! earlier than that clock shows. Not promised: anything on a system whose clocks all stop; and a
//! suspension within a running request is not seen.

use std::time::Duration;

/// How long the machine was suspended since boot, in whole seconds; only its growth between two calls
/// is meaningful. Zero where the system has no such clock.
pub fn suspended_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        // In this order the difference is never too small; it is too large by the time between the
        // two lines, so that a fraction of a second means nothing.
        let awake = duration_from(clock_gettime(ClockId::Monotonic));
        let slept = duration_from(clock_gettime(ClockId::Boottime)).saturating_sub(awake);
        Duration::from_secs(slept.as_secs())
    }
    #[cfg(not(target_os = "linux"))]
    {
        Duration::ZERO
    }
}

/// The time of a clock.
#[cfg(target_os = "linux")]
fn duration_from(time: rustix::time::Timespec) -> Duration {
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanoseconds)
}
