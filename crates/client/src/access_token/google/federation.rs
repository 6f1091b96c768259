//! Workload identity federation: the token of another platform is exchanged at Google's Security
//! Token Service (RFC 8693), and that one, if the configuration says so, for a service account's.
//!
//! Subject tokens come from a file, from an address, or from AWS's own identity. Certificates and
//! programs as sources are not offered.

use std::collections::BTreeMap;
use std::time::SystemTime;

use aws_config::SdkConfig;
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::sync::OnceCell;

use super::aws_subject;
use super::scope::SCOPE;
use crate::access_token::GrantedToken;
use crate::access_token::server::{ImpersonatedAnswer, TokenAnswer, TokenServer};
use docmill_core::fault::{Error, Fault, Result};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const REQUESTED_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The exchange, if the configuration does not name another.
const TOKEN_URL: &str = "https://sts.googleapis.com/v1/token";
/// Seconds for which a token of a service account is valid, Google's default.
const IMPERSONATED_SECONDS: u64 = 3600;

/// A configuration of workload identity federation (`"type": "external_account"`).
#[derive(Deserialize)]
pub(super) struct ExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: Option<String>,
    credential_source: CredentialSource,
    service_account_impersonation_url: Option<String>,
    #[serde(default)]
    service_account_impersonation: ImpersonationOptions,
    client_id: Option<String>,
    client_secret: Option<String>,
    workforce_pool_user_project: Option<String>,
}

#[derive(Default, Deserialize)]
struct ImpersonationOptions {
    token_lifetime_seconds: Option<u64>,
}

/// Where the subject token comes from.
#[derive(Deserialize)]
#[serde(untagged)]
enum CredentialSource {
    Aws {
        environment_id: String,
        regional_cred_verification_url: String,
    },
    File {
        file: String,
        #[serde(default)]
        format: SubjectForm,
    },
    Address {
        url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        format: SubjectForm,
    },
}

#[derive(Default, Deserialize)]
struct SubjectForm {
    #[serde(rename = "type", default)]
    kind: String,
    subject_token_field_name: Option<String>,
}

impl SubjectForm {
    /// The subject token in the text of its file or answer.
    fn find_token(&self, text: &str) -> Option<String> {
        let token = match self.kind.as_str() {
            "json" => {
                let all: Value = serde_json::from_str(text).ok()?;
                let field = self.subject_token_field_name.as_ref()?;
                all.get(field)?.as_str()?.to_owned()
            }
            _ => text.trim().to_owned(),
        };
        Some(token).filter(|token| !token.is_empty())
    }
}

impl ExternalAccount {
    /// Reads a configuration; `None`: its source of subject tokens is none of those offered.
    ///
    /// # Errors
    /// An address in it is not encrypted.
    pub(super) fn parse(file: &Value) -> Result<Option<Box<Self>>> {
        let Ok(account) = Self::deserialize(file) else { return Ok(None) };
        if let CredentialSource::Aws { environment_id, .. } = &account.credential_source
            && environment_id != "aws1"
        {
            return Ok(None);
        }
        let addresses = [&account.token_url, &account.service_account_impersonation_url];
        for address in addresses.into_iter().flatten() {
            TokenServer::new(address, "see the configuration of workload identity federation")?;
        }
        Ok(Some(Box::new(account)))
    }

    pub(super) async fn request_token(
        &self,
        named: &str,
        aws: &OnceCell<SdkConfig>,
    ) -> Result<GrantedToken> {
        let subject = self.find_subject(named, aws).await?;
        let federated = self.exchange_subject(&subject, named).await?;
        match &self.service_account_impersonation_url {
            None => Ok(federated),
            Some(url) => self.impersonate(url, &federated, named).await,
        }
    }

    async fn find_subject(&self, named: &str, aws: &OnceCell<SdkConfig>) -> Result<String> {
        let (text, form) = match &self.credential_source {
            CredentialSource::Aws { regional_cred_verification_url, .. } => {
                return aws_subject::sign_identity(
                    aws,
                    regional_cred_verification_url,
                    &self.audience,
                )
                .await;
            }
            CredentialSource::File { file, format } => {
                let text = tokio::fs::read_to_string(file).await.map_err(|error| {
                    let context = format!("{named}: the file of the subject token, {file}");
                    Error::new(Fault::Denied, format!("{context}, cannot be read"))
                        .with_source(error)
                })?;
                (text, format)
            }
            CredentialSource::Address { url, headers, format } => {
                let server = TokenServer::new(url, &format!("check credential_source of {named}"))?;
                let mut request = server.client.get(server.url.clone());
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                (server.ask_text(request).await?, format)
            }
        };
        form.find_token(&text).ok_or_else(|| {
            let context = format!("{named}: credential_source holds no subject token in its form");
            Error::new(Fault::Denied, context)
        })
    }

    async fn exchange_subject(&self, subject: &str, named: &str) -> Result<GrantedToken> {
        let advice = format!("check audience and subject_token_type of {named}, and the pool");
        let address = self.token_url.as_deref().unwrap_or(TOKEN_URL);
        let server = TokenServer::new(address, &advice)?;
        let project = self.workforce_pool_user_project.as_ref();
        let options = project.filter(|_| self.client_id.is_none());
        let options = options.map(|project| json!({"userProject": project}).to_string());
        let mut form = vec![
            ("grant_type", GRANT_TYPE),
            ("audience", &self.audience),
            ("scope", SCOPE),
            ("requested_token_type", REQUESTED_TYPE),
            ("subject_token", subject),
            ("subject_token_type", &self.subject_token_type),
        ];
        form.extend(options.as_ref().map(|options| ("options", options.as_str())));
        let mut request = server.post_form(&form);
        if let Some(client) = &self.client_id {
            request = request.basic_auth(client, self.client_secret.as_ref());
        }
        let answer: TokenAnswer = server.ask_json(request).await?;
        Ok(answer.into_token(SystemTime::now()))
    }

    async fn impersonate(
        &self,
        url: &str,
        federated: &GrantedToken,
        named: &str,
    ) -> Result<GrantedToken> {
        let advice = format!(
            "check service_account_impersonation_url of {named}, and that the pool has the role \
             Workload Identity User of that account"
        );
        let server = TokenServer::new(url, &advice)?;
        let options = &self.service_account_impersonation;
        let seconds = options.token_lifetime_seconds.unwrap_or(IMPERSONATED_SECONDS);
        let body = json!({"scope": [SCOPE], "lifetime": format!("{seconds}s")});
        let request = server.client.post(server.url.clone()).json(&body);
        let request = request.bearer_auth(federated.value.reveal());
        let answer: ImpersonatedAnswer = server.ask_json(request).await?;
        Ok(answer.into_token(OffsetDateTime::now_utc()))
    }
}
