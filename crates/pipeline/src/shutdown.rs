//! When to stop: signals, and the clock of the drain.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How a worker is asked to stop. Cloned freely; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Stop receiving, let jobs end until the drain deadline.
    asked: CancellationToken,
    /// Do not wait for the deadline.
    hurried: CancellationToken,
}

impl Shutdown {
    /// Asks the worker to drain.
    pub fn request(&self) {
        self.asked.cancel();
    }

    /// Asks it to give its jobs back at once.
    pub fn abort_drain(&self) {
        self.asked.cancel();
        self.hurried.cancel();
    }

    /// Whether it was asked.
    pub fn is_requested(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// Resolves once the worker is asked to drain.
    pub async fn wait_until_requested(&self) {
        self.asked.cancelled().await;
    }

    /// Waits for a part of the start; `None`: the worker was asked to drain first.
    pub async fn unless_requested<T>(&self, starting: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            started = starting => Some(started),
            () = self.asked.cancelled() => {
                tracing::info!("stopped before the start was complete");
                None
            }
        }
    }

    /// Resolves at the deadline, counted from now, or when hurried.
    pub async fn wait_until_deadline(&self, drain: Duration) {
        tokio::select! {
            () = self.hurried.cancelled() => {}
            () = tokio::time::sleep(drain) => {}
        }
    }

    /// A shutdown that drains at the first SIGTERM or SIGINT and aborts at the second.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub fn on_signals() -> std::io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let asked = Self::default();
        let stop = asked.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(()) = terminate.recv() => {}
                    Some(()) = interrupt.recv() => {}
                    else => return,
                }
                if stop.is_requested() {
                    tracing::warn!("second signal: releasing jobs at once");
                    stop.abort_drain();
                    return;
                }
                tracing::info!("stop signal: draining");
                stop.request();
            }
        });
        Ok(asked)
    }
}
