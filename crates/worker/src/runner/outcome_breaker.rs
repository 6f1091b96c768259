//! The breaker over outcomes: is a failure the document's, or everybody's?
//!
//! Failures that ask for a person (`internal`, `misconfigured`, a panic, a store that takes no writes) are noted by their context:
//! stage and fault. Once different documents failed in one context in a row and none passed it, they
//! are evidence against this worker, its release or its rights. Then the intake gate is closed for
//! [`SAME_FAILURE`], nothing is counted, the document goes back for others, and one job at a time
//! tries. A job that passes the context's stage closes the breaker again. The first failures wait a
//! moment for those after them: where all fail at once, none is counted.
//!
//! `transient` failures are recorded as well. Shared by all documents, they are an outage that no
//! probe detects, such as a machine that kills page processes. They are not counted as attempts
//! then, and intake stays open.
//!
//! Providers are not this breaker's: the limiter of each (`docmill_client::throttle`) holds the calls
//! that it declines, and other documents go on.
//!
//! Not promised: to find a context that fails for some documents and passes for others.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::intake_gate::PauseReason;
use docmill_core::failure_streak::FailureStreak;
use docmill_core::fault::{self, Fault};
use docmill_core::model::{IngestionId, IngestionStage};
use docmill_pipeline::ClaimHandle;
use docmill_pipeline::artefact::StoreTakesNoWrites;

/// Different documents fail alike in a row: this worker, its release or its rights are at fault.
pub const SAME_FAILURE: PauseReason = PauseReason::from_label("same_failure");
/// How long a failure waits for others like it, or for a job that passes.
const EVIDENCE_TIMEOUT: Duration = Duration::from_secs(2);
/// The delay of a document that is released while the breaker is open: soon, for other workers.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// In place of the fault's code: the store takes no writes.
const UNWRITTEN: &str = "store_takes_no_writes";

/// The stage and fault that failed jobs may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureContext {
    /// The stage in which the job ended.
    pub stage: IngestionStage,
    /// The code of its fault.
    pub fault: &'static str,
}

impl FailureContext {
    /// The context of a failure that may be everybody's; `None` for a fault with its own reaction.
    pub(super) fn new(stage: IngestionStage, fault: Fault) -> Option<Self> {
        let noted = [Fault::Internal, Fault::Misconfigured, Fault::Transient];
        noted.contains(&fault).then(|| Self { stage, fault: fault.code() })
    }

    /// The same of an error: a store that takes no writes is everybody's.
    pub(super) fn of_error(stage: IngestionStage, error: &fault::Error) -> Option<Self> {
        match StoreTakesNoWrites::is_cause_of(error) {
            true => Some(Self { stage, fault: UNWRITTEN }),
            false => Self::new(stage, error.fault),
        }
    }

    /// Whether a person must fix the common cause of these failures. If not, they are an outage.
    pub(super) fn closes_intake(self) -> bool {
        [Fault::Internal.code(), Fault::Misconfigured.code(), UNWRITTEN].contains(&self.fault)
    }
}

impl std::fmt::Display for FailureContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stage, fault } = self;
        write!(f, "documents fail `{fault}` in stage `{}`, one after the other", stage.code())
    }
}

/// The contexts in which jobs of this worker failed since one last passed them.
#[derive(Debug, Default)]
pub(super) struct OutcomeBreaker {
    streaks: Mutex<BTreeMap<FailureContext, FailureStreak>>,
    /// A failure or a success was noted.
    changed: Notify,
}

impl OutcomeBreaker {
    /// Notes a failure. Returns whether it is everybody's: it is not counted against its document.
    pub(super) fn note_failure(&self, document: IngestionId, context: FailureContext) -> bool {
        let mut streaks = self.streaks.lock();
        let streak = streaks.entry(context).or_default();
        let was_shared = streak.is_evidence();
        let is_shared = streak.add_failure(document, Instant::now());
        drop(streaks);
        if is_shared && !was_shared && !context.closes_intake() {
            tracing::error!(
                stage = context.stage.code(),
                fault = context.fault,
                "{context}: treated as an outage, no attempt counts"
            );
        }
        self.changed.notify_waiters();
        is_shared
    }

    /// Whether a failure that was noted turns out to be everybody's within two seconds.
    pub(super) async fn wait_for_evidence(&self, context: FailureContext) -> bool {
        let judged = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(is_shared) = self.judge(context) {
                    return is_shared;
                }
                changed.await;
            }
        };
        tokio::time::timeout(EVIDENCE_TIMEOUT, judged).await.unwrap_or(false)
    }

    /// Whether failures in this context are shared by all documents; `None`: too few failed to
    /// decide.
    fn judge(&self, context: FailureContext) -> Option<bool> {
        let streaks = self.streaks.lock();
        match streaks.get(&context) {
            Some(streak) if streak.is_evidence() => Some(true),
            Some(streak) if !streak.is_empty() => None,
            _ => Some(false),
        }
    }

    /// Notes the stages that a job has passed; `is_done`: the one that it ended in as well. Returns
    /// whether that closed the breaker.
    pub(super) fn note_passed(&self, claim: &ClaimHandle, is_done: bool) -> bool {
        let (now, last) = (Instant::now(), claim.stage());
        let mut streaks = self.streaks.lock();
        let mut has_closed = false;
        for (context, streak) in streaks.iter_mut() {
            if claim.has_entered(context.stage) && (is_done || context.stage != last) {
                has_closed |= streak.end_by_success(now);
            }
        }
        let is_open = first_open(&streaks).is_some();
        drop(streaks);
        self.changed.notify_waiters();
        has_closed && !is_open
    }

    /// The context whose documents all fail, so that intake is closed.
    pub(super) fn open_context(&self) -> Option<FailureContext> {
        first_open(&self.streaks.lock())
    }

    /// Drops stale contexts. Returns whether the breaker is closed.
    pub(super) fn forget_old(&self) -> bool {
        let now = Instant::now();
        let mut streaks = self.streaks.lock();
        streaks.retain(|_, streak| !streak.is_forgotten(now));
        first_open(&streaks).is_none()
    }
}

