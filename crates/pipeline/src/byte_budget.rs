//! A budget of bytes held in memory, with waiting.
//!
//! Counted in units of 4 KiB, because permits are 32-bit numbers and documents may be large. A
//! waiter must hold no reservation of the same budget.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use docmill_core::config::ByteSize;
use docmill_core::fault;
use docmill_core::regression::{self, FixToggle};
use docmill_core::work_clock::wait_off_clock;

/// Bytes per permit of the semaphore.
const PERMIT_BYTES: u64 = 4096;
/// The share set aside for texts is one part in this many, on top of the budget.
const TEXT_SHARE: usize = 4;

/// A budget of bytes that every part of the process shares. Cloned freely; all clones are one.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    free: Arc<Semaphore>,
    /// Set aside for texts, which never wait; see `text_budget`.
    aside: Arc<Semaphore>,
    total: u64,
}

/// Bytes reserved from a [`ByteBudget`], released on drop.
#[derive(Debug)]
#[must_use = "what is dropped at once is given back at once"]
pub struct ReservedBytes {
    permit: OwnedSemaphorePermit,
}

impl ReservedBytes {
    /// Releases all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let kept = usize::try_from(permits(bytes)).unwrap_or(usize::MAX);
        drop(self.permit.split(self.permit.num_permits().saturating_sub(kept)));
    }
}

impl ByteBudget {
    /// A budget of `bytes`, rounded down to 4 KiB but never to zero.
    pub fn new(bytes: ByteSize) -> Self {
        let permits = usize::try_from(bytes.0 / PERMIT_BYTES).unwrap_or(usize::MAX);
        let permits = permits.clamp(1, Semaphore::MAX_PERMITS);
        let total = u64::try_from(permits).unwrap_or(u64::MAX).saturating_mul(PERMIT_BYTES);
        // At least one piece, as above.
        let aside = Arc::new(Semaphore::new((permits / TEXT_SHARE).max(1)));
        Self { free: Arc::new(Semaphore::new(permits)), aside, total }
    }

    /// With enough set aside for one text of `bytes`.
    #[must_use]
    pub fn with_text(mut self, bytes: ByteSize) -> Self {
        let wanted = usize::try_from(permits(bytes.0)).unwrap_or(Semaphore::MAX_PERMITS);
        if wanted > self.aside.available_permits() {
            self.aside = Arc::new(Semaphore::new(wanted.min(Semaphore::MAX_PERMITS)));
        }
        self
    }

    /// As [`ByteBudget::try_reserve`], in pieces.
    pub(super) fn try_take_permits(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_many_owned(count).ok()
    }

    /// Pieces of what is set aside for texts.
    pub(super) fn try_take_aside(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.aside).try_acquire_many_owned(count).ok()
    }

    /// The whole budget in bytes: no reservation can be larger.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Reserves `bytes` if they are free now.
    pub fn try_reserve(&self, bytes: u64) -> Option<ReservedBytes> {
        let permit = Arc::clone(&self.free).try_acquire_many_owned(permits(bytes)).ok()?;
        Some(ReservedBytes { permit })
    }

    /// Waits until `bytes` are free (at most [`ByteBudget::total`]), and reserves them. The caller
    /// must hold no reservation.
    ///
    /// # Errors
    /// `Internal`: the budget is closed, which never happens.
    pub async fn take(&self, bytes: u64) -> fault::Result<ReservedBytes> {
        let taken = Arc::clone(&self.free).acquire_many_owned(permits(bytes));
        let taken = wait_off_clock(taken).await;
        let closed = |_| fault::Error::internal("a budget of bytes is closed");
        Ok(ReservedBytes { permit: taken.map_err(closed)? })
    }

    /// As [`ByteBudget::take`], for a caller that holds a reservation: `give_back` releases it
    /// before any wait, since holders would otherwise wait for each other.
    ///
    /// # Errors
    /// Errors of `give_back`; as [`ByteBudget::take`].
    pub async fn take_giving_back<E: From<fault::Error>>(
        &self,
        bytes: u64,
        give_back: impl AsyncFnOnce() -> Result<(), E>,
    ) -> Result<ReservedBytes, E> {
        if let Some(room) = self.try_reserve(bytes) {
            return Ok(room);
        }
        if !regression::is_off(FixToggle::BytesGivenBack) {
            give_back().await?;
        }
        Ok(self.take(bytes).await?)
    }
}

/// Permits for `bytes`.
pub(super) fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_are_waited_for_and_come_back_when_dropped() {
        let budget = ByteBudget::new(ByteSize(3 * PERMIT_BYTES + 1));
        assert_eq!(budget.total(), 3 * PERMIT_BYTES, "rounded down");
        let one = budget.take(1).await.unwrap();
        assert!(budget.try_reserve(2 * PERMIT_BYTES + 1).is_none(), "a piece is taken whole");
        let others = budget.try_reserve(2 * PERMIT_BYTES).unwrap();
        let mut waiting = Box::pin(budget.take(PERMIT_BYTES));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        drop(one);
        drop(waiting.await.unwrap());
        drop(others);
        drop(budget.try_reserve(budget.total()).unwrap());
    }

    #[test]
    fn an_oversized_reservation_shrinks_to_the_real_size() {
        let budget = ByteBudget::new(ByteSize(4 * PERMIT_BYTES));
        let mut room = budget.try_reserve(4 * PERMIT_BYTES).unwrap();
        room.shrink_to(PERMIT_BYTES + 1);
        assert!(budget.try_reserve(2 * PERMIT_BYTES + 1).is_none(), "two pieces are kept");
        let others = budget.try_reserve(2 * PERMIT_BYTES).unwrap();
        room.shrink_to(4 * PERMIT_BYTES);
        drop(others);
        drop(room);
        drop(budget.try_reserve(budget.total()).unwrap());
    }

    #[test]
    fn the_smallest_budget_lets_one_piece_through() {
        let budget = ByteBudget::new(ByteSize(0));
        let only = budget.try_reserve(0).unwrap();
        assert!(budget.try_reserve(1).is_none());
        drop(only);
    }
}
