//! `[database]`: Postgres.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::secret;
use super::units::{SecretString, is_plain_name};

/// `[database]`: the address of Postgres and how to log in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseConfig {
    /// `postgres://user:password@host:port/database`. TLS by `?sslmode=verify-full`.
    pub url: SecretString,
    /// A file with that URL, read again when it changes.
    pub url_file: PathBuf,
    /// A file with the password alone, read again when it changes.
    pub password_file: PathBuf,
    /// Whether AWS signs the password (IAM database authentication of RDS); needs TLS.
    pub iam: bool,
    /// AWS region of the database, for `iam`; empty: from the environment.
    pub region: String,
    /// The schema that holds docmill's tables.
    pub schema: String,
    /// Most connections this process opens. Claims and renewals are batched: few are needed.
    pub max_connections: u32,
    /// A statement that takes longer is cancelled by Postgres.
    #[serde(with = "humantime_serde")]
    pub statement_timeout: Duration,
    /// How long a command waits at start for Postgres to answer.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: SecretString::default(),
            url_file: PathBuf::new(),
            password_file: PathBuf::new(),
            iam: false,
            region: String::new(),
            schema: "docmill".to_owned(),
            max_connections: 16,
            statement_timeout: Duration::from_secs(15),
            connect_timeout: Duration::from_secs(30),
        }
    }
}

impl DatabaseConfig {
    pub(super) fn collect_problems(&self, needed: bool, problems: &mut Vec<String>) {
        secret::check_secret(&self.url, &self.url_file, "database.url", problems);
        secret::check_secret(
            &SecretString::default(),
            &self.password_file,
            "database.password",
            problems,
        );
        if self.iam && !self.password_file.as_os_str().is_empty() {
            problems.push(
                "database.iam and database.password_file are both set: leave one of them out"
                    .to_owned(),
            );
        }
        if needed && self.url.is_empty() && self.url_file.as_os_str().is_empty() {
            problems.push(
                "database.url is missing: set it in the file or as DOCMILL__DATABASE__URL"
                    .to_owned(),
            );
        }
        let url = self.url.reveal();
        if !url.is_empty() && !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            problems.push("database.url must begin with postgres://".to_owned());
        }
        if !is_plain_name(&self.schema, "_") || self.schema.contains(char::is_uppercase) {
            problems.push("database.schema must be made of a-z, 0-9 and _".to_owned());
        }
        if self.max_connections < 2 {
            problems.push("database.max_connections must be at least 2".to_owned());
        }
    }
}
