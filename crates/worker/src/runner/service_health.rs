//! The dependencies of a running runner, as its health port asks them.

use std::time::Duration;

use async_trait::async_trait;

use docmill_core::fault;

/// A dependency that has not answered within this time counts as absent.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The backends without which a worker cannot work. Workers of different job sources need different
/// ones.
#[async_trait]
pub trait ServiceHealth: Send + Sync {
    /// The name of each dependency, and whether it answers.
    async fn check_all(&self) -> Vec<(&'static str, bool)>;

    /// Brings gauges up to date that are measured on request only.
    async fn refresh_gauges(&self) {}
}

/// The answer of a dependency to a probe; `None` if it failed or took longer than three seconds.
pub async fn probe_dependency<T>(probe: impl Future<Output = fault::Result<T>>) -> Option<T> {
    tokio::time::timeout(PROBE_TIMEOUT, probe).await.ok()?.ok()
}
