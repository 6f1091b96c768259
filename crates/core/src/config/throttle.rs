//! `[throttle]`: how providers are called.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits are learned from the providers' answers; these bound what is done about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThrottleConfig {
    /// A wait up to this is waited with the job's slot; a longer one hides the message.
    #[serde(with = "humantime_serde")]
    pub longest_wait: Duration,
    /// Most calls at the same time to one provider, account and model.
    pub concurrency: u32,
    /// Failed calls in a row after which a provider counts as down.
    pub failures: u32,
    /// How long no call is made then, before one is tried.
    #[serde(with = "humantime_serde")]
    pub open_for: Duration,
}

impl Default for ThrottleConfig {
    fn default() -> Self {
        Self {
            longest_wait: Duration::from_secs(30),
            concurrency: 1_000,
            failures: 5,
            open_for: Duration::from_secs(10),
        }
    }
}

impl ThrottleConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.longest_wait > Duration::from_secs(300) {
            problems.push("throttle.longest_wait must be at most 5m".to_owned());
        }
        if self.concurrency == 0 || self.concurrency > 20_000 {
            problems.push("throttle.concurrency must be between 1 and 20000".to_owned());
        }
        if self.failures == 0 || self.open_for.is_zero() {
            problems.push("throttle.failures and throttle.open_for must be above 0".to_owned());
        }
    }
}
