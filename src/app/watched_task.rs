//! The tasks beside the worker, each watched.
//!
//! Without maintenance a lost message is never sent again; without webhook delivery no target is
//! notified; the health pages would still report success. So if one of them panics, the service
//! drains and ends with an error that names it; another process takes over.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinHandle;

use docmill_pipeline::shutdown::Shutdown;

/// A task of the service that runs until the stop.
pub(super) struct WatchedTask(JoinHandle<anyhow::Result<()>>);

/// Starts a task. After its panic the service stops, and [`WatchedTask::join`] returns the reason.
pub(super) fn watch_task(
    name: &'static str,
    stop: &Shutdown,
    task: impl Future<Output = ()> + Send + 'static,
) -> WatchedTask {
    let stop = stop.clone();
    WatchedTask(tokio::spawn(async move {
        // The panic hook has logged where.
        if AssertUnwindSafe(task).catch_unwind().await.is_ok() {
            return Ok(());
        }
        tracing::error!(part = name, "{name} panicked: the service stops");
        stop.request();
        Err(anyhow::anyhow!("{name} panicked, see the log"))
    }))
}

impl WatchedTask {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// It died.
    pub(super) async fn join(self) -> anyhow::Result<()> {
        self.0.await?
    }

    /// Waits at most `most`; then the task is aborted.
    ///
    /// # Errors
    /// The task panicked.
    pub(super) async fn join_within(mut self, most: Duration) -> anyhow::Result<()> {
        match tokio::time::timeout(most, &mut self.0).await {
            Ok(ended) => ended?,
            Err(_elapsed) => {
                self.0.abort();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_task_stops_the_service_with_its_name() {
        let stop = Shutdown::default();
        let until = stop.clone();
        let other = watch_task("console", &stop, async move { until.wait_until_requested().await });
        let dying = watch_task("maintenance", &stop, async { panic!("told to") });
        // Only the panicking task requests the stop.
        other.join().await.unwrap();
        let error = dying.join_within(Duration::from_secs(20)).await.unwrap_err();
        assert_eq!(error.to_string(), "maintenance panicked, see the log");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_task_does_not_delay_the_stop() {
        let stop = Shutdown::default();
        let hanging = watch_task("maintenance", &stop, std::future::pending());
        hanging.join_within(Duration::from_secs(5)).await.unwrap();
        assert!(!stop.is_requested());
    }
}
