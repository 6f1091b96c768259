//! `[retry]`: what follows a failed attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits and delays per class of failure; the decision itself is `pipeline::failure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Attempts before passing trouble is final.
    pub transient_attempts: u32,
    /// Attempts before our own bug is final.
    pub internal_attempts: u32,
    /// Attempts before a missing object is final.
    pub missing_attempts: u32,
    /// Deaths of workers that had nothing else in hand before the document is given up as `crashed`.
    pub crash_attempts: u32,
    /// First delay; doubled with every attempt, with full jitter.
    #[serde(with = "humantime_serde")]
    pub base_delay: Duration,
    /// No delay between two attempts is longer.
    #[serde(with = "humantime_serde")]
    pub longest_delay: Duration,
    /// Delay between attempts to find a missing object.
    #[serde(with = "humantime_serde")]
    pub missing_delay: Duration,
    /// How long a job is put off at a time while something it needs is down.
    #[serde(with = "humantime_serde")]
    pub unavailable_delay: Duration,
    /// How long a job is put off when it was throttled and the server did not say for how long.
    #[serde(with = "humantime_serde")]
    pub throttled_delay: Duration,
    /// How long a job may be put off altogether before it fails `deferred_too_long`.
    #[serde(with = "humantime_serde")]
    pub max_deferral: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            transient_attempts: 8,
            internal_attempts: 3,
            missing_attempts: 4,
            crash_attempts: 3,
            base_delay: Duration::from_secs(15),
            longest_delay: Duration::from_secs(15 * 60),
            missing_delay: Duration::from_secs(15 * 60),
            unavailable_delay: Duration::from_secs(60),
            throttled_delay: Duration::from_secs(60),
            max_deferral: Duration::from_secs(8 * 3600),
        }
    }
}

impl RetryConfig {
    /// The same, with this many counted attempts for every kind of failure.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self {
            transient_attempts: attempts,
            internal_attempts: attempts,
            missing_attempts: attempts,
            crash_attempts: attempts,
            ..self
        }
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        for (key, value) in [
            ("transient_attempts", self.transient_attempts),
            ("internal_attempts", self.internal_attempts),
            ("missing_attempts", self.missing_attempts),
            ("crash_attempts", self.crash_attempts),
        ] {
            if value == 0 || value > 100 {
                problems.push(format!("retry.{key} must be between 1 and 100"));
            }
        }
        if self.longest_delay < self.base_delay {
            problems.push("retry.longest_delay must not be below retry.base_delay".to_owned());
        }
        if self.longest_delay > Duration::from_secs(6 * 3600) {
            problems.push("retry.longest_delay must be at most 6h".to_owned());
        }
    }
}
