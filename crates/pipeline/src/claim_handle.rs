//! A running attempt's view of its own claim.
//!
//! The heartbeat moves the local deadline and reports a loss. The attempt checks before everything
//! that costs money or writes (invariant 2). A failed renewal is not a loss: past the deadline
//! [`ClaimHandle::ensure_live`] waits until a renewal succeeds. Independent of where the claim is
//! stored: in a row, in an object, or nowhere for a document that only this process can have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use docmill_core::fault;
use docmill_core::model::{ClaimToken, IngestionId, IngestionStage};
use docmill_core::suspension::suspended_time;
use docmill_core::work_clock::wait_off_clock;

/// A claim as the attempt under it sees it.
#[derive(Debug, Clone)]
pub struct ClaimHandle {
    /// Id of the claimed ingestion.
    pub id: IngestionId,
    /// Demanded by every write.
    pub token: ClaimToken,
    lost: CancellationToken,
    lease: LocalLease,
    stages: Arc<StageRecord>,
}

/// The stages of a job, as indices into [`IngestionStage::ALL`].
#[derive(Debug)]
struct StageRecord {
    current: AtomicU8,
    /// A bit for each stage that was entered.
    entered: AtomicU8,
}

impl Default for StageRecord {
    /// Every job begins in the first stage.
    fn default() -> Self {
        Self { current: AtomicU8::new(0), entered: AtomicU8::new(1) }
    }
}

/// How long the claim lasts without a renewal, by this machine's own clocks.
#[derive(Debug, Clone)]
enum LocalLease {
    /// No other process can claim it.
    Unlimited,
    /// Up to the newest value.
    Until(watch::Receiver<LeaseEnd>),
}

/// The end of a lease as it was known at one time.
#[derive(Debug, Clone, Copy)]
struct LeaseEnd {
    until: Instant,
    /// How long the machine had been suspended by then.
    suspended: Duration,
}

impl LeaseEnd {
    fn known_now(until: Instant) -> Self {
        Self { until, suspended: suspended_time() }
    }

    /// Whether the lease is over at `now`, given the total time of suspension so far.
    fn is_over(self, now: Instant, suspended: Duration) -> bool {
        now + suspended.saturating_sub(self.suspended) >= self.until
    }
}

/// The heartbeat's side of a [`ClaimHandle`].
#[derive(Debug)]
pub struct ClaimRenewer {
    lost: CancellationToken,
    lease_until: watch::Sender<LeaseEnd>,
    stages: Arc<StageRecord>,
}

/// Both sides of a fresh claim.
pub fn claim_pair(
    id: IngestionId,
    token: ClaimToken,
    lease_until: Instant,
) -> (ClaimHandle, ClaimRenewer) {
    let lost = CancellationToken::new();
    let (sender, receiver) = watch::channel(LeaseEnd::known_now(lease_until));
    let stages = Arc::new(StageRecord::default());
    let renewer =
        ClaimRenewer { lost: lost.clone(), lease_until: sender, stages: Arc::clone(&stages) };
    let lease = LocalLease::Until(receiver);
    (ClaimHandle { id, token, lost, lease, stages }, renewer)
}

impl ClaimHandle {
    /// A claim without renewal that cannot be lost: no other process works on the document.
    pub fn unlimited(id: IngestionId, token: ClaimToken) -> Self {
        let (lost, lease) = (CancellationToken::new(), LocalLease::Unlimited);
        Self { id, token, lost, lease, stages: Arc::default() }
    }

    /// The same claim as the right to one of the ingestions that it covers: renewed and lost
    /// together with it.
    #[must_use]
    pub fn for_ingestion(&self, id: IngestionId, token: ClaimToken) -> Self {
        Self { id, token, ..self.clone() }
    }

    /// Returns once the claim is confirmed as live.
    ///
    /// # Errors
    /// [`fault::Fault::ClaimLost`].
    pub async fn ensure_live(&self) -> fault::Result<()> {
        let mut lease_until = match &self.lease {
            LocalLease::Unlimited if self.is_lost() => return Err(fault::Error::claim_lost()),
            LocalLease::Unlimited => return Ok(()),
            LocalLease::Until(lease_until) => lease_until.clone(),
        };
        wait_off_clock(self.wait_until_live(&mut lease_until)).await
    }

    async fn wait_until_live(
        &self,
        lease_until: &mut watch::Receiver<LeaseEnd>,
    ) -> fault::Result<()> {
        loop {
            if self.is_lost() {
                return Err(fault::Error::claim_lost());
            }
            let lease_end = *lease_until.borrow_and_update();
            // The clock of timers, so that tests can pause both.
            let now = tokio::time::Instant::now().into_std();
            if !lease_end.is_over(now, suspended_time()) {
                return Ok(());
            }
            tokio::select! {
                () = self.lost.cancelled() => return Err(fault::Error::claim_lost()),
                changed = lease_until.changed() => {
                    // The heartbeat is gone without a word: the job is being torn down.
                    changed.map_err(|_| fault::Error::claim_lost())?;
                }
            }
        }
    }

