//! Tokens of Google Cloud: from the key file of a service account, from the metadata server, or from
//! the identity of another platform (workload identity federation).
//!
//! Contract: Google's "Application Default Credentials", of which a person's log-in is left out, and
//! the sources of google-auth (`service_account.py`, `_metadata.py`, `external_account.py`). A
//! credentials file is read again for each token, so that it may be replaced at run time.

mod aws_subject;
mod federation;
mod key_file;
mod scope;

use std::path::Path;

use async_trait::async_trait;
use aws_config::SdkConfig;
use serde_json::Value;

use super::ambient::AmbientVariables;
use super::server::{TokenAnswer, TokenServer};
use super::{GrantedToken, TokenGrant};
use docmill_core::config::{SecretSource, SecretString};
use docmill_core::fault::{Error, Fault, Result};
use federation::ExternalAccount;
use key_file::ServiceAccountKey;

/// Where the metadata server is, unless `GCE_METADATA_HOST` says otherwise.
const METADATA_HOST: &str = "metadata.google.internal";
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
/// Names the file with credentials.
const FILE_VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// Grants tokens of Google Cloud.
pub struct GoogleGrant {
    /// The credentials file, or its content; empty: the metadata server.
    source: SecretSource,
    /// The setting or variable that names it, for errors.
    named: String,
    metadata: String,
    /// AWS's own chain of credentials, once it has been asked for.
    aws: tokio::sync::OnceCell<SdkConfig>,
}

impl GoogleGrant {
    /// The credentials of a setting: a file, or the content of one. Without either that of
    /// `GOOGLE_APPLICATION_CREDENTIALS`, without that the metadata server's. Nothing is sent.
    ///
    /// # Errors
    /// [`Fault::Denied`]: the file is not there or holds no credentials; which setting names it.
    pub fn find(
        configured: SecretSource,
        setting: &str,
        variables: &AmbientVariables,
    ) -> Result<Self> {
        let is_configured = configured.is_file()
            || configured.current_secret().is_ok_and(|content| !content.is_empty());
        let (source, named) = match variables.get(FILE_VARIABLE) {
            _ if is_configured => (configured, setting.to_owned()),
            Some(file) => {
                let source = SecretSource::new(&SecretString::default(), Path::new(file));
                (source, FILE_VARIABLE.to_owned())
            }
            None => (SecretSource::default(), setting.to_owned()),
        };
        let host = variables.get("GCE_METADATA_HOST").unwrap_or(METADATA_HOST);
        let metadata = format!("http://{host}{METADATA_PATH}");
        let grant = Self { source, named, metadata, aws: tokio::sync::OnceCell::new() };
        grant.read_credentials()?;
        Ok(grant)
    }

    /// The credentials as they are now; `None`: those of the metadata server.
    fn read_credentials(&self) -> Result<Option<GoogleCredentials>> {
        let named = &self.named;
        let text = self.source.current_secret();
        let text =
            text.map_err(|problem| Error::new(Fault::Denied, format!("{named}: {problem}")))?;
        if text.is_empty() && !self.source.is_file() {
            return Ok(None);
        }
        // A parser's words may quote the file.
        let found: Option<Value> = serde_json::from_str(text.reveal()).ok();
        let kind = found.as_ref().and_then(|found| found.get("type")?.as_str()).unwrap_or_default();
        let read = match (kind, &found) {
            ("external_account", Some(found)) => {
                ExternalAccount::parse(found)?.map(GoogleCredentials::External)
            }
            ("service_account", Some(found)) => {
                ServiceAccountKey::parse(found).map(GoogleCredentials::Account)
            }
            _ => None,
        };
        read.map(Some).ok_or_else(|| {
            let context = format!(
                "{named} is not the key file of a service account, nor a configuration of workload \
                 identity federation (type external_account, from a file, an address or AWS)"
            );
            Error::new(Fault::Denied, context)
        })
    }

    async fn ask_metadata_server(&self) -> Result<GrantedToken> {
        let advice = format!(
            "there is no metadata server that gives one; set {} to the credentials of a service \
             account or of workload identity federation",
            self.named
        );
        let server = TokenServer::new(&self.metadata, &advice)?;
        let request = server.client.get(server.url.clone()).header("metadata-flavor", "Google");
        let answer = server.ask_json::<TokenAnswer>(request).await.map_err(|mut error| {
            if error.fault == Fault::Unavailable {
                error = Error::new(Fault::Denied, format!("no Google credentials: {advice}"))
                    .with_source(error);
            }
            error
        })?;
        Ok(answer.into_token(std::time::SystemTime::now()))
    }
}

/// The content of a credentials file.
enum GoogleCredentials {
    Account(ServiceAccountKey),
    External(Box<ExternalAccount>),
}

#[async_trait]
impl TokenGrant for GoogleGrant {
    async fn request_token(&self) -> Result<GrantedToken> {
        match self.read_credentials()? {
            Some(GoogleCredentials::Account(key)) => key.request_token(&self.named).await,
            Some(GoogleCredentials::External(account)) => {
                account.request_token(&self.named, &self.aws).await
            }
            None => self.ask_metadata_server().await,
        }
    }
}

#[cfg(test)]
mod tests;
