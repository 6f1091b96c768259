//! Mends of findings that the simulation takes out, one at a time, to show that it would have made the
//! finding by itself (docs/explanation/reliability.md).
//!
//! Only builds with debug assertions can take one out, and only for what one thread does meanwhile. Of
//! a build without, nothing is left: every mend is in force.

/// A mend that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchableMend {
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
}

/// Whether the mend is taken out: never, but in a simulation.
pub fn is_taken_out(mend: SwitchableMend) -> bool {
    switches::is_taken_out(mend)
}

#[cfg(debug_assertions)]
pub use switches::run_without;

#[cfg(not(debug_assertions))]
mod switches {
    //! Nothing at all.

    use super::SwitchableMend;

    pub(super) fn is_taken_out(_mend: SwitchableMend) -> bool {
        false
    }
}

#[cfg(debug_assertions)]
mod switches {
    //! Fixes that are switched off in this thread.

    use std::cell::Cell;

    use super::SwitchableMend;

    thread_local! {
        static TAKEN_OUT: Cell<Option<SwitchableMend>> = const { Cell::new(None) };
    }

    /// Puts it back, whatever happened.
    struct MendBack;

    impl Drop for MendBack {
        fn drop(&mut self) {
            TAKEN_OUT.set(None);
        }
    }

    pub(super) fn is_taken_out(mend: SwitchableMend) -> bool {
        TAKEN_OUT.get() == Some(mend)
    }

    /// Does something without this mend, on this thread alone.
    pub fn run_without<T>(mend: SwitchableMend, work: impl FnOnce() -> T) -> T {
        TAKEN_OUT.set(Some(mend));
        let _back = MendBack;
        work()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_mend_is_out_for_one_piece_of_work_of_one_thread_and_in_force_everywhere_else() {
            let mend = SwitchableMend::WaitClock;
            let elsewhere = || std::thread::spawn(move || is_taken_out(mend)).join().unwrap();
            let within = run_without(mend, || {
                (is_taken_out(mend), elsewhere(), is_taken_out(SwitchableMend::ClaimRepeat))
            });
            assert_eq!(within, (true, false, false));
            let died = std::panic::catch_unwind(|| run_without(mend, || panic!("told to")));
            assert!(died.is_err() && !is_taken_out(mend));
        }
    }
}
