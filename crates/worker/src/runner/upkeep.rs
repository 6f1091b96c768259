//! The tasks beside the jobs, each watched: none may die unseen.
//!
//! Without its heartbeat a worker loses its claims one by one, without its background it obeys no
//! pause, and all the while its pages say that it is well. So the end of one of them, which nobody
//! asked for, is the end of the runner: its jobs are given back at once, and it says what died.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Backlog, RunnerHandle, RunnerState, heartbeat, monitor};
use docmill_core::fault;

/// What of a runner died, which is why it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunnerFailure {
    pub(super) part: &'static str,
}

impl RunnerFailure {
    pub(super) fn into_error(self) -> fault::Error {
        fault::Error::internal(format!("the {} died, see the log of that time", self.part))
    }
}

/// The tasks that run as long as there are jobs.
pub(super) struct UpkeepTasks(JoinSet<&'static str>);

impl UpkeepTasks {
    /// Starts them; they end once `last` is cancelled, and not before.
    pub(super) fn start<B: Backlog>(
        shared: &Arc<RunnerState<B>>,
        last: &CancellationToken,
    ) -> Self {
        let (backlog, handle) = (Arc::clone(&shared.backlog), RunnerHandle::from_shared(shared));
        let mut tasks = Self(JoinSet::new());
        // The two renewals do not wait for each other: a queue that is slow to answer costs no row.
        tasks.watch("heartbeat", heartbeat::renew_claims(Arc::clone(shared), last.clone()));
        let side = heartbeat::renew_side_leases(Arc::clone(shared), last.clone());
        tasks.watch("heartbeat of the queue", side);
        tasks.watch("gauges", monitor::update_gauges(Arc::clone(shared), last.clone()));
        tasks.watch("background", backlog.run_background(handle, last.clone()));
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
                tracing::error!(part = failure.part, "the {} died", failure.part);
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
