//! Why a page process ended, and the verdict about a document that was in it.

use std::process::ExitStatus;

use docmill_core::model::OutcomeReason;

/// Why a page process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessExit {
    /// We replaced it after it had served enough documents.
    Retired,
    /// No document was left that needed it.
    Unwanted,
    /// We killed it because a page of this document exceeded its time.
    OverTime {
        /// The document's number, as the supervisor assigns it.
        document: u64,
    },
    /// The same, but the page got little CPU time: the machine was suspended or overloaded.
    Starved {
        /// The document's number, as the supervisor assigns it.
        document: u64,
    },
    /// It sent a frame that makes no sense.
    Nonsense,
    /// It asked for more memory than it may have.
    Memory,
    /// It crashed with this signal.
    Crash(i32),
    /// It was killed by this signal, one that programs do not send themselves.
    Killed(i32),
    /// It exited by itself with this code.
    Exit(i32),
}

/// Signals that come from outside: an operator, or a kernel that is out of memory.
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGINT: i32 = 2;
const SIGHUP: i32 = 1;

impl ProcessExit {
    /// The exit of a process that we did not end. `starved`: its last lines on standard error were
    /// about memory.
    pub(super) fn from_status(status: Option<ExitStatus>, starved: bool) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let signal = status.and_then(|status| status.signal());
        match signal {
            Some(SIGKILL | SIGTERM | SIGINT | SIGHUP) => Self::Killed(signal.unwrap_or_default()),
            _ if starved => Self::Memory,
            Some(signal) => Self::Crash(signal),
            None => Self::Exit(status.and_then(|status| status.code()).unwrap_or(-1)),
        }
    }

    /// The stable word for log and metrics.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Retired => "retired",
            Self::Unwanted => "unwanted",
            Self::OverTime { .. } => "over_time",
            Self::Starved { .. } => "starved",
            Self::Nonsense => "nonsense",
            Self::Memory => "memory",
            Self::Crash(_) => "crash",
            Self::Killed(_) => "killed",
            Self::Exit(_) => "exit",
        }
    }

    /// Whether this is how we end page processes that did nothing wrong.
    pub(super) fn is_orderly(self) -> bool {
        matches!(self, Self::Retired | Self::Unwanted)
    }

    /// Verdict for `document`, which was in the process; `alone`: with no other.
    pub(super) fn verdict_for(self, document: u64, alone: bool) -> ExitVerdict {
        match self {
            Self::OverTime { document: slow } if slow == document => ExitVerdict::OverTime,
            Self::Starved { document: slow } if slow == document => {
                ExitVerdict::Failed { passing: true }
            }
            Self::OverTime { .. } | Self::Starved { .. } | Self::Retired | Self::Unwanted => {
                ExitVerdict::Again
            }
            _ if !alone => ExitVerdict::Suspect,
            Self::Memory => ExitVerdict::Refused(
                OutcomeReason::TooLarge,
                "reading it takes more memory than is allowed",
            ),
            Self::Crash(_) => {
                ExitVerdict::Refused(OutcomeReason::Corrupt, "reading it crashes the reader")
            }
            Self::Nonsense => {
                ExitVerdict::Refused(OutcomeReason::Corrupt, "reading it leads the reader astray")
            }
            Self::Killed(_) => ExitVerdict::Failed { passing: true },
            Self::Exit(_) => ExitVerdict::Failed { passing: false },
        }
    }
}

/// Verdict about a document whose page process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitVerdict {
    /// The document is known to be innocent and is read again.
    Again,
    /// One of the documents that were worked on is guilty, if this one was.
    Suspect,
    /// The document is to blame: it exceeded its time.
    OverTime,
    /// The document is to blame, for this reason.
    Refused(OutcomeReason, &'static str),
    /// Nobody is to blame.
    Failed {
        /// Whether another try may succeed.
        passing: bool,
    },
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn what_the_end_of_a_cell_means_for_a_document() {
        let too_large = Some(OutcomeReason::TooLarge);
        let corrupt = Some(OutcomeReason::Corrupt);
        #[rustfmt::skip]
        let table = [
            // name                                  end                             shared            alone
            ("its own page took too long",           ProcessExit::OverTime { document: 1 },  Err("timeout"),   Err("timeout")),
            ("another's page took too long",         ProcessExit::OverTime { document: 2 },  Err("again"),     Err("again")),
            ("its own page had no core",             ProcessExit::Starved { document: 1 },   Err("passing"),   Err("passing")),
            ("another's page had no core",           ProcessExit::Starved { document: 2 },   Err("again"),     Err("again")),
            ("the cell was replaced",                ProcessExit::Retired,                   Err("again"),     Err("again")),
            ("an allocation failed",                 ProcessExit::Memory,                    Err("suspect"),   Ok(too_large)),
            ("a stack overflowed",                   ProcessExit::Crash(6),                  Err("suspect"),   Ok(corrupt)),
            ("it broke the rules of the wire",       ProcessExit::Nonsense,                  Err("suspect"),   Ok(corrupt)),
            ("somebody killed it",                   ProcessExit::Killed(9),                 Err("suspect"),   Err("passing")),
            ("it gave up by itself",                 ProcessExit::Exit(1),                   Err("suspect"),   Err("bug")),
        ];
        let told = |verdict| match verdict {
            ExitVerdict::Again => Err("again"),
            ExitVerdict::Suspect => Err("suspect"),
            ExitVerdict::OverTime => Err("timeout"),
            ExitVerdict::Refused(reason, _) => Ok(Some(reason)),
            ExitVerdict::Failed { passing: true } => Err("passing"),
            ExitVerdict::Failed { passing: false } => Err("bug"),
        };
        for (name, end, shared, alone) in table {
            assert_eq!(told(end.verdict_for(1, false)), shared, "{name}, shared");
            assert_eq!(told(end.verdict_for(1, true)), alone, "{name}, alone");
        }
    }

    #[test]
    fn the_end_is_read_off_the_status_and_the_last_words() {
        let signal = |number| Some(ExitStatus::from_raw(number));
        #[rustfmt::skip]
        let table = [
            ("abort for want of memory",     ProcessExit::from_status(signal(6), true),              ProcessExit::Memory),
            ("abort of another sort",        ProcessExit::from_status(signal(6), false),             ProcessExit::Crash(6)),
            ("a bad address",                ProcessExit::from_status(signal(11), false),            ProcessExit::Crash(11)),
            ("killed while short of memory", ProcessExit::from_status(signal(9), true),              ProcessExit::Killed(9)),
            ("an exit code",                 ProcessExit::from_status(signal(3 << 8), false),        ProcessExit::Exit(3)),
            ("no status at all",             ProcessExit::from_status(None, false),                  ProcessExit::Exit(-1)),
        ];
        for (name, end, expected) in table {
            assert_eq!(end, expected, "{name}");
        }
    }
}
