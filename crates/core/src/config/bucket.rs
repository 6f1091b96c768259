//! `[bucket]`: a BlobForge bucket that is worked on without a database.
//!
//! Settings of BlobForge (`BLOBFORGE_*`) apply where docmill's own are not given.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units::SecretString;

/// BlobForge's variables and the keys they stand for.
const ALIASES: [(&str, &str); 8] = [
    ("BLOBFORGE_S3_BUCKET", "name"),
    ("BLOBFORGE_S3_PREFIX", "prefix"),
    ("BLOBFORGE_S3_REGION", "region"),
    ("BLOBFORGE_S3_ENDPOINT_URL", "endpoint"),
    ("BLOBFORGE_S3_ACCESS_KEY_ID", "access_key_id"),
    ("BLOBFORGE_S3_SECRET_ACCESS_KEY", "secret_access_key"),
    ("BLOBFORGE_WORKER_ID", "worker_id"),
    ("BLOBFORGE_LOG_LEVEL", "log_level"),
];

/// How the bucket is reached, and how a worker of it goes about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BucketConfig {
    /// Name of the bucket. Also `BLOBFORGE_S3_BUCKET`.
    pub name: String,
    /// A folder in the place of a bucket.
    pub path: PathBuf,
    /// Where in it the layout begins. Also `BLOBFORGE_S3_PREFIX`.
    pub prefix: String,
    /// AWS region; empty: from the environment. Also `BLOBFORGE_S3_REGION`.
    pub region: String,
    /// Another endpoint than AWS's own. Also `BLOBFORGE_S3_ENDPOINT_URL`.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// Access key; empty: from the environment, a profile or a role. Also
    /// `BLOBFORGE_S3_ACCESS_KEY_ID`.
    pub access_key_id: String,
    /// The secret of the access key. Also `BLOBFORGE_S3_SECRET_ACCESS_KEY`.
    pub secret_access_key: SecretString,
    /// In the place of the machine's fingerprint in a worker's name. Also `BLOBFORGE_WORKER_ID`.
    pub worker_id: String,
    /// Level of a worker's log: `error`, `warn`, `info` or `debug`, in any case. Also
    /// `BLOBFORGE_LOG_LEVEL`.
    pub log_level: String,
    /// Time between two scans for work, for every listing request they take.
    #[serde(with = "humantime_serde")]
    pub list_every: Duration,
    /// The longest pause between two scans while nothing waits.
    #[serde(with = "humantime_serde")]
    pub longest_pause: Duration,
}

impl Default for BucketConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            path: PathBuf::new(),
            prefix: "pdf/".to_owned(),
            region: String::new(),
            endpoint: String::new(),
            access_key_id: String::new(),
            secret_access_key: SecretString::default(),
            worker_id: String::new(),
            log_level: "INFO".to_owned(),
            list_every: Duration::from_secs(15),
            longest_pause: Duration::from_secs(120),
        }
    }
}

impl BucketConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if !["error", "warning", "warn", "info", "debug"].contains(&&*self.log_level.to_lowercase())
        {
            problems.push("bucket.log_level must be error, warn, info or debug".to_owned());
        }
        if self.access_key_id.is_empty() != self.secret_access_key.is_empty() {
            problems.push(
                "bucket.access_key_id and bucket.secret_access_key go together: set both or \
                 neither"
                    .to_owned(),
            );
        }
        if self.longest_pause < self.list_every {
            problems.push("bucket.longest_pause must be at least bucket.list_every".to_owned());
        }
    }

    /// Checks settings that the `bucket` commands need and other commands do not.
    ///
    /// # Errors
    /// Which key is missing, or that two contradict each other.
    pub fn check_place(&self) -> Result<(), super::InvalidConfig> {
        let problem = match (self.name.is_empty(), self.path.as_os_str().is_empty()) {
            (true, true) => {
                "bucket.name is missing: the bucket (or BLOBFORGE_S3_BUCKET); or bucket.path, a \
                 folder in its place"
            }
            (false, false) => "bucket.name and bucket.path are both set: leave one of them out",
            _ => return Ok(()),
        };
        Err(super::InvalidConfig(vec![problem.to_owned()]))
    }
}

/// `BLOBFORGE_*` as the variables of ours that they stand for.
pub(super) fn alias_variables(
    variables: impl Iterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    variables
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| {
            let (_, key) = ALIASES.iter().find(|(alias, _)| *alias == name)?;
            Some((format!("DOCMILL__BUCKET__{}", key.to_uppercase()), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobforges_variables_stand_for_ours() {
        let given = [("BLOBFORGE_S3_BUCKET", "b"), ("BLOBFORGE_S3_REGION", ""), ("PATH", "x")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = [("DOCMILL__BUCKET__NAME".to_owned(), "b".to_owned())];
        assert_eq!(alias_variables(given.into_iter()), expected);
    }

    #[test]
    fn a_bucket_or_a_folder_is_named_and_not_both() {
        let bucket = BucketConfig { name: "b".to_owned(), ..BucketConfig::default() };
        assert!(bucket.check_place().is_ok());
        assert!(BucketConfig { path: "f".into(), ..bucket }.check_place().is_err());
        assert!(BucketConfig::default().check_place().is_err());
    }
}