    /// Resolves when the claim is lost; pending otherwise.
    pub async fn wait_until_lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether the loss is known.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// The job is in this stage now. Written to the row by the next heartbeat, not by a statement
    /// of its own: most jobs are over before anybody could read it.
    pub fn enter(&self, stage: IngestionStage) {
        let index = stage_index(stage);
        self.stages.current.store(index, Ordering::Relaxed);
        self.stages.entered.fetch_or(1 << index, Ordering::Relaxed);
    }

    /// The stage the job is in.
    pub fn stage(&self) -> IngestionStage {
        stage_at(&self.stages.current)
    }

    /// Whether the job is or was in this stage.
    pub fn has_entered(&self, stage: IngestionStage) -> bool {
        self.stages.entered.load(Ordering::Relaxed) & (1 << stage_index(stage)) != 0
    }
}

impl ClaimRenewer {
    /// A renewal succeeded: the claim is live until then.
    pub fn note_renewed(&self, until: Instant) {
        self.lease_until.send_replace(LeaseEnd::known_now(until));
    }

    /// The stage the job is in.
    pub fn stage(&self) -> IngestionStage {
        stage_at(&self.stages.current)
    }

    /// Records that a renewal found another holder.
    pub fn note_lost(&self) {
        self.lost.cancel();
    }
}

fn stage_index(stage: IngestionStage) -> u8 {
    let index = IngestionStage::ALL.iter().position(|other| *other == stage);
    index.and_then(|index| u8::try_from(index).ok()).unwrap_or_default()
}

fn stage_at(index: &AtomicU8) -> IngestionStage {
    let index = usize::from(index.load(Ordering::Relaxed));
    IngestionStage::ALL.get(index).copied().unwrap_or(IngestionStage::Claimed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::fault::Fault;

    fn fresh(until: Instant) -> (ClaimHandle, ClaimRenewer) {
        claim_pair(IngestionId::random(), ClaimToken::random(), until)
    }

    #[tokio::test]
    async fn past_its_deadline_a_job_waits_for_a_renewal_instead_of_going_on() {
        let (claim, renewer) = fresh(Instant::now());
        let mut waiting = tokio_test_poll(claim.ensure_live());
        assert!(waiting.pending().await, "the deadline has passed");
        renewer.note_renewed(Instant::now() + Duration::from_secs(60));
        assert!(waiting.finish().await.is_ok());
    }

    #[tokio::test]
    async fn a_lost_claim_is_lost_at_once_even_while_its_deadline_is_ahead() {
        let (claim, renewer) = fresh(Instant::now() + Duration::from_secs(60));
        assert!(claim.ensure_live().await.is_ok());
        renewer.note_lost();
        let refused = claim.ensure_live().await.unwrap_err();
        assert_eq!(refused.fault, Fault::ClaimLost);
    }

    #[tokio::test]
    async fn one_claim_on_several_ingestions_is_lost_for_all_of_them() {
        let (claim, renewer) = fresh(Instant::now() + Duration::from_secs(60));
        let other = claim.for_ingestion(IngestionId::random(), ClaimToken::random());
        assert!(other.ensure_live().await.is_ok() && other.id != claim.id);
        renewer.note_lost();
        assert_eq!(other.ensure_live().await.unwrap_err().fault, Fault::ClaimLost);
    }

    #[test]
    fn a_lease_is_over_sooner_by_the_time_that_the_machine_was_suspended() {
        let (now, minutes) = (Instant::now(), |minutes: u64| Duration::from_secs(60 * minutes));
        let end = LeaseEnd { until: now + minutes(5), suspended: minutes(30) };
        #[rustfmt::skip]
        let table = [
            // awake since      suspended since  over
            (minutes(0),        minutes(0),      false),
            (minutes(4),        minutes(0),      false),
            (minutes(5),        minutes(0),      true),
            (minutes(1),        minutes(3),      false),
            (minutes(1),        minutes(4),      true),
            (minutes(0),        minutes(600),    true),
        ];
        for (awake, asleep, expected) in table {
            let is_over = end.is_over(now + awake, minutes(30) + asleep);
            assert_eq!(is_over, expected, "{awake:?}, {asleep:?}");
        }
    }

    #[tokio::test]
    async fn an_unlimited_claim_needs_no_renewal() {
        let claim = ClaimHandle::unlimited(IngestionId::random(), ClaimToken::random());
        assert!(claim.ensure_live().await.is_ok());
    }

    /// A future that can be asked whether it is still pending.
    struct Polled<F>(std::pin::Pin<Box<F>>);

    fn tokio_test_poll<F: Future>(future: F) -> Polled<F> {
        Polled(Box::pin(future))
    }

    impl<F: Future> Polled<F> {
        async fn pending(&mut self) -> bool {
            futures::poll!(self.0.as_mut()).is_pending()
        }

        async fn finish(self) -> F::Output {
            self.0.await
        }
    }
}
