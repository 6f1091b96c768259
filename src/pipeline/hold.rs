//! What a job knows of its own claim while it runs.
//!
//! The heartbeat moves the local deadline and reports a loss; the job asks before everything that
//! costs money or writes (invariant 2). A renewal that merely failed is not a loss: past the
//! deadline [`Hold::live`] waits until a renewal succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::{ClaimToken, IngestionId, Stage};
use crate::pipeline::StepError;

/// A claim as its job sees it.
#[derive(Debug, Clone)]
pub struct Hold {
    /// The ingestion.
    pub id: IngestionId,
    /// Demanded by every write.
    pub token: ClaimToken,
    lost: CancellationToken,
    lease_until: watch::Receiver<Instant>,
    /// Index into [`Stage::ALL`].
    stage: Arc<AtomicU8>,
}

/// The heartbeat's side of a [`Hold`].
#[derive(Debug)]
pub struct Keeper {
    lost: CancellationToken,
    lease_until: watch::Sender<Instant>,
    stage: Arc<AtomicU8>,
}

/// Both sides of a fresh claim.
pub fn pair(id: IngestionId, token: ClaimToken, lease_until: Instant) -> (Hold, Keeper) {
    let lost = CancellationToken::new();
    let (sender, receiver) = watch::channel(lease_until);
    let stage = Arc::new(AtomicU8::new(0));
    let keeper = Keeper { lost: lost.clone(), lease_until: sender, stage: Arc::clone(&stage) };
    (Hold { id, token, lost, lease_until: receiver, stage }, keeper)
}

impl Hold {
    /// Returns once the claim is known to be ours right now.
    ///
    /// # Errors
    /// [`StepError::ClaimLost`].
    pub async fn live(&self) -> Result<(), StepError> {
        let mut lease_until = self.lease_until.clone();
        loop {
            if self.lost.is_cancelled() {
                return Err(StepError::ClaimLost);
            }
            if *lease_until.borrow_and_update() > Instant::now() {
                return Ok(());
            }
            tokio::select! {
                () = self.lost.cancelled() => return Err(StepError::ClaimLost),
                changed = lease_until.changed() => {
                    // The heartbeat is gone without a word: the job is being torn down.
                    changed.map_err(|_| StepError::ClaimLost)?;
                }
            }
        }
    }

    /// Resolves when the claim is lost; pending otherwise.
    pub async fn until_lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether the loss is known.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// The job is in this stage now. Written to the row by the next heartbeat, not by a statement
    /// of its own: most jobs are over before anybody could read it.
    pub fn enter(&self, stage: Stage) {
        let index = Stage::ALL.iter().position(|other| *other == stage).unwrap_or_default();
        self.stage.store(u8::try_from(index).unwrap_or_default(), Ordering::Relaxed);
    }

    /// The stage the job is in.
    pub fn stage(&self) -> Stage {
        stage_at(&self.stage)
    }
}

impl Keeper {
    /// A renewal succeeded: the claim is ours until then.
    pub fn renewed(&self, until: Instant) {
        self.lease_until.send_replace(until);
    }

    /// The stage the job is in.
    pub fn stage(&self) -> Stage {
        stage_at(&self.stage)
    }

    /// A renewal answered that the claim is somebody else's.
    pub fn lost(&self) {
        self.lost.cancel();
    }
}

fn stage_at(index: &AtomicU8) -> Stage {
    let index = usize::from(index.load(Ordering::Relaxed));
    Stage::ALL.get(index).copied().unwrap_or(Stage::Claimed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fresh(until: Instant) -> (Hold, Keeper) {
        pair(IngestionId::random(), ClaimToken::random(), until)
    }

    #[tokio::test]
    async fn past_its_deadline_a_job_waits_for_a_renewal_instead_of_going_on() {
        let (hold, keeper) = fresh(Instant::now());
        let mut waiting = tokio_test_poll(hold.live());
        assert!(waiting.pending().await, "the deadline has passed");
        keeper.renewed(Instant::now() + Duration::from_secs(60));
        assert!(waiting.finish().await.is_ok());
    }

    #[tokio::test]
    async fn a_lost_claim_is_lost_at_once_even_while_its_deadline_is_ahead() {
        let (hold, keeper) = fresh(Instant::now() + Duration::from_secs(60));
        assert!(hold.live().await.is_ok());
        keeper.lost();
        assert!(matches!(hold.live().await, Err(StepError::ClaimLost)));
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
