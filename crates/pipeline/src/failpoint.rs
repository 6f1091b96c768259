//! Failpoints: seams just before and just after each externally visible write, at which a test
//! kills, stops, delays or fails a worker. `DOCMILL_FAILPOINTS` lists `SEAM.SIDE=ACTION@PASS`,
//! separated by commas:
//!
//! ```text
//! DOCMILL_FAILPOINTS="result.after=kill@1,delete.before=delay:300ms@2"
//! ```
//!
//! Actions: `kill` (SIGKILL to the own process), `stop` (SIGSTOP; a SIGCONT resumes it), `error`
//! (before: not executed; after: executed, answer lost), `delay:TIME`. `@PASS` counts the passes at
//! the seam, from 1 (default 1); each acts once.
//!
//! Only builds with debug assertions have failpoints. Other builds keep just the calls between
//! them, and no string of this module (`scripts/image.sh` checks). A Cargo feature would compile
//! everything that depends on it twice for tests and lints. The crate `fail` needs such a feature
//! too, and has neither signals nor sides.
//!
//! Not promised: that a failpoint is reached. With more than one slot the order of documents at a
//! seam is random.

use docmill_core::fault;

/// A write that others see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureSeam {
    /// `claim`: rows are claimed, or a lock is taken.
    Claim,
    /// `lease`: claims are renewed.
    Lease,
    /// `visibility`: messages are kept hidden.
    Visibility,
    /// `artefact`: an artefact is put.
    Artefact,
    /// `reference`: an artefact is referred to by the row.
    Reference,
    /// `reply`: a reply that was paid for is stored and booked; before: the model has just answered.
    Reply,
    /// `result`: an end is committed; of a bucket or workspace: the result is put.
    ResultWrite,
    /// `release`: a claim is given back.
    Release,
    /// `delete`: messages are deleted; of a bucket: markers, of a workspace: records of its documents.
    Delete,
    /// `hide`: messages are hidden or made visible.
    Hide,
    /// `replace`: the successor of a message is sent.
    Replace,
    /// `child`: a document that was found in another is put.
    Child,
    /// `children`: messages are sent for the documents that were found in another.
    ChildMessages,
    /// `unlock`: locks of a bucket or workspace are released.
    Unlock,
    /// `batch_lead`: the lead of the batch lane is taken or renewed.
    BatchLead,
    /// `batch_gather`: questions are put together as a batch.
    BatchGather,
    /// `batch_try`: it is noted that a batch is about to be handed in.
    BatchTry,
    /// `batch_find`: a batch that may have been handed in is looked for at the vendor's.
    BatchFind,
    /// `batch_remove`: the questions of an earlier try are removed from the vendor's.
    BatchRemove,
    /// `batch_upload`: the questions go to the vendor.
    BatchUpload,
    /// `batch_fence`: checks whether a batch is still to be created; after: the vendor's request is
    /// next.
    BatchFence,
    /// `batch_create`: the vendor creates the batch; after: its id is lost.
    BatchCreate,
    /// `batch_handle`: the vendor's name of a batch is noted.
    BatchHandle,
    /// `batch_poll`: the vendor is asked for a batch's status.
    BatchPoll,
    /// `batch_fetch`: a file of answers is opened.
    BatchFetch,
    /// `batch_answer`: an answer is stored.
    BatchAnswer,
    /// `batch_settle`: an answer is settled and booked.
    BatchSettle,
    /// `batch_leave`: questions of a batch are left to direct calls.
    BatchLeave,
    /// `batch_cancel`: the vendor is asked to cancel a batch.
    BatchCancel,
    /// `batch_late`: it is noted that this was asked.
    BatchLate,
    /// `batch_end`: it is noted that a batch has ended.
    BatchEnd,
    /// `batch_discard`: deletes the vendor's copy of a batch.
    BatchDiscard,
    /// `batch_wake`: documents whose questions are settled become due.
    BatchWake,
}

/// Makes a call with the failpoints of its seam around it.
///
/// # Errors
/// The call's; that of a failpoint.
pub async fn guard_call<T>(
    seam: FailureSeam,
    call: impl Future<Output = fault::Result<T>>,
) -> fault::Result<T> {
    injected::pass(seam, injected::BEFORE).await?;
    let done = call.await?;
    injected::pass(seam, injected::AFTER).await?;
    Ok(done)
}

