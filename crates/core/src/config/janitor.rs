//! `[janitor]`: maintenance.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Tasks of the maintenance leader, and their intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JanitorConfig {
    /// Whether this worker takes part in the election of the leader.
    pub enabled: bool,
    /// Time between two passes.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// A waiting row whose message was sent longer ago than this, doubled with every resend, is
    /// a candidate for being sent again.
    #[serde(with = "humantime_serde")]
    pub quiet: Duration,
    /// Most rows sent again in one pass.
    pub resends_per_pass: u32,
    /// How long rows of attempts, workers and quarantined messages are kept.
    #[serde(with = "humantime_serde")]
    pub row_retention: Duration,
}

impl Default for JanitorConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: Duration::from_secs(60),
            quiet: Duration::from_secs(30 * 60),
            resends_per_pass: 500,
            row_retention: Duration::from_secs(90 * 24 * 3600),
        }
    }
}

impl JanitorConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.quiet < Duration::from_secs(1) || self.interval < Duration::from_millis(100) {
            problems.push(
                "janitor.quiet must be at least 1s and janitor.interval at least 100ms".to_owned(),
            );
        }
        if self.resends_per_pass == 0 {
            problems.push("janitor.resends_per_pass must be at least 1".to_owned());
        }
    }
}
