//! Page processes that documents of one tenant share and documents of others never enter.
//!
//! A tenant's process lives as long as a document of the tenant is in it. There are at most as many
//! as memory allows; further tenants wait for their turn. While one waits, no further document
//! enters a running process, so that a busy tenant does not keep its process for ever. The room of
//! a process is free when the process is gone, not when it is given up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use super::page_process::PageProcess;
use docmill_core::fault::{Error, Result};
use docmill_core::work_clock::wait_off_clock;

/// The processes by tenant.
pub(super) struct TenantProcesses {
    /// One permit for each process, which it holds until it is gone.
    rooms: Arc<Semaphore>,
    /// Documents that wait for a permit.
    waiting: AtomicUsize,
    /// Those that run, and some that have ended. Documents without a tenant share one.
    running: Mutex<HashMap<Option<Arc<str>>, Weak<TenantProcess>>>,
}

/// A page process of one tenant; dropping it ends the process.
pub(super) struct TenantProcess {
    pub(super) process: Arc<PageProcess>,
}

impl TenantProcesses {
    /// As many processes at the same time as there are rooms.
    pub(super) fn new(rooms: Arc<Semaphore>) -> Self {
        Self { rooms, waiting: AtomicUsize::new(0), running: Mutex::default() }
    }

    /// Documents that wait for their turn.
    pub(super) fn waiting_documents(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// The tenant's process with a document added; a new one if none runs, made by `start` in the
    /// room that it is given.
    ///
    /// # Errors
    /// Those of `start`.
    pub(super) async fn find_process<F>(
        &self,
        tenant: Option<&Arc<str>>,
        start: impl FnOnce(OwnedSemaphorePermit) -> F,
    ) -> Result<Arc<TenantProcess>>
    where
        F: Future<Output = Result<Arc<PageProcess>>>,
    {
        let tenant = tenant.cloned();
        if self.waiting.load(Ordering::SeqCst) == 0
            && let Some(found) = join_process(&*self.running.lock().await, &tenant)
        {
            return Ok(found);
        }
        let room = {
            let _turn = WaitingTurn::begin(&self.waiting);
            wait_off_clock(Arc::clone(&self.rooms).acquire_owned()).await
        };
        let room = room.map_err(|_| Error::internal("there are no page processes any more"))?;
        let mut running = self.running.lock().await;
        // Another document of the tenant had its turn before; the room goes to the next.
        if let Some(found) = join_process(&running, &tenant) {
            return Ok(found);
        }
        let process = start(room).await?;
        process.add_document();
        let started = Arc::new(TenantProcess { process });
        running.retain(|_, process| process.strong_count() > 0);
        running.insert(tenant, Arc::downgrade(&started));
        Ok(started)
    }
}

/// The tenant's process, if it runs and takes one more document.
fn join_process(
    running: &HashMap<Option<Arc<str>>, Weak<TenantProcess>>,
    tenant: &Option<Arc<str>>,
) -> Option<Arc<TenantProcess>> {
    let found = running.get(tenant)?.upgrade()?;
    found.process.add_document().then_some(found)
}

/// Counted while it is there, however the wait ends.
struct WaitingTurn<'a>(&'a AtomicUsize);

impl<'a> WaitingTurn<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
