//! Whether a failure is one object's affair or the store's.
//!
//! What is too large, was encrypted with a key that is not ours or lies in an archive says nothing
//! of the other objects: whoever goes through many passes over it. Many such in a row are the
//! store's doing, a right that is missing for instance. So is a store that does not answer; but one
//! object alone may be answered with a 5xx for days, and the first in every look would end them all.

use docmill_core::fault::{Error, Fault};

/// So many objects in a row may be unreadable by themselves.
const IN_A_ROW: u32 = 10;
/// So many in a row may fail as if the store were in passing trouble.
const TRANSIENT_IN_A_ROW: u32 = 2;

/// The objects in a row that could not be read.
#[derive(Debug, Default)]
pub struct UnreadableStreak(u32);

impl UnreadableStreak {
    /// Whether to go on with the next object after this failure. If not, the streak is over as well:
    /// it has been answered for.
    pub fn passes_over(&mut self, error: &Error) -> bool {
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
    pub fn end_streak(&mut self) {
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
