//! The tasks beside the jobs, each watched.
//!
//! Without its heartbeat a worker loses its claims one by one; without its background task it
//! applies no pause; its health pages would still report success. So if one of them ends unasked,
//! the runner stops: its jobs are released at once, and the error names the task.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{JobSource, RunnerHandle, RunnerState, heartbeat, monitor};
use docmill_core::fault;

/// The task that died and stopped the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunnerFailure {
    pub(super) part: &'static str,
}

impl RunnerFailure {
    pub(super) fn into_error(self) -> fault::Error {
        fault::Error::internal(format!("the {} panicked, see the log", self.part))
    }
}

/// The tasks that run while there are jobs.
pub(super) struct UpkeepTasks(JoinSet<&'static str>);

impl UpkeepTasks {
    /// Starts them; they end once `last` is cancelled, and not before.
    pub(super) fn start<S: JobSource>(
        shared: &Arc<RunnerState<S>>,
        last: &CancellationToken,
    ) -> Self {
        let (source, handle) = (Arc::clone(&shared.source), RunnerHandle::from_shared(shared));
        let mut tasks = Self(JoinSet::new());
        // The two renewals do not wait for each other: a queue that is slow to answer costs no row.
        tasks.watch("heartbeat", heartbeat::renew_claims(Arc::clone(shared), last.clone()));
        let side = heartbeat::renew_side_leases(Arc::clone(shared), last.clone());
        tasks.watch("heartbeat of the queue", side);
        tasks.watch("gauges", monitor::update_gauges(Arc::clone(shared), last.clone()));
        tasks.watch("background", source.run_background(handle, last.clone()));
        tasks
    }

    fn watch(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let guarded = AssertUnwindSafe(task).catch_unwind();
        self.0.spawn(async move {
            // The panic hook has logged where.
            let _ended = guarded.await;
            name
        });
    }

    /// Resolves when one has ended; before they are asked to, that is a failure.
    pub(super) async fn wait_for_failure(&mut self) -> RunnerFailure {
        match self.0.join_next().await {
            Some(ended) => {
                let failure = RunnerFailure { part: ended.unwrap_or("upkeep") };
                tracing::error!(part = failure.part, "the {} panicked", failure.part);
                failure
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until all have ended, after they were asked to.
    pub(super) async fn wait_until_ended(mut self) {
        while self.0.join_next().await.is_some() {}
    }
}
