//! `[[queue.tiers]]`: queues by priority, each with its share of the slots.

use serde::{Deserialize, Serialize};

use super::queue::{QueueBackend, QueueConfig};
use crate::model::Priority;

/// One tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TierConfig {
    /// What is sent there: `critical`, `high`, `normal`, `low` or `background`.
    pub name: Priority,
    /// URL of its SQS queue; empty with other backends.
    pub url: String,
    /// URL of its dead-letter queue; empty: found through the redrive policy.
    pub dead_letter_url: String,
    /// Its share of the slots against the other tiers' while all have work, 1 to 1000; 0: 16, 8,
    /// 4, 2 and 1 from `critical` to `background`.
    pub weight: u32,
}

impl TierConfig {
    /// The weight, or what stands for it.
    pub fn share(&self) -> u32 {
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

impl QueueConfig {
    /// The SQS queues, most urgent first: `queue.url` is the normal tier, unless the list has one.
    pub fn sqs_tiers(&self) -> Vec<TierConfig> {
        let mut tiers = self.tiers.clone();
        if !self.url.is_empty() {
            tiers.push(TierConfig {
                url: self.url.clone(),
                dead_letter_url: self.dead_letter_url.clone(),
                ..TierConfig::default()
            });
        }
        tiers.sort_by_key(|tier| tier.name);
        tiers
    }

    /// The priorities that have a queue in Redis, most urgent first, and their weights; the normal
    /// one always has.
    pub fn redis_tiers(&self) -> Vec<(Priority, u32)> {
        let mut tiers = self.tiers.clone();
        if tiers.iter().all(|tier| tier.name != Priority::Normal) {
            tiers.push(TierConfig::default());
        }
        tiers.sort_by_key(|tier| tier.name);
        tiers.iter().map(|tier| (tier.name, tier.share())).collect()
    }

    pub(super) fn check_tiers(&self, problems: &mut Vec<String>) {
        for (at, tier) in self.tiers.iter().enumerate() {
            let name = tier.name;
            if self.tiers.iter().take(at).any(|other| other.name == name) {
                problems.push(format!("queue.tiers has `{name}` twice"));
            }
            if tier.weight > 1000 {
                problems.push(format!("queue.tiers: the weight of `{name}` must be at most 1000"));
            }
            match self.backend {
                QueueBackend::Sqs if tier.url.is_empty() => {
                    problems.push(format!("queue.tiers: `{name}` needs the url of its SQS queue"));
                }
                QueueBackend::Sqs if tier.url.ends_with(".fifo") => {
                    problems.push(format!("queue.tiers: `{name}` names a FIFO queue"));
                }
                QueueBackend::Sqs => {}
                _ if !tier.url.is_empty() => problems.push(format!(
                    "queue.tiers: `{name}` has a url, which only the sqs backend knows"
                )),
                _ => {}
            }
        }
        let normal = self.tiers.iter().any(|tier| tier.name == Priority::Normal);
        if self.backend == QueueBackend::Sqs && normal && !self.url.is_empty() {
            problems.push(
                "queue.url is the tier `normal`, which queue.tiers has as well: leave one out"
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(name: Priority, url: &str) -> TierConfig {
        TierConfig { name, url: url.to_owned(), ..TierConfig::default() }
    }

    #[test]
    fn the_queue_of_old_is_the_normal_tier_among_the_others() {
        let config = QueueConfig {
            url: "n".to_owned(),
            tiers: vec![tier(Priority::Low, "l"), tier(Priority::Critical, "c")],
            ..QueueConfig::default()
        };
        let urls: Vec<String> = config.sqs_tiers().into_iter().map(|tier| tier.url).collect();
        assert_eq!(urls, ["c", "n", "l"]);
        let shares: Vec<u32> = config.sqs_tiers().iter().map(TierConfig::share).collect();
        assert_eq!(shares, [16, 4, 2]);
        assert_eq!(QueueConfig::default().redis_tiers(), [(Priority::Normal, 4)]);
    }

    #[test]
    fn tiers_that_make_no_sense_are_named() {
        let mut config = QueueConfig { url: "n".to_owned(), ..QueueConfig::default() };
        config.tiers = vec![
            tier(Priority::Normal, "x"),
            tier(Priority::Normal, "y"),
            tier(Priority::High, ""),
            TierConfig { weight: 1001, ..tier(Priority::Low, "z.fifo") },
        ];
        let mut problems = Vec::new();
        config.check_tiers(&mut problems);
        assert_eq!(problems.len(), 5, "{problems:?}");
    }
}
