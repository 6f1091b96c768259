//! `[llm.batch]`: which questions may wait for a vendor's batch, for how long, and when batches are
//! handed in.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::OffsetDateTime;

use super::daily_hours::DailyHours;
use super::units::{ByteSize, SecretString, is_plain_name};
use crate::model::Priority;

/// No vendor takes longer over a batch, and none keeps a question longer that was not answered.
const MAX_DEADLINE: Duration = Duration::from_secs(72 * 3600);
/// The most that every vendor takes in one batch.
const MAX_REQUESTS: u32 = 50_000;
/// The same, in bytes; all of it is in memory while it is handed in.
const MAX_BYTES: ByteSize = ByteSize::from_mib(190);

/// Questions that may wait go in batches, for less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchConfig {
    /// Whether anything does.
    pub enabled: bool,
    /// Documents of this priority, and less urgent ones, may wait.
    pub from: Priority,
    /// Documents of these kinds may wait as well, unless they are `critical` or `high`.
    pub kinds: Vec<String>,
    /// So long after its first question a document is read by direct calls.
    #[serde(with = "humantime_serde")]
    pub deadline: Duration,
    /// A batch that is late is cancelled; so long its end is waited for before the direct calls.
    #[serde(with = "humantime_serde")]
    pub grace: Duration,
    /// Batches are handed in between these times of the day only (UTC); empty: at any.
    pub window: BatchWindow,
    /// A batch is handed in once its oldest question is so old,
    #[serde(with = "humantime_serde")]
    pub gather: Duration,
    /// or once it has so many questions,
    pub requests: u32,
    /// or so many bytes.
    pub bytes: ByteSize,
    /// How often the vendor is asked at first; up to sixteen times as long apart later on.
    #[serde(with = "humantime_serde")]
    pub poll: Duration,
    /// With Azure the deployment of the type Global Batch that answers; for the first model alone.
    pub azure_deployment: String,
    /// Further settings of Bedrock.
    pub bedrock: BedrockBatchConfig,
}

/// `[llm.batch.bedrock]`: the bucket through which Bedrock takes questions and gives answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BedrockBatchConfig {
    /// The role that Bedrock takes on to read and write the bucket.
    pub role_arn: String,
    /// The bucket, in the region of the model.
    pub bucket: String,
    /// Prefix of the keys; empty or with a slash at its end.
    pub prefix: String,
    /// No batch has fewer questions: Bedrock refuses smaller ones.
    pub least_requests: u32,
    /// Access key for bucket and batches; empty: from AWS's usual chain.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: SecretString,
    /// Another address of Bedrock's control plane than AWS's own.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// Another address of S3 than AWS's own; the bucket is part of its paths then.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub s3_endpoint: String,
}

impl Default for BedrockBatchConfig {
    fn default() -> Self {
        Self {
            role_arn: String::new(),
            bucket: String::new(),
            prefix: "docmill-batches/".to_owned(),
            // Of the quotas that an account begins with.
            least_requests: 100,
            access_key_id: String::new(),
            secret_access_key: SecretString::default(),
            endpoint: String::new(),
            s3_endpoint: String::new(),
        }
    }
}

impl BedrockBatchConfig {
    pub(super) fn collect_problems(&self, key: &str, problems: &mut Vec<String>) {
        if !self.role_arn.starts_with("arn:") || self.bucket.is_empty() {
            problems.push(format!(
                "{key}: Bedrock needs llm.batch.bedrock.role_arn, a role that it takes on, and \
                 llm.batch.bedrock.bucket"
            ));
        }
        let is_plain = self
            .prefix
            .split_inclusive('/')
            .all(|part| part.strip_suffix('/').is_some_and(|name| is_plain_name(name, "-!_*'().")));
        if !is_plain {
            problems.push(
                "llm.batch.bedrock.prefix must be empty or end with a slash, of letters, digits \
                 and -!_*'()."
                    .to_owned(),
            );
        }
        if self.least_requests == 0 {
            problems.push("llm.batch.bedrock.least_requests must be above 0".to_owned());
        }
        if self.access_key_id.is_empty() != self.secret_access_key.is_empty() {
            problems.push(
                "llm.batch.bedrock.access_key_id and llm.batch.bedrock.secret_access_key go \
                 together: set both or neither"
                    .to_owned(),
            );
        }
        for (name, address) in [("endpoint", &self.endpoint), ("s3_endpoint", &self.s3_endpoint)] {
            let web = address.starts_with("https://") || address.starts_with("http://");
            if !address.is_empty() && (!web || super::address::sends_in_the_clear(address)) {
                problems.push(format!(
                    "llm.batch.bedrock.{name} must begin with https://, or with http:// on this \
                     machine"
                ));
            }
        }
    }
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            from: Priority::Low,
            kinds: Vec::new(),
            deadline: Duration::from_secs(24 * 3600),
            grace: Duration::from_secs(15 * 60),
            window: BatchWindow::default(),
            gather: Duration::from_secs(15 * 60),
            requests: 1_000,
            bytes: ByteSize::from_mib(32),
            poll: Duration::from_secs(60),
            azure_deployment: String::new(),
            bedrock: BedrockBatchConfig::default(),
        }
    }
}