fn first_open(streaks: &BTreeMap<FailureContext, FailureStreak>) -> Option<FailureContext> {
    let open = streaks.iter().filter(|(_, streak)| streak.is_evidence());
    open.map(|(context, _)| *context).find(|context| context.closes_intake())
}

/// When a document that is released by the breaker may be tried again: not all at the same moment.
pub(super) fn release_delay() -> Duration {
    RELEASE_DELAY.mul_f64(1.0 + fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::ClaimToken;

    const FETCH: FailureContext =
        FailureContext { stage: IngestionStage::Fetch, fault: "misconfigured" };
    const EXTRACT: FailureContext =
        FailureContext { stage: IngestionStage::Extract, fault: "internal" };

    /// A job that went through the stages up to this one.
    fn job(until: IngestionStage) -> ClaimHandle {
        let claim = ClaimHandle::unlimited(IngestionId::random(), ClaimToken::random());
        for stage in IngestionStage::ALL {
            claim.enter(stage);
            if stage == until {
                break;
            }
        }
        claim
    }

    fn open_at(breaker: &OutcomeBreaker, context: FailureContext) {
        let mut is_open = false;
        while !is_open {
            is_open = breaker.note_failure(IngestionId::random(), context);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_job_that_passes_the_stage_closes_the_breaker() {
        let breaker = OutcomeBreaker::default();
        open_at(&breaker, EXTRACT);
        assert_eq!(breaker.open_context(), Some(EXTRACT));
        assert!(!breaker.note_passed(&job(IngestionStage::Transcribe), false));
        assert!(!breaker.note_passed(&job(IngestionStage::Extract), false), "it failed there");
        let without_model = ClaimHandle::unlimited(IngestionId::random(), ClaimToken::random());
        without_model.enter(IngestionStage::Fetch);
        without_model.enter(IngestionStage::Record);
        assert!(!breaker.note_passed(&without_model, true), "it never was there");
        assert!(breaker.note_passed(&job(IngestionStage::Record), true));
        assert_eq!(breaker.open_context(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_breaker_stays_open_until_every_context_was_passed() {
        let breaker = OutcomeBreaker::default();
        open_at(&breaker, FETCH);
        open_at(&breaker, EXTRACT);
        assert!(!breaker.note_passed(&job(IngestionStage::Extract), false), "only fetched");
        assert_eq!(breaker.open_context(), Some(EXTRACT));
        assert!(breaker.note_passed(&job(IngestionStage::Record), true));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_failures_wait_for_those_after_them_or_for_a_job_that_passes() {
        let breaker = OutcomeBreaker::default();
        assert!(!breaker.note_failure(IngestionId::random(), EXTRACT));
        let began = Instant::now();
        assert!(!breaker.wait_for_evidence(EXTRACT).await, "it fails alone");
        assert_eq!(began.elapsed(), EVIDENCE_TIMEOUT);
        let fails_again = async {
            tokio::task::yield_now().await;
            open_at(&breaker, EXTRACT);
        };
        let (is_shared, ()) = tokio::join!(breaker.wait_for_evidence(EXTRACT), fails_again);
        assert!(is_shared);

        let breaker = OutcomeBreaker::default();
        breaker.note_failure(IngestionId::random(), EXTRACT);
        let passes = async {
            tokio::task::yield_now().await;
            breaker.note_passed(&job(IngestionStage::Record), true);
        };
        let began = Instant::now();
        let (is_shared, ()) = tokio::join!(breaker.wait_for_evidence(EXTRACT), passes);
        assert!(!is_shared && began.elapsed() < EVIDENCE_TIMEOUT, "others pass");
    }

    #[tokio::test(start_paused = true)]
    async fn a_breaker_without_a_job_for_ten_minutes_is_closed() {
        let breaker = OutcomeBreaker::default();
        open_at(&breaker, FETCH);
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(!breaker.forget_old() && breaker.open_context().is_some());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(breaker.forget_old() && breaker.open_context().is_none());
    }

    #[test]
    fn failures_without_a_reaction_of_their_own_have_a_context_and_few_of_them_close_intake() {
        let stage = IngestionStage::Fetch;
        for (fault, closes) in [
            (Fault::Internal, Some(true)),
            (Fault::Misconfigured, Some(true)),
            (Fault::Denied, None),
            (Fault::Transient, Some(false)),
            (Fault::Unavailable, None),
            (Fault::Missing, None),
            (Fault::Rejected, None),
            (Fault::Interrupted, None),
        ] {
            let context = FailureContext::new(stage, fault);
            assert_eq!(context.map(FailureContext::closes_intake), closes, "{fault:?}");
        }
    }
}
