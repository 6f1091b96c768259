//! Common parts of stand-ins built on a router: a server on a free port, and the list of its calls.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A router on a free port of this machine; it stops when this is dropped.
pub(crate) struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    /// # Errors
    /// No port can be opened.
    pub(crate) async fn start(router: Router) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // Ends only with the task.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, task })
    }

    /// The server's URL, `http://ADDRESS`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Calls in the order of their arrival, which can be waited for.
pub(crate) struct Calls<C> {
    all: Mutex<Vec<C>>,
    count: watch::Sender<usize>,
}

impl<C> Default for Calls<C> {
    fn default() -> Self {
        Self { all: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl<C: Clone> Calls<C> {
    /// Notes a call; returns its number.
    pub(crate) fn push(&self, call: C) -> usize {
        let mut all = lock(&self.all);
        all.push(call);
        self.count.send_replace(all.len());
        all.len() - 1
    }

    /// Adds to a call what is known of it later.
    pub(crate) fn change(&self, number: usize, change: impl FnOnce(&mut C)) {
        if let Some(call) = lock(&self.all).get_mut(number) {
            change(call);
        }
    }

    pub(crate) fn all(&self) -> Vec<C> {
        lock(&self.all).clone()
    }

    /// Waits until `count` calls have arrived; `false` if they have not within `deadline`.
    pub(crate) async fn arrived(&self, count: usize, deadline: Duration) -> bool {
        let mut seen = self.count.subscribe();
        let arrived = seen.wait_for(|number| *number >= count);
        tokio::time::timeout(deadline, arrived).await.is_ok()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
