//! How long one piece of work lingers for others of its batch.
//!
//! A statement or a request for many costs little more than one for a single job, so the first one
//! lingers. Its slot is idle meanwhile: many slots keep the machine busy all the same, few do not,
//! and bring little to batch.

use std::time::Duration;

/// With this many slots and fewer there is no linger.
const FEW_SLOTS: u32 = 12;
/// With this many slots and more the linger is the longest.
const MANY_SLOTS: u32 = 62;

/// The linger that a worker with this many slots can afford: none with few slots, `longest` with
/// many, in proportion between.
#[must_use]
pub fn linger_for(longest: Duration, slots: u32) -> Duration {
    let above = slots.clamp(FEW_SLOTS, MANY_SLOTS) - FEW_SLOTS;
    longest * above / (MANY_SLOTS - FEW_SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slots_do_not_linger_and_many_for_no_longer_than_the_longest() {
        for (slots, waited) in [(1, 0), (12, 0), (22, 3), (62, 15), (10_000, 15)] {
            let longest = Duration::from_millis(15);
            assert_eq!(linger_for(longest, slots), Duration::from_millis(waited), "{slots}");
        }
    }
}
