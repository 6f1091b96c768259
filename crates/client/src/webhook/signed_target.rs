//! An address of the Web, and the secrets that sign for it.

use reqwest::Url;
use time::OffsetDateTime;

use super::destination::DestinationPolicy;
use super::signature::{SignedMessage, parse_secrets, sign_message};
use docmill_core::config::SecretSource;
use docmill_core::fault::{Error, Fault, Result};

/// An address that signed messages are sent to.
#[derive(Debug)]
pub struct SignedTarget {
    url: Url,
    secrets: SecretSource,
}

impl SignedTarget {
    /// The target at an address.
    ///
    /// # Errors
    /// Why it cannot be used; never with the address, which may hold a secret.
    pub fn open(
        url: &str,
        secrets: SecretSource,
        policy: &DestinationPolicy,
    ) -> std::result::Result<Self, String> {
        let url = Url::parse(url).map_err(|_| "its url cannot be read".to_owned())?;
        policy.check_url(&url).map_err(|why| why.to_string())?;
        parse_secrets(secrets.current_secret()?.reveal())?;
        Ok(Self { url, secrets })
    }

    /// The address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Signs a message with the current secrets, as of now.
    ///
    /// # Errors
    /// `Misconfigured` if a secret is invalid.
    pub fn sign(&self, id: &str, body: String) -> Result<SignedMessage> {
        let timestamp = OffsetDateTime::now_utc().unix_timestamp();
        let signatures = self
            .secrets
            .current_secret()
            .and_then(|secrets| parse_secrets(secrets.reveal()))
            .and_then(|secrets| sign_message(&secrets, id, timestamp, &body))
            .map_err(|why| Error::new(Fault::Misconfigured, why))?;
        Ok(SignedMessage { id: id.to_owned(), timestamp, signatures, body })
    }
}
