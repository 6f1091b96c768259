//! `[claim]`: ownership of ingestions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `[claim]`: how long a claim of an ingestion lasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimConfig {
    /// A claim that is not renewed for this long is anybody's. The earlier system's
    /// `stale-ingestion-threshold-minutes`.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
}

impl Default for ClaimConfig {
    fn default() -> Self {
        Self { lease: Duration::from_secs(5 * 60) }
    }
}

impl ClaimConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.lease < Duration::from_secs(3) || self.lease > Duration::from_secs(3600) {
            problems.push("claim.lease must be between 3s and 1h".to_owned());
        }
    }
}
