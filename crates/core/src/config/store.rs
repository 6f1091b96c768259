//! `[store]`: where documents and artefacts lie.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::AllowedPrefix;
use super::units::SecretString;

/// Each is tried on an encrypted document, and trying takes time.
const MAX_PASSWORDS: usize = 100;

/// Which implementation of the object store is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreBackend {
    /// Amazon S3 and what speaks its protocol.
    S3,
    /// A folder of the local file system.
    Folder,
}

/// `[store]`: the bucket or folder of documents and artefacts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// Which implementation of the object store is used.
    pub backend: StoreBackend,
    /// Bucket of documents without a bucket of their own, and of all artefacts.
    pub bucket: String,
    /// Another endpoint than AWS's own.
    #[serde(serialize_with = "super::address::serialize_address")]
    pub endpoint: String,
    /// AWS region; empty: from the environment.
    pub region: String,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    pub path_style: bool,
    /// Folder of the `folder` backend.
    pub path: PathBuf,
    /// Places whose S3 events are taken, and of other buckets the places that rows may name; empty:
    /// none.
    pub allow: Vec<AllowedPrefix>,
    /// Passwords of PDFs, tried in this order where a document is encrypted.
    pub passwords: Vec<DocumentPassword>,
}

/// A password that opens PDFs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentPassword {
    /// Whose documents it is tried on; none: everybody's.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The password itself.
    pub password: SecretString,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            backend: StoreBackend::S3,
            bucket: String::new(),
            endpoint: String::new(),
            region: String::new(),
            path_style: false,
            path: PathBuf::new(),
            allow: Vec::new(),
            passwords: Vec::new(),
        }
    }
}

impl StoreConfig {
    /// The passwords to try on documents of this tenant; on documents without a tenant only those
    /// without one.
    pub fn passwords_for(&self, tenant: Option<&str>) -> impl Iterator<Item = SecretString> {
        let tried =
            move |it: &&DocumentPassword| it.tenant.is_none() || it.tenant.as_deref() == tenant;
        self.passwords.iter().filter(tried).map(|it| it.password.clone())
    }

    pub(super) fn collect_problems(&self, needed: bool, problems: &mut Vec<String>) {
        if self.passwords.len() > MAX_PASSWORDS {
            problems.push(format!("store.passwords may have {MAX_PASSWORDS} entries"));
        }
        match self.backend {
            StoreBackend::S3 if needed && self.bucket.is_empty() => {
                problems.push("store.bucket is missing".to_owned());
            }
            StoreBackend::Folder if needed && self.path.as_os_str().is_empty() => {
                problems.push("store.path is missing: the folder backend needs it".to_owned());
            }
            _ => {}
        }
        self.collect_place_problems(problems);
    }
}
