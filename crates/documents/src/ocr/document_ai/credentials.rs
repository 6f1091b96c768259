//! Credentials for Google: a service account's key file, or the machine's metadata server.
//!
//! Tokens are fetched and kept by `gcp_auth`, which has no time limits of its own; here it gets
//! one. The command-line program `gcloud` and a person's own credentials are not searched for: a
//! service should not run on them by accident.

use std::path::Path;
use std::time::Duration;

use gcp_auth::{CustomServiceAccount, MetadataServiceAccount, TokenProvider};
use tokio::sync::OnceCell;

use docmill_core::config::SecretString;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::with_deadline;

const SCOPES: [&str; 1] = ["https://www.googleapis.com/auth/cloud-platform"];
/// Longest a token may take, the library's own repetitions included.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(20);

/// Credentials of Google Cloud, from which access tokens are made.
pub struct GoogleCredentials {
    source: TokenSource,
}

enum TokenSource {
    Account(Box<CustomServiceAccount>),
    /// Asked for the first time when the first token is needed.
    Metadata(Box<OnceCell<MetadataServiceAccount>>),
}

impl GoogleCredentials {
    /// The account of a key file or of the content of one; without either that of
    /// `GOOGLE_APPLICATION_CREDENTIALS`, without that the metadata server's. Nothing is sent.
    ///
    /// # Errors
    /// The file is not there or is no key file: which one.
    pub fn find(file: &Path, content: &SecretString) -> Result<Self> {
        let account = if !content.is_empty() {
            let account = CustomServiceAccount::from_json(content.reveal());
            let named = "ocr.document_ai.credentials_json";
            Some(account.map_err(|error| unusable_error(named, &error))?)
        } else if file.as_os_str().is_empty() {
            let variable = "the file that GOOGLE_APPLICATION_CREDENTIALS names";
            CustomServiceAccount::from_env().map_err(|error| unusable_error(variable, &error))?
        } else {
            let named = format!("ocr.document_ai.credentials ({})", file.display());
            let account = CustomServiceAccount::from_file(file);
            Some(account.map_err(|error| unusable_error(&named, &error))?)
        };
        let source = match account {
            Some(account) => TokenSource::Account(Box::new(account)),
            None => TokenSource::Metadata(Box::default()),
        };
        Ok(Self { source })
    }

    /// A token that is valid now.
    ///
    /// # Errors
    /// [`Fault::Denied`]: no token is granted; the message names the setting to check.
    pub(super) async fn fetch_token(&self) -> Result<String> {
        let advice = match &self.source {
            TokenSource::Account(_) => "check the key file of the service account and the network",
            TokenSource::Metadata(_) => {
                "there is no metadata server that gives one; set ocr.document_ai.credentials to the \
                 key file of a service account"
            }
        };
        let fetched = async {
            let token = match &self.source {
                TokenSource::Account(account) => account.token(&SCOPES).await,
                TokenSource::Metadata(cell) => {
                    let account = cell.get_or_try_init(MetadataServiceAccount::new);
                    match account.await {
                        Ok(account) => account.token(&SCOPES).await,
                        Err(error) => Err(error),
                    }
                }
            };
            // An error's text may quote the token server's words about our credentials.
            let denied =
                |_quotes| Error::new(Fault::Denied, format!("no token for Document AI: {advice}"));
            token.map(|token| token.as_str().to_owned()).map_err(denied)
        };
        with_deadline(TOKEN_TIMEOUT, fetched, || {
            let seconds = TOKEN_TIMEOUT.as_secs();
            let context = format!("no token for Document AI in {seconds} s: {advice}");
            Error::new(Fault::Unavailable, context)
        })
        .await
    }
}

fn unusable_error(what: &str, error: &gcp_auth::Error) -> Error {
    let why = match error {
        gcp_auth::Error::Io(..) => "cannot be read",
        _ => "is not the key file of a service account",
    };
    Error::new(Fault::Denied, format!("{what} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_that_is_missing_or_none_is_named_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.json");
        let refused = |file: &Path| {
            GoogleCredentials::find(file, &SecretString::default()).err().unwrap().to_string()
        };
        let missing = refused(&file);
        assert!(missing.contains("key.json") && missing.contains("cannot be read"), "{missing}");
        std::fs::write(&file, "{\"private_key\":\"hunter2\"}").unwrap();
        let broken = refused(&file);
        assert!(broken.contains("is not the key file") && !broken.contains("hunter2"), "{broken}");
    }
}
