//! `[queue]`: where messages come from.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest SQS hides a message, counted from its receive.
const SQS_LONGEST: Duration = Duration::from_secs(12 * 3600);

/// Which implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueBackend {
    /// Amazon SQS, standard queues.
    Sqs,
    /// Marker objects in a folder, the layout of a `BlobForge` bucket.
    Folder,
    /// The same in the store of `[store]`: a bucket as a queue.
    Objects,
}

/// How deliveries are received and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// Which implementation.
    pub backend: QueueBackend,
    /// URL of the SQS queue.
    pub url: String,
    /// URL of its dead-letter queue; empty: found through the redrive policy.
    pub dead_letter_url: String,
    /// Another endpoint than AWS's own, for stand-ins.
    pub endpoint: String,
    /// AWS region; empty: from the environment.
    pub region: String,
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
    /// See `unknown_receives`.
    #[serde(with = "humantime_serde")]
    pub unknown_age: Duration,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            backend: QueueBackend::Sqs,
            url: String::new(),
            dead_letter_url: String::new(),
            endpoint: String::new(),
            region: String::new(),
            path: PathBuf::new(),
            wait: Duration::from_secs(20),
            visibility: Duration::from_secs(120),
            unknown_receives: 10,
            unknown_age: Duration::from_secs(3600),
        }
    }
}

impl QueueConfig {
    pub(super) fn check(&self, needed: bool, problems: &mut Vec<String>) {
        match self.backend {
            QueueBackend::Sqs => self.check_sqs(needed, problems),
            QueueBackend::Folder if needed && self.path.as_os_str().is_empty() => {
                problems.push("queue.path is missing: the folder backend needs it".to_owned());
            }
            QueueBackend::Folder | QueueBackend::Objects => {}
        }
        if self.visibility < Duration::from_secs(3) || self.visibility > SQS_LONGEST {
            problems.push("queue.visibility must be between 3s and 12h".to_owned());
        }
        if self.unknown_receives == 0 {
            problems.push("queue.unknown_receives must be at least 1".to_owned());
        }
    }

    fn check_sqs(&self, needed: bool, problems: &mut Vec<String>) {
        if needed && self.url.is_empty() {
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
}
