//! The tasks beside the worker, each watched: none may die unseen.
//!
//! Without maintenance a lost message is never sent again, without the delivery of webhooks nobody is
//! told anything, and all the while the worker says that it is well. So the end of one of them in a
//! panic is the end of the service: it drains, and says what died; another process takes its place.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinHandle;

use docmill_pipeline::shutdown::Shutdown;

/// A task of the service that runs until the stop.
pub(super) struct WatchedTask(JoinHandle<anyhow::Result<()>>);

/// Starts a task. If it panics, the service is asked to stop, and [`WatchedTask::join`] says why.
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
        tracing::error!(part = name, "the {name} died: the service stops");
        stop.request();
        Err(anyhow::anyhow!("the {name} died, see the log of that time"))
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

    /// Waits so long at most; what is under way even then is dropped where it is.
    ///
    /// # Errors
    /// It died.
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
    async fn a_part_that_dies_stops_the_service_which_says_what_died() {
        let stop = Shutdown::default();
        let until = stop.clone();
        let other = watch_task("console", &stop, async move { until.wait_until_requested().await });
        let dying = watch_task("maintenance", &stop, async { panic!("told to") });
        // Nobody but the one that dies asks for the stop.
        other.join().await.unwrap();
        let error = dying.join_within(Duration::from_secs(20)).await.unwrap_err();
        assert_eq!(error.to_string(), "the maintenance died, see the log of that time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_hangs_holds_up_no_stop() {
        let stop = Shutdown::default();
        let hanging = watch_task("maintenance", &stop, std::future::pending());
        hanging.join_within(Duration::from_secs(5)).await.unwrap();
        assert!(!stop.is_requested());
    }
}
