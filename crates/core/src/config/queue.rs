//! `[queue]`: where messages come from.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tiers::TierConfig;
use super::units::SecretString;
use crate::model::Priority;

/// The longest SQS hides a message, counted from its receive.
const SQS_MAX_HIDE: Duration = Duration::from_secs(12 * 3600);

/// Which implementation of the message queue is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueBackend {
    /// Amazon SQS, standard queues.
    Sqs,
    /// Redis, in the wire formats of redis-work-queue 0.3.0 and 0.1.
    Redis,
    /// Marker objects in a folder, the layout of a `BlobForge` bucket.
    Folder,
    /// The same in the store of `[store]`: a bucket as a queue.
    Objects,
}

/// When a message is deleted from the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcknowledgeMode {
    /// After the outcome is written down: nothing is lost, and after a crash it is worked on again.
    #[default]
    After,
    /// Before the work: what was begun is not begun again after a crash.
    Early,
}

/// How deliveries are received and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// Which implementation of the message queue is used.
    pub backend: QueueBackend,
    /// URL of the SQS queue.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub url: String,
    /// URL of its dead-letter queue; empty: found through the redrive policy.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub dead_letter_url: String,
    /// Another endpoint than AWS's own, for stand-ins.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// AWS region; empty: from the environment.
    pub region: String,
    /// Whether SQS receives the tenant of a message (`MessageGroupId`: a fair queue).
    pub fair: bool,
    /// Queues by priority, each with its share of the slots.
    pub tiers: Vec<TierConfig>,
    /// When messages are deleted from the queue.
    pub acknowledge: AcknowledgeMode,
    /// `redis://user:password@host:6379/0`, or `rediss://` for TLS.
    pub redis_url: SecretString,
    /// Prefix of the names of its keys.
    pub redis_prefix: String,
    /// Treatment of items that are not docmill's messages.
    pub redis_foreign: ForeignItems,
    /// PEM file of the authority that signed the server's certificate; empty: the system's.
    pub redis_ca_file: PathBuf,
    /// After so many receives a message is dead, where the backend does not know by itself (SQS
    /// does, by its redrive policy); 0: never.
    pub max_receives: u32,
    /// Folder of the `folder` backend.
    pub path: PathBuf,
    /// How long one receive call waits for work. SQS allows at most 20 s. Also the longest an
    /// idle worker takes to notice SIGTERM.
    #[serde(with = "humantime_serde")]
    pub wait: Duration,
    /// How long a delivery stays hidden from others between two heartbeats.
    #[serde(with = "humantime_serde")]
    pub visibility: Duration,
    /// A message whose ingestion is not in the database is quarantined after so many receives,
    /// if it is also older than `unknown_age`.
    pub unknown_receives: u32,
    /// The least age of a message of an unknown ingestion before it is quarantined; see
    /// `unknown_receives`.
    #[serde(with = "humantime_serde")]
    pub unknown_age: Duration,
}

/// Treatment of items in a Redis queue that are not docmill's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForeignItems {
    /// Other programs work on the queue as well: they stay in it.
    Leave,
    /// The queue is ours alone: a copy is kept, then they are deleted.
    Quarantine,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            backend: QueueBackend::Sqs,
            url: String::new(),
            dead_letter_url: String::new(),
            endpoint: String::new(),
            region: String::new(),
            fair: true,
            tiers: Vec::new(),
            acknowledge: AcknowledgeMode::After,
            redis_url: SecretString::default(),
            redis_prefix: "docmill".to_owned(),
            redis_foreign: ForeignItems::Leave,
            redis_ca_file: PathBuf::new(),
            max_receives: 1000,
            path: PathBuf::new(),
            wait: Duration::from_secs(20),
            visibility: Duration::from_secs(120),
            unknown_receives: 10,
            unknown_age: Duration::from_secs(3600),
        }
    }
}

impl QueueConfig {
    /// `max_receives` as a queue wants it; `None`: a message never dies.
    pub fn dead_after(&self) -> Option<u32> {
        (self.max_receives > 0).then_some(self.max_receives)
    }

    pub(super) fn collect_problems(&self, needed: bool, problems: &mut Vec<String>) {
        match self.backend {
            QueueBackend::Sqs => self.check_sqs(needed, problems),
            QueueBackend::Redis => self.check_redis(needed, problems),
            QueueBackend::Folder if needed && self.path.as_os_str().is_empty() => {
                problems.push("queue.path is missing: the folder backend needs it".to_owned());
            }
            QueueBackend::Folder | QueueBackend::Objects => {}
        }
        if self.visibility < Duration::from_secs(3) || self.visibility > SQS_MAX_HIDE {
            problems.push("queue.visibility must be between 3s and 12h".to_owned());
        }
        self.check_tiers(problems);
        if self.unknown_receives == 0 {
            problems.push("queue.unknown_receives must be at least 1".to_owned());
        }
    }

    fn check_redis(&self, needed: bool, problems: &mut Vec<String>) {
        if needed && self.redis_url.is_empty() {
            problems.push(
                "queue.redis_url is missing: redis://user:password@host:6379/0, or \
                 DOCMILL__QUEUE__REDIS_URL"
                    .to_owned(),
            );
        }
        if self.redis_prefix.is_empty() {
            problems.push("queue.redis_prefix must not be empty".to_owned());
        }
    }

    fn check_sqs(&self, needed: bool, problems: &mut Vec<String>) {
        if needed && self.url.is_empty() && self.tiers.is_empty() {
            problems.push(
                "queue.url is missing: the SQS queue's URL, or DOCMILL__QUEUE__URL".to_owned(),
            );
        }
        if self.url.ends_with(".fifo") {
            problems.push(
                "queue.url names a FIFO queue: one slow document would hold back every other of \
                 its group; use a standard queue"
                    .to_owned(),
            );
        }
        if self.wait > Duration::from_secs(20) {
            problems.push("queue.wait must be at most 20s, the longest SQS waits".to_owned());
        }
    }

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
        tiers.iter().map(|tier| (tier.name, tier.effective_weight())).collect()
    }

    fn check_tiers(&self, problems: &mut Vec<String>) {
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
                    "queue.tiers: `{name}` has a url, which only the sqs backend has"
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
        let shares: Vec<u32> =
            config.sqs_tiers().iter().map(TierConfig::effective_weight).collect();
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
