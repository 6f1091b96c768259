//! How long one piece of work waits for others that could go with it.
//!
//! A statement or a request for many costs little more than one for a single job, so whoever comes first
//! waits a moment. But its slot does nothing else meanwhile: many slots keep the machine busy all the same,
//! few do not, and there are few others to wait for.

use std::time::Duration;

/// With no more slots than this nobody waits.
const FEW_SLOTS: u32 = 12;
/// With so many and more the whole time is waited.
const MANY_SLOTS: u32 = 62;

/// The part of the longest wait that a worker of so many slots can afford: none of it with few slots, all of
/// it with many, in proportion between.
#[must_use]
pub fn affordable_wait(longest: Duration, slots: u32) -> Duration {
    let above = slots.clamp(FEW_SLOTS, MANY_SLOTS) - FEW_SLOTS;
    longest * above / (MANY_SLOTS - FEW_SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slots_wait_for_nobody_and_many_for_no_longer_than_the_longest() {
        for (slots, waited) in [(1, 0), (12, 0), (22, 3), (62, 15), (10_000, 15)] {
            let longest = Duration::from_millis(15);
            assert_eq!(affordable_wait(longest, slots), Duration::from_millis(waited), "{slots}");
        }
    }
}
