//! Fixes that the simulation switches off, one at a time, to show that it finds the fault by itself
//! (docs/explanation/reliability.md).
//!
//! Only builds with debug assertions can switch one off, and only on one thread. Other builds have
//! every fix in force.

/// A fix that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixToggle {
    /// Waits stop the clock of a job.
    WaitClock,
    /// A job that kept something when its time was over goes on from there.
    KeptProgress,
    /// Waits for a person are no part of a streak of deferrals.
    DenialStreak,
    /// A claim whose answer was lost is asked for again, under the same token.
    ClaimRepeat,
    /// A message that comes while an answer or an end is under way is kept apart.
    MessageSeal,
    /// Messages are sent again only as the queue holds too few, not because others came first.
    ResendCount,
    /// A job that waits for bytes of a budget gives back its own bytes first.
    BytesGivenBack,
    /// Only a death alone counts, and suspects are claimed alone.
    LoneDeaths,
    /// Different documents that fail alike in a row are no fault of theirs.
    SharedFailures,
    /// An end that cannot be written keeps no turn and no slot.
    StalledEnds,
    /// A message is hidden only while the lease of its row is known to live.
    LeaseFate,
}

/// Whether the fix is switched off; only ever in a simulation.
pub fn is_off(fix: FixToggle) -> bool {
    switches::is_off(fix)
}

#[cfg(debug_assertions)]
pub use switches::without_fix;

#[cfg(not(debug_assertions))]
mod switches {
    //! Every fix is in force.

    use super::FixToggle;

    pub(super) fn is_off(_fix: FixToggle) -> bool {
        false
    }
}

#[cfg(debug_assertions)]
mod switches {
    //! Fixes that are switched off in this thread.

    use std::cell::Cell;

    use super::FixToggle;

    thread_local! {
        static OFF: Cell<Option<FixToggle>> = const { Cell::new(None) };
    }

    /// Restores the fix, also after a panic.
    struct FixRestored;

    impl Drop for FixRestored {
        fn drop(&mut self) {
            OFF.set(None);
        }
    }

    pub(super) fn is_off(fix: FixToggle) -> bool {
        OFF.get() == Some(fix)
    }

    /// Runs `work` without this fix, on this thread alone.
    pub fn without_fix<T>(fix: FixToggle, work: impl FnOnce() -> T) -> T {
        OFF.set(Some(fix));
        let _back = FixRestored;
        work()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_fix_is_off_for_the_work_of_one_thread_and_in_force_everywhere_else() {
            let fix = FixToggle::WaitClock;
            let elsewhere = || std::thread::spawn(move || is_off(fix)).join().unwrap();
            let within =
                without_fix(fix, || (is_off(fix), elsewhere(), is_off(FixToggle::ClaimRepeat)));
            assert_eq!(within, (true, false, false));
            let died = std::panic::catch_unwind(|| without_fix(fix, || panic!("told to")));
            assert!(died.is_err() && !is_off(fix));
        }
    }
}