impl BatchConfig {
    /// Whether a document of this priority and kind may wait.
    pub fn may_wait(&self, priority: Priority, kind: &str) -> bool {
        let of_kind = priority >= Priority::Normal && self.kinds.iter().any(|name| name == kind);
        priority >= self.from || of_kind
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.deadline.is_zero() || self.deadline > MAX_DEADLINE {
            problems.push("llm.batch.deadline must be above 0 and at most 72h".to_owned());
        }
        if self.poll.is_zero() {
            problems.push("llm.batch.poll must be above 0".to_owned());
        }
        if self.requests == 0 || self.requests > MAX_REQUESTS {
            problems.push(format!("llm.batch.requests must be between 1 and {MAX_REQUESTS}"));
        }
        if self.bytes.0 == 0 || self.bytes > MAX_BYTES {
            problems.push(format!("llm.batch.bytes must be above 0 and at most {MAX_BYTES}"));
        }
        if self.enabled && self.gather >= self.deadline {
            problems.push(
                "llm.batch.gather must be shorter than llm.batch.deadline, or nothing is handed in"
                    .to_owned(),
            );
        }
    }
}

/// Hours of the day in UTC; none: at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchWindow(Option<DailyHours>);

impl BatchWindow {
    /// How long from `now` until it opens; zero while it is open.
    pub fn wait_until_open(&self, now: OffsetDateTime) -> Duration {
        let now = now.to_offset(time::UtcOffset::UTC).time();
        self.0.map_or(Duration::ZERO, |hours| hours.wait_until_open(now))
    }
}

impl FromStr for BatchWindow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let hours = text.parse().ok().filter(|hours: &DailyHours| !hours.is_whole_day());
        hours
            .map(|hours| Self(Some(hours)))
            .ok_or_else(|| "write two times of the day in UTC, such as 22:00-06:00".to_owned())
    }
}

impl fmt::Display for BatchWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |hours| hours.fmt(f))
    }
}

impl Serialize for BatchWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BatchWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_window_may_reach_past_midnight_and_gives_the_time_until_it_opens() {
        let hours = |count: u64| Duration::from_secs(count * 3600);
        #[rustfmt::skip]
        let table = [
            ("22:00-06:00", datetime!(2026-11-22 23:30 UTC), hours(0)),
            ("22:00-06:00", datetime!(2026-11-22 05:59 UTC), hours(0)),
            ("22:00-06:00", datetime!(2026-11-22 06:00 UTC), hours(16)),
            ("01:00-05:00", datetime!(2026-11-22 04:00 UTC), hours(0)),
            ("01:00-05:00", datetime!(2026-11-22 05:00 UTC), hours(20)),
            ("01:00-05:00", datetime!(2026-11-22 00:00 UTC), hours(1)),
            ("",            datetime!(2026-11-22 12:00 UTC), hours(0)),
        ];
        for (window, now, wait) in table {
            let read: BatchWindow = window.parse().unwrap();
            assert_eq!((read.wait_until_open(now), read.to_string()), (wait, window.to_owned()));
        }
        for wrong in ["22:00", "22-6", "24:00-06:00", "06:00-06:00", "-"] {
            assert!(wrong.parse::<BatchWindow>().unwrap_err().contains("UTC"), "{wrong}");
        }
    }

    #[test]
    fn missing_settings_for_bedrocks_batches_are_reported_before_anything_is_handed_in() {
        let whole = BedrockBatchConfig {
            role_arn: "arn:aws:iam::123456789012:role/batches".to_owned(),
            bucket: "questions".to_owned(),
            ..BedrockBatchConfig::default()
        };
        let problems = |config: BedrockBatchConfig| {
            let mut problems = Vec::new();
            config.collect_problems("llm.batch.enabled", &mut problems);
            problems.join("\n")
        };
        let text = str::to_owned;
        assert_eq!(problems(whole.clone()), "");
        assert_eq!(problems(BedrockBatchConfig { prefix: String::new(), ..whole.clone() }), "");
        #[rustfmt::skip]
        let table = [
            (BedrockBatchConfig { role_arn: String::new(), ..whole.clone() },           "role_arn"),
            (BedrockBatchConfig { bucket: String::new(), ..whole.clone() },             "bucket"),
            (BedrockBatchConfig { prefix: text("a//"), ..whole.clone() },               "prefix"),
            (BedrockBatchConfig { prefix: text("a/b"), ..whole.clone() },               "prefix"),
            (BedrockBatchConfig { prefix: text("a b/"), ..whole.clone() },              "prefix"),
            (BedrockBatchConfig { least_requests: 0, ..whole.clone() },                 "least_requests"),
            (BedrockBatchConfig { access_key_id: text("AKIA"), ..whole.clone() },       "secret_access_key"),
            (BedrockBatchConfig { s3_endpoint: text("http://far.example"), ..whole },   "s3_endpoint"),
        ];
        for (config, named) in table {
            let said = problems(config);
            assert!(said.contains(named) && !said.contains('\n'), "{named}: {said}");
        }
    }

    #[test]
    fn priority_and_kind_decide_which_documents_may_wait_and_urgent_ones_never_do() {
        let config = BatchConfig { kinds: vec!["receipt".to_owned()], ..BatchConfig::default() };
        for (priority, kind, waits) in [
            (Priority::Background, "invoice", true),
            (Priority::Low, "invoice", true),
            (Priority::Normal, "invoice", false),
            (Priority::Normal, "receipt", true),
            (Priority::High, "receipt", false),
            (Priority::Critical, "receipt", false),
        ] {
            assert_eq!(config.may_wait(priority, kind), waits, "{priority} {kind}");
        }
    }
}
