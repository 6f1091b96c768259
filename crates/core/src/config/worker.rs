//! `[worker]`: the process.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Lines of text for people to read.
    Text,
}

/// `[worker]`: how the worker process runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Jobs at the same time. Most of them wait for a service.
    pub slots: u32,
    /// Threads for page work; 0: one per core.
    pub cpu_threads: usize,
    /// How long jobs may go on after SIGTERM. Must fit into what the platform grants
    /// (Fargate: 120 s at most).
    #[serde(with = "humantime_serde")]
    pub drain: Duration,
    /// How long one attempt may work; what it waits for others is not counted. Below 12 h.
    #[serde(with = "humantime_serde")]
    pub job_timeout: Duration,
    /// Where `/livez`, `/readyz` and `/metrics` are served.
    pub address: SocketAddr,
    /// The format of log lines.
    pub log: LogFormat,
    /// Whether the worker asks ECS, where it runs there, not to scale its task in while it is busy.
    pub scale_in_protection: bool,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            slots: 64,
            cpu_threads: 0,
            drain: Duration::from_secs(110),
            job_timeout: Duration::from_secs(30 * 60),
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            log: LogFormat::Json,
            scale_in_protection: true,
        }
    }
}

impl WorkerConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.slots == 0 || self.slots > 20_000 {
            problems.push("worker.slots must be between 1 and 20000".to_owned());
        }
        if self.job_timeout.is_zero() || self.job_timeout >= Duration::from_secs(12 * 3600) {
            problems.push(
                "worker.job_timeout must be above 0s and below 12h, the longest SQS hides a message"
                    .to_owned(),
            );
        }
    }
}