/// The same of a call about several entries; a failpoint's error is each entry's.
pub async fn guard_batch<T>(
    seam: FailureSeam,
    entries: usize,
    call: impl Future<Output = Vec<fault::Result<T>>>,
) -> Vec<fault::Result<T>> {
    if injected::pass(seam, injected::BEFORE).await.is_err() {
        return (0..entries).map(|_| Err(injected::error())).collect();
    }
    let answers = call.await;
    if injected::pass(seam, injected::AFTER).await.is_err() {
        return (0..entries).map(|_| Err(injected::error())).collect();
    }
    answers
}

/// Validates the plan before any work, and logs it.
///
/// # Errors
/// The invalid part.
pub fn check_plan() -> fault::Result<()> {
    injected::check_plan()
}

#[cfg(not(debug_assertions))]
mod injected {
    //! Nothing at all.

    use super::FailureSeam;
    use docmill_core::fault;

    pub(super) const BEFORE: () = ();
    pub(super) const AFTER: () = ();

    pub(super) async fn pass(_seam: FailureSeam, _side: ()) -> fault::Result<()> {
        Ok(())
    }

    /// Never called: [`pass`] does not fail.
    pub(super) fn error() -> fault::Error {
        fault::Error::internal("no answer")
    }

    pub(super) fn check_plan() -> fault::Result<()> {
        Ok(())
    }
}

#[cfg(debug_assertions)]
mod injected {
    //! The plan of this process, read once, and what it comes to.

    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::FailureSeam;
    use docmill_core::fault::{self, Fault};

    const VARIABLE: &str = "DOCMILL_FAILPOINTS";
    pub(super) const BEFORE: SeamSide = SeamSide::Before;
    pub(super) const AFTER: SeamSide = SeamSide::After;

