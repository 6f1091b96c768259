//! Settings shared by all workers of a bucket, in `registry/config.json`.
//!
//! Names and defaults are BlobForge's; unknown fields survive. A worker reads them at its start and
//! once an hour.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::BlobForgeBucket;
use crate::objects::blobforge::SETTINGS;
use crate::objects::engine::{back_off, contention_error};
use docmill_core::fault::{Error, Fault, Result};
use docmill_storage::{Etag, GetOptions, GetResult, PutResult};

/// How often a change is tried against others.
const TRIES: u32 = 10;
/// Larger settings are refused, in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// The settings that all workers of a bucket follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BucketSettings {
    /// Maximum runs of a document.
    pub max_retries: u32,
    /// Seconds between two renewals of a lock.
    pub heartbeat_interval: u64,
    /// A lock not renewed for this many minutes is abandoned.
    pub stale_timeout_minutes: u64,
    /// Seconds one conversion may take.
    pub conversion_timeout: u64,
    /// Seconds before a failed document is tried again, doubled with every failure. Ours.
    pub retry_pause_seconds: u64,
    /// Fields of other programs, kept.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Default for BucketSettings {
    fn default() -> Self {
        Self {
            max_retries: 3,
            heartbeat_interval: 60,
            stale_timeout_minutes: 15,
            conversion_timeout: 3600,
            retry_pause_seconds: 60,
            rest: Map::new(),
        }
    }
}

/// The longest pause before a failed document is tried again.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

impl BucketSettings {
    /// Reads them; what is not there is BlobForge's default.
    ///
    /// # Errors
    /// Store errors; misconfigured if they are out of range or no settings at all.
    pub async fn load(bucket: &BlobForgeBucket) -> Result<Self> {
        let (settings, _) = read_settings(bucket).await?;
        settings.check()?;
        Ok(settings)
    }

    /// Changes a setting for all workers; the value is a number.
    ///
    /// # Errors
    /// Store errors; rejected for an unknown setting; misconfigured for a value out of range, or if
    /// the stored settings are invalid, which are never replaced by defaults.
    pub async fn set(bucket: &BlobForgeBucket, name: &str, value: u64) -> Result<Self> {
        let store = bucket.engine.store();
        for turn in 0..TRIES {
            let (mut settings, etag) = read_settings(bucket).await?;
            settings.put(name, value)?;
            settings.check()?;
            let json = serde_json::to_vec(&settings).map_err(|error| {
                Error::internal("cannot serialise the settings").with_source(error)
            })?;
            let put = match &etag {
                None => store.put_if_absent(SETTINGS, json.into()).await?,
                Some(etag) => store.put_if_match(SETTINGS, etag, json.into()).await?,
            };
            if put != PutResult::Refused {
                return Ok(settings);
            }
            back_off(turn).await;
        }
        Err(contention_error())
    }

    fn put(&mut self, name: &str, value: u64) -> Result<()> {
        match name {
            "max_retries" => self.max_retries = u32::try_from(value).unwrap_or(u32::MAX),
            "heartbeat_interval" => self.heartbeat_interval = value,
            "stale_timeout_minutes" => self.stale_timeout_minutes = value,
            "conversion_timeout" => self.conversion_timeout = value,
            "retry_pause_seconds" => self.retry_pause_seconds = value,
            _ => {
                let text = "no such setting: max_retries, heartbeat_interval, \
                            stale_timeout_minutes, conversion_timeout, retry_pause_seconds";
                return Err(Error::new(Fault::Rejected, text));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let bad = if self.max_retries == 0 {
            "max_retries must be at least 1"
        } else if self.heartbeat_interval == 0
            || self.heartbeat().saturating_mul(3) > self.stale_after()
        {
            "heartbeat_interval must be at least 1 s and fit into stale_timeout_minutes three times"
        } else if self.conversion_timeout == 0 {
            "conversion_timeout must be at least 1 s"
        } else {
            return Ok(());
        };
        Err(misconfigured(bad))
    }

    /// Time between two renewals of a lock.
    pub fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.heartbeat_interval)
    }

    /// A lock not renewed for this long is abandoned.
    pub fn stale_after(&self) -> Duration {
        Duration::from_secs(self.stale_timeout_minutes.saturating_mul(60))
    }

    /// The longest a conversion may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.conversion_timeout)
    }

    /// How long a document waits that failed after being begun so often.
    pub fn retry_pause(&self, runs: u32) -> Duration {
        let doubled = 1_u32.checked_shl(runs.saturating_sub(1)).unwrap_or(u32::MAX);
        Duration::from_secs(self.retry_pause_seconds).saturating_mul(doubled).min(MAX_PAUSE)
    }
}

/// Reads the settings strictly: one invalid field would cost all of them. Without an object, the
/// defaults.
async fn read_settings(bucket: &BlobForgeBucket) -> Result<(BucketSettings, Option<Etag>)> {
    let what = GetOptions { at_most: MAX_SETTINGS_BYTES, if_match: None };
    match bucket.engine.store().get(SETTINGS, what).await? {
        GetResult::Missing | GetResult::Changed => Ok((BucketSettings::default(), None)),
        GetResult::Found(object) => match serde_json::from_slice(&object.bytes) {
            Ok(settings) => Ok((settings, Some(object.etag))),
            Err(error) => Err(misconfigured(&error.to_string())),
        },
        GetResult::TooLarge { size } => {
            Err(misconfigured(&format!("it has {size} bytes, {MAX_SETTINGS_BYTES} are read")))
        }
    }
}

fn misconfigured(what: &str) -> Error {
    Error::new(Fault::Misconfigured, format!("registry/config.json of the bucket: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_document_waits_longer_each_time_up_to_an_hour() {
        let settings = BucketSettings::default();
        for (runs, seconds) in [(0, 60), (1, 60), (2, 120), (3, 240), (40, 3600)] {
            assert_eq!(settings.retry_pause(runs).as_secs(), seconds, "{runs}");
        }
    }

    #[test]
    fn settings_that_would_let_live_locks_be_taken_are_refused() {
        let settings = BucketSettings { heartbeat_interval: 301, ..BucketSettings::default() };
        assert!(settings.check().is_err());
        let endless = BucketSettings { heartbeat_interval: u64::MAX, ..settings.clone() };
        assert!(endless.check().is_err());
        assert!(BucketSettings { heartbeat_interval: 300, ..settings }.check().is_ok());
        assert!(BucketSettings { max_retries: 0, ..BucketSettings::default() }.check().is_err());
    }
}
