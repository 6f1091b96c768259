//! Places or bytes that requests share. No tenant has more than half at once, so that a greedy one
//! leaves the others theirs.
//!
//! A visitor of all tenants may have all of it. Tenants are those of the settings: few, and never
//! removed. Not promised: that several greedy tenants together leave something.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places or bytes that tenants share.
pub struct TenantShares {
    all: Arc<Semaphore>,
    half: usize,
    halves: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A share that is held until it is dropped.
pub struct TakenShare {
    own: Option<OwnedSemaphorePermit>,
    all: OwnedSemaphorePermit,
}

impl TenantShares {
    /// So many of them in all.
    pub fn new(all: usize) -> Self {
        let all = all.min(Semaphore::MAX_PERMITS);
        let half = all.div_ceil(2);
        Self { all: Arc::new(Semaphore::new(all)), half, halves: Mutex::default() }
    }

    /// So many of them at once; `None`: as many are not left.
    pub fn take(&self, tenant: Option<&str>, amount: u32) -> Option<TakenShare> {
        let own = match self.half_of(tenant) {
            Some(half) => Some(half.try_acquire_many_owned(amount).ok()?),
            None => None,
        };
        let all = Arc::clone(&self.all).try_acquire_many_owned(amount).ok()?;
        Some(TakenShare { own, all })
    }

    /// One share as soon as one is free; `None` if none was within this time.
    pub async fn wait_for_one(
        &self,
        tenant: Option<&str>,
        patience: Duration,
    ) -> Option<TakenShare> {
        let waiting = async {
            // Its own first: waiting requests of one tenant block no other tenant.
            let own = match self.half_of(tenant) {
                Some(half) => Some(half.acquire_owned().await.ok()?),
                None => None,
            };
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(TakenShare { own, all })
        };
        tokio::time::timeout(patience, waiting).await.ok().flatten()
    }

    fn half_of(&self, tenant: Option<&str>) -> Option<Arc<Semaphore>> {
        let mut halves = self.halves.lock();
        let half = halves.entry(tenant?.to_owned());
        Some(Arc::clone(half.or_insert_with(|| Arc::new(Semaphore::new(self.half)))))
    }
}

impl TakenShare {
    /// Puts another share of the same tenant and the same whole to this one.
    pub fn add(&mut self, more: Self) {
        if let (Some(own), Some(more)) = (&mut self.own, more.own) {
            own.merge(more);
        }
        self.all.merge(more.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn one_tenant_gets_no_more_than_half_and_who_sees_all_of_them_gets_all() {
        let shares = TenantShares::new(4);
        let mut taken = shares.take(Some("a"), 1).unwrap();
        taken.add(shares.take(Some("a"), 1).unwrap());
        assert!(shares.take(Some("a"), 1).is_none(), "a third of four");
        assert!(shares.take(Some("b"), 3).is_none());
        let theirs = shares.take(Some("b"), 2).unwrap();
        assert!(shares.take(None, 1).is_none(), "there are four");
        drop(taken);
        assert!(shares.take(Some("c"), 2).is_some() && shares.take(Some("a"), 2).is_some());
        drop(theirs);
        assert!(shares.take(None, 4).is_some());
    }

    #[test]
    fn what_was_not_to_be_had_takes_nothing_from_anybody() {
        let shares = TenantShares::new(4);
        let held = shares.take(None, 3).unwrap();
        assert!(shares.take(Some("a"), 2).is_none());
        drop(held);
        assert!(shares.take(Some("a"), 2).is_some());
        assert!(TenantShares::new(1).take(Some("a"), 1).is_some(), "of one the half is one");
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_whose_requests_pile_up_makes_nobody_else_wait() {
        let shares = Arc::new(TenantShares::new(2));
        let _held = shares.wait_for_one(Some("a"), SOON).await.unwrap();
        let piled = (0..50).map(|_| shares.wait_for_one(Some("a"), SOON));
        let piled = futures::future::join_all(piled);
        let other = async {
            tokio::task::yield_now().await;
            shares.wait_for_one(Some("b"), Duration::ZERO).await
        };
        let (piled, other) = tokio::join!(piled, other);
        assert!(other.is_some() && piled.iter().all(Option::is_none));
    }
}
