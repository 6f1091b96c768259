//! `[[queue.tiers]]`: queues by priority, each with its share of the slots.

use serde::{Deserialize, Serialize};

use crate::model::Priority;

/// One queue of a priority, and its share of the slots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TierConfig {
    /// Priority of messages sent there: `critical`, `high`, `normal`, `low` or `background`.
    pub name: Priority,
    /// URL of its SQS queue; empty with other backends.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub url: String,
    /// URL of its dead-letter queue; empty: found through the redrive policy.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub dead_letter_url: String,
    /// Its share of the slots against the other tiers' while all have work, 1 to 1000; 0: 16, 8,
    /// 4, 2 and 1 from `critical` to `background`.
    pub weight: u32,
}

impl TierConfig {
    /// The weight, or its default.
    pub fn effective_weight(&self) -> u32 {
        match (self.weight, self.name) {
            (0, Priority::Critical) => 16,
            (0, Priority::High) => 8,
            (0, Priority::Normal) => 4,
            (0, Priority::Low) => 2,
            (0, Priority::Background) => 1,
            (weight, _) => weight,
        }
    }
}