    static PLAN: LazyLock<Result<Vec<PlannedFailure>, String>> = LazyLock::new(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        text.split(',').filter(|part| !part.is_empty()).map(parse_failure).collect()
    });

    const SEAMS: [(&str, FailureSeam); 33] = [
        ("claim", FailureSeam::Claim),
        ("lease", FailureSeam::Lease),
        ("visibility", FailureSeam::Visibility),
        ("artefact", FailureSeam::Artefact),
        ("reference", FailureSeam::Reference),
        ("reply", FailureSeam::Reply),
        ("result", FailureSeam::ResultWrite),
        ("release", FailureSeam::Release),
        ("delete", FailureSeam::Delete),
        ("hide", FailureSeam::Hide),
        ("replace", FailureSeam::Replace),
        ("child", FailureSeam::Child),
        ("children", FailureSeam::ChildMessages),
        ("unlock", FailureSeam::Unlock),
        ("batch_lead", FailureSeam::BatchLead),
        ("batch_gather", FailureSeam::BatchGather),
        ("batch_try", FailureSeam::BatchTry),
        ("batch_find", FailureSeam::BatchFind),
        ("batch_remove", FailureSeam::BatchRemove),
        ("batch_upload", FailureSeam::BatchUpload),
        ("batch_fence", FailureSeam::BatchFence),
        ("batch_create", FailureSeam::BatchCreate),
        ("batch_handle", FailureSeam::BatchHandle),
        ("batch_poll", FailureSeam::BatchPoll),
        ("batch_fetch", FailureSeam::BatchFetch),
        ("batch_answer", FailureSeam::BatchAnswer),
        ("batch_settle", FailureSeam::BatchSettle),
        ("batch_leave", FailureSeam::BatchLeave),
        ("batch_cancel", FailureSeam::BatchCancel),
        ("batch_late", FailureSeam::BatchLate),
        ("batch_end", FailureSeam::BatchEnd),
        ("batch_discard", FailureSeam::BatchDiscard),
        ("batch_wake", FailureSeam::BatchWake),
    ];

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum SeamSide {
        Before,
        After,
    }

    /// A process is stopped within this time.
    const STOPPED_BY: Duration = Duration::from_millis(100);

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum SeamAction {
        Kill,
        Stop,
        Fail,
        Delay(Duration),
    }

    struct PlannedFailure {
        seam: FailureSeam,
        side: SeamSide,
        action: SeamAction,
        /// At which pass, from 1.
        at: u32,
        passes: AtomicU32,
    }

    pub(super) async fn pass(seam: FailureSeam, side: SeamSide) -> fault::Result<()> {
        let Ok(plan) = PLAN.as_ref() else { return Ok(()) };
        for planned in plan.iter().filter(|planned| (planned.seam, planned.side) == (seam, side)) {
            if planned.passes.fetch_add(1, Ordering::SeqCst) + 1 != planned.at {
                continue;
            }
            tracing::warn!(?seam, ?side, action = ?planned.action, "failpoint triggered");
            match planned.action {
                SeamAction::Kill => {
                    send_self(Signal::KILL)?;
                    std::future::pending::<()>().await;
                }
                SeamAction::Stop => {
                    send_self(Signal::STOP)?;
                    // The signal is the process's, and any thread may take it: until then this one
                    // would go on, and past the seam.
                    tokio::time::sleep(STOPPED_BY).await;
                }
                SeamAction::Fail => return Err(error()),
                SeamAction::Delay(time) => tokio::time::sleep(time).await,
            }
        }
        Ok(())
    }

    fn send_self(signal: Signal) -> fault::Result<()> {
        kill_process(getpid(), signal)
            .map_err(|error| fault::Error::internal("cannot send a signal").with_source(error))
    }

    /// Like a network error: whether the call took effect is unknown.
    pub(super) fn error() -> fault::Error {
        fault::Error::new(Fault::Unavailable, "no answer: a failpoint")
    }

    pub(super) fn check_plan() -> fault::Result<()> {
        match PLAN.as_ref() {
            Ok(plan) if plan.is_empty() => Ok(()),
            Ok(plan) => {
                tracing::warn!(failpoints = plan.len(), "{VARIABLE} is set: this worker will fail");
                Ok(())
            }
            Err(problem) => Err(fault::Error::internal(format!("{VARIABLE}: {problem}"))),
        }
    }

    fn parse_failure(text: &str) -> Result<PlannedFailure, String> {
        let wrong = || format!("`{text}` is not SEAM.SIDE=ACTION@PASS");
        let (place, what) = text.split_once('=').ok_or_else(wrong)?;
        let (seam, side) = place.split_once('.').ok_or_else(wrong)?;
        let (action, at) = what.split_once('@').unwrap_or((what, "1"));
        let side = match side {
            "before" => SeamSide::Before,
            "after" => SeamSide::After,
            _ => return Err(wrong()),
        };
        let seam = SEAMS.iter().find(|(name, _)| *name == seam).ok_or_else(wrong)?.1;
        let action = match action {
            "kill" => SeamAction::Kill,
            "stop" => SeamAction::Stop,
            "error" => SeamAction::Fail,
            _ => {
                let time = action.strip_prefix("delay:").ok_or_else(wrong)?;
                SeamAction::Delay(humantime::parse_duration(time).map_err(|_| wrong())?)
            }
        };
        let at = at.parse().ok().filter(|at| *at > 0).ok_or_else(wrong)?;
        Ok(PlannedFailure { seam, side, action, at, passes: AtomicU32::new(0) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_plan_names_seam_action_and_pass_and_invalid_ones_are_refused() {
            for (text, expected) in [
                ("result.after=kill", Some((BEFORE, SeamAction::Kill, 1, false))),
                ("claim.before=stop@3", Some((BEFORE, SeamAction::Stop, 3, true))),
                ("delete.before=error@1", Some((BEFORE, SeamAction::Fail, 1, true))),
                (
                    "lease.before=delay:300ms@2",
                    Some((BEFORE, SeamAction::Delay(Duration::from_millis(300)), 2, true)),
                ),
                ("claim.before=stop@0", None),
                ("claim.before=sleep@1", None),
                ("claim.during=stop@1", None),
                ("claims.before=stop@1", None),
                ("claim=stop", None),
            ] {
                let found = parse_failure(text).ok();
                let found = found.map(|it| (BEFORE, it.action, it.at, it.side == BEFORE));
                assert_eq!(found, expected, "{text}");
            }
        }
    }
}
