//! Whether a failure concerns one object or the store.
//!
//! An object that is too large, encrypted with an unavailable key or archived proves nothing about
//! the others: scans skip it. Many in a row are a fault of the store, such as a missing permission.
//! So is a store that does not answer. But a single object may be answered with a 5xx for days, and
//! as the first entry of each scan it would stop them all.

use docmill_core::fault::{Error, Fault};

/// Maximum consecutive objects unreadable by themselves.
const IN_A_ROW: u32 = 10;
/// Maximum consecutive objects with transient faults.
const TRANSIENT_IN_A_ROW: u32 = 2;

/// The objects in a row that could not be read.
#[derive(Debug, Default)]
pub struct UnreadableStreak(u32);

impl UnreadableStreak {
    /// Whether to continue with the next object after this failure. If not, the streak is over as
    /// well: it has been answered for.
    pub(crate) fn passes_over(&mut self, error: &Error) -> bool {
        let most = match error.fault {
            Fault::Internal | Fault::Denied | Fault::Missing | Fault::Rejected => IN_A_ROW,
            Fault::Transient => TRANSIENT_IN_A_ROW,
            _ => 0,
        };
        let passes = self.0 < most;
        self.0 = if passes { self.0 + 1 } else { 0 };
        passes
    }

    /// An object was read.
    pub(crate) fn end_streak(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_objects_are_passed_over_and_neither_many_in_a_row_nor_a_store_that_is_away() {
        let mut streak = UnreadableStreak::default();
        let denied = Error::new(Fault::Denied, "another's key");
        for turn in 0..IN_A_ROW {
            assert!(streak.passes_over(&denied), "{turn}");
        }
        assert!(!streak.passes_over(&denied), "it is the store");
        assert!(streak.passes_over(&denied), "which was answered for");
        streak.end_streak();
        for away in [Fault::Unavailable, Fault::Throttled(None)] {
            assert!(!streak.passes_over(&Error::new(away, "away")), "{away:?}");
        }
        let failing = Error::transient("InternalError");
        for expected in [true, true, false, true] {
            assert_eq!(streak.passes_over(&failing), expected, "two objects or the store");
        }
    }
}
