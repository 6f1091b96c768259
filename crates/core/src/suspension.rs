//! The time that the machine was suspended, which the clock behind `Instant` does not count.
//!
//! Deadlines that others count meanwhile (a lease in Postgres, the twelve hours of SQS) pass
//! earlier than that clock shows. Not promised: anything on a system whose clocks all stop; and a
//! suspension within a running request is not seen.

use std::time::Duration;

/// How long the machine was suspended since it was booted, in whole seconds; only the growth from one
/// time to another means something. Zero where the system does not tell.
pub fn suspended_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, Timespec, clock_gettime};
        let duration = |time: Timespec| {
            let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
            Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanoseconds)
        };
        // In this order the difference is never less than what it is; by how much more depends on
        // the time between the two lines, so that less than a second says nothing.
        let awake = duration(clock_gettime(ClockId::Monotonic));
        let slept = duration(clock_gettime(ClockId::Boottime)).saturating_sub(awake);
        Duration::from_secs(slept.as_secs())
    }
    #[cfg(not(target_os = "linux"))]
    {
        Duration::ZERO
    }
}
